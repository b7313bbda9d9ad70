//! `/proc/PID/uid_map`: the user namespace of a process (user_namespaces(7)).

use crate::linux::{
    error::ReadError,
    process::Process,
    text::{lines, parse_number, words},
};

/// Whether the process is in the initial user namespace. Only capabilities in that namespace count
/// for the kernel's `capable()`.
///
/// Errors: absent if the process has exited.
pub fn is_initial(process: &Process, buffer: &mut Vec<u8>) -> Result<bool, ReadError> {
    process.parse_leniently("uid_map", buffer, parse)
}

/// The initial namespace maps every ID to itself: `0 0 4294967295`.
pub fn parse(text: &[u8]) -> bool {
    let mut ranges = lines(text).map(|(_, line)| words(line).map(parse_number).collect::<Vec<_>>());
    let all = [0, 0, u64::from(u32::MAX)].map(Some);
    ranges.next().is_some_and(|range| range == all) && ranges.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_map_of_all_ids_to_themselves_is_initial() {
        assert!(parse(b"         0          0 4294967295\n"));
        for text in [
            "         0     100000      65536\n",
            "         0          0      65536\n",
            "         0       1000          1\n         1     100000      65536\n",
            "0 0 4294967295\n1 1 1\n",
            "",
        ] {
            assert!(!parse(text.as_bytes()), "{text:?}");
        }
    }
}
