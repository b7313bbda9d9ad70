//! Visibility of processes, in small directory trees in place of `/proc`.

#![allow(clippy::expect_used)]

use std::{fs, os::unix::fs::symlink};

use host::{
    linux::root::Root,
    server::visibility::{self, Visibility},
};
use tempfile::TempDir;

struct Host(TempDir);

const OPEN: &str = "22 1 0:21 / /proc rw,nosuid - proc proc rw\n";

impl Host {
    /// A host on which this process runs as user 105.
    fn new(mounts: &str) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        host.write("proc/self/status", "Uid:\t105\t105\t105\t105\n");
        host.write("proc/self/mountinfo", mounts);
        host.namespace("pid", "pid:[4026531836]");
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    fn namespace(&self, kind: &str, name: &str) {
        let links = self.0.path().join("proc/self/ns");
        fs::create_dir_all(&links).expect("mkdir");
        let link = links.join(kind);
        let _ = fs::remove_file(&link);
        symlink(name, link).expect("symlink");
    }

    /// Adds process 1 of this user.
    fn first(&self, uid: u32) {
        let text = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        self.write("proc/1/status", &text);
    }

    fn visibility(&self) -> Visibility {
        visibility::read(&Root::at(self.0.path())).expect("readable files")
    }
}

#[test]
fn all_processes_are_visible_if_process_1_of_another_user_is() {
    let host = Host::new(OPEN);
    host.first(0);
    assert_eq!(host.visibility(), Visibility::Host);
    // This process is in the group of `gid=`.
    let host = Host::new("22 1 0:21 / /proc rw - proc proc rw,gid=105,hidepid=2\n");
    host.first(0);
    assert_eq!(host.visibility(), Visibility::Host);
}

#[test]
fn processes_are_hidden_if_process_1_is() {
    for hidepid in ["", ",hidepid=2", ",hidepid=invisible"] {
        let host = Host::new(&OPEN.replace("proc rw\n", &format!("proc rw{hidepid}\n")));
        assert_eq!(host.visibility(), Visibility::Hidden, "{hidepid}");
    }
}

#[test]
fn hidepid_decides_if_process_1_belongs_to_this_user() {
    for (option, visibility) in [
        ("", Visibility::Namespace),
        (",hidepid=0", Visibility::Namespace),
        (",hidepid=off", Visibility::Namespace),
        (",hidepid=1", Visibility::Hidden),
        (",hidepid=noaccess", Visibility::Hidden),
        (",hidepid=ptraceable", Visibility::Hidden),
    ] {
        let mounts = OPEN.replace("proc rw\n", &format!("proc rw{option}\n"));
        let elsewhere = "23 1 0:22 / /chroot/proc rw - proc proc rw,hidepid=2\n";
        let host = Host::new(&format!("{elsewhere}{mounts}"));
        host.namespace("pid", "pid:[4026532500]");
        host.first(105);
        assert_eq!(host.visibility(), visibility, "{option}");
    }
}
