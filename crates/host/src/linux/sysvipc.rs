//! `/proc/sysvipc/shm`: the System V shared memory segments of this IPC namespace (ipc/shm.c
//! `sysvipc_shm_proc_show`).

use crate::linux::{
    error::ReadError,
    mounts::of_machine,
    root::Root,
    text::{lines, parse_counter, words},
};

pub(crate) const PATH: &str = "/proc/sysvipc/shm";

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// IPC key (`key_t`).
    pub key: i32,
    /// PID of the process that created it. 0: a process of another PID namespace.
    pub creator: u64,
    /// Number of processes that have attached it.
    pub attached: u64,
    /// Bytes in memory. `None`: not reported.
    pub resident: Option<u64>,
    /// Bytes swapped out. `None`: not reported.
    pub swapped: Option<u64>,
}

/// Reads all segments. Errors: absent if the kernel has no System V shared memory.
pub fn read(root: &Root) -> Result<Vec<Segment>, ReadError> {
    let read = root.read_filled(PATH);
    Ok(parse(&of_machine(root, read)?))
}

/// One line for each segment, after a line of titles. Lines that cannot be parsed are skipped.
pub fn parse(bytes: &[u8]) -> Vec<Segment> {
    lines(bytes)
        .skip(1)
        .filter_map(|(_, line)| parse_line(line))
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Segment> {
    let mut columns = words(line);
    let key = parse_key(columns.next()?)?;
    let mut numbers = columns.map(parse_counter);
    Some(Segment {
        key,
        creator: numbers.nth(3)??,
        attached: numbers.nth(1)??,
        resident: numbers.nth(7).flatten(),
        swapped: numbers.next().flatten(),
    })
}

/// A key can be negative.
fn parse_key(digits: &[u8]) -> Option<i32> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        let text = b"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
              10019779    1966088   600              56 24380 24381      6   101   104   101   104 1795363201          0 1795363201                  4096                  8192\n\
             -1437521     1933347   600                    56     0 21362      0   101\n";
        let expected = [
            Segment {
                key: 10_019_779,
                creator: 24380,
                attached: 6,
                resident: Some(4096),
                swapped: Some(8192),
            },
            Segment {
                key: -1_437_521,
                creator: 0,
                attached: 0,
                resident: None,
                swapped: None,
            },
        ];
        assert_eq!(parse(text), expected);
        assert_eq!(parse(b"key\n"), []);
        assert_eq!(parse(b""), []);
    }

    #[test]
    fn invalid_lines_and_values_are_skipped() {
        let text = b"key\n 1 2 600 56\n x 2 600 56 1 2 3\n\
            7 2 600 56 8 9 3 0 0 0 0 0 0 0 18446744073709551615 4096\n";
        let expected = Segment {
            key: 7,
            creator: 8,
            attached: 3,
            resident: None,
            swapped: Some(4096),
        };
        assert_eq!(parse(text), [expected]);
    }
}
