//! How much of the host its processes show: who cannot be seen may be a server, too.

use std::{ops::ControlFlow, path::Path};

use crate::linux::{
    error::{ReadError, fact},
    mounts,
    namespace::{self, Kind},
    process::{Process, status},
    root::Root,
};

/// Whose processes can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Those of the whole host.
    Host,
    /// Those of this PID namespace, as in a container.
    Namespace,
    /// Those of other users are hidden, and one of them may be a server's: `hidepid` of
    /// `/proc` (proc(5)), `ProtectProc` of systemd, or a security module.
    Hidden,
}

/// Reads which servers are hidden from this process.
///
/// Errors: only out of memory.
pub fn read(root: &Root) -> Result<Sight, ReadError> {
    // The list of System V segments proves nothing: it is that of one IPC namespace.
    if hides_processes(root)? {
        return Ok(Sight::Hidden);
    }
    Ok(match namespace::is_first(root, Kind::Pid)? {
        true => Sight::Host,
        false => Sight::Namespace,
    })
}

/// Process 1 always exists, and mostly belongs to another user.
fn hides_processes(root: &Root) -> Result<bool, ReadError> {
    let mut buffer = Vec::new();
    let mut owner = |process: Result<Process, ReadError>| {
        fact(process.and_then(|process| status::read_identity(&process, &mut buffer)))
    };
    let Ok(first) = owner(Process::open(root, 1))? else {
        return Ok(true);
    };
    let this = owner(Process::this(root))?;
    if this.is_ok_and(|this| this.uid != first.uid) {
        return Ok(false);
    }
    // Our own user's, as in a container: what of others?
    let mut hides = false;
    let looked = mounts::each(root, "proc", |mount| {
        // Of several at one place the last one counts.
        if mount.point == Path::new("/proc") {
            let value = mount.option("hidepid").unwrap_or(b"0");
            hides = value != b"0" && value != b"off";
        }
        ControlFlow::Continue(())
    });
    Ok(fact(looked)?.is_ok() && hides)
}
