//! Memory of this server that is swapped out.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::SWAP_BYTES,
};
use crate::{advice::words::human, server::surroundings::Surroundings};

const NAME: &str = "swap";

pub(super) fn check(around: &Surroundings) -> Check {
    let figures = around.processes.iter().filter_map(|process| process.swap);
    let Some(swapped) = figures.reduce(u64::saturating_add) else {
        let finding =
            "whether the server is swapped out cannot be told: the kernel shows it for no process";
        return Check::new(NAME, Status::Unknown, finding);
    };
    let check = if swapped > SWAP_BYTES {
        Check::new(
            NAME,
            Status::Warning,
            format!(
                "{} of private memory of this server are swapped out, and come back by major faults",
                human(swapped)
            ),
        )
        .with_remedy("look for who takes the memory (hugeinfo_memory, hugeinfo_host); lower work_mem or shared_buffers, or add memory; sysctl -w vm.swappiness=1 keeps the kernel from swapping early".to_owned())
    } else {
        Check::new(
            NAME,
            Status::Ok,
            format!(
                "{} of private memory of this server are swapped out",
                human(swapped)
            ),
        )
    };
    let usage = around.host.usage.as_ref().ok();
    let of_host = usage.and_then(|usage| usage.swap_total?.checked_sub(usage.swap_free?));
    check.with_evidence(json!({
        "swap_bytes": swapped,
        "swap_of_host_bytes": of_host,
        "swappiness": around.host.vm.swappiness,
    }))
}
