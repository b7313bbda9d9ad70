//! Each check as a table of facts, in a file of its name: how a machine differs from a healthy one,
//! what the check then says, and what it tells to type, to the letter.
//!
//! The machines are trees of kernel files: those of a captured one (Linux 6.18), changed in what
//! matters, in the form that the kernel's documentation gives it.

#![allow(clippy::expect_used)]

#[path = "../scene/mod.rs"]
mod scene;

use std::fmt::Write;

use hugeinfo::{
    advice::check::{Check, Status},
    linux::error::Absent,
    server::surroundings::{Files, Surroundings},
};
use scene::*;

/// One row of a table.
struct Case {
    about: &'static str,
    change: fn(&mut Scene),
    status: Status,
    words: &'static [&'static str],
    remedy: Option<&'static str>,
}

impl Case {
    /// What is not as it should be, said.
    fn complaint(&self, check: &Check) -> Option<String> {
        let missing = self
            .words
            .iter()
            .find(|&&words| !check.finding.contains(words));
        if check.status == self.status
            && missing.is_none()
            && check.remedy.as_deref() == self.remedy
        {
            return None;
        }
        Some(format!(
            "{}\n  {:?}: {}\n  => {:?}\n  and not {:?}: {:?}\n  => {:?}\n",
            self.about,
            check.status,
            check.finding,
            check.remedy,
            self.status,
            missing.unwrap_or(&""),
            self.remedy
        ))
    }
}

#[track_caller]
fn go_through(name: &str, cases: &[Case]) {
    let mut complaints = String::new();
    for case in cases {
        let mut scene = Scene::healthy();
        (case.change)(&mut scene);
        let complaint = case.complaint(&scene.check(name));
        complaints.push_str(&complaint.unwrap_or_default());
    }
    assert!(complaints.is_empty(), "{name}\n{complaints}");
}

/// `"what it is about" |m| { how the machine differs } Status "in the finding"… => "remedy";`
macro_rules! table {
    ($check:ident; $(
        $about:literal |$m:pat_param| $change:block $status:ident $($words:literal)* $(=> $remedy:literal)?;
    )*) => {
        #[test]
        fn table() {
            let cases = [$($crate::Case {
                about: $about,
                change: |$m: &mut $crate::scene::Scene| $change,
                status: hugeinfo::advice::check::Status::$status,
                words: &[$($words),*],
                remedy: [$($remedy,)?].first().copied(),
            }),*];
            $crate::go_through(stringify!($check), &cases);
        }
    };
}

mod cgroup_fault_limit;
mod huge_page_size;
mod huge_pages;
mod hugetlb_shm_group;
mod major_faults;
mod memlock;
mod memory_left;
mod neighbours;
mod numa_pool;
mod numa_segment;
mod oom_protection;
mod overcommit;
mod page_tables;
mod pool_filled;
mod pool_growth;
mod pool_size;
mod reboot;
mod restart;
mod restart_with_files;
mod swap;
mod thp_private;
mod thp_shared;

#[test]
fn a_quiet_host_has_nothing_to_complain_of() {
    for check in Scene::healthy().checks() {
        assert_eq!(check.status, Status::Ok, "{check:?}");
        assert_eq!(check.remedy, None, "{check:?}");
        assert!(check.evidence.is_object(), "{check:?}");
        assert!(
            !check.finding.is_empty() && !check.finding.ends_with('.'),
            "{check:?}"
        );
    }
}

#[test]
fn names_are_unique_and_each_has_a_table() {
    let mut names: Vec<_> = Scene::healthy()
        .checks()
        .iter()
        .map(|check| check.name.to_owned())
        .collect();
    names.sort_unstable();
    let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/checks");
    let files = std::fs::read_dir(tables).expect("the tables");
    let mut files: Vec<_> = files
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "main")
        .collect();
    files.sort_unstable();
    assert_eq!(names, files);
}

#[test]
fn without_its_sources_a_check_is_unknown() {
    fn gone<T>() -> Result<T, Absent> {
        Err(missing("/gone"))
    }
    let mut scene = Scene::healthy();
    for (path, _) in CAPTURED {
        scene.file(path, None);
    }
    scene.around = Surroundings {
        asked_at_boot: gone(),
        nodes: gone(),
        processes: Vec::new(),
        oom_score_adj: gone(),
        locked_memory: gone(),
        neighbours: gone(),
        files: Files::Unseen("nobody may".to_owned()),
        ..scene.around
    };
    scene.facts.meminfo = gone();
    scene.facts.pools = gone();
    scene.facts.segment = gone();
    scene.facts.hugetlb = gone();
    let mut complaints = String::new();
    for check in scene.checks() {
        let status = match check.name {
            // Without nodes, the kernel was built without NUMA.
            "numa_segment" => Status::Ok,
            _ => Status::Unknown,
        };
        if check.status != status || check.remedy.is_some() {
            let _ = writeln!(complaints, "{check:?}");
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}
