//! Machines on which a property did not hold once.

use hugeinfo::model::machine::Machine;
use proptest::test_runner::TestCaseResult;

use super::{
    machines::{
        Amount, Arch, FilesSpec, LimitSpec, MB, MemoryLimitSpec, NextSpec, OtherPages, OtherSpec,
        SizeSpec, Spec,
    },
    properties::*,
};

type Row = (fn(&mut Spec), fn(&Spec, &Machine) -> TestCaseResult);

const OTHER: OtherSpec = OtherSpec {
    pages: OtherPages::Small,
    mb: 2000,
    percent_of_ram: 0,
    touched_percent: 0,
    huge_pages: 't',
    size: Some(SizeSpec::Default),
    has_port: true,
    has_rss: true,
};

fn next(spec: &Spec) -> NextSpec {
    spec.server.next
}

/// One line of facts for each machine, and the property.
pub const ROWS: [Row; 6] = [
    // All pages are surplus pages on nodes of different size: one write leaves them in place.
    (
        |spec| {
            spec.host.nodes_gb = vec![16, 4];
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
        },
        remedies_cure,
    ),
    // Pages in use by others cannot be moved from the first node.
    (
        |spec| {
            spec.host.nodes_gb = vec![4, 16];
            spec.server.is_on_huge_pages = false;
            spec.server.next.percent_of_ram = 1;
            spec.pools[0].others_percent = 3;
            spec.pools[0].is_on_first_node = true;
            spec.files = FilesSpec::Planned(NextSpec {
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            });
        },
        findings_that_stay_have_a_decision,
    ),
    // The setting can be changed on the command line only.
    (
        |spec| {
            spec.host.arch = Arch::None;
            spec.server.is_set_on_command_line = true;
            spec.files = FilesSpec::Planned(NextSpec {
                huge_pages: 'o',
                ..next(spec)
            });
        },
        server_that_would_not_start_gets_help,
    ),
    // Other servers have yet to fault in more than there is.
    (
        |spec| {
            spec.host.nodes_gb = vec![8];
            spec.server.next.is_sysv = true;
            spec.server.next.size = SizeSpec::Nth(1);
            spec.others = vec![OTHER, OTHER];
        },
        decisions_are_enough,
    ),
    // A memory limit counts huge pages: a larger pool ends the server at its next start.
    (
        |spec| {
            spec.server.next.percent_of_ram = 15;
            spec.server.is_on_huge_pages = false;
            spec.memory_limits = vec![MemoryLimitSpec {
                percent_of_ram: 10,
                others_mb: 0,
                files_mb: 0,
                swap_room_mb: None,
                counts_hugetlb: true,
            }];
        },
        no_state_on_the_way_is_critical,
    ),
    // A limit on reservations keeps a start on small pages, which a larger pool leaves no room.
    (
        |spec| {
            spec.host.nodes_gb = vec![16];
            spec.server.next.percent_of_ram = 10;
            spec.pools[0].others_percent = 20;
            spec.limits = vec![LimitSpec {
                nth_size: 0,
                faults: None,
                reservations: Some(Amount {
                    percent: 100,
                    plus: -1,
                }),
                others: 0,
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 45,
                huge_pages: 'f',
                ..next(spec)
            });
        },
        no_state_on_the_way_is_critical,
    ),
];
