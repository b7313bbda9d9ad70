//! Processes of a server, in small directory trees in place of `/proc`.

#![allow(clippy::expect_used)]

use std::fs;

use host::linux::{
    error::ReadError,
    pages::base_page_bytes,
    process::{Process, children, oom_score, segment, smaps, stat, status},
    root::Root,
};
use tempfile::TempDir;

/// A tree with processes with these PIDs and parents.
fn tree(processes: &[(u32, u32)]) -> (TempDir, Root) {
    let tree = tempfile::tempdir().expect("a directory");
    for (pid, parent) in processes {
        let directory = tree.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&directory).expect("mkdir");
        let line = format!(
            "{pid} (post) gres) S {parent} 1 1 0 -1 0 {pid}0 2 {pid} 4 5 6 7 8 20 0 1 0 {pid}00 1\n"
        );
        fs::write(directory.join("stat"), line).expect("write");
    }
    let root = Root::at(tree.path());
    (tree, root)
}

fn write(tree: &TempDir, file: &str, text: &str) {
    let path = tree.path().join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    fs::write(path, text).expect("write");
}

#[test]
fn children_are_found_in_the_kernels_list() {
    let (tree, root) = tree(&[(10, 1), (11, 10), (12, 10)]);
    write(&tree, "proc/10/task/10/children", "12 11 ");
    assert_eq!(
        children::pids(&root, 10, [], || {}).expect("pids"),
        [10, 11, 12]
    );
    // The caller knows a child that the list missed, and one that is in both.
    assert_eq!(
        children::pids(&root, 10, [13, 11], || {}).expect("pids"),
        [10, 11, 12, 13]
    );
    write(&tree, "proc/10/task/10/children", "");
    assert_eq!(children::pids(&root, 10, [], || {}).expect("pids"), [10]);
    // A word that is not a PID.
    write(&tree, "proc/10/task/10/children", "12 x");
    assert_eq!(
        children::pids(&root, 10, [], || {}).expect("pids"),
        [10, 12]
    );
}

#[test]
fn children_are_found_by_their_parent_without_a_list() {
    let (tree, root) = tree(&[(10, 1), (11, 10), (12, 1), (13, 11), (14, 10)]);
    write(&tree, "proc/meminfo", "");
    fs::create_dir_all(tree.path().join("proc/15")).expect("one that has just ended");
    assert_eq!(
        children::pids(&root, 10, [], || {}).expect("pids"),
        [10, 11, 14]
    );
}

#[test]
fn only_the_postmaster_and_its_children_are_members() {
    let (_tree, root) = tree(&[(10, 1), (11, 10), (12, 1), (13, 11)]);
    let mut buffer = Vec::new();
    let mut is_member = |pid| {
        children::member(&root, 10, pid, &mut buffer)
            .expect("no failure")
            .is_some()
    };
    assert!(is_member(10));
    assert!(is_member(11));
    assert!(!is_member(12), "a child of another process");
    assert!(!is_member(13), "a grandchild");
    assert!(!is_member(1));
    assert!(!is_member(99), "no such process");
}

#[test]
fn pids_of_another_namespace_are_not_ours() {
    let own = std::process::id();
    let (tree, root) = tree(&[(10, 1), (own, 10)]);
    let is_ours = |parent| children::is_ours(&root, parent).expect("no failure");
    let stat_of_own =
        fs::read_to_string(tree.path().join(format!("proc/{own}/stat"))).expect("stat");
    write(&tree, "proc/self/stat", &stat_of_own);
    assert!(is_ours(10));
    assert!(is_ours(own));
    assert!(!is_ours(1));
    // There, this process has another PID, and our PIDs belong to other processes.
    let elsewhere = "4711 (postgres) S 4700 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 1\n";
    write(&tree, "proc/self/stat", elsewhere);
    assert!(!is_ours(10));
    assert!(!is_ours(own));
}

#[test]
fn file_of_any_length_is_read_completely() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    // Lengths around the size of the buffer, which grows from file to file.
    let lengths = (4000..4200)
        .chain(8100..8300)
        .chain([100, 20_000, 1_000_000]);
    for ending in ["\n", ""] {
        let last = format!("VmRSS:\t    7 kB{ending}");
        let mut grown = Vec::new();
        for length in lengths.clone() {
            // A line feed at every position at which a read can end.
            let text = "\n".repeat(length - last.len()) + &last;
            write(&tree, "proc/11/status", &text);
            for buffer in [&mut grown, &mut Vec::new()] {
                let memory = status::read_memory(&process, buffer).expect("memory");
                assert_eq!(memory.rss, Some(7 << 10), "{length}");
                assert_eq!(*buffer, text.as_bytes());
            }
        }
    }
}

#[test]
fn zombie_has_no_memory() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    let mut buffer = Vec::new();
    let faults = stat::read(&process, &mut buffer).expect("stat");
    assert_eq!(
        (faults.minor_faults, faults.major_faults, faults.start_ticks),
        (Some(110), Some(11), 1100)
    );

    write(
        &tree,
        "proc/11/status",
        "Name:\tpostgres\nState:\tZ (zombie)\n",
    );
    assert_eq!(
        status::read_memory(&process, &mut buffer).expect("status"),
        status::Memory::default()
    );
    write(&tree, "proc/11/oom_score_adj", "-1000\n");
    assert_eq!(
        oom_score::score_adj(&process, &mut buffer).expect("a number"),
        -1000
    );
    write(&tree, "proc/11/oom_score", "");
    let absent = oom_score::score(&process, &mut buffer).expect_err("nothing");
    assert!(matches!(absent, ReadError::Absent(_)), "{absent}");
    write(&tree, "proc/11/stat", "");
    let absent = stat::read(&process, &mut buffer).expect_err("nothing");
    assert!(matches!(absent, ReadError::Absent(_)), "{absent}");
    write(&tree, "proc/11/smaps_rollup", "");
    assert_eq!(
        smaps::total(&process, || ()).expect("empty"),
        smaps::Figures::default()
    );
}

const SMAPS: &str = "\
55d0-55d8 r-xp 00000000 fe:00 12 /bin/postgres
Size:                 32 kB
KernelPageSize:        4 kB
Rss:                  20 kB
Pss:                   5 kB
Private_Clean:         0 kB
Private_Dirty:         4 kB
Shared_Hugetlb:        0 kB
VmFlags: rd ex mr
7f00-7f40 rw-s 00000000 00:0f 42 /anon_hugepage (deleted)
Size:               2048 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
Pss:                   0 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
Shared_Hugetlb:     2048 kB
VmFlags: rd wr sh ht
";

const ROLLUP: &str = "\
55d0-7f40 ---p 00000000 00:00 0 [rollup]
Rss:                  20 kB
Pss:                   5 kB
Pss_Anon:              4 kB
Private_Clean:         0 kB
Private_Dirty:         4 kB
Shared_Hugetlb:     2048 kB
";

#[test]
fn total_is_from_smaps_rollup() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    write(&tree, "proc/11/smaps", SMAPS);
    let absent = smaps::total(&process, || ()).expect_err("no such file");
    assert!(matches!(absent, ReadError::Absent(_)), "{absent}");
    write(&tree, "proc/11/smaps_rollup", ROLLUP);
    let total = smaps::total(&process, || ()).expect("smaps_rollup");
    assert_eq!((total.rss, total.pss), (Some(20 << 10), Some(5 << 10)));
    assert_eq!(
        (total.uss(), total.pss_anon),
        (Some(4 << 10), Some(4 << 10))
    );
    assert_eq!(total.shared_hugetlb, Some(2 << 20));
    assert_eq!(total.swap, None, "this kernel has no such line");
}

fn all_of_smaps(process: &Process) -> Result<Vec<smaps::Entry>, ReadError> {
    smaps::read(process, || ())?.collect()
}

#[test]
fn mappings_are_from_maps_without_smaps() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    let maps: String = SMAPS
        .lines()
        .filter(|line| line.contains('-'))
        .map(|line| format!("{line}\n"))
        .collect();
    write(&tree, "proc/11/maps", &maps);
    let without = all_of_smaps(&process).expect("maps");
    write(&tree, "proc/11/smaps", SMAPS);
    let with = all_of_smaps(&process).expect("smaps");

    assert_eq!(without.len(), 2);
    for (bare, full) in without.iter().zip(&with) {
        assert_eq!(bare.mapping, full.mapping);
        assert_eq!(bare.figures, smaps::Figures::default());
    }
    assert_eq!(with[1].figures.page_size, Some(2 << 20));
}

/// The kernel walks page tables for each entry of `smaps`, which takes long for a large segment.
#[test]
fn small_pages_are_recognized_by_name_without_smaps() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    for (permissions, name, page_bytes) in [
        ("rw-s", "/dev/zero (deleted)", Some(base_page_bytes())),
        ("rw-s", "/anon_hugepage (deleted)", None),
        ("rw-s", "/SYSV0052e2c1 (deleted)", Some(base_page_bytes())),
        ("rw-p", "/dev/zero (deleted)", None),
        ("rw-s", "/dev/zero", None),
    ] {
        let maps = format!(
            "1000-2000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n\
             200000-400000 {permissions} 00000000 00:01 9 {name}\n\
             400000-600000 {permissions} 00200000 00:01 9 {name}\n"
        );
        write(&tree, "proc/11/maps", &maps);
        let read = segment::read(&process, 0x40_0000).expect("maps");
        assert_eq!(read.page_bytes, page_bytes, "{permissions} {name}");
        assert_eq!((read.bytes, read.mappings), (4 << 20, 2));
    }
}

#[test]
fn caller_can_stop_between_mappings() {
    let (tree, root) = tree(&[(11, 10)]);
    write(&tree, "proc/11/smaps", SMAPS);
    let process = Process::open(&root, 11).expect("a process");
    let mut checks = 0;
    let entries = smaps::read(&process, || checks += 1).expect("smaps");
    assert_eq!(entries.count(), 2);
    assert_eq!(checks, 2);
}

#[test]
fn invalid_line_of_smaps_has_no_value() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    for pss in ["five", "18446744073709551612 kB"] {
        let text = SMAPS.replace("Pss:                   5 kB", &format!("Pss: {pss}"));
        assert_ne!(text, SMAPS);
        write(&tree, "proc/11/smaps", &text);
        let entries = all_of_smaps(&process).expect("smaps");
        let pss: Vec<_> = entries.iter().map(|entry| entry.figures.pss).collect();
        assert_eq!(pss, [None, Some(0)]);
        assert_eq!(entries[0].figures.rss, Some(20 << 10));
    }
}

#[test]
fn invalid_mapping_of_smaps_is_skipped_with_its_values() {
    let (tree, root) = tree(&[(11, 10)]);
    let process = Process::open(&root, 11).expect("a process");
    let all = || all_of_smaps(&process).expect("smaps");
    write(&tree, "proc/11/smaps", SMAPS);
    let whole = all();
    for (broken, left) in [("55d0-55d8", &whole[1..]), ("7f00-7f40", &whole[..1])] {
        write(&tree, "proc/11/smaps", &SMAPS.replace(broken, "nonsense"));
        assert_eq!(all(), left, "{broken}");
    }
}

#[test]
fn programs_and_directories_are_compared_by_inode_not_name() {
    let (tree, root) = tree(&[(10, 1), (11, 10), (12, 10), (13, 10)]);
    for (file, names) in [
        ("postgres", ["one", "other"]),
        ("perl", ["third", "fourth"]),
    ] {
        write(&tree, file, file);
        for name in names {
            fs::hard_link(tree.path().join(file), tree.path().join(name)).expect("link");
        }
    }
    for (pid, program) in [(10, "one"), (11, "other"), (12, "third")] {
        let link = |name, to: &str| {
            let from = tree.path().join(format!("proc/{pid}/{name}"));
            std::os::unix::fs::symlink(tree.path().join(to), from).expect("symlink");
        };
        link("exe", program);
        link("cwd", if pid == 12 { "proc/10" } else { "proc" });
    }
    let open = |pid| Process::open(&root, pid).expect("a process");
    let same = |pid| {
        let (parent, child) = (open(10), open(pid));
        (
            parent.program().expect("exe") == child.program().expect("exe"),
            parent.working_directory().expect("cwd") == child.working_directory().expect("cwd"),
        )
    };
    assert_eq!(same(11), (true, true));
    assert_eq!(same(12), (false, false));
    for nothing in [open(13).program(), open(13).working_directory()] {
        assert!(matches!(nothing, Err(ReadError::Absent(_))));
    }
}
