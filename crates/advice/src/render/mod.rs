//! Steps as commands. No command is formatted elsewhere.

mod commands;

pub use commands::{Place, command, data, instruction, place, why};
pub(crate) use commands::{condition, conditional, in_sentence, more_at_boot, setting, to_keep};

use super::{
    decision::Decision,
    plan::{self, Remedy},
    thresholds::ASSUMED_USE_PERCENT,
};
use crate::model::{forecast::Forecast, machine::Machine, step::Step};
use host::units::{PageSize, huge_page_size_setting};

/// The remedy as text that can be pasted: commands are commands, everything else is a comment.
/// SQL alone is for psql; as soon as a shell is needed, SQL is passed to psql from the shell. A
/// shell continues if psql fails, so a comment follows. It would not wait for a server that has to
/// stop, either: commands for the time when it is stopped are comments, too.
/// `None`: nothing has to be done.
pub fn remedy(machine: &Machine, remedy: &Remedy) -> Option<String> {
    match remedy {
        Remedy::Nothing => None,
        Remedy::As(name) => Some(format!("# as {name}")),
        Remedy::NeedsDecision(decision) => Some(comment("#", &decision.to_string())),
        Remedy::Steps(plan) => {
            let is_sql = |step: &Step| place(machine, step) == Place::Sql;
            let needs_shell = plan
                .steps
                .iter()
                .any(|step| !is_sql(step) && command(machine, step).is_some());
            let has_sql = plan
                .steps
                .iter()
                .any(|step| is_sql(step) && command(machine, step).is_some());
            let mark = if has_sql && !needs_shell { "--" } else { "#" };
            let (first, remaining) = match plan.decides_first() {
                true => plan.remaining.split_at(1),
                false => plan.remaining.split_at(0),
            };
            let as_comment = |decision: &Decision| comment(mark, &decision.to_string());
            let mut lines: Vec<_> = first.iter().map(as_comment).collect();
            let mut last = None;
            let mut follows_psql = false;
            // Commands after a stop or a restart wait until a person has done it.
            let mut waits = false;
            let mut at = machine.clone();
            for (index, step) in plan.steps.iter().enumerate() {
                let shell = match place(&at, step) {
                    Place::Node => Some("on the node, as root:"),
                    Place::RootShell => Some("as root:"),
                    _ => None,
                };
                let command = command(&at, step);
                let later = &plan.steps[index + 1..];
                let condition = condition(machine, &at, step, later);
                let is_command = command.is_some();
                let (whose, text) = match command {
                    Some(sql) if is_sql(step) && needs_shell => commands::psql(&at, &sql),
                    Some(command) => (shell, command),
                    None => (shell, instruction(&at, step)),
                };
                let is_psql = is_sql(step) && whose.is_some();
                if follows_psql && !is_psql {
                    lines.push(comment(mark, "stop here if psql failed"));
                }
                follows_psql = is_psql;
                if whose != last
                    && (whose.is_some_and(|whose| whose != "as root:") || last.is_some())
                {
                    lines.extend(whose.map(|whose| comment(mark, whose)));
                }
                last = whose;
                let prefix = match (waits && is_command, condition) {
                    (false, None) => None,
                    (true, None) => Some("# then".to_owned()),
                    (false, Some(condition)) => Some(format!("# {condition}")),
                    (true, Some(condition)) => Some(format!("# then, {condition}")),
                };
                match prefix {
                    Some(prefix) => {
                        lines.extend(text.lines().map(|line| format!("{prefix}: {line}")));
                    }
                    None if is_command => lines.push(text),
                    None => lines.push(comment(mark, &text)),
                }
                waits |= step.is_disruptive();
                let kept = commands::to_keep(step, plan.steps.get(index + 1));
                lines.extend(kept.map(|kept| comment(mark, kept)));
                let sum = commands::sum(&at, step).or_else(|| more_at_boot(&at, step));
                lines.extend(sum.map(|sum| comment(mark, &sum)));
                at = at.apply(step).unwrap_or(at);
            }
            lines.extend(remaining.iter().map(as_comment));
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
    }
}

/// The remedy for the number of pages of a pool, with the memory that is assumed if it is unknown,
/// as for another host, and the setting that a server needs for another page size than the default.
pub fn how_to_set(machine: &Machine, pool: &Forecast) -> Option<String> {
    let size = PageSize(pool.pool.page_bytes);
    let how = plan::how_to_set(machine, size);
    let mut lines = vec![remedy(machine, &how)?];
    let is_about_memory = matches!(
        how,
        Remedy::NeedsDecision(Decision::FreeMemory { .. } | Decision::LowerSharedBuffers { .. })
    );
    if is_about_memory && machine.usage().and_then(|usage| usage.available).is_none() {
        let assumed = format!("other programs are assumed to use {ASSUMED_USE_PERCENT}% of RAM");
        lines.push(comment("#", &assumed));
    }
    // A setting for pages of another size has to change, too.
    let set = machine.next_start().huge_page_size_bytes;
    let is_other = set.is_some_and(|bytes| bytes > 0 && bytes != size.0);
    if pool.is_default != Some(true) || is_other {
        let setting = huge_page_size_setting(size);
        lines.push(comment("#", &format!("postgresql.conf: {setting}")));
    }
    Some(lines.join("\n"))
}

fn comment(mark: &str, text: &str) -> String {
    let lines = text.lines().map(|line| format!("{mark} {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
