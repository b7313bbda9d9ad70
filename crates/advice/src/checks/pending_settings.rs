//! The effect of the configuration files, as they are on disk, on the next start.

use serde_json::json;

use super::{
    CheckId, cgroup_fault_limit,
    definition::{Check, Cure},
    restart,
};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, Status, Unknown, whole},
    model::{
        demand::{self, Demands},
        machine::{Machine, ServerState},
    },
};
use host::{
    server::{setting::SettingSource, state::Files},
    units::huge_pages,
};

pub(super) const CHECK: Check = Check {
    name: "pending_settings",
    judge,
    cure: Cure::Core(|machine| {
        decision(machine)
            .or_else(|| about_files(machine))
            .or_else(|| restart::decision(machine))
            .or_else(|| limited(machine).and_then(|_| cgroup_fault_limit::decision(machine)))
    }),
    needs_running_server: false,
    counts_for_server,
    docs: "\
Looks at the configuration files as they are on disk. PostgreSQL itself reads them and computes the
size in a child process, as for [`hugeinfo_plan`](plan.md). If settings are pending a restart, the
check has the codes of `restart` and `cgroup_fault_limit` for the next start.

| code | status | meaning |
|---|---|---|
| `nothing_pending` | ok | no pending setting changes the number or size of huge pages |
| `needs_command_line` | warning | a start from the files alone, without the options of the command line, would fail or run out of memory |
| `would_not_start` | critical | PostgreSQL refuses the files, with its own message |

The check is `unknown` if the child process cannot run, and in the
[program](program.md#exit-status-and-permissions) as root, for a server that nobody has named and
whose files have changed. It does not look at `pg_hba.conf`, certificates, ports and directories, or
at settings that are too low for recovery, such as `max_connections` of a standby below that of its
primary. PostgreSQL reports these problems when it starts.

If the command line of the server sets some of the settings that determine the size of shared
memory, roles that can execute `hugeinfo_plan(text)` also see whether a start from the files alone
would fail or run out of memory. The program computes this, too, except as root for a server that
nobody has named.

**What to do.** Follow the remedy, or correct the files. `pg_monitor` sees numbers and names of
settings. Values, lines of files and PostgreSQL's message are visible to roles that can execute
`hugeinfo_plan(text)`.

For `pg_monitor`, the child process runs only if a setting has `pending_restart`, or if a file has
changed since the last reload. Otherwise a new included file outside `conf.d`, and a wrong value
from before the last reload, are not noticed. `hugeinfo_next_start` notices both.
",
};

/// Whether the files prevent the next start.
fn counts_for_server(machine: &Machine) -> bool {
    machine.whole().is_some() && machine.state.next.files.stop_a_start()
}

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let finding = of_files(machine)?;
    Ok(match without_command_line(machine) {
        Some(of_start) => Finding {
            status: Status::Warning,
            code: "needs_command_line",
            text: format!("{of_start} {}", finding.text),
            evidence: finding.evidence,
        },
        _ => finding,
    })
}

fn of_files(machine: &Machine) -> Judgment {
    let next = &machine.state.next;
    Ok(match &next.files {
        Files::Valid if machine.pending().is_none() => Finding::ok(
            "nothing_pending",
            with_command_line(
                machine,
                "No pending setting changes the number or size of huge pages.".to_owned(),
            ),
        )
        .with(json!({ "waiting": false })),
        Files::Valid => {
            let finding = match limited(machine) {
                Some(limited) => limited,
                None => restart::judge(machine)?,
            };
            let which = match next.pending.as_slice() {
                [] => String::new(),
                names => format!(" ({})", names.join(", ")),
            };
            let mut evidence = finding.evidence;
            evidence["waiting_settings"] = json!(next.pending);
            Finding {
                text: with_command_line(
                    machine,
                    format!("Settings are pending a restart{which}. {}", finding.text),
                ),
                evidence,
                ..finding
            }
        }
        Files::Refused(message) => {
            Finding::critical("would_not_start", refused("The next start", message))
                .with(json!({ "waiting": true }))
        }
        Files::Unknown { why, .. } => return Err(Unknown(why.clone())),
        Files::NotNamed(command) => {
            return Err(Unknown(format!(
                "its files have changed since it started, or only PostgreSQL can evaluate them, \
                 and root runs PostgreSQL only for servers that you name ({command})"
            )));
        }
    })
}

/// The finding about a limit that is too low for the next start.
fn limited(machine: &Machine) -> Option<Finding> {
    let finding = cgroup_fault_limit::of_next_start(machine).ok();
    finding.filter(|finding| finding.status != Status::Ok)
}

/// The settings on the command line of the running server. `None`: there are none.
pub(crate) fn on_command_line(machine: &Machine) -> Option<String> {
    let settings = machine.state.next.settings.iter();
    let names = settings.filter(|(_, setting)| setting.source == SettingSource::CommandLine);
    let names: Vec<_> = names
        .map(|(name, setting)| format!("{name} = {}", setting.value))
        .collect();
    (!names.is_empty() && machine.server_state == ServerState::Running).then(|| {
        format!(
            "The command line of the server sets {}. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start).",
            names.join(", ")
        )
    })
}

/// The text about a start from files that PostgreSQL refuses.
fn refused(start: &str, message: &str) -> String {
    let message = message.trim_end().trim_end_matches('.');
    format!("{start} would fail because of the configuration files: {message}.")
}

/// Whether the finding is only about a limit, whose own check has it, too, with the remedy, or about
/// a start from the files alone, which is judged once the next start succeeds.
pub(crate) fn is_left_to_others(machine: &Machine) -> bool {
    let of_limit = CheckId::CgroupFaultLimit.judge(machine).code;
    limited(machine).is_some_and(|limited| limited.code == of_limit)
        || without_command_line(machine).is_some()
}

/// The text about a start from the files alone, if it would fail or run out of memory, and the next
/// start would not.
fn without_command_line(machine: &Machine) -> Option<String> {
    const START: &str = "start without the options of the command line";
    of_files(machine)
        .ok()
        .filter(|finding| finding.status < Status::Critical)?;
    if let Some(message) = &machine.state.next.refused_alone {
        return Some(refused(&format!("A {START}"), message));
    }
    on_command_line(machine)?;
    let from_files = machine.next_start_from_files()?;
    let finding = restart::judge_start(&from_files, &format!("a {START}")).ok()?;
    // The next start has the options of the command line.
    let text = finding.text.replace("The next start uses", "It uses");
    (finding.status == Status::Critical).then_some(text)
}

/// The decision about files from which the server would not start.
pub(crate) fn about_files(machine: &Machine) -> Option<Decision> {
    without_command_line(machine)?;
    let files = machine.state.next.from_files.as_ref();
    let pages = files.and_then(|files| {
        let size = machine.size_to_map(files)?;
        machine.pool(size)?;
        let pages = demand::pages_from_files(machine, size, Some(files));
        let at_boot = Demands::at_boot(machine, size, &machine.next_start());
        let fits = at_boot.is_none_or(|at_boot| at_boot.of_this_server() >= pages);
        fits.then(|| format!(", or allocate {} for such a start", huge_pages(pages, size)))
    });
    Some(Decision::Text(format!(
        "before a start without the options of the command line, correct the settings in the files{}",
        pages.unwrap_or_default()
    )))
}

fn with_command_line(machine: &Machine, text: String) -> String {
    match on_command_line(machine) {
        Some(sentence) => format!("{text} {sentence}"),
        None => text,
    }
}

/// The decision about files that have to be corrected.
fn decision(machine: &Machine) -> Option<Decision> {
    match &machine.whole_state()?.next.files {
        Files::Refused(why) => Some(Decision::CorrectFiles(why.clone())),
        Files::Valid | Files::Unknown { .. } | Files::NotNamed(_) => None,
    }
}
