//! `PROCMAP_QUERY` and the text files (`maps` and `smaps`) have the same facts about memory of this
//! process.

#![allow(clippy::expect_used)]

use std::{fs, os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc};

use host::linux::{
    error::ReadError,
    lookup::Guard,
    process::{
        Process,
        segment::{self, Segment},
    },
    root::Root,
};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};

/// Shared anonymous memory, like PostgreSQL's main segment.
struct Shared {
    start: *mut std::ffi::c_void,
    bytes: usize,
}

impl Shared {
    fn new(bytes: usize, extra: MapFlags) -> rustix::io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED | extra,
            )?
        };
        Ok(Self { start, bytes })
    }

    fn address(&self, offset: usize) -> u64 {
        (self.start.addr() + offset) as u64
    }

    fn piece(&self, offset: usize) -> *mut std::ffi::c_void {
        self.start.wrapping_byte_add(offset)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: only this struct owns the mapping, and nothing points into it.
        unsafe { munmap(self.start, self.bytes).expect("munmap") };
    }
}

fn this() -> Process {
    Process::this(&Root::system()).expect("this process")
}

/// Returns the segment, and compares both ways if the kernel has `PROCMAP_QUERY`.
#[track_caller]
fn both_ways(address: u64) -> Segment {
    let slow = segment::by_text(&this(), address).expect("maps");
    match segment::by_query(&this(), address).expect("maps") {
        Some(fast) => assert_eq!(fast, slow),
        None => skip("this kernel has no PROCMAP_QUERY (Linux 6.11)"),
    }
    slow
}

fn skip(reason: &str) {
    assert!(
        std::env::var_os("HUGEINFO_TEST_REQUIRE_ALL").is_none(),
        "skipped: {reason}"
    );
    eprintln!("skipped: {reason}");
}

const MB: usize = 1 << 20;

#[test]
fn segment_with_one_mapping_is_read() {
    let shared = Shared::new(8 * MB, MapFlags::empty()).expect("mmap");
    let segment = both_ways(shared.address(5 * MB));
    assert_eq!(segment.bytes, 8 << 20);
    assert_eq!(segment.page_bytes, Some(rustix::param::page_size() as u64));
    assert_eq!(segment.mappings, 1);
}

#[test]
fn mappings_of_a_split_segment_are_added() {
    let shared = Shared::new(8 * MB, MapFlags::empty()).expect("mmap");
    for offset in [0, 3 * MB, 6 * MB] {
        // SAFETY: this process owns the pages, and does not access them meanwhile.
        unsafe { mprotect(shared.piece(offset), MB, MprotectFlags::READ).expect("mprotect") };
    }
    // SAFETY: advice on memory of ours.
    unsafe { madvise(shared.piece(7 * MB), MB / 2, Advice::LinuxDontFork).expect("madvise") };
    for offset in [0, 2 * MB, 3 * MB, 8 * MB - 1] {
        let segment = both_ways(shared.address(offset));
        assert_eq!(segment.bytes, 8 << 20);
        assert_eq!(segment.mappings, 7);
    }
}

#[test]
fn adjacent_segments_are_not_added() {
    let first = Shared::new(2 * MB, MapFlags::empty()).expect("mmap");
    let second = Shared::new(4 * MB, MapFlags::empty()).expect("mmap");
    assert_eq!(both_ways(first.address(0)).bytes, 2 << 20);
    assert_eq!(both_ways(second.address(0)).bytes, 4 << 20);
}

#[test]
fn segment_on_huge_pages_has_their_size() {
    let Ok(shared) = Shared::new(8 * MB, MapFlags::HUGETLB | MapFlags::HUGE_2MB) else {
        return skip("4 free huge pages of 2 MB are not available");
    };
    // SAFETY: this process owns the pages, and does not access them meanwhile.
    unsafe { mprotect(shared.piece(2 * MB), 2 * MB, MprotectFlags::READ).expect("mprotect") };
    let segment = both_ways(shared.address(MB));
    assert_eq!(
        segment,
        Segment {
            bytes: 8 << 20,
            page_bytes: Some(2 << 20),
            mappings: 3
        }
    );
}

#[test]
fn segment_is_absent_if_nothing_is_mapped() {
    for way in [segment::by_text(&this(), 0), segment::read(&this(), 0)] {
        assert!(matches!(way, Err(ReadError::Absent(_))));
    }
}

#[test]
fn segment_is_absent_if_the_process_has_ended() {
    let mut child = std::process::Command::new("true").spawn().expect("true");
    let process = Process::open(&Root::system(), child.id()).expect("a child");
    child.wait().expect("wait");
    let gone = segment::read(&process, 4096);
    assert!(matches!(gone, Err(ReadError::Absent(_))));
}

#[test]
fn object_is_identified_by_its_mapping() {
    let (ours, others) = (
        Shared::new(8192, MapFlags::empty()).expect("mmap"),
        Shared::new(8192, MapFlags::empty()).expect("mmap"),
    );
    let this = Process::open(&Root::system(), std::process::id()).expect("this process");
    // After exec, the child does not map our memory.
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep");
    let stranger = Process::open(&Root::system(), child.id()).expect("a child");
    for way in [segment::object, segment::object_by_text] {
        let found = way(&this, ours.address(4096)).expect("maps");
        assert!(found.holds(ours.address(0)));
        assert!(found.is_same_object(&way(&this, ours.address(0)).expect("maps")));
        assert!(!found.is_same_object(&way(&this, others.address(0)).expect("maps")));
        for (process, address) in [(&this, 0), (&stranger, ours.address(0))] {
            let nothing = way(process, address);
            assert!(matches!(nothing, Err(ReadError::Absent(_))));
        }
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    for way in [segment::object, segment::object_by_text] {
        assert!(matches!(
            way(&stranger, ours.address(0)),
            Err(ReadError::Absent(_))
        ));
    }
}

#[test]
fn long_names_do_not_fill_the_memory_of_root() {
    // The kernel writes four characters for each line feed.
    let directory = tempfile::tempdir().expect("a directory");
    let mut path = PathBuf::from(directory.path());
    let place = |path: &PathBuf| path.as_os_str().as_bytes().len();
    while place(&path) < 3800 {
        path.push("\n".repeat(200));
    }
    fs::create_dir_all(&path).expect("created");
    let file = fs::File::create_new(path.join("file")).expect("created");
    let mappings = (0..1300).map(|offset| {
        let (flags, protection) = (MapFlags::SHARED, ProtFlags::empty());
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        unsafe {
            mmap(
                std::ptr::null_mut(),
                4096,
                protection,
                flags,
                &file,
                offset * 8192,
            )
        }
    });
    let mappings: Vec<_> = mappings.map(|start| start.expect("mapped")).collect();
    let guard = Arc::new(Guard::new().expect("mounts"));
    let read = |root: &Root| {
        let this = Process::this(root).expect("this process");
        let length = |text: &[u8]| Ok(text.len());
        this.parse_whole("maps", &mut Vec::new(), "", length)
    };
    let (all, guarded) = (read(&Root::system()), read(&Root::system().guarded(guard)));
    for start in mappings {
        // SAFETY: nothing points into it.
        unsafe { munmap(start, 4096).expect("munmap") };
    }
    assert!(all.is_ok_and(|bytes| bytes > 16 << 20));
    assert!(matches!(guarded, Err(ReadError::TooLarge { .. })));
}
