//! Whether page tables are large, against RAM and against the segment that they map.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    obstacle,
    thresholds::{
        PAGE_TABLES_AT_LEAST_BYTES, PAGE_TABLES_OF_RAM_PERCENT, PAGE_TABLES_OF_SEGMENT_PERCENT,
    },
};
use crate::{
    advice::words::human,
    model::page_tables::bytes_of_one,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "page_tables";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let figures = around
        .processes
        .iter()
        .filter_map(|process| process.page_tables);
    let Some(total) = figures.reduce(u64::saturating_add) else {
        let finding = "what page tables cost cannot be told: the kernel shows them for no process";
        return Check::new(NAME, Status::Unknown, finding);
    };
    let ram = facts
        .meminfo
        .as_ref()
        .ok()
        .and_then(|meminfo| meminfo.total_bytes);
    let Some(ram) = ram else {
        let finding =
            "whether page tables are large cannot be told: /proc/meminfo shows no MemTotal";
        return Check::new(NAME, Status::Unknown, finding);
    };
    let segment = facts.needed_bytes();
    let more_than = |percent: u64, of: u64| total / percent > of / 100;
    let is_large = more_than(PAGE_TABLES_OF_RAM_PERCENT, ram)
        || total >= PAGE_TABLES_AT_LEAST_BYTES
            && more_than(PAGE_TABLES_OF_SEGMENT_PERCENT, segment);
    let count = around.processes.len();
    let finding = format!(
        "page tables of {count} processes take {}, for a main segment of {} and {} RAM",
        human(total),
        human(segment),
        human(ram)
    );
    let on_huge_pages = facts.huge_page_in_use().flatten();
    let check = if is_large {
        let fewer = "lower max_connections, or let a pooler keep connections few";
        let remedy = match on_huge_pages {
            Some(_) => fewer.to_owned(),
            None => obstacle::find(facts)
                .map_or(Some("restart PostgreSQL".to_owned()), |obstacle| {
                    obstacle.remedy(facts)
                })
                .unwrap_or_else(|| fewer.to_owned()),
        };
        Check::new(NAME, Status::Warning, finding).with_remedy(remedy)
    } else {
        Check::new(NAME, Status::Ok, finding)
    };
    let huge = on_huge_pages.or_else(|| facts.huge_page_asked_for());
    let of_all =
        |page_bytes| bytes_of_one(segment, page_bytes).saturating_mul(around.max_connections);
    check.with_evidence(json!({
        "page_table_bytes": total,
        "processes": count,
        "memory_total_bytes": ram,
        "needed_bytes": segment,
        "at_max_connections_bytes": facts.page_bytes().map(of_all),
        "at_max_connections_on_huge_pages_bytes": huge.map(of_all),
    }))
}
