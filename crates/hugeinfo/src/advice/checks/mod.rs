//! The checks, a file each and named as in SQL: what each looks at, and what it says.
//!
//! Findings are clauses in the style of PostgreSQL's messages: no capital letter, no full stop. The
//! figures that a finding rests on are its evidence, named as the SQL columns are: bytes end in
//! `_bytes`, counts of pages in `_pages`. What to type is not their business: see `remedy`.

mod cgroup_fault_limit;
mod huge_page_size;
mod huge_pages;
mod hugetlb_shm_group;
mod major_faults;
mod memlock;
mod memory_left;
mod neighbours;
mod numa_pool;
mod numa_segment;
mod oom_protection;
mod overcommit;
mod page_tables;
mod pool_filled;
mod pool_growth;
mod pool_size;
mod reboot;
mod restart;
mod restart_with_files;
mod swap;
mod thp;
mod thp_private;
mod thp_shared;

pub use thp_shared::may_be_used as shared_thp_may_be_used;

use crate::{
    advice::{
        check::{Answer, Finding, Status},
        decisions::About,
    },
    model::{
        machine::Machine,
        step::{Decision, Service, Step},
    },
};

/// A check: its name, and how it judges a machine.
pub(crate) struct Entry {
    /// Stable.
    pub(crate) name: &'static str,
    /// What it tells, for when it can't.
    tells: &'static str,
    judge: fn(&Machine) -> Answer,
    /// Where its remedy comes from.
    pub(crate) cure: Cure,
    /// What a person decides about where no remedy is safe.
    pub(crate) decides: About,
}

/// Where a remedy comes from.
pub(crate) enum Cure {
    /// There is none.
    None,
    /// What sets up the pool and gets the server onto it.
    Pools,
    /// The same, and nothing once the server is on it.
    HugePages,
    /// Steps of its own.
    Own(fn(&Machine) -> Vec<Step>),
}

impl Entry {
    /// What it says of a machine.
    pub(crate) fn judge(&self, machine: &Machine) -> Finding {
        (self.judge)(machine).unwrap_or_else(|untold| {
            Finding::new(
                Status::Unknown,
                format!("cannot determine {}: {}", self.tells, untold.0),
            )
        })
    }
}

const fn entry(
    name: &'static str,
    tells: &'static str,
    judge: fn(&Machine) -> Answer,
    cure: Cure,
) -> Entry {
    Entry {
        name,
        tells,
        judge,
        cure,
        decides: About::Pool,
    }
}

impl Entry {
    const fn deciding(self, decides: About) -> Self {
        Self { decides, ..self }
    }
}

/// How many of them cost no more than reading a few small files: the first ones.
pub(crate) const CHEAP: usize = 4;

/// All checks: the cheap ones first, then by weight. Where two are equally bad, the earlier one
/// matters more.
pub(crate) static ALL: [Entry; 22] = [
    entry(
        "cgroup_fault_limit",
        "whether a control group limits the huge pages of the server",
        cgroup_fault_limit::judge,
        Cure::Pools,
    ),
    entry(
        "huge_pages",
        "whether the main segment is on huge pages",
        huge_pages::judge,
        Cure::Pools,
    ),
    entry(
        "restart",
        "whether a restart would get huge pages",
        restart::judge,
        Cure::Pools,
    ),
    entry(
        "pool_size",
        "whether the pools hold unused pages",
        pool_size::judge,
        Cure::Pools,
    ),
    entry(
        "restart_with_files",
        "what the configuration files mean for the next start",
        restart_with_files::judge,
        Cure::Pools,
    )
    .deciding(About::Files),
    entry(
        "reboot",
        "what the next boot sets up",
        reboot::judge,
        Cure::Pools,
    )
    .deciding(About::NextBoot),
    entry(
        "huge_page_size",
        "which huge pages the kernel has",
        huge_page_size::judge,
        Cure::Pools,
    ),
    entry(
        "pool_filled",
        "whether the pools hold what was asked for",
        pool_filled::judge,
        Cure::Pools,
    ),
    entry(
        "pool_growth",
        "whether the pool can grow",
        pool_growth::judge,
        Cure::Pools,
    ),
    entry(
        "memory_left",
        "what the pools leave of RAM",
        memory_left::judge,
        Cure::Pools,
    )
    .deciding(About::Memory),
    entry(
        "neighbours",
        "whether other servers share the pools",
        neighbours::judge,
        Cure::Pools,
    ),
    entry(
        "numa_pool",
        "how the pool lies on the nodes",
        numa_pool::judge,
        Cure::Own(crate::advice::plans::on_nodes),
    ),
    entry(
        "numa_segment",
        "on which nodes the main segment lies",
        numa_segment::judge,
        Cure::Own(|_| vec![Step::ChangeService(Service::Interleave), Step::Restart]),
    ),
    entry(
        "page_tables",
        "what page tables cost",
        page_tables::judge,
        Cure::HugePages,
    )
    .deciding(About::PageTables),
    entry(
        "swap",
        "whether the server is swapped out",
        swap::judge,
        Cure::Own(|_| vec![Step::Decide(Decision::LookForSwap)]),
    ),
    entry(
        "major_faults",
        "how often this server waits for its own pages",
        major_faults::judge,
        Cure::Own(|_| vec![Step::Decide(Decision::LookForFaults)]),
    ),
    entry(
        "thp_private",
        "the mode of transparent huge pages for private memory",
        thp_private::judge,
        Cure::Own(|machine| quiet(machine, thp_private::unasked, "madvise")),
    ),
    entry(
        "thp_shared",
        "the mode of transparent huge pages for shared memory",
        thp_shared::judge,
        Cure::Pools,
    ),
    entry(
        "overcommit",
        "what the pools take from CommitLimit",
        overcommit::judge,
        Cure::Own(crate::advice::plans::commit_limit),
    )
    .deciding(About::CommitLimit),
    entry(
        "oom_protection",
        "whether the OOM killer spares the postmaster",
        oom_protection::judge,
        Cure::Own(|machine| {
            let spared = |around: &crate::server::surroundings::Surroundings| {
                around.oom_score_adj.as_ref().is_ok_and(|&adj| adj < 0)
            };
            let service = if machine.around.as_ref().is_some_and(spared) {
                Service::ExposeBackends
            } else {
                Service::ProtectPostmaster
            };
            vec![Step::ChangeService(service), Step::Restart]
        }),
    ),
    entry(
        "memlock",
        "the limit on locked memory, which does not affect huge pages",
        memlock::judge,
        Cure::Own(|_| {
            vec![
                Step::ChangeService(Service::UnlimitedLockedMemory),
                Step::Restart,
            ]
        }),
    ),
    entry(
        "hugetlb_shm_group",
        "vm.hugetlb_shm_group, which does not affect huge pages",
        hugetlb_shm_group::judge,
        Cure::None,
    ),
];

/// Sets each of these files to a mode that gives nothing unasked.
fn quiet(
    machine: &Machine,
    unasked: fn(&crate::linux::transparent_hugepage::Modes) -> Vec<thp::File>,
    mode: &'static str,
) -> Vec<Step> {
    let modes = thp::modes(machine).ok().flatten();
    let files = modes.map(unasked).unwrap_or_default();
    let set = |(file, _): thp::File| Step::SetThp { file, mode };
    files.into_iter().map(set).collect()
}
