//! Several servers on one host, which share the pools.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status, Untold},
        words::huge_pages,
    },
    linux::{pages::pages_required, process::segment::Segment},
    model::{
        machine::Machine,
        need::{Need, Unseen, unseen},
    },
    server::sight::Sight,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    let others = around.neighbours.as_ref()?;
    let place = match around.sight {
        Sight::Host => "on this host",
        Sight::Namespace | Sight::Hidden => "as far as is seen from here",
    };
    // The finding says how far it sees.
    let unseen = unseen(machine).filter(|unseen| *unseen != Unseen::OtherNamespaces);
    let count = others.len();
    if count == 0 {
        if let Some(unseen) = unseen {
            return Err(Untold(unseen.to_string()));
        }
        return Ok(
            Finding::ok(format!("no other PostgreSQL server runs {place}"))
                .with(json!({ "other_servers": 0 })),
        );
    }
    let servers = match count {
        1 => format!("another server runs {place}"),
        n => format!("{n} other servers run {place}"),
    };
    if !machine.facts.asks_for_huge_pages() {
        let finding = Finding::ok(format!("{servers}; this one asks for no huge pages"));
        return Ok(finding.with(json!({ "other_servers": count })));
    }
    let no_pool = || Untold(format!("{servers}; the pool cannot be seen"));
    let aimed = machine.planning(machine.aim());
    let pool = aimed.facts.target_pool().ok_or_else(no_pool)?;
    let need = Need::of_all(&aimed, pool).ok_or_else(no_pool)?;
    let hidden = others
        .iter()
        .filter(|server| server.segment.is_none())
        .count();
    let seen = others.iter().filter_map(|server| server.segment.as_ref());
    let on_pool: u64 = seen
        .filter(|segment: &&Segment| segment.page_bytes == Some(pool.page_bytes))
        .map(|segment| pages_required(segment.bytes, pool.page_bytes))
        .fold(0, u64::saturating_add);
    // Other programs, and servers that may not be seen, have what the servers that are seen have
    // not.
    let of_strangers = need.others.saturating_sub(on_pool);
    let of_others = on_pool.saturating_add(need.neighbours);
    let required = need.after_restart();
    let has = pool.persistent();
    let needed = huge_pages(required, pool.page_bytes);
    let strangers = match of_strangers {
        0 => String::new(),
        pages => format!(", including {pages} that other programs hold"),
    };
    let sum = format!("{servers}; all together need {needed}{strangers}; the pool has {has}");
    let finding = if required > has {
        Finding::warning(format!("{sum}: the one that starts last gets none"))
    } else if let Some(unseen) = unseen {
        Finding::new(Status::Unknown, format!("{servers}; {unseen}"))
    } else {
        Finding::ok(sum)
    };
    Ok(finding.with(json!({
        "other_servers": count,
        "hidden_servers": hidden,
        "page_size_bytes": pool.page_bytes,
        "own_pages": need.own,
        "others_pages": of_others,
        "strangers_pages": of_strangers,
        "persistent_pages": has,
    })))
}
