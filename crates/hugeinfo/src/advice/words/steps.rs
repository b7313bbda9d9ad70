//! How steps are said, and typed.

use serde_json::{Value, json};

use super::{
    boot::{by_hand, edited},
    huge_pages, human, restored,
};
use crate::{
    escape,
    linux::{boot::Edit, hugepages, numa::nodes, sysctl, transparent_hugepage},
    model::{
        headroom::LEFT_PERCENT,
        machine::Machine,
        step::{By, Counts, Decision, Planned, Service, Setting, Step},
    },
    server::restored::TooLow,
    shell::quoted,
};

/// Where a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A shell of root, on the host.
    RootShell,
    /// A session of a superuser.
    Sql,
    /// Whatever starts PostgreSQL.
    Service,
    /// Whatever sets the limits of containers.
    Orchestrator,
    /// The configuration of the boot loader.
    BootLoader,
    /// Nowhere: a person has to decide.
    Decision,
}

impl Place {
    /// As it is shown in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RootShell => "root shell",
            Self::Sql => "SQL",
            Self::Service => "service",
            Self::Orchestrator => "orchestrator",
            Self::BootLoader => "boot loader",
            Self::Decision => "decision",
        }
    }
}

/// Where that step is taken.
pub fn place(step: &Step) -> Place {
    match step {
        Step::SetPoolAtBoot {
            edit: Edit::Words { .. },
            ..
        } => Place::BootLoader,
        // The name cannot be quoted in a shell command.
        Step::RaiseLimit { group, file, .. } if quoted(group.join(file)).is_none() => {
            Place::Decision
        }
        Step::SetPoolAtBoot { edit, .. }
        | Step::SetVm {
            at_boot: Some(edit),
            ..
        } if edited(edit).is_none() => Place::Decision,
        Step::SetPool { .. }
        | Step::SetPoolAtBoot { .. }
        | Step::RaiseLimit { .. }
        | Step::Compact
        | Step::SetVm { .. }
        | Step::SetThp { .. } => Place::RootShell,
        Step::Change {
            by: By::AlterSystem,
            ..
        }
        | Step::Plan(Planned {
            by: By::AlterSystem,
            ..
        })
        | Step::Reload => Place::Sql,
        Step::Change { .. }
        | Step::Plan(_)
        | Step::ChangeService(_)
        | Step::Stop
        | Step::Start
        | Step::Restart => Place::Service,
        Step::Decide(Decision::RaiseLimitOutside) => Place::Orchestrator,
        Step::Decide(_) => Place::Decision,
    }
}

/// What to type, or to do.
pub fn command(machine: &Machine, step: &Step) -> String {
    match step {
        Step::SetPool {
            page_bytes,
            node: None,
            pages,
        } if machine.default_page_bytes() == Some(*page_bytes) => {
            format!("sysctl -w vm.nr_hugepages={pages}")
        }
        Step::SetPool {
            page_bytes,
            node,
            pages,
        } => {
            let directory = match node {
                None => hugepages::directory(*page_bytes),
                Some(node) => format!(
                    "{}/hugepages/hugepages-{}kB",
                    nodes::directory(*node),
                    page_bytes >> 10
                ),
            };
            format!("echo {pages} > {directory}/nr_hugepages")
        }
        Step::SetPoolAtBoot { edit, .. } => edited(edit).unwrap_or_else(|| by_hand(edit)),
        Step::RaiseLimit {
            group, file, bytes, ..
        } => {
            let file = group.join(file);
            match quoted(&file) {
                Some(file) => format!("echo {bytes} > {file}"),
                None => format!(
                    "write {bytes} into {} by hand: this name cannot be quoted in a shell command",
                    escape::name(file)
                ),
            }
        }
        Step::Change { setting, by } => {
            let value = match setting {
                Setting::HugePagesTry => "try".to_owned(),
                Setting::SharedMemoryMmap => "mmap".to_owned(),
                Setting::HugePageSize(0) => "0".to_owned(),
                Setting::HugePageSize(bytes) => human(*bytes).replace(' ', ""),
            };
            change(setting.name(), &value, by)
        }
        Step::Plan(planned) => change(&planned.name, &planned.value, &planned.by),
        Step::Reload => "SELECT pg_reload_conf()".to_owned(),
        Step::ChangeService(service) => match service {
            Service::ProtectPostmaster => "OOMScoreAdjust=-900 in the systemd unit, with PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment",
            Service::ExposeBackends => "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment",
            Service::UnlimitedLockedMemory => "LimitMEMLOCK=infinity in the systemd unit",
            Service::Interleave => "start PostgreSQL by numactl --interleave=all",
        }
        .to_owned(),
        Step::Stop => "stop PostgreSQL".to_owned(),
        Step::Start => "start PostgreSQL".to_owned(),
        Step::Restart => "restart PostgreSQL".to_owned(),
        Step::Compact => "echo 1 > /proc/sys/vm/compact_memory".to_owned(),
        Step::SetVm { name, value, at_boot } => {
            let now = format!("echo {value} > {}/{name}", sysctl::DIRECTORY);
            match at_boot {
                Some(edit) => match edited(edit) {
                    Some(at_boot) => format!("{now} && {at_boot}"),
                    None => format!("{now}; {}", by_hand(edit)),
                },
                None => now,
            }
        }
        Step::SetThp { file, mode } => {
            format!("echo {mode} > {}/{file}", transparent_hugepage::DIRECTORY)
        }
        Step::Decide(decision) => decide(machine, decision),
    }
}

pub(super) fn change(name: &str, value: &str, by: &By) -> String {
    let value = value.trim();
    // SQL reads no octal numbers, and settings do.
    let is_number = value == "0"
        || value.starts_with(|first: char| matches!(first, '1'..='9'))
            && value.bytes().all(|byte| byte.is_ascii_digit());
    let value = if is_number {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    };
    match by {
        By::AlterSystem => format!("ALTER SYSTEM SET {name} = {value}"),
        By::File(Some(file)) => format!("in {}: {name} = {value}", escape::name(file)),
        By::File(None) => format!("in the configuration file: {name} = {value}"),
        By::CommandLine => format!(
            "{name} = {value} on the server's command line, which sets it (Patroni and systemd units do so; see postmaster.opts)"
        ),
    }
}

fn decide(machine: &Machine, decision: &Decision) -> String {
    match decision {
        Decision::LowerSharedBuffers {
            to_bytes,
            missing_bytes,
            pages,
            page_bytes,
        } => format!(
            "{} or add memory: {} would leave less than {LEFT_PERCENT} % of RAM; {} too much",
            lower(*to_bytes),
            huge_pages(*pages, *page_bytes),
            human(*missing_bytes)
        ),
        Decision::BeyondNodes {
            to_bytes,
            pages,
            most_pages,
            page_bytes,
        } => format!(
            "{} or let the server use more NUMA nodes: it needs {}, and its nodes can give {most_pages}",
            lower(*to_bytes),
            huge_pages(*pages, *page_bytes)
        ),
        Decision::NoRoom { pages, page_bytes } => format!(
            "free memory on the NUMA nodes (hugeinfo_numa_nodes), or set up the pool at boot: the nodes have no room for {}",
            huge_pages(*pages, *page_bytes)
        ),
        Decision::WouldBeWorse { check } => format!(
            "see {check} in hugeinfo_checks: each remedy for this finding would make that one worse"
        ),
        Decision::NoSafeWay => "no safe remedy is known: follow the other remedies of hugeinfo_checks first, then look again".to_owned(),
        Decision::LookAtSources => "find out why some files cannot be read (hugeinfo_sources): without them no remedy is known to be safe".to_owned(),
        Decision::AskAsSuperuser => "ask as a role that may execute hugeinfo_plan(jsonb): settings wait for a restart, and the figures depend on them".to_owned(),
        Decision::PlanLess { bytes, to_bytes } => {
            let beyond = format!("a main segment of {} is too large for this host", human(*bytes));
            match to_bytes {
                Some(fits) => format!("plan less: {beyond}; at most {}MB fits (segment_bytes of hugeinfo_plan)", fits >> 20),
                None => format!("plan less, or add memory: {beyond}"),
            }
        }
        Decision::PlanWithoutOn => "plan with huge_pages = try: with on the server would not start, as this host cannot give it its huge pages".to_owned(),
        Decision::FewerServers { pages, page_bytes } => format!(
            "lower shared_buffers of one of the servers, or move one to another host: together they need {}, more than this host can spare",
            huge_pages(*pages, *page_bytes)
        ),
        Decision::FreeMemory { bytes, to_bytes } => format!(
            "free {} of memory first, {}or set up the pool at boot: MemAvailable lacks that much now",
            human(*bytes),
            to_bytes.map_or_else(String::new, |bytes| format!("or {}, ", lower(Some(bytes))))
        ),
        Decision::OthersHoldThePools => "find out who holds the huge pages (hugeinfo_holders): other programs have them, or pools that others have set up".to_owned(),
        Decision::LetOthersTouch => "wait until other programs have touched the huge pages that they reserved, or stop them first (hugeinfo_holders): a smaller pool may take them from the NUMA node that such a program is bound to, which would crash".to_owned(),
        Decision::LookForHiddenServers { pages, page_bytes } => format!(
            "ask root, who sees all servers of this host, whether one of them needs {} that no visible server needs: they could be given back",
            huge_pages(*pages, *page_bytes)
        ),
        Decision::FewerConnections => "lower max_connections, or put a connection pooler in front".to_owned(),
        Decision::LookForSwap => "find out what takes the memory (hugeinfo_footprint, hugeinfo_host); lower work_mem or shared_buffers, or add memory; sysctl -w vm.swappiness=1 keeps the kernel from swapping early".to_owned(),
        Decision::LookForFaults => "look at the rate now: SELECT * FROM hugeinfo_fault_rates(); then free memory, as for swap".to_owned(),
        Decision::RaiseCommitLimit => "add swap, or lower what the programs of this host commit: vm.overcommit_ratio is as high as RAM allows".to_owned(),
        Decision::CorrectTheFiles => "correct what the message names; SELECT * FROM pg_file_settings WHERE NOT applied names files and lines".to_owned(),
        Decision::RaiseSettings(settings) => restored::raise(settings),
        Decision::NameNodesAtBoot { nodes, pages, page_bytes } => {
            let nodes: Vec<_> = nodes.iter().map(u32::to_string).collect();
            format!(
                "set up {} at boot on NUMA nodes {} by name on the kernel command line (hugepages=NODE:PAGES,…; Linux 5.16), or let the server use all nodes",
                huge_pages(*pages, *page_bytes),
                nodes.join(", ")
            )
        }
        Decision::LookAtBootFiles => look_at_boot_files(machine),
        Decision::RaiseMemoryLimit { bytes } => format!(
            "raise the memory limit of the server's control group by {} or lower shared_buffers",
            human(*bytes)
        ),
        Decision::RaiseLimitOutside => "raise the limit on huge pages of the pod, or of whatever sets the limits of this container".to_owned(),
    }
}

/// Lists the files whose names cannot be quoted in a shell command, because one of them might set
/// the pool.
fn look_at_boot_files(machine: &Machine) -> String {
    let around = machine.around.as_ref();
    let boot = around.and_then(|around| around.asked_at_boot.as_ref().ok());
    let kinds = boot.into_iter().flat_map(|boot| {
        let sources = &boot.sources;
        std::iter::once(&sources.sysctl).chain(&sources.tmpfiles)
    });
    let files = kinds.flat_map(|kind| &kind.files);
    let odd: Vec<_> = files
        .filter(|file| !file.is_typeable())
        .map(|file| file.path.as_str())
        .collect();
    let mut text = "find the file that sets the pool at boot: a file that is read later, or that cannot be read, decides".to_owned();
    if !odd.is_empty() {
        text = format!(
            "{text}; a shell command cannot quote the name of {}",
            odd.join(", ")
        );
    }
    text
}

fn lower(to_bytes: Option<u64>) -> String {
    match to_bytes {
        Some(bytes) => format!("lower shared_buffers to {}MB", bytes >> 20),
        None => "lower shared_buffers".to_owned(),
    }
}

/// The reason of a step.
pub fn why(machine: &Machine, step: &Step) -> String {
    match step {
        Step::SetPool {
            page_bytes,
            node: Some(node),
            pages,
        } => format!(
            "node {node} should have {}",
            huge_pages(*pages, *page_bytes)
        ),
        Step::SetPool {
            page_bytes, pages, ..
        } => {
            let now = machine
                .pool(*page_bytes)
                .map_or(0, |pool| pool.persistent());
            if *pages < now {
                let unused = huge_pages(now - pages, *page_bytes);
                format!("the pool holds {unused} that nobody uses")
            } else {
                let needed = huge_pages(*pages, *page_bytes);
                format!("the servers need {needed}, and the pool has {now}")
            }
        }
        Step::SetPoolAtBoot { .. } => "the next boot would not set this number of pages".to_owned(),
        Step::RaiseLimit {
            counts: Counts::Faults,
            ..
        } => "a process that touches more than this limit dies of SIGBUS".to_owned(),
        Step::RaiseLimit { .. } => "the limit refuses the main segment".to_owned(),
        Step::Change { setting, .. } => match setting {
            Setting::HugePagesTry => "the server does not ask for huge pages",
            Setting::SharedMemoryMmap => "only mmap can use huge pages",
            Setting::HugePageSize(0) => "the kernel does not have the size that is set",
            Setting::HugePageSize(_) => "there are enough pages of this size",
        }
        .to_owned(),
        Step::Plan(_) => "as planned".to_owned(),
        Step::Reload => "the server applies it when it reads its files".to_owned(),
        Step::ChangeService(service) => match service {
            Service::ProtectPostmaster => "the OOM killer may end the postmaster",
            Service::ExposeBackends => "the OOM killer spares the backends, too",
            Service::UnlimitedLockedMemory => "io_uring locks memory for its rings",
            Service::Interleave => "one node holds the main segment",
        }
        .to_owned(),
        Step::Stop => "memory does not hold the pool while the server runs".to_owned(),
        Step::Start => "the pool is there".to_owned(),
        Step::Restart if machine.is_on_huge_pages() == Some(true) => {
            "what was changed takes effect at the next start".to_owned()
        }
        Step::Restart => "the main segment is mapped at start only".to_owned(),
        Step::Compact => "free memory lies in blocks that are too small".to_owned(),
        Step::SetVm { .. } => "the pools lower CommitLimit".to_owned(),
        Step::SetThp { .. } => {
            "the kernel gives transparent huge pages without a request".to_owned()
        }
        Step::Decide(Decision::RaiseSettings(settings)) => {
            let verb = if settings.iter().any(TooLow::is_certain) {
                "would"
            } else {
                "may"
            };
            let why = restored::too_low(settings);
            format!("the next start {verb} fail: {why}")
        }
        Step::Decide(_) => "no safe step can do it".to_owned(),
    }
}

/// All steps of a remedy for programs.
pub fn data(machine: &Machine, steps: &[Step]) -> Value {
    let all = steps.iter().map(|step| {
        json!({
            "where_to_run": place(step).as_str(),
            "command": command(machine, step),
            "is_disruptive": is_disruptive(step),
        })
    });
    Value::Array(all.collect())
}

/// Whether it ends all sessions.
pub fn is_disruptive(step: &Step) -> bool {
    matches!(step, Step::Stop | Step::Restart)
}
