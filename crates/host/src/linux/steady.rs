//! Facts that stay the same until a mount changes.

pub use crate::linux::root::Steady;
use crate::linux::{
    error::{ReadError, fact},
    hugepages, mounts,
    root::Root,
};

impl Steady {
    /// Errors: absent if the list of mounts cannot be read.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        Ok(Self {
            mounts: mounts::of_interest(root)?,
            page_sizes: fact(hugepages::page_sizes(root))?.ok(),
        })
    }
}
