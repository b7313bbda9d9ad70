//! Tables of machines and expected texts.

use std::{collections::BTreeSet, fmt::Write as _};

use advice::{
    check::{Remedy, Status},
    diagnosis,
    model::machine::Machine,
    render::{self, Place},
    runbook,
};
use host::units::PageSize;

use crate::{
    paste,
    scene::{MB, Scene},
};

pub const OK: Status = Status::Ok;
pub const UNKNOWN: Status = Status::Unknown;
pub const WARNING: Status = Status::Warning;
pub const CRITICAL: Status = Status::Critical;

/// One machine and its expectations.
pub struct Row {
    when: &'static str,
    scene: fn(&mut Scene),
    expected: Vec<Expected>,
}

enum Expected {
    Check(&'static str, Said),
    Status(Said),
    HowToSet(u64, Lines),
    Runbook(Lines),
    See(&'static str),
}

/// The status, the code, words of the finding, and the remedy.
type Said = (Status, &'static str, &'static str, Lines);
type Lines = &'static [&'static str];

/// A machine that differs from a healthy one.
pub fn when(when: &'static str, scene: fn(&mut Scene)) -> Row {
    Row {
        when,
        scene,
        expected: Vec::new(),
    }
}

impl Row {
    fn expect(mut self, expected: Expected) -> Self {
        self.expected.push(expected);
        self
    }

    /// Expects this result of a check.
    pub fn says(
        self,
        check: &'static str,
        status: Status,
        code: &'static str,
        words: &'static str,
        remedy: Lines,
    ) -> Self {
        self.expect(Expected::Check(check, (status, code, words, remedy)))
    }

    /// Expects this status of the server.
    pub fn status(
        self,
        status: Status,
        code: &'static str,
        words: &'static str,
        remedy: Lines,
    ) -> Self {
        self.expect(Expected::Status((status, code, words, remedy)))
    }

    /// Expects this advice for one pool. The page size is in MB.
    pub fn how_to_set(self, megabytes: u64, remedy: Lines) -> Self {
        self.expect(Expected::HowToSet(megabytes, remedy))
    }

    /// Expects these rows of the runbook.
    pub fn runbook(self, lines: Lines) -> Self {
        self.expect(Expected::Runbook(lines))
    }

    /// Fails, and prints the answer: a check, `status`, `runbook` or `how_to_set_2`.
    #[allow(dead_code)]
    pub fn see(self, what: &'static str) -> Self {
        self.expect(Expected::See(what))
    }
}

fn answer(machine: &Machine, what: &str) -> String {
    let text = |remedy: &Remedy| render::remedy(machine, remedy).unwrap_or_default();
    let quote = |text: &str| {
        let lines: Vec<_> = text.lines().map(|line| format!("{line:?}")).collect();
        format!("&[{}]", lines.join(", "))
    };
    if what == "status" {
        let said = diagnosis::verdict(machine);
        let remedy = quote(&text(&diagnosis::remedy(machine)));
        return format!(
            ".status({}, {:?}, {:?}, {remedy})",
            constant(said.status),
            said.code,
            said.reason
        );
    }
    if what == "runbook" {
        return format!(".runbook({})", quote(&lines_of_runbook(machine).join("\n")));
    }
    if let Some(size) = what.strip_prefix("how_to_set_") {
        let megabytes: u64 = size.parse().expect("a size in MB");
        let remedy = diagnosis::how_to_set(machine, PageSize(megabytes * MB));
        return format!(".how_to_set({megabytes}, {})", quote(&text(&remedy)));
    }
    let checks = diagnosis::checks(machine);
    let check = checks.iter().find(|check| check.name() == what);
    let check = check.unwrap_or_else(|| panic!("no check {what}"));
    format!(
        ".says({what:?}, {}, {:?}, {:?}, {})",
        constant(check.finding.status),
        check.finding.code,
        check.finding.text,
        quote(&text(&check.remedy))
    )
}

fn constant(status: Status) -> String {
    status.as_str().to_uppercase()
}

fn lines_of_runbook(machine: &Machine) -> Vec<String> {
    let rows = runbook::of(machine, None).into_iter();
    rows.map(|row| match (row.command, row.instruction) {
        (Some(command), _) => command,
        (None, instruction) => {
            let is_typed = matches!(row.place, Some(Place::RootShell | Place::Node | Place::Sql));
            assert!(!is_typed, "no command for {:?}: {instruction:?}", row.place);
            format!("# {}", instruction.unwrap_or_default())
        }
    })
    .collect()
}

fn is_met(machine: &Machine, expected: &Expected) -> Result<(), String> {
    let text = |remedy: &Remedy| render::remedy(machine, remedy).unwrap_or_default();
    let differs = |what: &str| Err(format!("      {what}\n{}\n", answer(machine, what)));
    match expected {
        Expected::Check(name, (status, code, words, remedy)) => {
            let checks = diagnosis::checks(machine);
            let check = checks.iter().find(|check| check.name() == *name);
            let check = check.ok_or_else(|| format!("no check {name}"))?;
            let finding = &check.finding;
            let is_it = finding.status == *status
                && finding.code == *code
                && finding.text.contains(words)
                && text(&check.remedy) == remedy.join("\n");
            if is_it { Ok(()) } else { differs(name) }
        }
        Expected::Status((status, code, words, remedy)) => {
            let said = diagnosis::verdict(machine);
            let is_it = said.status == *status
                && said.code == *code
                && said.reason.contains(words)
                && text(&diagnosis::remedy(machine)) == remedy.join("\n");
            if is_it { Ok(()) } else { differs("status") }
        }
        Expected::HowToSet(megabytes, remedy) => {
            let set = diagnosis::how_to_set(machine, PageSize(megabytes * MB));
            let is_it = text(&set) == remedy.join("\n");
            if is_it {
                Ok(())
            } else {
                differs(&format!("how_to_set_{megabytes}"))
            }
        }
        Expected::Runbook(lines) => {
            if lines_of_runbook(machine) == *lines {
                Ok(())
            } else {
                differs("runbook")
            }
        }
        Expected::See(what) => differs(what),
    }
}

/// Tests all rows, and that all other texts about their machines are readable and can be pasted.
#[track_caller]
pub fn test(rows: Vec<Row>) {
    let mut complaints = String::new();
    let mut pasted = BTreeSet::new();
    for row in rows {
        let mut scene = Scene::healthy();
        (row.scene)(&mut scene);
        let machine = scene.machine();
        for expected in &row.expected {
            if let Err(differs) = is_met(&machine, expected) {
                let _ = writeln!(complaints, "when {}\n{differs}", row.when);
            }
        }
        for complaint in paste::complaints(&machine, &mut pasted) {
            let _ = writeln!(complaints, "when {}\n{complaint}\n", row.when);
        }
    }
    complaints.push_str(&paste::syntax_errors(&pasted));
    assert!(complaints.is_empty(), "\n{complaints}");
}
