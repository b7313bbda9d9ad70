//! Reads the huge pages and the shared memory of a process on Linux, and derives advice from them.
//!
//! Data flows one way, and each crate depends only on those before it. [`linux`] reads kernel files
//! and does not depend on PostgreSQL. [`server`] collects facts about one server and its machine.
//! [`model`] predicts the effect of a step. This crate re-exports them, and its [`advice`] finds
//! problems and the commands that solve them. [`model`] and [`advice`] are pure, so that any
//! machine can be a test fixture. [`escape`] and [`shell`] write untrusted names into texts and
//! commands. [`units`] has the types of quantities.
//!
//! ```no_run
//! use hugeinfo::{
//!     advice::diagnosis,
//!     linux::root::Root,
//!     model::machine::Machine,
//!     server::facts::{Facts, HugePages, Server, SharedMemoryType, Subject},
//! };
//!
//! let server = Server {
//!     huge_pages: HugePages::Try,
//!     shared_memory_type: SharedMemoryType::Mmap,
//!     huge_page_size_bytes: None,
//!     shared_memory_bytes: 143 << 20,
//! };
//! let subject = Subject { postmaster: Some(4711), address: 0x7f00_0000_0000 };
//! let facts = Facts::read(&Root::system(), server, &subject)?;
//! println!("{}", diagnosis::verdict(&Machine::new(facts, None)).reason);
//! # Ok::<(), hugeinfo::linux::error::ReadError>(())
//! ```

#![deny(unsafe_code)]

pub use hugeinfo_linux::{self as linux, escape, shell, units};
pub use hugeinfo_model as model;
pub use hugeinfo_server as server;

pub mod advice;
