//! What is wrong, and what to type. Every remedy is tried on the model before it is given.

pub mod check;
mod checks;
mod decisions;
pub mod diagnosis;
pub mod muted;
mod needed;
pub mod planned;
mod plans;
mod pool;
mod remedy;
pub mod runbook;
mod shortest;
mod thresholds;
pub mod words;

pub use checks::shared_thp_may_be_used;
pub use pool::{how_to_set, steps_to_set};
