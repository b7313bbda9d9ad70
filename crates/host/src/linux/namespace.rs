//! Namespaces of this process (namespaces(7)).

use std::{fs, path::Path};

use crate::linux::{
    error::{ReadError, fact},
    root::Root,
};

/// A kind of namespace. The initial namespace of each kind has a fixed number
/// (include/linux/proc_ns.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Cgroup,
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

/// Whether this process is in the initial namespace, not in that of a container.
///
/// Errors: absent if the link cannot be read.
pub fn look(root: &Root, kind: Kind) -> Result<bool, ReadError> {
    let (name, number) = kind.name_and_first();
    let path = root.path(format!("proc/self/ns/{name}"));
    let link = fs::read_link(&path).map_err(|error| ReadError::from_io(path, error))?;
    Ok(link == Path::new(&format!("{name}:[{number}]")))
}

/// Like [`look`], but false if unknown.
pub fn is_first(root: &Root, kind: Kind) -> Result<bool, ReadError> {
    Ok(fact(look(root, kind))?.unwrap_or(false))
}
