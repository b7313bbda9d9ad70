//! `/sys/devices/system/node`: the NUMA nodes, their memory and their parts of the pools.

pub mod node;
pub mod nodes;
