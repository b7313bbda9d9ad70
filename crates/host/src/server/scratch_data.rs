//! A data directory with only the files that PostgreSQL reads before it allocates shared memory, so
//! that `postgres -C` computes the size of shared memory beside a running server.

use std::{os::unix::ffi::OsStrExt, path::Path};

/// Options that override settings which would refer to the real data directory, or hide an error.
/// `config_file` and `data_directory` also have to be set.
pub const FIXED_SETTINGS: [&str; 7] = [
    // The files can be relative to the data directory. They use no shared memory.
    "ssl=off",
    // The program waits until postmaster.pid is on disk. The file is not needed after a crash, and
    // on a busy disk the wait took longer than the time limit.
    "fsync=off",
    "log_destination=stderr",
    "log_line_prefix=",
    "log_min_messages=error",
    "log_error_verbosity=verbose",
    "lc_messages=C",
];

/// Maximum number of reads of a file that is being written.
const ATTEMPTS: usize = 100;

/// Reads a file that might be written meanwhile, such as `global/pg_control`, until two reads in a
/// row are equal. PostgreSQL verifies its checksum.
///
/// Errors: those of `read`.
pub fn settled<E>(read: impl Fn() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    let mut last = read()?;
    for _ in 0..ATTEMPTS {
        let next = read()?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(last)
}

/// The text of `postgresql.auto.conf`, which includes that of the real data directory. It is not
/// copied, because files that it includes are relative to its directory.
pub fn auto_conf(data: &Path) -> Vec<u8> {
    let real = data.join("postgresql.auto.conf");
    let quoted = quoted(real.as_os_str().as_bytes());
    [b"include_if_exists '", &*quoted, b"'\n"].concat()
}

/// Formats a string for a configuration file (guc-file.l).
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted
}
