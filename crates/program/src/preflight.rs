//! `hugeinfo preflight`: whether a start would get huge pages here and now.

use std::fmt::Write;

use advice::{
    answer::Answer,
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
    units::{PageSize, Pages, huge_pages, kubernetes_resource},
};
use serde_json::json;

use crate::{
    Done, check,
    error::Error,
    machine,
    next_start::NextStart,
    planned::Detail,
    postgres, probe, sentence,
    status::{Format, with_state},
};

/// The checks that are about a start.
pub(crate) const ABOUT_START: [CheckId; 3] = [
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
            let outcome = probe::probe(bytes, size)?;
            status = status.max(Some(outcome.status(machine.state.next_start().huge_pages)));
            Some(outcome.sentence(bytes, size))
        }
        _ => None,
    };
    let is_limited = |check: &CheckResult| {
        check.id == CheckId::CgroupFaultLimit && check.finding.status.needs_attention()
    };
    let is_container = machine.whole().and_then(|facts| facts.is_container);
    let pod = target
        .filter(|_| is_container == Some(true) || checks.iter().any(is_limited))
        .map(|target| {
            let size = PageSize(target.pool.page_bytes);
            let resource = kubernetes_resource(target.required * size, size);
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
                });
                format!("{:#}\n", with_state(&machine, document))
            }
            Format::Text => {
                let mut text = to_text(&machine, &answer, &checks);
                for line in probed.iter().chain(&pod) {
                    text += &sentence("", line);
                }
                escape::lines(text)
            }
        },
        exit_status: crate::exit_status(status.unwrap_or(Status::Unknown)),
    })
}

fn to_text(machine: &Machine, answer: &Answer, checks: &[CheckResult]) -> String {
    let mut text = String::new();
    if let Some(target) = Forecast::for_target(machine) {
        let size = PageSize(target.pool.page_bytes);
        let available = match (
            target.pool.available().map(Pages),
            target.pool.bad_counter(),
        ) {
            (Some(pages), _) => format!("{pages} {} available", pages.verb("is", "are")),
            (None, Some(absent)) => absent.to_string(),
            (None, None) => "the pool is unknown".to_owned(),
        };
        let needed = huge_pages(target.required, size);
        let _ = writeln!(text, "Needs {needed}; {available}.");
    }
    for check in checks {
        let status = check.finding.status.as_str();
        text += &sentence(&format!("{status}: "), &check.finding.text);
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
