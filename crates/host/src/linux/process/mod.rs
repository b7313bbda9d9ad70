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

pub use opened::{FileId, Process, parse_arguments, parse_command_line};
