//! The memory of a server: nothing is counted twice, and unknown parts stay unknown.

#![allow(clippy::expect_used)]

use host::{
    linux::process::{segment::Segment, status::Memory},
    server::{
        footprint::{Footprint, Shared},
        state::{HugePages, Server, SharedMemoryType, State},
    },
};

const MB: u64 = 1 << 20;

fn state(shared_memory_type: SharedMemoryType, page_bytes: Option<u64>) -> State {
    let server = Server {
        huge_pages: HugePages::Try,
        shared_memory_type,
        huge_page_size_bytes: None,
        shared_memory_bytes: 1000 * MB,
    };
    State {
        base_page_bytes: 4096,
        segment: Ok(Segment {
            bytes: 1000 * MB,
            page_bytes,
            mappings: 1,
        }),
        ..State::unread(server)
    }
}

/// A process with these sizes in MB: private, shared, page tables, swap.
fn process([anon, shmem, tables, swap]: [u64; 4]) -> Memory {
    Memory {
        virtual_size: Some(2000 * MB),
        rss_anon: Some(anon * MB),
        rss_shmem: Some(shmem * MB),
        page_tables: Some(tables * MB),
        swap: Some(swap * MB),
        ..Memory::default()
    }
}

const SHARED: Shared = Shared {
    dynamic: Some(10 * MB),
    system_v: Some((MB, 0)),
};

fn of(shared_memory_type: SharedMemoryType, page_bytes: u64, shared: &Shared) -> Footprint {
    let processes = [
        process([5, 700, 3, 1]),
        process([6, 400, 2, 0]),
        Memory::default(),
    ];
    Footprint::new(
        &state(shared_memory_type, Some(page_bytes)),
        &processes,
        shared,
    )
}

#[test]
fn segment_on_small_pages_counts_as_far_as_one_process_has_faulted_it_in() {
    let seen = of(SharedMemoryType::Mmap, 4096, &SHARED);
    assert_eq!(seen.processes, 2, "one has ended");
    assert_eq!(seen.private, Some(11 * MB));
    assert_eq!(seen.segment, Some(1000 * MB));
    assert_eq!(seen.segment_backed, Some((700 - 11) * MB));
    assert_eq!(seen.other_shared, Some(11 * MB));
    assert_eq!(seen.page_tables, Some(5 * MB));
    assert_eq!(seen.swap, Some(MB));
    assert_eq!(seen.total(), Some((11 + 689 + 11 + 5 + 1) * MB));
    assert_eq!(seen.total_when_full(), Some((11 + 1000 + 11 + 5 + 1) * MB));
    let most = process([1, 3000, 1, 0]);
    let seen = Footprint::new(&state(SharedMemoryType::Mmap, Some(4096)), &[most], &SHARED);
    assert_eq!(
        seen.segment_backed,
        Some(1000 * MB),
        "never more than the segment"
    );
}

#[test]
fn segment_on_huge_pages_counts_as_a_whole() {
    let seen = of(SharedMemoryType::Mmap, 2 * MB, &SHARED);
    assert_eq!(seen.segment_backed, Some(1000 * MB));
    assert_eq!(seen.total(), Some((11 + 1000 + 11 + 5 + 1) * MB));
    assert_eq!(seen.total(), seen.total_when_full());
}

#[test]
fn system_v_segment_counts_as_the_kernel_reports_it() {
    let counted = Shared {
        system_v: Some((800 * MB, 50 * MB)),
        ..SHARED
    };
    let seen = of(SharedMemoryType::Sysv, 4096, &counted);
    assert_eq!(seen.segment_backed, Some(800 * MB));
    assert_eq!(seen.other_shared, Some(10 * MB));
    assert_eq!(seen.swap, Some(51 * MB));
    assert_eq!(seen.total(), Some((11 + 800 + 10 + 5 + 51) * MB));
    assert_eq!(seen.total_when_full(), Some((11 + 1000 + 10 + 5 + 1) * MB));
    let unknown = Shared {
        system_v: None,
        ..SHARED
    };
    let seen = of(SharedMemoryType::Sysv, 4096, &unknown);
    assert_eq!(seen.segment_backed, Some((700 - 10) * MB));
}

#[test]
fn sum_is_unknown_if_a_part_is() {
    let seen = of(SharedMemoryType::Mmap, 4096, &Shared::default());
    assert_eq!((seen.other_shared, seen.total()), (None, None));
    let old = Memory {
        rss_anon: None,
        ..process([1, 1, 1, 1])
    };
    let processes = [process([1, 1, 1, 1]), old];
    let state = state(SharedMemoryType::Mmap, None);
    let seen = Footprint::new(&state, &processes, &SHARED);
    assert_eq!((seen.private, seen.segment_backed), (None, None));
    assert_eq!(seen.page_tables, Some(2 * MB));
    assert_eq!((seen.total(), seen.total_when_full()), (None, None));
}
