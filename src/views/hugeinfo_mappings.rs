//! `hugeinfo_mappings(pid)` and its views: each mapping of one process, what it is for, on which pages, and what of it is resident.

use hugeinfo::{error::absent_or, kind::Landmarks, smaps};
use pgrx::{AnyNumeric, pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::{Error, bigint, bigint_or_null, pid_or_error},
    postgres, processes,
};

overloads! {
    "hugeinfo_mappings", (
        name!(pid, i32),
        name!(start_address, Option<String>),
        name!(end_address, Option<String>),
        name!(size_bytes, i64),
        name!(permissions, String),
        name!(file_offset_bytes, i64),
        name!(device, String),
        name!(inode, AnyNumeric),
        name!(path, Option<String>),
        name!(kind, &'static str),
        name!(page_size_bytes, Option<i64>),
        name!(rss_bytes, Option<i64>),
        name!(pss_bytes, Option<i64>),
        name!(pss_dirty_bytes, Option<i64>),
        name!(shared_clean_bytes, Option<i64>),
        name!(shared_dirty_bytes, Option<i64>),
        name!(private_clean_bytes, Option<i64>),
        name!(private_dirty_bytes, Option<i64>),
        name!(referenced_bytes, Option<i64>),
        name!(anonymous_bytes, Option<i64>),
        name!(ksm_bytes, Option<i64>),
        name!(lazy_free_bytes, Option<i64>),
        name!(anon_thp_bytes, Option<i64>),
        name!(shmem_thp_bytes, Option<i64>),
        name!(file_thp_bytes, Option<i64>),
        name!(shared_hugetlb_bytes, Option<i64>),
        name!(private_hugetlb_bytes, Option<i64>),
        name!(swap_bytes, Option<i64>),
        name!(swap_pss_bytes, Option<i64>),
        name!(locked_bytes, Option<i64>),
        name!(vm_flags, Option<Vec<String>>),
    );
    /// This backend.
    fn hugeinfo_mappings() {
        rows(pid_or_error(std::process::id())?)
    }
    fn hugeinfo_mappings_of(pid: i32) {
        rows(pid)
    }
}

/// A row for each mapping, by address. Walks the page tables of the process: the kernel's work grows with the memory that it has touched in
/// small pages.
///
/// Addresses and paths are NULL for those who may not read files of the server.
///
/// A warning and no row for a pid that isn't of this server, no row for NULL or where `/proc/PID/maps` may not be read. Errors: as
/// `hugeinfo_status`.
fn rows(pid: i32) -> Result<Vec<Row>, Error> {
    let Some(process) = processes::one(pid)? else {
        return Ok(Vec::new());
    };
    let entries =
        absent_or(smaps::read(&process, postgres::check_for_interrupts))?.unwrap_or_default();
    let executable = absent_or(process.executable())?.ok();
    let landmarks = Landmarks::new(
        &entries,
        postgres::subject().address,
        Some(postgres::shim_address()),
        executable,
    );
    let ascii_only = !postgres::is_utf8_database();
    // All processes of the server have the postmaster's addresses, also this one: they would help an attacker.
    let shows_places = postgres::may_read_server_files();
    let address = |address: u64| shows_places.then(|| format!("{address:08x}"));
    let rows = entries.into_iter().map(|entry| {
        let extent = entry.mapping.extent;
        let path = shows_places
            .then(|| entry.mapping.path_text(ascii_only))
            .filter(|path| !path.is_empty());
        let figures = &entry.figures;
        Ok((
            pid,
            address(extent.start),
            address(extent.end),
            bigint(extent.bytes())?,
            entry.mapping.permissions.clone(),
            bigint(entry.mapping.offset)?,
            format!("{:02x}:{:02x}", extent.device.major, extent.device.minor),
            AnyNumeric::from(extent.inode),
            path,
            landmarks.kind(&entry).as_str(),
            bigint_or_null(figures.page_size)?,
            bigint_or_null(figures.rss)?,
            bigint_or_null(figures.pss)?,
            bigint_or_null(figures.pss_dirty)?,
            bigint_or_null(figures.shared_clean)?,
            bigint_or_null(figures.shared_dirty)?,
            bigint_or_null(figures.private_clean)?,
            bigint_or_null(figures.private_dirty)?,
            bigint_or_null(figures.referenced)?,
            bigint_or_null(figures.anonymous)?,
            bigint_or_null(figures.ksm)?,
            bigint_or_null(figures.lazy_free)?,
            bigint_or_null(figures.anon_huge_pages)?,
            bigint_or_null(figures.shmem_pmd_mapped)?,
            bigint_or_null(figures.file_pmd_mapped)?,
            bigint_or_null(figures.shared_hugetlb)?,
            bigint_or_null(figures.private_hugetlb)?,
            bigint_or_null(figures.swap)?,
            bigint_or_null(figures.swap_pss)?,
            bigint_or_null(figures.locked)?,
            entry.vm_flags,
        ))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}

/// The postmaster's process number; in single-user mode this process.
#[pg_extern(stable, parallel_safe)]
fn hugeinfo_postmaster_pid() -> Result<i32, ErrorReport> {
    Ok(pid_or_error(postgres::parent_pid())?)
}

extension_sql_file!(
    "hugeinfo_mappings.sql",
    requires = [
        hugeinfo_mappings,
        hugeinfo_mappings_of,
        hugeinfo_postmaster_pid
    ]
);
