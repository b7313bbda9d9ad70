//! Whether the next boot sets up the pool that the servers of this host need.

use serde_json::json;

use super::{Check, Cure};
use crate::{
    check::{Finding, Judgment, whole},
    decision::{Decision, about_commit_limit_at_boot},
    model::{demand::Demands, machine::Machine, memory, numa},
    render,
};
use host::{
    linux::{boot::Request, hugepages::Pool},
    units::{Bytes, PageSize, Pages, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "reboot",
    judge,
    cure: Cure::Boot,
    needs_running_server: false,
    counts_for_server: |_| false,
    is_about_start: false,
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
| `not_read_at_boot` | warning | a file sets the pool, but systemd does not read this file |
| `too_few_at_boot` | warning | the boot configuration sets fewer pages than are needed |
| `boot_fell_short` | warning | this boot allocated fewer pages than the same configuration asked for |
| `low_commit_limit_at_boot` | warning | with strict overcommit (`vm.overcommit_memory = 2`) and a ratio, the pools of the next boot would leave programs less than they have committed. Settings that sysctl.d does not set count as they are now |
| `too_many_at_boot` | warning | the pools would leave less than 10% of RAM |

The check is `unknown`

- if something else might set the pool, such as tmpfiles.d, the active profile of tuned,
  `hugetlb_cma` or a file that cannot be read;
- if parameters on the kernel command line repeat a page size, set the pages of each NUMA node, or
  are unusual in another way;
- if the server is bound to some NUMA nodes: which pages they get at boot is unknown;
- in a container, where the files of the host are not visible.

It does not notice units or a kubelet that set the pool.

**What to do.** Run the line of the remedy. It adds a line to `/etc/sysctl.d/60-hugepages.conf`, or
replaces the line that applies today. Running it again is a no-op. Pages of a size other than the
default can be set only on the kernel command line. The remedy shows the parameters to write in the
configuration of the boot loader, such as `hugepagesz=1G hugepages=4`, and the parameters that they
replace. For `low_commit_limit_at_boot`, raise `vm.overcommit_ratio` in sysctl.d, add swap, or lower
the pools.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let boot = machine.state.next_boot.as_ref();
    if let Some(too_much) = boot.ok().and_then(|_| too_much(machine)) {
        return Ok(too_much);
    }
    let next = machine.next_start();
    if !next.asks_for_huge_pages() {
        return Ok(Finding::does_not_ask());
    }
    let boot = boot?;
    let size = machine
        .size_asked_for(&next)
        .ok_or("the huge page size is unknown")?;
    if machine.state.pools.is_ok() && machine.pool(size).is_none() {
        let text = format!("The kernel has no {size} pages to set at boot.");
        return Ok(Finding::ok("no_such_size", text));
    }
    let demands = Demands::at_boot(machine, size, &next);
    let demands = demands.ok_or("the main shared memory segment cannot be read")?;
    let default = machine.default_bytes();
    if let Some(unknown) = boot.unknown_of(size.0, default).next() {
        return Ok(Finding::unknown(format!(
            "{unknown}, so the number of {size} pages at boot is unknown; {demands}."
        )));
    }
    let request = boot.pages(size.0, default);
    let asked = request.map_or(Pages(0), |request| Pages(request.pages));
    let required = demands.total();
    let fell_short = fell_short(machine, size, asked, required);
    let low = demands.low_commit_limit_at_boot(machine, asked);
    let low = low.map(|then| {
        format!(
            "a CommitLimit of {}; programs need {}",
            then.limit,
            then.needed()
        )
    });
    let finding = match request {
        Some(request) if asked < required => Finding::warning(
            "too_few_at_boot",
            format!(
                "{} sets {} at boot; {demands}.",
                request.place,
                huge_pages(asked, size)
            ),
        ),
        Some(request) if low.is_some() => Finding::warning(
            "low_commit_limit_at_boot",
            format!(
                "{} sets {} at boot. With strict overcommit, the pools of the next boot leave {}.",
                request.place,
                huge_pages(asked, size),
                low.unwrap_or_default()
            ),
        ),
        Some(request) if fell_short => Finding::warning(
            "boot_fell_short",
            format!(
                "{} sets {} at boot, but the pool has {}. Unless the line is newer than this boot, the next boot might also fall short; {demands}.",
                request.place,
                huge_pages(asked, size),
                machine.pool(size).map_or(0, Pool::persistent)
            ),
        ),
        Some(request) if machine.is_bound_to_nodes() => Finding::unknown(format!(
            "{} sets {} at boot on all NUMA nodes together; the server needs {} on those that it is allowed to use ({}).",
            request.place,
            huge_pages(asked, size),
            demands.of_this_server(),
            render::numbers(&numa::allowed_numbers(machine))
        )),
        Some(request) => Finding::ok(
            "set_at_boot",
            format!(
                "{} sets {} at boot.",
                request.place,
                huge_pages(asked, size)
            ),
        ),
        None => match &boot.not_read {
            Some(Request { place, .. }) => Finding::warning(
                "not_read_at_boot",
                format!(
                    "{} sets {}, but systemd does not read this file (Debian 13 and newer); {demands}.",
                    place, place.text
                ),
            ),
            None => Finding::warning(
                "not_set_at_boot",
                format!("Nothing sets {size} pages at boot; {demands}."),
            ),
        },
    };
    Ok(finding.with(json!({
        "page_size_bytes": size.0,
        "asked_pages": asked.0,
        "required_pages": required.0,
        "source": request.map(|request| request.place.to_string()),
    })))
}

/// Whether this boot requested the same number, and the pool has fewer pages than are needed.
fn fell_short(machine: &Machine, size: PageSize, asked: Pages, required: Pages) -> bool {
    let default = machine.default_bytes();
    let this_boot = machine.this_boot();
    let before = this_boot.and_then(|boot| boot.pages(size.0, default));
    let pool = machine.pool(size);
    before.is_some_and(|before| Pages(before.pages) == asked)
        && pool.is_some_and(|pool| Pages(pool.persistent()) < required)
}

/// Pools of the next boot that leave too little RAM.
fn too_much(machine: &Machine) -> Option<Finding> {
    let (all, ram) = (oversized(machine)?.0, memory::host_ram(machine)?);
    let small = match on_small_pages(machine) {
        small if small > ram - all.bytes => format!(" The segment takes {small} on small pages."),
        _ => String::new(),
    };
    all.is_known.then(|| {
        Finding::warning(
            "too_many_at_boot",
            format!(
                "The next boot sets up {} in huge pages and leaves {} of {ram} RAM.{small}",
                all.bytes,
                ram - all.bytes
            ),
        )
    })
}

/// The pools of the next boot, and the bytes that they can have, if they are larger. A segment that
/// stays on small pages has to fit into the rest of RAM.
fn oversized(machine: &Machine) -> Option<(AtBoot, Bytes)> {
    let (all, most) = (at_boot(machine)?, memory::most_in_pools(machine)?);
    let most = most.min(memory::host_ram(machine)? - on_small_pages(machine));
    (all.bytes > most).then_some((all, most))
}

/// The segment of the next start, if it stays on small pages on purpose.
fn on_small_pages(machine: &Machine) -> Bytes {
    let next = machine.next_start();
    match next.asks_for_huge_pages() {
        true => Bytes(0),
        false => Bytes(next.shared_memory_bytes),
    }
}

/// All pools of the next boot.
struct AtBoot {
    bytes: Bytes,
    /// Otherwise, unknown pools count as large as they are now.
    is_known: bool,
}

/// All pools of the next boot. `None`: the boot configuration cannot be read.
fn at_boot(machine: &Machine) -> Option<AtBoot> {
    let boot = machine.next_boot()?;
    let default = machine.default_bytes();
    let mut all = AtBoot {
        bytes: Bytes(0),
        is_known: true,
    };
    for pool in machine.pools() {
        let pages = if boot.is_unknown(pool.page_bytes, default) {
            all.is_known = false;
            pool.persistent()
        } else {
            let request = boot.pages(pool.page_bytes, default);
            request.map_or(0, |request| request.pages)
        };
        all.bytes = all.bytes + Pages(pages) * PageSize(pool.page_bytes);
    }
    Some(all)
}

/// The lines that set pools at the next boot.
fn places(machine: &Machine) -> Vec<String> {
    let boot = machine.next_boot();
    let default = machine.default_bytes();
    let set = machine.pools().filter_map(|pool| {
        let request = boot?.pages(pool.page_bytes, default)?;
        (request.pages > 0).then(|| {
            let size = PageSize(pool.page_bytes);
            format!(
                "{} sets {}",
                request.place,
                huge_pages(Pages(request.pages), size)
            )
        })
    });
    set.collect()
}

/// The decision about pools of the next boot that leave too little RAM once it is changed. `None`:
/// they leave enough. Unknown pools count as large as they are now.
pub(crate) fn too_much_at_boot(machine: &Machine, changed: &Machine) -> Option<Decision> {
    let (all, most) = oversized(changed)?;
    Some(Decision::Text(format!(
        "lower the pools of the next boot by at least {} MB ({})",
        (all.bytes - most).megabytes_at_least(),
        places(machine).join(", ")
    )))
}

/// The decision about the next boot, if no line is missing.
pub(crate) fn decision(machine: &Machine) -> Option<Decision> {
    too_much_at_boot(machine, machine).or_else(|| {
        let next = machine.next_start();
        let size = machine.size_to_map(&next)?;
        let asked = Pages(machine.next_boot()?.pages(size.0, machine.default_bytes())?.pages);
        let demands = Demands::at_boot(machine, size, &next)?;
        let needed = demands.total();
        if asked >= needed
            && let Some(limit) = about_commit_limit_at_boot(machine, &demands, asked)
        {
            let places = places(machine);
            // Pages that are set evenly can be needed on the nodes of a bound server.
            let can_lower =
                !machine.is_bound_to_nodes() && (asked > needed || places.len() > 1);
            return Some(match can_lower {
                true => Decision::Text(format!(
                    "lower the pools ({}; {} {} needed), or {limit}",
                    places.join(", "),
                    huge_pages(needed, size),
                    needed.verb("is", "are")
                )),
                false => limit,
            });
        }
        let why =
            "reboot and check the pool, or configure fewer pages: this boot did not allocate all of them".to_owned();
        fell_short(machine, size, asked, needed).then_some(Decision::Text(why))
    })
}
