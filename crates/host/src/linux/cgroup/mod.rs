//! The cgroup of a process and its ancestors, with their limits on huge pages and memory.

mod hierarchy;
mod hugetlb;
pub mod membership;
pub mod memory;
pub mod memory_events;
pub mod mount;

pub use self::{
    hierarchy::{Limit, parse_keyed, parse_limit},
    hugetlb::{Group, Hugetlb, Limits, read, refusals},
    mount::Version,
};
