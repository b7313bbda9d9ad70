//! The checks, one file for each, with the name that it has in SQL.
//!
//! To add a check, write its file, with one `const CHECK`, and add it to the list `checks!`.
//!
//! A finding is one statement, one number, one cause, in sentences. The evidence contains its
//! figures, named like SQL columns: bytes end in `_bytes`, counts of pages in `_pages`.

mod cgroup_fault_limit;
mod definition;
mod huge_page_size;
mod huge_pages;
mod hugetlb_shm_group;
mod major_faults;
mod memory_in_use;
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

pub(crate) use definition::Cure;
pub(crate) use pending_settings::{about_files, is_left_to_others, on_command_line};
pub(crate) use pool_size::largest_idle_size;
pub(crate) use reboot::decision as decision_about_boot;
pub(crate) use restart::{decision as question_about_off, undo_pending};
pub use thp_shared::may_be_used as shared_thp_may_be_used;

use std::fmt::{self, Display, Formatter};

use super::finding::Finding;
use crate::model::machine::{Machine, ServerState};
use definition::Check;

/// Defines [`CheckId`] and [`ALL`].
macro_rules! checks {
    ($($id:ident => $file:ident,)*) => {
        /// The checks, the most important first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CheckId {
            $($id,)*
        }

        /// All checks. Where two are equally bad, the earlier one matters more.
        pub(crate) const ALL: [CheckId; [$(CheckId::$id),*].len()] = [$(CheckId::$id),*];

        impl CheckId {
            fn check(self) -> &'static Check {
                match self {
                    $(Self::$id => &$file::CHECK,)*
                }
            }
        }
    };
}

// All checks, the most important first.
checks! {
    CgroupFaultLimit => cgroup_fault_limit,
    HugePages => huge_pages,
    Restart => restart,
    PendingSettings => pending_settings,
    PoolSize => pool_size,
    Reboot => reboot,
    HugePageSize => huge_page_size,
    PoolFilled => pool_filled,
    PoolGrowth => pool_growth,
    MemoryLeft => memory_left,
    OtherServers => other_servers,
    NumaSegment => numa_segment,
    PageTables => page_tables,
    Swap => swap,
    MajorFaults => major_faults,
    ThpPrivate => thp_private,
    ThpShared => thp_shared,
    Overcommit => overcommit,
    OomProtection => oom_protection,
    HugetlbShmGroup => hugetlb_shm_group,
}

impl CheckId {
    /// All checks, the most important first.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter()
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        self.check().name
    }

    /// Whether the setting `pg_hugeinfo.muted_checks` names it.
    pub(crate) fn is_muted(self, machine: &Machine) -> bool {
        machine.is_muted(self.name())
    }

    /// Judges a machine. What cannot be judged is unknown, with the reason.
    pub(crate) fn judge(self, machine: &Machine) -> Finding {
        if machine.server_state != ServerState::Running && self.needs_running_server() {
            return Finding::ok("not_running", "The server does not run.");
        }
        (self.check().judge)(machine).unwrap_or_else(|why| {
            let why = why.0.trim_end_matches('.');
            Finding::unknown(format!("Cannot judge {self}: {why}."))
        })
    }

    /// Whether it is about the memory or the processes of the running server.
    pub(crate) fn needs_running_server(self) -> bool {
        self.check().needs_running_server
    }

    /// Source of the remedy.
    pub(crate) fn cure(self) -> Cure {
        self.check().cure
    }

    /// Whether its warnings count for the whole server.
    pub(crate) fn is_about_server(self, machine: &Machine) -> bool {
        (self.check().counts_for_server)(machine)
    }

    /// The sources, the codes and the instructions, in Markdown.
    pub(crate) fn docs(self) -> &'static str {
        self.check().docs
    }
}

impl Display for CheckId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
