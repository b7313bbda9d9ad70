//! `/proc/PID/stat` (fs/proc/array.c `do_task_stat`; proc(5)).

use crate::linux::{
    error::ReadError,
    process::Process,
    text::{parse_counter, parse_number},
};

/// Parent, start and page faults of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Field 4: PID of the parent.
    pub parent: u32,
    /// Field 10: minor faults since the process started. `None`: below zero.
    pub minor_faults: Option<u64>,
    /// Field 12: major faults, which read from disk, since the process started. `None`: below zero.
    pub major_faults: Option<u64>,
    /// Field 22: start of the process in clock ticks since boot. Together with the PID it
    /// identifies a process.
    pub start_ticks: u64,
}

/// Reads the file. Errors: absent if the process has ended.
pub fn read(process: &Process, buffer: &mut Vec<u8>) -> Result<Stat, ReadError> {
    process.parse("stat", buffer, EXPECTED, |text| parse(text).ok_or(1))
}

/// Like [`read`], with field 2, the name of the program.
pub fn read_with_name(
    process: &Process,
    buffer: &mut Vec<u8>,
) -> Result<(Stat, Vec<u8>), ReadError> {
    process.parse("stat", buffer, EXPECTED, |text| {
        let name = parse_name(text).map(<[u8]>::to_vec);
        parse(text).zip(name).ok_or(1)
    })
}

const EXPECTED: &str = "the fields of proc(5) were expected";

/// Parses the file. Field 2, the name in parentheses, can contain any bytes, including parentheses
/// and line feeds.
pub fn parse(bytes: &[u8]) -> Option<Stat> {
    let end_of_name = bytes.iter().rposition(|&b| b == b')')?;
    let mut fields = bytes[end_of_name + 1..]
        .trim_ascii()
        .split(|&b| b == b' ')
        .skip(1);
    let mut next = |skipped| fields.nth(skipped);
    Some(Stat {
        parent: u32::try_from(parse_number(next(0)?)?).ok()?,
        minor_faults: parse_counter(next(5)?),
        major_faults: parse_counter(next(1)?),
        start_ticks: parse_counter(next(9)?)?,
    })
}

/// Parses the text in parentheses: at most 15 bytes of the program's name, any bytes.
pub fn parse_name(bytes: &[u8]) -> Option<&[u8]> {
    let start = bytes.iter().position(|&b| b == b'(')? + 1;
    let end = bytes.iter().rposition(|&b| b == b')')?;
    bytes.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 4711 1 1 0 -1 4194560 52152 7 11 3 10 20 30 40 20 0 1 0 88123 1 2";

    #[test]
    fn the_fields_of_proc() {
        let expected = Stat {
            parent: 4711,
            minor_faults: Some(52152),
            major_faults: Some(11),
            start_ticks: 88123,
        };
        for name in ["postgres", "a b", "x) S 1 (y", ") (", "line\nfeed", ""] {
            let line = format!("42 ({name}) {TAIL}\n");
            assert_eq!(parse(line.as_bytes()), Some(expected), "{name:?}");
            assert_eq!(parse_name(line.as_bytes()), Some(name.as_bytes()));
        }
    }

    #[test]
    fn faults_below_zero_have_no_value() {
        let tail = TAIL.replace(" 52152 ", " 18446744073709551615 ");
        let stat = parse(format!("42 (postgres) {tail}\n").as_bytes()).expect("a process");
        assert_eq!((stat.minor_faults, stat.major_faults), (None, Some(11)));
        assert_eq!((stat.parent, stat.start_ticks), (4711, 88123));
    }

    #[test]
    fn truncated_line_is_rejected() {
        let line = format!("42 (postgres) {TAIL}");
        let needed = line.len() - " 1 2".len();
        for end in 0..needed - "88123".len() + 1 {
            assert_eq!(parse(&line.as_bytes()[..end]), None, "{end}");
        }
        assert_eq!(parse(b"42 (postgres) S -1 1"), None);
        assert_eq!(parse(b")"), None);
        for line in ["", "1 postgres", "1 (postgres", ")(", "1 postgres)"] {
            assert_eq!(parse_name(line.as_bytes()), None, "{line}");
        }
    }
}
