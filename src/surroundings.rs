//! What the checks need besides the facts of `hugeinfo_status`, read for this server.

use std::collections::BTreeMap;

use hugeinfo::{
    advice::shared_thp_may_be_used,
    linux::{
        boot::NextBoot,
        buddyinfo,
        cgroup::{self, memory},
        error::{Absence, Absent, fact},
        numa::node,
        process::{
            Process, children, limits, oom_score, smaps,
            status::{self, Memory},
        },
        root::Root,
        uptime, vmstat,
    },
    server::{
        facts::{Facts, LiesOn},
        host::Host,
        instances::Instance,
        sight::{self, Sight},
        surroundings::{ProcessFigures, Surroundings},
    },
};

use crate::{
    error::Error,
    files::Waiting,
    postgres::{
        self,
        interrupts::check_for_interrupts,
        reload, setting_source,
        settings::{self, max_connections, uses_io_uring},
    },
    processes::{self, Member},
};

/// Who wants to know more of each process than the diagnoses do, from the one time that it is read.
pub(crate) type Watcher<'w> = dyn FnMut(&Member, &Memory, &mut Vec<u8>) -> Result<(), Error> + 'w;

/// `waiting` says what the configuration files mean for the next start.
pub(crate) fn read(
    facts: &Facts,
    waiting: impl FnOnce(&Facts) -> Waiting,
    watcher: &mut Watcher<'_>,
) -> Result<Surroundings, Error> {
    let root = Root::system();
    let host = Host::read(&root)?;
    let nodes = fact(node::read(&root, check_for_interrupts))?;
    let has_several_nodes = nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
    let may_be_transparent = facts.lies_on() == LiesOn::SmallPages
        && host.thp.as_ref().is_ok_and(shared_thp_may_be_used);

    let mut buffer = Vec::new();
    let postmaster = postmaster(&root)?;
    let oom_score_adj = match &postmaster {
        Ok(postmaster) => fact(oom_score::score_adj(postmaster, &mut buffer))?,
        Err(absent) => Err(absent.clone()),
    };
    let locked_memory = match &postmaster {
        Ok(postmaster) => fact(limits::locked_memory(postmaster, &mut buffer))?,
        Err(absent) => Err(absent.clone()),
    };
    let memory_limits = match &postmaster {
        Ok(postmaster) => fact(memory::read(&root, postmaster))?,
        Err(absent) => Err(absent.clone()),
    };
    let refused_by_limits = match &facts.hugetlb {
        Ok(hugetlb) => cgroup::refused(&root, hugetlb)?,
        Err(_) => Vec::new(),
    };
    let (neighbours, sight) = neighbours(&root)?;
    let waiting = waiting(facts);
    Ok(Surroundings {
        host,
        vmstat: fact(vmstat::read(&root))?,
        free_blocks: fact(buddyinfo::read(&root))?,
        asked_at_boot: NextBoot::read(&root)?,
        nodes,
        segment_nodes: if has_several_nodes {
            processes::segment_pages_by_node(facts.lies_on())?
        } else {
            None
        },
        segment_thp_bytes: if may_be_transparent {
            Some(segment_thp_bytes()?)
        } else {
            None
        },
        processes: process_figures(&root, watcher)?,
        oom_score_adj,
        locked_memory,
        memory_limits,
        refused_by_limits,
        neighbours,
        sight,
        uses_io_uring: uses_io_uring(),
        max_connections: max_connections(),
        shared_buffers_bytes: settings::shared_buffers_bytes(),
        settings: setting_source::in_effect(),
        settings_wait_for_restart: reload::something_may_wait(),
        waiting_settings: waiting.settings,
        allows_alter_system: settings::allows_alter_system(),
        files: waiting.files,
    })
}

/// What `hugeinfo_status` needs, and nothing whose cost grows with the number of processes: the
/// rest counts as missing. If no other server runs, it looks for no neighbours.
pub(crate) fn for_status(
    is_alone: bool,
    waiting: Waiting,
    settings_wait_for_restart: bool,
) -> Result<Surroundings, Error> {
    let root = Root::system();
    let postmaster = postmaster(&root)?;
    let memory_limits = match &postmaster {
        Ok(postmaster) => fact(memory::read(&root, postmaster))?,
        Err(absent) => Err(absent.clone()),
    };
    // Under a memory limit it matters how much of the segment has been touched.
    let processes = match memory_limits.as_deref() {
        Ok([_, ..]) => oldest_processes(&root)?,
        _ => Vec::new(),
    };
    let (neighbours, sight) = match is_alone {
        true => (Ok(Vec::new()), Sight::Host),
        false => neighbours(&root)?,
    };
    Ok(Surroundings {
        host: Host::read_memory(&root)?,
        vmstat: Err(Absent::not_looked_at()),
        free_blocks: Err(Absent::not_looked_at()),
        asked_at_boot: Err(Absent::not_looked_at()),
        nodes: fact(node::read(&root, check_for_interrupts))?,
        segment_nodes: None,
        segment_thp_bytes: None,
        processes,
        oom_score_adj: Err(Absent::not_looked_at()),
        locked_memory: Err(Absent::not_looked_at()),
        memory_limits,
        refused_by_limits: Vec::new(),
        neighbours,
        sight,
        uses_io_uring: false,
        max_connections: max_connections(),
        shared_buffers_bytes: settings::shared_buffers_bytes(),
        settings: BTreeMap::new(),
        settings_wait_for_restart,
        waiting_settings: waiting.settings,
        allows_alter_system: settings::allows_alter_system(),
        files: waiting.files,
    })
}

/// What a remedy needs as well.
pub(crate) fn for_remedy(facts: &Facts, around: Surroundings) -> Result<Surroundings, Error> {
    let root = Root::system();
    // The next boot matters if the server will ask for huge pages, and if a raised CommitLimit has
    // to survive a reboot.
    let is_about_to_ask = !facts.asks_for_huge_pages() || facts.target_pool().is_none();
    let is_strict = around.host.vm.overcommit_memory == Some(2);
    // What a stop gives back.
    let processes = match postmaster(&root)? {
        Ok(_) if around.processes.is_empty() => oldest_processes(&root)?,
        _ => around.processes,
    };
    Ok(Surroundings {
        processes,
        free_blocks: fact(buddyinfo::read(&root))?,
        asked_at_boot: if is_about_to_ask || is_strict {
            NextBoot::read(&root)?
        } else {
            Err(Absent::not_looked_at())
        },
        settings: setting_source::in_effect(),
        ..around
    })
}

/// The other servers of this host, and whether there may be more.
fn neighbours(root: &Root) -> Result<(Result<Vec<Instance>, Absent>, Sight), Error> {
    let own = postmaster(root)?.ok().map(|process| process.pid());
    let servers = fact(processes::servers_of_host(root, own))?;
    let sight = sight::read(root)?;
    let others = servers.map(|all| {
        let others = all.into_iter();
        others.filter(|server| Some(server.pid) != own).collect()
    });
    Ok((others, sight))
}

/// The postmaster's directory in `/proc`. Missing where that number is somebody else's, since
/// `/proc` is of another PID namespace.
fn postmaster(root: &Root) -> Result<Result<Process, Absent>, Error> {
    let pid = postgres::processes::parent_pid();
    Ok(match fact(children::is_ours(root, pid))? {
        Ok(true) => fact(Process::open(root, pid))?,
        Ok(false) => Err(Absent {
            path: format!("/proc/{pid} of this PID namespace").into(),
            why: Absence::Missing,
        }),
        Err(absent) => Err(absent),
    })
}

/// Enough processes to tell how much of the segment has been touched. The checkpointer is one of
/// the first that the postmaster starts; what is only read, backends touch alone, and those that
/// have been there longest the most.
fn oldest_processes(root: &Root) -> Result<Vec<ProcessFigures>, Error> {
    const MOST: usize = 32;
    let parent = postgres::processes::parent_pid();
    let mut buffer = Vec::new();
    let mut figures = Vec::new();
    for pid in children::pids(root, parent, [], check_for_interrupts)?
        .into_iter()
        .take(MOST)
    {
        let member = children::member(root, parent, pid, &mut buffer)?;
        let Some((process, _)) = member else { continue };
        if let Ok(memory) = fact(status::read_memory(&process, &mut buffer))? {
            figures.push(ProcessFigures {
                rss_shmem: memory.rss_shmem,
                is_postmaster: pid == parent,
                ..ProcessFigures::default()
            });
        }
    }
    Ok(figures)
}

/// From the process that has touched most of the segment. A lower bound: each process shows only
/// what it has touched itself.
fn segment_thp_bytes() -> Result<Result<u64, Absent>, Error> {
    let found = processes::that_touched_most(|process, mappings| {
        let entries = match fact(smaps::read(process, check_for_interrupts))? {
            Ok(entries) => entries,
            Err(absent) => return Ok(Some(Err(absent))),
        };
        let mut bytes = 0_u64;
        for entry in entries {
            let entry = match fact(entry)? {
                Ok(entry) => entry,
                Err(absent) => return Ok(Some(Err(absent))),
            };
            if mappings.contains(&entry.mapping.extent) {
                bytes = bytes.saturating_add(entry.figures.shmem_pmd_mapped.unwrap_or_default());
            }
        }
        Ok(Some(Ok(bytes)))
    })?;
    Ok(found.unwrap_or(Ok(0)))
}

fn process_figures(root: &Root, watcher: &mut Watcher<'_>) -> Result<Vec<ProcessFigures>, Error> {
    let uptime = fact(uptime::read(root))?.ok();
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    processes::all(|member, buffer| {
        let process = &member.process;
        let Ok(memory) = fact(status::read_memory(process, buffer))? else {
            return Ok(None);
        };
        watcher(&member, &memory, buffer)?;
        let process = &member.process;
        let started = member.stat.start_ticks.checked_div(ticks_per_second);
        Ok::<_, Error>(Some(ProcessFigures {
            page_tables: memory.page_tables,
            rss_anon: memory.rss_anon,
            rss_shmem: memory.rss_shmem,
            swap: memory.swap,
            major_faults: member.stat.major_faults,
            age_seconds: uptime
                .zip(started)
                .map(|(now, then)| now.saturating_sub(then)),
            oom_score_adj: fact(oom_score::score_adj(process, buffer))?.ok(),
            is_postmaster: process.pid() == postgres::processes::parent_pid(),
        }))
    })
}
