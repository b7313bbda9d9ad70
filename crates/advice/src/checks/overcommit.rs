//! Strict overcommit (`vm.overcommit_memory = 2`): the pools lower the commit limit.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision,
    finding::{Finding, Judgment, whole},
    model::{
        machine::Machine,
        memory::{self, CommitLimit},
    },
};
use host::units::Bytes;

pub(super) const CHECK: Check = Check {
    name: "overcommit",
    judge,
    cure: Cure::Core(decision::committed_now),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at `CommitLimit` with `vm.overcommit_memory = 2`. The limit is a share of RAM *without the
pools*, so a larger pool lowers it. Above the limit, `fork` and `palloc` fail on a host with free
memory.

| code | status | meaning |
|---|---|---|
| `not_strict`, `within_commit_limit` | ok | the mode is not strict, or the limit leaves enough to commit |
| `near_commit_limit` | warning | less than [the reserve](advice.md#the-reserve) can still be committed, without the memory that the kernel withholds from the server (`vm.admin_reserve_kbytes`, `vm.user_reserve_kbytes`) |
| `wrong_commit_counter` | warning | `Committed_AS` exceeds the limit and twice all RAM and swap, but half of RAM is available. Since Linux 6.5, `mremap` can count memory twice |

**What to do.** Raise `vm.overcommit_ratio` to the value in the remedy, now (`sysctl -w`) and in
`/etc/sysctl.d`, or add swap. Until then, no remedy enlarges the pools if they would leave less than
the reserve. The server cannot use the memory that the kernel reserves for root
(`vm.admin_reserve_kbytes`) and withholds from each process (`vm.user_reserve_kbytes`). If these
settings cannot be read, the largest values that the kernel sets by itself are assumed, 8 MB and
128 MB. The decision has the missing bytes and the lowest ratio that is enough.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let vm = &machine.state.vm;
    let mode = vm
        .overcommit_memory
        .ok_or("vm.overcommit_memory cannot be read")?;
    let usage = machine.usage();
    let pools = memory::left(machine).map(|_| memory::in_pools(machine));
    let limit = CommitLimit::of(machine);
    // CommitLimit = (RAM - pools) * ratio / 100 + swap, unless overcommit_kbytes replaces the first
    // part (mm/util.c vm_commit_limit).
    let ratio = limit.and_then(|limit| limit.ratio);
    let taken = pools.zip(ratio).map(|(pools, ratio)| pools.percent(ratio));
    let finding = if mode == 2 {
        machine.state.usage.as_ref()?;
        let limit = limit.ok_or("/proc/meminfo has no CommitLimit")?;
        let taken = taken.filter(|bytes| *bytes > Bytes(0));
        let by_pools = taken.map_or_else(String::new, |bytes| {
            format!(" The pools lower the limit by {bytes}.")
        });
        let text = format!(
            "Strict overcommit: {} of {} is committed.{by_pools}",
            limit.committed, limit.limit
        );
        if let Some(available) = limit.contradicted_by {
            Finding::warning(
                "wrong_commit_counter",
                format!(
                    "Strict overcommit: {} of {} is committed, but {available} of RAM is available. The kernel's counter is wrong, so the kernel refuses free memory.",
                    limit.committed, limit.limit
                ),
            )
        } else if limit.missing() > Bytes(0) {
            Finding::warning("near_commit_limit", text)
        } else {
            Finding::ok("within_commit_limit", text)
        }
    } else {
        Finding::ok(
            "not_strict",
            format!(
                "No strict overcommit (vm.overcommit_memory = {mode}): the pools do not lower a commit limit."
            ),
        )
    };
    Ok(finding.with(json!({
        "overcommit_memory": mode,
        "overcommit_ratio": vm.overcommit_ratio,
        "commit_limit_bytes": usage.and_then(|usage| usage.commit_limit),
        "committed_as_bytes": usage.and_then(|usage| usage.committed),
        "pools_bytes": pools.map(|pools| pools.0),
        "taken_by_pools_bytes": taken.map(|taken| taken.0),
    })))
}
