//! Why the next start of the server would not get huge pages.

use std::fmt;

use crate::{
    error::{Absence, Absent},
    facts::{Facts, HugePages, SharedMemoryType},
    forecast::{Forecast, Refusal, reservation_refusal},
    sizing::human,
};

/// The first thing in the way, in the order in which the server and the kernel come upon them.
pub(super) enum Obstacle<'a> {
    Off,
    Sysv,
    /// The kernel or the processor has no huge pages.
    NoHugePages,
    UnknownSize {
        asked: u64,
        known: Vec<u64>,
    },
    ReservationLimit {
        refusal: Refusal<'a>,
        file: String,
    },
    PoolShort {
        forecast: Forecast,
        missing: u64,
        fitting_sizes: Vec<u64>,
    },
    /// A source is missing, so that nobody can tell.
    Untold(&'a Absent),
}

/// `None`: nothing is in the way.
pub(super) fn find(facts: &Facts) -> Option<Obstacle<'_>> {
    if facts.server.huge_pages == HugePages::Off {
        return Some(Obstacle::Off);
    }
    if facts.server.shared_memory_type == SharedMemoryType::Sysv {
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
    if let Some(Some(refusal)) = reservation_refusal(facts, asked) {
        let file = facts
            .hugetlb
            .as_ref()
            .ok()?
            .version
            .reservation_limit_file(asked);
        return Some(Obstacle::ReservationLimit { refusal, file });
    }
    match forecast.shortfall {
        Some(0) => facts.hugetlb.as_ref().err().map(Obstacle::Untold),
        Some(missing) => {
            let fitting_sizes = Forecast::of_each_pool(facts)
                .into_iter()
                .flatten()
                .filter(|other| other.fits_after_restart == Some(true))
                .map(|other| other.pool.page_bytes)
                .collect();
            Some(Obstacle::PoolShort {
                forecast,
                missing,
                fitting_sizes,
            })
        }
        None => facts.segment.as_ref().err().map(Obstacle::Untold),
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
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        list(known)
                    },
                )
            }
            Self::ReservationLimit { refusal, .. } => write!(
                f,
                "control group {} allows reserving {} of huge pages, and {} would be reserved in it",
                refusal.group.directory.display(),
                human(refusal.limit),
                human(refusal.wanted),
            ),
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
        }
    }
}

impl Obstacle<'_> {
    /// What to type, up to and including the restart.
    pub(super) fn remedy(&self, facts: &Facts) -> Option<String> {
        const RESTART: &str = "then restart PostgreSQL";
        match self {
            Self::Off => Some(format!(
                "ALTER SYSTEM SET huge_pages = 'try'; {}{RESTART}",
                Self::set_pool(facts)
            )),
            Self::Sysv => Some(format!(
                "ALTER SYSTEM SET shared_memory_type = 'mmap'; {}{RESTART}",
                Self::set_pool(facts)
            )),
            Self::NoHugePages | Self::Untold(_) => None,
            Self::UnknownSize { .. } => {
                Some(format!("ALTER SYSTEM SET huge_page_size = 0; {RESTART}"))
            }
            Self::ReservationLimit { refusal, file } => Some(format!(
                "echo {} > {}/{file}; {RESTART}",
                refusal.wanted,
                refusal.group.directory.display()
            )),
            Self::PoolShort {
                forecast,
                fitting_sizes,
                ..
            } => {
                let other_size = fitting_sizes.first().map_or_else(String::new, |&size| {
                    format!(
                        "; or ALTER SYSTEM SET huge_page_size = '{}'; {RESTART}",
                        human(size).replace(' ', "")
                    )
                });
                let set = forecast.set_now(forecast.recommended?);
                Some(format!("{set}; {RESTART}{other_size}"))
            }
        }
    }

    /// The pool's part of a remedy whose main part is a setting.
    fn set_pool(facts: &Facts) -> String {
        Forecast::of_target(facts)
            .filter(|forecast| forecast.shortfall.is_some_and(|pages| pages > 0))
            .and_then(|forecast| Some(format!("{}; ", forecast.set_now(forecast.recommended?))))
            .unwrap_or_default()
    }
}

fn list(sizes: &[u64]) -> String {
    let sizes: Vec<_> = sizes.iter().map(|&size| human(size)).collect();
    sizes.join(", ")
}
