//! `hugeinfo_mappings(pid)` and `hugeinfo_postmaster_mappings`: each mapping of one process, its
//! use, its page size, and how much of it is in RAM.

use std::{ffi::OsStr, iter, os::unix::ffi::OsStrExt};

use host::{
    linux::{
        error::absent_or,
        process::smaps::{self, Entry},
    },
    server::mapping_kind::Landmarks,
};
use pgrx::{
    pg_sys::panic::{ErrorReport, ErrorReportable},
    prelude::*,
};

use super::functions::functions;
use crate::{
    error::Error,
    numbers::{bigint, bigint_or_null, pid_or_error},
    postgres::{
        self,
        encoding::shown,
        interrupts::check_for_interrupts,
        memory::with_room,
        roles::may_read_server_files,
        server::{shim_address, subject},
    },
    processes,
};

functions! {
    cost = 1000000;
    /// Each mapping of this backend, by address (/proc/PID/smaps).
    view hugeinfo_mappings;
    /// Each mapping of the postmaster, by address (/proc/PID/smaps).
    view hugeinfo_postmaster_mappings;
    columns (
        /// Process ID.
        name!(pid, i32),
        /// First address, in hexadecimal; NULL without the privileges of pg_read_server_files,
        /// because addresses help attackers.
        name!(start_address, Option<String>),
        /// First address after the mapping; NULL when start_address is NULL.
        name!(end_address, Option<String>),
        /// Bytes of address space.
        name!(size_bytes, i64),
        /// Permissions as in /proc/PID/maps: r, w and x, then p (private) or s (shared).
        name!(permissions, String),
        /// Name of the file, with special characters as a backslash and octal digits; NULL for
        /// anonymous memory, or without the privileges of pg_read_server_files.
        name!(path, Option<String>),
        /// Use of the mapping: main segment, sysv shim, dynamic shared memory, heap, stack,
        /// anonymous, executable, library, file, or kernel.
        name!(kind, &'static str),
        /// Bytes of a page that backs it (KernelPageSize), regardless of transparent huge pages.
        name!(page_size_bytes, Option<i64>),
        /// Bytes in RAM, without huge pages (Rss).
        name!(rss_bytes, Option<i64>),
        /// rss_bytes with each page divided by the number of processes that map it (Pss).
        name!(pss_bytes, Option<i64>),
        /// Bytes of private memory on transparent huge pages (AnonHugePages).
        name!(anon_thp_bytes, Option<i64>),
        /// Bytes of shared memory on transparent huge pages (ShmemPmdMapped).
        name!(shmem_thp_bytes, Option<i64>),
        /// Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in
        /// other columns.
        name!(shared_hugetlb_bytes, Option<i64>),
        /// Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other
        /// columns.
        name!(private_hugetlb_bytes, Option<i64>),
        /// Bytes swapped out (Swap).
        name!(swap_bytes, Option<i64>),
    );
    /// Each mapping of one process of this server, by address, with the columns of the view
    /// hugeinfo_mappings.
    fn hugeinfo_mappings(pid: default!(i32, "pg_catalog.pg_backend_pid()")) {
        rows(pid)
    }
    fn hugeinfo_postmaster_mappings() {
        rows(pid_or_error(postgres::processes::parent_pid())?)
    }
}

/// Returns a row for each mapping, by address. Walks the page tables of the process, which takes
/// time in proportion to the small pages that it has faulted in.
///
/// Addresses and paths are NULL for roles that cannot read files of the server.
///
/// A PID that does not belong to this server raises a warning and returns no row. NULL returns no
/// row, and neither does a process whose `/proc/PID/maps` cannot be read. Errors: as for
/// `hugeinfo_status`.
///
/// Row by row: a process can have hundreds of thousands of mappings. Reads the process directly, so
/// it waits while that process holds the lock of its memory. The caller has named the process, and
/// no time limit suits all sizes.
fn rows(pid: i32) -> Result<Box<dyn Iterator<Item = Row>>, Error> {
    let Some(process) = processes::one(pid)? else {
        return Ok(Box::new(iter::empty()));
    };
    let Ok(entries) = absent_or(smaps::read(&process, check_for_interrupts))? else {
        return Ok(Box::new(iter::empty()));
    };
    let (main, shim) = (subject().address, shim_address());
    let show = Shown {
        pid,
        landmarks: Landmarks::of(&process, main, shim)?,
        places: may_read_server_files(),
    };
    // A process that has ended meanwhile returns no more rows.
    let of_living = |entry| absent_or(entry).map(Result::ok).transpose();
    let mut rows = entries.map_while(of_living).map(move |entry| {
        let row = entry.map_err(Error::from).and_then(|entry| show.row(entry));
        row.map_err(ErrorReport::from).unwrap_or_report()
    });
    Ok(Box::new(iter::from_fn(move || with_room(|| rows.next()))))
}

/// The facts for the rows of one process.
struct Shown {
    pid: i32,
    landmarks: Landmarks,
    /// True if addresses and paths are shown. All processes of a server have the same addresses,
    /// which would help an attacker.
    places: bool,
}

impl Shown {
    fn row(&self, entry: Entry) -> Result<Row, Error> {
        let extent = entry.mapping.extent;
        let address = |address: u64| self.places.then(|| format!("{address:08x}"));
        let path = self
            .places
            .then(|| shown(OsStr::from_bytes(&entry.mapping.path)))
            .filter(|path| !path.is_empty());
        let kind = self.landmarks.kind(&entry).as_str();
        let figures = &entry.figures;
        Ok((
            self.pid,
            address(extent.start),
            address(extent.end),
            bigint(extent.bytes())?,
            entry.mapping.permissions,
            path,
            kind,
            bigint_or_null(figures.page_size),
            bigint_or_null(figures.rss),
            bigint_or_null(figures.pss),
            bigint_or_null(figures.anon_huge_pages),
            bigint_or_null(figures.shmem_pmd_mapped),
            bigint_or_null(figures.shared_hugetlb),
            bigint_or_null(figures.private_hugetlb),
            bigint_or_null(figures.swap),
        ))
    }
}
