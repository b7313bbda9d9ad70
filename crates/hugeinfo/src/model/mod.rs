//! What the kernel and PostgreSQL will do. Nothing here reads a file or changes a machine: a step
//! is tried on a copy.

pub mod another_host;
pub mod boot;
pub mod cgroup;
pub mod commit;
pub mod forecast;
pub(crate) mod headroom;
pub(crate) mod landing;
pub mod limits;
pub mod machine;
pub mod mapping;
pub mod memory_limit;
pub mod need;
pub mod next_boot;
mod node_memory;
pub mod nodes;
pub(crate) mod obstacle;
pub mod page_tables;
pub mod pools;
pub mod refusal;
pub mod restored;
pub mod shares;
pub mod start;
pub mod step;
pub mod take;
pub mod touched;
