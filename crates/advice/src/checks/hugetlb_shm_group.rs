//! `vm.hugetlb_shm_group`, which much advice names: the kernel checks it only for `shmget` with
//! `SHM_HUGETLB`, and PostgreSQL calls `mmap`.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    finding::{Finding, Judgment, whole},
    model::machine::Machine,
};

pub(super) const CHECK: Check = Check {
    name: "hugetlb_shm_group",
    judge,
    cure: Cure::None,
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at `vm.hugetlb_shm_group`. The kernel checks the group only for `shmget` with `SHM_HUGETLB`,
which PostgreSQL never calls.

| code | status | meaning |
|---|---|---|
| `no_effect` | ok | the setting has no effect, whatever its value |
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let group = machine.state.vm.hugetlb_shm_group;
    let group = group.ok_or("the file cannot be read")?;
    let text = format!("vm.hugetlb_shm_group ({group}) does not affect PostgreSQL.");
    Ok(Finding::ok("no_effect", text).with(json!({ "hugetlb_shm_group": group })))
}
