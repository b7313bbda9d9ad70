//! Whether page tables are large.

use serde_json::json;

use super::{Check, Cure};
use crate::{
    check::{Finding, Judgment, whole},
    decision::Decision,
    model::{
        machine::Machine,
        page_tables::{bytes_of_one, on_other_pages},
    },
    thresholds::{
        PAGE_TABLES_AT_LEAST_BYTES, PAGE_TABLES_OF_RAM_PERCENT, PAGE_TABLES_OF_SEGMENT_PERCENT,
    },
};
use host::{
    server::state::Backing,
    units::{Bytes, PageSize},
};

pub(super) const CHECK: Check = Check {
    name: "page_tables",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at the page tables of all processes of the server. Each process needs 8 bytes for each 4 kB
page that it has touched. Published measurements for a server with 80 connections are 25 GB of page
tables on 4 kB pages, and 61 MB on huge pages.

| code | status | meaning |
|---|---|---|
| `small_page_tables` | ok | less than 64 MB, or small in relation to RAM and to the segment |
| `large_page_tables` | warning | at least 64 MB, and more than 2% of RAM or, on 4 kB pages, more than 20% of the segment |

**What to do.** Use huge pages. If the server is on huge pages already, use fewer connections or a
connection pooler. [`hugeinfo_page_tables`](processes.md#estimated-savings) has the forecast.
",
};

/// Whether huge pages are turned off, and the page tables of the host are large enough that those of
/// this server could be a reason to turn them on.
pub(crate) fn could_be_large(machine: &Machine) -> bool {
    let of_host = machine.usage().and_then(|usage| usage.page_tables);
    let might_be_large = of_host.is_some_and(|bytes| bytes >= PAGE_TABLES_AT_LEAST_BYTES);
    machine.is_turned_off() && might_be_large
}

/// Page tables of all processes. `None`: unknown.
fn total(machine: &Machine) -> Option<Bytes> {
    let processes = &machine.whole_state()?.processes;
    let each = processes.iter().filter_map(|process| process.page_tables);
    each.map(Bytes).reduce(|all, one| all + one)
}

/// Whether they are large, against RAM, and on small pages against the segment that they map.
fn are_large(machine: &Machine) -> bool {
    let (Some(total), Some(ram)) = (total(machine), machine.ram()) else {
        return false;
    };
    let segment = Bytes(machine.state.needed_bytes());
    let is_beyond = |percent: u64, of: Bytes| total > of.percent(percent);
    total >= Bytes(PAGE_TABLES_AT_LEAST_BYTES)
        && (is_beyond(PAGE_TABLES_OF_RAM_PERCENT, ram)
            || machine.backing() == Backing::SmallPages
                && is_beyond(PAGE_TABLES_OF_SEGMENT_PERCENT, segment))
}

/// Estimates them on huge pages. `None`: the segment is on huge pages, or something is unknown.
fn on_huge_pages(machine: &Machine) -> Option<(Bytes, PageSize)> {
    if machine.backing() != Backing::SmallPages {
        return None;
    }
    let size = machine.size_asked_for(&machine.next_start_on_huge_pages())?;
    let processes = &machine.whole_state()?.processes;
    let segment = machine.state.needed_bytes();
    let bytes = on_other_pages(processes, segment, machine.state.base_page_bytes, size.0);
    Some((Bytes(bytes), size))
}

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    let total = total(machine).ok_or("the kernel reports page tables for no process")?;
    let ram = machine.ram().ok_or("/proc/meminfo has no MemTotal")?;
    let segment = Bytes(machine.state.needed_bytes());
    let count = machine.state.processes.len();
    let then = on_huge_pages(machine).filter(|(bytes, _)| *bytes < total);
    let saving = then.map_or_else(String::new, |(bytes, size)| {
        format!("; on {size} pages they would take about {bytes}")
    });
    let text = format!("Page tables of {count} processes take {total}{saving}.");
    let finding = if are_large(machine) {
        Finding::warning("large_page_tables", text)
    } else {
        Finding::ok("small_page_tables", text)
    };
    let size = match machine.backing() {
        Backing::HugePages(size) => Some(size),
        Backing::SmallPages | Backing::Unknown => {
            machine.size_asked_for(machine.state.next_start())
        }
    };
    let of_all =
        |page_bytes| bytes_of_one(segment.0, page_bytes).saturating_mul(facts.max_connections);
    Ok(finding.with(json!({
        "page_table_bytes": total.0,
        "on_huge_pages_bytes": then.map(|(bytes, _)| bytes.0),
        "processes": count,
        "memory_total_bytes": ram.0,
        "needed_bytes": segment.0,
        "at_max_connections_bytes": machine.state.page_bytes().map(of_all),
        "at_max_connections_on_huge_pages_bytes": size.map(|size| of_all(size.0)),
    })))
}

/// Whether they are large, and would be small on huge pages and less than half as large.
pub(crate) fn need_huge_pages(machine: &Machine) -> bool {
    let would_be_small = |bytes: Bytes| {
        let ram = machine.ram();
        ram.is_some_and(|ram| bytes <= ram.percent(PAGE_TABLES_OF_RAM_PERCENT))
    };
    let halves = |bytes: Bytes| total(machine).is_some_and(|now| bytes + bytes <= now);
    are_large(machine)
        && on_huge_pages(machine).is_some_and(|(bytes, _)| would_be_small(bytes) && halves(bytes))
}

/// Recommends fewer connections if huge pages do not help.
fn decision(machine: &Machine) -> Option<Decision> {
    (!need_huge_pages(machine)).then_some(Decision::FewerConnections)
}
