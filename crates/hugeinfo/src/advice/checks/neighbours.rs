//! Several servers on one host, which share the pools.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    obstacle::set_to,
};
use crate::{
    advice::words::human,
    linux::{error::Absent, pages::pages_required, process::segment::Segment},
    model::forecast::Forecast,
    server::{facts::Facts, instances::Instance, surroundings::Surroundings},
};

const NAME: &str = "neighbours";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    match &around.neighbours {
        Ok(others) => judge(facts, others),
        Err(absent) => unseen(absent),
    }
}

fn unseen(absent: &Absent) -> Check {
    let finding = format!("whether other servers share the pools cannot be told: {absent}");
    Check::new(NAME, Status::Unknown, finding)
}

fn judge(facts: &Facts, others: &[Instance]) -> Check {
    let others_count = others.len();
    if others_count == 0 {
        return Check::new(
            NAME,
            Status::Ok,
            "no other PostgreSQL server runs on this host",
        )
        .with_evidence(json!({ "other_servers": 0 }));
    }
    let Some(pool) = facts.target_pool() else {
        return Check::new(
            NAME,
            Status::Unknown,
            format!("{others_count} other servers run on this host, and the pool cannot be seen"),
        );
    };
    let hidden = others
        .iter()
        .filter(|server| server.segment.is_none())
        .count();
    // Those that lie on huge pages of another size need none of this pool.
    let competes = |segment: &&Segment| {
        let lies_on = segment.page_bytes;
        lies_on.is_none_or(|bytes| bytes <= facts.base_page_bytes || bytes == pool.page_bytes)
    };
    let pages_of = |segments: &mut dyn Iterator<Item = &Segment>| {
        segments
            .map(|segment| pages_required(segment.bytes, pool.page_bytes))
            .fold(0, u64::saturating_add)
    };
    let seen = || others.iter().filter_map(|server| server.segment.as_ref());
    let of_others = pages_of(&mut seen().filter(competes));
    let own = if facts.asks_for_huge_pages() {
        pages_required(facts.needed_bytes(), pool.page_bytes)
    } else {
        0
    };
    // Other programs, and servers that may not be seen, have what the servers that are seen have
    // not.
    let lies_on = |segment: &&Segment| segment.page_bytes == Some(pool.page_bytes);
    let held = pages_of(&mut seen().chain(&facts.segment).filter(lies_on));
    let of_strangers = pool.committed().saturating_sub(held);
    let needed = own.saturating_add(of_others).saturating_add(of_strangers);
    let capacity = pool.persistent().saturating_add(pool.overcommit);
    let size = human(pool.page_bytes);
    let servers = match others_count {
        1 => "another server runs".to_owned(),
        n => format!("{n} other servers run"),
    };
    let strangers = match of_strangers {
        0 => String::new(),
        pages => format!(", with the {pages} that other programs have"),
    };
    let sum = format!(
        "{servers} on this host, and all together need {needed} huge pages of {size}{strangers}; the pool can give {capacity}"
    );
    let check = if capacity == 0 {
        Check::new(
            NAME,
            Status::Ok,
            format!("{servers} on this host, and there is no pool to share"),
        )
    } else if needed > capacity {
        Check::new(
            NAME,
            Status::Warning,
            format!("{sum}: whichever starts last gets none"),
        )
        .with_remedy(format!(
            "{}; then restart those that lie on small pages",
            set_to(facts, &Forecast::of(facts, pool), needed, Forecast::set_now,)
        ))
    } else if hidden > 0 {
        Check::new(
            NAME,
            Status::Unknown,
            format!("{servers} on this host, and what {hidden} of them need may not be seen"),
        )
    } else {
        Check::new(NAME, Status::Ok, sum)
    };
    check.with_evidence(json!({
        "other_servers": others_count,
        "hidden_servers": hidden,
        "page_size_bytes": pool.page_bytes,
        "own_pages": own,
        "others_pages": of_others,
        "strangers_pages": of_strangers,
        "capacity_pages": capacity,
    }))
}
