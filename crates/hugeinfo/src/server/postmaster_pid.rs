//! `postmaster.pid`, which a PostgreSQL server keeps in its data directory (utils/init/miscinit.c
//! `CreateLockFile`, utils/pidfile.h).

use crate::linux::text::parse_number;

/// What of the file tells a server from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostmasterPid {
    /// Line 1: the process, as it knows itself. In single-user mode the file has it negative, and
    /// is none of a server.
    pub pid: u32,
    /// Line 4: the TCP port, which also names the socket.
    pub port: u16,
    /// Whether line 7, the System V segment, is filled in. `postgres -C` ends before that.
    pub has_shared_memory: bool,
}

/// `None`: it is not of this form, or not written to its end yet.
pub fn parse(bytes: &[u8]) -> Option<PostmasterPid> {
    let mut lines = bytes.split(|&b| b == b'\n');
    let pid = u32::try_from(parse_number(lines.next()?.trim_ascii())?).ok()?;
    let port = u16::try_from(parse_number(lines.nth(2)?.trim_ascii())?).ok()?;
    // Each line ends in a line feed.
    lines.next()?;
    let segment = lines.nth(1).unwrap_or_default();
    Some(PostmasterPid {
        pid,
        port,
        has_shared_memory: !segment.trim_ascii().is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_and_port() {
        let text =
            b"4711\n/srv/pg data\n1795243200\n5433\n/run/postgresql\n*\n  5432001  17\nready   \n";
        let expected = PostmasterPid {
            pid: 4711,
            port: 5433,
            has_shared_memory: true,
        };
        assert_eq!(parse(text), Some(expected));
        let expected = PostmasterPid {
            has_shared_memory: false,
            ..expected
        };
        for text in [
            &b"4711\n/srv/pg data\n1795243200\n5433\n/run/postgresql\n"[..],
            b"4711\n/srv/pg data\n1795243200\n5433\n/run/postgresql\n*\n\nstarting\n",
        ] {
            assert_eq!(parse(text), Some(expected));
        }
    }

    #[test]
    fn what_is_not_one() {
        for text in [
            "",
            "4711",
            "4711\n/srv\n1795243200\n54",
            "-4711\n/srv\n1795243200\n5432\n",
            "4711\n/srv\n1795243200\n65536\n",
            "4711\n/srv\n1795243200\nx\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
