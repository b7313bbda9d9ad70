//! The limit on locked memory. Huge pages do not need it, but the rings of io_uring can.

use serde_json::json;

use crate::{
    advice::{
        check::{Finding, Judgment, env},
        decision::Decision,
        thresholds::{IO_URING_LOCKS_BEFORE, IO_URING_LOCKS_SINCE, IO_URING_RING_BYTES},
    },
    model::{
        machine::Machine,
        step::{ServiceChange, Step},
    },
    units::{Bytes, PageSize, Pages},
};

/// Auxiliary processes that have a ring, apart from `max_connections`, at most.
const OTHER_PROCESSES: u64 = 64;

/// Locked memory that the server's rings need. `None`: they need none.
///
/// Before Linux 5.12 each process is charged for its own ring; since 6.14 all rings are charged to
/// the user (io_uring/memmap.c `io_create_region`).
fn needed(machine: &Machine) -> Option<Bytes> {
    let env = machine.env.as_ref()?;
    if !env.uses_io_uring || env.has_ipc_lock == Some(true) {
        return None;
    }
    let version = env.host.kernel_version()?;
    let rings = env.max_connections.saturating_add(OTHER_PROCESSES);
    let all = Pages(rings) * PageSize(IO_URING_RING_BYTES);
    (version < IO_URING_LOCKS_BEFORE || version >= IO_URING_LOCKS_SINCE).then_some(all)
}

pub(super) fn judge(machine: &Machine) -> Judgment {
    let env = env(machine)?;
    let is_pending = |name: &str| env.pending_settings.iter().any(|waiting| waiting == name);
    if is_pending("io_method") || env.uses_io_uring && is_pending("max_connections") {
        return Err("a pending change of io_method or max_connections is not counted".into());
    }
    let limit = env.locked_memory.as_ref()?.map(Bytes);
    let shown = limit.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
    let needed = needed(machine);
    let finding = match (needed, limit) {
        (Some(needed), Some(limit)) if limit < needed => Finding::warning(
            "memlock_too_low",
            format!(
                "The rings of io_method = io_uring need {needed} of locked memory at max_connections = {}; the limit is {shown}, and other servers of the same user share it.",
                env.max_connections
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
    let needed = needed(machine).unwrap_or_default();
    let bytes = Bytes((needed + needed).0.next_multiple_of(1 << 20));
    Ok(vec![Step::ChangeService(ServiceChange::LockedMemory(
        bytes,
    ))])
}
