//! `hugeinfo preflight`: whether a start would get huge pages here and now.

use std::{collections::HashSet, fmt::Write};

use clap::Args;
use hugeinfo::{
    advice::{
        check::{Check, Status},
        diagnosis, render,
    },
    linux::{
        boot::NextBoot,
        buddyinfo,
        cgroup::memory,
        container,
        error::{Absent, ReadError, fact},
        numa::node,
        process::{Process, segment::Segment},
        root::Root,
        vmstat,
    },
    model::{
        forecast::Forecast,
        machine::{Machine, ServerState},
    },
    server::{
        environment::{Environment, Files},
        facts::{Facts, Server, Subject, through},
        host::Host,
        instances, visibility,
    },
    units::{PageSize, huge_pages},
};
use serde_json::{Value, json};

use crate::{Done, error::Error, postgres::Planned};

/// The checks that are about a start.
const ABOUT_START: [&str; 2] = ["cgroup_fault_limit", "restart"];

/// The options of `preflight`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let planned = Planned::prepare(&options.server)?;
    if let Some(pid) = planned.running() {
        return Err(Error::with_hint(
            format!("the server of this data directory is running (PID {pid})"),
            "Use hugeinfo_status in SQL, or stop the server first",
        ));
    }
    let next = planned.server()?;
    let state = match options.server.data {
        Some(_) => ServerState::Stopped,
        None => ServerState::NotCreated,
    };
    let machine = machine(&next, state).map_err(|error| Error::new(error.to_string()))?;
    let checks: Vec<Check> = diagnosis::checks(&machine)
        .into_iter()
        .filter(|check| ABOUT_START.contains(&check.name()))
        .collect();
    let worst = checks.iter().map(|check| check.finding.status).max();
    Ok(Done {
        text: match options.json {
            true => format!("{:#}\n", to_json(&machine, &checks)),
            false => to_text(&machine, &checks),
        },
        exit_status: match worst {
            Some(Status::Ok) => 0,
            Some(Status::Warning) => 1,
            Some(Status::Critical) => 2,
            Some(Status::Unknown) | None => 3,
        },
    })
}

/// This host, as a server sees it that is started from this process: with the same cgroups, NUMA
/// nodes and environment.
fn machine(next: &Server, state: ServerState) -> Result<Machine, ReadError> {
    let root = Root::system();
    let nobody = Subject {
        postmaster: None,
        address: 0,
    };
    let facts = Facts::read(&root, next.clone(), &nobody)?;
    let facts = Facts {
        planned: Some(next.clone()),
        // It has no memory yet.
        segment: Ok(Segment {
            bytes: 0,
            page_bytes: Some(facts.base_page_bytes),
            mappings: 0,
        }),
        ..facts.with_pod_limits(|name| std::env::var_os(name))
    };
    let this = fact(Process::this(&root))?;
    let mut steps = Vec::new();
    let found = instances::read(&root, None, &HashSet::new(), |step| steps.push(step));
    let other_servers = fact(found)?.and_then(|()| {
        let unfinished = Absent::not_looked_at;
        instances::collect(steps).ok_or_else(unfinished)
    });
    let env = Environment {
        vmstat: fact(vmstat::read(&root))?,
        free_blocks: fact(buddyinfo::read(&root))?,
        next_boot: NextBoot::read(&root)?,
        nodes: fact(node::read(&root, || ()))?,
        is_container: container::is_container(&root)?,
        has_systemd: container::has_systemd(&root)?,
        memory_limits: through(&this, |this| memory::read(&root, this))?,
        other_servers,
        visibility: visibility::read(&root)?,
        files: Files::NothingPending,
        ..Environment::unread(Host::read(&root)?)
    };
    let mut machine = Machine::new(facts, Some(env));
    machine.state = state;
    Ok(machine)
}

fn to_text(machine: &Machine, checks: &[Check]) -> String {
    let mut text = String::new();
    if let Some(target) = Forecast::of_target(machine) {
        let size = PageSize(target.pool.page_bytes);
        let _ = writeln!(
            text,
            "Needs {}; {} are available.",
            huge_pages(target.required, size),
            target.pool.available()
        );
    }
    for check in checks {
        let _ = writeln!(
            text,
            "{}: {}",
            check.finding.status.as_str(),
            check.finding.text
        );
    }
    for line in remedy(machine, checks).iter().flat_map(|text| text.lines()) {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// The remedy, if a check needs attention.
fn remedy(machine: &Machine, checks: &[Check]) -> Option<String> {
    let mut statuses = checks.iter().map(|check| check.finding.status);
    statuses
        .any(Status::needs_attention)
        .then(|| render::remedy(machine, &diagnosis::remedy(machine)))
        .flatten()
}

fn to_json(machine: &Machine, checks: &[Check]) -> Value {
    let rows: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name(),
                "status": check.finding.status.as_str(),
                "code": check.finding.code,
                "finding": check.finding.text,
                "evidence": check.finding.evidence,
            })
        })
        .collect();
    json!({ "schema": 1, "checks": rows, "remedy": remedy(machine, checks) })
}
