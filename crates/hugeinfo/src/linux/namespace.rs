//! Namespaces of this process (namespaces(7)).

use crate::linux::{
    error::{ReadError, absent_or},
    process::Process,
    root::Root,
};

/// A kind of namespace. The kernel's first of each has a fixed number (include/linux/proc_ns.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Control groups.
    Cgroup,
    /// Numbers of processes.
    Pid,
}

impl Kind {
    fn name_and_first(self) -> (&'static str, u32) {
        match self {
            Self::Cgroup => ("cgroup", 4_026_531_835),
            Self::Pid => ("pid", 4_026_531_836),
        }
    }
}

/// Whether this process is in the kernel's first one, and not in that of a container.
pub(crate) fn is_first(root: &Root, kind: Kind) -> Result<bool, ReadError> {
    let (name, number) = kind.name_and_first();
    let this = Process::this(root);
    let link = absent_or(this.and_then(|this| this.link(&format!("ns/{name}"))))?;
    Ok(link.is_ok_and(|link| link == format!("{name}:[{number}]").as_bytes()))
}
