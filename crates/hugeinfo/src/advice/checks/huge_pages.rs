//! Whether huge pages back the main segment, and why not.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        words::{explain, huge_pages, human},
    },
    model::{machine::Machine, nodes, obstacle},
    server::facts::{Facts, HugePages, LiesOn, SharedMemoryType},
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let segment = facts.segment.as_ref()?;
    let size = human(segment.bytes);
    let finding = match facts.lies_on() {
        LiesOn::Unseen => {
            let why = "the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps for the main segment";
            return Err(why.into());
        }
        LiesOn::HugePages(page_bytes) => {
            let pages = huge_pages(segment.bytes / page_bytes, page_bytes);
            let is_on = format!("main segment of {size} is on {pages}");
            match nodes::most_for_mapped(machine, page_bytes) {
                None => Finding::ok(is_on),
                Some(most) => Finding::critical(format!(
                    "{is_on}, and the NUMA nodes that the server may use have {most}: it crashes (SIGBUS, or short reads) when it touches the rest"
                )),
            }
        }
        LiesOn::SmallPages => {
            let fell_back = match facts.server.huge_pages {
                HugePages::Try => "huge_pages = try fell back: ",
                HugePages::On | HugePages::Off => "",
            };
            let why = obstacle::find(machine).map_or_else(
                || format!("{}; a restart would get huge pages", at_start(facts)),
                |obstacle| explain(machine, &obstacle),
            );
            Finding::warning(format!(
                "{fell_back}main segment of {size} is on {} pages: {why}",
                human(facts.base_page_bytes)
            ))
        }
    };
    Ok(finding.with(json!({
        "huge_pages": facts.server.huge_pages.as_str(),
        "segment_bytes": segment.bytes,
        "page_size_bytes": segment.page_bytes,
    })))
}

/// Why a server has none whose next start would get them.
fn at_start(facts: &Facts) -> String {
    let then = &facts.server;
    if then.huge_pages == HugePages::Off {
        "the server was started with huge_pages = off".to_owned()
    } else if then.shared_memory_type != SharedMemoryType::Mmap {
        "the server was started with shared_memory_type = sysv".to_owned()
    } else if then.huge_page_size_bytes != facts.next_start().huge_page_size_bytes {
        "huge_page_size has changed since the server started".to_owned()
    } else {
        "too few huge pages were free when the server started".to_owned()
    }
}
