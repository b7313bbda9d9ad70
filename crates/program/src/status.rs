//! `hugeinfo status`: whether the server is on huge pages, and what to do.

use std::time::Duration;

use advice::{
    answer::Answer,
    check::Status,
    ensure,
    model::machine::{Machine, ServerState},
    render,
    status::StatusRow,
    text::{self, Kind},
};
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use host::escape;
use serde_json::{Value, json};

use crate::{
    Done,
    command::caught,
    error::Error,
    machine,
    next_start::NextStart,
    planned::Detail,
    target::{self, Target},
};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs, with the names of the columns in SQL.
    Json,
}

/// The options of `status`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// All servers that run on this host, and all Debian clusters.
    #[arg(long, conflicts_with_all = ["data", "cluster", "settings"])]
    all: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    if options.all {
        return all(options);
    }
    let machine = machine::read(&Target::find(&options.server)?, &options.server)?;
    let answer = Answer::of(&machine);
    Ok(Done {
        text: match options.format {
            Format::Text => text(&machine, &answer),
            Format::Json => format!("{:#}\n", row(&machine, &answer)),
        },
        exit_status: crate::exit_status(answer.verdict.status),
    })
}

/// Time for all servers.
const ALL_LIMIT: Duration = Duration::from_secs(90);

fn all(options: &Options) -> Result<Done, Error> {
    let server = options.server.of_several();
    let (mut texts, mut rows) = (Vec::new(), Vec::new());
    let mut exit_status = 0;
    let targets = Target::all()?;
    // One server that cannot be read does not hide the others.
    let read = move |target: &Target| match target.postmaster {
        Some(_) => Ok((machine::read(target, &server)?, false)),
        None => {
            let next = NextStart::read(&target.options(&server), Detail::All)?;
            let machine = machine::stopped(&next, ServerState::Stopped)?;
            Ok((machine, next.starts_at_boot))
        }
    };
    let read = target::each(&targets, ALL_LIMIT, read);
    let read = count_stopped(&targets, read);
    for (target, result) in targets.iter().zip(read) {
        let name = target.name();
        let answered = result.and_then(|machine| {
            caught(|| {
                let answer = Answer::of(&machine);
                let status = crate::exit_status(answer.verdict.status);
                Ok((text(&machine, &answer), row(&machine, &answer), status))
            })
        });
        let status = match answered {
            Ok((text, mut row, status)) => {
                texts.push(format!("{name}:\n{text}"));
                row["server"] = name.into();
                rows.push(row);
                status
            }
            Err(error) => {
                texts.push(format!("{name}:\nUNKNOWN  {}\n", error.indented()));
                rows.push(json!({ "server": name, "error": error.to_string().trim_end() }));
                error.exit_status()
            }
        };
        exit_status = crate::worse(exit_status, status);
    }
    if rows.is_empty() {
        return Err(Error::new("no server is running on this host"));
    }
    Ok(Done {
        text: match options.format {
            Format::Text => texts.join("\n"),
            Format::Json => format!("{:#}\n", json!({ "schema": 1, "servers": rows })),
        },
        exit_status,
    })
}

/// Tells the others about stopped servers that the next boot starts, so that idle pages stay, which
/// could be theirs.
fn count_stopped(
    targets: &[Target],
    mut read: Vec<Result<(Machine, bool), Error>>,
) -> Vec<Result<Machine, Error>> {
    let starting: Vec<_> = targets
        .iter()
        .zip(&read)
        .map(|(target, result)| {
            let stopped = result.as_ref().ok();
            // If it is unknown whether the next boot starts it, it does.
            let is_starting =
                target.postmaster.is_none() && stopped.is_none_or(|(_, starts)| *starts);
            is_starting.then(|| ensure::starting_later(stopped.map(|(machine, _)| machine)))?
        })
        .collect();
    for (index, result) in read.iter_mut().enumerate() {
        let Ok((machine, _)) = result else { continue };
        let Ok(servers) = &mut machine.state.other_servers else {
            continue;
        };
        let others = starting.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        servers.extend(others.filter_map(|(_, server)| server.clone()));
    }
    let machines = read.into_iter();
    machines
        .map(|result| result.map(|(machine, _)| machine))
        .collect()
}

/// The text, with colors if the output is a terminal, and `NO_COLOR` and `TERM` allow it.
fn text(machine: &Machine, answer: &Answer) -> String {
    let is_colored = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let lines = text::lines(machine, answer).into_iter().map(|line| {
        let text = escape::lines(&line.text);
        // Labels and bars are ASCII.
        match text.split_at_checked(line.label) {
            Some((label, rest)) if is_colored => colored(line.kind, label, rest) + "\n",
            _ => text + "\n",
        }
    });
    lines.collect()
}

fn colored(kind: Kind, label: &str, rest: &str) -> String {
    let paint = |style: Style, text: &str| match text {
        "" => String::new(),
        _ => format!("{style}{text}{style:#}"),
    };
    let bold = Style::new().bold();
    match kind {
        Kind::Status(status) => {
            let color = match status {
                Status::Ok => AnsiColor::Green,
                Status::Warning => AnsiColor::Yellow,
                Status::Critical => AnsiColor::Red,
                Status::Unknown => AnsiColor::Cyan,
            };
            paint(bold.fg_color(Some(color.into())), label) + rest
        }
        Kind::Bar => {
            let (bar, counts) = rest.split_at_checked(text::BAR + 2).unwrap_or((rest, ""));
            let needed = bar.find('|').unwrap_or(0);
            let cells = bar.char_indices().map(|(at, cell)| match cell {
                '#' => paint(AnsiColor::Blue.on_default(), "#"),
                '=' if at > needed => paint(AnsiColor::Yellow.on_default(), "="),
                _ => cell.to_string(),
            });
            paint(bold, label) + &cells.collect::<String>() + counts
        }
        Kind::Text => paint(bold, label) + rest,
        Kind::Command => label.to_owned() + &paint(bold, rest),
    }
}

/// The row of `hugeinfo_status`.
fn row(machine: &Machine, answer: &Answer) -> Value {
    let mut row = json!(StatusRow::of(machine, &answer.verdict));
    row["remedy"] = render::remedy(machine, &answer.remedy()).into();
    with_state(machine, row)
}

/// Adds the version of the form, and the state of the server.
pub(crate) fn with_state(machine: &Machine, mut document: Value) -> Value {
    document["schema"] = 1.into();
    document["state"] = match machine.server_state {
        ServerState::Running => "running",
        ServerState::Stopped => "stopped",
        ServerState::NotCreated => "not created",
    }
    .into();
    document
}
