//! `hugeinfo_footprint`: the memory of this server in one row.

use std::collections::HashSet;

use host::{
    linux::{
        error::{absent_or, fact},
        process::{
            Process, smaps,
            status::{self, Memory},
        },
        root::Root,
        sysvipc,
    },
    server::{
        dynamic_shared_memory,
        footprint::{Footprint, Shared},
        state::State,
    },
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    facts,
    numbers::{bigint, bigint_or_null},
    postgres::{
        interrupts::check_for_interrupts,
        places::data_directory,
        server::{dynamic_control, system_v_key},
        settings::setting,
    },
    processes,
};

functions! {
    cost = 1000000;
    /// Memory of this server in one row: private memory, shared memory, page tables and swap.
    view hugeinfo_footprint;
    columns (
        /// Whether the main shared memory segment is on huge pages.
        name!(in_use, Option<bool>),
        /// Number of processes of this server, including the postmaster and the logger.
        name!(processes, i64),
        /// Bytes of private memory in RAM (RssAnon); an upper bound, because unmodified memory
        /// inherited from the postmaster counts once for each process.
        name!(private_bytes, Option<i64>),
        /// Bytes of the main shared memory segment.
        name!(segment_bytes, Option<i64>),
        /// Bytes of the main segment that occupy memory now: all of it on huge pages, otherwise the
        /// part that one process has faulted in.
        name!(segment_backed_bytes, Option<i64>),
        /// Bytes of other shared memory, such as dynamic shared memory.
        name!(other_shared_bytes, Option<i64>),
        /// Bytes of page tables (VmPTE); page tables that processes share count once for each
        /// process.
        name!(page_table_bytes, Option<i64>),
        /// Bytes of private memory swapped out (VmSwap); an upper bound for the same reason as
        /// private_bytes.
        name!(swap_bytes, Option<i64>),
        /// Sum of private_bytes, segment_backed_bytes, other_shared_bytes, page_table_bytes and
        /// swap_bytes.
        name!(total_bytes, Option<i64>),
        /// total_bytes once the whole main segment is in use, which is the value to compare before
        /// and after a switch to huge pages.
        name!(full_total_bytes, Option<i64>),
    );
    /// Memory of this server in one row, with exact private_bytes (Pss_Anon) if exact is true, for
    /// which the kernel walks the page tables of each process.
    fn hugeinfo_footprint(exact: default!(bool, "false")) {
        rows(exact)
    }
}

/// Reads `stat` and `status` of each process and some small files. With `exact`, walks the page
/// tables of each process.
///
/// Errors: as for `hugeinfo_status`.
fn rows(exact: bool) -> Result<[Row; 1], Error> {
    let facts = facts::few()?;
    let mut pids = HashSet::new();
    let mut private = Some(0_u64);
    let figures = processes::all(|member, buffer| {
        let process = &member.process;
        let Ok(memory) = absent_or(status::read_memory(process, buffer))? else {
            return Ok(None);
        };
        // A zombie has no memory.
        if exact && memory.virtual_size.is_some() {
            match private_memory(process)? {
                Some(bytes) => private = private.map(|sum| sum.saturating_add(bytes)),
                None if processes::has_ended(process)? => return Ok(None),
                None => private = None,
            }
        }
        pids.try_reserve(1)?;
        pids.insert(u64::from(process.pid()));
        Ok::<_, Error>(Some(memory))
    })?;
    let mut seen = of(&facts.state, &figures, &pids)?;
    if exact {
        seen.private = private;
    }
    Ok([(
        facts.state.backing().is_huge(),
        bigint(seen.processes)?,
        bigint_or_null(seen.private),
        bigint_or_null(seen.segment),
        bigint_or_null(seen.segment_backed),
        bigint_or_null(seen.other_shared),
        bigint_or_null(seen.page_tables),
        bigint_or_null(seen.swap),
        bigint_or_null(seen.total()),
        bigint_or_null(seen.total_when_full()),
    )])
}

/// `Pss_Anon`, which divides a page that processes inherited from the postmaster among them.
/// `None`: the kernel does not report it (before Linux 5.4), or access is denied.
///
/// Reads the process directly, so it waits while that process holds the lock of its memory. Only
/// `exact => true` asks for this walk over the page tables of all processes, and no time limit
/// suits all sizes.
fn private_memory(process: &Process) -> Result<Option<u64>, Error> {
    let total = fact(smaps::total(process, check_for_interrupts))?;
    Ok(total.ok().and_then(|total| total.pss_anon))
}

/// The footprint of these processes of the server and their PIDs.
pub(super) fn of(
    state: &State,
    figures: &[Memory],
    pids: &HashSet<u64>,
) -> Result<Footprint, Error> {
    Ok(Footprint::new(state, figures, &shared(pids)?))
}

fn shared(pids: &HashSet<u64>) -> Result<Shared, Error> {
    let root = Root::system();
    let segments = absent_or(sysvipc::read(&root))?.ok();
    let is_own = |segment: &&sysvipc::Segment| segment.key == system_v_key();
    let system_v = segments.iter().flatten().find(is_own);
    let in_files = |prefix: &str| {
        let read = |control| dynamic_shared_memory::read(&root, prefix, control);
        Ok::<_, Error>(match dynamic_control().map(read) {
            Some(read) => absent_or(read)?.unwrap_or_default(),
            None => Some(0),
        })
    };
    let dynamic = match setting(c"dynamic_shared_memory_type").as_str() {
        "posix" => in_files(dynamic_shared_memory::POSIX)?,
        "mmap" => {
            let prefix = data_directory().join(dynamic_shared_memory::MMAP);
            in_files(&prefix.to_string_lossy())?
        }
        // The control segment is not a file here, so count the segments that our processes created.
        "sysv" => segments.as_ref().and_then(|segments| {
            let others = segments.iter().filter(|segment| !is_own(segment));
            let of_ours = others.filter(|segment| pids.contains(&segment.creator));
            let bytes = of_ours.map(|segment| Some(segment.resident? + segment.swapped?));
            bytes.sum()
        }),
        _ => None,
    };
    Ok(Shared {
        dynamic,
        system_v: system_v.and_then(|segment| segment.resident.zip(segment.swapped)),
    })
}
