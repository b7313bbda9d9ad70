//! Parses `postmaster.pid`, the lock file in the data directory of a running server
//! (utils/init/miscinit.c `CreateLockFile`, utils/pidfile.h).

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use crate::linux::text::parse_number;

/// The lines that identify a server, and its address for connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmasterPid {
    /// Line 1: the PID in the server's own PID namespace. It is negative in single-user mode, which
    /// is not a server.
    pub pid: u32,
    /// Line 3: when the server started, in seconds since 1970.
    pub start_time: u64,
    /// Line 4: the TCP port, which also names the socket.
    pub port: u16,
    /// Line 5, as the value of `psql -h`: the first socket directory. `None`: there is no socket,
    /// or the server does not listen yet.
    pub socket_directory: Option<OsString>,
    /// Whether line 7, the System V segment, is filled in. `postgres -C` ends before that.
    pub has_shared_memory: bool,
}

/// Parses the file. `None`: another format, or not completely written yet.
pub fn parse(bytes: &[u8]) -> Option<PostmasterPid> {
    let mut lines = bytes.split(|&b| b == b'\n');
    let pid = u32::try_from(parse_number(lines.next()?.trim_ascii())?).ok()?;
    let directory = lines.next()?;
    let start_time = parse_number(lines.next()?.trim_ascii())?;
    let port = u16::try_from(parse_number(lines.next()?.trim_ascii())?).ok()?;
    // Each line ends in a line feed.
    let socket = lines.next()?;
    let _address = lines.next();
    let segment = lines.next().unwrap_or_default();
    Some(PostmasterPid {
        pid,
        start_time,
        port,
        socket_directory: socket_directory(directory, socket),
        has_shared_memory: !segment.trim_ascii().is_empty(),
    })
}

fn socket_directory(directory: &[u8], socket: &[u8]) -> Option<OsString> {
    let os = OsStr::from_bytes;
    match socket {
        [] => None,
        // A socket in the abstract namespace.
        [b'@', ..] => Some(os(socket).to_owned()),
        // The server looks up a relative name in its data directory.
        _ => Some(Path::new(os(directory)).join(os(socket)).into()),
    }
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
            start_time: 1_795_243_200,
            port: 5433,
            socket_directory: Some("/run/postgresql".into()),
            has_shared_memory: true,
        };
        assert_eq!(parse(text), Some(expected.clone()));
        let expected = PostmasterPid {
            has_shared_memory: false,
            ..expected
        };
        for text in [
            &b"4711\n/srv/pg data\n1795243200\n5433\n/run/postgresql\n"[..],
            b"4711\n/srv/pg data\n1795243200\n5433\n/run/postgresql\n*\n\nstarting\n",
        ] {
            assert_eq!(parse(text), Some(expected.clone()));
        }
    }

    #[test]
    fn addresses_are_no_socket_directory() {
        for (lines, expected) in [
            ("/run/pg sql\n*\n", Some("/run/pg sql")),
            ("@pg\n*\n", Some("@pg")),
            (".\n*\n", Some("/srv/pg data/.")),
            ("\n*\n", None),
            ("\n\n", None),
            ("\n", None),
        ] {
            let text = format!("4711\n/srv/pg data\n1795243200\n5433\n{lines}");
            let found = parse(text.as_bytes()).expect("a server").socket_directory;
            assert_eq!(found.as_deref(), expected.map(OsStr::new), "{lines:?}");
        }
    }

    #[test]
    fn other_formats_are_rejected() {
        for text in [
            "",
            "4711",
            "4711\n/srv\n1795243200\n54",
            "4711\n/srv\nx\n5432\n",
            "-4711\n/srv\n1795243200\n5432\n",
            "4711\n/srv\n1795243200\n65536\n",
            "4711\n/srv\n1795243200\nx\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
