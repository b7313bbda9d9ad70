//! What the next boot asks for, beside what real kernels made of it.

#![allow(clippy::expect_used)]

#[path = "scene/mod.rs"]
mod scene;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
};

use hugeinfo::{
    advice::words,
    linux::{
        boot::{self, Doubtful, DropIns, Edit, Kernel, NextBoot, Phase, Sources, Why},
        root::Root,
    },
    model::{
        boot::{NodeMemory, PoolAtBoot, pools},
        next_boot,
        step::Step,
    },
};
use proptest::prelude::*;
use tempfile::TempDir;

/// Debian's kernels in QEMU with two nodes of 4 GB, one line each: the version, the command line
/// behind `quiet`, the default size, and the pages of each size and node, in kB.
const KERNELS: &str = include_str!("boot/kernels.txt");

fn guest(version: &str) -> Kernel {
    let (major, minor) = version.split_once('.').expect("a version");
    let (major, minor) = (number(major), number(minor));
    Kernel {
        version: (major, minor),
        sizes: Some(vec![2 << 20, 1 << 30]),
        hpage_bytes: 2 << 20,
        nodes: Some(vec![0, 1]),
        most_sizes: 2,
        // Debian's kernels up to 6.12 come without.
        has_cma: major > 6,
    }
}

fn booted_with(line: &str, kernel: Kernel) -> NextBoot {
    let sources = Sources {
        kernel,
        command_line: Ok(line.as_bytes().to_vec()),
        sysctl: DropIns::default(),
        tmpfiles: None,
    };
    NextBoot::of(sources).expect("memory enough")
}

#[test]
fn command_lines_as_real_kernels_took_them() {
    let mut wrong = Vec::new();
    for row in KERNELS.lines().filter(|row| !row.starts_with('#')) {
        let mut columns = row.split('|');
        let mut column = || columns.next().expect("a column");
        let (version, line, seen) = (column(), column(), column());
        let (default, by_node) = seen.split_once(' ').expect("a default size");
        let mut expected: BTreeMap<u64, BTreeMap<u32, u64>> = BTreeMap::new();
        for word in by_node.split_whitespace() {
            let (pool, pages) = word.split_once('=').expect("pages");
            let (size, node) = pool.split_once('@').expect("a node");
            let of_size = expected.entry(number(size) << 10).or_default();
            of_size.insert(u32::try_from(number(node)).expect("a node"), number(pages));
        }
        let next = booted_with(line, guest(version));
        let nodes = [0, 1].map(|node| (node, Some(4 << 30)));
        let machine = NodeMemory {
            nodes: nodes.into(),
        };
        let forecast = pools(&next, &machine).expect("memory enough");
        // 6.8 made pages in chunks, each from the first node on.
        let near = if version == "6.12" { 4 } else { 1 };
        let is_default = default == format!("default={}", next.default_size() >> 10);
        let is_same = forecast.iter().all(|pool| {
            let seen = &expected[&pool.page_bytes];
            let total: u64 = seen.values().sum();
            let names_nodes = pool.by_node.values().eq(seen.values());
            let is_near = |node: &u32| {
                let forecast = pool.by_node.get(node).copied().unwrap_or(0);
                forecast.abs_diff(seen[node]) <= near
            };
            total == pool.pages && (names_nodes || seen.keys().all(is_near))
        });
        if !is_default || !is_same || forecast.len() != expected.len() {
            let forecast: Vec<_> = forecast
                .iter()
                .map(|p| (p.page_bytes >> 10, &p.by_node))
                .collect();
            wrong.push(format!(
                "{row}\n    forecast {} {forecast:?}",
                next.default_size()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// A machine as a tree of files.
struct Host(TempDir);

impl Host {
    fn with(files: &[(&str, &str)]) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        for (path, text) in [
            ("proc/cmdline", "quiet\n"),
            ("proc/meminfo", "CmaTotal: 0 kB\nHugepagesize: 2048 kB\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-56-amd64\n"),
            ("run/systemd/system/x", ""),
            (SMALL, "0\n"),
            (GIGANTIC, "0\n"),
        ] {
            host.write(path, text);
        }
        for (path, text) in files {
            host.write(path, text);
        }
        scene::as_the_host(host.0.path());
        host
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        path
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).expect("write");
    }

    /// A pipe, since the rights of a file would not keep root out.
    fn hide(&self, path: &str) {
        let path = self.path(path);
        let _ = fs::remove_file(&path);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a pipe");
    }

    fn next(&self) -> NextBoot {
        NextBoot::read(&Root::at(self.0.path()))
            .expect("read")
            .expect("sources")
    }

    fn pool(&self, page_bytes: u64) -> PoolAtBoot {
        let all = pools(&self.next(), &NodeMemory::default()).expect("memory");
        all.into_iter()
            .find(|pool| pool.page_bytes == page_bytes)
            .expect("a pool")
    }
}

const SMALL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const GIGANTIC: &str = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
const MB2: u64 = 2 << 20;
const GB: u64 = 1 << 30;

fn source(pool: &PoolAtBoot) -> String {
    let last = pool.by.last();
    last.map(|asked| asked.place.to_string())
        .unwrap_or_default()
}

#[test]
fn the_last_word_and_what_it_overrides() {
    let host = Host::with(&[
        ("proc/cmdline", "quiet hugepages=9 hugepages=10\n"),
        ("usr/lib/sysctl.d/50-a.conf", "#\nvm.nr_hugepages=2\n"),
        ("usr/lib/sysctl.d/60-b.conf", "vm.nr_hugepages=3\n"),
        ("etc/sysctl.d/60-b.conf", "vm.nr_overcommit_hugepages=4\n"),
        ("run/sysctl.d/99-gone.conf", "vm.nr_hugepages=5\n"),
        ("etc/sysctl.d/99-c.txt", "vm.nr_hugepages=6\n"),
        ("etc/sysctl.conf", "vm.nr_hugepages=7\n"),
        (
            "etc/tmpfiles.d/x.conf",
            "w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 4\n",
        ),
    ]);
    let pool = host.pool(MB2);
    assert_eq!((pool.asked, pool.overcommit), (2, 4));
    assert_eq!(source(&pool), "/usr/lib/sysctl.d/50-a.conf:2");
    let why: Vec<_> = pool
        .dropped
        .iter()
        .map(|d| (&*d.place.text, &d.why))
        .collect();
    let winner = pool.by[0].place.clone();
    assert_eq!(
        why,
        [
            ("hugepages=9", &Why::Overridden(winner)),
            ("hugepages=10", &Why::Repeated)
        ]
    );
    assert_eq!(pool.doubts, []);
    let pool = host.pool(GB);
    assert_eq!(
        (pool.asked, source(&pool)),
        (4, "/etc/tmpfiles.d/x.conf:1".to_owned())
    );

    // A link to /dev/null, an empty file, and a link that leads nowhere hide a name.
    let hidden = "etc/sysctl.d/50-a.conf";
    symlink("/dev/null", host.path(hidden)).expect("a link");
    assert_eq!(source(&host.pool(MB2)), "/proc/cmdline:2");
    fs::remove_file(host.path(hidden)).expect("rm");
    symlink("nowhere", host.path(hidden)).expect("a link");
    assert_eq!(host.pool(MB2).asked, 9);
    fs::remove_file(host.path(hidden)).expect("rm");
    host.write(hidden, "");
    assert_eq!(host.pool(MB2).asked, 9);

    // systemd reads sysctl.conf through a link alone; procps reads it last.
    symlink("../sysctl.conf", host.path("etc/sysctl.d/99-sysctl.conf")).expect("a link");
    assert_eq!(source(&host.pool(MB2)), "/etc/sysctl.d/99-sysctl.conf:1");
    fs::remove_file(host.path("etc/sysctl.d/99-sysctl.conf")).expect("rm");
    fs::remove_dir_all(host.path("run/systemd")).expect("rm");
    assert_eq!(source(&host.pool(MB2)), "/etc/sysctl.conf:1");
    assert_eq!(host.pool(GB).asked, 0, "tmpfiles.d is systemd's");
}

/// Returns the text of a file of exactly this size whose last line sets the pool.
fn padded(bytes: usize, line: &str) -> String {
    format!("{}\n{line}\n", "#".repeat(bytes - line.len() - 2))
}

fn doubts(pool: &PoolAtBoot) -> Vec<(&str, Doubtful)> {
    let doubts = pool.doubts.iter();
    doubts
        .map(|doubt| (doubt.file.as_str(), doubt.what))
        .collect()
}

#[test]
fn files_above_the_limits_are_unknown() {
    const KB: usize = 1024;
    const SYSCTL: &str = "vm.nr_hugepages=7";
    const TMPFILES: &str = "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 7";
    for (kind, line) in [("sysctl", SYSCTL), ("tmpfiles", TMPFILES)] {
        let spaces = |count| format!("{}{line}\n", " ".repeat(count - line.len()));
        for (is_read, text) in [
            (true, padded(256 * KB, line)),
            (false, padded(256 * KB + 1, line)),
            (true, format!("{line}\n").repeat(256)),
            (false, format!("{line}\n").repeat(257)),
            (true, spaces(1000)),
            (false, spaces(1001)),
            // Other lines can be long and numerous.
            (
                true,
                format!("{}{line}\n", "kernel.sysrq=1\n".repeat(10_000)),
            ),
            (true, format!("kernel.x={}\n{line}\n", "1".repeat(2000))),
        ] {
            let file = format!("etc/{kind}.d/x.conf");
            let host = Host::with(&[(&file, &text)]);
            let pool = host.pool(MB2);
            let start = &text[..40];
            assert_eq!(pool.asked, if is_read { 7 } else { 0 }, "{kind} {start}");
            let all = doubts(&pool);
            assert_eq!(all.is_empty(), is_read, "{kind} {start}");
            let path = format!("/{file}");
            let is_it = |doubt| doubt == &(path.as_str(), Doubtful::TooLarge);
            assert!(all.iter().all(is_it), "{kind} {start}: {all:?}");
        }
    }

    // Limits on the total of all files.
    let large = padded(256 * KB, SYSCTL);
    let many = format!("{SYSCTL}\n").repeat(100);
    for (text, last_read) in [(&large, "3"), (&many, "1")] {
        let host = Host::with(&[]);
        for name in 0..5 {
            host.write(&format!("etc/sysctl.d/{name}.conf"), text);
        }
        let pool = host.pool(MB2);
        assert!(source(&pool).starts_with(&format!("/etc/sysctl.d/{last_read}.conf")));
        assert_eq!(
            doubts(&pool).last(),
            Some(&("/etc/sysctl.d/4.conf", Doubtful::TooLarge))
        );
    }

    // A readable file that is read later determines the number.
    let host = Host::with(&[
        ("etc/sysctl.d/a.conf", &padded(256 * KB + 1, SYSCTL)),
        (
            "etc/sysctl.d/b.conf",
            "vm.nr_hugepages=8\nvm.nr_overcommit_hugepages=0\n",
        ),
    ]);
    let pool = host.pool(MB2);
    assert_eq!((pool.asked, doubts(&pool)), (8, Vec::new()));

    // A directory with too many files.
    let host = Host::with(&[]);
    for number in 0..1025 {
        host.write(&format!("etc/sysctl.d/{number}.conf"), "");
    }
    let pool = host.pool(MB2);
    // One for the persistent pages and one for the surplus pages.
    assert_eq!(doubts(&pool), [("/etc/sysctl.d", Doubtful::Unread); 2]);
}

#[test]
fn nothing_to_be_had() {
    let empty = tempfile::tempdir().expect("a directory");
    let absent = |tree: &TempDir| {
        let next = NextBoot::read(&Root::at(tree.path())).expect("read");
        next.expect_err("nothing").to_string()
    };
    assert!(absent(&empty).ends_with("/proc/self/ns/pid is missing"));
    scene::as_the_host(empty.path());
    assert!(absent(&empty).ends_with("/proc/cmdline is missing"));
}

/// A directory that cannot be read makes the number unknown. Anything else than a directory counts
/// as empty.
#[test]
fn unreadable_or_missing_drop_in_directories() {
    for kind in ["sysctl.d", "tmpfiles.d"] {
        for (target, is_unread) in [
            (Some(kind), true),
            (Some("nowhere"), false),
            (Some("/dev/null"), false),
            (None, false),
        ] {
            let host = Host::with(&[("usr/lib/sysctl.d/x.conf", "vm.nr_hugepages=9\n")]);
            let directory = format!("etc/{kind}");
            match target {
                Some(target) => symlink(target, host.path(&directory)).expect("a link"),
                None => host.hide(&directory),
            }
            let doubts = host.pool(MB2).doubts;
            let mut files: Vec<_> = doubts.iter().map(|doubt| &*doubt.file).collect();
            files.dedup();
            let named = format!("/{directory}");
            let expected: &[&str] = if is_unread { &[&named] } else { &[] };
            assert_eq!(files, expected, "{kind} {target:?}");
            assert_eq!(host.pool(MB2).asked, 9, "{kind} {target:?}");
        }
    }
    let host = Host::with(&[("usr/lib/sysctl.d/x.conf", "vm.nr_hugepages=9\n")]);
    fs::remove_dir_all(host.path("run/systemd/system")).expect("rm");
    symlink("system", host.path("run/systemd/system")).expect("a link");
    assert_eq!(host.pool(MB2).asked, 9);
}

/// sysctl reads files with any name, but remedies edit only files whose names can be quoted.
#[test]
fn drop_ins_with_unprintable_names() {
    let names: [(&[u8], &str); 5] = [
        (b"z\xff.conf", r"z\377.conf"),
        (b"z\x1b[2J.conf", r"z\033[2J.conf"),
        (b"z\n.conf", r"z\012.conf"),
        (b"zz\xff.conf", r"zz\377.conf"),
        (br"z\377.conf", r"z\377.conf"),
    ];
    for (name, shown) in names {
        let host = Host::with(&[("etc/sysctl.d/x.conf", "vm.nr_hugepages=9\n")]);
        let path = host.path("etc/sysctl.d").join(OsStr::from_bytes(name));
        fs::write(&path, "vm.nr_hugepages = 5\n").expect("write");
        let expected = format!("/etc/sysctl.d/{shown}:1");
        assert_eq!(source(&host.pool(MB2)), expected);
        assert_eq!(host.pool(MB2).asked, 5, "{shown}");
        assert_eq!(edit(&host, MB2), None, "{shown}");
        // A file without lines about huge pages does not prevent the edit.
        fs::write(&path, "kernel.sysrq = 0\n").expect("write");
        let instead = replace(
            "/etc/sysctl.d/x.conf",
            "vm.nr_hugepages=9",
            "vm.nr_hugepages = 537",
        );
        assert_eq!(edit(&host, MB2), instead, "{shown}");
    }
    // A link with a printable name to a file with an unprintable one.
    let host = Host::with(&[("etc/sysctl.d/x.conf", "")]);
    let target = host
        .path("etc/x")
        .with_file_name(OsStr::from_bytes(b"\xff"));
    fs::write(target, "vm.nr_hugepages = 5\n").expect("write");
    let link = host.path("etc/sysctl.d/z.conf");
    symlink(OsStr::from_bytes(b"../\xff"), link).expect("a link");
    let expected = append("/etc/sysctl.d/zz-hugepages.conf", "vm.nr_hugepages = 537");
    assert_eq!(edit(&host, MB2), expected);
}

/// Mounts as process 1 shows them, and as they are seen here.
#[test]
fn files_that_are_not_the_hosts() {
    const ROOT: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
    const RUN: &str = "30 27 0:25 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,mode=755\n";
    let first = format!("{ROOT}{RUN}");
    let with = |line: &str| format!("{first}{line}\n");
    for (own, elsewhere) in [
        (first.clone(), None),
        // A unit with mounts of its own: PrivateTmp=yes, ProtectSystem=full.
        (
            "127 1 254:0 / / rw - ext4 /dev/vda rw\n130 127 0:25 / /run rw - tmpfs tmpfs rw\n\
             131 127 254:0 /etc /etc ro - ext4 /dev/vda rw\n132 127 0:33 / /tmp rw - tmpfs tmpfs rw\n"
                .to_owned(),
            None,
        ),
        // A container with the PID namespace of the host.
        (
            "127 1 0:41 / / rw - overlay overlay rw,lowerdir=/x\n128 127 254:0 /x /etc/hosts rw - ext4 /dev/vda rw\n".to_owned(),
            Some("/etc"),
        ),
        // The same with a volume at /run, and one with the host's /etc.
        (
            "127 1 254:0 / / rw - ext4 /dev/vda rw\n130 127 0:99 / /run rw - tmpfs tmpfs rw\n".to_owned(),
            Some("/run/systemd/system"),
        ),
        (
            "127 1 0:41 / / rw - overlay overlay rw\n128 127 254:0 /etc /etc ro - ext4 /dev/vda rw\n".to_owned(),
            Some("/run/systemd/system"),
        ),
        // RootDirectory=, and a chroot into a directory on which nothing is mounted.
        ("127 1 254:0 /srv/x / rw - ext4 /dev/vda rw\n".to_owned(), Some("/etc")),
        ("128 27 0:21 / /proc rw - proc proc rw\n".to_owned(), Some("/etc")),
        // Over a part of it.
        (with("131 27 0:50 / /etc/sysctl.d rw - tmpfs tmpfs rw"), Some("/etc/sysctl.d")),
        (with("131 27 0:50 / /etcetera rw - tmpfs tmpfs rw"), None),
    ] {
        let host = Host::with(&[]);
        host.write("proc/1/mountinfo", &first);
        host.write("proc/self/mountinfo", &own);
        let next = NextBoot::read(&Root::at(host.0.path())).expect("read");
        let absent = next.err().map(|absent| absent.path);
        assert_eq!(absent.as_deref(), elsewhere.map(Path::new), "{own}");
    }
    // Another PID namespace, in which process 1 is the container's; /proc without others.
    let host = Host::with(&[]);
    let namespace = host.path("proc/self/ns/pid");
    fs::remove_file(&namespace).expect("rm");
    symlink("pid:[4026532198]", namespace).expect("a link");
    let absent = NextBoot::read(&Root::at(host.0.path())).expect("read");
    assert_eq!(
        absent.expect_err("a container").to_string(),
        "/etc is not the host's own here, as in a container"
    );
    let host = Host::with(&[]);
    fs::remove_dir_all(host.path("proc/1")).expect("rm");
    let absent = NextBoot::read(&Root::at(host.0.path())).expect("read");
    let said = absent.expect_err("hidden").to_string();
    assert!(said.ends_with("/proc/1/mountinfo is missing"), "{said}");
}

#[test]
fn what_is_written_has_to_stay() {
    let lines = "vm.nr_hugepages=5\n";
    for mounts in [
        "27 1 254:0 / / ro - ext4 /dev/vda rw\n",
        "27 1 254:0 / / rw - erofs /dev/vda ro\n",
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:30 / /etc rw - tmpfs tmpfs rw\n",
    ] {
        let host = Host::with(&[
            ("etc/sysctl.d/99-x.conf", lines),
            ("proc/cmdline", "hugepages=0"),
        ]);
        host.write("proc/1/mountinfo", mounts);
        host.write("proc/self/mountinfo", mounts);
        assert_eq!(host.pool(MB2).asked, 5);
        assert_eq!(edit(&host, MB2), None, "{mounts}");
    }
    // A link that leads nowhere: neither a directory nor to be made one.
    let host = Host::with(&[]);
    fs::remove_dir_all(host.path("run/systemd")).expect("rm");
    symlink("../nowhere", host.path("etc/sysctl.d")).expect("a link");
    let on_line = Edit::Words {
        old: Vec::new(),
        new: "hugepagesz=2M hugepages=537".to_owned(),
        position_matters: false,
    };
    assert_eq!(edit(&host, MB2), Some(on_line));
}

#[test]
fn what_cannot_be_read_is_a_doubt_where_it_may_matter() {
    let sysctl = |name: &str| format!("etc/sysctl.d/{name}.conf");
    for (hidden, is_doubtful) in [("10-x", false), ("60-x", true), ("50-a", true)] {
        let host = Host::with(&[(&sysctl("50-a"), "vm.nr_hugepages=2\n")]);
        host.hide(&sysctl(hidden));
        let pool = host.pool(MB2);
        let of_pages = |d: &&boot::Doubt| d.of == boot::What::Pages;
        let doubts: Vec<_> = pool.doubts.iter().filter(of_pages).collect();
        assert_eq!(!doubts.is_empty(), is_doubtful, "{hidden}: {doubts:?}");
        assert!(
            doubts
                .iter()
                .all(|d| d.file == format!("/{}", sysctl(hidden)))
        );
        assert_eq!(host.pool(GB).doubts, []);
    }
    // Containers mask the command line with an empty file.
    let host = Host::with(&[
        (&sysctl("50-a"), "vm.nr_hugepages=2\n"),
        ("proc/cmdline", ""),
    ]);
    assert_eq!(host.pool(MB2).doubts, []);
    let doubts = host.pool(GB).doubts;
    let files: Vec<_> = doubts.iter().map(|doubt| &*doubt.file).collect();
    assert_eq!(files, ["/proc/cmdline"]);
    // A pattern gives way to any line of its own, and a directory may hold any name.
    let host = Host::with(&[(&sysctl("50-a"), "vm.nr_huge*=2\n")]);
    host.hide(&sysctl("10-x"));
    assert!(!host.pool(MB2).doubts.is_empty());
}

#[test]
fn sysctl_and_tmpfiles_are_not_ordered() {
    let files = |n: u32| {
        [
            ("etc/sysctl.d/a.conf", "vm.nr_hugepages=5\n".to_owned()),
            ("etc/tmpfiles.d/a.conf", format!("w /{SMALL} - - - - {n}\n")),
        ]
    };
    for (pages, is_open) in [(5, false), (6, true)] {
        let files = files(pages);
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, &**text)).collect();
        let pool = Host::with(&files).pool(MB2);
        assert_eq!(pool.asked, u64::from(pages));
        let is_unordered = |d: &boot::Doubt| d.what == Doubtful::Unordered;
        assert_eq!(pool.doubts.iter().any(is_unordered), is_open);
    }
}

/// What sets 537 pages of that size.
fn edit(host: &Host, page_bytes: u64) -> Option<Edit> {
    next_boot::edit(&host.next(), &NodeMemory::default(), page_bytes, 537)
}

fn append(file: &str, line: &str) -> Option<Edit> {
    Some(Edit::Append {
        file: file.to_owned(),
        line: line.to_owned(),
        makes_directory: false,
    })
}

fn replace(file: &str, old: &str, new: &str) -> Option<Edit> {
    Some(Edit::Replace {
        file: file.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    })
}

#[test]
fn where_a_line_of_sysctl_has_the_last_word() {
    let wanted = "vm.nr_hugepages = 537";
    let new = |name: &str| append(&format!("/etc/sysctl.d/{name}.conf"), wanted);
    let instead = |file: &str, old: &str| replace(file, old, wanted);
    for (files, expected) in [
        (&[("etc/sysctl.d/x.conf", "")][..], new("hugepages")),
        (
            &[("etc/sysctl.d/99-x.conf", "#\n\tvm.nr_hugepages=5 # why")],
            instead("/etc/sysctl.d/99-x.conf", "\tvm.nr_hugepages=5 # why"),
        ),
        // Not below /usr/lib, and not under the same name, which would hide the rest of the file.
        (
            &[
                ("usr/lib/sysctl.d/99-x.conf", "vm.nr_hugepages=5\n"),
                ("etc/sysctl.d/x.conf", ""),
            ],
            new("hugepages"),
        ),
        (
            &[
                ("usr/lib/sysctl.d/hugepages.conf", "vm.nr_hugepages=5\n"),
                ("etc/sysctl.d/x.conf", ""),
            ],
            new("zz-hugepages"),
        ),
        (
            &[
                ("usr/lib/sysctl.d/zzz.conf", "vm.nr_hugepages=5\n"),
                ("etc/sysctl.d/x.conf", ""),
            ],
            new("zzz_hugepages"),
        ),
        // A line of an administrator that a later one of a package overrides.
        (
            &[
                ("etc/sysctl.d/10-x.conf", "vm.nr_hugepages=5\n"),
                ("usr/lib/sysctl.d/x.conf", "vm.nr_hugepages=6\n"),
            ],
            new("zz-hugepages"),
        ),
        // A pattern may set more than pools, and gives way to a line, but under each name.
        (
            &[("etc/sysctl.d/zz.conf", "vm.nr_hugepage?=6\n")],
            new("hugepages"),
        ),
        (
            &[("etc/sysctl.d/zz.conf", "vm.nr_*=6\n")],
            new("zz_hugepages"),
        ),
        // The number said last of two names of one pool.
        (
            &[
                ("etc/sysctl.d/a.conf", "vm.nr_hugepages=5\n"),
                ("etc/sysctl.d/b.conf", "-vm/nr_hugepages_mempolicy=6\n"),
            ],
            instead("/etc/sysctl.d/b.conf", "-vm/nr_hugepages_mempolicy=6"),
        ),
        (
            &[
                ("etc/sysctl.d/a.conf", "vm.nr_hugepages=5\n"),
                ("usr/lib/sysctl.d/i.conf", "vm.nr_hugepages_mempolicy=6\n"),
            ],
            new("zz-hugepages"),
        ),
        // What can't be typed is left alone.
        (
            &[("etc/sysctl.d/99-x.conf", "vm.nr_hugepages=5\r\n")],
            new("hugepages"),
        ),
        // Our own file takes another line.
        (
            &[("etc/sysctl.d/hugepages.conf", "vm.overcommit_ratio = 80\n")],
            new("hugepages"),
        ),
        // One without an end of its last line does not.
        (
            &[("etc/sysctl.d/hugepages.conf", "vm.overcommit_ratio = 80")],
            new("zz-hugepages"),
        ),
        // tmpfiles.d comes later, also where it names the pool as sysctl does.
        (
            &[
                ("etc/sysctl.d/a.conf", "vm.nr_hugepages=5\n"),
                (
                    "etc/tmpfiles.d/a.conf",
                    "w /proc/sys/vm/nr_hugepages - - - - 5\n",
                ),
            ],
            None,
        ),
        (
            &[(
                "etc/tmpfiles.d/a.conf",
                "w /proc/sys/vm/nr_hugepages - - - - 5\n",
            )],
            replace(
                "/etc/tmpfiles.d/a.conf",
                "w /proc/sys/vm/nr_hugepages - - - - 5",
                &format!("w /{SMALL} - - - - 537"),
            ),
        ),
        (
            &[
                (
                    "usr/lib/tmpfiles.d/a.conf",
                    "w /proc/sys/vm/nr_* - - - - 5\n",
                ),
                ("etc/tmpfiles.d/x.conf", ""),
            ],
            append(
                "/etc/tmpfiles.d/hugepages.conf",
                &format!("w /{SMALL} - - - - 537"),
            ),
        ),
    ] {
        assert_eq!(edit(&Host::with(files), MB2), expected, "{files:?}");
    }
    // Over what cannot be read.
    let host = Host::with(&[("etc/sysctl.d/10-x.conf", "vm.nr_hugepages=5\n")]);
    host.hide("etc/sysctl.d/k.conf");
    assert_eq!(edit(&host, MB2), new("zz-hugepages"));
    // Without systemd, sysctl.conf comes last whatever its name.
    let host = Host::with(&[("etc/sysctl.conf", "\nvm.nr_hugepages=5\n")]);
    fs::remove_dir_all(host.path("run/systemd")).expect("rm");
    assert_eq!(
        edit(&host, MB2),
        instead("/etc/sysctl.conf", "vm.nr_hugepages=5")
    );
    host.hide("etc/sysctl.conf");
    assert_eq!(edit(&host, MB2), None);
    // A link from /etc to what a package owns, and one within it, which sed would replace.
    for (file, expected) in [
        ("usr/lib/x/pages.conf", new("zz-hugepages")),
        (
            "etc/x/pages.conf",
            instead("/etc/x/pages.conf", "vm.nr_hugepages=5"),
        ),
    ] {
        let host = Host::with(&[(file, "vm.nr_hugepages=5\n")]);
        let link = host.path("etc/sysctl.d/pages.conf");
        symlink(format!("../../{file}"), link).expect("a link");
        assert_eq!(edit(&host, MB2), expected);
    }
    let missing = Edit::Append {
        file: "/etc/sysctl.d/hugepages.conf".to_owned(),
        line: wanted.to_owned(),
        makes_directory: true,
    };
    assert_eq!(edit(&Host::with(&[]), MB2), Some(missing));
}

#[test]
fn where_a_line_of_tmpfiles_has_the_last_word() {
    let line = format!("w /{GIGANTIC} - - - - 4");
    let wanted = format!("w /{GIGANTIC} - - - - 537");
    let other = "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 4\n";
    let pattern = "w /sys/kernel/mm/hugepages/hugepages-1*/nr_hugepages - - - - 4\n";
    let new = |name: &str| append(&format!("/etc/tmpfiles.d/{name}.conf"), &wanted);
    for (files, expected) in [
        (
            &[("etc/tmpfiles.d/a.conf", &*line)][..],
            replace("/etc/tmpfiles.d/a.conf", &line, &wanted),
        ),
        // A pattern is worked off where it stands.
        (
            &[
                ("usr/lib/tmpfiles.d/x.conf", pattern),
                ("etc/tmpfiles.d/a.conf", other),
            ],
            new("zz-hugepages"),
        ),
        // Of lines for one path the first counts.
        (
            &[
                ("usr/lib/tmpfiles.d/x.conf", &line),
                ("etc/tmpfiles.d/a.conf", other),
            ],
            new("hugepages"),
        ),
        (
            &[
                ("usr/lib/tmpfiles.d/0.conf", &line),
                ("etc/tmpfiles.d/a.conf", other),
            ],
            None,
        ),
        (
            &[
                ("usr/lib/tmpfiles.d/x.conf", &line),
                ("usr/lib/tmpfiles.d/y.conf", pattern),
                ("etc/tmpfiles.d/a.conf", other),
            ],
            None,
        ),
    ] {
        assert_eq!(edit(&Host::with(files), GB), expected, "{files:?}");
    }
}

/// As it is typed: by a root with a strict umask, and once more. `/etc` is that of the tree.
fn type_in(host: &Host, edit: &Edit) {
    let step = Step::SetPoolAtBoot {
        page_bytes: MB2,
        pages: 537,
        edit: edit.clone(),
    };
    let machine = scene::machine(&scene::healthy());
    let etc = format!("{}/etc/", host.0.path().display());
    let command = words::command(&machine, &step).replace("/etc/", &etc);
    let mut typed = Command::new("sh");
    typed.args(["-c", &format!("umask 077; {command}")]);
    assert!(typed.status().expect("a shell").success(), "{command}");
}

#[test]
fn what_is_typed_is_what_was_tried() {
    let wanted = "vm.nr_hugepages = 537\n";
    let by_tmpfiles = format!("w /{GIGANTIC} - - - - 537\n");
    for (file, before, after) in [
        ("sysctl.d/hugepages", None, wanted.to_owned()),
        (
            "sysctl.d/hugepages",
            Some("vm.overcommit_ratio = 80\n"),
            format!("vm.overcommit_ratio = 80\n{wanted}"),
        ),
        (
            "sysctl.d/99 it's \"x\" $y",
            Some("vm.nr_hugepages=5"),
            wanted.trim_end().to_owned(),
        ),
        (
            "sysctl.d/a",
            Some("#\n-vm.nr_hugepages=\t5 # it's a] \\1 / & $HOME ^x|,@\nvm.x=1\n"),
            format!("#\n{wanted}vm.x=1\n"),
        ),
        // All lines that read so, and none that reads almost so.
        (
            "sysctl.d/a",
            Some("vm.nr_hugepages=5\nvmxnr_hugepages=5\n vm.x=5\nvm.nr_hugepages=5\n"),
            format!("{wanted}vmxnr_hugepages=5\n vm.x=5\n{wanted}"),
        ),
        (
            "tmpfiles.d/a",
            Some("w /sys//kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 5\n"),
            by_tmpfiles.clone(),
        ),
    ] {
        let (directory, _) = file.split_once('/').expect("a directory");
        let (directory, file) = (format!("etc/{directory}"), format!("etc/{file}.conf"));
        let page_bytes = if directory.ends_with("sysctl.d") {
            MB2
        } else {
            GB
        };
        let host = Host::with(&[]);
        host.path("etc/x");
        if let Some(before) = before {
            host.write(&file, before);
        }
        for (path, mode) in [(&directory, 0o755), (&file, 0o644)] {
            // Of those that are there.
            let mode = fs::Permissions::from_mode(mode);
            let _ = fs::set_permissions(host.0.path().join(path), mode);
        }
        let edit = edit(&host, page_bytes).expect("a change");
        let tried = host.next().with(&edit).expect("memory");
        type_in(&host, &edit);
        assert_eq!(host.next(), tried);
        let read = || fs::read_to_string(host.path(&file)).expect("read");
        assert_eq!(read(), after);
        type_in(&host, &edit);
        let again = match edit {
            Edit::Append { line, .. } => format!("{after}{line}\n"),
            _ => after,
        };
        assert_eq!(read(), again);
        assert_eq!(host.pool(page_bytes).asked, 537);
        let mode = |path: &str| {
            let found = host.0.path().join(path).metadata().expect("metadata");
            found.permissions().mode() & 0o777
        };
        assert_eq!((mode(&file), mode(&directory)), (0o644, 0o755), "{file}");
    }
}

#[test]
fn words_of_the_command_line() {
    let words = |old: &[&str], new: &str, position_matters| {
        Some(Edit::Words {
            old: old.iter().map(|&word| word.to_owned()).collect(),
            new: new.to_owned(),
            position_matters,
        })
    };
    let both = "hugepagesz=1G hugepages=537";
    for (line, expected) in [
        ("quiet", words(&[], both, false)),
        ("hugepages=20", words(&[], both, true)),
        (
            "hugepagesz=1G hugepages=4 hugepages=5",
            words(&["hugepages=4"], "hugepages=537", false),
        ),
        (
            "hugepagesz=1G \"hugepages=0:1,1:2\"",
            words(&["hugepages=0:1,1:2"], "hugepages=537", false),
        ),
        // The size has been named, and takes no number any more.
        ("hugepagesz=1G hugepagesz=2M hugepages=5", None),
    ] {
        let host = Host::with(&[("proc/cmdline", line)]);
        assert_eq!(edit(&host, GB), expected, "{line}");
    }
}

#[test]
fn what_the_kernel_sets_before_the_first_process() {
    let asked = |release: &str, line: &str, more: &[(&str, &str)]| {
        let host = Host::with(&[
            ("proc/sys/kernel/osrelease", release),
            ("proc/cmdline", line),
        ]);
        for (file, text) in more {
            host.write(file, text);
        }
        let pool = host.pool(MB2);
        (pool.asked, pool.overcommit)
    };
    for (line, expected) in [
        ("sysctl.vm.nr_hugepages=5 hugepages=20", (5, 0)),
        (
            "sysctl/vm/nr_hugepages=5 sysctl.vm/nr_hugepages=0x10",
            (16, 0),
        ),
        ("hugepages=20 sysctl.vm.nr_overcommit_hugepages=7", (20, 7)),
        (
            "hugepages=20 sysctl.vm.nr_hugepages=many sysctl.vm.nr_hugepages",
            (20, 0),
        ),
        (
            "hugepages=20 sysctl_vm.nr_hugepages=5 sysctl.vm.nr-hugepages=5",
            (20, 0),
        ),
        ("hugepages=20 -- sysctl.vm.nr_hugepages=5", (20, 0)),
    ] {
        assert_eq!(asked("6.1", line, &[]), expected, "{line}");
    }
    let line = "hugepages=20 sysctl.vm.nr_hugepages=5";
    assert_eq!(asked("5.7", line, &[]), (20, 0));
    // sysctl's files come later.
    let file = [("etc/sysctl.d/a.conf", "vm.nr_hugepages=6\n")];
    assert_eq!(asked("6.1", line, &file), (6, 0));
    // Also where the kernel's default size is one that the command line else is the place for.
    let line = "default_hugepagesz=1G hugepagesz=1G hugepages=20 sysctl.vm.nr_hugepages=5";
    let host = Host::with(&[("proc/cmdline", line), ("etc/sysctl.d/x.conf", "")]);
    assert_eq!(host.pool(GB).asked, 5);
    let wanted = append("/etc/sysctl.d/hugepages.conf", "vm.nr_hugepages = 537");
    assert_eq!(edit(&host, GB), wanted);
}

#[test]
fn small_nodes_and_requests_by_node() {
    let mut next = booted_with("hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=0:100", {
        guest("6.1")
    });
    let machine = |a, b| NodeMemory {
        nodes: [(0, Some(a)), (1, Some(b))].into(),
    };
    let seen = |next: &NextBoot, machine| -> Vec<_> {
        let all = pools(next, &machine).expect("memory");
        let of_pool = |p: PoolAtBoot| (p.asked, p.pages, p.by_node.into_values().collect());
        all.into_iter()
            .map(of_pool)
            .collect::<Vec<(u64, u64, Vec<u64>)>>()
    };
    assert_eq!(
        seen(&next, machine(128 * GB, 128 * GB)),
        [(100, 100, vec![100]), (8, 8, vec![4, 4])]
    );
    // The larger node gives what the smaller one lacks, and what is asked of a node comes of it.
    assert_eq!(
        seen(&next, machine(6 * GB + 20 * MB2, 2 * GB)),
        [(100, 20, vec![20]), (8, 8, vec![6, 2])]
    );
    assert_eq!(seen(&next, machine(GB, GB))[1], (8, 2, vec![1, 1]));
    // Growing and shrinking go round the nodes.
    let sysctl = Host::with(&[("etc/sysctl.d/a.conf", "vm.nr_hugepages=50\n")]).next();
    next.asked.extend(sysctl.asked);
    assert_eq!(
        seen(&next, machine(128 * GB, 128 * GB))[0],
        (50, 50, vec![50])
    );
}

/// Words that mean something, and some that almost do.
fn word() -> impl Strategy<Value = String> {
    let size = prop::sample::select(vec!["2M", "1G", "3M", "1GB", "0x200000", "", "16E", "64K"]);
    let count = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        (0..9_u32, any::<u16>()).prop_map(|(node, n)| format!("{node}:{n},")),
        Just("0:1,1:2".to_owned()),
        Just(String::new()),
    ];
    prop_oneof![
        count.prop_map(|n| format!("hugepages={n}")),
        size.clone().prop_map(|s| format!("hugepagesz={s}")),
        size.clone()
            .prop_map(|s| format!("default-hugepagesz=\"{s}\"")),
        size.prop_map(|s| format!("hugetlb_cma={s}")),
        Just("hugetlb_cma_only=1".to_owned()),
        ".{0,6}",
    ]
}

proptest! {
    #[test]
    fn any_command_line_gives_pools_that_fit(
        words in prop::collection::vec(word(), 0..9),
        version in prop::sample::select(vec!["5.10", "6.1", "6.15", "7.2"]),
        memory in prop::collection::vec(prop::option::of(any::<u64>()), 0..4),
    ) {
        let next = booted_with(&words.join(" "), guest(version));
        let nodes: BTreeMap<u32, Option<u64>> = (0..).zip(memory).collect();
        let machine = NodeMemory { nodes: nodes.clone() };
        let all = pools(&next, &machine).expect("memory");
        for pool in &all {
            prop_assert!(pool.pages <= pool.asked);
            let of_nodes = pool.by_node.values().fold(0_u64, |s, n| s.saturating_add(*n));
            prop_assert!(pool.by_node.is_empty() || of_nodes == pool.pages);
            prop_assert!(pool.by.iter().all(|a| a.phase == Phase::CommandLine));
        }
        for (node, memory) in nodes {
            let of_pool = |p: &PoolAtBoot| {
                let pages = p.by_node.get(&node).copied().unwrap_or(0);
                pages.saturating_mul(p.page_bytes)
            };
            let used = all.iter().map(of_pool).fold(0_u64, u64::saturating_add);
            prop_assert!(memory.is_none_or(|memory| used <= memory));
        }
    }
}

proptest! {
    // Each case is a tree of files.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_files_give_an_answer(
        command_line in prop::collection::vec(any::<u8>(), 0..80),
        sysctl in prop::collection::vec(any::<u8>(), 0..80),
        tmpfiles in "[wz][+!-]{0,2} \"?/(sys|proc)/.{0,60}",
    ) {
        let host = Host::with(&[("etc/tmpfiles.d/a.conf", &tmpfiles)]);
        fs::write(host.path("proc/cmdline"), command_line).expect("write");
        fs::write(host.path("etc/sysctl.d/a.conf"), sysctl).expect("write");
        let next = host.next();
        prop_assert!(pools(&next, &NodeMemory::default()).is_ok());
    }
}
