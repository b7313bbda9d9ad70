//! `hugeinfo_footprint`: what this server costs the host, in one row.

use std::collections::HashSet;

use hugeinfo::{
    linux::{
        error::absent_or,
        process::status::{self, Memory},
        root::Root,
        sysvipc,
    },
    server::{
        dynamic_shared_memory,
        facts::Facts,
        footprint::{Footprint, Shared},
    },
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    numbers::{bigint, bigint_or_null},
    postgres::{
        places::data_directory,
        server::{dynamic_control, system_v_key},
        settings::setting,
    },
    processes,
    views::answer,
};

/// One pass over the processes, `stat` and `status` of each, and some small files. No walk of page
/// tables.
///
/// Errors: as `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_footprint() -> Result<
    TableIterator<
        'static,
        (
            name!(in_use, Option<bool>),
            name!(processes, i64),
            name!(private_bytes, Option<i64>),
            name!(segment_bytes, Option<i64>),
            name!(segment_backed_bytes, Option<i64>),
            name!(other_shared_bytes, Option<i64>),
            name!(page_table_bytes, Option<i64>),
            name!(swap_bytes, Option<i64>),
            name!(total_bytes, Option<i64>),
            name!(full_total_bytes, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let row = || {
        let facts = machine::facts()?;
        let mut pids = HashSet::new();
        let figures = processes::all(|member, buffer| {
            pids.try_reserve(1)?;
            pids.insert(u64::from(member.process.pid()));
            Ok::<_, Error>(absent_or(status::read_memory(&member.process, buffer))?.ok())
        })?;
        let seen = of(&facts, &figures, &pids)?;
        Ok::<_, Error>((
            facts.lies_on().is_huge(),
            bigint(seen.processes)?,
            bigint_or_null(seen.private),
            bigint_or_null(seen.segment),
            bigint_or_null(seen.segment_backed),
            bigint_or_null(seen.other_shared),
            bigint_or_null(seen.page_tables),
            bigint_or_null(seen.swap),
            bigint_or_null(seen.total()),
            bigint_or_null(seen.total_when_full()),
        ))
    };
    Ok(TableIterator::once(answer(row)?))
}

/// Of the server's processes, and their numbers.
pub(super) fn of(
    facts: &Facts,
    figures: &[Memory],
    pids: &HashSet<u64>,
) -> Result<Footprint, Error> {
    Ok(Footprint::new(facts, figures, &shared(pids)?))
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
        // The list is not a file here: take the segments that our processes made.
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

extension_sql_file!("hugeinfo_footprint.sql", requires = [hugeinfo_footprint]);
