//! Readers of kernel files: one module per source, named after it. This layer does not depend on
//! PostgreSQL.
//!
//! Parsers of whole files return the line where they failed. Parsers of streams return a
//! [`ParseError`](error::ParseError), and parsers of single values return `None`.
//!
//! We do not use the parsers of `procfs`, because they
//! - reject all of `meminfo` if one line is missing, as in sandboxes such as gVisor;
//! - expect UTF-8 names in `maps`, `smaps`, `mountinfo` and `cgroup`, which the kernel does not
//!   guarantee, and panic on a file named `/SYSV` followed by fewer than eight digits;
//! - panic on a truncated `stat`;
//! - keep every line of `status`. Parsing it takes 19 µs, and the kernel needs 17 µs to write it.
//!   Our parser takes 0.7 µs (`benches/status.rs`). Our goal for both together is 1.25 times the
//!   kernel's time.

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod error;
pub mod growth;
pub mod hugepages;
pub mod list;
pub mod meminfo;
pub mod mounts;
pub(crate) mod namespace;
pub mod numa;
pub mod pages;
pub mod passwd;
pub mod pressure;
pub mod process;
pub mod processors;
pub mod root;
pub mod sysctl;
pub mod sysvipc;
pub(crate) mod text;
pub mod transparent_hugepage;
pub mod uptime;
pub mod vmstat;
