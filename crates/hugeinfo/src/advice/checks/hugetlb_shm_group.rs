//! `vm.hugetlb_shm_group`, which much advice names: it is asked only for `shmget` with
//! `SHM_HUGETLB`, and PostgreSQL calls `mmap`.

use serde_json::json;

use crate::advice::check::{Check, Status};
use crate::server::surroundings::Surroundings;

const NAME: &str = "hugetlb_shm_group";

pub(super) fn check(around: &Surroundings) -> Check {
    let group = around.host.vm.hugetlb_shm_group;
    let check = match group {
        Some(group) => Check::new(
            NAME,
            Status::Ok,
            format!(
                "vm.hugetlb_shm_group ({group}) has no part in PostgreSQL's huge pages: nothing to set"
            ),
        ),
        None => Check::new(
            NAME,
            Status::Unknown,
            "vm.hugetlb_shm_group cannot be read, and has no part in PostgreSQL's huge pages",
        ),
    };
    check.with_evidence(json!({ "hugetlb_shm_group": group }))
}
