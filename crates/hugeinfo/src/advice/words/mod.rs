//! How figures, obstacles and steps are said. Nothing formats a command anywhere else.

mod before_start;
mod boot;
mod figures;
mod obstacle;
mod remedy;
mod restored;
mod steps;

pub(crate) use before_start::before;
pub use figures::{huge_pages, human, list};
pub(crate) use obstacle::explain;
pub use remedy::remedy;
pub use restored::too_low;
pub use steps::{Place, command, data, is_disruptive, place, why};
