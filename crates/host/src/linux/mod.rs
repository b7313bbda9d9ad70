//! Readers of kernel files: one module per source, named after it. This layer does not depend on
//! PostgreSQL.
//!
//! An unsigned counter that the kernel decremented below zero, and a line that cannot be parsed,
//! have no value; other lines are still used. If the value decides whether there is a limit or a
//! page size, the parser returns an error instead: the line for whole files, a
//! [`ParseError`](error::ParseError) for streams, `None` for single values.
//!
//! `procfs` parses the same files, but rejects the whole file, or panics, because of one odd line:
//! - `meminfo`: if one line is missing, as in sandboxes such as gVisor;
//! - `sysvipc/shm`: if a segment belongs to a user ID above 65535, as in user namespaces;
//! - `limits`: if one of 16 limits is missing;
//! - `maps`, `smaps`, `mountinfo`, `cgroup`: if a name is not UTF-8, which the kernel allows; it
//!   panics on a file named `/SYSV` followed by fewer than eight digits;
//! - `stat`: it panics if the file is truncated;
//! - `status`: it keeps every line. Parsing takes 19 µs, and the kernel needs 17 µs to write the
//!   file. Our parser takes 0.7 µs (`benches/status.rs`). Our goal for both together
//!   is 1.25 times the kernel's time.

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod container;
pub mod error;
pub mod growth;
pub mod hugepages;
pub mod list;
pub mod lookup;
pub mod meminfo;
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
