//! `/proc/PID/limits` (fs/proc/base.c `proc_pid_limits`).

use crate::{
    error::ReadError,
    process::Process,
    text::{lines, parse_number, words},
};

/// Reads the soft limit on locked memory in bytes (`RLIMIT_MEMLOCK`). `None`: unlimited.
///
/// Errors: absent if the process has ended or belongs to another user.
pub fn locked_memory(process: &Process, buffer: &mut Vec<u8>) -> Result<Option<u64>, ReadError> {
    let expected = "a limit on locked memory was expected";
    process.parse("limits", buffer, expected, parse)
}

/// Parses the line `Max locked memory`. Errors: the number of that line, or 0 if there is none.
pub fn parse(bytes: &[u8]) -> Result<Option<u64>, usize> {
    const LABEL: &[u8] = b"Max locked memory";
    let (number, limits) = lines(bytes)
        .find_map(|(number, line)| Some((number, line.strip_prefix(LABEL)?)))
        .ok_or(0_usize)?;
    match words(limits).next() {
        Some(b"unlimited") => Ok(None),
        Some(digits) => parse_number(digits).map(Some).ok_or(number),
        None => Err(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_on_locked_memory() {
        let file = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             95996                95996                processes \n\
                 Max locked memory         {soft:<20} unlimited            bytes     \n"
            )
        };
        assert_eq!(parse(file("8388608").as_bytes()), Ok(Some(8 << 20)));
        assert_eq!(parse(file("0").as_bytes()), Ok(Some(0)));
        assert_eq!(parse(file("unlimited").as_bytes()), Ok(None));
        assert_eq!(parse(file("-1").as_bytes()), Err(3));
        assert_eq!(parse(b"Limit\n"), Err(0));
    }
}
