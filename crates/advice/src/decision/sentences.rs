//! Decisions as sentences.

use std::fmt;

use super::{Decision, LimitSetter, Lower};
use crate::model::{allowed_part::NodePart, memory, numa::named_nodes};
use host::{
    linux::{boot::Words, numa::nodes},
    units::{Bytes, PageSize, Pages, huge_pages, kubernetes_resource},
};

impl fmt::Display for Lower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(megabytes) => write!(f, "lower shared_buffers to {megabytes}MB"),
            Self::By(megabytes) => write!(f, "lower shared_buffers by {megabytes}MB"),
            Self::Pending(megabytes) => write!(
                f,
                "restart PostgreSQL (its pending settings need {megabytes} MB less)"
            ),
            Self::OfOther(server, megabytes) => {
                write!(f, "lower shared_buffers of {server} by {megabytes}MB")
            }
        }
    }
}

/// Parameters for the kernel command line, and where to write them.
fn on_command_line(words: &Words) -> String {
    const GRUB: &str =
        "(GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader";
    let Words { new, instead_of } = words;
    let what = match instead_of.as_deref() {
        Some(old) if old != "--" => {
            format!("change {old} to {new} on the kernel command line {GRUB}")
        }
        _ => {
            let new = new.trim_end_matches(" --");
            format!("add {new} at the end of the kernel command line, before any -- {GRUB}")
        }
    };
    format!("for the next boot, in the configuration of the boot loader: {what}")
}

/// Alternatives: `a, b, or c`.
fn one_of<const N: usize>(ways: [Option<String>; N]) -> String {
    let mut ways: Vec<_> = ways.into_iter().flatten().collect();
    let last = ways.pop().unwrap_or_default();
    match ways.as_slice() {
        [] => last,
        [one] => format!("{one}, or {last}"),
        several => format!("{}, or {last}", several.join(", ")),
    }
}

/// The way to free pages that others hold.
fn held((pages, size): (Pages, PageSize)) -> String {
    let pages = huge_pages(pages, size);
    format!("free some of the {pages} that others hold (hugeinfo_holders)")
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreeMemory {
                missing,
                is_bound,
                is_used,
                reserve,
                lower,
                others,
                or_at_boot,
            } => {
                let most = memory::up_to(*is_bound);
                let megabytes = format!("{most}{}", missing.megabytes_at_least());
                let (free, add) = match is_used {
                    true => (Some(format!("free {megabytes} MB of memory")), None),
                    false => (None, Some(format!("add {megabytes} MB of memory"))),
                };
                let lower = lower.map(|lower| lower.to_string());
                let at_boot = or_at_boot.then(|| "set the pool at boot".to_owned());
                let ways = one_of([free, lower, others.map(held), add, at_boot]);
                match reserve {
                    Some(reserve) => write!(
                        f,
                        "{ways}: with the pool, less than {reserve} would stay available"
                    ),
                    None => write!(f, "{ways}: too little memory is available for the pool"),
                }
            }
            Self::LowerSharedBuffers {
                lower,
                missing,
                is_least,
                can_swap,
                has_zram,
                others,
                release,
            } => {
                let lower = lower.map(|lower| lower.to_string());
                let release = release.as_ref().map(|release| {
                    let pages = huge_pages(release.pages, release.size);
                    let line = match &release.line {
                        Some((place, pages)) => format!(" and lower {place} to {pages}"),
                        None => String::new(),
                    };
                    match release.needs_stop {
                        true => format!("release {pages}{line} while the server is stopped"),
                        false => {
                            format!("release {pages}{line} if no other program needs them")
                        }
                    }
                });
                let least = memory::at_least(*is_least);
                let megabytes = format!("{least}{}", missing.megabytes_at_least());
                let add = match (can_swap, has_zram) {
                    (true, false) => format!("add {megabytes} MB of memory or swap"),
                    // zram is in the same RAM.
                    (true, true) => format!("add {megabytes} MB of memory or swap on a disk"),
                    (false, _) => format!("free or add {megabytes} MB of memory"),
                };
                let ways = one_of([release, lower, others.map(held), Some(add)]);
                write!(f, "{ways}: too little memory is available")
            }
            Self::CheckMemory { size, pages, why } => write!(
                f,
                "on the host, allocate {}, if it has the memory: {why}",
                huge_pages(*pages, *size)
            ),
            Self::AllocateOnNodes {
                size,
                needed,
                reserved,
                lacking,
                nodes,
                lower,
            } => {
                let numbers: Vec<_> = nodes.iter().map(|node| node.number).collect();
                let allocate = format!(
                    "allocate {lacking} more huge pages of {size} on NUMA {} ({}/nr_hugepages)",
                    named_nodes(&numbers),
                    nodes::pool_directories(size.0)
                );
                let more = "let the server use more nodes".to_owned();
                let lower = lower.map(|lower| lower.to_string());
                let ways = one_of([Some(allocate), Some(more), lower]);
                write!(f, "{ways}: the server needs {needed} there")?;
                if *reserved > Pages(0) {
                    write!(f, "; other processes reserved {reserved}")?;
                }
                for NodePart {
                    number,
                    total,
                    free,
                    available,
                } in nodes
                {
                    write!(f, "; node {number} has {free} of {total} pages free")?;
                    if let Some(available) = available {
                        write!(f, ", and {available} of memory available")?;
                    }
                }
                Ok(())
            }
            Self::AddSwap {
                missing,
                ratio,
                enough,
                pending,
            } => {
                let megabytes = missing.megabytes_at_least();
                let swap = format!("add {megabytes} MB of swap");
                let raise = enough.map(|ratio| format!("set vm.overcommit_ratio to {ratio}"));
                let lower = "lower committed memory by as much".to_owned();
                let kilobytes = "raise vm.overcommit_kbytes by as much".to_owned();
                let kilobytes = ratio.is_none().then_some(kilobytes);
                let restart = pending.map(|pending| pending.to_string());
                let ways = one_of([restart, raise, Some(swap), kilobytes, Some(lower)]);
                write!(f, "{ways}")?;
                match ratio {
                    Some(ratio) if *ratio < 100 && enough.is_none() => write!(
                        f,
                        ": vm.overcommit_ratio is {ratio}, and 100 would not be enough"
                    ),
                    _ => Ok(()),
                }
            }
            Self::WaitForReservedPages => write!(
                f,
                "wait until other processes have used the huge pages that they reserved, or stop them first (hugeinfo_holders): shrinking the pool could remove pages from the NUMA node that a process is bound to, and that process would crash"
            ),
            Self::RaiseLimitOutside {
                size,
                pool,
                bytes,
                setter,
            } => {
                if *pool > Pages(0) {
                    write!(
                        f,
                        "first let the node have {} (the kubelet counts them when it starts), then ",
                        huge_pages(*pool, *size)
                    )?;
                }
                let to = match (bytes, setter) {
                    (Bytes(0), _) => String::new(),
                    (bytes, LimitSetter::Pod) => {
                        format!(" ({})", kubernetes_resource(*bytes, *size))
                    }
                    (bytes, _) => format!(" to {} bytes ({bytes})", bytes.0),
                };
                let (whose, place) = match setter {
                    LimitSetter::Pod => ("the pod's limit", ""),
                    LimitSetter::Container => (
                        "the limit of this container",
                        ", where the container is defined",
                    ),
                    LimitSetter::Host => ("the limit", ", where it is set (its unit, for example)"),
                };
                write!(f, "raise {whose} on {size} pages{to}{place}")
            }
            Self::RaiseMemoryLimit { by } => write!(
                f,
                "raise the memory limit of the server's cgroup by {} MB, or lower shared_buffers by as much",
                by.megabytes_at_least()
            ),
            Self::WouldNotStart(reason) => {
                write!(
                    f,
                    "find out why a start would not get its huge pages (hugeinfo_pools, hugeinfo_holders). {reason}"
                )
            }
            Self::OnlyAStartShows(reason) => write!(
                f,
                "set enough persistent pages, or start the server to find out. {reason}"
            ),
            Self::CorrectFiles(message) => write!(
                f,
                "correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): {message}"
            ),
            Self::LookAtBootFiles(files) => write!(
                f,
                "check the configuration that sets the pool at boot: {}",
                files.join("; ")
            ),
            Self::SetOnCommandLine(words) => write!(f, "{}", on_command_line(words)),
            Self::SetAtBootElsewhere {
                size,
                pages: Pages(0),
                why,
            } => write!(
                f,
                "set no huge pages of {size} at boot, except for programs that are not visible: {why}"
            ),
            Self::SetAtBootElsewhere { size, pages, why } => write!(
                f,
                "allocate {} at boot by hand, in addition to those of programs that are not visible: {why}",
                huge_pages(*pages, *size)
            ),
            Self::HiddenServers {
                hidden,
                size,
                pages,
            } => write!(
                f,
                "as root, check whether a server that is not visible from here needs the idle pages ({}): {hidden}. If none does, release them",
                huge_pages(*pages, *size)
            ),
            Self::MeantForServer {
                server,
                size,
                pages,
            } => write!(
                f,
                "check whether {server} is meant to use the idle pages ({}). If it is not, release them",
                huge_pages(*pages, *size)
            ),
            Self::UseOtherSize {
                idle: (pages, size),
                change,
                instead,
                step: _,
            } => write!(
                f,
                "if no other program needs the {} that {} idle, {change}; otherwise, {instead}",
                huge_pages(*pages, *size),
                pages.verb("is", "are")
            ),
            Self::OtherServers {
                servers,
                size,
                pages,
                fits: true,
            } => {
                let names: Vec<_> = servers.iter().map(ToString::to_string).collect();
                let them = if servers.len() == 1 { "it" } else { "them" };
                write!(
                    f,
                    "stop {}, allocate {}, and start {them} again: memory cannot hold these pages in addition to the present segments, so they wait",
                    names.join(" and "),
                    huge_pages(*pages, *size)
                )
            }
            Self::OtherServers {
                size,
                pages,
                fits: false,
                ..
            } => write!(
                f,
                "lower shared_buffers of a server, move it to another host, or free memory: there is too little for {}",
                huge_pages(*pages, *size)
            ),
            Self::AskAsSuperuser(why) => write!(
                f,
                "repeat the query as a role that can execute hugeinfo_plan: settings are pending a restart, and the pages that they need are unknown ({why})"
            ),
            Self::FewerConnections => {
                write!(f, "lower max_connections, or use a connection pooler")
            }
            Self::LookForSwap => write!(
                f,
                "find out which processes use the memory (hugeinfo_footprint, hugeinfo_host); lower work_mem or shared_buffers, or add memory"
            ),
            Self::LookForFaults => write!(
                f,
                "look at the rate now (SELECT * FROM hugeinfo_fault_rates()), then free memory"
            ),
            Self::Text(text) => write!(f, "{text}"),
        }
    }
}
