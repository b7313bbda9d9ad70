//! Tests the six rules of advice on random machines. The commands of a remedy solve the problem,
//! are harmless at every step, do not contradict each other, and contain no superfluous step. A
//! healthy machine gets no advice. Advice is never more certain than the facts.
//!
//! `HUGEINFO_MACHINES` sets the number of machines (500), and `HUGEINFO_SEED` selects the first. If
//! a machine breaks a rule, the test prints minimal code that creates the machine. Add that code to
//! `KEPT`.

#![allow(clippy::expect_used, clippy::too_many_lines)]

#[path = "advice/draft.rs"]
mod draft;
#[path = "advice/kept.rs"]
mod kept;
#[path = "advice/random.rs"]
mod random;
#[path = "advice/rules.rs"]
mod rules;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use draft::Draft;

/// What is wrong with the advice for it. `None`: nothing.
fn broken(draft: &Draft, next: Option<draft::Next>) -> Option<String> {
    let machine = draft.machine()?;
    let judged = catch_unwind(AssertUnwindSafe(|| rules::all(&machine, next)));
    match judged {
        Ok(judged) => judged.err(),
        Err(_) => Some("it panics".to_owned()),
    }
}

/// The same trouble on a machine of fewer words.
fn simplest(draft: &Draft, next: Option<draft::Next>) -> Draft {
    let kind = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let Some(wanted) = broken(draft, next).map(|text| kind(&text)) else {
        return draft.clone();
    };
    let mut draft = draft.clone();
    while let Some(simpler) = draft
        .simpler()
        .into_iter()
        .find(|simpler| broken(simpler, next).is_some_and(|text| kind(&text) == wanted))
    {
        draft = simpler;
    }
    draft
}

fn number(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn random_machines() {
    let count = number("HUGEINFO_MACHINES", 500);
    let first = number("HUGEINFO_SEED", 1);
    // How many different troubles are looked for before it stops.
    let most = usize::try_from(number("HUGEINFO_TROUBLES", 1)).expect("a number");
    let next = AtomicU64::new(0);
    let troubles: Mutex<Vec<(u64, String)>> = Mutex::default();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            let seed = first.wrapping_add(at);
            let (draft, plan) = random::machine(seed);
            if let Some(trouble) = broken(&draft, plan) {
                let mut troubles = troubles.lock().expect("nobody panics here");
                troubles.push((seed, trouble));
                if troubles.len() >= most {
                    next.store(count, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let troubles = troubles.into_inner().expect("nobody panics here");
    let shown: Vec<String> = troubles
        .iter()
        .map(|(seed, trouble)| {
            let (draft, plan) = random::machine(*seed);
            let draft = simplest(&draft, plan);
            let trouble = broken(&draft, plan).unwrap_or(trouble.clone());
            let plan = plan.map_or_else(String::new, |plan| format!("\nplanned: {plan:?}"));
            format!("HUGEINFO_SEED={seed}: {trouble}\n{}{plan}", draft.written())
        })
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n\n"));
}

#[test]
fn machines_that_broke_a_rule_once() {
    for (name, draft, next) in kept::all() {
        assert!(
            draft.machine().is_some(),
            "{name}: there is no such machine"
        );
        if let Some(trouble) = broken(&draft, next) {
            panic!("{name}: {trouble}");
        }
    }
}
