//! Checks that are muted: they say what they say, and nobody is alerted.

#![allow(clippy::expect_used)]

mod scene;

use hugeinfo::{
    advice::{check::Status, diagnosis, muted::Muted, runbook},
    model::machine::Machine,
    server::facts::{Facts, HugePages},
};

use scene::*;

fn muting(facts: &Facts, list: &str) -> Machine {
    let muted = Muted::of(list);
    assert_eq!(muted.unknown, [""; 0]);
    Machine {
        muted: muted.names,
        ..machine(facts)
    }
}

fn without_huge_pages() -> Facts {
    let mut facts = fallen_back(0);
    facts.server.huge_pages = HugePages::Off;
    facts
}

/// Huge pages are short for the next start, which asks for them.
fn about_to_lose_them() -> Facts {
    let mut facts = healthy();
    pool(&mut facts, 0).surplus = 437;
    facts
}

#[test]
fn off_on_purpose_is_well() {
    let machine = muting(&without_huge_pages(), "huge_pages");
    let verdict = diagnosis::verdict(&machine);
    assert_eq!(verdict.status, Status::Ok);
    assert_eq!(
        verdict.reason,
        "a restart would not ask for huge pages: huge_pages = off; no pool holds unused pages; muted: huge_pages (warning: main segment of 1073 MB is on 4 kB pages: huge_pages = off)"
    );
    assert_eq!(diagnosis::remedy(&machine), []);
    // The next boot's files ask for a pool that is not there.
    let machine = muting(&without_huge_pages(), "huge_pages, pool_filled");
    assert_eq!(runbook::of(&machine, None), []);
}

#[test]
fn the_worst_of_the_others_counts() {
    let facts = fallen_back(0);
    let verdict = diagnosis::verdict(&muting(&facts, "huge_pages"));
    assert_eq!(verdict.status, Status::Warning);
    assert!(
        verdict
            .reason
            .starts_with("a restart would not get huge pages"),
        "{verdict:?}"
    );
    let muted = muting(&facts, "swap, major_faults");
    assert_eq!(
        diagnosis::verdict(&muted),
        diagnosis::verdict(&machine(&facts))
    );
}

#[test]
fn all_may_be_muted() {
    let machine = muting(
        &about_to_lose_them(),
        "cgroup_fault_limit, huge_pages, restart, pool_size",
    );
    let verdict = diagnosis::verdict(&machine);
    assert_eq!(verdict.status, Status::Ok);
    assert!(
        verdict
            .reason
            .contains("; muted: restart (warning: a restart would lose huge pages"),
        "{verdict:?}"
    );
}

#[test]
fn what_is_well_is_not_called_muted() {
    let facts = healthy();
    assert_eq!(
        diagnosis::verdict(&muting(&facts, "huge_pages")),
        diagnosis::verdict(&machine(&facts))
    );
}

#[test]
fn its_row_stays_as_it_is() {
    let facts = fallen_back(0);
    let plain = diagnosis::checks(&machine(&facts));
    let quiet = diagnosis::checks(&muting(&facts, "huge_pages"));
    for (plain, mut quiet) in plain.into_iter().zip(quiet) {
        assert_eq!(quiet.is_muted, quiet.name == "huge_pages");
        quiet.is_muted = false;
        assert_eq!(plain, quiet);
    }
}

#[test]
fn the_runbook_does_nothing_for_it_alone() {
    let mut scene = Scene::healthy();
    scene.around.oom_score_adj = Ok(0);
    let mut machine = scene.machine();
    assert_eq!(runbook::of(&machine, None).len(), 2);
    machine.muted = Muted::of("oom_protection").names;
    assert_eq!(runbook::of(&machine, None), []);
}

/// What small pages can hold depends on more than the facts.
#[test]
fn facts_alone_suffice_unless_small_pages_have_to_hold_the_segment() {
    for (facts, muted, is_well) in [
        (healthy(), "", true),
        (about_to_lose_them(), "", false),
        (about_to_lose_them(), "restart", true),
        (fallen_back(537), "huge_pages", true),
        (without_huge_pages(), "", false),
        (without_huge_pages(), "huge_pages", false),
        (without_huge_pages(), "huge_pages, restart", true),
    ] {
        let machine = Machine {
            muted: Muted::of(muted).names,
            ..Machine::new(facts, None)
        };
        assert_eq!(diagnosis::is_well_by_facts(&machine), is_well, "{muted}");
    }
}
