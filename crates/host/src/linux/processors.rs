//! `/sys/devices/system/cpu/online`: the processors that are online
//! (Documentation/admin-guide/cputopology.rst).

use crate::linux::{
    error::ReadError,
    list::{self, List},
    root::Root,
};

pub(crate) const PATH: &str = "/sys/devices/system/cpu/online";

/// Reads the file.
pub fn online(root: &Root) -> Result<List, ReadError> {
    root.parse(PATH, "a list of numbers was expected", |bytes| {
        list::parse(bytes).ok_or(1)
    })
}
