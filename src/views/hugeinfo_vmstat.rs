//! `hugeinfo_vmstat`: counters of the kernel's memory management, line by line.

use host::linux::{error::absent_or, root::Root, vmstat};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{error::Error, numbers::bigint_or_null, postgres::encoding::shown};

functions! {
    cost = 10000;
    /// Each line of /proc/vmstat, in the order of the kernel.
    view hugeinfo_vmstat;
    columns (
        /// Name of the counter; names that begin with nr_ are current amounts, and most others
        /// count events since boot.
        name!(name, String),
        /// Value of the counter; NULL if it is below zero.
        name!(value, Option<i64>),
        /// Topic of the counter: thp, huge_pages, compaction, swap, numa, reclaim, faults, or
        /// other.
        name!(topic, &'static str),
    );
    fn hugeinfo_vmstat() {
        rows()
    }
}

/// Returns the lines of `/proc/vmstat`, in kernel order. No rows if the file is missing or access
/// is denied.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<Vec<Row>, Error> {
    let vmstat = absent_or(vmstat::read(&Root::system()))?.unwrap_or_default();
    let rows = vmstat.counters().iter().map(|(name, value)| {
        Ok::<_, Error>((shown(name), bigint_or_null(*value), vmstat::topic(name)))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}
