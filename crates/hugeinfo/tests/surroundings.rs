//! Files that are missing or of an unknown form: a captured host, broken in one place at a time.

#![allow(clippy::expect_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use hugeinfo::{
    advice::{check::Status, checks::verdict},
    linux::{error::ReadError, root::Root},
    server::facts::{Facts, HugePages, Server, SharedMemoryType, Subject},
};
use tempfile::TempDir;

/// The captured host whose control group lets 100 MB of a segment of 1074 MB be touched.
struct Bomb {
    tree: TempDir,
    postmaster: u32,
    address: u64,
}

impl Bomb {
    fn new() -> Self {
        let host =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/linux-6.18-cgroup-v2-bomb");
        let tree = tempfile::tempdir().expect("a directory");
        copy(&host, tree.path());
        let text = fs::read_to_string(host.join("host.toml")).expect("host.toml");
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
        facts.base_page_bytes = 4096;
        Ok(facts)
    }

    #[track_caller]
    fn status(&self) -> Status {
        verdict(&self.facts().expect("absent sources are no errors")).status
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("mkdir");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).expect("read")).expect("write");
        }
    }
}

#[test]
fn whole() {
    assert_eq!(Bomb::new().status(), Status::Critical);
}

#[test]
fn what_is_missing_is_unknown_never_ok() {
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
fn numa_maps_stands_in_for_smaps() {
    let bomb = Bomb::new();
    fs::remove_file(bomb.path("proc/PM/smaps")).expect("rm");
    assert_eq!(bomb.status(), Status::Critical);
}

#[test]
fn a_hidden_directory_of_pools_is_unknown() {
    let bomb = Bomb::new();
    let pools = bomb.path("sys/kernel/mm/hugepages");
    fs::remove_dir_all(&pools).expect("rm");
    fs::create_dir(&pools).expect("mkdir");
    assert_eq!(bomb.status(), Status::Unknown);
}

#[test]
fn a_hidden_tree_of_groups_is_unknown() {
    let bomb = Bomb::new();
    let groups = bomb.path("sys/fs/cgroup/unified");
    fs::remove_dir_all(&groups).expect("rm");
    fs::create_dir(&groups).expect("mkdir");
    assert_eq!(bomb.status(), Status::Unknown);
}

#[test]
fn a_file_of_an_unknown_form_is_an_error_with_file_and_line() {
    let group = "sys/fs/cgroup/unified/hugeinfo-bomb/";
    let cases: [(&str, &[u8], usize); 12] = [
        (
            "proc/meminfo",
            b"MemTotal: 1 kB\nHugepagesize: many kB\n",
            2,
        ),
        ("proc/meminfo", b"MemTotal: 1 kB\nHugepagesize: 2048\n", 2),
        ("proc/meminfo", b"MemTotal: 99999999999999999999 kB\n", 1),
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
            b"",
            1,
        ),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
            b"-1\n",
            1,
        ),
        (&format!("{group}hugetlb.2MB.max"), b"much\n", 1),
        (&format!("{group}hugetlb.2MB.rsvd.current"), b"1 2\n", 1),
    ];
    for (file, bytes, at) in cases {
        let bomb = Bomb::new();
        let broken = bomb.path(file);
        fs::write(&broken, bytes).expect("write");
        match bomb.facts() {
            Err(ReadError::Malformed { path, line, .. }) => assert_eq!((path, line), (broken, at)),
            other => panic!("{file}: {other:?}"),
        }
    }
}

#[test]
fn a_page_size_of_an_unknown_form_is_an_error() {
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
        let error = bomb.facts().expect_err("no page size");
        assert!(matches!(error, ReadError::Malformed { .. }), "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_an_error() {
    let bomb = Bomb::new();
    let meminfo = bomb.path("proc/meminfo");
    fs::remove_file(&meminfo).expect("rm");
    fs::create_dir(&meminfo).expect("mkdir");
    let error = bomb.facts().expect_err("a directory");
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
}
