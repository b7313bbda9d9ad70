//! A server and its machine, the steps that change them, and the outcome of a start of PostgreSQL.
//!
//! It uses only [`Facts`](host::server::facts::Facts). If an exact answer would need a simulation
//! of the kernel, the answer is on the safe side or unknown.

pub mod allowed_part;
pub mod apply;
pub mod demand;
pub mod faulted_in;
pub mod forecast;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod next_boot;
pub mod numa;
pub mod other_host;
pub mod page_tables;
pub mod pool_change;
pub mod start;
pub mod step;
