//! The limit on locked memory. Huge pages do not need it, but the rings of io_uring can.

use serde_json::json;

use crate::{
    advice::{
        check::{Finding, Judgment, Unknown, env},
        decision::Decision,
        thresholds::{IO_URING_LOCKS_BEFORE, IO_URING_LOCKS_SINCE},
    },
    model::{
        machine::Machine,
        step::{ServiceChange, Step},
    },
    server::environment::IoUringRings,
    units::{Bytes, PageSize, Pages},
};

/// Settings that determine the number and the size of the rings.
const SETTINGS: [&str; 5] = [
    "io_max_concurrency",
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "autovacuum_worker_slots",
];

/// Locked memory of these rings. Each has an array of submission queue entries of 64 bytes, and
/// one with a header, their indexes of 4 bytes, and twice as many completion queue entries of
/// 16 bytes (io_uring/io_uring.c `rings_size`). Measured with 64 entries: 8 kB.
fn bytes_of(rings: IoUringRings, base: PageSize) -> Bytes {
    const HEADER: u64 = 320;
    let entries = rings
        .entries
        .checked_next_power_of_two()
        .unwrap_or(u64::MAX);
    let array = |bytes_each, header| {
        Bytes(entries.saturating_mul(bytes_each).saturating_add(header)).in_pages(base)
    };
    let pages = array(64, 0) + array(4 + 2 * 16, HEADER);
    Pages(pages.0.saturating_mul(rings.count)) * base
}

/// Locked memory that the server's rings need. `None`: they need none. Errors: unknown.
///
/// Before Linux 5.12 each process is charged for its own ring; since 6.14 all rings are charged to
/// the user (io_uring/memmap.c `io_create_region`).
fn needed(machine: &Machine) -> Result<Option<Bytes>, Unknown> {
    let env = env(machine)?;
    let version = env.host.kernel_version();
    let locks = version
        .is_some_and(|version| version < IO_URING_LOCKS_BEFORE || version >= IO_URING_LOCKS_SINCE);
    if !env.uses_io_uring || env.has_ipc_lock == Some(true) || !locks {
        return Ok(None);
    }
    let rings = env.io_uring_rings.ok_or_else(|| {
        Unknown(format!(
            "the rings of io_method = io_uring need locked memory, and their number and size are unknown here (see {})",
            SETTINGS.join(", ")
        ))
    })?;
    Ok(Some(bytes_of(rings, machine.base_size())))
}

pub(super) fn judge(machine: &Machine) -> Judgment {
    let env = env(machine)?;
    let mut pending = env.pending_settings.iter();
    let counts = |name: &str| name == "io_method" || env.uses_io_uring && SETTINGS.contains(&name);
    if let Some(name) = pending.find(|name| counts(name)) {
        return Err(Unknown(format!(
            "a pending change of {name} is not counted"
        )));
    }
    let limit = env.locked_memory.as_ref()?.map(Bytes);
    let shown = limit.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
    let needed = match limit {
        Some(_) => needed(machine)?,
        None => needed(machine).unwrap_or_default(),
    };
    let finding = match (needed, limit, env.io_uring_rings) {
        (Some(needed), Some(limit), Some(rings)) if limit < needed => Finding::warning(
            "memlock_too_low",
            format!(
                "The rings of io_method = io_uring ({} with {} entries each) need {needed} of locked memory; the limit is {shown}, and other servers of the same user share it.",
                rings.count, rings.entries
            ),
        ),
        _ => Finding::ok(
            "memlock_not_needed",
            format!("Huge pages do not need locked memory (memlock: {shown})."),
        ),
    };
    Ok(finding.with(json!({
        "memlock_bytes": limit.map(|limit| limit.0),
        "needed_bytes": needed.map(|needed| needed.0),
        "kernel_release": env.host.kernel_release,
        "io_uring": env.uses_io_uring,
    })))
}

/// Raises the limit of the service. Takes effect at the next restart.
pub(super) fn steps(machine: &Machine) -> Result<Vec<Step>, Decision> {
    // Room for a second server of the same user.
    let needed = needed(machine).ok().flatten().unwrap_or_default();
    let bytes = Bytes((needed + needed).0.next_multiple_of(1 << 20));
    Ok(vec![Step::ChangeService(ServiceChange::LockedMemory(
        bytes,
    ))])
}
