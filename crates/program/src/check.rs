//! `hugeinfo check`: all checks, also as a plugin for Nagios.

use std::fmt::Write;

use advice::{
    answer::Answer,
    check::{CheckId, CheckResult, Remedy, Status, names, problems},
    model::machine::Machine,
    render,
    status::StatusRow,
};
use clap::{Args, ValueEnum};
use host::escape;
use serde_json::{Value, json};

use crate::{Done, error::Error, machine, sentence, status::with_state, target::Target};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs, with the names of the columns of `hugeinfo_checks`.
    Json,
    /// For Nagios, Icinga and compatible programs.
    Nagios,
}

/// The options of `check`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// Evaluates only these checks, separated by commas.
    #[arg(long = "only", value_name = "CHECKS", value_delimiter = ',', value_parser = parse_check)]
    only: Vec<CheckId>,
    /// Evaluates all checks except these, separated by commas.
    #[arg(long = "ignore", value_name = "CHECKS", value_delimiter = ',', value_parser = parse_check)]
    ignored: Vec<CheckId>,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn parse_check(name: &str) -> Result<CheckId, String> {
    let found = CheckId::all().find(|id| id.name() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = CheckId::all().map(CheckId::name).collect();
        format!("the checks are {}", names.join(", "))
    })
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let read =
        Target::find(&options.server).and_then(|target| machine::read(&target, &options.server));
    let machine = match read {
        Err(error) if options.format == Format::Nagios => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            return Ok(Done {
                text: format!("HUGEPAGES UNKNOWN - {}\n", printable(first)),
                exit_status: 3,
            });
        }
        read => read?,
    };
    let is_chosen = |id: CheckId| {
        (options.only.is_empty() || options.only.contains(&id)) && !options.ignored.contains(&id)
    };
    let answer = Answer::of(&machine);
    let checks = answer.chosen(is_chosen);
    let worst = checks.iter().map(|check| check.finding.status).max();
    Ok(Done {
        text: match options.format {
            Format::Text => to_text(&machine, &checks),
            Format::Json => {
                let document = json!({ "checks": rows(&machine, &checks) });
                format!("{:#}\n", with_state(&machine, document))
            }
            Format::Nagios => {
                let row = StatusRow::of(&machine, &answer.verdict);
                to_nagios(&machine, row, &checks, options.only.is_empty())
            }
        },
        exit_status: crate::exit_status(worst.unwrap_or(Status::Ok)),
    })
}

/// The rows of `hugeinfo_checks`.
pub(crate) fn rows(machine: &Machine, checks: &[CheckResult]) -> Vec<Value> {
    checks.iter().map(|check| row(machine, check)).collect()
}

fn row(machine: &Machine, check: &CheckResult) -> Value {
    let finding = &check.finding;
    let steps = match &check.remedy {
        Remedy::Steps(plan) => Some(render::data(machine, &plan.steps)),
        Remedy::Nothing | Remedy::As(_) | Remedy::NeedsDecision(_) => None,
    };
    json!({
        "name": check.name(),
        "status": finding.status.as_str(),
        "code": finding.code,
        "finding": finding.text,
        "remedy": render::remedy(machine, &check.remedy),
        "evidence": finding.evidence,
        "steps": steps,
        "severity": finding.status.severity(),
        "is_muted": check.is_muted,
    })
}

fn to_text(machine: &Machine, checks: &[CheckResult]) -> String {
    let mut text = String::new();
    for check in checks {
        let CheckResult { finding, .. } = check;
        let status = finding.status.as_str();
        text += &sentence(&format!("{status:<8} {}: ", check.name()), &finding.text);
        text += &indented(render::remedy(machine, &check.remedy));
    }
    escape::lines(text)
}

/// The lines of a remedy, if there is one, below its finding.
pub(crate) fn indented(remedy: Option<String>) -> String {
    let lines = remedy.iter().flat_map(|remedy| remedy.lines());
    lines.map(|line| format!("    {line}\n")).collect()
}

/// The output of a plugin (Monitoring Plugins Development Guidelines): the worst finding, the most
/// important one of several, the names of the other checks, the performance data, and the problems
/// with their remedies. If all checks are ok and `is_whole`, the verdict on the server comes first.
fn to_nagios(machine: &Machine, row: StatusRow, checks: &[CheckResult], is_whole: bool) -> String {
    let count = |status| {
        let of_status = checks.iter().filter(|check| check.finding.status == status);
        of_status.count()
    };
    // Stable: the checks are in the order of importance.
    let bad = problems(
        checks
            .iter()
            .filter(|check| check.finding.status > Status::Ok),
    );
    let worst = bad.first().and_then(|problem| problem.first().copied());
    let worst = worst.or(checks.first());
    let (status, first) = match worst {
        Some(check)
            if is_whole
                && check.finding.status == Status::Ok
                && row.status == Status::Ok.as_str() =>
        {
            (Status::Ok, row.reason)
        }
        Some(check) => (
            check.finding.status,
            format!("{}: {}", check.name(), check.finding.text),
        ),
        None => (Status::Ok, "all checks are ignored".to_owned()),
    };
    let same = bad.first().map_or(&[][..], |problem| &problem[1..]);
    let others: Vec<_> = bad.iter().skip(1).map(|problem| problem[0]).collect();
    let same = (!same.is_empty()).then(|| format!("same cause: {}", names(same)));
    let others =
        (!others.is_empty()).then(|| format!("and {} more: {}", others.len(), names(&others)));
    let more: Vec<_> = same.into_iter().chain(others).collect();
    let more = match more.as_slice() {
        [] => String::new(),
        more => format!(" ({})", more.join("; ")),
    };
    let flag = |value: Option<bool>| value.map(u64::from);
    let critical = count(Status::Critical);
    let warning = count(Status::Warning);
    let unknown = count(Status::Unknown);
    let as_u64 = |count: usize| u64::try_from(count).ok();
    let figures = [
        ("checks_critical", as_u64(critical), "", "", "0", ""),
        ("checks_warning", as_u64(warning), "", "0", "", ""),
        ("checks_unknown", as_u64(unknown), "", "", "", ""),
        ("in_use", flag(row.in_use), "", "", "", "1"),
        (
            "fits_after_restart",
            flag(row.fits_after_restart),
            "",
            "",
            "",
            "1",
        ),
        ("segment_bytes", row.segment_bytes, "B", "", "", ""),
        ("required_pages", row.required_huge_pages, "", "", "", ""),
        ("shortfall_pages", row.shortfall_pages, "", "", "", ""),
        (
            "recommended_pages",
            row.recommended_nr_hugepages,
            "",
            "",
            "",
            "",
        ),
    ];
    let figures = figures.map(|(label, value, unit, warning, critical, most)| {
        let value = value.map_or("U".to_owned(), |value| format!("{value}{unit}"));
        format!("{label}={value};{warning};{critical};0;{most}")
    });
    let mut text = format!(
        "HUGEPAGES {} - {}{more} | {}\n",
        status.as_str().to_uppercase(),
        printable(&first),
        figures.join(" ")
    );
    for problem in bad {
        let Some((first, same)) = problem.split_first() else {
            continue;
        };
        let name = first.name();
        let status = first.finding.status.as_str().to_uppercase();
        let _ = writeln!(text, "{status}: {name}: {}", printable(&first.finding.text));
        let remedies = problem.iter().map(|check| &check.remedy);
        for remedy in remedies.filter(|remedy| !matches!(remedy, Remedy::As(_))) {
            for line in indented(render::remedy(machine, remedy)).lines() {
                let _ = writeln!(text, "{}", printable(line));
            }
        }
        if !same.is_empty() {
            let _ = writeln!(text, "    # same cause: {}", names(same));
        }
    }
    text
}

/// Performance data begin at the first `|`, so it must not occur in texts.
fn printable(text: &str) -> String {
    escape::name(text).replace('|', "¦")
}
