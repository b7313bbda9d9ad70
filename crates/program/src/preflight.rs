//! `hugeinfo preflight`: whether a start would get huge pages here and now.

use std::fmt::Write;

use advice::{
    answer::{self, Answer},
    check::{CheckId, CheckResult, Status},
    model::{
        forecast::Forecast,
        machine::{Machine, ServerState},
    },
    render,
};
use clap::Args;
use host::{
    escape,
    server::state::{HugePages, Server, SharedMemoryType},
    units::{PageSize, Pages, huge_pages},
};
use serde_json::json;

use crate::{
    Done, check,
    error::Error,
    machine,
    next_start::NextStart,
    plan,
    planned::Detail,
    postgres, probe,
    status::{Format, with_state},
};

/// The checks that are about a start.
const ABOUT_START: [CheckId; 3] = [
    CheckId::CgroupFaultLimit,
    CheckId::Restart,
    CheckId::PendingSettings,
];

/// The options of `preflight`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// Also maps and touches the pages in a child process, which holds them for that time.
    #[arg(long)]
    probe: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let next = NextStart::read_or_new(&options.server, Detail::All)?;
    if let Some(data) = &next.data_directory {
        if let Some(pid) = postgres::running(data) {
            return Err(Error::with_hint(
                format!("the server of this data directory is running (PID {pid})"),
                "Use hugeinfo status, or stop the server first",
            ));
        }
        postgres::check_containers(data)?;
    }
    next.settings()?;
    let state = next.state();
    if let (Some(directory), ServerState::NotCreated) = (options.server.directory(), state) {
        let directory = escape::name(directory);
        eprintln!("NOTICE:  {directory} is empty: the answer is for a new server");
    }
    let machine = machine::stopped(&next, state)?;
    let answer = Answer::of(&machine);
    let checks = answer.chosen(|id| ABOUT_START.contains(&id));
    let mut status = checks.iter().map(|check| check.finding.status).max();
    let target = Forecast::for_target(&machine);
    let probed = match &target {
        Some(target) if options.probe && machine.state.asks_for_huge_pages() => {
            let size = PageSize(target.pool.page_bytes);
            let bytes = machine.state.needed_bytes();
            let answer = probe::probe(bytes, size)?;
            status = status.max(Some(answer.status(machine.state.next_start().huge_pages)));
            Some(answer.sentence(bytes, size))
        }
        _ => None,
    };
    let initdb = match state {
        ServerState::NotCreated => of_initdb(&machine, &next.version, options.probe)?,
        ServerState::Stopped | ServerState::Running => None,
    };
    let is_limited = |check: &CheckResult| {
        check.id == CheckId::CgroupFaultLimit && check.finding.status.needs_attention()
    };
    let is_container = machine.whole().and_then(|facts| facts.is_container);
    let pod = target
        .filter(|_| is_container == Some(true) || checks.iter().any(is_limited))
        .map(|target| {
            let size = PageSize(target.pool.page_bytes);
            let resource = plan::resource(target.required, size);
            format!("In Kubernetes, requests and limits need {resource}")
        });
    Ok(Done {
        text: match options.format {
            Format::Json => {
                let document = json!({
                    "checks": check::rows(&machine, &checks),
                    "remedy": remedy(&machine, &answer, &checks),
                    "probe": probed,
                    "pod": pod,
                    "initdb": initdb,
                });
                format!("{:#}\n", with_state(&machine, document))
            }
            Format::Text => {
                let mut text = to_text(&machine, &answer, &checks);
                for line in probed.iter().chain(&pod).chain(&initdb) {
                    let _ = writeln!(text, "{line}");
                }
                escape::lines(text)
            }
        },
        exit_status: crate::exit_status(status.unwrap_or(Status::Unknown)),
    })
}

/// Returns the instructions for initdb, whose trial servers request huge pages and die if a cgroup
/// does not let them use any. `None`: initdb needs none.
fn of_initdb(machine: &Machine, version: &str, tries: bool) -> Result<Option<String>, Error> {
    // A trial server with the largest settings that initdb tries (initdb.c `test_config_settings`).
    const TRIAL_BYTES: u64 = 143 << 20;
    let trial = machine.with_next_start(Server {
        huge_pages: HugePages::Try,
        shared_memory_type: SharedMemoryType::Mmap,
        huge_page_size_bytes: None,
        shared_memory_bytes: TRIAL_BYTES,
    });
    let limit = answer::finding(&trial, CheckId::CgroupFaultLimit);
    let crashes = limit.status.needs_attention() || tries && crashes(&trial)?;
    Ok(of_crash(version).filter(|_| crashes))
}

/// True if a server crashes that has the pages that it needs, or all pages of the pool, because
/// initdb also tries smaller servers. A container cannot see the limits above its own cgroup.
fn crashes(trial: &Machine) -> Result<bool, Error> {
    let next = trial.next_start();
    let Some(pool) = trial.size_to_map(&next).and_then(|size| trial.pool(size)) else {
        return Ok(false);
    };
    let size = PageSize(pool.page_bytes);
    let pages = trial.pages_mapped(&next, size).min(Pages(pool.available()));
    let bytes = (pages * size).0;
    Ok(bytes > 0 && matches!(probe::probe(bytes, size)?, probe::Answer::Killed(_)))
}

fn of_crash(version: &str) -> Option<String> {
    Some(match postgres::major_version(version)? {
        16.. => "initdb would also crash here: run initdb -c huge_pages=off".to_owned(),
        _ => "initdb would also crash here, and leave max_connections = 20 and shared_buffers = 400kB: append huge_pages = off to a copy of postgresql.conf.sample, run initdb -L on the directory of the copy, and then set both".to_owned(),
    })
}

fn to_text(machine: &Machine, answer: &Answer, checks: &[CheckResult]) -> String {
    let mut text = String::new();
    if let Some(target) = Forecast::for_target(machine) {
        let size = PageSize(target.pool.page_bytes);
        let available = Pages(target.pool.available());
        let _ = writeln!(
            text,
            "Needs {}; {available} {} available.",
            huge_pages(target.required, size),
            available.verb("is", "are")
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
    text + &check::indented(remedy(machine, answer, checks))
}

/// The remedy, if a check needs attention.
fn remedy(machine: &Machine, answer: &Answer, checks: &[CheckResult]) -> Option<String> {
    let mut statuses = checks.iter().map(|check| check.finding.status);
    statuses
        .any(Status::needs_attention)
        .then(|| render::remedy(machine, &answer.remedy()))
        .flatten()
}
