//! A remedy in words.

use super::{before_start, steps::command};
use crate::model::{machine::Machine, step::Step};

/// All steps of a remedy in one line. `None`: there is nothing to do.
pub fn remedy(machine: &Machine, steps: &[Step]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        parts.extend(before_start::before(machine, &steps[..at], step));
        let command = command(machine, step);
        parts.push(match step {
            Step::Restart if !parts.is_empty() => format!("then {command}"),
            _ => command,
        });
    }
    let limits_groups = |step: &Step| matches!(step, Step::RaiseLimit { .. });
    if let Some(last) = steps.iter().rposition(limits_groups) {
        let outside = "in Kubernetes raise the pod's limit on huge pages instead";
        parts.insert(last + 1, outside.to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
