//! Which pages back the segment, and why it is not on huge pages.

use serde_json::json;

use super::{
    definition::{Check, Cure},
    restart,
};
use crate::{
    decision::{self, Decision},
    finding::{Finding, Judgment, Status},
    model::{
        machine::Machine,
        numa,
        start::{self, Reason, StartOutcome},
    },
};
use host::{
    server::state::{Backing, HugePages, SharedMemoryType},
    units::{Bytes, PageSize, Pages, capitalized, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "huge_pages",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: true,
    counts_for_server: |_| true,
    docs: "\
Looks at the pages that back the main shared memory segment: at the mapping itself (`PROCMAP_QUERY`,
or `smaps` or `numa_maps`), not at settings or names. With `huge_pages = try`, PostgreSQL gets all
pages or none, and does not log a fallback.

| code | status | meaning |
|---|---|---|
| `on_huge_pages` | ok | the segment is on huge pages |
| `turned_off` | ok | `huge_pages = off`, as intended, or pending a restart. If page tables are large, [page_tables](#page_tables) warns |
| `fell_back` | warning | `huge_pages = try`, and the server did not get huge pages |
| `started_off` | warning | the server was started with `huge_pages = off`, and the setting has changed since |
| `sysv` | warning | `shared_memory_type = sysv` cannot use huge pages; if it is intended, mute the check |
| `no_such_size` | warning | the kernel does not have the page size in `huge_page_size` |
| `no_huge_pages` | ok | this kernel or processor has no huge pages |
| `nodes_short` | critical | the NUMA nodes that the server is allowed to use have fewer pages than it has mapped: it crashes when it uses the rest |

On Linux 7.0, which changed when the kernel preempts processes, `turned_off` costs more than before:
with 1,024 clients on 4 kB pages, throughput fell from 98,565 to 50,751 transactions a second, and
huge pages restored it.

**What to do.** Follow the remedy. If RAM cannot hold the new pool and the segment on 4 kB pages at
the same time, the remedy stops PostgreSQL before it sets the pool. It then also has the commands
that restore the pool if the kernel allocates fewer pages than requested.

If the server is bound to some NUMA nodes, no remedy adds pages, because the kernel chooses the
nodes for `vm.nr_hugepages`. The remedy shows how many pages the nodes of the server lack, and the
pages and memory of each node. Write the new number of a node to
`/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages`, or let the server use more
nodes.
",
};

fn judge(machine: &Machine) -> Judgment {
    let segment = machine.state.segment.as_ref()?;
    let finding = match machine.backing() {
        Backing::Unknown => {
            let why =
                "the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps for the segment";
            return Err(why.into());
        }
        Backing::HugePages(size) => on_huge_pages(machine, Bytes(segment.bytes), size),
        Backing::SmallPages => on_small_pages(machine),
    };
    Ok(finding.with(json!({
        "huge_pages": match machine.unknown_request() {
            None => Some(machine.state.server.huge_pages.as_str()),
            Some(_) => None,
        },
        "segment_bytes": segment.bytes,
        "page_size_bytes": segment.page_bytes,
    })))
}

fn on_huge_pages(machine: &Machine, segment: Bytes, size: PageSize) -> Finding {
    let pages = huge_pages(segment.whole_pages(size), size);
    match numa::most_for_mapped(machine, size) {
        None => Finding::ok("on_huge_pages", format!("On {pages}.")),
        Some(most) => Finding::critical(
            "nodes_short",
            format!(
                "On {pages}, but the NUMA nodes that the server is allowed to use have only {most}. The server crashes (SIGBUS, or short reads) when it uses the rest."
            ),
        ),
    }
}

/// The decision while the check is muted, about a pending change that turns huge pages off, or
/// about pages that the nodes of the running server lack, whatever its next start needs.
fn decision(machine: &Machine) -> Option<Decision> {
    if machine.is_muted(CHECK.name) && machine.backing() == Backing::SmallPages {
        return Some(Decision::Text(
            "remove huge_pages from pg_hugeinfo.muted_checks: while it is muted, no remedy moves the server to huge pages"
                .to_owned(),
        ));
    }
    let Backing::HugePages(size) = machine.backing() else {
        return restart::decision(machine);
    };
    numa::most_for_mapped(machine, size)?;
    Some(decision::about_nodes(machine, size, Pages(0)))
}

fn on_small_pages(machine: &Machine) -> Finding {
    let (running, next) = (&machine.state.server, machine.state.next_start());
    // thp_shared judges transparent huge pages: hugeinfo_status knows only what the host has
    // mapped.
    let mapped = machine.usage().and_then(|usage| usage.shmem_pmd_mapped);
    let base = machine.base_size();
    // A page of page tables maps one of them, with 8 bytes for each base page.
    let transparent = PageSize(base.0.saturating_mul(base.0 / 8));
    let partly = match mapped {
        Some(1..) => format!(", perhaps partly on transparent {transparent} pages"),
        Some(0) | None => String::new(),
    };
    let base = format!("{base} pages{partly}");
    if let Some(command) = machine.unknown_request() {
        return Finding::unknown(format!(
            "On {base}. Whether the server asks for huge pages is unknown ({command})."
        ));
    }
    if next.huge_pages == HugePages::Off {
        let pending = match running.huge_pages {
            HugePages::Off => "",
            HugePages::On | HugePages::Try => " is pending a restart",
        };
        return Finding::ok(
            "turned_off",
            format!("On {base}: huge_pages = off{pending}."),
        );
    }
    let (code, cause) = if running.huge_pages == HugePages::Off {
        (
            "started_off",
            "the server was started with huge_pages = off",
        )
    } else if running.shared_memory_type != SharedMemoryType::Mmap {
        ("sysv", "shared_memory_type = sysv cannot use huge pages")
    } else {
        ("fell_back", "huge_pages = try fell back")
    };
    let outcome = start::outcome(machine);
    let (status, code, next) = match outcome {
        StartOutcome::HugePages(_) => (
            Status::Warning,
            code,
            "A restart would get huge pages.".to_owned(),
        ),
        StartOutcome::SmallPages(reason, _)
        | StartOutcome::Fails(reason, _)
        | StartOutcome::Unknown(reason) => {
            if reason == Reason::NoHugePages {
                return Finding::ok("no_huge_pages", format!("On {base}. {reason}"));
            }
            let code = match &reason {
                Reason::NoSuchSize { .. } => "no_such_size",
                _ => code,
            };
            let next = match reason {
                Reason::Sysv if code == "sysv" => String::new(),
                Reason::Missing(_) => capitalized(&reason.to_string()),
                reason => reason.to_string(),
            };
            (Status::Warning, code, next)
        }
    };
    let text = format!("On {base}: {cause}. {next}");
    Finding::new(status, code, text.trim_end())
}
