//! `/sys/devices/system/cpu/online`: the processors that run
//! (Documentation/admin-guide/cputopology.rst).

use crate::linux::{
    error::ReadError,
    list::{self, List},
    root::Root,
};

/// Reads the file.
pub fn online(root: &Root) -> Result<List, ReadError> {
    const PATH: &str = "sys/devices/system/cpu/online";
    list::parse(&root.read(PATH)?).ok_or_else(|| ReadError::Malformed {
        path: root.path(PATH),
        line: 1,
        problem: "a list of numbers was expected",
    })
}
