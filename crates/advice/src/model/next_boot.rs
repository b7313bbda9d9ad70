//! Whether the host can hold the pools that the next boot sets up. An existing line is judged like
//! a new one.

use crate::model::{
    apply::Blocked,
    demand::Demands,
    machine::Machine,
    memory::{self, CommitLimit},
};
use host::units::{Bytes, Pages};

/// Why the host could not hold this many pages at the next boot, in addition to the other pools
/// that the boot sets up. The rules are those for a pool that grows now. `None`: no reason is
/// known.
pub fn blocked(machine: &Machine, demands: &Demands, pages: Pages) -> Option<Blocked> {
    let size = demands.size;
    let then = demands.pools_at_boot(machine, pages);
    let grows = then > memory::in_pools(machine);
    match demands.missing_at_boot(machine, pages) {
        None => {
            let why = "its memory is unknown here".to_owned();
            return Some(Blocked::UnknownMemory { size, pages, why });
        }
        Some(Bytes(0)) => {}
        Some(missing) => return Some(Blocked::Memory { missing }),
    }
    if let Some(why) = CommitLimit::unknown(machine).filter(|_| grows) {
        let why = why.to_owned();
        return Some(Blocked::UnknownMemory { size, pages, why });
    }
    let limit = demands.commit_limit_at_boot(machine, pages);
    let is_low = |limit: &CommitLimit| grows && limit.missing() > Bytes(0);
    limit.filter(is_low).map(Blocked::CommitLimit)
}
