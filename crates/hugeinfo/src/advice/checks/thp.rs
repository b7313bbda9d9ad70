//! What the checks of transparent huge pages have in common.

use crate::{
    advice::check::Untold,
    linux::{error::Absence, transparent_hugepage::Modes},
    model::machine::Machine,
};

/// The modes. `None`: this kernel has no transparent huge pages.
pub(super) fn modes(machine: &Machine) -> Result<Option<&Modes>, Untold> {
    match &machine.around()?.host.thp {
        Ok(modes) => Ok(Some(modes)),
        Err(absent) if absent.why == Absence::Missing => Ok(None),
        Err(absent) => Err(absent.into()),
    }
}

pub(super) const NONE: &str = "this kernel has no transparent huge pages";

/// A file below the directory of the modes, and what it says: for all sizes, and for each that has
/// a word of its own.
pub(super) type File = (String, String);
