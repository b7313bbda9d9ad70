//! Whether the pool is enough for all PostgreSQL servers of this host.

use serde_json::json;

use crate::{
    advice::{
        check::{Finding, Judgment, Unknown, env},
        decision::Decision,
    },
    model::{
        demand::{self, Demands, Hidden, Who},
        machine::Machine,
        memory,
        units::{PageSize, Pages, huge_pages},
    },
    server::sight::Sight,
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    let env = env(machine)?;
    let others = env.neighbours.as_ref()?;
    let place = match env.sight {
        Sight::Host => "on this host",
        Sight::Namespace | Sight::Hidden => "as far as visible",
    };
    let count = others.len();
    // Servers in other containers are expected, and said by "as far as visible".
    let hidden =
        demand::hidden_servers(machine).filter(|hidden| *hidden != Hidden::OtherNamespaces);
    if count == 0 {
        if let Some(hidden) = hidden {
            return Err(Unknown(hidden.to_string()));
        }
        let text = format!("No other PostgreSQL server runs {place}.");
        return Ok(Finding::ok("alone", text).with(json!({ "other_servers": 0 })));
    }
    let servers = match count {
        1 => format!("Another server runs {place}."),
        count => format!("{count} other servers run {place}."),
    };
    let pool_unknown = || Unknown(format!("{servers} The pool cannot be seen"));
    let (size, demands) = demands_of_all(machine).ok_or_else(pool_unknown)?;
    let needed = demands.total();
    let pool = machine.pool(size).ok_or_else(pool_unknown)?;
    let has = Pages(pool.persistent());
    let unknown = demand::of_unknown_wish(machine, size);
    let mut text = format!(
        "{servers} The pool has {}; {demands}.",
        huge_pages(has, size)
    );
    let asked = demands.asked_by_others();
    for (name, pages) in unknown.iter().take(3) {
        text = format!("{text} {pages} more are needed if {name} is to use huge pages.");
    }
    let finding = if asked > Pages(0) && needed > has {
        Finding::warning(
            "pool_short_for_all",
            format!("{text} The last one to start gets none."),
        )
    } else if let Some(hidden) = hidden {
        Finding::unknown(format!("{text} There could be more: {hidden}."))
    } else if needed > has {
        // Other checks judge the pages of this server.
        Finding::ok("pool_short", text)
    } else {
        Finding::ok("enough_for_all", text)
    };
    Ok(finding.with(json!({
        "other_servers": count,
        "hidden_servers": others.iter().filter(|server| server.segment.is_none()).count(),
        "page_size_bytes": size.0,
        "own_pages": demands.of_this_server().0,
        "others_pages": (demands.sum(|who| matches!(who, Who::OtherServer(_))) + asked).0,
        "strangers_pages": demands.sum(|who| *who == Who::OtherPrograms).0,
        "persistent_pages": has.0,
    })))
}

/// The demands on the pool of this server, or of the default size, with all servers that ask for
/// huge pages, whether there is memory for all of them or not.
fn demands_of_all(machine: &Machine) -> Option<(PageSize, Demands)> {
    let next = machine.next_start();
    let size = machine
        .size_asked_for(&next)
        .filter(|size| machine.pool(*size).is_some());
    let size = size.or(machine.default_size())?;
    let demands = Demands::with_all(machine, size, &next)?;
    Some((size, demands))
}

/// What remains once this server has its pages.
pub(super) fn decision(machine: &Machine) -> Option<Decision> {
    let (size, demands) = demands_of_all(machine)?;
    let pages = demands.total();
    let has = Pages(machine.pool(size)?.persistent());
    let fits = memory::most_in_pools(machine).is_none_or(|most| pages * size <= most);
    (pages > has).then_some(Decision::OtherServers { size, pages, fits })
}
