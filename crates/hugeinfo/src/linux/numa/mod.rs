//! `/sys/devices/system/node`: the NUMA nodes, and what each of them has.

pub mod node;
pub mod nodes;
