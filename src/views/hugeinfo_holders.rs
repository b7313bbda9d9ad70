//! `hugeinfo_holders`: a row for each holder of huge pages of this host.

use std::{collections::HashSet, ffi::OsString, os::unix::ffi::OsStringExt};

use host::{
    linux::{error::absent_or, passwd, root::Root},
    server::holders::{self, HolderKind},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    facts,
    numbers::{bigint_or_null, pid_or_error},
    others,
    postgres::{encoding::shown, interrupts::check_for_interrupts},
    processes,
};

functions! {
    cost = 1000000;
    /// Holders of huge pages of this host: processes, hugetlbfs mounts, and pages that these do not
    /// explain.
    view hugeinfo_holders;
    columns (
        /// process, mount, or unexplained, which includes everything that is not visible from here.
        name!(kind, &'static str),
        /// Process ID; NULL if the holder is not a process.
        name!(pid, Option<i32>),
        /// Name of the program, or directory of the mount.
        name!(name, Option<String>),
        /// Name of the user of the process in /etc/passwd; NULL if the user ID has no name there.
        name!(owner, Option<String>),
        /// ID of the user of the process.
        name!(owner_uid, Option<i64>),
        /// Whether the holder is a process of this server; NULL if /proc belongs to another PID
        /// namespace.
        name!(is_of_this_server, Option<bool>),
        /// Bytes of one of its huge pages; NULL for several sizes, or if unknown.
        name!(page_size_bytes, Option<i64>),
        /// Bytes of huge pages that a process has faulted in, that are reserved for a mount or used
        /// by its files, or that are unexplained.
        name!(held_bytes, Option<i64>),
        /// held_bytes in pages.
        name!(held_pages, Option<i64>),
        /// Bytes that are reserved for files of the mount (min_size).
        name!(min_size_bytes, Option<i64>),
        /// Limit on the bytes of files of the mount (size); NULL if there is none.
        name!(max_size_bytes, Option<i64>),
    );
    fn hugeinfo_holders() {
        rows()
    }
}

/// Returns processes by PID, then mounts, then the unexplained rest of each pool. Reads each
/// process of the host once. Walks the page tables of processes with huge pages that do not belong
/// to this server.
///
/// Errors: as for `hugeinfo_status`. Facts that cannot be read are NULL.
fn rows() -> Result<Vec<Row>, Error> {
    let root = Root::system();
    let sees_own = processes::postmaster(&root)?.is_some();
    let mut own = HashSet::new();
    processes::all(|member, _| {
        own.insert(member.process.pid());
        Ok(None::<()>)
    })?;
    let facts = facts::few()?;
    let pools = facts.state.pools.as_deref().unwrap_or_default();
    let mappings = others::huge_mappings(&root, pools, &own)?;
    let holders = holders::read(&root, &facts.state, &own, &mappings, check_for_interrupts)?;
    let users = absent_or(passwd::read(&root))?.ok();
    let rows = holders.into_iter().map(|holder| {
        let kind = holder.kind.as_str();
        let held_pages = holder
            .bytes
            .zip(holder.page_bytes)
            .and_then(|(bytes, page_bytes)| bytes.checked_div(page_bytes));
        let (pid, name, uid, is_own, min, max) = match holder.kind {
            HolderKind::Process {
                pid,
                name,
                uid,
                is_own,
            } => {
                let is_own = sees_own.then_some(is_own);
                (
                    Some(pid),
                    Some(shown(OsString::from_vec(name))),
                    uid,
                    is_own,
                    None,
                    None,
                )
            }
            HolderKind::Mount(mount) => {
                let (min, max) = (mount.min_size_bytes, mount.size_bytes);
                (None, Some(shown(mount.point)), None, Some(false), min, max)
            }
            HolderKind::Unexplained => (None, None, None, Some(false), None, None),
        };
        let owner = uid.and_then(|uid| users.as_ref()?.name(uid));
        Ok::<_, Error>((
            kind,
            pid.map(pid_or_error).transpose()?,
            name,
            owner.map(shown),
            uid.map(i64::from),
            is_own,
            bigint_or_null(holder.page_bytes),
            bigint_or_null(holder.bytes),
            bigint_or_null(held_pages),
            bigint_or_null(min),
            bigint_or_null(max),
        ))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}
