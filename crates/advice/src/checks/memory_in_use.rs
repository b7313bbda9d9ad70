//! The part of `memory_left` about memory that is in use: cgroups near their limits, and the memory
//! of ZFS.

use super::oom_protection;
use crate::{
    decision::{self, Decision},
    model::{machine::Machine, memory},
    thresholds::{NEAR_CGROUP_LIMIT_PERCENT, ZFS_OF_RAM_PERCENT},
};
use host::{escape, linux::cgroup::memory::MemoryLimit, server::state::Backing, units::Bytes};

/// A cgroup of the server and its use without the file cache.
struct Use<'m> {
    limit: &'m MemoryLimit,
    kept: Bytes,
    /// Whether the limit is `memory.high`.
    is_high: bool,
}

impl Use<'_> {
    /// The bytes by which the use exceeds [`NEAR_CGROUP_LIMIT_PERCENT`] of the limit.
    fn excess(&self) -> Bytes {
        self.kept - Bytes(self.limit.limit_bytes).percent(NEAR_CGROUP_LIMIT_PERCENT)
    }

    fn text(&self) -> String {
        let what = match self.is_high {
            true => "memory.high",
            false => "memory limit",
        };
        format!(
            "Cgroup {} uses {} of its {what} of {}, without the file cache.",
            escape::name(&self.limit.directory),
            self.kept,
            Bytes(self.limit.limit_bytes)
        )
    }
}

/// The limit with the least room, if that is less than the host has. A limit that is almost reached
/// comes first.
fn tightest(machine: &Machine) -> Option<Use<'_>> {
    let facts = machine.whole()?;
    let used = |is_high| {
        move |limit| Use {
            limit,
            kept: Bytes(limit.kept_bytes()),
            is_high,
        }
    };
    let limits = machine.state.memory_limits.iter().flatten();
    let all = limits.map(used(false));
    let all = all.chain(facts.memory_high.iter().map(used(true)));
    let is_known =
        |used: &Use<'_>| used.limit.use_bytes < u64::MAX && used.limit.file_bytes.is_some();
    let room = |used: &Use<'_>| Bytes(used.limit.limit_bytes) - used.kept;
    let available = machine.usage().and_then(|usage| usage.available);
    let is_tight = |used: &Use<'_>| room(used).0 < available.unwrap_or(u64::MAX);
    // A large cgroup can be near its limit with more room than a small one.
    all.filter(is_known)
        .filter(is_tight)
        .min_by_key(|used| (used.excess() == Bytes(0), room(used)))
}

/// The use of the cgroup with the tightest limit, and whether it is near the limit.
pub(super) fn of_cgroup(machine: &Machine) -> Option<(bool, String)> {
    let used = tightest(machine)?;
    if used.excess() == Bytes(0) {
        return Some((false, used.text()));
    }
    let happens = match used.is_high {
        true => " The kernel throttles its processes and reclaims their memory.",
        false => "",
    };
    let kills = oom_protection::kills_in_cgroup(machine);
    Some((true, format!("{}{happens}{kills}", used.text())))
}

/// The memory of ZFS, if it is much, as a sentence with a leading space.
pub(super) fn of_zfs(machine: &Machine) -> Option<String> {
    let zfs = machine.whole()?.zfs_cache?;
    let ram = memory::host_ram(machine)?;
    (Bytes(zfs.bytes) > ram.percent(ZFS_OF_RAM_PERCENT)).then(|| {
        format!(
            " The ZFS cache (ARC) uses {} of RAM and can grow to {}. MemAvailable does not include it, and it might not shrink in time.",
            Bytes(zfs.bytes),
            Bytes(zfs.max_bytes)
        )
    })
}

/// The decision about a cgroup near its limit.
pub(super) fn decision(machine: &Machine) -> Option<Decision> {
    let used = tightest(machine).filter(|used| used.excess() > Bytes(0))?;
    let by = Bytes(used.excess().0 / NEAR_CGROUP_LIMIT_PERCENT * 100 + 100);
    let what = match used.is_high {
        true => "memory.high",
        false => "the memory limit",
    };
    let raise = format!(
        "raise {what} of cgroup {} by {} MB",
        escape::name(&used.limit.directory),
        by.megabytes_at_least()
    );
    let counts = |at: &Machine| used.limit.counts_hugetlb || at.backing() == Backing::SmallPages;
    // The restart also has to be enough once the new segment is in use.
    let is_enough = |after: &Machine| {
        let segment = after.segment().filter(|_| counts(after));
        let then = segment.map_or(Bytes(0), |segment| Bytes(segment.bytes));
        counts(machine) && machine.faulted_in.least - then >= used.excess()
    };
    Some(Decision::Text(
        match decision::pending_change(machine, is_enough) {
            Some(restart) => format!("{restart}, or {raise}"),
            None => format!(
                "{raise}, or let the server use less memory (shared_buffers, work_mem, max_connections)"
            ),
        },
    ))
}
