//! Why the kernel does not do what is asked.

/// A step that is refused leaves the counters of pools and groups as they were; only the refusals
/// of a group are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The pool is short of this many pages, and overcommit or memory does not give them.
    PoolExhausted {
        /// Pages that would have to come from somewhere.
        missing: u64,
    },
    /// The nodes that the process may use have too few free pages, whatever the pool has.
    NodesExhausted {
        /// Pages that these nodes lack.
        missing: u64,
    },
    /// The fault limit of that group, or of one above it.
    FaultLimit {
        /// The level that refuses.
        group: usize,
    },
    /// The reservation limit of that group, or of one above it.
    ReservationLimit {
        /// The level that refuses.
        group: usize,
    },
    /// The memory limit of that group, or of one above it, which counts huge pages too.
    MemoryLimit {
        /// The level that refuses.
        group: usize,
    },
    /// A limit below what is in use: EBUSY.
    LimitBelowUse,
    /// No group of that number, no such node, or no such counter on this kernel.
    Missing,
    /// Pages of this size cannot be overcommitted: EINVAL.
    Gigantic,
}
