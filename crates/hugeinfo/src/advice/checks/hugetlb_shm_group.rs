//! `vm.hugetlb_shm_group`, which much advice names: it is asked only for `shmget` with
//! `SHM_HUGETLB`, and PostgreSQL calls `mmap`.

use serde_json::json;

use crate::{
    advice::check::{Answer, Finding},
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let group = machine.around()?.host.vm.hugetlb_shm_group;
    let group = group.ok_or("the file cannot be read")?;
    Ok(Finding::ok(format!(
        "vm.hugetlb_shm_group ({group}) does not affect PostgreSQL's huge pages: nothing to set"
    ))
    .with(json!({ "hugetlb_shm_group": group })))
}
