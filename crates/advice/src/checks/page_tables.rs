//! Whether page tables are large.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::{
        machine::Machine,
        page_tables::{are_large, bytes_of_one, need_huge_pages, on_huge_pages, total},
    },
};
use host::{server::state::Backing, units::Bytes};

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

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    let total = total(machine).ok_or("the kernel reports page tables for no process")?;
    machine.state.meminfo.as_ref()?;
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
    let connections = facts.known_max_connections();
    let of_all =
        |page_bytes| Some(bytes_of_one(segment.0, page_bytes).saturating_mul(connections?));
    Ok(finding.with(json!({
        "page_table_bytes": total.0,
        "on_huge_pages_bytes": then.map(|(bytes, _)| bytes.0),
        "processes": count,
        "memory_total_bytes": ram.0,
        "needed_bytes": segment.0,
        "at_max_connections_bytes": machine.state.page_bytes().and_then(of_all),
        "at_max_connections_on_huge_pages_bytes": size.and_then(|size| of_all(size.0)),
    })))
}

/// Recommends fewer connections if huge pages do not help, or if no remedy turns them on.
fn decision(machine: &Machine) -> Option<Decision> {
    let stays_off = machine.will_turn_off() || machine.is_muted("huge_pages");
    (stays_off || !need_huge_pages(machine)).then_some(Decision::FewerConnections)
}
