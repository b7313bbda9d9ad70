//! What is wrong, and what to type.

pub mod check;
pub mod checks;
mod obstacle;
mod remedy;
mod thresholds;
pub mod words;
