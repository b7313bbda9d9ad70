//! `hugeinfo_instances`: a row for each PostgreSQL server on this host, also of other users.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use host::{
    linux::{
        error::ReadError,
        meminfo,
        pages::{base_page_bytes, pages_required},
        root::Root,
    },
    server::state::HugePages,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    numbers::{bigint_or_null, pid_or_error},
    others::{self, Scope},
    postgres::{encoding::shown, roles::may_read_server_files},
    processes,
};

functions! {
    cost = 1000000;
    /// Each PostgreSQL server of this host that is visible in /proc, including those of other
    /// users; NULL if a value cannot be read.
    view hugeinfo_instances;
    columns (
        /// Process ID of its postmaster.
        name!(pid, i32),
        /// Whether the row is about this server; NULL if /proc belongs to another PID namespace.
        name!(is_this_server, Option<bool>),
        /// Name of its user in /etc/passwd; NULL if the user ID has no name there.
        name!(owner, Option<String>),
        /// ID of its user.
        name!(owner_uid, Option<i64>),
        /// Its data directory (/proc/PID/cwd) or, if that cannot be read, the absolute path after
        /// -D in its arguments.
        name!(data_directory, Option<String>),
        /// Its port (line 4 of postmaster.pid).
        name!(port, Option<i32>),
        /// Bytes of its main shared memory segment, the largest shared memory object that its
        /// postmaster maps.
        name!(segment_bytes, Option<i64>),
        /// Bytes of a page that backs this segment, huge or not.
        name!(page_size_bytes, Option<i64>),
        /// Whether this segment is on huge pages.
        name!(in_use, Option<bool>),
        /// Huge pages of the default size that this segment needs, rounded up.
        name!(required_pages, Option<i64>),
        /// Setting huge_pages of its next start (off, on or try), from its command line or
        /// configuration files; NULL if one of them cannot be read or understood.
        name!(huge_pages, Option<&'static str>),
    );
    fn hugeinfo_instances() {
        rows()
    }
}

/// Returns the servers by PID. Searches for `postmaster.pid` in the working directory of each
/// process of the host, except this server's children, and reads more files of servers. Walks page
/// tables of postmasters only, and only if the kernel has no `PROCMAP_QUERY`.
///
/// Errors: as for `hugeinfo_status`, or if other processes cannot be examined in time. Facts that
/// cannot be read are NULL.
fn rows() -> Result<Vec<Row>, Error> {
    let root = Root::system();
    let own = processes::postmaster(&root)?;
    let base_page = base_page_bytes();
    let huge_page = meminfo::read(&root)?
        .0
        .ok()
        .and_then(|meminfo| meminfo.default_huge_page_bytes);
    let shows_directories = may_read_server_files();
    let instances = others::servers(&root, own, Scope::Host)?.map_err(ReadError::Absent)?;
    let rows = instances.into_iter().map(|instance| {
        let is_own = own == Some(instance.pid);
        let segment = instance.segment.as_ref();
        let bytes = segment.map(|segment| segment.bytes);
        let page_bytes = segment.and_then(|segment| segment.page_bytes);
        let required = bytes.and_then(|bytes| Some(pages_required(bytes, huge_page?)));
        Ok::<_, Error>((
            pid_or_error(instance.pid)?,
            own.map(|_| is_own),
            instance.owner.map(shown),
            instance.owner_uid.map(i64::from),
            instance
                .data_directory
                .filter(|_| shows_directories || is_own)
                .or(instance.directory_argument)
                .map(|path| shown(OsString::from_vec(path))),
            instance.port.map(i32::from),
            bigint_or_null(bytes),
            bigint_or_null(page_bytes),
            page_bytes.map(|page_bytes| page_bytes > base_page),
            bigint_or_null(required),
            instance.huge_pages.value().map(HugePages::as_str),
        ))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}
