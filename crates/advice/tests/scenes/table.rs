//! Tables of machines and expected texts.

use std::{collections::BTreeSet, fmt::Write as _};

use advice::{
    answer::Answer,
    check::{Remedy, Status},
    model::{forecast::Forecast, machine::Machine},
    render::{self, Place},
    runbook, text,
};
use expect_test::Expect;
use host::units::PageSize;

use crate::{
    paste,
    scene::{MB, Scene},
};

/// One machine and its expectations.
pub struct Row {
    when: &'static str,
    scene: fn(&mut Scene),
    expected: Vec<(&'static str, Expect)>,
}

/// A machine that differs from a healthy one.
pub fn when(when: &'static str, scene: fn(&mut Scene)) -> Row {
    Row {
        when,
        scene,
        expected: Vec::new(),
    }
}

impl Row {
    /// Expects this answer: of a check, `status`, `runbook`, or `how_to_set_2` for the pool of 2 MB
    /// pages. `expect![]` and `UPDATE_EXPECT=1 cargo test` fill it in.
    pub fn see(mut self, what: &'static str, answer: Expect) -> Self {
        self.expected.push((what, answer));
        self
    }
}

/// The status, code and text of a finding, and the lines of the remedy.
fn answer(machine: &Machine, what: &str) -> String {
    let finding = |status: Status, code: &str, text: &str, remedy: &Remedy| {
        let finding = format!("{} {code}: {text}", status.as_str());
        let remedy = render::remedy(machine, remedy);
        [Some(finding), remedy]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n")
    };
    if let Some(size) = what.strip_prefix("how_to_set_") {
        let megabytes: u64 = size.parse().expect("a size in MB");
        let pool = machine.pool(PageSize(megabytes * MB)).expect("a pool");
        let forecast = Forecast::for_pool(machine, pool);
        return render::how_to_set(machine, &forecast).unwrap_or_default();
    }
    match what {
        "status" => {
            let answer = Answer::of(machine);
            let (verdict, remedy) = (&answer.verdict, answer.remedy());
            finding(verdict.status, verdict.code, &verdict.reason, &remedy)
        }
        "runbook" => lines_of_runbook(machine).join("\n"),
        "text" => text::text(machine, &Answer::of(machine)),
        _ => {
            let checks = Answer::of(machine).checks();
            let check = checks.iter().find(|check| check.name() == what);
            let check = check.unwrap_or_else(|| panic!("no check {what}"));
            let found = &check.finding;
            finding(found.status, found.code, &found.text, &check.remedy)
        }
    }
}

fn lines_of_runbook(machine: &Machine) -> Vec<String> {
    let rows = runbook::for_answer(machine, &Answer::of(machine)).into_iter();
    rows.map(|row| match (row.command, row.instruction) {
        (Some(command), _) => command,
        (None, instruction) => {
            let is_typed = matches!(row.place, Some(Place::RootShell | Place::Node | Place::Sql));
            let has_condition = instruction
                .as_ref()
                .is_some_and(|text| text.starts_with("if "));
            assert!(
                !is_typed || has_condition,
                "no command for {:?}: {instruction:?}",
                row.place
            );
            format!("# {}", instruction.unwrap_or_default())
        }
    })
    .collect()
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
        for (what, expected) in &row.expected {
            expected.assert_eq(&answer(&machine, what));
        }
        for complaint in paste::complaints(&machine, &mut pasted) {
            let _ = writeln!(complaints, "when {}\n{complaint}\n", row.when);
        }
    }
    complaints.push_str(&paste::syntax_errors(&pasted));
    assert!(complaints.is_empty(), "\n{complaints}");
}
