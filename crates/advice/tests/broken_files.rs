//! Missing files, and files of an unknown format: a captured host with one broken file at a time.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

#[path = "../../host/tests/txtar/mod.rs"]
mod txtar;

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
};

use advice::{answer::verdict, check::Status, model::machine::Machine};
use host::{
    linux::{
        error::{Absence, ReadError},
        hugepages::Pool,
        process::{Process, segment},
        root::Root,
    },
    server::{
        facts::{Facts, Subject},
        state::{HugePages, Server, SharedMemoryType},
    },
};
use tempfile::TempDir;

/// The captured host whose cgroup allows a server to fault in 100 MB of a segment of 1074 MB.
struct Bomb {
    tree: TempDir,
    postmaster: u32,
    address: u64,
}

impl Bomb {
    fn new() -> Self {
        let tree = txtar::unpack("../host/tests/hosts/linux-6.18-cgroup-v2-bomb.txtar");
        let text = fs::read_to_string(tree.path().join("host.toml")).expect("host.toml");
        let toml: toml::Table = text.parse().expect("host.toml is well formed");
        let address = toml["address"]
            .as_str()
            .and_then(|text| text.strip_prefix("0x"));
        Self {
            tree,
            postmaster: toml["postmaster"]
                .as_integer()
                .and_then(|pid| u32::try_from(pid).ok())
                .expect("a process"),
            address: address
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .expect("an address"),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.tree
            .path()
            .join(file.replace("PM", &self.postmaster.to_string()))
    }

    fn facts(&self) -> Result<Facts, ReadError> {
        let server = Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 1074 << 20,
        };
        let subject = Subject {
            postmaster: Some(self.postmaster),
            address: self.address,
        };
        let mut facts = Facts::read(&Root::at(self.tree.path()), server, &subject)?;
        facts.state.base_page_bytes = 4096;
        Ok(facts)
    }

    #[track_caller]
    fn status(&self) -> Status {
        let facts = self.facts().expect("absent sources are no errors");
        verdict(&Machine::new(facts)).status
    }
}

#[test]
fn complete_host_is_critical() {
    assert_eq!(Bomb::new().status(), Status::Critical);
}

#[test]
fn status_is_unknown_if_a_file_is_missing() {
    for path in [
        "proc/PM/maps",
        "proc/PM/smaps",
        "proc/PM/cgroup",
        "proc/PM",
        "proc/self/mountinfo",
        "proc",
        "sys/kernel/mm/hugepages",
        "sys/fs/cgroup/unified",
        "sys",
    ] {
        let bomb = Bomb::new();
        let path = bomb.path(path);
        if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        }
        .expect("rm");
        if path.ends_with("smaps") {
            fs::remove_file(path.with_file_name("numa_maps")).expect("rm");
        }
        assert_eq!(bomb.status(), Status::Unknown, "without {}", path.display());
    }
}

#[test]
fn numa_maps_replaces_missing_smaps() {
    let bomb = Bomb::new();
    fs::remove_file(bomb.path("proc/PM/smaps")).expect("rm");
    assert_eq!(bomb.status(), Status::Critical);
}

#[test]
fn status_is_unknown_if_pools_are_hidden() {
    let bomb = Bomb::new();
    let pools = bomb.path("sys/kernel/mm/hugepages");
    fs::remove_dir_all(&pools).expect("rm");
    fs::create_dir(&pools).expect("mkdir");
    assert_eq!(bomb.status(), Status::Unknown);
}

#[test]
fn status_is_unknown_if_cgroups_are_hidden() {
    let bomb = Bomb::new();
    let groups = bomb.path("sys/fs/cgroup/unified");
    fs::remove_dir_all(&groups).expect("rm");
    fs::create_dir(&groups).expect("mkdir");
    assert_eq!(bomb.status(), Status::Unknown);
}

/// On Linux 6.1, shortly after boot, the shim of a server had the device and inode of its main
/// segment. Here it is in the gap below the segment, and directly after it.
#[test]
fn shim_with_the_inode_of_the_segment_is_another_object() {
    for shim in ["7f3c5c8f0000-7f3c5c8f1000", "7f3c5be00000-7f3c5be01000"] {
        let tree = tempfile::tempdir().expect("a directory");
        let line = |range: &str, offset: &str, name: &str| {
            format!("{range} rw-s {offset} 00:01 1026                       {name} (deleted)\n")
        };
        let lower = line("7f3c53200000-7f3c58200000", "00000000", "/dev/zero");
        let upper = line("7f3c58200000-7f3c5be00000", "05000000", "/dev/zero");
        let maps = lower + &upper + &line(shim, "00000000", "/SYSV0052e2c1");
        fs::create_dir_all(tree.path().join("proc/10")).expect("mkdir");
        fs::write(tree.path().join("proc/10/maps"), maps).expect("write");
        let process = Process::open(&Root::at(tree.path()), 10).expect("a process");
        for address in [0x7f3c_5320_0000, 0x7f3c_5bdf_ffff] {
            let segment = segment::read(&process, address).expect("a segment");
            assert_eq!((segment.bytes, segment.mappings), (140 << 20, 2), "{shim}");
        }
        let shim = u64::from_str_radix(&shim[..12], 16).expect("an address");
        let shim = segment::read(&process, shim).expect("a segment");
        assert_eq!((shim.bytes, shim.mappings), (4096, 1));
    }
}

#[test]
fn limits_are_empty_if_nothing_can_limit_the_process() {
    let limits = |bomb: &Bomb| bomb.facts().expect("no failure").state.hugetlb;
    let unlimited = |bomb: &Bomb| limits(bomb).is_ok_and(|hugetlb| hugetlb.groups.is_empty());
    let write = |bomb: &Bomb, file: &str, text: &str| {
        fs::write(bomb.path(file), text).expect("write");
    };

    // On a kernel without cgroups, no process has this file. A process that has ended has no files.
    let bomb = Bomb::new();
    fs::remove_file(bomb.path("proc/PM/cgroup")).expect("rm");
    assert!(limits(&bomb).is_err());
    write(&bomb, "proc/PM/stat", "");
    assert!(unlimited(&bomb));

    // No hierarchy that could limit huge pages is mounted.
    for groups in ["", "4:memory:/\n1:name=systemd:/init.scope\n"] {
        write(&bomb, "proc/PM/cgroup", groups);
        assert!(unlimited(&bomb));
    }

    // The process is in the root cgroup, whose mount is not visible; in a child cgroup; or in the
    // root cgroup of a container.
    let bomb = Bomb::new();
    fs::remove_file(bomb.path("proc/self/mountinfo")).expect("rm");
    fs::create_dir_all(bomb.path("proc/self/ns")).expect("mkdir");
    let namespace = bomb.path("proc/self/ns/cgroup");
    for (number, group, is_unlimited) in [
        (4_026_531_835_u32, "/", true),
        (4_026_531_835, "/pg", false),
        (4_026_532_447, "/", false),
    ] {
        let _ = fs::remove_file(&namespace);
        symlink(format!("cgroup:[{number}]"), &namespace).expect("symlink");
        for line in ["0::", "0::/\n9:hugetlb:"] {
            write(&bomb, "proc/PM/cgroup", &format!("{line}{group}\n"));
            assert_eq!(unlimited(&bomb), is_unlimited, "{number} {line}{group}");
            assert_eq!(limits(&bomb).is_err(), !is_unlimited);
        }
    }
}

#[test]
fn malformed_file_makes_facts_absent_with_file_and_line() {
    let group = "sys/fs/cgroup/unified/hugeinfo-bomb/";
    let cases: [(&str, &[u8], usize); 10] = [
        (
            "proc/meminfo",
            b"MemTotal: 1 kB\nHugepagesize: many kB\n",
            2,
        ),
        ("proc/meminfo", b"MemTotal: 1 kB\nHugepagesize: 2048\n", 2),
        (
            "proc/PM/maps",
            b"1000-2000 rw-p 00000000 00:00 0\nnonsense\n",
            2,
        ),
        ("proc/PM/maps", b"\xff\xfe\x00", 1),
        ("proc/PM/cgroup", b"nonsense\n", 1),
        ("proc/PM/cgroup", b"\xff::/\n", 1),
        ("proc/self/mountinfo", b"1 2 - cgroup2 cgroup2 rw\n", 1),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            b"\n",
            1,
        ),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
            b"-1\n",
            1,
        ),
        (&format!("{group}hugetlb.2MB.max"), b"much\n", 1),
    ];
    for (file, bytes, at) in cases {
        let bomb = Bomb::new();
        let broken = bomb.path(file);
        fs::write(&broken, bytes).expect("write");
        assert_ne!(bomb.status(), Status::Ok, "{file}");
        let facts = bomb.facts().expect("facts");
        if file.ends_with("maps") {
            // The segment is then searched in this process, which has none in this tree.
            assert!(facts.state.segment.is_err(), "{file}");
            continue;
        }
        let why = absent(&facts, &broken);
        assert!(
            matches!(why, Absence::Malformed { line, .. } if line == at),
            "{file}: {why:?}"
        );
    }
}

#[test]
fn counter_below_zero_makes_only_itself_unknown() {
    let below_zero = |file: &str| {
        let bomb = Bomb::new();
        let broken = bomb.path(file);
        fs::write(&broken, "18446744073709551615\n").expect("write");
        let facts = bomb.facts().expect("facts");
        (bomb, facts, broken)
    };
    for counter in ["nr", "free", "resv", "surplus", "nr_overcommit"] {
        let file = format!("sys/kernel/mm/hugepages/hugepages-2048kB/{counter}_hugepages");
        let (bomb, facts, broken) = below_zero(&file);
        if counter == "nr" {
            assert_eq!(absent(&facts, &broken), Absence::BelowZero, "{file}");
        } else {
            let pools = facts.state.pools.as_ref().expect("pools");
            let bad = pools.iter().filter_map(Pool::bad_counter);
            let bad: Vec<_> = bad.map(|absent| absent.path).collect();
            assert_eq!(bad, [Path::new("/").join(&file)], "{file}");
        }
        assert!(
            facts.state.segment.is_ok() && facts.state.hugetlb.is_ok(),
            "{file}"
        );
        let verdict = verdict(&Machine::new(facts));
        // The limit of the cgroup is still too low.
        assert_eq!(bomb.status(), verdict.status);
        assert_ne!(verdict.status, Status::Ok, "{file}");
    }
    for usage in ["current", "rsvd.current"] {
        let file = format!("sys/fs/cgroup/unified/hugeinfo-bomb/hugetlb.2MB.{usage}");
        let (bomb, facts, _) = below_zero(&file);
        let hugetlb = facts.state.hugetlb.expect("limits");
        let limits = &hugetlb.groups[1].limits[0];
        assert_eq!(limits.fault_limit, Some(100 << 20), "{file}");
        assert_eq!(limits.fault_use.is_none(), usage == "current", "{file}");
        assert_eq!(limits.reservation_use.is_none(), usage != "current");
        assert_eq!(bomb.status(), Status::Critical, "{file}");
    }
}

#[test]
fn malformed_page_size_makes_status_unknown() {
    for (file, from, to) in [
        (
            "proc/PM/smaps",
            "KernelPageSize:     2048 kB",
            "KernelPageSize:     huge kB",
        ),
        (
            "proc/PM/numa_maps",
            "kernelpagesize_kB=2048",
            "kernelpagesize_kB=huge",
        ),
    ] {
        let bomb = Bomb::new();
        if file.ends_with("numa_maps") {
            fs::remove_file(bomb.path("proc/PM/smaps")).expect("rm");
        }
        let path = bomb.path(file);
        let text = fs::read_to_string(&path).expect("read");
        assert!(text.contains(from), "{file}");
        fs::write(&path, text.replace(from, to)).expect("write");
        assert!(
            bomb.facts().expect("facts").state.segment.is_err(),
            "{file}"
        );
        assert_eq!(bomb.status(), Status::Unknown, "{file}");
    }
}

#[test]
fn directory_in_place_of_a_file_makes_facts_absent() {
    let bomb = Bomb::new();
    let meminfo = bomb.path("proc/meminfo");
    fs::remove_file(&meminfo).expect("rm");
    fs::create_dir(&meminfo).expect("mkdir");
    let why = absent(&bomb.facts().expect("facts"), &meminfo);
    let is_directory = rustix::io::Errno::ISDIR.raw_os_error();
    assert_eq!(why, Absence::Failed(is_directory));
}

/// Anyone who can create cgroups chooses their names.
#[test]
fn cgroups_with_unusual_names_are_read() {
    for name in [
        &b"hugeinfo-bomb/x';touch PWNED;echo '"[..],
        b"hugeinfo-bomb/\xff",
        b"hugeinfo-bomb/a:b \x1b",
    ] {
        let bomb = Bomb::new();
        let groups = bomb.path("sys/fs/cgroup/unified");
        let renamed = groups.join(OsStr::from_bytes(name));
        fs::rename(groups.join("hugeinfo-bomb/server"), renamed).expect("mv");
        let lines = [b"0::/", name, b"\n"].concat();
        fs::write(bomb.path("proc/PM/cgroup"), lines).expect("write");
        assert_eq!(bomb.status(), Status::Critical, "{name:?}");
    }
}

/// Returns the reason why the fact from this file is absent.
#[track_caller]
fn absent(facts: &Facts, file: &Path) -> Absence {
    let absent = [
        facts.state.meminfo.as_ref().err(),
        facts.state.segment.as_ref().err(),
        facts.state.pools.as_ref().err(),
        facts.state.hugetlb.as_ref().err(),
    ];
    let absent = absent.into_iter().flatten().find(|a| a.path == file);
    absent.expect("an absent fact").why
}
