//! A server and its machine, the steps that change them, and the outcome of a start of PostgreSQL.
//!
//! This module is pure: it uses only [`Facts`](crate::server::facts::Facts) and
//! [`Environment`](crate::server::environment::Environment). If an exact answer would need a
//! simulation of the kernel, the answer is on the safe side or unknown.

pub mod allowed_part;
mod apply;
pub mod demand;
pub mod forecast;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod numa;
pub mod other_host;
pub mod page_tables;
pub mod pool_change;
pub mod start;
pub mod step;
pub mod touched;

pub use apply::Blocked;
pub(crate) use apply::ready_pages;
