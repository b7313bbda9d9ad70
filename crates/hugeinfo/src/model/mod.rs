//! What the kernel and PostgreSQL will do. Nothing here reads a file or changes a machine: a step is
//! tried on a copy.

pub mod cgroup;
pub mod commit;
pub mod forecast;
pub mod headroom;
pub mod mapping;
pub mod page_tables;
pub mod pools;
pub mod refusal;
pub mod start;
