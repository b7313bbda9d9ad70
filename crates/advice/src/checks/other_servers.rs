//! Whether the pool is enough for all PostgreSQL servers of this host.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::{self, Decision},
    desired,
    finding::{Finding, Judgment, Unknown, whole},
    model::{
        demand::{self, Demands, Hidden, When, Who},
        machine::Machine,
        numa,
    },
};
use host::{
    escape,
    server::{state::HugePages, visibility::Visibility},
    units::{Bytes, PageSize, Pages, capitalized, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "other_servers",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at the other PostgreSQL servers of this host (`hugeinfo_instances`), and at whether the pool
is large enough for all. A server counts if it holds huge pages, or if it is known to ask for them:
by its command line, by `postgresql.auto.conf`, or by `postgresql.conf`. A server with `huge_pages =
off` does not count. If this setting or `huge_page_size` is unknown, the server does not count, and
the finding states this: `140 more are needed if the server on port 5433 is to use huge pages.`
Included files are not read. If one of them could decide the setting, the finding adds
`look at FILE`. A server whose cgroup allows it too few pages does not count either, because with
the pages it would start and crash later. The finding recommends raising that limit first. The check
looks at the pool of this server, unless only another pool is too small for servers that ask for its
pages.

| code | status | meaning |
|---|---|---|
| `alone`, `enough_for_all` | ok | there is no other server, or the pool is large enough |
| `pool_short` | ok | the pool is too small, and only this server lacks pages |
| `pool_short_for_all` | warning | the pool is too small for all: the last server to start gets no huge pages, and does not start if it has `huge_pages = on` |

The check never changes the status of this server. If the next start of another server would fail,
the finding states this. The checks of that server report it as critical.

The check is `unknown` if processes of other users are hidden (`hidepid`, or `ProtectProc` of
systemd), or if the memory of another server cannot be read. In a container, it covers only the
visible servers.

**What to do.** Set the pool to the sum, then restart the servers that the remedy names: they get
their pages when they restart. If memory cannot hold the pages of a server in addition to its
present segment, stop this server before you add its pages.
",
};

/// Maximum number of servers with unknown settings that the text lists by name.
const MOST_NAMED: usize = 3;

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    let others = machine.state.other_servers.as_ref()?;
    let place = match facts.visibility {
        Visibility::Host => "on this host",
        Visibility::Namespace | Visibility::Hidden => "among the visible processes",
    };
    let count = others.iter().filter(|other| !other.is_stopped).count();
    // Servers in other containers are expected. The text has "among the visible processes" for
    // them.
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
    let bad_counter = || machine.pools().find_map(|pool| pool.bad_counter());
    let pool_unknown = || match bad_counter() {
        Some(absent) => Unknown(format!("{servers} {absent}")),
        None => Unknown(format!("{servers} The pool cannot be read")),
    };
    let demands = demands_of_all(machine).ok_or_else(pool_unknown)?;
    let size = demands.size;
    let needed = demands.total();
    let pool = machine.pool(size).ok_or_else(pool_unknown)?;
    let has = Pages(pool.persistent());
    let mut unknown = demand::with_unknown_request(machine, size);
    unknown.sort_by_key(|server| !server.is_limited);
    let mut text = format!(
        "{servers} The pool has {}; {demands}.",
        huge_pages(has, size)
    );
    let asked = demands.asked_by_others();
    for server in unknown.iter().take(MOST_NAMED) {
        let verb = server.pages.verb("is", "are");
        let note = match &server.look_at {
            _ if server.is_limited => {
                ", but a hugetlb limit of its cgroup is lower: raise that limit first".to_owned()
            }
            Some(file) => format!(" (look at {})", escape::name(OsStr::from_bytes(file))),
            None => String::new(),
        };
        text = format!(
            "{text} {} more {verb} needed if {} is to use huge pages{note}.",
            server.pages, server.name
        );
    }
    if let Some(rest) = unknown.get(MOST_NAMED..).filter(|rest| !rest.is_empty()) {
        let pages: Pages = rest.iter().map(|server| server.pages).sum();
        text = format!(
            "{text} Another {pages} {} needed for {} other servers.",
            pages.verb("is", "are"),
            rest.len()
        );
    }
    let finding = if is_short(machine, &demands) {
        Finding::warning(
            "pool_short_for_all",
            format!(
                "{text} The last server to start would get no huge pages.{}",
                fails_without(&demands)
            ),
        )
    } else if let Some(hidden) = hidden {
        Finding::unknown(format!("{text} There could be more servers: {hidden}."))
    } else if needed > has {
        // Other checks judge the pages of this server.
        Finding::ok("pool_short", text)
    } else {
        Finding::ok(
            "enough_for_all",
            format!("{text}{}", idle_until_restart(&demands)),
        )
    };
    Ok(finding.with(json!({
        "other_servers": count,
        "hidden_servers": others.iter().filter(|server| server.segment.is_none()).count(),
        "page_size_bytes": size.0,
        "own_pages": demands.of_this_server().0,
        "others_pages": (demands.sum(|who| matches!(who, Who::OtherServer(_))) + asked).0,
        "other_programs_pages": demands.sum(|who| *who == Who::OtherPrograms).0,
        "persistent_pages": has.0,
    })))
}

/// A server that would not start without huge pages, as a sentence with a leading space.
fn fails_without(demands: &Demands) -> String {
    let insists = demands.all.iter().find_map(|demand| match demand.who {
        Who::Asking(server, HugePages::On) => Some(server),
        _ => None,
    });
    insists.map_or_else(String::new, |server| {
        format!(" With huge_pages = on, the next start of {server} would then fail.")
    })
}

/// The servers whose pages stay idle until they restart.
fn idle_until_restart(demands: &Demands) -> String {
    match demands.asking().collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [(server, _)] => format!(
            " {} gets its pages when it restarts.",
            capitalized(&server.to_string())
        ),
        servers => format!(
            " {} servers get their pages when they restart.",
            servers.len()
        ),
    }
}

/// The demands on a pool with all servers that ask for huge pages, whether there is memory for all
/// of them or not: the pool of this server, or of the default size, unless only another pool is too
/// small for servers that ask for its pages.
fn demands_of_all(machine: &Machine) -> Option<Demands> {
    let next = machine.next_start();
    let size = machine
        .size_asked_for(&next)
        .filter(|size| machine.pool(*size).is_some());
    let size = size.or(machine.default_size())?;
    let of_all = |size| Demands::with_asking(machine, size, &next, When::AfterRestart);
    let sizes = machine.pools().map(|pool| PageSize(pool.page_bytes));
    std::iter::once(size)
        .chain(sizes)
        .filter_map(of_all)
        .find(|demands| is_short(machine, demands))
        .or_else(|| of_all(size))
}

/// Whether the pool is too small for servers that ask for its pages.
fn is_short(machine: &Machine, demands: &Demands) -> bool {
    let has = machine
        .pool(demands.size)
        .map_or(0, |pool| pool.persistent());
    demands.asked_by_others() > Pages(0) && demands.total() > Pages(has)
}

/// The decision that remains once this server has its pages.
fn decision(machine: &Machine) -> Option<Decision> {
    if machine.is_muted(CHECK.name) {
        return Some(Decision::Text(
            "remove other_servers from pg_hugeinfo.muted_checks: while it is muted, no remedy adds pages for other servers"
                .to_owned(),
        ));
    }
    // The pages of this server are those after its plan.
    let wanted = desired::wanted_settings(machine).ok()?;
    let machine = &machine.with_next_start(wanted);
    let demands = demands_of_all(machine)?;
    let size = demands.size;
    let pages = demands.total();
    let has = Pages(machine.pool(size)?.persistent());
    let next = machine.next_start();
    let counted = Demands::of(machine, size, &next, When::AfterRestart)?;
    if counted.asked_by_others() == demands.asked_by_others() {
        // Memory does not keep the pool from growing. Pages on the nodes of a bound server come
        // first.
        let own = numa::lacking_on_allowed(machine, size, demands.of_this_server())?;
        let missing = pages - has - own;
        return (own > Pages(0) && missing > Pages(0))
            .then(|| decision::about_other_nodes(missing, size));
    }
    let missing = demands.missing_now(machine);
    let fits = missing.unwrap_or_default() == Bytes(0);
    let servers = demands.asking().map(|(server, _)| server).collect();
    (pages > has).then_some(Decision::OtherServers {
        servers,
        size,
        pages,
        fits,
    })
}
