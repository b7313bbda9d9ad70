//! `/proc/PID/status`: who a process is (fs/proc/array.c `task_state`).

use crate::{
    error::ReadError,
    process::Process,
    text::{lines, parse_number, split_once},
};

/// Its user, and its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `Uid`, the effective one. `None`: no such line.
    pub uid: Option<u32>,
    /// `NSpid`, since Linux 4.1: its number in our namespace and in each one below, the last being that which it knows itself by. Empty: no such line.
    pub numbers: Vec<u32>,
}

/// Reads the file. Errors: absent where the process has ended.
pub fn read(process: &Process, buffer: &mut Vec<u8>) -> Result<Identity, ReadError> {
    const NAME: &str = "status";
    parse(process.read(NAME, buffer)?)
        .map_err(|line| process.malformed(NAME, line, "a name and numbers were expected"))
}

/// Lines of other names are passed over. Errors: the number of a line that has no numbers.
pub fn parse(bytes: &[u8]) -> Result<Identity, usize> {
    let mut identity = Identity::default();
    for (number, line) in lines(bytes) {
        let numbers = |value| numbers(value).filter(|all| !all.is_empty()).ok_or(number);
        match split_once(line, b':') {
            // Real, effective, saved, of the file system.
            Some((b"Uid", value)) => identity.uid = numbers(value)?.get(1).copied(),
            Some((b"NSpid", value)) => identity.numbers = numbers(value)?,
            _ => {}
        }
    }
    Ok(identity)
}

fn numbers(value: &[u8]) -> Option<Vec<u32>> {
    value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| u32::try_from(parse_number(word)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_numbers() {
        let text = b"Name:\tpostgres\nPid:\t4711\nUid:\t1000\t105\t0\t105\nNSpid:\t4711\t17\t1\nVmPeak:\t 12 kB\n";
        let expected = Identity {
            uid: Some(105),
            numbers: vec![4711, 17, 1],
        };
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(b"Name:\tpostgres\n"), Ok(Identity::default()));
    }

    #[test]
    fn the_line_is_named() {
        assert_eq!(parse(b"Name:\tx\nUid:\t0\t-1\n"), Err(2));
        assert_eq!(parse(b"NSpid:\t\n"), Err(1));
        assert_eq!(parse(b"NSpid:\t4294967296\n"), Err(1));
    }
}
