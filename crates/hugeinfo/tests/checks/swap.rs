use crate::scene::{GB, MB, Scene, processes};
use hugeinfo::server::surroundings::ProcessFigures;

/// Each of ten processes has so much, of which the host has lost so much.
fn swapped(m: &mut Scene, each: u64, of_host: u64) {
    let swap = Some(each);
    m.around.processes = processes(
        9,
        ProcessFigures {
            swap,
            ..ProcessFigures::default()
        },
    );
    m.around.processes[0].swap = Some(0);
    m.around.host.usage.as_mut().expect("meminfo").swap_free = Some(8 * GB - of_host);
}

table! { swap;
    "nothing" |_| {} Ok "0 bytes of private memory";
    "much" |m| { swapped(m, 20 * MB, 300 * MB) }
        Warning "180 MB of private memory" "major faults"
        => "find out what takes the memory (hugeinfo_footprint, hugeinfo_host); lower work_mem or shared_buffers, or add memory; sysctl -w vm.swappiness=1 keeps the kernel from swapping early";
    "little" |m| { swapped(m, MB, 300 * MB) } Ok "9 MB";
    "what the postmaster has swapped out counts once, not again for each fork"
        |m| { swapped(m, 20 * MB, 300 * MB); m.around.processes[0].swap = Some(20 * MB) } Ok "20 MB";
    "never more than the host has" |m| { swapped(m, 20 * MB, 30 * MB) } Ok "30 MB";
    "a kernel that does not tell" |m| { m.around.processes[0].swap = None; m.around.processes.truncate(1) }
        Unknown "for no process";
}
