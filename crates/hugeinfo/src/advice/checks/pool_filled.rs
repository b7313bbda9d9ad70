//! Whether the pools hold what was asked for when the machine started. The kernel gives what it
//! finds, and says nothing where that is less.

use std::collections::BTreeMap;

use serde_json::json;

use super::pool_size::needed_of_too_many;
use crate::advice::check::{Check, Status};
use crate::{
    advice::words::human,
    linux::boot::Request,
    model::forecast::Forecast,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "pool_filled";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let unknown = |why: &dyn std::fmt::Display| {
        let finding = format!("whether the pools hold what was asked for cannot be told: {why}");
        Check::new(NAME, Status::Unknown, finding)
    };
    let requests = match &around.asked_at_boot {
        Ok(requests) => in_force(facts, requests),
        Err(absent) => return unknown(absent),
    };
    let forecasts = match Forecast::of_each_pool(facts) {
        Ok(forecasts) => forecasts,
        Err(absent) => return unknown(&absent),
    };
    let asked = forecasts.iter().filter_map(|forecast| {
        let request = requests.get(&forecast.pool.page_bytes)?;
        Some((forecast, *request))
    });
    let short = asked
        .clone()
        .filter(|(forecast, request)| forecast.pool.persistent() < request.pages);
    let missing_bytes = |(forecast, request): &(&Forecast, &Request)| {
        let missing = request.pages.saturating_sub(forecast.pool.persistent());
        missing.saturating_mul(forecast.pool.page_bytes)
    };
    let evidence: Vec<_> = asked
        .clone()
        .map(|(forecast, request)| {
            json!({
                "page_size_bytes": forecast.pool.page_bytes,
                "asked_pages": request.pages,
                "persistent_pages": forecast.pool.persistent(),
                "source": request.source,
            })
        })
        .collect();
    let check = match short.max_by_key(missing_bytes) {
        Some((forecast, request)) => {
            let pool = &forecast.pool;
            let (asked, there) = (request.pages, pool.persistent());
            let finding = format!(
                "{} asked for {asked} huge pages of {}, and {there} are there: memory was fragmented, a node had too little, or they were taken away since",
                request.source,
                human(pool.page_bytes),
            );
            let fewer = forecast.too_many(facts, asked).or_else(|| {
                let needed = needed_of_too_many(facts, forecast, asked)?;
                Some(format!("{needed} are needed"))
            });
            let remedy = fewer.map_or_else(
                || format!(
                    "echo 1 > /proc/sys/vm/compact_memory; {}; if that gives too few, restart the machine with hugepages= on the kernel command line",
                    forecast.set_now(asked)
                ),
                |why| format!("ask for fewer in {}: {why}", request.source),
            );
            Check::new(NAME, Status::Warning, finding).with_remedy(remedy)
        }
        None if evidence.is_empty() => Check::new(
            NAME,
            Status::Ok,
            "neither the kernel command line nor sysctl's files ask for huge pages",
        ),
        None => Check::new(
            NAME,
            Status::Ok,
            "the pools hold what was asked for at boot",
        ),
    };
    check.with_evidence(json!({ "pools": evidence }))
}

/// By page size. Of two requests the later one counts.
pub(super) fn in_force<'r>(facts: &Facts, requests: &'r [Request]) -> BTreeMap<u64, &'r Request> {
    let default = facts
        .meminfo
        .as_ref()
        .ok()
        .and_then(|m| m.default_huge_page_bytes);
    requests
        .iter()
        .filter_map(|request| Some((request.page_bytes.or(default)?, request)))
        .collect()
}
