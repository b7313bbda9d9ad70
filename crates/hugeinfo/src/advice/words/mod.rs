//! How figures, obstacles and steps are said. Nothing formats a command anywhere else.

mod boot;
mod figures;
mod obstacle;
mod restored;
mod steps;

pub use figures::{huge_pages, human, list};
pub(crate) use obstacle::explain;
pub use restored::too_low;
pub(crate) use steps::way_back;
pub use steps::{Place, command, data, is_disruptive, place, remedy, why};
