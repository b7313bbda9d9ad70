//! The checks, one file for each, with the name that it has in SQL.
//!
//! A finding is one statement, one number, one cause, in sentences. The evidence contains its
//! figures, named like SQL columns: bytes end in `_bytes`, counts of pages in `_pages`.

mod cgroup_fault_limit;
mod huge_page_size;
mod huge_pages;
mod hugetlb_shm_group;
mod major_faults;
mod memory_left;
mod numa_segment;
mod oom_protection;
mod other_servers;
mod overcommit;
mod page_tables;
mod pending_settings;
mod pool_filled;
mod pool_growth;
mod pool_size;
mod reboot;
mod restart;
mod swap;
mod thp;
mod thp_private;
mod thp_shared;

pub(crate) use page_tables::need_huge_pages as page_tables_need_huge_pages;
pub(crate) use pool_size::{is_much_idle, largest_idle_size};
pub(crate) use reboot::{decision as decision_about_boot, too_much_at_boot};
pub use thp_shared::may_be_used as shared_thp_may_be_used;

use super::{
    check::{CheckId, Finding, Judgment},
    decision::Decision,
};
use crate::model::{
    machine::{Machine, ServerState},
    step::Step,
};

/// All checks. Where two are equally bad, the earlier one matters more.
pub(crate) const ALL: [CheckId; 20] = [
    CheckId::CgroupFaultLimit,
    CheckId::HugePages,
    CheckId::Restart,
    CheckId::PendingSettings,
    CheckId::PoolSize,
    CheckId::Reboot,
    CheckId::HugePageSize,
    CheckId::PoolFilled,
    CheckId::PoolGrowth,
    CheckId::MemoryLeft,
    CheckId::OtherServers,
    CheckId::NumaSegment,
    CheckId::PageTables,
    CheckId::Swap,
    CheckId::MajorFaults,
    CheckId::ThpPrivate,
    CheckId::ThpShared,
    CheckId::Overcommit,
    CheckId::OomProtection,
    CheckId::HugetlbShmGroup,
];

/// Source of the remedy of a check.
pub(crate) enum Cure {
    /// There is no remedy.
    None,
    /// Pools, limits, settings and a restart. If these do not fix it, a decision.
    Core(fn(&Machine) -> Option<Decision>),
    /// The boot configuration.
    Boot,
    /// Steps that only this check needs.
    Steps(fn(&Machine) -> Result<Vec<Step>, Decision>),
    /// A person decides.
    Decision(fn(&Machine) -> Decision),
}

impl CheckId {
    /// Whether the setting `pg_hugeinfo.muted_checks` names it.
    pub(crate) fn is_muted(self, machine: &Machine) -> bool {
        machine.is_muted(self.name())
    }

    /// Judges a machine. What cannot be judged is unknown, with the reason.
    pub(crate) fn judge(self, machine: &Machine) -> Finding {
        if machine.server_state != ServerState::Running && self.needs_running_server() {
            return Finding::ok("not_running", "The server does not run.");
        }
        let judge: fn(&Machine) -> Judgment = match self {
            Self::CgroupFaultLimit => cgroup_fault_limit::judge,
            Self::HugePages => huge_pages::judge,
            Self::Restart => restart::judge,
            Self::PendingSettings => pending_settings::judge,
            Self::PoolSize => pool_size::judge,
            Self::Reboot => reboot::judge,
            Self::HugePageSize => huge_page_size::judge,
            Self::PoolFilled => pool_filled::judge,
            Self::PoolGrowth => pool_growth::judge,
            Self::MemoryLeft => memory_left::judge,
            Self::OtherServers => other_servers::judge,
            Self::NumaSegment => numa_segment::judge,
            Self::PageTables => page_tables::judge,
            Self::Swap => swap::judge,
            Self::MajorFaults => major_faults::judge,
            Self::ThpPrivate => thp_private::judge,
            Self::ThpShared => thp_shared::judge,
            Self::Overcommit => overcommit::judge,
            Self::OomProtection => oom_protection::judge,
            Self::HugetlbShmGroup => hugetlb_shm_group::judge,
        };
        judge(machine).unwrap_or_else(|why| {
            let why = why.0.trim_end_matches('.');
            Finding::unknown(format!("Cannot judge {self}: {why}."))
        })
    }

    /// Whether it is about the memory or the processes of the running server.
    pub(crate) fn needs_running_server(self) -> bool {
        matches!(
            self,
            Self::HugePages
                | Self::NumaSegment
                | Self::PageTables
                | Self::Swap
                | Self::MajorFaults
                | Self::ThpShared
                | Self::OomProtection
        )
    }

    /// Source of the remedy.
    pub(crate) fn cure(self) -> Cure {
        match self {
            Self::CgroupFaultLimit | Self::HugePages | Self::HugePageSize => Cure::Core(|_| None),
            Self::Restart => Cure::Core(restart::decision),
            Self::PendingSettings => Cure::Core(|machine| {
                pending_settings::decision(machine).or(restart::decision(machine))
            }),
            Self::PoolSize => Cure::Core(pool_size::decision),
            Self::Reboot => Cure::Boot,
            Self::PoolFilled | Self::PoolGrowth => Cure::Core(|_| None),
            Self::ThpShared => Cure::Core(thp_shared::decision),
            Self::MemoryLeft => Cure::Core(memory_left::decision),
            Self::OtherServers => Cure::Core(other_servers::decision),
            Self::NumaSegment => Cure::Steps(numa_segment::steps),
            Self::PageTables => Cure::Core(page_tables::decision),
            Self::Swap => Cure::Decision(|_| Decision::LookForSwap),
            Self::MajorFaults => Cure::Decision(|_| Decision::LookForFaults),
            Self::ThpPrivate => Cure::Steps(thp_private::steps),
            Self::Overcommit => Cure::Core(overcommit::decision),
            Self::OomProtection => Cure::Steps(oom_protection::steps),
            Self::HugetlbShmGroup => Cure::None,
        }
    }

    /// Whether its warnings count for the whole server. They cost no more than a few small files.
    pub(crate) fn is_about_server(self, machine: &Machine) -> bool {
        match self {
            Self::CgroupFaultLimit | Self::HugePages | Self::Restart | Self::PoolSize => true,
            Self::PendingSettings => {
                let files = machine.whole_state().map(|state| &state.files);
                files.is_some_and(host::server::state::Files::stop_a_start)
            }
            // The price of a server that is turned off.
            Self::PageTables => page_tables::count_for_server(machine),
            _ => false,
        }
    }

    /// Whether it is about the next start.
    pub(crate) fn is_about_start(self) -> bool {
        matches!(
            self,
            Self::Restart | Self::PendingSettings | Self::HugePageSize
        )
    }
}
