//! What the kernel reports: a file for each source, named after it. Nothing here knows PostgreSQL.
//!
//! Parsers of whole files say in which line they failed, parsers of streams give a
//! [`ParseError`](error::ParseError), and those of one value give `None`.
//!
//! The parsers are our own, since those of `procfs`
//! - refuse all of `meminfo` where one line is missing, as in sandboxes such as gVisor;
//! - take names in `maps`, `smaps`, `mountinfo` and `cgroup` for UTF-8, which the kernel does not
//!   promise, and panic on a file named `/SYSV` with fewer than eight digits behind it;
//! - panic on a `stat` that is cut short;
//! - keep every line of `status`, and take as long as the kernel does to write them (19 µs and
//!   17 µs; ours 0.7 µs, by `benches/status.rs`), where we allow 1.25 times that in all.

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
