//! Why the next start of the server would not get huge pages.

use crate::{
    linux::error::{Absence, Absent},
    model::{
        forecast::{Forecast, Supply},
        limits::{LowLimit, fault_refusals, reservation_refusals},
        machine::Machine,
        nodes,
    },
    server::facts::{AllowedNodes, Facts, HugePages, SharedMemoryType},
};

/// The first thing in the way, in the order in which the server and the kernel come upon them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle<'a> {
    /// `huge_pages = off`.
    Off,
    /// `shared_memory_type = sysv`.
    Sysv,
    /// The kernel or the processor has no huge pages.
    NoHugePages,
    /// Pages of that size are asked for, and the kernel has others.
    UnknownSize {
        /// Bytes.
        asked: u64,
        /// Bytes each.
        known: Vec<u64>,
    },
    /// Of one or more control groups.
    ReservationLimit(Vec<LowLimit<'a>>),
    /// The pool has too few.
    PoolShort {
        /// Of which pages.
        page_bytes: u64,
        /// How many are needed.
        required: u64,
        /// How many of them it lacks.
        missing: u64,
        /// Other sizes of which there are enough.
        fitting_sizes: Vec<u64>,
    },
    /// The pool has enough, but not on the nodes that the server may use.
    NodesShort {
        /// Of which pages.
        page_bytes: u64,
        /// How many are needed.
        required: u64,
        /// How many of them these nodes lack.
        missing: u64,
        /// The nodes.
        nodes: Vec<u32>,
    },
    /// The kernel would have to make pages when the server starts, which only a try can tell.
    Overcommit {
        /// Of which pages.
        page_bytes: u64,
        /// How many are needed.
        required: u64,
        /// How many of them it would have to make.
        to_make: u64,
    },
    /// Unknown: a source is missing.
    Untold(&'a Absent),
    /// The same, of the pages that the segment lies on.
    PageSizeUntold,
    /// Which of its pages lie on the nodes that the server may use.
    NodesUntold,
}

impl Obstacle<'_> {
    /// Whether this is no obstacle, but a gap in what can be seen.
    pub(crate) fn is_untold(&self) -> bool {
        matches!(
            self,
            Self::Untold(_) | Self::PageSizeUntold | Self::NodesUntold
        )
    }
}

/// `None`: nothing is in the way.
pub fn find(machine: &Machine) -> Option<Obstacle<'_>> {
    let facts = &machine.facts;
    if facts.next_start().huge_pages == HugePages::Off {
        return Some(Obstacle::Off);
    }
    if facts.next_start().shared_memory_type == SharedMemoryType::Sysv {
        return Some(Obstacle::Sysv);
    }
    let pools = match &facts.pools {
        Ok(pools) => pools,
        Err(absent) => return Some(without_pools(facts, absent)),
    };
    let Some(asked) = facts.huge_page_asked_for() else {
        let absent = facts.meminfo.as_ref().err();
        return Some(absent.map_or(Obstacle::NoHugePages, Obstacle::Untold));
    };
    let Some(pool) = facts.target_pool() else {
        let known = pools.iter().map(|pool| pool.page_bytes).collect();
        return Some(Obstacle::UnknownSize { asked, known });
    };
    if let Some(refusals) =
        reservation_refusals(facts, asked).filter(|refusals| !refusals.is_empty())
    {
        return Some(Obstacle::ReservationLimit(refusals));
    }
    let forecast = Forecast::of(machine, pool);
    let (page_bytes, required) = (pool.page_bytes, forecast.required);
    let Some(missing) = forecast.shortfall else {
        let absent = facts.segment.as_ref().err();
        return Some(absent.map_or(Obstacle::PageSizeUntold, Obstacle::Untold));
    };
    if missing > 0 {
        return Some(Obstacle::PoolShort {
            page_bytes,
            required,
            missing,
            fitting_sizes: fitting_sizes(machine, page_bytes),
        });
    }
    match nodes::shortfall(machine, pool, required) {
        Some(0) => {}
        Some(missing) => {
            return Some(Obstacle::NodesShort {
                page_bytes,
                required,
                missing,
                nodes: match &facts.allowed_nodes {
                    AllowedNodes::Only(nodes) => nodes.iter().map(|node| node.number).collect(),
                    AllowedNodes::All | AllowedNodes::Untold(_) => Vec::new(),
                },
            });
        }
        None => {
            return Some(match &facts.allowed_nodes {
                AllowedNodes::Untold(absent) => Obstacle::Untold(absent),
                AllowedNodes::All | AllowedNodes::Only(_) => Obstacle::NodesUntold,
            });
        }
    }
    let supply = Supply::after_restart(pool, forecast.own.unwrap_or(0));
    if supply.sure < required {
        return Some(Obstacle::Overcommit {
            page_bytes,
            required,
            to_make: required - supply.sure,
        });
    }
    facts.hugetlb.as_ref().err().map(Obstacle::Untold)
}

/// Sizes other than that of which the pool suffices, and which no control group limits.
fn fitting_sizes(machine: &Machine, page_bytes: u64) -> Vec<u64> {
    let forecasts = Forecast::of_each_pool(machine).into_iter().flatten();
    forecasts
        .filter(|other| other.pool.page_bytes != page_bytes)
        .filter(|other| other.fits_after_restart == Some(true))
        .map(|other| other.pool.page_bytes)
        .filter(|&size| {
            fault_refusals(&machine.facts, size).is_some_and(|refusals| refusals.is_empty())
        })
        .collect()
}

fn without_pools<'a>(facts: &Facts, absent: &'a Absent) -> Obstacle<'a> {
    let kernel_names_no_size = facts
        .meminfo
        .as_ref()
        .is_ok_and(|meminfo| meminfo.default_huge_page_bytes.is_none());
    if absent.why == Absence::Missing && kernel_names_no_size {
        Obstacle::NoHugePages
    } else {
        Obstacle::Untold(absent)
    }
}
