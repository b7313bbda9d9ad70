//! The answer for people, as plain text of at most 80 columns, except for commands and names.

use super::{
    answer::{Answer, Verdict},
    check::{CheckId, Finding, Status, names, problems},
    checks::on_command_line,
    render::Place,
    runbook::{self, Row},
};
use crate::model::{
    demand::PoolTarget,
    machine::{Machine, ServerState},
    page_tables::{on_each_size, small_and_huge},
};
use host::units::{Bytes, PageSize, Pages};

const WIDTH: usize = 80;
/// Columns of the labels, and of their indentation.
const LABEL: usize = 18;
/// Columns of a bar, without its brackets.
pub const BAR: usize = 16;

/// A line of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line without its line feed. Names in it are not escaped.
    pub text: String,
    /// Bytes of the label at its beginning.
    pub label: usize,
    /// What the line contains.
    pub kind: Kind,
}

/// What a line contains, for a terminal with colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The label is the status of the server.
    Status(Status),
    /// A bar of [`BAR`] columns in brackets, and text.
    Bar,
    Text,
    Command,
}

/// The status of the server, its pools and page tables, the next restart and reboot, and the steps
/// to take.
pub fn text(machine: &Machine, answer: &Answer) -> String {
    joined(lines(machine, answer))
}

fn joined(lines: Vec<Line>) -> String {
    let lines = lines.into_iter().map(|line| line.text);
    lines.collect::<Vec<_>>().join("\n")
}

/// A sentence after `first`, in lines of at most 80 columns, like those of [`text`].
pub fn wrap(first: &str, text: &str) -> String {
    joined(wrapped(first, text))
}

/// The lines of [`text`].
pub fn lines(machine: &Machine, answer: &Answer) -> Vec<Line> {
    let Verdict { status, reason, .. } = &answer.verdict;
    let checks = answer.checks();
    let label = status.as_str().to_uppercase();
    let mut lines = wrapped(&format!("{label}  "), reason);
    lines[0].kind = Kind::Status(*status);
    for pool in machine.pools() {
        let size = PageSize(pool.page_bytes);
        let target = PoolTarget::of(machine, size, &machine.next_start());
        let Some(target) =
            target.filter(|target| target.persistent > Pages(0) || target.after.total() > Pages(0))
        else {
            continue;
        };
        let Some(committed) = pool.committed().map(Pages) else {
            continue;
        };
        let total = Pages(pool.total);
        let needed = target.after.total();
        // If pending settings are unknown, the next start is computed with the running ones.
        let now = match machine.state.next.files.hide_pending_settings() {
            true => " now",
            false => "",
        };
        let counts = format!(
            "{} {needed} needed{now}, {total} in the pool, {committed} in use",
            bar(total, committed, needed)
        );
        let mut of_pool = labeled(&format!("{size} pages"), &counts);
        of_pool[0].kind = Kind::Bar;
        lines.extend(of_pool);
        if target.after.all.len() > 1 {
            let sum = target.after.to_string();
            lines.extend(labeled(
                "",
                &sum.replacen("needed", &format!("needed{now}"), 1),
            ));
        }
    }
    let next_start = match machine.server_state {
        ServerState::Running => "next restart",
        ServerState::Stopped | ServerState::NotCreated => "next start",
    };
    for (label, id) in [
        ("page tables", CheckId::PageTables),
        (next_start, CheckId::Restart),
        ("next reboot", CheckId::Reboot),
    ] {
        let found = checks.iter().find(|check| check.id == id);
        lines.extend(
            found
                .map(|check| labeled(label, &check.finding.text))
                .unwrap_or_default(),
        );
        let more = match id {
            CheckId::PageTables => at_full_load(machine),
            CheckId::Restart => on_command_line(machine),
            _ => None,
        };
        // A server that does not run has no page tables yet.
        let label = if found.is_some() { "" } else { label };
        lines.extend(more.map_or_else(Vec::new, |text| labeled(label, &text)));
    }
    let shown = [
        CheckId::PageTables,
        CheckId::Restart,
        CheckId::Reboot,
        CheckId::HugePages,
    ];
    let is_shown = |id: CheckId| shown.contains(&id) || Some(id) == answer.worst;
    let attention = checks.iter().filter(|check| check.needs_attention());
    for problem in problems(attention) {
        let [first, others @ ..] = problem.as_slice() else {
            continue;
        };
        if !is_shown(first.id) {
            let Finding { status, text, .. } = &first.finding;
            lines.extend(labeled(
                first.name(),
                &format!("{}: {text}", status.as_str()),
            ));
        }
        let others: Vec<_> = others.iter().filter(|check| !is_shown(check.id)).collect();
        if !others.is_empty() {
            let names = names(others);
            lines.extend(labeled(
                "same cause",
                &format!("{names} (as {})", first.name()),
            ));
        }
    }
    let rows = runbook::for_answer(machine, answer);
    for (number, row) in (1..).zip(&rows) {
        let label = if number == 1 { "do this" } else { "" };
        lines.extend(step(label, number, row));
    }
    lines
}

/// Page tables of a server on small pages once all connections use all shared memory.
fn at_full_load(machine: &Machine) -> Option<String> {
    let connections = machine.whole()?.known_max_connections()?;
    let costs = on_each_size(&machine.state, &machine.state.processes, connections);
    let (small, huge) = small_and_huge(machine, &costs)?;
    (small.is_used == Some(true)).then(|| {
        format!(
            "For the shared memory alone, with {connections} connections: up to {}. On {} pages: up to {}.",
            Bytes(small.max_connections),
            PageSize(huge.page_bytes),
            Bytes(huge.max_connections)
        )
    })
}

/// Pages in use or reserved as `#`, free pages as `=`, missing pages as `.`, and `|` at the number
/// that is needed.
fn bar(total: Pages, committed: Pages, needed: Pages) -> String {
    let scale = total.max(needed).0.max(1);
    let column = |pages: Pages| {
        let column = u128::from(pages.0) * BAR as u128 / u128::from(scale);
        usize::try_from(column).unwrap_or(BAR)
    };
    let cell = |index: usize| {
        if needed > Pages(0) && index + 1 == column(needed).max(1) {
            '|'
        } else if index < column(committed) {
            '#'
        } else if index < column(total) {
            '='
        } else if index < column(needed) {
            '.'
        } else {
            ' '
        }
    };
    format!("[{}]", (0..BAR).map(cell).collect::<String>())
}

/// A line with a label. Text that is too long continues below, indented.
fn labeled(label: &str, text: &str) -> Vec<Line> {
    wrapped(&format!("  {label:<width$} ", width = LABEL - 3), text)
}

/// A step. Commands are never wrapped: they are there to be copied.
fn step(label: &str, number: usize, row: &Row) -> Vec<Line> {
    let who = match row.place {
        Some(Place::RootShell) => "root",
        Some(Place::Node) => "node",
        Some(Place::Sql) => "SQL",
        Some(Place::Service | Place::ByHand) | None => "you",
    };
    let first = format!("  {label:<8}{number:>2} {who:<4} ");
    match (&row.command, &row.instruction) {
        (Some(command), _) => vec![Line {
            text: format!("{first}{command}"),
            label: first.len(),
            kind: Kind::Command,
        }],
        (None, Some(instruction)) => wrapped(&first, instruction),
        (None, None) => Vec::new(),
    }
}

/// The beginnings of commands in a text.
const COMMANDS: [&str; 5] = ["ALTER", "echo", "sed -i", "sysctl -w", "umask"];

/// The words of a text. A line does not end between a number and its unit, before an option, or in a
/// command, which is there to be copied, up to a semicolon or an "and".
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_command = false;
    for word in text.split_whitespace() {
        is_command &= word != "and";
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_unit = ["bytes", "kB", "MB", "GB", "TB"].contains(&name);
        let of_last = |last: &String| {
            let is_of_number = is_unit && last.ends_with(|c: char| c.is_ascii_digit());
            is_command || word.starts_with('-') || is_of_number
        };
        let last = match words.pop_if(|last| of_last(last)) {
            Some(last) => format!("{last} {word}"),
            None => word.to_owned(),
        };
        is_command |= COMMANDS.contains(&last.trim_start_matches('('));
        is_command &= !word.ends_with(';');
        words.push(last);
    }
    words
}

/// True if a word begins a name, a quotation, a message of another user, or a command of the program.
/// Nothing is wrapped from there on: a part of it must not look like a line of this text.
fn begins_foreign(word: &str) -> bool {
    word.split(' ').any(|word| {
        let word = word.trim_start_matches('(');
        // Only root writes files of sysctl.
        let is_of_root = word.starts_with("/etc/sysctl.");
        word.starts_with(['/', '\'', '"']) && !is_of_root || ["hugeinfo", "user"].contains(&word)
    })
}

/// Wraps a paragraph without foreign names, in lines of at most 80 columns.
pub(crate) fn reflowed(text: &str) -> String {
    joined(wrapped_unless("", text, |_| false))
}

fn wrapped(first: &str, text: &str) -> Vec<Line> {
    wrapped_unless(first, text, begins_foreign)
}

fn wrapped_unless(first: &str, text: &str, is_end: impl Fn(&str) -> bool) -> Vec<Line> {
    let indent = " ".repeat(first.chars().count());
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let (mut is_empty, mut is_foreign) = (true, false);
    for word in words(text) {
        let is_full = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full && !is_empty && !is_foreign {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
        is_foreign |= is_end(&word);
    }
    lines.push(line.trim_end().to_owned());
    let labels = std::iter::once(first.len()).chain(std::iter::repeat(0));
    let line = |(text, label)| Line {
        text,
        label,
        kind: Kind::Text,
    };
    lines.into_iter().zip(labels).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_use_and_need() {
        for (total, committed, needed, bar_text) in [
            (0, 0, 72, "[...............|]"),
            (72, 72, 72, "[###############|]"),
            (144, 72, 72, "[#######|========]"),
            (100, 0, 0, "[================]"),
            (0, 0, 0, "[                ]"),
            (1000, 0, 1, "[|===============]"),
        ] {
            assert_eq!(bar(Pages(total), Pages(committed), Pages(needed)), bar_text);
        }
    }

    #[test]
    fn long_texts_are_wrapped_between_words() {
        let word = "x".repeat(200);
        let lines = labeled(
            "label",
            &format!("{} {word} end", "word ".repeat(20).trim()),
        );
        let lines: Vec<_> = lines.into_iter().map(|line| line.text).collect();
        assert!(
            lines[0].starts_with("  label           word word"),
            "{lines:?}"
        );
        assert!(
            lines[..2].iter().all(|line| line.chars().count() <= WIDTH),
            "{lines:?}"
        );
        assert_eq!(lines[2], format!("{}{word}", " ".repeat(LABEL)));
        assert_eq!(lines[3], format!("{}end", " ".repeat(LABEL)));
        assert_eq!(labeled("label", "")[0].text, "  label");
    }

    #[test]
    fn names_and_commands_are_not_wrapped() {
        let long = "word ".repeat(40);
        for foreign in [
            format!("/srv/{long}"),
            format!("(/srv/{long})"),
            format!("\"{long}\""),
            format!("user 1000: {long}"),
            format!("hugeinfo status -D '{long}'"),
            format!("sysctl -w vm.nr_hugepages=72 {long}"),
            format!("(umask 022 && {long})"),
        ] {
            let foreign = foreign.trim();
            let lines = labeled("label", &format!("{long} {foreign}"));
            let last = &lines.last().expect("a line").text;
            assert!(last.ends_with(foreign), "{last}");
        }
    }

    #[test]
    fn numbers_stay_with_their_units() {
        for text in [
            "pages of 2 MB, and",
            "needs 14 bytes",
            "4 kB: more",
            "add (2 GB)",
        ] {
            let number = text.find(|c: char| c.is_ascii_digit()).expect("a number");
            let unit = number + text[number..].find(' ').expect("a unit");
            // The line is full after the number.
            let before = "x".repeat(WIDTH - unit - 1);
            let text = reflowed(&format!("{before} {text}"));
            let (first, second) = text.split_once('\n').expect("two lines");
            assert!(!first.ends_with(|c: char| c.is_ascii_digit()), "{text}");
            assert!(second.contains(' '), "{text}");
        }
    }
}
