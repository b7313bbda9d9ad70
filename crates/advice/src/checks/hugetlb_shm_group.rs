//! `vm.hugetlb_shm_group`, which much advice names: the kernel checks it only for `shmget` with
//! `SHM_HUGETLB`, and PostgreSQL calls `mmap`.

use serde_json::json;

use crate::{
    check::{Finding, Judgment, whole},
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let group = machine.state.vm.hugetlb_shm_group;
    let group = group.ok_or("the file cannot be read")?;
    let text = format!("vm.hugetlb_shm_group ({group}) does not affect PostgreSQL.");
    Ok(Finding::ok("no_effect", text).with(json!({ "hugetlb_shm_group": group })))
}
