//! A start of PostgreSQL: where its shared memory will be, all or nothing
//! (src/backend/port/sysv_shmem.c, `PGSharedMemoryCreate` and `CreateAnonymousSegment`).

use crate::{
    model::{
        cgroup::Groups,
        mapping::{Mapping, Place},
        pools::Pool,
        refusal::Refusal,
    },
    server::facts::{HugePages, SharedMemoryType},
};

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// `huge_pages`.
    pub huge_pages: HugePages,
    /// `shared_memory_type`.
    pub shared_memory_type: SharedMemoryType,
    /// The shared memory that it asks for.
    pub bytes: u64,
    /// `huge_page_size`; `None`: 0, the default of the kernel.
    pub huge_page_bytes: Option<u64>,
    /// What CommitLimit leaves for ordinary memory; `None`: `vm.overcommit_memory` is not 2.
    pub commit_room_bytes: Option<u64>,
}

/// Why there are no huge pages, or no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `huge_pages = off`.
    Off,
    /// `shared_memory_type` is not `mmap`.
    NotMmap,
    /// The kernel has no pages of that size.
    UnknownSize,
    /// Pool, nodes or a limit.
    Refused(Refusal),
    /// CommitLimit leaves too little ordinary memory.
    CommitLimit,
}

/// How it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All of it on huge pages, none of which is touched yet.
    OnHugePages(Mapping),
    /// All of it on small pages.
    OnSmallPages(Reason),
    /// The server does not start.
    Refused(Reason),
}

impl Start {
    /// Pages of this pool that it maps. PostgreSQL rounds its need up to the size that it was told,
    /// the kernel to pages that it has.
    pub fn pages(&self, pool: &Pool) -> u64 {
        let told = self.huge_page_bytes.unwrap_or(pool.page_bytes);
        let bytes = self.bytes.checked_next_multiple_of(told);
        let bytes = bytes.unwrap_or(self.bytes);
        match pool.page_bytes {
            0 => 0,
            page_bytes => bytes.div_ceil(page_bytes),
        }
    }

    /// The pool that it takes its pages from: mmap gets the logarithm of the size, rounded up, so
    /// that `huge_page_size = 1536kB` means pages of 2 MB.
    pub fn takes_from(&self, pool: &Pool, is_default: bool) -> bool {
        match self.huge_page_bytes {
            None => is_default,
            Some(bytes) => bytes.checked_next_power_of_two() == Some(pool.page_bytes),
        }
    }

    /// The start itself, in a place, with the pool that it takes its pages from, if the kernel has
    /// one. Where it ends on small pages or not at all, pool and groups stay as they are.
    pub fn run(&self, place: &Place, pool: Option<&mut Pool>, groups: &mut Groups) -> Outcome {
        let is_required = self.huge_pages == HugePages::On;
        let reason = if self.huge_pages == HugePages::Off {
            Reason::Off
        } else if self.shared_memory_type != SharedMemoryType::Mmap {
            Reason::NotMmap
        } else if let Some(pool) = pool {
            match Mapping::new(self.pages(pool), true, place, pool, groups) {
                Ok(mapping) => return Outcome::OnHugePages(mapping),
                Err(refusal) => Reason::Refused(refusal),
            }
        } else {
            Reason::UnknownSize
        };
        if is_required {
            return Outcome::Refused(reason);
        }
        match self.commit_room_bytes {
            Some(room) if room < self.bytes => Outcome::Refused(Reason::CommitLimit),
            _ => Outcome::OnSmallPages(reason),
        }
    }
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;
