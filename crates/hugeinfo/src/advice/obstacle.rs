//! Why the next start of the server would not get huge pages.

use std::fmt;

use crate::{
    advice::words::{human, list},
    linux::error::{Absence, Absent},
    model::{
        forecast::{Forecast, Refusal, fault_refusals, reservation_refusals},
        headroom::Headroom,
    },
    server::facts::{Facts, HugePages, SharedMemoryType},
};

/// The first thing in the way, in the order in which the server and the kernel come upon them.
pub(crate) enum Obstacle<'a> {
    Off,
    Sysv,
    /// The kernel or the processor has no huge pages.
    NoHugePages,
    UnknownSize {
        asked: u64,
        known: Vec<u64>,
    },
    /// Of one or more control groups.
    ReservationLimit(Vec<Refusal<'a>>),
    PoolShort {
        forecast: Forecast,
        missing: u64,
        fitting_sizes: Vec<u64>,
    },
    /// A source is missing, so that nobody can tell.
    Untold(&'a Absent),
    /// The same, of the pages that the segment lies on.
    PageSizeUntold,
}

/// `None`: nothing is in the way.
pub(crate) fn find(facts: &Facts) -> Option<Obstacle<'_>> {
    if facts.next_start().huge_pages == HugePages::Off {
        return Some(Obstacle::Off);
    }
    if facts.next_start().shared_memory_type == SharedMemoryType::Sysv {
        return Some(Obstacle::Sysv);
    }
    let pools = match &facts.pools {
        Ok(pools) => pools,
        Err(absent) => return Some(without_pools(facts, absent)),
    };
    let Some(asked) = facts.huge_page_asked_for() else {
        return Some(
            facts
                .meminfo
                .as_ref()
                .err()
                .map_or(Obstacle::NoHugePages, Obstacle::Untold),
        );
    };
    let Some(forecast) = Forecast::of_target(facts) else {
        let known = pools.iter().map(|pool| pool.page_bytes).collect();
        return Some(Obstacle::UnknownSize { asked, known });
    };
    if let Some(refusals) =
        reservation_refusals(facts, asked).filter(|refusals| !refusals.is_empty())
    {
        return Some(Obstacle::ReservationLimit(refusals));
    }
    match forecast.shortfall {
        Some(0) => facts.hugetlb.as_ref().err().map(Obstacle::Untold),
        Some(missing) => {
            let fitting_sizes = Forecast::of_each_pool(facts)
                .into_iter()
                .flatten()
                .filter(|other| other.fits_after_restart == Some(true))
                .filter(|other| {
                    fault_refusals(facts, other.pool.page_bytes)
                        .is_some_and(|refusals| refusals.is_empty())
                })
                .map(|other| other.pool.page_bytes)
                .collect();
            Some(Obstacle::PoolShort {
                forecast,
                missing,
                fitting_sizes,
            })
        }
        None => Some(
            facts
                .segment
                .as_ref()
                .err()
                .map_or(Obstacle::PageSizeUntold, Obstacle::Untold),
        ),
    }
}

fn without_pools<'a>(facts: &Facts, absent: &'a Absent) -> Obstacle<'a> {
    let kernel_names_no_size = facts
        .meminfo
        .as_ref()
        .is_ok_and(|meminfo| meminfo.default_huge_page_bytes.is_none());
    if absent.why == Absence::Missing && kernel_names_no_size {
        Obstacle::NoHugePages
    } else {
        Obstacle::Untold(absent)
    }
}

impl fmt::Display for Obstacle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "huge_pages = off"),
            Self::Sysv => write!(
                f,
                "shared_memory_type = sysv, and only mmap can use huge pages"
            ),
            Self::NoHugePages => write!(f, "this kernel or processor has no huge pages"),
            Self::UnknownSize { asked, known } => {
                write!(
                    f,
                    "huge pages of {} are asked for (huge_page_size), and the kernel has {}",
                    human(*asked),
                    list(known),
                )
            }
            Self::ReservationLimit(refusals) => {
                let allows = |refusal: &Refusal<'_>| {
                    format!(
                        "control group {} allows reserving {} of huge pages, and {} would be reserved in it",
                        refusal.group.directory.display(),
                        human(refusal.limit),
                        human(refusal.wanted),
                    )
                };
                let all: Vec<_> = refusals.iter().map(allows).collect();
                write!(f, "{}", all.join("; "))
            }
            Self::PoolShort {
                forecast,
                missing,
                fitting_sizes,
            } => {
                let required = forecast.required;
                write!(
                    f,
                    "{required} huge pages of {} are required and the pool can give {}, {missing} too few",
                    human(forecast.pool.page_bytes),
                    required.saturating_sub(*missing),
                )?;
                if !fitting_sizes.is_empty() {
                    write!(
                        f,
                        " (pages of another size would suffice: {})",
                        list(fitting_sizes)
                    )?;
                }
                Ok(())
            }
            Self::Untold(absent) => write!(f, "{absent}"),
            Self::PageSizeUntold => {
                write!(f, "the page size of the main segment cannot be seen")
            }
        }
    }
}

impl Obstacle<'_> {
    /// What is in the way, and what would be once that is gone: a limit that would break the server
    /// on huge pages.
    pub(crate) fn explain(&self, facts: &Facts) -> String {
        let beyond: Vec<_> = fault_refusals_on_the_way(facts)
            .iter()
            .map(|refusal| {
                format!(
                    "; on huge pages control group {} would let {} be touched of {}",
                    refusal.group.directory.display(),
                    human(refusal.limit),
                    human(refusal.wanted)
                )
            })
            .collect();
        format!("{self}{}", beyond.concat())
    }

    /// What to type, up to and including the restart. A restart on huge pages must not run into a
    /// control group's limit on faults: that is raised first. Where RAM does not hold the pool
    /// beside the present segment, that has to go first.
    pub(crate) fn remedy(&self, facts: &Facts) -> Option<String> {
        const RESTART: &str = "then restart PostgreSQL";
        let mut pool = None;
        let mut steps = Refusal::how_to_raise(&fault_refusals_on_the_way(facts));
        match self {
            Self::NoHugePages | Self::Untold(_) | Self::PageSizeUntold => return None,
            Self::Off => {
                steps.push("ALTER SYSTEM SET huge_pages = 'try'".to_owned());
                pool = set_pool(facts);
            }
            Self::Sysv => {
                steps.push("ALTER SYSTEM SET shared_memory_type = 'mmap'".to_owned());
                pool = set_pool(facts);
            }
            Self::UnknownSize { .. } => {
                steps.push("ALTER SYSTEM SET huge_page_size = 0".to_owned());
                pool = set_default_pool(facts);
            }
            Self::ReservationLimit(refusals) => {
                steps.extend(Refusal::how_to_raise(refusals));
            }
            Self::PoolShort { forecast, .. } => {
                pool = Some(set_to(
                    facts,
                    forecast,
                    forecast.recommended?,
                    Forecast::set_now,
                ));
            }
        }
        if pool.is_some() && segment_is_in_the_way(facts) {
            steps.push("stop PostgreSQL, which has the memory that the pool takes".to_owned());
            steps.extend(pool);
            steps.push("start PostgreSQL".to_owned());
        } else {
            steps.extend(pool);
            steps.push(RESTART.to_owned());
        }
        if let Self::PoolShort { fitting_sizes, .. } = self
            && let Some(&size) = fitting_sizes.first()
        {
            let size = human(size).replace(' ', "");
            steps.push(format!(
                "or ALTER SYSTEM SET huge_page_size = '{size}'; {RESTART}"
            ));
        }
        Some(steps.join("; "))
    }
}

/// Limits on faults of pages that the server would use after the remedy.
fn fault_refusals_on_the_way(facts: &Facts) -> Vec<Refusal<'_>> {
    let default = || facts.meminfo.as_ref().ok()?.default_huge_page_bytes;
    let page_bytes = facts
        .target_pool()
        .map(|pool| pool.page_bytes)
        .or_else(default);
    page_bytes
        .and_then(|page_bytes| fault_refusals(facts, page_bytes))
        .unwrap_or_default()
}

/// The pool's part of a remedy whose main part is a setting.
fn set_pool(facts: &Facts) -> Option<String> {
    set_if_short(facts, &Forecast::of_target(facts)?)
}

/// The same where that setting turns to the default size.
fn set_default_pool(facts: &Facts) -> Option<String> {
    let default = Forecast::of_each_pool(facts)
        .into_iter()
        .flatten()
        .find(|forecast| forecast.is_default == Some(true))?;
    set_if_short(facts, &default)
}

fn set_if_short(facts: &Facts, forecast: &Forecast) -> Option<String> {
    let is_short = forecast.shortfall.is_some_and(|pages| pages > 0);
    let pages = forecast.recommended.filter(|_| is_short)?;
    Some(set_to(facts, forecast, pages, Forecast::set_now))
}

/// Whether the segment lies on small pages, and RAM would not hold it beside the recommended pool,
/// but the pool alone: setting that while the server runs would push the server out of memory.
fn segment_is_in_the_way(facts: &Facts) -> bool {
    let headroom = || {
        let target = Forecast::of_target(facts)?;
        Headroom::with(facts, &target, target.recommended?)
    };
    let on_small_pages = facts.huge_page_in_use() == Some(None);
    match (&facts.segment, headroom()) {
        (Ok(segment), Some(headroom)) if on_small_pages => {
            headroom.is_enough() && !headroom.is_enough_beside(segment.bytes)
        }
        _ => false,
    }
}

/// What to type for a pool of so many pages, now or at boot, if that leaves the host enough RAM to
/// work with.
pub(crate) fn set_to(
    facts: &Facts,
    forecast: &Forecast,
    pages: u64,
    how: fn(&Forecast, u64) -> String,
) -> String {
    forecast.too_many(facts, pages).map_or_else(
        || how(forecast, pages),
        |why| format!("lower shared_buffers: {why}"),
    )
}
