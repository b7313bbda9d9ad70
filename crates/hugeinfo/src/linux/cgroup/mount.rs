//! Where a hierarchy of control groups is mounted.

use std::{
    io::BufRead,
    ops::ControlFlow,
    path::{Component, Path, PathBuf},
};

use super::Version;
use crate::linux::{
    error::{ParseError, ReadError},
    mounts::{self, Mount},
    root::Root,
};

/// The mount that shows a group and most of what is above it, and the group below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The mount.
    pub mount: Mount,
    /// The group, from the mount point on.
    pub below: PathBuf,
}

impl Shown {
    /// The directories of the group and of those above it, nearest first.
    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.below.ancestors().map(|group| {
            // Joined to nothing a path would end in a slash.
            match group.as_os_str().is_empty() {
                true => self.mount.point.clone(),
                false => self.mount.point.join(group),
            }
        })
    }
}

/// Where the hierarchy of a controller is mounted so that the group can be seen. Errors: absent
/// where it isn't.
pub(super) fn read(
    root: &Root,
    version: Version,
    controller: &str,
    group: &Path,
) -> Result<Shown, ReadError> {
    let mut best = None;
    mounts::each(root, version.filesystem(), |mount| {
        consider(mount, version, controller, group, &mut best)
    })?;
    best.ok_or_else(|| mounts::missing(root))
}

/// The same of a text.
///
/// Errors: a line that is not a mount, among those of interest.
pub fn parse(
    text: impl BufRead,
    version: Version,
    controller: &str,
    group: &Path,
) -> Result<Option<Shown>, ParseError> {
    let mut best = None;
    mounts::parse(text, version.filesystem(), |mount| {
        consider(mount, version, controller, group, &mut best)
    })?;
    Ok(best)
}

fn consider(
    mount: Mount,
    version: Version,
    controller: &str,
    group: &Path,
    best: &mut Option<Shown>,
) -> ControlFlow<()> {
    if version == Version::V1 && !mount.has_option(controller) {
        return ControlFlow::Continue(());
    }
    // A group above the mount or beside it, as `/..` in a namespace, is out of sight.
    let is_normal = |part| matches!(part, Component::Normal(_));
    let below = group.strip_prefix(&mount.root).ok();
    let Some(below) = below.filter(|below| below.components().all(is_normal)) else {
        return ControlFlow::Continue(());
    };
    let depth = |below: &Path| below.components().count();
    // More than all can't be seen.
    let shows_all = mount.root == Path::new("/");
    if best
        .as_ref()
        .is_none_or(|best| depth(below) > depth(&best.below))
    {
        let below = below.to_path_buf();
        *best = Some(Shown { mount, below });
    }
    match shows_all {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}
