//! `hugeinfo_numa_nodes`: a row for each NUMA node: its memory, its processors, and whether this
//! server is allowed to use it.

use hugeinfo::linux::{
    error::absent_or,
    numa::{node, nodes},
    root::Root,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    numbers::{bigint, bigint_or_null},
    postgres::interrupts::check_for_interrupts,
    views::answer,
};

/// Returns the nodes by number. No row: the kernel has no NUMA support, or `/sys` cannot be read.
/// Reads two small files for each node, and walks no page tables.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_numa_nodes() -> Result<
    TableIterator<
        'static,
        (
            name!(numa_node, i64),
            name!(is_allowed, Option<bool>),
            name!(processors, Option<i64>),
            name!(memory_total_bytes, Option<i64>),
            name!(memory_free_bytes, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let root = Root::system();
        let numbers = absent_or(nodes::read(&root))?.unwrap_or_default();
        let allowed = machine::facts()?.allowed_nodes;
        let row = |number| {
            check_for_interrupts();
            let processors = absent_or(node::read_processors(&root, number))?.ok();
            let memory = absent_or(node::read_memory(&root, number))?.unwrap_or_default();
            let has_memory = memory.total != Some(0);
            Ok::<_, Error>((
                i64::from(number),
                allowed
                    .allows(number)
                    .map(|is_allowed| is_allowed && has_memory),
                processors.map(|list| bigint(list.count())).transpose()?,
                bigint_or_null(memory.total),
                bigint_or_null(memory.free),
            ))
        };
        numbers.into_iter().map(row).collect::<Result<Vec<_>, _>>()
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_numa_nodes.sql", requires = [hugeinfo_numa_nodes]);
