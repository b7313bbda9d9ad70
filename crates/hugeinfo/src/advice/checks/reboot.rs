//! Whether the next boot of the machine sets up the pool that the server needs.

use serde_json::json;

use super::pool_filled::in_force;
use crate::advice::check::{Check, Status};
use crate::{
    advice::words::human,
    linux::boot::Request,
    model::forecast::Forecast,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "reboot";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    if !facts.asks_for_huge_pages() {
        return Check::new(NAME, Status::Ok, "the server asks for no huge pages");
    }
    let Some(target) = Forecast::of_target(facts) else {
        return Check::new(
            NAME,
            Status::Unknown,
            "the pool that the server needs cannot be seen",
        );
    };
    let requests = match &around.asked_at_boot {
        Ok(requests) => in_force(facts, requests),
        Err(absent) => {
            let finding = format!("what the next boot sets up cannot be told: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let request = requests.get(&target.pool.page_bytes);
    let (asked, required) = (request.map_or(0, |request| request.pages), target.required);
    let enough = asked.saturating_add(target.pool.overcommit) >= required;
    let size = human(target.pool.page_bytes);
    let check = match request {
        Some(request) if enough => Check::new(
            NAME,
            Status::Ok,
            format!(
                "{} sets up {asked} huge pages of {size}, and {required} are required",
                request.source
            ),
        ),
        Some(request) => Check::new(
            NAME,
            Status::Warning,
            format!(
                "{} sets up {asked} huge pages of {size} at the next boot, and {required} are required",
                request.source
            ),
        ),
        None => Check::new(
            NAME,
            Status::Warning,
            format!(
                "neither the kernel command line nor sysctl's files set up huge pages of {size} at the next boot, and {required} are required"
            ),
        ),
    };
    let remedy = || {
        let pages = target.recommended.unwrap_or(required);
        let by_file = request.filter(|request| !request.source.starts_with("/proc/"));
        match (target.too_many(facts, pages), by_file) {
            (Some(why), _) => format!("lower shared_buffers: {why}"),
            // Another file may be read before that one.
            (None, Some(Request { source, .. })) if target.is_default == Some(true) => {
                format!("for the next boot, in {source}: vm.nr_hugepages = {pages}")
            }
            _ => target.set_at_boot(pages),
        }
    };
    check
        .with_remedy((!enough).then(remedy))
        .with_evidence(json!({
            "page_size_bytes": target.pool.page_bytes,
            "asked_pages": asked,
            "required_pages": required,
            "source": request.map(|request| &request.source),
        }))
}
