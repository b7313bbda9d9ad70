//! `/proc/uptime`: how long the machine has been running (fs/proc/uptime.c).

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{parse_number, split_once, words},
};

/// Whole seconds since boot.
pub fn read(root: &Root) -> Result<u64, ReadError> {
    const PATH: &str = "proc/uptime";
    root.parse(PATH, "a number of seconds was expected", |bytes| {
        parse(bytes).ok_or(1)
    })
}

/// `1234.56 2345.67`: the second number is idle time.
pub fn parse(bytes: &[u8]) -> Option<u64> {
    let (seconds, _) = split_once(words(bytes.trim_ascii()).next()?, b'.')?;
    parse_number(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_since_boot() {
        assert_eq!(parse(b"11385.42 20112.90\n"), Some(11385));
        assert_eq!(parse(b"0.00 0.00"), Some(0));
        assert_eq!(parse(b"1 2"), None);
        assert_eq!(parse(b""), None);
    }
}
