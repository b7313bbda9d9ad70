//! Memory of this server that is swapped out.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status},
        thresholds::SWAP_BYTES,
        words::human,
    },
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    let figures = around.processes.iter().filter_map(|process| process.swap);
    // A fork counts what its parent has swapped out once more (mm/memory.c copy_nonpresent_pte).
    let of_postmaster = around
        .processes
        .iter()
        .find(|process| process.is_postmaster)
        .and_then(|process| process.swap)
        .unwrap_or(0);
    let swapped = figures
        .map(|bytes| bytes.saturating_sub(of_postmaster))
        .reduce(u64::saturating_add)
        .ok_or("the kernel reports it for no process")?
        .saturating_add(of_postmaster);
    let usage = around.host.usage.as_ref().ok();
    let of_host = usage.and_then(|usage| usage.swap_total?.checked_sub(usage.swap_free?));
    let swapped = of_host.map_or(swapped, |of_host| swapped.min(of_host));
    let mut text = format!(
        "{} of private memory of this server are swapped out",
        human(swapped)
    );
    let status = if swapped > SWAP_BYTES {
        text.push_str(", and come back by major faults");
        Status::Warning
    } else {
        Status::Ok
    };
    Ok(Finding::new(status, text).with(json!({
        "swap_bytes": swapped,
        "swap_of_host_bytes": of_host,
        "swappiness": around.host.vm.swappiness,
    })))
}
