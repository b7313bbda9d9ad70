//! Readers of kernel files: one module per source, named after it. This layer does not depend on
//! PostgreSQL.
//!
//! An unsigned counter that the kernel decremented below zero, and a line that cannot be parsed,
//! have no value; other lines are still used. If the value decides whether there is a limit or a
//! page size, the parser returns an error instead: the line for whole files, a
//! [`ParseError`](error::ParseError) for streams, `None` for single values.
//!
//! docs/design.md says why these are not the readers of the `procfs` crate.

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod container;
pub mod error;
pub(crate) mod file;
pub mod growth;
pub mod hugepages;
pub mod list;
pub mod lookup;
pub mod meminfo;
pub mod mountinfo;
pub mod mounts;
pub mod namespace;
pub mod numa;
pub mod pages;
pub mod passwd;
pub mod process;
pub mod processors;
pub mod root;
pub mod steady;
pub mod sysctl;
pub mod sysvipc;
pub mod text;
pub mod transparent_hugepage;
pub mod vmstat;
pub mod zfs;
