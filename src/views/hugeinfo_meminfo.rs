//! `hugeinfo_meminfo`: memory of the host by use, line by line.

use host::linux::{error::absent_or, meminfo, root::Root};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{error::Error, numbers::bigint_or_null, postgres::encoding::shown};

functions! {
    cost = 10000;
    /// Each line of /proc/meminfo, in the order of the kernel.
    view hugeinfo_meminfo;
    columns (
        /// Name of the line, as the kernel writes it.
        name!(name, String),
        /// The value in bytes, with counts of huge pages multiplied by the default size; NULL if it
        /// is not an amount of memory, or below zero.
        name!(bytes, Option<i64>),
        /// The value in huge pages of the default size, rounded up; NULL if bytes is NULL, or if
        /// the kernel has no huge pages.
        name!(huge_pages, Option<i64>),
    );
    fn hugeinfo_meminfo() {
        rows()
    }
}

/// Returns the lines of `/proc/meminfo`, in kernel order. No rows if the file is missing or access
/// is denied.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<Vec<Row>, Error> {
    let lines = absent_or(meminfo::read_lines(&Root::system()))?.unwrap_or_default();
    let rows = lines.into_iter().map(|line| {
        Ok::<_, Error>((
            shown(line.name),
            bigint_or_null(line.bytes),
            bigint_or_null(line.huge_pages),
        ))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}
