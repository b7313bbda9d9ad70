//! Size of page tables for a segment of shared memory. Each process has an entry for each page that
//! it has faulted in.

use host::server::state::{Backing, ProcessFigures, State};
use host::{
    linux::pages::pages_required,
    units::{Bytes, PageSize},
};

use crate::{
    model::machine::{Machine, ServerState},
    thresholds::{
        PAGE_TABLES_AT_LEAST_BYTES, PAGE_TABLES_OF_RAM_PERCENT, PAGE_TABLES_OF_SEGMENT_PERCENT,
    },
};

/// Size of an entry of the lowest level on x86-64 and arm64. Higher levels add less than 1%.
const ENTRY_BYTES: u64 = 8;

/// Size of page tables in bytes, with the segment on pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub page_bytes: u64,
    /// True if the main segment is on such pages. `None`: unknown.
    pub is_used: Option<bool>,
    /// Page tables of one process that has faulted in the whole segment.
    pub one: u64,
    /// Page tables of all present processes, once each has faulted in the whole segment.
    pub present: u64,
    /// Page tables of `max_connections` processes, once each has faulted in the whole segment.
    pub max_connections: u64,
    /// Present page tables of the processes, with the segment on its present pages. `None`: not
    /// reported.
    pub now: Option<u64>,
    /// Estimate of their page tables on such pages. `None`: these are smaller than the present
    /// ones.
    pub then: Option<u64>,
}

/// The cost on small pages and on each huge page size, smallest first. `all` are the processes of
/// the server.
pub fn on_each_size(state: &State, all: &[ProcessFigures], max_connections: u64) -> Vec<Cost> {
    let processes = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let each = all.iter().filter_map(|process| process.page_tables);
    let now = each.reduce(u64::saturating_add);
    let now_on = state.page_bytes();
    let segment = state.needed_bytes();
    let huge = state.pools.iter().flatten().map(|pool| pool.page_bytes);
    let sizes = std::iter::once(state.base_page_bytes).chain(huge);
    let cost = |page_bytes| {
        let one = bytes_of_one(segment, page_bytes);
        Cost {
            page_bytes,
            is_used: now_on.map(|now_on| now_on == page_bytes),
            one,
            present: one.saturating_mul(processes),
            max_connections: one.saturating_mul(max_connections),
            now,
            // An estimate for smaller pages would multiply errors of the measured value.
            then: now_on
                .filter(|&now_on| now_on <= page_bytes)
                .map(|now_on| on_other_pages(all, segment, now_on, page_bytes)),
        }
    };
    sizes.map(cost).collect()
}

/// The costs on small pages, and on the huge pages that the server uses or would use, among those
/// of [`on_each_size`]. `None`: the kernel has no huge pages, or something is unknown.
pub fn small_and_huge<'a>(machine: &Machine, costs: &'a [Cost]) -> Option<(&'a Cost, &'a Cost)> {
    let size = match machine.backing() {
        Backing::HugePages(size) => size,
        Backing::SmallPages | Backing::Unknown => {
            machine.size_asked_for(&machine.next_start_on_huge_pages())?
        }
    };
    let huge = costs.iter().find(|cost| cost.page_bytes == size.0)?;
    Some((costs.first()?, huge))
}

/// Bytes of page tables that one process needs once it has touched the whole segment on pages of
/// that size.
///
/// ```
/// use advice::model::page_tables::bytes_of_one;
///
/// // A segment of 138 GiB, and 80 connections: 21.6 GiB on small pages, 43.1 MiB on huge ones.
/// assert_eq!(80 * bytes_of_one(138 << 30, 4 << 10), 23_152_558_080);
/// assert_eq!(80 * bytes_of_one(138 << 30, 2 << 20), 45_219_840);
/// ```
pub fn bytes_of_one(segment_bytes: u64, page_bytes: u64) -> u64 {
    pages_required(segment_bytes, page_bytes).saturating_mul(ENTRY_BYTES)
}

/// Page tables that a typical process has for private memory: those of the median client backend,
/// or of the median process if none is known, without the entries for the shared memory on small
/// pages that it has faulted in. A process with more shared memory than its page tables explain has
/// it on transparent huge pages, and does not count.
fn private_part(all: &[ProcessFigures], base_bytes: u64) -> u64 {
    let has_clients = all.iter().any(|process| process.is_client_backend);
    let typical = all
        .iter()
        .filter(|process| process.is_client_backend || !has_clients);
    let mut private: Vec<u64> = typical
        .filter_map(|process| {
            let shared = bytes_of_one(process.rss_shmem?, base_bytes);
            process.page_tables?.checked_sub(shared)
        })
        .collect();
    private.sort_unstable();
    let least = all.iter().filter_map(|process| process.page_tables).min();
    let median = private.get(private.len() / 2).copied();
    median.or(least).unwrap_or(0)
}

/// Bytes of page tables that these processes would have if the segment were on pages of another
/// size: an estimate.
///
/// A process needs the private part in any case. The rest, up to the whole segment, is for the
/// segment, and is proportional to the number of its pages.
///
/// ```
/// use advice::model::page_tables::on_other_pages;
/// use host::server::state::ProcessFigures;
///
/// const MB: u64 = 1 << 20;
/// // Three processes with 1 MB of their own have faulted in half of 64 GB of small pages.
/// let process = ProcessFigures {
///     page_tables: Some(65 * MB),
///     rss_shmem: Some(32 << 30),
///     ..ProcessFigures::default()
/// };
/// let then = on_other_pages(&[process; 3], 64 << 30, 4 << 10, 2 << 20);
/// assert_eq!(then, 3 * (MB + MB / 8));
/// ```
pub fn on_other_pages(
    all: &[ProcessFigures],
    segment_bytes: u64,
    page_bytes: u64,
    other_bytes: u64,
) -> u64 {
    let private = private_part(all, page_bytes);
    let most = bytes_of_one(segment_bytes, page_bytes);
    let most_then = bytes_of_one(segment_bytes, other_bytes);
    let then = all.iter().filter_map(|process| {
        let now = process.page_tables?;
        let of_segment = now.saturating_sub(private).min(most);
        let scaled = u128::from(of_segment) * u128::from(most_then);
        let scaled = scaled.div_ceil(u128::from(most.max(1)));
        Some((now - of_segment).saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX)))
    });
    then.fold(0, u64::saturating_add)
}

/// Estimates the page tables of the same processes after a move of the segment to other pages.
pub(crate) fn move_to(
    processes: &mut [ProcessFigures],
    segment: Bytes,
    from: PageSize,
    to: PageSize,
) {
    let own = private_part(processes, from.0);
    let most = bytes_of_one(segment.0, to.0);
    let most_before = bytes_of_one(segment.0, from.0);
    for process in processes {
        process.page_tables = process.page_tables.map(|now| {
            let of_segment = now.saturating_sub(own).min(most_before);
            now.saturating_sub(of_segment)
                .saturating_add(most.min(of_segment))
        });
    }
}

/// Whether the segment is on small pages, and the page tables of the host are large enough that
/// those of this server could be a reason for huge pages, or for a pool that does not fit now.
pub(crate) fn could_be_large(machine: &Machine) -> bool {
    let of_host = machine.usage().and_then(|usage| usage.page_tables);
    let might_be_large = of_host.is_some_and(|bytes| bytes >= PAGE_TABLES_AT_LEAST_BYTES);
    machine.backing() == Backing::SmallPages && might_be_large
}

/// Page tables of all processes. `None`: unknown.
pub(crate) fn total(machine: &Machine) -> Option<Bytes> {
    let processes = &machine.whole_state()?.processes;
    let each = processes.iter().filter_map(|process| process.page_tables);
    each.map(Bytes).reduce(|all, one| all + one)
}

/// Whether page tables are large compared with RAM or, on small pages, with the segment that they
/// map.
pub(crate) fn are_large(machine: &Machine) -> bool {
    let (Some(total), Some(ram)) = (total(machine), machine.ram()) else {
        return false;
    };
    let segment = Bytes(machine.state.needed_bytes());
    let is_beyond = |percent: u64, of: Bytes| total > of.percent(percent);
    total >= Bytes(PAGE_TABLES_AT_LEAST_BYTES)
        && (is_beyond(PAGE_TABLES_OF_RAM_PERCENT, ram)
            || machine.backing() == Backing::SmallPages
                && is_beyond(PAGE_TABLES_OF_SEGMENT_PERCENT, segment))
}

/// Estimates the page tables of all processes on huge pages. `None`: the segment is on huge pages,
/// or something is unknown.
pub(crate) fn on_huge_pages(machine: &Machine) -> Option<(Bytes, PageSize)> {
    if machine.backing() != Backing::SmallPages {
        return None;
    }
    let size = machine.size_asked_for(&machine.next_start_on_huge_pages())?;
    let processes = &machine.whole_state()?.processes;
    let segment = machine.state.needed_bytes();
    let bytes = on_other_pages(processes, segment, machine.state.base_page_bytes, size.0);
    Some((Bytes(bytes), size))
}

/// Page tables that cease to exist when the running server moves to huge pages. 0: unknown, or too
/// small to matter.
pub(crate) fn saved_on_huge_pages(machine: &Machine) -> Bytes {
    let is_running = machine.server_state == ServerState::Running;
    let now = total(machine).filter(|_| is_running && could_be_large(machine));
    let then = on_huge_pages(machine).map(|(then, _)| then);
    now.zip(then).map_or(Bytes(0), |(now, then)| now - then)
}

/// Whether page tables are large, and would be small and less than half as large on huge pages.
pub(crate) fn need_huge_pages(machine: &Machine) -> bool {
    let would_be_small = |bytes: Bytes| {
        let ram = machine.ram();
        ram.is_some_and(|ram| bytes <= ram.percent(PAGE_TABLES_OF_RAM_PERCENT))
    };
    let halves = |bytes: Bytes| total(machine).is_some_and(|now| bytes + bytes <= now);
    are_large(machine)
        && on_huge_pages(machine).is_some_and(|(bytes, _)| would_be_small(bytes) && halves(bytes))
}
