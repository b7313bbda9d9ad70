//! An obstacle in words: a clause without a capital letter and without a full stop.

use std::fmt;

use super::{huge_pages, human, list};
use crate::{
    escape,
    model::{
        landing::Fit,
        limits::{LowLimit, fault_refusals},
        machine::Machine,
        need::Unseen,
        obstacle::Obstacle,
    },
};

impl fmt::Display for Obstacle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "huge_pages = off"),
            Self::Sysv => write!(f, "shared_memory_type = sysv; only mmap can use huge pages"),
            Self::NoHugePages => write!(f, "this kernel or processor has no huge pages"),
            Self::UnknownSize { asked, known } => {
                write!(
                    f,
                    "huge_page_size asks for huge pages of {}, but the kernel has {}",
                    human(*asked),
                    list(known),
                )
            }
            Self::ReservationLimit(refusals) => {
                let allows = |refusal: &LowLimit<'_>| {
                    format!(
                        "control group {} lets {} of huge pages be reserved, and the server would reserve {}",
                        escape::name(&refusal.group.directory),
                        human(refusal.limit),
                        human(refusal.wanted.most),
                    )
                };
                let all: Vec<_> = refusals.iter().map(allows).collect();
                write!(f, "{}", all.join("; "))
            }
            Self::PoolShort {
                page_bytes,
                required,
                missing,
                fitting_sizes,
            } => {
                write!(
                    f,
                    "the server needs {}; the pool can give {}, {missing} too few",
                    huge_pages(*required, *page_bytes),
                    required.saturating_sub(*missing),
                )?;
                if !fitting_sizes.is_empty() {
                    let sizes = list(fitting_sizes);
                    write!(f, " (pages of another size would suffice: {sizes})")?;
                }
                Ok(())
            }
            Self::NodesShort {
                page_bytes,
                required,
                missing,
                nodes,
            } => {
                let nodes: Vec<_> = nodes.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "the server needs {}; the NUMA nodes that the server may use ({}) lack {missing} of them",
                    huge_pages(*required, *page_bytes),
                    nodes.join(", "),
                )
            }
            Self::Overcommit {
                page_bytes,
                required,
                to_make,
            } => write!(
                f,
                "the server needs {}; the kernel would have to make {to_make} of them when the server starts (vm.nr_overcommit_hugepages), and only a start shows whether it can",
                huge_pages(*required, *page_bytes),
            ),
            Self::Untold(absent) => write!(f, "{absent}"),
            Self::PageSizeUntold => write!(f, "the page size of the main segment cannot be seen"),
            Self::NodesUntold => write!(
                f,
                "how many of its pages the server gives back on the NUMA nodes that it may use cannot be seen"
            ),
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits => write!(f, "small pages can hold the main segment"),
            Self::BeyondCommitLimit { bytes, room_bytes } => write!(
                f,
                "on small pages the main segment takes {}, and CommitLimit leaves only {}",
                human(*bytes),
                human(*room_bytes)
            ),
            Self::BeyondMemory { bytes, left_bytes } => write!(
                f,
                "on small pages the main segment takes {}, and the pools leave only {} of RAM",
                human(*bytes),
                human(*left_bytes)
            ),
            Self::BeyondMemoryLimit {
                group,
                limit_bytes,
                wanted_bytes,
                ..
            } => write!(
                f,
                "on small pages control group {} would need {}, and its memory limit is {}",
                escape::name(group),
                human(*wanted_bytes),
                human(*limit_bytes)
            ),
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processes => write!(
                f,
                "processes of other users are hidden, and some may be servers"
            ),
            Self::OtherNamespaces => write!(
                f,
                "servers of other containers, and of their host, cannot be seen from here"
            ),
            Self::Servers(1) => write!(f, "the need of one other server is hidden"),
            Self::Servers(n) => write!(f, "the needs of {n} other servers are hidden"),
        }
    }
}

/// What is in the way, and what would be once that is gone: a limit that would break the server on
/// huge pages.
pub(crate) fn explain(machine: &Machine, obstacle: &Obstacle<'_>) -> String {
    let aimed = machine.planning(machine.aim());
    let page_bytes = aimed.facts.target_pool().map(|pool| pool.page_bytes);
    let refusals = page_bytes.and_then(|page_bytes| fault_refusals(&aimed.facts, page_bytes));
    let beyond: Vec<_> = refusals
        .unwrap_or_default()
        .iter()
        .filter(|refusal| refusal.is_certain())
        .map(|refusal| {
            format!(
                "; on huge pages control group {} would allow {} of {}",
                escape::name(&refusal.group.directory),
                human(refusal.limit),
                human(refusal.wanted.least)
            )
        })
        .collect();
    format!("{obstacle}{}", beyond.concat())
}
