//! The servers of a host, on small trees that stand for `/proc`.

#![allow(clippy::expect_used)]

use std::{collections::HashSet, fs, os::unix::fs::symlink};

use hugeinfo::{
    linux::{process::segment::Segment, root::Root},
    server::{
        facts::SharedMemoryType,
        instances::{self, Instance},
    },
};
use tempfile::TempDir;

struct Host(TempDir);

const MAPS: &str = "\
    55cbefb1f000-55cbf0000000 r--p 00000000 fe:00 12  /usr/bin/postgres\n\
    7f0000000000-7f0000400000 rw-s 00000000 00:10 42  /anon_hugepage (deleted)\n\
    7f0000500000-7f0000501000 rw-s 00000000 00:01 3  /SYSV0052e2c1 (deleted)\n";

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        host.write("proc/meminfo", "");
        host.write("etc/passwd", "root:x:0:0:::\npostgres:x:105:113:::\n");
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    fn process(&self, pid: u32, parent: u32, name: &str, command_line: &str) {
        self.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} ({name}) S {parent} 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 100 1\n"),
        );
        self.write(
            &format!("proc/{pid}/cmdline"),
            &command_line.replace(' ', "\0"),
        );
        self.write(
            &format!("proc/{pid}/status"),
            &format!("Name:\t{name}\nUid:\t105\t105\t105\t105\nNSpid:\t{pid}\n"),
        );
    }

    fn directory(&self, pid: u32, directory: &str) {
        let data = self.0.path().join(directory);
        fs::create_dir_all(&data).expect("mkdir");
        symlink(data, self.0.path().join(format!("proc/{pid}/cwd"))).expect("symlink");
    }

    fn read(&self, own: Option<u32>) -> Vec<Instance> {
        self.read_beside(own, [])
    }

    fn read_beside<const N: usize>(&self, own: Option<u32>, children: [u32; N]) -> Vec<Instance> {
        instances::read(&Root::at(self.0.path()), own, &children.into(), || ())
            .expect("readable files")
    }
}

fn hidden(pid: u32) -> Instance {
    Instance {
        pid,
        owner_uid: Some(105),
        owner: Some("postgres".to_owned()),
        data_directory: None,
        directory_argument: None,
        port: None,
        segment: None,
        shared_memory_type: None,
    }
}

#[test]
fn what_may_be_read_and_what_may_not() {
    let host = Host::new();
    host.process(10, 1, "postgres", "/usr/bin/postgres -D /elsewhere");
    host.process(11, 10, "postgres", "postgres: checkpointer");
    host.process(20, 1, "postgres", "/usr/bin/postgres -D /srv/b");
    host.write(
        "proc/20/status",
        "Name:\tpostgres\nUid:\t1\t7\t7\t7\nNSpid:\t20\n",
    );
    host.process(30, 1, "bash", "bash");
    host.directory(10, "data");
    host.write("data/postmaster.pid", "10\n/data\n1\n5433\n/run\n\n");
    host.write("proc/10/maps", MAPS);
    host.write(
        "proc/10/smaps",
        "7f0000000000-7f0000400000 rw-s 00000000 00:10 42  /anon_hugepage (deleted)\nKernelPageSize:     2048 kB\n",
    );
    let seen = Instance {
        data_directory: Some(
            host.0
                .path()
                .join("data")
                .as_os_str()
                .as_encoded_bytes()
                .to_vec(),
        ),
        directory_argument: Some(b"/elsewhere".to_vec()),
        port: Some(5433),
        segment: Some(Segment {
            bytes: 4 << 20,
            page_bytes: Some(2 << 20),
            mappings: 1,
        }),
        shared_memory_type: Some(SharedMemoryType::Mmap),
        ..hidden(10)
    };
    let other = Instance {
        owner_uid: Some(7),
        owner: None,
        directory_argument: Some(b"/srv/b".to_vec()),
        ..hidden(20)
    };
    assert_eq!(host.read(None), [seen.clone(), other.clone()]);
    fs::remove_file(host.0.path().join("etc/passwd")).expect("remove");
    let nameless = Instance {
        owner: None,
        ..seen
    };
    assert_eq!(host.read(None), [nameless, other]);
}

#[test]
fn a_lock_file_is_believed_of_its_own_process_only() {
    let host = Host::new();
    host.process(10, 1, "postgres", "postgres");
    host.directory(10, "data");
    let port = || host.read(None)[0].port;
    assert_eq!(port(), None);
    host.write("data/postmaster.pid", "10\n/data\n1\n5433\n/run\n\n");
    assert_eq!(port(), Some(5433));
    host.write("data/postmaster.pid", "11\n/data\n1\n5433\n/run\n\n");
    assert_eq!(port(), None);
    // In a container it knows itself by another number.
    host.write("proc/10/status", "Uid:\t0\t0\t0\t0\nNSpid:\t10\t11\n");
    assert_eq!(port(), Some(5433));
    // A kernel without that line.
    host.write("proc/10/status", "Uid:\t0\t0\t0\t0\n");
    assert_eq!(port(), None);
    // Nobody waits for what somebody may write there.
    let file = host.0.path().join("data/postmaster.pid");
    fs::remove_file(&file).expect("remove");
    fs::create_dir(&file).expect("mkdir");
    assert_eq!(port(), None);
    fs::remove_dir(&file).expect("rmdir");
    symlink("/dev/zero", &file).expect("symlink");
    assert_eq!(port(), None);
    fs::remove_file(&file).expect("remove");
    symlink("postmaster.pid", &file).expect("symlink");
    assert_eq!(port(), None);
}

#[test]
fn this_server_is_one_whatever_it_is_called() {
    let host = Host::new();
    host.process(10, 1, ".postgres-wrapp", "/opt/start");
    host.process(20, 1, "postgres", "postgres");
    assert_eq!(host.read(None), [hidden(20)]);
    assert_eq!(host.read(Some(10)), [hidden(10), hidden(20)]);
    assert_eq!(host.read(Some(20)), [hidden(20)]);
    assert_eq!(host.read(Some(30)), [hidden(20)]);
}

#[test]
fn what_is_known_to_be_no_server_is_not_opened() {
    let host = Host::new();
    host.process(10, 1, "postgres", "postgres");
    host.process(20, 1, "postgres", "postgres");
    host.write("proc/11/stat", "not to be read");
    assert_eq!(
        host.read_beside(Some(10), [11, 12]),
        [hidden(10), hidden(20)]
    );
    // In single-user mode the server has a slot itself.
    assert_eq!(
        host.read_beside(Some(10), [10, 11]),
        [hidden(10), hidden(20)]
    );
}

#[test]
fn one_that_ends_meanwhile_is_left_out() {
    let host = Host::new();
    host.process(10, 1, "postgres", "postgres");
    host.process(20, 1, "postgres", "postgres");
    fs::remove_file(host.0.path().join("proc/10/status")).expect("remove");
    assert_eq!(host.read(None), [hidden(20)]);
    let mut checks = 0;
    let root = Root::at(host.0.path());
    instances::read(&root, None, &HashSet::new(), || checks += 1).expect("readable files");
    assert_eq!(checks, 4, "for each process and each server");
}
