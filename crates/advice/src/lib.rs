//! Problems that need attention, and the commands that fix them.
//!
//! Advice is a difference: [`desired`] states what the machine should be like, [`diff`] lists the
//! steps from here to there, and [`model`] refuses steps that do harm. A check owns some of the
//! resources; its remedy is its part of the difference. The runbook is the whole difference.
//!
//! This crate is pure: it opens no file and starts no process, so that any machine can be a test
//! fixture.

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
pub mod model;
pub mod muted;
pub mod plan;
pub mod planned;
pub mod render;
pub mod runbook;
pub mod status;
pub mod text;
mod thresholds;

pub use checks::shared_thp_may_be_used;
