//! Diagnoses: each looks at the facts, says what it found with the figures in it, and what to type.
//!
//! Findings are clauses in the style of PostgreSQL's messages: no capital letter, no full stop. The
//! figures that a finding rests on are its evidence, named as the SQL columns are: bytes end in
//! `_bytes`, counts of pages in `_pages`.

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

use crate::advice::check::{Check, Status};
use crate::server::{
    facts::Facts,
    surroundings::{Files, Surroundings},
};

/// The answer for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// That of the worst check.
    pub status: Status,
    /// The finding of the worst check; if all is well, all findings.
    pub reason: String,
    /// What to type; `None`: nothing.
    pub remedy: Option<String>,
}

/// The checks that cost no more than reading a few small files. Where two are equally bad, the
/// earlier one matters more: a remedy that ends in a restart must not arm a control group's limit.
fn cheap(facts: &Facts, files: &Files) -> [Check; 4] {
    [
        cgroup_fault_limit::check(facts),
        huge_pages::check(facts),
        restart::check(facts),
        pool_size::check(facts, files),
    ]
}

/// All checks: the cheap ones first, then by weight.
pub fn all(facts: &Facts, around: &Surroundings) -> Vec<Check> {
    let others = [
        restart_with_files::check(facts, around),
        reboot::check(facts, around),
        huge_page_size::check(facts),
        pool_filled::check(facts, around),
        pool_growth::check(facts, around),
        memory_left::check(facts, around),
        neighbours::check(facts, around),
        numa_pool::check(facts, around),
        numa_segment::check(facts, around),
        page_tables::check(facts, around),
        swap::check(around),
        major_faults::check(around),
        thp_private::check(around),
        thp_shared::check(facts, around),
        overcommit::check(facts, around),
        oom_protection::check(around),
        memlock::check(around),
        hugetlb_shm_group::check(around),
    ];
    cheap(facts, &around.files)
        .into_iter()
        .chain(others)
        .collect()
}

/// The verdict of the cheap checks, of the server as it runs: what waits in the files is too dear
/// to ask for.
pub fn verdict(facts: &Facts) -> Verdict {
    let checks = cheap(facts, &Files::NothingWaits);
    let status = checks
        .iter()
        .fold(Status::Ok, |worst, check| worst.max(check.status));
    if status == Status::Ok {
        let [_, huge_pages, restart, pool_size] = checks;
        let reason = [huge_pages.finding, restart.finding, pool_size.finding].join("; ");
        return Verdict {
            status,
            reason,
            remedy: None,
        };
    }
    let (reason, remedy) = checks
        .into_iter()
        .find(|check| check.status == status)
        .map(|worst| (worst.finding, worst.remedy))
        .unwrap_or_default();
    Verdict {
        status,
        reason,
        remedy,
    }
}
