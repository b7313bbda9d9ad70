//! Which processes of the host are visible. A hidden process might be a server.

use crate::linux::{
    error::{ReadError, fact},
    mounts,
    namespace::{self, Kind},
    process::{Process, status},
    root::Root,
};

/// Which processes are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// All processes of the host.
    Host,
    /// The processes of this PID namespace, as in a container.
    Namespace,
    /// Processes of other users are hidden, by `hidepid` of `/proc` (proc(5)), `ProtectProc` of
    /// systemd, or a security module. Servers might be among them.
    Hidden,
}

/// Reads which processes are visible to this process.
///
/// Errors: only out of memory.
pub fn read(root: &Root) -> Result<Visibility, ReadError> {
    // The list of System V segments proves nothing, because it covers only one IPC namespace.
    if hides_processes(root)? {
        return Ok(Visibility::Hidden);
    }
    Ok(match namespace::is_first(root, Kind::Pid)? {
        true => Visibility::Host,
        false => Visibility::Namespace,
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
    // Process 1 belongs to our own user, as in a container, so it does not show whether other users
    // are hidden.
    let proc = mounts::of_proc(root);
    let value = proc.as_ref().and_then(|proc| proc.option("hidepid"));
    Ok(value.is_some_and(|value| value != b"0" && value != b"off"))
}
