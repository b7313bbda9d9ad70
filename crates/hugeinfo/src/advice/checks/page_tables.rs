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
    model::{
        machine::Machine,
        page_tables::{bytes_of_one, on_other_pages},
    },
    server::facts::LiesOn,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let around = machine.around()?;
    let each: Vec<u64> = around
        .processes
        .iter()
        .filter_map(|process| process.page_tables)
        .collect();
    let total = each
        .iter()
        .copied()
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
    let asked = facts.huge_page_asked_for();
    let on_huge_pages = match facts.lies_on() {
        LiesOn::SmallPages => {
            asked.map(|huge| on_other_pages(&each, segment, facts.base_page_bytes, huge))
        }
        LiesOn::HugePages(_) | LiesOn::Unseen => None,
    };
    let then = on_huge_pages
        .zip(asked)
        .map_or_else(String::new, |(bytes, huge)| {
            format!(
                ", on huge pages of {} they would take {}",
                human(huge),
                human(bytes)
            )
        });
    let finding = format!(
        "page tables of {count} processes take {}{then}; the main segment has {}, the host {} RAM",
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
    let huge = in_use.or(asked);
    let of_all =
        |page_bytes| bytes_of_one(segment, page_bytes).saturating_mul(around.max_connections);
    Ok(finding.with(json!({
        "page_table_bytes": total,
        "on_huge_pages_bytes": on_huge_pages,
        "processes": count,
        "memory_total_bytes": ram,
        "needed_bytes": segment,
        "at_max_connections_bytes": facts.page_bytes().map(of_all),
        "at_max_connections_on_huge_pages_bytes": huge.map(of_all),
    })))
}
