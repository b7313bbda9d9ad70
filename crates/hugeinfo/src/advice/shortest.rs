//! No step too many.

use crate::model::step::Step;

/// These steps without those that can be left out, if they end well.
pub(crate) fn shortest(steps: Vec<Step>, ends_well: impl Fn(&[Step]) -> bool) -> Option<Vec<Step>> {
    if !ends_well(&steps) {
        return None;
    }
    let mut steps = steps;
    // What could not be left out may well be once another step is.
    loop {
        let well = fewer(&steps).find(|fewer| ends_well(fewer));
        match well {
            Some(fewer) => steps = fewer,
            None => break,
        }
    }
    // With nothing between them they are a restart.
    let pair = [Step::Stop, Step::Start];
    if let Some(at) = steps.windows(2).position(|two| two == pair) {
        let mut joined = steps.clone();
        joined.splice(at..at + 2, [Step::Restart]);
        if ends_well(&joined) {
            steps = joined;
        }
    }
    Some(steps)
}

/// Without one of them, the last ones first: what is least disruptive comes to its end sooner. To
/// stop and to start are one step but for their places.
fn fewer(steps: &[Step]) -> impl Iterator<Item = Vec<Step>> {
    let stops = |step: &Step| matches!(step, Step::Stop | Step::Start);
    let one_less = (0..steps.len()).rev().map(|at| {
        let mut fewer = steps.to_vec();
        fewer.remove(at);
        fewer
    });
    let without_stop = steps.iter().any(stops).then(|| {
        let mut fewer = steps.to_vec();
        fewer.retain(|step| !stops(step));
        fewer
    });
    without_stop.into_iter().chain(one_less)
}
