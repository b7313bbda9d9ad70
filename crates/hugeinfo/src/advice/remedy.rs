//! Which steps cure a check: the first plan that does so without harm, and no step of it too many.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
};

use crate::{
    advice::{
        check::{Finding, Status},
        checks::{ALL, Cure},
        decisions::{self, InTheWay},
        needed::Needed,
        plans,
        shortest::shortest,
    },
    model::{
        machine::Machine,
        step::Step,
        take::{Trouble, take_all},
    },
};

/// What every check says.
pub(crate) fn findings(machine: &Machine) -> Vec<Finding> {
    ALL.iter().map(|entry| entry.judge(machine)).collect()
}

/// The search for remedies on one machine. Checks are cured by the same plans, so that what has
/// been tried for one is known for the next.
pub(crate) struct Search<'m> {
    machine: &'m Machine,
    /// What all checks said.
    before: Vec<Status>,
    needed: Needed,
    pools: OnceCell<Vec<Vec<Step>>>,
    tried: RefCell<Vec<(Vec<Step>, Outcome)>>,
}

/// The machine after some steps, or what is wrong with these.
type Outcome = Result<Rc<After>, Trouble>;

/// With what checks say of it, as far as they have been asked.
struct After {
    machine: Machine,
    said: [Cell<Option<Status>>; ALL.len()],
}

impl After {
    fn status(&self, index: usize) -> Status {
        self.said[index].get().unwrap_or_else(|| {
            let status = ALL[index].judge(&self.machine).status;
            self.said[index].set(Some(status));
            status
        })
    }
}

impl<'m> Search<'m> {
    pub(crate) fn new(machine: &'m Machine, before: Vec<Status>) -> Self {
        Self {
            machine,
            before,
            needed: Needed::of(machine),
            pools: OnceCell::new(),
            tried: RefCell::default(),
        }
    }

    /// The steps that cure the check of that place, which is not well; else what a person has to
    /// decide.
    pub(crate) fn remedy(&self, index: usize) -> Vec<Step> {
        let steps = self.as_far_as_seen(index);
        let entry = ALL.get(index);
        let is_own = entry.is_some_and(|entry| matches!(entry.cure, Cure::Own(_)));
        decisions::unless_files_are_unseen(self.machine, is_own, steps)
    }

    fn as_far_as_seen(&self, index: usize) -> Vec<Step> {
        let Some(entry) = ALL.get(index) else {
            return Vec::new();
        };
        let machine = self.machine;
        let own;
        let candidates = match &entry.cure {
            Cure::None => return Vec::new(),
            Cure::Own(steps) => {
                let steps = steps(machine);
                if steps.iter().any(|step| matches!(step, Step::Decide(_))) {
                    return steps;
                }
                own = plans::with(machine, steps);
                &own
            }
            // It is there already, and that is not enough.
            Cure::HugePages if machine.is_on_huge_pages() == Some(true) => &Vec::new(),
            Cure::Pools | Cure::HugePages => self.pools.get_or_init(|| plans::pools(machine)),
        };
        let cure = candidates
            .iter()
            .find_map(|steps| shortest(steps.clone(), |steps| self.is_cure(steps, index)));
        cure.unwrap_or_else(|| {
            let ways = candidates.iter().map(|steps| self.in_the_way(steps, index));
            decisions::of(machine, entry.decides, &ways.collect::<Vec<_>>())
        })
    }

    /// The check is well, no other is worse than before, and no page is gone that is needed.
    fn is_cure(&self, steps: &[Step], index: usize) -> bool {
        self.outcome(steps).is_ok_and(|after| {
            let mut before = self.before.iter().enumerate();
            // Ok, or unknown for a reason that no step changes.
            after.status(index) < Status::Warning
                && self.needed.is_in(&after.machine)
                && before.all(|(index, before)| after.status(index) <= *before)
        })
    }

    /// Of steps that are no cure.
    fn in_the_way(&self, steps: &[Step], index: usize) -> InTheWay {
        match self.outcome(steps) {
            Err(trouble) => InTheWay::Trouble(trouble),
            Ok(after) if after.status(index) >= Status::Warning => InTheWay::NoCure,
            Ok(after) => {
                let mut checks = ALL.iter().enumerate().zip(&self.before);
                let worse = checks.find(|((index, _), before)| after.status(*index) > **before);
                worse.map_or(InTheWay::NoCure, |((_, entry), _)| {
                    InTheWay::Worse(entry.name, entry.decides)
                })
            }
        }
    }

    fn outcome(&self, steps: &[Step]) -> Outcome {
        let known = self.tried.borrow();
        if let Some((_, outcome)) = known.iter().find(|(tried, _)| tried == steps) {
            return outcome.clone();
        }
        drop(known);
        let after = take_all(self.machine, steps);
        let outcome = after.map(|machine| {
            let said = [const { Cell::new(None) }; ALL.len()];
            Rc::new(After { machine, said })
        });
        let mut tried = self.tried.borrow_mut();
        tried.push((steps.to_vec(), outcome.clone()));
        outcome
    }
}
