//! Whether page tables are large, against RAM and against the segment that they map.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        thresholds::{
            PAGE_TABLES_AT_LEAST_BYTES, PAGE_TABLES_OF_RAM_PERCENT, PAGE_TABLES_OF_SEGMENT_PERCENT,
        },
        words::human,
    },
    model::{machine::Machine, page_tables::bytes_of_one},
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let around = machine.around()?;
    let figures = around
        .processes
        .iter()
        .filter_map(|process| process.page_tables);
    let total = figures
        .reduce(u64::saturating_add)
        .ok_or("the kernel shows page tables for no process")?;
    let ram = machine
        .ram_bytes()
        .ok_or("/proc/meminfo shows no MemTotal")?;
    let segment = facts.needed_bytes();
    let more_than = |percent: u64, of: u64| total / percent > of / 100;
    let is_large = total >= PAGE_TABLES_AT_LEAST_BYTES
        && (more_than(PAGE_TABLES_OF_RAM_PERCENT, ram)
            || more_than(PAGE_TABLES_OF_SEGMENT_PERCENT, segment));
    let count = around.processes.len();
    let finding = format!(
        "page tables of {count} processes take {}, for a main segment of {} and {} RAM",
        human(total),
        human(segment),
        human(ram)
    );
    let finding = if is_large {
        Finding::warning(finding)
    } else {
        Finding::ok(finding)
    };
    let in_use = facts.lies_on().huge_page_bytes();
    let huge = in_use.or_else(|| facts.huge_page_asked_for());
    let of_all =
        |page_bytes| bytes_of_one(segment, page_bytes).saturating_mul(around.max_connections);
    Ok(finding.with(json!({
        "page_table_bytes": total,
        "processes": count,
        "memory_total_bytes": ram,
        "needed_bytes": segment,
        "at_max_connections_bytes": facts.page_bytes().map(of_all),
        "at_max_connections_on_huge_pages_bytes": huge.map(of_all),
    })))
}
