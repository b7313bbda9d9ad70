//! Problems that need attention, and the commands that fix them.
//!
//! Advice is a difference: [`desired`] computes the state that the machine should have, [`diff`]
//! lists the steps to this state, and [`model`] rejects hazardous steps. [`plan`] has these steps,
//! and [`answer`] the remedy of each check: the plan, steps of its own, or a decision.
//!
//! This crate does not open files or start processes, so any machine can be a test fixture.

#![deny(unsafe_code)]

pub mod answer;
pub mod check;
mod checks;
pub mod decision;
mod desired;
mod diff;
pub mod ensure;
pub mod explain;
pub mod failure;
mod finding;
pub mod model;
pub mod muted;
pub mod plan;
pub mod planned;
pub mod render;
pub mod runbook;
pub mod status;
pub mod text;
pub mod thresholds;

pub use checks::shared_thp_may_be_used;
