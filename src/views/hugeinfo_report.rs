//! `hugeinfo_report`: a report as one HTML page.

use std::collections::HashMap;

use advice::{answer::Answer, model::machine::Machine};
use host::{
    linux::{growth::TryPush, process::status::Memory, root::Root},
    server::sources,
};
use hugeinfo_report::{
    page,
    subject::{About, Figures, Process, Subject},
    utc_now,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::hugeinfo_footprint;
use crate::{
    error::Error,
    machine,
    postgres::{
        activity::{Activity, activity},
        catalog::may_plan,
        interrupts::check_for_interrupts,
        jsonb::Jsonb,
        roles::may_read_server_files,
        server::{is_in_recovery, subject},
        settings::setting,
    },
    processes::Member,
    views::answer,
};

/// Returns the page. It shows the data of `hugeinfo_checks`, read once, and the list of
/// connections. `before` is a saved row of `hugeinfo_footprint`, to compare.
///
/// Errors: 22023 if the argument is not such a row; others as for `hugeinfo_status`. The page lists
/// sources that are missing or cannot be read.
#[pg_extern(parallel_restricted, cost = 1000000)]
fn hugeinfo_report(before: default!(Option<Jsonb>, "NULL")) -> Result<String, ErrorReport> {
    answer(|| {
        let seen = seen(before.map(saved).transpose()?)?;
        check_for_interrupts();
        Ok(page(&seen, &Answer::of(&seen.machine)))
    })
}

fn saved(row: Jsonb) -> Result<Figures, Error> {
    let figures = || {
        let Jsonb::Object(columns) = row else {
            return None;
        };
        Figures::of_row(|name| {
            let (_, value) = columns.iter().find(|(column, _)| column == name)?;
            value.as_ref()?.to_str().ok()?.parse().ok()
        })
    };
    figures().ok_or_else(|| {
        Error::invalid("before must be a row of hugeinfo_footprint").hint(
            "Example: SELECT hugeinfo_report(before => to_jsonb(f)) FROM saved_footprint AS f.",
        )
    })
}

fn seen(before: Option<Figures>) -> Result<Subject, Error> {
    let mut processes: Vec<Process> = Vec::new();
    let mut watcher = |member: &Member, memory: &Memory, buffer: &mut Vec<u8>| {
        processes.try_push(Process {
            pid: member.process.pid(),
            backend_type: member.type_beyond_activity(buffer),
            memory: *memory,
            major_faults: member.stat.major_faults.unwrap_or_default(),
            ..Process::default()
        })?;
        Ok(())
    };
    let mut machine = machine::whole_watched(&mut watcher)?;
    name(&mut processes, activity()?);
    hide_directories(&mut machine);
    let figures: Vec<_> = processes.iter().map(|process| process.memory).collect();
    let pids = processes.iter().map(|process| u64::from(process.pid));
    Ok(Subject {
        footprint: hugeinfo_footprint::of(&machine.state, &figures, &pids.collect())?,
        before,
        sources: sources::probe(&Root::system(), &subject())?,
        about: about(),
        may_plan: may_plan(),
        processes,
        machine,
    })
}

fn name(processes: &mut [Process], mut activity: HashMap<u32, Activity>) {
    for process in processes {
        let Some(of) = activity.remove(&process.pid) else {
            continue;
        };
        process.backend_type = of.backend_type.or(process.backend_type.take());
        (process.database, process.application) = (of.database, of.application);
    }
}

/// Hides the same directories as `hugeinfo_instances`.
fn hide_directories(machine: &mut Machine) {
    if may_read_server_files() {
        return;
    }
    for server in machine.state.other_servers.iter_mut().flatten() {
        server.data_directory = None;
    }
}

fn about() -> About {
    let name = rustix::system::uname();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server_version: setting(c"server_version"),
        taken_at: utc_now(),
        is_in_recovery: is_in_recovery(),
        host_name: some(name.nodename().to_string_lossy().into_owned()),
        cluster_name: some(setting(c"cluster_name")),
        port: some(setting(c"port")),
    }
}
