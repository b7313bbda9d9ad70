//! The servers of a host, in small directory trees in place of `/proc`.

#![allow(clippy::expect_used)]

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

use host::{
    linux::{
        process::{Process, segment::Segment},
        root::Root,
    },
    server::{
        configuration::RequestedPages,
        connection::Connection,
        instances::{self, Instance, Progress},
        state::{HugePages, SharedMemoryType},
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

    /// A server in a data directory.
    fn server(&self, pid: u32, directory: &str) {
        self.process(pid, 1, "x", "x");
        self.directory(pid, directory);
        symlink("/", self.0.path().join(format!("proc/{pid}/root"))).expect("symlink");
        self.write(&format!("{directory}/postmaster.pid"), &lock_file(pid));
    }

    fn segments(&self, creators: &[u32]) {
        let mut text = String::from("key shmid perms size cpid lpid nattch\n");
        for creator in creators {
            text += &format!("1 2 600 56 {creator} 9 6\n");
        }
        self.write("proc/sysvipc/shm", &text);
    }

    fn path(&self, file: &str) -> String {
        self.0.path().join(file).to_str().expect("UTF-8").to_owned()
    }

    fn read(&self, own: Option<u32>) -> Vec<Instance> {
        self.read_beside(own, [])
    }

    fn read_beside<const N: usize>(&self, own: Option<u32>, children: [u32; N]) -> Vec<Instance> {
        let mut steps = Vec::new();
        let root = Root::at(self.0.path());
        instances::read(&root, own, &children.into(), &[], |step| steps.push(step))
            .expect("readable files");
        instances::collect(steps).expect("all were found")
    }

    fn pids(&self) -> Vec<u32> {
        self.read(None).iter().map(|server| server.pid).collect()
    }
}

/// A `postmaster.pid` as a server writes it.
fn lock_file(pid: u32) -> String {
    format!("{pid}\n/data\n1\n5433\n/run\n*\n  5432001        17\nready   \n")
}

fn hidden(pid: u32) -> Instance {
    Instance {
        pid,
        owner_uid: Some(105),
        owner: Some("postgres".to_owned()),
        ..Instance::default()
    }
}

#[test]
fn connection_has_user_and_address_as_far_as_known() {
    let host = Host::new();
    host.server(10, "data");
    host.write("proc/self/comm", "hugeinfo\n");
    let root = Root::at(host.0.path());
    symlink("/", root.path("proc/self/root")).expect("a link");
    let user = rustix::process::geteuid().as_raw();
    let server_of = |uid: u32| {
        host.write(
            "proc/10/status",
            &format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"),
        );
    };
    server_of(user);
    host.write("etc/passwd", &format!("postgres:x:{user}:113:::\n"));
    fs::create_dir(root.path("run")).expect("created");
    let socket = root.path("run/.s.PGSQL.5433");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let read = || {
        let process = Process::open(&root, 10).expect("a process");
        Connection::read(&root, &process, &mut Vec::new()).expect("memory")
    };
    let known = Connection {
        user: Some("postgres".to_owned()),
        address: Some(("/run".into(), 5433)),
    };
    assert_eq!(read(), known);
    // The lock file can name any socket or address.
    server_of(user + 1);
    assert_eq!(read(), Connection::default());
    server_of(user);
    for address in ["*", "127.0.0.1", "192.0.2.1"] {
        host.write(
            "data/postmaster.pid",
            &format!("10\n/data\n1\n5433\n\n{address}\n"),
        );
        assert_eq!(read().address, None, "{address}");
    }
    host.write("data/postmaster.pid", &lock_file(10));
    drop(listener);
    fs::remove_file(&socket).expect("removed");
    host.write("run/.s.PGSQL.5433", "");
    assert_eq!(read().address, None);
    fs::remove_file(&socket).expect("removed");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    assert_eq!(read(), known);
    // In a container, its socket is not the one with this path.
    fs::create_dir_all(root.path("proc/10/ns")).expect("created");
    symlink("mnt:[7]", root.path("proc/10/ns/mnt")).expect("a link");
    assert_eq!(read().address, None);
    fs::remove_dir_all(root.path("proc/10/ns")).expect("removed");
    host.write("etc/passwd", "");
    host.write("data/postmaster.pid", "10\n/data\n1\n5433\n");
    assert_eq!(read(), Connection::default());
}

#[test]
fn server_with_readable_directory_has_all_facts() {
    let host = Host::new();
    host.server(10, "data");
    host.process(11, 10, "x", "postgres: checkpointer");
    host.write(
        "proc/10/cmdline",
        "/opt/renamed\0-D\0/elsewhere\0-c\0huge_pages=on\0",
    );
    host.write("data/PG_VERSION", "17\n");
    host.write("proc/10/task/10/children", "11 12 ");
    let shmem =
        |kb| format!("Uid:\t105\t105\t105\t105\nNSpid:\t10\nPPid:\t10\nRssShmem:\t{kb} kB\n");
    host.write("proc/10/status", &shmem(1));
    host.write("proc/11/status", &shmem(7));
    host.write("proc/10/maps", MAPS);
    host.write(
        "proc/10/smaps",
        "7f0000000000-7f0000400000 rw-s 00000000 00:10 42  /anon_hugepage (deleted)\nKernelPageSize:     2048 kB\n",
    );
    let expected = Instance {
        data_directory: Some(host.path("data").into_bytes()),
        directory_argument: Some(b"/elsewhere".to_vec()),
        port: Some(5433),
        segment: Some(Segment {
            bytes: 4 << 20,
            page_bytes: Some(2 << 20),
            mappings: 1,
        }),
        shared_memory_type: Some(SharedMemoryType::Mmap),
        huge_pages: RequestedPages::Known(HugePages::On, None),
        start_ticks: 100,
        rss_shmem_bytes: Some(7 << 10),
        major_version: Some(17),
        is_examined: true,
        ..hidden(10)
    };
    assert_eq!(host.read(None), std::slice::from_ref(&expected));
    fs::remove_file(host.0.path().join("etc/passwd")).expect("remove");
    let nameless = Instance {
        owner: None,
        ..expected
    };
    assert_eq!(host.read(None), [nameless]);
}

#[test]
fn server_that_asks_for_huge_pages_has_the_limits_of_its_cgroups() {
    let host = Host::new();
    host.server(10, "data");
    host.write("data/postgresql.conf", "");
    let name = "7f0000000000-7f0000400000 rw-s 00000000 00:01 42  /dev/zero (deleted)\n";
    host.write("proc/10/maps", name);
    host.write(
        "proc/10/smaps",
        &format!("{name}KernelPageSize:        4 kB\n"),
    );
    host.write("proc/10/cgroup", "0::/pg\n");
    host.write(
        "proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    for (size, limit) in [("2MB", "2097152"), ("1GB", "max")] {
        let file = |name| format!("sys/fs/cgroup/pg/hugetlb.{size}.{name}");
        for (name, text) in [
            ("max", limit),
            ("current", "0"),
            ("rsvd.max", "max"),
            ("rsvd.current", "0"),
        ] {
            host.write(&file(name), text);
        }
    }
    for size in ["2048kB", "1048576kB"] {
        host.write(
            &format!("sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages"),
            "0\n",
        );
    }
    let limits = || host.read(None)[0].fault_limits.clone();
    assert_eq!(limits(), [(2 << 20, 2 << 20)]);
    host.write("data/postgresql.conf", "huge_pages = off\n");
    assert_eq!(limits(), []);
}

#[test]
fn server_is_recognized_by_its_lock_file_not_by_its_name() {
    let host = Host::new();
    host.server(10, "data");
    for (lock_file, expected) in [
        (lock_file(10), true),
        (lock_file(11), false),
        // Single-user mode and initdb; `postgres -C`; a server that allocates its memory.
        (format!("-{}", lock_file(10)), false),
        ("10\n/data\n1\n5433\n/run\n".to_owned(), false),
        (
            "10\n/data\n1\n5433\n/run\n*\n\nstarting\n".to_owned(),
            false,
        ),
        ("10\n".to_owned(), false),
    ] {
        host.write("data/postmaster.pid", &lock_file);
        assert_eq!(host.pids() == [10], expected, "{lock_file:?}");
    }
    // In a container, the server has another PID.
    host.write("data/postmaster.pid", &lock_file(11));
    host.write("proc/10/status", "Uid:\t0\t0\t0\t0\nNSpid:\t10\t11\n");
    assert_eq!(host.pids(), [10]);
    // A kernel without `NSpid`.
    host.write("proc/10/status", "Uid:\t0\t0\t0\t0\n");
    assert_eq!(host.pids(), [0; 0]);
    // The lock file is not a regular file.
    let file = host.0.path().join("data/postmaster.pid");
    fs::remove_file(&file).expect("remove");
    fs::create_dir(&file).expect("mkdir");
    assert_eq!(host.pids(), [0; 0]);
    fs::remove_dir(&file).expect("rmdir");
    symlink("/dev/zero", &file).expect("symlink");
    assert_eq!(host.pids(), [0; 0]);
    fs::remove_file(&file).expect("remove");
    symlink("postmaster.pid", &file).expect("symlink");
    assert_eq!(host.pids(), [0; 0]);
    fs::remove_file(&file).expect("remove");
    // A link could lead to a file of another user.
    host.write("data/other", &lock_file(10));
    host.write("proc/10/status", "Uid:\t0\t0\t0\t0\nNSpid:\t10\n");
    symlink("other", &file).expect("symlink");
    assert_eq!(host.pids(), [0; 0]);
    fs::remove_file(&file).expect("remove");
    host.write("data/postmaster.pid", &lock_file(10));
    assert_eq!(host.pids(), [10]);
}

#[test]
fn child_in_the_same_directory_is_not_a_server() {
    let host = Host::new();
    host.server(10, "data");
    host.process(11, 10, "x", "x");
    host.directory(11, "data");
    // The postmaster of a container inherits another server.
    host.server(12, "other");
    assert_eq!(host.pids(), [10, 12]);
}

#[test]
fn own_server_is_recognized_without_a_lock_file() {
    let host = Host::new();
    host.process(10, 1, ".postgres-wrapp", "/opt/start");
    host.directory(10, "data");
    assert_eq!(host.pids(), [0; 0]);
    let own = host.read(Some(10));
    assert_eq!(own.len(), 1);
    assert_eq!((own[0].pid, own[0].port), (10, None));
    assert!(host.read(Some(30)).is_empty());
}

#[test]
fn children_are_not_opened() {
    let host = Host::new();
    host.server(10, "data");
    host.server(20, "other");
    host.write("proc/11/status", "not to be read");
    host.directory(11, "data");
    host.write("data/postmaster.pid", &lock_file(10));
    assert_eq!(host.read_beside(Some(10), [11, 12]).len(), 2);
    // In single-user mode, the server itself is in the list.
    assert_eq!(host.read_beside(Some(10), [10, 11]).len(), 2);
}

#[test]
fn process_that_ends_meanwhile_is_skipped() {
    let host = Host::new();
    host.server(10, "data");
    host.server(20, "other");
    fs::remove_file(host.0.path().join("proc/10/status")).expect("remove");
    assert_eq!(host.pids(), [20]);
}

#[test]
fn process_whose_directory_fails_is_hidden() {
    let host = Host::new();
    for pid in [10, 20, 30] {
        host.server(pid, &format!("data{pid}"));
    }
    // Not a link: readlink fails, as for a path that is too long.
    fs::remove_file(host.0.path().join("proc/10/cwd")).expect("remove");
    host.write("proc/10/cwd", "");
    host.write("proc/30/maps", "nonsense\n");
    assert_eq!(host.pids(), [20, 30]);
    let root = Root::at(host.0.path());
    let own = instances::read(&root, Some(10), &[].into(), &[], |_| ());
    assert!(own.is_err(), "its own files have to be readable");
    // As for another user's process.
    host.process(10, 1, "postgres", "/usr/bin/postgres -D /srv");
    host.segments(&[10]);
    assert_eq!(host.pids(), [10, 20, 30]);
}

#[test]
fn only_creators_of_segments_are_candidates() {
    let host = Host::new();
    let root = Root::at(host.0.path());
    assert!(instances::candidates(&root).is_err(), "no list of segments");
    for (pid, directory) in [(10, "a"), (20, "b"), (30, "c")] {
        host.server(pid, directory);
    }
    host.process(40, 1, "x", "x");
    host.directory(40, "d");
    host.segments(&[0, 20, 30, 40, 99, 20]);
    let candidates = instances::candidates(&root).expect("a list");
    assert_eq!(candidates, [0, 20, 30, 40, 99]);
    let mut steps = Vec::new();
    instances::read_candidates(&root, candidates, |step| steps.push(step)).expect("a list");
    let found = instances::collect(steps).expect("all were found");
    let pids: Vec<_> = found.iter().map(|server| server.pid).collect();
    assert_eq!(pids, [20, 30]);
}

#[test]
fn no_user_delays_the_servers_of_others() {
    let host = Host::new();
    let uid = |pid| if pid < 20 { 105 } else { pid };
    for pid in [10, 11, 12, 20, 30] {
        host.server(pid, &format!("data{pid}"));
        let uid = uid(pid);
        host.write(
            &format!("proc/{pid}/status"),
            &format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pid}\n"),
        );
    }
    let order = |first: &[u32]| {
        let mut order = Vec::new();
        let report = |step| {
            if let Progress::Detailed(server) = step {
                order.push(server.pid);
            }
        };
        let root = Root::at(host.0.path());
        instances::read(&root, None, &[].into(), first, report).expect("readable files");
        order
    };
    assert_eq!(order(&[]), [10, 20, 30, 11, 12]);
    assert_eq!(order(&[30]), [30, 10, 20, 11, 12]);
}

#[test]
fn search_that_ends_early_has_no_answer() {
    let server = |port| Instance { port, ..hidden(10) };
    let found = Progress::Found(server(None));
    let detailed = Progress::Detailed(server(Some(1)));
    assert_eq!(instances::collect([found.clone()]), None);
    let steps = [found, Progress::AllFound];
    assert_eq!(instances::collect(steps.clone()), Some(vec![server(None)]));
    let steps = steps.into_iter().chain([detailed]);
    let steps: Vec<_> = steps.collect();
    assert_eq!(
        instances::collect(steps.clone()),
        Some(vec![server(Some(1))])
    );
    let steps = steps.into_iter().chain([Progress::Ended(10)]);
    assert_eq!(instances::collect(steps), Some(Vec::new()));
}

/// The pages that a server with these configuration files requests.
fn requested(command_line: &str, files: &[(&str, &str)]) -> RequestedPages {
    let host = Host::new();
    host.server(10, "data");
    let root = host.path("");
    let command_line = command_line.replace("ROOT", &root);
    host.write("proc/10/cmdline", &command_line.replace(' ', "\0"));
    for (name, text) in files {
        host.write(name, &text.replace("ROOT", &root));
    }
    match host.read(None)[0].huge_pages.clone() {
        RequestedPages::Unknown(Some(file)) => {
            let file = String::from_utf8(file).expect("a path");
            look_at(file.strip_prefix(&root).expect("a path on this host"))
        }
        requested => requested,
    }
}

fn look_at(file: &str) -> RequestedPages {
    RequestedPages::Unknown(Some(file.into()))
}

#[test]
fn huge_pages_from_command_lines_and_files() {
    let conf = "data/postgresql.conf";
    let auto = "data/postgresql.auto.conf";
    let opts = "data/postmaster.opts";
    let unknown = || RequestedPages::Unknown(None);
    let known = |value| RequestedPages::Known(value, Some(0));
    let default = || known(HugePages::Try);
    let off = "huge_pages = off\n";
    for (command_line, files, expected) in [
        ("x ", &[][..], unknown()),
        ("x ", &[(conf, "")], default()),
        (
            "x ",
            &[(conf, "#huge_pages = on\n#include 'a.conf'")],
            default(),
        ),
        ("x ", &[(conf, off)], known(HugePages::Off)),
        (
            "x ",
            &[(conf, "huge_pages = on\nhuge_pages = off\n")],
            known(HugePages::Off),
        ),
        (
            "x ",
            &[(conf, "huge_pages = on\n"), (auto, off)],
            known(HugePages::Off),
        ),
        (
            "x -c huge_pages=on ",
            &[(conf, off), (auto, off)],
            known(HugePages::On),
        ),
        // The options of the last start are not those of a running server.
        (
            "",
            &[(conf, off), (opts, "/bin/x \"-c\" \"huge_pages=on\"\n")],
            unknown(),
        ),
        (
            "x -D ROOTdata -c config_file=ROOTetc/a.conf ",
            &[(conf, "huge_pages = on\n"), ("etc/a.conf", off)],
            known(HugePages::Off),
        ),
        (
            "x -D ROOTetc ",
            &[(conf, "huge_pages = on\n"), ("etc/postgresql.conf", off)],
            known(HugePages::Off),
        ),
        ("x -c config_file=a.conf ", &[(conf, off)], unknown()),
        ("x -D ROOTno ", &[(conf, off)], unknown()),
        (
            "x -D ROOTno ",
            &[(auto, off)],
            RequestedPages::Known(HugePages::Off, None),
        ),
        ("x ", &[(conf, "huge_pages = maybe")], unknown()),
        ("x ", &[(conf, "huge_pages = 'off")], look_at(conf)),
        ("x ", &[(conf, &"#".repeat(1 << 20))], default()),
        ("x ", &[(conf, &"#".repeat((1 << 20) + 1))], unknown()),
    ] {
        assert_eq!(
            requested(command_line, files),
            expected,
            "{command_line}, {files:.200?}"
        );
    }
}

#[test]
fn included_files_make_huge_pages_unknown() {
    let conf = "data/postgresql.conf";
    let auto = "data/postgresql.auto.conf";
    let known = |value, size| RequestedPages::Known(value, size);
    let on = HugePages::On;
    let included = ("data/a.conf", "huge_pages = off\n");
    for (command_line, files, expected) in [
        (
            "x ",
            &[(conf, "include 'a.conf'\n"), included][..],
            look_at(conf),
        ),
        (
            "x ",
            &[(conf, "huge_pages = on\ninclude 'a.conf'\n"), included],
            look_at(conf),
        ),
        (
            "x ",
            &[(conf, "include_if_exists 'no.conf'\n")],
            look_at(conf),
        ),
        ("x ", &[(conf, "include_dir 'no.d'\n")], look_at(conf)),
        (
            "x ",
            &[(conf, "include_dir 'conf.d'\n"), ("data/conf.d/a.conf", "")],
            look_at(conf),
        ),
        // As Debian installs it.
        (
            "x ",
            &[
                (conf, "huge_pages = on\ninclude_dir 'conf.d'\n"),
                ("data/conf.d/.a.conf", "huge_pages = off\n"),
                ("data/conf.d/a.conf.orig", "huge_pages = off\n"),
            ],
            known(on, Some(0)),
        ),
        // Later lines and sources take precedence.
        (
            "x ",
            &[(conf, "include 'a.conf'\nhuge_pages = on\n"), included],
            known(on, None),
        ),
        (
            "x ",
            &[
                (conf, "huge_page_size = 2MB\ninclude 'a.conf'\n"),
                included,
                (auto, "huge_pages = on\n"),
            ],
            known(on, None),
        ),
        (
            "x -c huge_pages=on -c huge_page_size=0 ",
            &[(conf, "include 'a.conf'\n"), included],
            known(on, Some(0)),
        ),
        // ALTER SYSTEM does not write such a line.
        (
            "x ",
            &[
                (conf, "huge_pages = on\n"),
                (auto, "include 'a.conf'\n"),
                included,
            ],
            look_at(auto),
        ),
    ] {
        assert_eq!(
            requested(command_line, files),
            expected,
            "{command_line}, {files:?}"
        );
    }
}

#[test]
fn huge_page_size_from_command_lines_and_files() {
    let conf = "data/postgresql.conf";
    let auto = "data/postgresql.auto.conf";
    let known = |size| RequestedPages::Known(HugePages::Try, size);
    for (command_line, files, expected) in [
        ("x ", &[(conf, "")][..], known(Some(0))),
        (
            "x ",
            &[(conf, "huge_page_size = 2048")],
            known(Some(2 << 20)),
        ),
        (
            "x ",
            &[(conf, "huge_page_size = '1 GB'")],
            known(Some(1 << 30)),
        ),
        ("x ", &[(conf, "huge_page_size = many")], known(None)),
        (
            "x --huge-page-size=0 ",
            &[(conf, ""), (auto, "huge_page_size = 2MB")],
            known(Some(0)),
        ),
        (
            "x ",
            &[
                (conf, "huge_page_size = 1GB"),
                (auto, "huge_page_size = 2MB"),
            ],
            known(Some(2 << 20)),
        ),
        // Settings before a file that cannot be read.
        ("x -c huge_pages=try ", &[], known(None)),
        (
            "x -c huge_page_size=2MB ",
            &[],
            RequestedPages::Unknown(None),
        ),
        (
            "x -Fc huge_page_size=2MB ",
            &[(conf, "huge_pages = try")],
            RequestedPages::Unknown(None),
        ),
    ] {
        assert_eq!(
            requested(command_line, files),
            expected,
            "{command_line}, {files:?}"
        );
    }
}

#[test]
fn configuration_files_of_other_users_are_not_followed() {
    let host = Host::new();
    host.server(10, "data");
    host.write("etc/a.conf", "huge_pages = off\n");
    let link = host.0.path().join("data/postgresql.conf");
    symlink(host.path("etc/a.conf"), &link).expect("symlink");
    let own = rustix::process::geteuid().as_raw();
    for (uid, expected) in [
        (own, RequestedPages::Known(HugePages::Off, Some(0))),
        (own + 1, RequestedPages::Unknown(None)),
    ] {
        host.write(
            "proc/10/status",
            &format!("Uid:\t1\t{uid}\t1\t1\nNSpid:\t10\n"),
        );
        assert_eq!(host.read(None)[0].huge_pages, expected);
    }
    fs::remove_file(&link).expect("remove");
    rustix::fs::mkfifoat(rustix::fs::CWD, &link, rustix::fs::Mode::RUSR).expect("mkfifo");
    assert_eq!(host.read(None)[0].huge_pages, RequestedPages::Unknown(None));
}

#[test]
fn data_directory_that_is_elsewhere_in_the_process_is_not_read() {
    let host = Host::new();
    host.server(10, "data");
    host.write("data/postgresql.conf", "huge_pages = off\n");
    let root = host.0.path().join("proc/10/root");
    fs::remove_file(&root).expect("remove");
    symlink(host.0.path(), &root).expect("symlink");
    assert_eq!(host.read(None)[0].huge_pages, RequestedPages::Unknown(None));
}
