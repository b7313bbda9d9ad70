//! Strict overcommit (`vm.overcommit_memory = 2`), and what the pools take from its limit.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::COMMITTED_PERCENT,
};
use crate::{
    advice::words::human,
    model::headroom::Headroom,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "overcommit";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let vm = &around.host.vm;
    let Some(mode) = vm.overcommit_memory else {
        return Check::new(NAME, Status::Unknown, "vm.overcommit_memory cannot be read");
    };
    let usage = around.host.usage.as_ref().ok();
    let limit = usage.and_then(|usage| usage.commit_limit);
    let committed = usage.and_then(|usage| usage.committed);
    let pools = Headroom::now(facts).map(|headroom| headroom.pools_bytes);
    // CommitLimit = (RAM - pools) * ratio / 100 + swap, unless overcommit_kbytes replaces the first
    // part (mm/util.c vm_commit_limit).
    let ratio = vm
        .overcommit_ratio
        .and_then(|ratio| u64::try_from(ratio).ok());
    let is_by_ratio = vm.overcommit_bytes.is_none_or(|bytes| bytes == 0);
    let taken = pools
        .zip(ratio.filter(|_| is_by_ratio))
        .map(|(pools, ratio)| (pools / 100).saturating_mul(ratio));
    let check = match (mode, limit, committed) {
        (2, Some(limit), Some(committed)) => {
            let pool = taken.map_or_else(String::new, |bytes| {
                format!("; the pools take {} from the limit", human(bytes))
            });
            let finding = format!(
                "strict overcommit: {} of {} are promised{pool}",
                human(committed),
                human(limit)
            );
            if committed / COMMITTED_PERCENT > limit / 100 {
                let remedy = if is_by_ratio {
                    "raise vm.overcommit_ratio (the pools are no longer part of what it is a share of), or add swap"
                } else {
                    "raise vm.overcommit_kbytes, or add swap"
                };
                Check::new(NAME, Status::Warning, finding).with_remedy(remedy.to_owned())
            } else {
                Check::new(NAME, Status::Ok, finding)
            }
        }
        (2, _, _) => Check::new(
            NAME,
            Status::Unknown,
            "strict overcommit, and /proc/meminfo shows no CommitLimit",
        ),
        _ => Check::new(
            NAME,
            Status::Ok,
            format!(
                "no strict overcommit (vm.overcommit_memory = {mode}): the pools take nothing from a limit"
            ),
        ),
    };
    check.with_evidence(json!({
        "overcommit_memory": mode,
        "overcommit_ratio": vm.overcommit_ratio,
        "commit_limit_bytes": limit,
        "committed_as_bytes": committed,
        "pools_bytes": pools,
        "taken_by_pools_bytes": taken,
    }))
}
