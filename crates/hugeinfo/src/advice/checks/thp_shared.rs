//! Transparent huge pages for shared memory (`shmem_enabled`), and what the main segment really got
//! of them.

use serde_json::json;

use super::thp;
use crate::advice::check::{Check, Status};
use crate::{
    advice::words::human,
    linux::transparent_hugepage::Modes,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "thp_shared";

/// Whether the kernel may put anonymous shared memory on transparent huge pages without being asked
/// by the program.
pub fn may_be_used(modes: &Modes) -> bool {
    let gives = |mode: Option<&str>| matches!(mode, Some("always" | "within_size" | "force"));
    gives(modes.shmem_enabled.as_deref())
        || modes
            .sizes
            .iter()
            .any(|size| gives(size.shmem_enabled_in(modes)))
}

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let modes = match thp::modes(around, NAME) {
        Ok(modes) => modes,
        Err(answer) => return answer,
    };
    let got = around
        .segment_thp_bytes
        .as_ref()
        .and_then(|got| got.as_ref().ok().copied());
    judge(facts, around, modes, got).with_evidence(json!({
        "shmem_enabled": modes.shmem_enabled,
        "segment_thp_bytes": got,
        "segment_bytes": facts.segment.as_ref().ok().map(|segment| segment.bytes),
    }))
}

fn judge(facts: &Facts, around: &Surroundings, modes: &Modes, got: Option<u64>) -> Check {
    let mode = modes.shmem_enabled.as_deref().unwrap_or("not there");
    match facts.huge_page_in_use() {
        Some(Some(_)) => {
            let finding = format!(
                "the main segment lies on huge pages of the pool, which transparent ones don't concern (shmem_enabled = {mode})"
            );
            Check::new(NAME, Status::Ok, finding)
        }
        None => {
            let finding = "what backs the main segment cannot be seen";
            Check::new(NAME, Status::Unknown, finding)
        }
        Some(None) if !may_be_used(modes) => {
            let finding = format!(
                "shared memory gets no transparent huge pages unasked (shmem_enabled = {mode})"
            );
            Check::new(NAME, Status::Ok, finding)
        }
        Some(None) => {
            let share = match (&around.segment_thp_bytes, got) {
                (_, Some(bytes)) => format!(
                    "{} of the main segment, as one process maps it,",
                    human(bytes)
                ),
                (Some(Err(absent)), None) => {
                    format!("nobody can say how much of the main segment ({absent})")
                }
                (_, None) => "nobody can say how much of the main segment".to_owned(),
            };
            let finding = format!(
                "{share} lie on transparent huge pages (shmem_enabled = {mode}): what the kernel happens to have, not what a pool holds ready"
            );
            Check::new(NAME, Status::Warning, finding).with_remedy(
                "give the server a pool of huge pages, as the check huge_pages says".to_owned(),
            )
        }
    }
}
