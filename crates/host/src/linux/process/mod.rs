//! `/proc/PID`: one process, always read through its opened directory.

pub mod children;
pub mod maps;
pub mod numa_maps;
pub mod oom_score;
mod opened;
mod procmap_query;
pub mod sandbox;
pub mod segment;
pub mod smaps;
pub mod stat;
pub mod status;
pub mod uid_map;

use crate::linux::error::{Absent, Fact, ReadError, fact};

pub use opened::{FileId, Process, parse_arguments, parse_command_line};

/// Reads facts through an opened directory.
pub fn through<T>(
    process: Result<&Process, &Absent>,
    read: impl FnOnce(&Process) -> Result<T, ReadError>,
) -> Result<Fact<T>, ReadError> {
    match process {
        Ok(process) => fact(read(process)),
        Err(absent) => Ok(Err(absent.clone())),
    }
}
