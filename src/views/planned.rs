//! Parts that `hugeinfo_plan` and `hugeinfo_next_start` have in common.

use hugeinfo::model::{forecast::Forecast, machine::Machine};

/// The main segment as a percentage of RAM.
pub(super) fn percent_of_ram(machine: &Machine) -> Option<f64> {
    let ram = machine.ram()?.0;
    Some(machine.facts.needed_bytes() as f64 * 100.0 / ram as f64)
}

/// One forecast for each huge page size, smallest first, or a single `None`.
pub(super) fn forecasts(machine: &Machine) -> Vec<Option<Forecast>> {
    match Forecast::of_each_pool(machine) {
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
