use crate::scene::{Scene, processes};
use hugeinfo::server::surroundings::ProcessFigures;

fn each(m: &mut Scene, major_faults: u64) {
    m.around.processes = processes(
        9,
        ProcessFigures {
            major_faults,
            ..ProcessFigures::default()
        },
    );
}

table! { major_faults;
    "none" |_| {} Ok "0 major faults";
    "many" |m| { each(m, 100_000) }
        Warning "1000000 major faults" "86400 s"
        => "look at the rate now: SELECT * FROM hugeinfo_fault_rates(); then free memory, as for swap";
    "few" |m| { each(m, 11) } Ok "110 major faults";
    "a server that has just started"
        |m| { each(m, 100_000); m.around.processes.iter_mut().for_each(|process| process.age_seconds = Some(10)) } Ok;
}
