//! `/proc/sysvipc/shm`: the System V shared memory segments of this IPC namespace (ipc/shm.c
//! `sysvipc_shm_proc_show`).

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number, words},
};

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// What its makers know it by.
    pub key: i32,
    /// Who made it; 0: a process of another PID namespace.
    pub creator: u64,
    /// How many processes have it attached.
    pub attached: u64,
    /// Bytes of it in memory. `None`: the kernel doesn't tell (before 2.6.35).
    pub resident: Option<u64>,
    /// Bytes of it swapped out. `None`: as above.
    pub swapped: Option<u64>,
}

/// All of them. Errors: absent if the kernel has no System V shared memory.
pub fn read(root: &Root) -> Result<Vec<Segment>, ReadError> {
    root.parse(
        "proc/sysvipc/shm",
        "a shared memory segment was expected",
        parse,
    )
}

/// One line each, below a line of titles. Errors: the number of a line that is not a segment.
pub fn parse(bytes: &[u8]) -> Result<Vec<Segment>, usize> {
    lines(bytes)
        .skip(1)
        .map(|(number, line)| {
            let mut columns = words(line);
            let key = columns.next().and_then(parse_key).ok_or(number)?;
            let mut numbers = columns.map(parse_number);
            let creator = numbers.nth(3).flatten().ok_or(number)?;
            let attached = numbers.nth(1).flatten().ok_or(number)?;
            let resident = numbers.nth(7).flatten();
            let swapped = numbers.next().flatten();
            Ok(Segment {
                key,
                creator,
                attached,
                resident,
                swapped,
            })
        })
        .collect()
}

/// It may be negative.
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
        assert_eq!(parse(text), Ok(expected.to_vec()));
        assert_eq!(parse(b"key\n"), Ok(Vec::new()));
        assert_eq!(parse(b""), Ok(Vec::new()));
        assert_eq!(parse(b"key\n 1 2 600 56\n"), Err(2));
        assert_eq!(parse(b"key\n x 2 600 56 1 2 3\n"), Err(2));
    }
}
