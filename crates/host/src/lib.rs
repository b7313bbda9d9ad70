//! Reads facts. [`linux`] has the readers of kernel files and does not depend on PostgreSQL.
//! [`server`] collects facts about one PostgreSQL server and its machine. [`next_start`] computes
//! its next start. [`escape`] and [`shell`] write untrusted names into texts and commands.
//! [`near`] suggests names. [`units`] has the types of quantities. The crate `advice` draws
//! conclusions from the facts.

#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("this reads /proc and /sys of Linux; it cannot be built for another system");

pub mod escape;
pub mod linux;
pub mod near;
pub mod next_start;
pub mod server;
pub mod shell;
pub mod units;
