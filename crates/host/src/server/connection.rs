//! The user, the socket directory and the port with which a program on this host connects to a
//! server.

use std::{ffi::OsString, path::Path};

use rustix::fs::FileType;

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
    /// The socket directory and the port, for `psql -h` and `psql -p`. `None` also if they could
    /// lead to another server: this one runs in a container, or they are not those of its user, who
    /// writes them.
    pub address: Option<(OsString, u16)>,
}

impl Connection {
    /// Reads them from a process whose working directory is the data directory.
    ///
    /// Errors: only out of memory.
    pub fn read(root: &Root, server: &Process, buffer: &mut Vec<u8>) -> Result<Self, ReadError> {
        let uid = fact(status::read_identity(server, buffer))?.map(|identity| identity.uid);
        let uid = uid.ok().flatten();
        let users = fact(passwd::read(root))?.unwrap_or_default();
        // Not a kernel file: any error means that there is no such file.
        let file = server.read_regular("cwd/postmaster.pid").ok();
        let lock_file = file.and_then(|bytes| postmaster_pid::parse(&bytes));
        let reaches = match fact(Process::this(root))? {
            Ok(this) => sandbox::reaches(server, &this)?,
            Err(_) => false,
        };
        Ok(Self {
            user: (uid.and_then(|uid| users.name(uid))).map(str::to_owned),
            address: lock_file
                .filter(|_| reaches)
                .and_then(|file| Some((file.socket_directory?, file.port)))
                .filter(|(directory, port)| {
                    let socket = Path::new(directory).join(format!(".s.PGSQL.{port}"));
                    has_created(root, server, uid, &socket)
                }),
        })
    }
}

/// True if this user, who names it, has created the socket. No TCP port can be used, because any
/// user can listen on it.
fn has_created(root: &Root, server: &Process, uid: Option<u32>, socket: &Path) -> bool {
    // Not a relative name, such as an abstract socket or another host. The kernel has the names of
    // open sockets in memory.
    let found = (socket.is_absolute()).then(|| root.look_up_of(server.pid(), socket));
    let found = found.and_then(|found| found.ok()?.owner_and_mode().ok());
    found.is_some_and(|(owner, mode)| {
        Some(owner) == uid && FileType::from_raw_mode(mode) == FileType::Socket
    })
}
