//! A host of which only the RAM and the huge page sizes are known.

use host::{
    linux::{hugepages::Pool, meminfo::Meminfo, process::segment::Segment},
    server::{
        facts::Facts,
        state::{NextSettings, Server, State},
    },
};

use crate::model::machine::Machine;

/// The machine with empty pools of these sizes, on which that server is to start for the first
/// time. Without a default, the size of a start that names none is unknown.
pub fn machine(
    next: Server,
    base_page_bytes: u64,
    ram_bytes: Option<u64>,
    default_page_bytes: Option<u64>,
    page_sizes_bytes: &[u64],
) -> Machine {
    let mut sizes = page_sizes_bytes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let state = State {
        next: NextSettings {
            server: Some(next.clone()),
            ..NextSettings::default()
        },
        base_page_bytes,
        segment: Ok(Segment {
            bytes: 0,
            page_bytes: Some(base_page_bytes),
            mappings: 0,
        }),
        meminfo: Ok(Meminfo {
            total_bytes: ram_bytes,
            default_huge_page_bytes: default_page_bytes,
        }),
        pools: Ok(sizes.into_iter().map(Pool::empty).collect()),
        ..State::unread(next)
    };
    Machine::new(Facts::unread(state))
}
