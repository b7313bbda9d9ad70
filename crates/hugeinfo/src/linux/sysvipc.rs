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
    /// Who made it; 0: a process of another PID namespace.
    pub creator: u64,
    /// How many processes have it attached.
    pub attached: u64,
}

/// All of them. Errors: absent where the kernel has no System V shared memory.
pub fn read(root: &Root) -> Result<Vec<Segment>, ReadError> {
    root.parse(
        "proc/sysvipc/shm",
        "a shared memory segment was expected",
        parse,
    )
}

/// One line each, below a line of titles. Errors: the number of a line that is no segment.
pub fn parse(bytes: &[u8]) -> Result<Vec<Segment>, usize> {
    lines(bytes)
        .skip(1)
        .map(|(number, line)| {
            let mut numbers = words(line).map(parse_number);
            let creator = numbers.nth(4).flatten().ok_or(number)?;
            let attached = numbers.nth(1).flatten().ok_or(number)?;
            Ok(Segment { creator, attached })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        let text = b"       key      shmid perms                  size  cpid  lpid nattch   uid\n\
              10019779    1966088   600                    56 24380 24381      6   101\n\
             -1437521     1933347   600                    56     0 21362      0   101\n";
        let expected =
            [(24380, 6), (0, 0)].map(|(creator, attached)| Segment { creator, attached });
        assert_eq!(parse(text), Ok(expected.to_vec()));
        assert_eq!(parse(b"key\n"), Ok(Vec::new()));
        assert_eq!(parse(b""), Ok(Vec::new()));
        assert_eq!(parse(b"key\n 1 2 600 56\n"), Err(2));
    }
}
