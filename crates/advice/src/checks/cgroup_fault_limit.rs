//! A cgroup that limits pages faulted in, but not reservations: `mmap` succeeds, and the server
//! crashes by SIGBUS, or reads come back short, once enough of its memory is in use.

use serde_json::{Value, json};

use super::{
    definition::{Check, Cure},
    restart,
};
use crate::{
    decision::{self, Decision},
    finding::{Finding, Judgment, Unknown},
    model::{
        demand,
        limits::{self, Breach, breaches},
        machine::Machine,
        start::{self, Reason, StartOutcome},
        step::Counts,
    },
};
use host::{
    escape,
    server::state::Backing,
    units::{PageSize, Pages, capitalized, kubernetes_resource},
};

pub(super) const CHECK: Check = Check {
    name: "cgroup_fault_limit",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    // hugeinfo_status does not read the counter.
    counts_for_server: |machine| !is_limited_above(machine),
    docs: "\
Looks at the limits of the server's cgroups on huge pages that can be faulted in (v1
`hugetlb.SIZE.limit_in_bytes`, v2 `hugetlb.SIZE.max`), and at the pod's limit, [if the server knows
it](kubernetes.md#5-tell-the-server-the-limit-of-its-pod). `mmap` only reserves pages, so a server
above the limit starts and looks healthy. Later a process dies of SIGBUS, or a query fails with
`could not read block ... read only 7296 of 8192 bytes` or `could not read block ...: Bad address`,
which looks like data corruption. If cgroups above that of the server are hidden, as in a container,
it also looks at the counter of refused pages (v2 `hugetlb.SIZE.events`). `hugeinfo_status` does not
read this counter.

| code | status | meaning |
|---|---|---|
| `cgroup_bomb` | critical | the server has mapped more than the limit allows |
| `cgroup_bomb_at_restart` | warning | the next start would map more than the limit allows, certainly or with `vm.nr_overcommit_hugepages` |
| `limit_above` | warning | the kernel has refused pages, and no visible limit can be the reason, because all of them allow the whole pool: a limit above the visible cgroups is too low. The counter also includes refused reservations, after which a start falls back |
| `limited` | ok | the limit is too low, but a restart would not get huge pages |
| `not_limited`, `no_huge_pages` | ok | no limit is too low |

**What to do.** Raise the limit now; in Kubernetes it is `hugepages-2Mi` of the pod. Or lower
`shared_buffers`. This limit does no harm if the limit on reservations (`rsvd`) is equally low,
because `mmap` then fails immediately, and `huge_pages = try` falls back.
",
};

fn judge(machine: &Machine) -> Judgment {
    match of_mapped(machine)? {
        Some(finding) => Ok(finding),
        None => of_next_start(machine),
    }
}

/// Judges the pages that the server has mapped. `None`: no limit is too low for them.
fn of_mapped(machine: &Machine) -> Result<Option<Finding>, Unknown> {
    let Backing::HugePages(size) = machine.backing() else {
        return Ok(None);
    };
    let crashes = "The server crashes (SIGBUS, or short reads) when it uses more than the limit";
    let held = machine.pages_held(size).unwrap_or_default();
    if let Some(breach) = nearest(machine, size, held)? {
        let text = format!(
            "{}, but {} is mapped. {crashes}.",
            capitalized(&allows(&breach, size)),
            breach.least,
        );
        let finding = Finding::critical("cgroup_bomb", text).with(evidence(&breach, size));
        return Ok(Some(finding));
    }
    Ok(refused(machine, size).map(|(text, evidence)| {
        let text = format!("{text} {crashes}; {} is mapped.", held * size);
        Finding::warning("limit_above", text).with(evidence)
    }))
}

/// Whether the running server crashes when it uses more than a limit.
pub(super) fn is_bomb(machine: &Machine) -> bool {
    matches!(of_mapped(machine), Ok(Some(_)))
}

/// Whether it would do so after a restart.
pub(super) fn is_bomb_after_restart(machine: &Machine) -> bool {
    of_next_start(machine).is_ok_and(|finding| finding.status.needs_attention())
}

/// Refusals that no visible limit explains.
fn refused(machine: &Machine, size: PageSize) -> Option<(String, Value)> {
    let count = limits::refused_by_hidden_limit(machine, size);
    let times = match count {
        0 => return None,
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let text = format!(
        "The kernel refused {size} pages to this cgroup {times}. No visible limit explains this, so a hidden limit above the cgroup is too low."
    );
    let evidence = json!({ "page_size_bytes": size.0, "refused": count });
    Some((text, evidence))
}

/// Whether the finding is about a limit that is not visible.
fn is_limited_above(machine: &Machine) -> bool {
    let has_refused = machine
        .whole()
        .is_some_and(|facts| !facts.refused_pages.is_empty());
    has_refused && judge(machine).is_ok_and(|finding| finding.code == "limit_above")
}

/// The decision about a limit that no step raises, or about a next start that ends the danger.
pub(super) fn decision(machine: &Machine) -> Option<Decision> {
    let next = machine.next_start();
    let now = machine.backing().huge_page();
    if is_bomb(machine) {
        if let Some(question) = restart::decision(machine) {
            return Some(question);
        }
        // The plan is about the pages of the next start.
        if let Some(now) = now
            && machine.size_to_map(&next).is_some_and(|size| size != now)
            && !limits::to_raise(machine, now, Pages(0)).is_empty()
        {
            return Some(decision::raise_limit(machine, now, Pages(0)));
        }
    }
    // Pages of the pending size can be those that were refused.
    let mut sizes = now.into_iter().chain(machine.size_asked_for(&next));
    let size = sizes.find(|size| refused(machine, *size).is_some())?;
    let held = machine.pages_held(size).unwrap_or_default();
    let bytes = held.max(demand::pages_of_next_start(machine, size, &next)) * size;
    Some(Decision::Text(format!(
        "raise the limit above this cgroup to at least {} MB (in Kubernetes, the pod's {}), or lower shared_buffers",
        bytes.megabytes_at_least(),
        kubernetes_resource(bytes, size)
    )))
}

/// Judges the pages that the next start would map.
pub(super) fn of_next_start(machine: &Machine) -> Judgment {
    let next = machine.next_start();
    let Some(size) = machine.size_asked_for(&next) else {
        machine.state.meminfo.as_ref()?;
        return Ok(Finding::ok(
            "no_huge_pages",
            "This kernel has no huge pages to limit.",
        ));
    };
    machine.state.hugetlb.as_ref()?;
    let pages = demand::pages_of_next_start(machine, size, &next);
    let Some(breach) = nearest(machine, size, pages)? else {
        if let Some((text, evidence)) = refused(machine, size) {
            let start = restart::name_of_start(machine);
            let finding = match next.asks_for_huge_pages() {
                false => Finding::ok(
                    "limited",
                    format!("{text} This does no harm, because {start} would not get huge pages."),
                ),
                true => Finding::warning(
                    "limit_above",
                    format!(
                        "{text} If {start} gets huge pages, the server would crash (SIGBUS, or short reads) when it uses more than the limit; {} would be mapped.",
                        pages * size
                    ),
                ),
            };
            return Ok(finding.with(evidence));
        }
        let text = format!("No cgroup limits {size} pages for this server.");
        return Ok(Finding::ok("not_limited", text).with(json!({ "page_size_bytes": size.0 })));
    };
    let allows = allows(&breach, size);
    let mapped = format!(
        "{}, but {} would be mapped.",
        capitalized(&allows),
        breach.least
    );
    let start = restart::name_of_start(machine);
    let crashes =
        "the server would crash (SIGBUS, or short reads) when it uses more than the limit";
    let finding = match start::outcome(machine) {
        StartOutcome::HugePages(_) => Finding::warning(
            "cgroup_bomb_at_restart",
            format!("{mapped} After {start}, {crashes}."),
        ),
        // The limit is on pages faulted in: the start can reserve pages that it cannot use.
        StartOutcome::Unknown(Reason::Overcommit { .. }) => Finding::warning(
            "cgroup_bomb_at_restart",
            format!("{mapped} If {start} gets surplus huge pages, {crashes}."),
        ),
        StartOutcome::Unknown(reason) => {
            return Err(Unknown(format!(
                "{allows}. Only a start shows whether {} would be mapped. {reason}",
                breach.least
            )));
        }
        StartOutcome::SmallPages(..) | StartOutcome::Fails(..) => Finding::ok(
            "limited",
            format!("{mapped} This does no harm, because {start} would not get huge pages."),
        ),
    };
    Ok(finding.with(evidence(&breach, size)))
}

/// The nearest limit that is too low for certain.
fn nearest(machine: &Machine, size: PageSize, pages: Pages) -> Result<Option<Breach<'_>>, Unknown> {
    machine.state.hugetlb.as_ref()?;
    let breaches = breaches(machine, size, pages, Counts::Faults);
    let breaches = breaches.ok_or(Unknown::from(
        "the main shared memory segment cannot be read",
    ))?;
    let (certain, possible): (Vec<_>, Vec<_>) = breaches.into_iter().partition(Breach::is_certain);
    if let Some(nearest) = certain.into_iter().next() {
        return Ok(Some(nearest));
    }
    if let Some(nearest) = possible.first() {
        return Err(Unknown(format!(
            "{}, and up to {} might be needed: this kernel does not report the use by others",
            allows(nearest, size),
            nearest.most
        )));
    }
    let mut invalid = machine.facts.invalid_limits.iter();
    match invalid.find(|invalid| invalid.page_bytes == size.0) {
        Some(invalid) => Err(Unknown(format!(
            "the server's environment variable {} is not a number of bytes: \"{}\"",
            invalid.variable, invalid.value
        ))),
        None => Ok(None),
    }
}

fn allows(breach: &Breach<'_>, size: PageSize) -> String {
    let name = escape::name(&breach.group.directory);
    let whose = if breach.group.is_told {
        format!("the pod's limit (environment variable {name})")
    } else {
        format!("cgroup {name}")
    };
    format!("{whose} allows {} of {size} pages", breach.limit)
}

fn evidence(breach: &Breach<'_>, size: PageSize) -> Value {
    let name = escape::name(&breach.group.directory);
    let is_told = breach.group.is_told;
    json!({
        "page_size_bytes": size.0,
        "cgroup": (!is_told).then_some(&name),
        "environment_variable": is_told.then_some(&name),
        "cgroup_limit_bytes": breach.limit.0,
        "wanted_bytes": breach.least.0,
    })
}
