//! Parts that the checks of transparent huge pages have in common.

use crate::{
    finding::{Unknown, whole},
    model::{machine::Machine, step::Step},
};
use host::linux::{error::Absence, transparent_hugepage::Modes};

/// The text where the kernel has no transparent huge pages.
pub(super) const NONE: &str = "This kernel has no transparent huge pages.";

/// A file below the directory of the modes, and its mode.
pub(super) type File = (String, String);

/// The modes. `None`: this kernel has no transparent huge pages.
pub(super) fn modes(machine: &Machine) -> Result<Option<&Modes>, Unknown> {
    whole(machine)?;
    match &machine.state.thp {
        Ok(modes) => Ok(Some(modes)),
        Err(absent) if absent.why == Absence::Missing => Ok(None),
        Err(absent) => Err(absent.into()),
    }
}

/// Files and modes for people: `enabled = always`.
pub(super) fn named(files: &[File]) -> String {
    let files = files.iter().map(|(file, mode)| format!("{file} = {mode}"));
    files.collect::<Vec<_>>().join(", ")
}

/// Sets each of these files to a mode.
pub(super) fn set(files: Vec<File>, mode: &'static str) -> Vec<Step> {
    let set = |(file, _)| Step::SetThp { file, mode };
    files.into_iter().map(set).collect()
}
