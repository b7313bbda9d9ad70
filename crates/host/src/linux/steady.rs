//! Facts that stay the same until a mount changes.

use crate::linux::{
    error::{ReadError, fact},
    hugepages, mounts,
    root::Root,
};

/// Facts that a session reads once, and again only after a mount has changed (see
/// [`mounts::Watch`]). A change of file system options in another mount namespace goes undetected.
#[derive(Debug)]
pub struct Steady {
    /// The lines of `/proc/self/mountinfo` for the file system types that this crate uses.
    pub(crate) mounts: Vec<u8>,
    /// The sizes of huge pages, which the kernel determines at boot. `None`: unknown.
    pub(crate) page_sizes: Option<Vec<u64>>,
}

impl Steady {
    /// Errors: absent if the list of mounts cannot be read.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        Ok(Self {
            mounts: mounts::of_interest(root)?,
            page_sizes: fact(hugepages::page_sizes(root))?.ok(),
        })
    }
}
