//! Strict overcommit (`vm.overcommit_memory = 2`), and what the pools take from its limit.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        thresholds::COMMITTED_PERCENT,
        words::human,
    },
    model::{headroom::Headroom, machine::Machine},
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let host = &machine.around()?.host;
    let vm = &host.vm;
    let mode = vm
        .overcommit_memory
        .ok_or("vm.overcommit_memory cannot be read")?;
    let usage = host.usage.as_ref().ok();
    let limit = usage.and_then(|usage| usage.commit_limit);
    let committed = usage.and_then(|usage| usage.committed);
    let pools = Headroom::now(machine).map(|headroom| headroom.pools_bytes);
    // CommitLimit = (RAM - pools) * ratio / 100 + swap, unless overcommit_kbytes replaces the first
    // part (mm/util.c vm_commit_limit).
    let ratio = vm
        .overcommit_ratio
        .and_then(|ratio| u64::try_from(ratio).ok());
    let is_by_ratio = vm.overcommit_bytes.is_none_or(|bytes| bytes == 0);
    let taken = pools
        .zip(ratio.filter(|_| is_by_ratio))
        .map(|(pools, ratio)| (pools / 100).saturating_mul(ratio));
    let finding = if mode == 2 {
        let (limit, committed) = limit
            .zip(committed)
            .ok_or("/proc/meminfo shows no CommitLimit")?;
        let pool = taken.map_or_else(String::new, |bytes| {
            format!("; the pools take {} from the limit", human(bytes))
        });
        let finding = format!(
            "strict overcommit: {} of {} are committed{pool}",
            human(committed),
            human(limit)
        );
        if committed / COMMITTED_PERCENT > limit / 100 {
            Finding::warning(finding)
        } else {
            Finding::ok(finding)
        }
    } else {
        Finding::ok(format!(
            "no strict overcommit (vm.overcommit_memory = {mode}): the pools lower no commit limit"
        ))
    };
    Ok(finding.with(json!({
        "overcommit_memory": mode,
        "overcommit_ratio": vm.overcommit_ratio,
        "commit_limit_bytes": limit,
        "committed_as_bytes": committed,
        "pools_bytes": pools,
        "taken_by_pools_bytes": taken,
    })))
}
