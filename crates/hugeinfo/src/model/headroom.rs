//! What a pool of huge pages leaves of RAM for everything else: processes, their page tables, the
//! file cache, the kernel.

use crate::model::machine::Machine;

/// At least this share of RAM should stay outside of the pools. PostgreSQL's processes need memory
/// of their own, and reads that miss shared buffers live on the file cache; a host with less has
/// ended by the OOM killer's hand.
pub(crate) const LEFT_PERCENT: u64 = 10;

/// RAM, and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headroom {
    /// `MemTotal`.
    pub ram_bytes: u64,
    /// In pages of all pools.
    pub pools_bytes: u64,
}

impl Headroom {
    /// As the pools are now. `None`: the kernel doesn't tell, or only what a container may have.
    pub fn now(machine: &Machine) -> Option<Self> {
        machine.facts.pools.as_ref().ok()?;
        machine.sees_memory_of_host.then_some(Self {
            ram_bytes: machine.ram_bytes()?,
            pools_bytes: machine.pools_bytes(),
        })
    }

    /// With this many bytes in all pools.
    pub fn beside(machine: &Machine, pools_bytes: u64) -> Option<Self> {
        Some(Self {
            pools_bytes,
            ..Self::now(machine)?
        })
    }

    /// With this many pages in the pool of that size.
    pub fn with(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Self> {
        let now = Self::now(machine)?;
        let pool = machine.pool(page_bytes)?;
        let others = now
            .pools_bytes
            .saturating_sub(pool.total.saturating_mul(pool.page_bytes));
        Some(Self {
            pools_bytes: others.saturating_add(pages.saturating_mul(pool.page_bytes)),
            ..now
        })
    }

    /// What is left outside of the pools.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.ram_bytes.saturating_sub(self.pools_bytes)
    }

    /// Whether that is enough to work with.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_enough_beside(0)
    }

    /// Whether that is enough beside this many bytes on small pages.
    pub(crate) fn is_enough_beside(&self, bytes: u64) -> bool {
        self.left_bytes().saturating_sub(bytes) >= self.ram_bytes / 100 * LEFT_PERCENT
    }

    /// Bytes that the pools may have more, so that what is left is enough.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.left_bytes()
            .saturating_sub(self.ram_bytes / 100 * LEFT_PERCENT)
    }
}
