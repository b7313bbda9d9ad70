//! How figures, obstacles and steps are said. Nothing formats a command anywhere else.

mod boot;
mod figures;
mod obstacle;
mod remedy;
mod restored;
mod steps;
mod way_back;

pub use figures::{huge_pages, human, list};
pub(crate) use obstacle::explain;
pub use remedy::remedy;
pub use restored::too_low;
pub use steps::{Place, command, data, is_disruptive, place, why};
pub(crate) use way_back::way_back;
