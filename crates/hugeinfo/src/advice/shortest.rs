//! No step too many.

use crate::model::step::Step;

/// These steps without those that can be left out, if they end well.
pub(crate) fn shortest(steps: Vec<Step>, ends_well: impl Fn(&[Step]) -> bool) -> Option<Vec<Step>> {
    if !ends_well(&steps) {
        return None;
    }
    let steps = without_needless(steps, &ends_well);
    // What need not be done while the server is down is done before.
    if steps.contains(&Step::Stop) {
        let mut joined = steps.clone();
        joined.retain(|step| *step != Step::Stop);
        for step in joined.iter_mut().filter(|step| **step == Step::Start) {
            *step = Step::Restart;
        }
        if ends_well(&joined) {
            return Some(without_needless(joined, &ends_well));
        }
    }
    Some(steps)
}

/// What could not be left out may well be once another step is.
fn without_needless(mut steps: Vec<Step>, ends_well: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    loop {
        let well = fewer(&steps).find(|fewer| ends_well(fewer));
        match well {
            Some(fewer) => steps = fewer,
            None => return steps,
        }
    }
}

/// Each try costs as much as there are nodes. Of more of their steps than that the first so many
/// are tried, in halves.
const MOST_NODES: usize = 16;

/// Without one of them, the last ones first: what is least disruptive comes to its end sooner. To
/// stop and to start are one step but for their places.
fn fewer(steps: &[Step]) -> impl Iterator<Item = Vec<Step>> {
    let stops = |step: &Step| matches!(step, Step::Stop | Step::Start);
    let is_of_node = |step: &Step| matches!(step, Step::SetPool { node: Some(_), .. });
    let of_nodes = steps.iter().filter(|step| is_of_node(step)).count();
    let are_many = of_nodes > MOST_NODES;
    let alone = (0..steps.len()).rev();
    let alone = alone.filter(move |&at| !(are_many && is_of_node(&steps[at])));
    let one_less = alone.map(|at| {
        let mut fewer = steps.to_vec();
        fewer.remove(at);
        fewer
    });
    let without_stop = steps.iter().any(stops).then(|| {
        let mut fewer = steps.to_vec();
        fewer.retain(|step| !stops(step));
        fewer
    });
    let halves = (0..usize::BITS).map(|power| (1_usize << power) - 1);
    let halves = halves.take_while(move |&most| are_many && most < of_nodes);
    let first_nodes = halves.map(move |most| {
        let mut kept = 0;
        let mut fewer = steps.to_vec();
        fewer.retain(|step| {
            kept += usize::from(is_of_node(step));
            !is_of_node(step) || kept <= most
        });
        fewer
    });
    without_stop.into_iter().chain(first_nodes).chain(one_less)
}
