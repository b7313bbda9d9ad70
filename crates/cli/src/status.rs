//! `hugeinfo status`: whether the server is on huge pages, and what to do.

use clap::{Args, ValueEnum};
use hugeinfo::{
    advice::{diagnosis, render, status::StatusRow, text},
    escape,
    model::machine::{Machine, ServerState},
};
use serde_json::{Value, json};

use crate::{Done, error::Error, machine, target::Target};

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
    Ok(Done {
        text: match options.format {
            Format::Text => text(&machine),
            Format::Json => format!("{:#}\n", row(&machine)),
        },
        exit_status: crate::exit_status(diagnosis::verdict(&machine).status),
    })
}

fn all(options: &Options) -> Result<Done, Error> {
    let server = options.server.of_several();
    let (mut texts, mut rows) = (Vec::new(), Vec::new());
    let mut exit_status = 0;
    for target in Target::all()? {
        let name = target.name();
        // One server that cannot be read does not hide the others.
        let status = match machine::read(&target, &server) {
            Ok(machine) => {
                texts.push(format!("{name}:\n{}", text(&machine)));
                let mut row = row(&machine);
                row["server"] = name.into();
                rows.push(row);
                crate::exit_status(diagnosis::verdict(&machine).status)
            }
            Err(error) => {
                texts.push(format!("{name}:\nUNKNOWN  {error}"));
                rows.push(json!({ "server": name, "error": error.to_string().trim_end() }));
                error.exit_status()
            }
        };
        exit_status = exit_status.max(status);
    }
    if rows.is_empty() {
        return Err(Error::new("no server was found on this host"));
    }
    Ok(Done {
        text: match options.format {
            Format::Text => texts.join("\n"),
            Format::Json => format!("{:#}\n", json!({ "schema": 1, "servers": rows })),
        },
        exit_status,
    })
}

fn text(machine: &Machine) -> String {
    escape::lines(text::text(machine)) + "\n"
}

/// The row of `hugeinfo_status`.
fn row(machine: &Machine) -> Value {
    let remedy = render::remedy(machine, &diagnosis::remedy(machine));
    let mut row = json!(StatusRow::of(machine));
    row["remedy"] = remedy.into();
    with_state(machine, row)
}

/// Adds the version of the form, and the state of the server.
pub(crate) fn with_state(machine: &Machine, mut document: Value) -> Value {
    document["schema"] = 1.into();
    document["state"] = match machine.state {
        ServerState::Running => "running",
        ServerState::Stopped => "stopped",
        ServerState::NotCreated => "not created",
    }
    .into();
    document
}
