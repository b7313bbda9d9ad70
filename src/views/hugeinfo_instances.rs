//! `hugeinfo_instances`: a row for each PostgreSQL server on this host, also of other users.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use hugeinfo::{
    linux::{
        error::{ReadError, fact},
        meminfo,
        pages::{base_page_bytes, pages_required},
        root::Root,
    },
    server::facts::HugePages,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    numbers::{bigint_or_null, pid_or_error},
    others::{self, Scope},
    postgres::{encoding::shown, roles::may_read_server_files},
    processes,
    views::answer,
};

/// Returns the servers by PID. Searches for `postmaster.pid` in the working directory of each
/// process of the host, except this server's children, and reads more files of servers. Walks page
/// tables of postmasters only, and only if the kernel has no `PROCMAP_QUERY`.
///
/// Errors: as for `hugeinfo_status`, or if other processes cannot be examined in time. Facts that
/// cannot be read are NULL.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_instances() -> Result<
    TableIterator<
        'static,
        (
            name!(pid, i32),
            name!(is_this_server, Option<bool>),
            name!(owner, Option<String>),
            name!(owner_uid, Option<i64>),
            name!(data_directory, Option<String>),
            name!(port, Option<i32>),
            name!(segment_bytes, Option<i64>),
            name!(page_size_bytes, Option<i64>),
            name!(in_use, Option<bool>),
            name!(required_pages, Option<i64>),
            name!(huge_pages, Option<&'static str>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let root = Root::system();
        let own = processes::postmaster(&root)?;
        let base_page = base_page_bytes();
        let huge_page = fact(meminfo::read(&root))?
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
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_instances.sql", requires = [hugeinfo_instances]);
