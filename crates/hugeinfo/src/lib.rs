//! What Linux says of huge pages and of one process's shared memory, and what follows from it.
//!
//! Data flows one way. *Readers* ([`segment`], [`hugepages`], [`meminfo`], [`cgroup`]) each know one
//! kernel source and nothing of PostgreSQL. [`facts`] collects what they read. The *reasoning*
//! ([`sizing`], [`forecast`], [`checks`]) is pure: facts in, findings out, so that any machine can be
//! a test fixture.
//!
//! ```no_run
//! use hugeinfo::{checks, facts::{Facts, HugePages, Server, SharedMemoryType, Subject}, root::Root};
//!
//! let server = Server {
//!     huge_pages: HugePages::Try,
//!     shared_memory_type: SharedMemoryType::Mmap,
//!     huge_page_size_bytes: None,
//!     shared_memory_bytes: 143 << 20,
//! };
//! let subject = Subject { postmaster: Some(4711), address: 0x7f00_0000_0000 };
//! let facts = Facts::read(&Root::system(), server, &subject)?;
//! println!("{}", checks::verdict(&facts).reason);
//! # Ok::<(), hugeinfo::error::ReadError>(())
//! ```

#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("hugeinfo reads /proc and /sys of Linux; it cannot be built for another system");

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod checks;
pub mod error;
pub mod facts;
pub mod family;
pub mod forecast;
pub mod growth;
pub mod headroom;
pub mod host;
pub mod hugepages;
pub mod identity;
pub mod instances;
pub mod kind;
pub mod limits;
pub mod list;
pub mod maps;
pub mod meminfo;
pub mod memory;
pub mod nodes;
pub mod numa;
pub mod numa_maps;
pub mod oom;
pub mod page_tables;
pub mod passwd;
pub mod postmaster_pid;
pub mod process;
pub mod processors;
mod procmap_query;
pub mod refusal;
pub mod root;
pub mod segment;
pub mod sizing;
pub mod smaps;
pub mod sources;
pub mod stat;
pub mod surroundings;
pub mod sysctl;
mod text;
pub mod transparent_hugepage;
pub mod uptime;
pub mod vmstat;
