//! Mount points of cgroup hierarchies.

use std::{
    io::BufRead,
    ops::ControlFlow,
    path::{Component, Path, PathBuf},
};

use crate::linux::{
    error::{ParseError, ReadError},
    mountinfo::{self, Mount},
    mounts,
    root::Root,
};

/// The two versions of cgroups. A hybrid host has each controller in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `hugetlb.SIZE.limit_in_bytes`.
    V1,
    /// `hugetlb.SIZE.max`.
    V2,
}

impl Version {
    fn filesystem(self) -> &'static str {
        match self {
            Self::V1 => "cgroup",
            Self::V2 => "cgroup2",
        }
    }

    /// The entry of `mountinfo` that shows the cgroups of a process.
    fn shown_as(self) -> &'static str {
        match self {
            Self::V1 => "cgroup file system that shows this cgroup",
            Self::V2 => "cgroup2 file system that shows this cgroup",
        }
    }
}

/// The mount that shows a cgroup with most of its ancestors, and the path of the cgroup in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub mount: Mount,
    /// Path of the cgroup below the mount point.
    pub below: PathBuf,
}

impl Shown {
    /// The directories of the cgroup and its visible ancestors, nearest first.
    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.below.ancestors().map(|group| {
            // Joining an empty path would add a slash at the end.
            match group.as_os_str().is_empty() {
                true => self.mount.point.clone(),
                false => self.mount.point.join(group),
            }
        })
    }
}

/// Finds the mount that shows the cgroup of a controller. Errors: absent if there is none.
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
    best.ok_or_else(|| mounts::missing(root, version.shown_as()))
}

/// Like `read`, from the text of `mountinfo`.
///
/// Errors: the line of a cgroup mount that cannot be parsed.
pub fn parse(
    text: impl BufRead,
    version: Version,
    controller: &str,
    group: &Path,
) -> Result<Option<Shown>, ParseError> {
    let mut best = None;
    mountinfo::parse(text, version.filesystem(), |mount| {
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
    // A cgroup outside of the mounted part, such as `/..` in a namespace, is not visible.
    let is_normal = |part| matches!(part, Component::Normal(_));
    let below = group.strip_prefix(&mount.root).ok();
    let Some(below) = below.filter(|below| below.components().all(is_normal)) else {
        return ControlFlow::Continue(());
    };
    let depth = |below: &Path| below.components().count();
    // No other mount can show more.
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
