//! A host with a process in cgroups, as a directory tree.

#![allow(clippy::expect_used)]

use std::fs;

use host::linux::root::Root;
use tempfile::TempDir;

pub struct Host(pub TempDir);

impl Host {
    /// A host with these mounts, and process 10 with this `cgroup`.
    pub fn new(groups: &str, mounts: &str) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        host.write("proc/10/cgroup", groups);
        host.write("proc/self/mountinfo", mounts);
        host
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }
}
