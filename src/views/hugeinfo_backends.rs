//! `hugeinfo_backends`: page tables, memory and faults of each process of this server.

use host::linux::{
    error::absent_or,
    process::{oom_score, status},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{answer, functions::functions};
use crate::{
    error::Error,
    numbers::{bigint, bigint_or_null, pid_or_error},
    postgres::{
        call::{Call, kept},
        interrupts::check_for_interrupts,
    },
    processes::{self, Member, Server},
};

functions! {
    cost = 1000000;
    /// Each process of this server, including the postmaster and the logger: page tables, memory by
    /// kind, faults and OOM score.
    view hugeinfo_backends;
    columns (
        /// Process ID.
        name!(pid, i32),
        /// Type of the process, as in pg_stat_activity, or postmaster or logger; NULL if the
        /// process started after this transaction first read pg_stat_activity.
        name!(backend_type, Option<String>),
        /// Bytes of page tables (VmPTE); page tables that processes share count once for each
        /// process.
        name!(page_table_bytes, Option<i64>),
        /// Bytes of address space, used or not (VmSize).
        name!(virtual_bytes, Option<i64>),
        /// Largest virtual_bytes so far (VmPeak), which is not the number of huge pages that the
        /// server needs.
        name!(virtual_peak_bytes, Option<i64>),
        /// Bytes in RAM, with shared memory and without huge pages (VmRSS); shared memory counts
        /// once for each process.
        name!(rss_bytes, Option<i64>),
        /// Bytes of private memory in RAM (RssAnon).
        name!(rss_anon_bytes, Option<i64>),
        /// Bytes of mapped files in RAM (RssFile).
        name!(rss_file_bytes, Option<i64>),
        /// Bytes of shared memory in RAM that this process has faulted in, without huge pages
        /// (RssShmem).
        name!(rss_shmem_bytes, Option<i64>),
        /// Bytes of huge pages that the process has faulted in (HugetlbPages), without those behind
        /// shared page tables.
        name!(hugetlb_bytes, Option<i64>),
        /// Bytes of private memory swapped out (VmSwap).
        name!(swap_bytes, Option<i64>),
        /// Page faults since the process started that did not read from disk.
        name!(minor_faults, Option<i64>),
        /// Page faults since the process started that read from disk.
        name!(major_faults, Option<i64>),
        name!(start_ticks, i64),
    );
    fn hugeinfo_backends() {
        rows()
    }
}

/// Returns a row for each process: the postmaster, the logger and all others. Reads two small
/// files, `stat` and `status`, of each. Walks no page tables.
///
/// Errors: as for `hugeinfo_status`. A process that ends meanwhile is left out.
fn rows() -> Result<Vec<Row>, Error> {
    let row = |member: Member, buffer: &mut Vec<u8>| {
        let process = &member.process;
        let Ok(memory) = absent_or(status::read_memory(process, buffer))? else {
            return Ok(None);
        };
        let backend_type = member.type_beyond_activity(buffer);
        Ok::<_, Error>(Some((
            pid_or_error(process.pid())?,
            backend_type,
            bigint_or_null(memory.page_tables),
            bigint_or_null(memory.virtual_size),
            bigint_or_null(memory.virtual_peak),
            bigint_or_null(memory.rss),
            bigint_or_null(memory.rss_anon),
            bigint_or_null(memory.rss_file),
            bigint_or_null(memory.rss_shmem),
            bigint_or_null(memory.hugetlb),
            bigint_or_null(memory.swap),
            bigint_or_null(member.stat.minor_faults),
            bigint_or_null(member.stat.major_faults),
            bigint(member.stat.start_ticks)?,
        )))
    };
    processes::all(row)
}

/// Returns `oom_score` and `oom_score_adj` of the process with this PID and start, or NULL if this
/// server has no such process. One function returns both, because it has to verify the process.
/// Stable, so that the planner leaves it out if neither is selected.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(stable, parallel_restricted, cost = 10000)]
fn hugeinfo_oom_scores(
    pid: i32,
    start_ticks: i64,
    call: Call,
) -> Result<Option<Vec<Option<i32>>>, ErrorReport> {
    let scores = || {
        let Some(server) = kept(call, Server::new)? else {
            return Ok(None);
        };
        let (Ok(pid), Ok(start_ticks)) = (u32::try_from(pid), u64::try_from(start_ticks)) else {
            return Ok(None);
        };
        check_for_interrupts();
        let buffer = &mut Vec::new();
        let Some(process) = server.born(pid, start_ticks, buffer)? else {
            return Ok(None);
        };
        let score = absent_or(oom_score::score(&process, buffer))?.ok();
        let score_adj = absent_or(oom_score::score_adj(&process, buffer))?.ok();
        Ok::<_, Error>(Some(vec![score, score_adj]))
    };
    answer(scores)
}
