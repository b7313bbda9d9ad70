//! `hugeinfo report`: one HTML page about a running server.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use advice::answer::Answer;
use clap::Args;
use host::{
    escape,
    server::{
        footprint::{Footprint, Shared},
        sources,
    },
};
use hugeinfo_report::{
    page,
    subject::{About, Figures, Process, Subject},
    utc_now,
};
use serde_json::Value;

use crate::{
    Done,
    error::Error,
    machine::{self, Member},
    root,
    target::Target,
};

/// Bytes of a saved row. A row has about 1 kB.
const LARGEST_ROW: u64 = 1 << 20;

/// The options of `report`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// Compares the memory of the server with a saved row of hugeinfo_footprint, as written by psql
    /// -XAtqc 'SELECT to_jsonb(f) FROM hugeinfo_footprint AS f'.
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let before = options.before.as_deref().map(saved).transpose()?;
    let target = Target::find(&options.server)?;
    let Some(pid) = target.postmaster else {
        return Err(Error::with_hint(
            "the server does not run",
            "To see its next start, use hugeinfo status",
        ));
    };
    let seen = machine::read_running(pid, &target.options(&options.server))?;
    let memories: Vec<_> = seen.members.iter().map(|member| member.memory).collect();
    let name = rustix::system::uname();
    let address = seen.machine.facts.connection.address.as_ref();
    let subject = Subject {
        // Dynamic shared memory of a server can be found only from inside.
        footprint: Footprint::new(&seen.machine.state, &memories, &Shared::default()),
        before,
        sources: sources::probe(&root(), &seen.subject)?,
        about: About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            server_version: seen.major_version,
            taken_at: utc_now(),
            is_in_recovery: seen.is_recovering,
            host_name: Some(escape::name(&*name.nodename().to_string_lossy())),
            cluster_name: None,
            port: address.map(|(_, port)| port.to_string()),
        },
        may_plan: true,
        processes: seen.members.iter().map(process).collect(),
        machine: seen.machine,
    };
    let answer = Answer::of(&subject.machine);
    Ok(page(&subject, &answer).into())
}

/// The saved row in a file.
fn saved(file: &Path) -> Result<Figures, Error> {
    let name = escape::name(file);
    let text = File::open(file).and_then(|file| io::read_to_string(file.take(LARGEST_ROW)));
    let text = text.map_err(|error| Error::new(format!("could not read {name}: {error}")))?;
    let row: Option<Value> = serde_json::from_str(&text).ok();
    let before = row.and_then(|row| Figures::of_row(|column| row.get(column)?.as_u64()));
    before.ok_or_else(|| Error::new(format!("{name} is not a row of hugeinfo_footprint as JSON")))
}

fn process(member: &Member) -> Process {
    let kind = match &member.figures {
        figures if figures.is_postmaster => "postmaster",
        figures if figures.is_client_backend => "client backend",
        _ => "auxiliary process",
    };
    Process {
        pid: member.pid,
        backend_type: Some(kind.to_owned()),
        memory: member.memory,
        major_faults: member.figures.major_faults,
        ..Process::default()
    }
}
