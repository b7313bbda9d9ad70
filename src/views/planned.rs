//! Parts that `hugeinfo_plan`, `hugeinfo_next_start` and `hugeinfo_fit` have in common.

use advice::model::{forecast::Forecast, machine::Machine};
use host::units::Bytes;

/// The main segment as a percentage of RAM.
pub(super) fn percent_of_ram(machine: &Machine) -> Option<f64> {
    Some(Bytes(machine.state.needed_bytes()).percentage_of(machine.ram()?))
}

/// One forecast for each huge page size, smallest first, or a single `None`.
pub(super) fn forecasts(machine: &Machine) -> Vec<Option<Forecast>> {
    match Forecast::for_each_pool(machine) {
        Ok(forecasts) if !forecasts.is_empty() => forecasts.into_iter().map(Some).collect(),
        _ => vec![None],
    }
}

/// True if the start requests pages of this size, or would with `huge_pages = try`.
pub(super) fn is_requested(machine: &Machine, forecast: Option<&Forecast>) -> Option<bool> {
    let page_bytes = forecast?.pool.page_bytes;
    let next = machine.next_start_on_huge_pages();
    Some(machine.size_asked_for(&next)?.0 == page_bytes)
}

/// The reasons why a start with exactly these settings would differ from the row.
pub(super) fn not_as_planned(machine: &Machine) -> Vec<String> {
    let next = machine.state.next_start();
    let aim = machine.next_start_on_huge_pages();
    if machine.state.pools.as_ref().is_ok_and(Vec::is_empty) {
        return vec!["the kernel has no huge pages".to_owned()];
    }
    let mut reasons = Vec::new();
    if next.shared_memory_type != aim.shared_memory_type {
        reasons.push(
            "shared_memory_type = sysv does not use huge pages: figures are for mmap".to_owned(),
        );
    }
    if next.huge_pages != aim.huge_pages {
        reasons.push("huge_pages = off: figures are for huge_pages = try".to_owned());
    }
    let marked = machine.size_asked_for(&aim);
    if let Some(asked_for) = next.huge_page_size_bytes.map(Bytes)
        && aim.huge_page_size_bytes.is_none()
    {
        let instead = marked.as_ref().map_or_else(String::new, |default| {
            format!(": is_requested marks its default size, {default}")
        });
        reasons.push(format!(
            "huge_page_size requests {asked_for} huge pages, which the kernel does not support{instead}"
        ));
    }
    if marked.is_none() {
        reasons.push("the default huge page size is unknown: is_requested is NULL".to_owned());
    }
    reasons
}
