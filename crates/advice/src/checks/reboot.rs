//! Whether the next boot sets up the pool that the servers of this host need.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::{self, Decision},
    finding::{Finding, Judgment, whole},
    model::{
        apply::Blocked,
        demand::{self, Demands, PoolTarget, Who},
        forecast,
        machine::Machine,
        memory::{self, CommitLimit},
        next_boot, numa,
    },
};
use host::{
    linux::{
        boot::{NextBoot, Request},
        hugepages::Pool,
    },
    units::{Bytes, PageSize, Pages, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "reboot",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at the pool that the next boot sets up: `hugepages=` on the kernel command line, and
`vm.nr_hugepages` in sysctl.d, where the last line wins. systemd reads `/etc/sysctl.conf` only if
`/etc/sysctl.d` has a link to it. Debian 13 has no such link: after an upgrade from Debian 12, lines
in `/etc/sysctl.conf` have no effect, and belong in [a file in
`/etc/sysctl.d`](plan.md#for-the-next-boot).

| code | status | meaning |
|---|---|---|
| `set_at_boot`, `does_not_ask` | ok | the next boot sets up enough pages, or the server needs none |
| `no_such_size` | ok | the kernel does not have the page size of the server, so no boot can set its pages |
| `not_set_at_boot` | warning | nothing sets the pool at boot |
| `no_effect_at_boot` | warning | a line for the pool has no effect: systemd does not read its file, or the kernel refuses its value |
| `too_few_at_boot` | warning | the boot configuration sets fewer pages than are needed |
| `too_many_after_restart` | warning | pending settings need fewer pages, but the boot configuration still sets the pages of the running server |
| `boot_fell_short` | warning | this boot allocated fewer pages than the same configuration asked for |
| `too_many_at_boot` | warning | the pools would leave too little memory for other programs (with their present use), segments on small pages and the reserve, or too little of the commit limit with strict overcommit |

The check is `unknown`

- if something else might set the pool, such as tmpfiles.d, the active profile of tuned,
  `hugetlb_cma` or a file that cannot be read: look at the file that the finding names;
- if parameters on the kernel command line repeat a page size, name one that the kernel does not
  have, set the pages of each NUMA node, or are unusual in another way;
- if the server is bound to some NUMA nodes, because their pages at boot are unknown;
- in a container, where the files of the host are not visible.

The next boot can start this server with the present options of its command line, or from its files
alone. The start that needs more pages counts. If the options keep huge pages off, or are for pages
of another size, a start from the files counts only if they set `huge_pages = on`. It also does not
count if memory is too small for its pages.

At boot, pages that no visible server holds count only if the present line has room for them.

The check does not notice units or a kubelet that set the pool. An existing line is judged like a
new one. Settings of `vm.overcommit_*` in sysctl.d are not read. The check uses the present commit
limit, less the part that the pools take.

**What to do.** Run the line of the remedy. It adds a line to `/etc/sysctl.d/60-hugepages.conf`, or
replaces the line that applies today. Running it again is a no-op. No other file is edited. Pages of
a size other than the default can be set only on the kernel command line. The remedy shows the
parameters to write in the configuration of the boot loader, such as `hugepagesz=1G hugepages=4`,
and the parameters that they replace.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let next = machine.next_start();
    let sizes = demand::sizes_at_boot(machine, &next);
    if !next.asks_for_huge_pages() && sizes.is_empty() {
        return Ok(match too_much(machine) {
            Some(too_much) => too_much,
            None => Finding::does_not_ask(),
        });
    }
    let boot = machine.state.next_boot.as_ref()?;
    let findings = sizes.into_iter().map(|size| of_size(machine, boot, size));
    let findings = findings.collect::<Result<Vec<_>, _>>()?;
    // `max_by_key` returns the last of several equal findings.
    let worst = findings.into_iter().rev();
    let worst = worst.max_by_key(|finding| finding.status);
    worst.ok_or_else(|| "the huge page size is unknown".into())
}

/// Judges the pages of one size.
fn of_size(machine: &Machine, boot: &NextBoot, size: PageSize) -> Judgment {
    let next = machine.next_start();
    if machine.state.pools.is_ok() && machine.pool(size).is_none() {
        let text = format!("The kernel has no {size} pages to set at boot.");
        return Ok(Finding::ok("no_such_size", text));
    }
    let demands = Demands::at_boot(machine, size, &next);
    let demands = demands.ok_or_else(|| machine.why_use_is_unknown(size))?;
    if let Some(unknown) = boot.unknown_of(size.0).next() {
        return Ok(Finding::unknown(format!(
            "{unknown}, so the number of {size} pages at boot is unknown; {demands}."
        )));
    }
    let request = boot.pages(size.0);
    let finding = match (request, &boot.ineffective) {
        (Some(request), _) => of_line(machine, &demands, request),
        (None, Some(line)) => Finding::warning("no_effect_at_boot", format!("{line}; {demands}.")),
        (None, None) => Finding::warning(
            "not_set_at_boot",
            format!("Nothing sets {size} pages at boot; {demands}."),
        ),
    };
    Ok(finding.with(json!({
        "page_size_bytes": size.0,
        "asked_pages": request.map_or(0, |request| request.pages),
        "required_pages": demands.total().0,
        "source": request.map(|request| request.place.to_string()),
    })))
}

/// Judges the line that sets the pages of this size.
fn of_line(machine: &Machine, demands: &Demands, request: &Request) -> Finding {
    let size = demands.size;
    let asked = Pages(request.pages);
    let sets = format!("{} sets {} at boot", request.place, huge_pages(asked, size));
    if asked < demands.total() {
        return Finding::warning("too_few_at_boot", format!("{sets}; {demands}."));
    }
    if let Some(too_much) = too_much(machine) {
        return too_much;
    }
    if fell_short(machine, demands, asked) {
        let text = format!(
            "{sets}, but the pool has {}. Unless the line is newer than this boot, the next boot might also fall short; {demands}.",
            machine.pool(size).map_or(0, Pool::persistent)
        );
        return Finding::warning("boot_fell_short", text);
    }
    if let Some(for_more) = for_more(machine) {
        return for_more;
    }
    if machine.is_bound_to_nodes() {
        return Finding::unknown(format!(
            "{sets} on all NUMA nodes together; the server needs {} on those that it is allowed to use ({}).",
            demands.of_this_server(),
            numa::numbers(&numa::allowed_numbers(machine))
        ));
    }
    let held = demand::unexplained(machine, size);
    let least = demands.total() + held;
    let mut text = match asked > demands.total() {
        true => format!("{sets}; {demands}."),
        false => format!("{sets}."),
    };
    if asked < least {
        text = format!(
            "{text} {least} are needed if the {held} that no visible server holds (hugeinfo_holders) are also needed after the boot."
        );
    }
    // Pages of other servers that `demands` leaves out, because memory is too small for them.
    let all = Demands::with_all(machine, size, &machine.next_start());
    let of = |sum: fn(&Demands) -> Pages| all.as_ref().map_or(Pages(0), sum) - sum(demands);
    let more = of(Demands::asked_by_others);
    if more > Pages(0) && asked < demands.total() + more && !machine.is_muted("other_servers") {
        text = format!(
            "{text} {more} more {} needed if other servers that ask for huge pages start first: see other_servers.",
            more.verb("is", "are")
        );
    }
    let more = of(|demands| demands.sum(|who| *who == Who::FromFiles));
    if more > Pages(0) && asked < demands.total() + more {
        text = format!(
            "{text} {more} more {} needed if this server starts without the options of its command line, but memory is too small for them.",
            more.verb("is", "are")
        );
    }
    Finding::ok("set_at_boot", text)
}

/// Whether this boot requested the same number, and the pool has fewer pages than are needed.
fn fell_short(machine: &Machine, demands: &Demands, asked: Pages) -> bool {
    let this_boot = machine.this_boot();
    let before = this_boot.and_then(|boot| boot.pages(demands.size.0));
    let pool = machine.pool(demands.size);
    before.is_some_and(|before| Pages(before.pages) == asked)
        && pool.is_some_and(|pool| Pages(pool.persistent()) < demands.total())
}

/// A line that was made for the running server, if the pending settings need fewer pages.
fn for_more(machine: &Machine) -> Option<Finding> {
    let next = machine.next_start();
    machine.pools().find_map(|pool| {
        let size = PageSize(pool.page_bytes);
        let target = PoolTarget::of(machine, size, &next)?;
        let pages = forecast::lower_line(machine, &target)?;
        let request = machine.next_boot()?.pages(size.0)?;
        Some(Finding::warning(
            "too_many_after_restart",
            format!(
                "{} sets {} at boot; with the pending settings, {pages} {} enough.",
                request.place,
                huge_pages(Pages(request.pages), size),
                pages.verb("is", "are")
            ),
        ))
    })
}

/// Lines that set up more than the host can hold in addition to the memory that other programs use,
/// whether this server asks for huge pages or not.
fn too_much(machine: &Machine) -> Option<Finding> {
    let boot = machine.next_boot()?;
    let next = machine.next_start();
    let all = memory::in_pools_at_boot(machine, None);
    let is_known = memory::pools_at_boot(machine).all(|(_, pages)| pages.is_some());
    let needed = demand::sizes_at_boot(machine, &next).first().copied();
    let size = needed.or(machine.size_asked_for(&next));
    let request = size.and_then(|size| boot.pages(size.0));
    let asked = Pages(request.map_or(0, |request| request.pages));
    let sets = match request.zip(size) {
        Some((request, size)) if asked * size == all => {
            format!("{} sets {} at boot", request.place, huge_pages(asked, size))
        }
        _ => format!("The next boot sets up {all} in huge pages"),
    };
    let demands = size.and_then(|size| Demands::at_boot(machine, size, &next));
    // With fewer pages than are needed, no server is certain to leave its small pages.
    let blocked = match demands.filter(|demands| asked >= demands.total()) {
        Some(demands) => next_boot::blocked(machine, &demands, asked),
        None => {
            let limit = CommitLimit::with_pools(machine, all);
            let is_low = |limit: &CommitLimit| limit.missing() > Bytes(0);
            let limit = limit.filter(|limit| all > memory::in_pools(machine) && is_low(limit));
            memory::missing_at_boot(machine, all, |_| false)
                .filter(|missing| *missing > Bytes(0))
                .map(|missing| Blocked::Memory { missing })
                .or(limit.map(Blocked::CommitLimit))
        }
    };
    let beyond = match blocked? {
        Blocked::Memory { missing } => {
            let most = memory::up_to(memory::is_not_faulted_in_a_bound(machine));
            format!("{most}{missing} more than other programs leave")
        }
        Blocked::CommitLimit(limit) => format!(
            "which would leave a CommitLimit of {}; programs need {}",
            limit.limit,
            limit.needed()
        ),
        _ => return None,
    };
    is_known.then(|| Finding::warning("too_many_at_boot", format!("{sets}, {beyond}.")))
}

/// The decision about the next boot, if no line is missing.
pub(crate) fn decision(machine: &Machine) -> Option<Decision> {
    if machine.is_muted(CHECK.name) {
        return Some(Decision::Text(
            "remove reboot from pg_hugeinfo.muted_checks: while it is muted, no remedy changes the next boot"
                .to_owned(),
        ));
    }
    let next = machine.next_start();
    let own = machine.size_asked_for(&next);
    let others = demand::sizes_at_boot(machine, &next).into_iter();
    let others = others.filter(|size| own != Some(*size));
    let mut sizes = own.into_iter().chain(others);
    sizes.find_map(|size| decision_about(machine, size))
}

fn decision_about(machine: &Machine, size: PageSize) -> Option<Decision> {
    let asked = machine.next_boot()?.pages(size.0);
    let asked = Pages(asked.map_or(0, |request| request.pages));
    let demands = Demands::at_boot(machine, size, &machine.next_start())?;
    if let Some(blocked) = next_boot::blocked(machine, &demands, asked) {
        return Some(decision::for_boot(machine, &demands, blocked));
    }
    let why = "reboot and check the pool, or configure fewer pages: this boot did not allocate all of them";
    fell_short(machine, &demands, asked).then(|| Decision::Text(why.to_owned()))
}
