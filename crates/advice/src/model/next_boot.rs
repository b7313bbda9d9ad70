//! Whether the host can hold the pools that the next boot sets up. An existing line is judged like
//! a new one.

use crate::model::{
    apply::Blocked,
    demand::Demands,
    machine::Machine,
    memory::{self, CommitLimit},
};
use host::units::{Bytes, Pages};

/// Bytes that all pools can have, so that enough is left for other programs. A segment that stays on
/// small pages on purpose has to fit into the rest. `None`: unknown.
pub fn most_in_pools(machine: &Machine) -> Option<Bytes> {
    let next = machine.next_start();
    let small = match next.asks_for_huge_pages() {
        true => Bytes(0),
        false => Bytes(next.shared_memory_bytes),
    };
    Some(memory::most_in_pools(machine)?.min(memory::host_ram(machine)? - small))
}

/// Why the host could not hold this many pages at the next boot, in addition to the other pools that
/// the boot sets up. The rules are those for a pool that grows now. `None`: no reason is known.
pub fn blocked(machine: &Machine, demands: &Demands, pages: Pages) -> Option<Blocked> {
    let size = demands.size;
    let then = demands.pools_at_boot(machine, pages);
    let grows = then > memory::in_pools(machine);
    let Some(most) = most_in_pools(machine) else {
        return Some(Blocked::UnknownMemory {
            size,
            pages,
            why: "its memory is unknown here".to_owned(),
        });
    };
    let missing = demands.missing_at_boot(machine, pages).unwrap_or_default();
    if then > most {
        let missing = missing.max(then - most);
        return Some(Blocked::LeavesTooLittle { missing });
    }
    if missing > Bytes(0) {
        return Some(Blocked::Memory { missing });
    }
    if let Some(why) = CommitLimit::unknown(machine).filter(|_| grows) {
        let why = why.to_owned();
        return Some(Blocked::UnknownMemory { size, pages, why });
    }
    let limit = demands.commit_limit_at_boot(machine, pages);
    let is_low = |limit: &CommitLimit| grows && limit.missing() > Bytes(0);
    limit.filter(is_low).map(Blocked::CommitLimit)
}
