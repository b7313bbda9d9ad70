//! Pages that no advice may take.

use crate::model::{machine::Machine, need::Need};

/// Of each pool what is needed of it, as far as it is there.
pub(crate) struct Needed(Vec<Pages>);

struct Pages {
    page_bytes: u64,
    pages: u64,
}

impl Needed {
    pub(crate) fn of(machine: &Machine) -> Self {
        let pools = machine.facts.pools.iter().flatten();
        let needed = pools.filter_map(|pool| {
            let pages = Need::of(machine, pool)?.after_restart();
            Some(Pages {
                page_bytes: pool.page_bytes,
                pages: pages.min(pool.persistent()),
            })
        });
        Self(needed.collect())
    }

    /// Whether none of them is gone.
    pub(crate) fn is_in(&self, machine: &Machine) -> bool {
        self.0.iter().all(|needed| {
            let pool = machine.pool(needed.page_bytes);
            pool.is_none_or(|pool| pool.persistent() >= needed.pages)
        })
    }
}
