//! The user, the host and the port with which a program on this host connects to a server.

use std::ffi::OsString;

use crate::linux::{
    error::{ReadError, fact},
    passwd,
    process::{Process, sandbox, status},
    root::Root,
};

use crate::server::postmaster_pid;

/// Unknown facts are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// The name in `/etc/passwd` of the user that the server runs as.
    pub user: Option<String>,
    /// The host and the port, for `psql -h` and `psql -p`. `None` also if they could lead to
    /// another server, because this one runs in a container.
    pub address: Option<(OsString, u16)>,
}

impl Connection {
    /// Reads them from a process whose working directory is the data directory.
    ///
    /// Errors: only out of memory.
    pub fn read(root: &Root, server: &Process, buffer: &mut Vec<u8>) -> Result<Self, ReadError> {
        let uid = fact(status::read_identity(server, buffer))?.map(|identity| identity.uid);
        let users = fact(passwd::read(root))?.unwrap_or_default();
        // Not a kernel file: any error means that there is no such file.
        let file = server.read_regular("cwd/postmaster.pid").ok();
        let lock_file = file.and_then(|bytes| postmaster_pid::parse(&bytes));
        let reaches = match fact(Process::this(root))? {
            Ok(this) => sandbox::reaches(server, &this)?,
            Err(_) => false,
        };
        Ok(Self {
            user: (uid.ok().flatten())
                .and_then(|uid| users.name(uid))
                .map(str::to_owned),
            address: lock_file
                .filter(|_| reaches)
                .and_then(|file| Some((file.host?, file.port))),
        })
    }
}
