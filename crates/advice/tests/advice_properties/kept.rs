//! Machines on which a property once did not hold.

use advice::model::machine::Machine;
use host::server::{setting::SettingSource, unit::OomPolicy};
use proptest::test_runner::TestCaseResult;

use super::{
    machines::{
        Amount, Arch, FilesSpec, LimitSpec, MB, MemoryLimitSpec, NextSpec, OtherPages, OtherSpec,
        SizeSpec, Spec, Strict,
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

fn exact_plus(plus: i64) -> Amount {
    Amount { percent: 100, plus }
}

/// A host with almost no memory in use by other programs, and without a boot configuration.
fn bare(spec: &mut Spec) {
    spec.host.used_percent = 5;
    spec.host.blocks_percent = 0;
    spec.host.swap_gb = 0;
    spec.host.committed_percent = 10;
    spec.server.touched_percent = 0;
    spec.server.processes = 2;
    spec.server.page_tables_mb = 1;
    spec.boot.sysctl = None;
    for pool in &mut spec.pools {
        pool.persistent = exact_plus(0);
    }
}

fn next(spec: &Spec) -> NextSpec {
    spec.server.next
}

/// One line of facts for each machine, and the property.
pub const ROWS: [Row; 55] = [
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
            spec.server.source = SettingSource::CommandLine;
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
    // The nodes of the server are unknown, and only a start shows whether it gets its pages.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![16];
            spec.server.next = NextSpec {
                percent_of_ram: 50,
                plus_kb: 992_360,
                huge_pages: 'f',
                ..next(spec)
            };
            spec.pools[0].persistent = exact_plus(-1);
            spec.others = vec![OtherSpec {
                mb: 1927,
                percent_of_ram: 5,
                size: None,
                has_port: false,
                ..OTHER
            }];
            spec.limits = vec![LimitSpec {
                nth_size: 0,
                faults: None,
                reservations: Some(exact_plus(-1)),
                others: 0,
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 19,
                plus_kb: 401_408,
                huge_pages: 't',
                ..next(spec)
            });
        },
        absent_facts_yield_no_command,
    ),
    // The segment takes less than the page that is one too many.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![32];
            spec.server.next = NextSpec {
                percent_of_ram: 0,
                plus_kb: 719_872,
                huge_pages: 'f',
                ..next(spec)
            };
            spec.pools[1].persistent = exact_plus(24);
            spec.boot.sysctl = Some(exact_plus(24));
            spec.pools[1].others_percent = 7;
            spec.others = vec![OtherSpec {
                pages: OtherPages::Huge(0),
                mb: 573,
                percent_of_ram: 7,
                size: None,
                has_port: false,
                ..OTHER
            }];
        },
        decisions_are_enough,
    ),
    // Pages that a restart releases hide the idle pages of another pool.
    (
        |spec| {
            bare(spec);
            spec.server.next = NextSpec {
                percent_of_ram: 26,
                plus_kb: 1_583_760,
                ..next(spec)
            };
            spec.pools[0].persistent = exact_plus(-1);
            spec.pools[1].persistent = exact_plus(2);
            spec.others = vec![OtherSpec {
                mb: 827,
                percent_of_ram: 25,
                has_port: false,
                ..OTHER
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                size: SizeSpec::Nth(1),
                percent_of_ram: 8,
                plus_kb: 1_971_328,
                ..next(spec)
            });
        },
        more_memory_is_never_worse,
    ),
    // Nearly all of a strict commit limit is reserved for root.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![16];
            spec.host.strict = Some(Strict::Ratio(30));
            spec.host.committed_percent = 100;
            spec.server.next = NextSpec {
                percent_of_ram: 16,
                plus_kb: 1_509_952,
                ..next(spec)
            };
            spec.pools[1].persistent = exact_plus(1);
            spec.pools[1].others_percent = 7;
        },
        no_remedy_has_a_redundant_step,
    ),
    // A container shows less memory than the host has, and no nodes.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4];
            spec.host.shown_gb = Some(1);
            spec.server.next = NextSpec {
                percent_of_ram: 50,
                plus_kb: 204_800,
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            };
            spec.pools[1].persistent = exact_plus(2);
            spec.absent = vec![9];
        },
        no_state_on_the_way_is_critical,
    ),
    // Pending settings are unknown until the setting is changed.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::Arm64k;
            spec.host.nodes_gb = vec![4, 128];
            spec.server.next = NextSpec {
                percent_of_ram: 0,
                plus_kb: 204_800,
                huge_pages: 'o',
                ..next(spec)
            };
            spec.pools[0].persistent = Amount {
                percent: 109,
                plus: 360,
            };
            spec.pools[0].others_percent = 1;
            spec.pools[1].persistent = exact_plus(-1);
            let other = |mb| OtherSpec {
                pages: OtherPages::Huge(0),
                mb,
                size: None,
                has_port: false,
                ..OTHER
            };
            spec.others = vec![other(2767), other(2905)];
            spec.files = FilesSpec::Unknown(true);
        },
        remedies_cure,
    ),
    // Memory that pages of another size hold can be set up as pages of this size at boot.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.server.next = NextSpec {
                percent_of_ram: 0,
                plus_kb: 457_728,
                ..next(spec)
            };
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.others = vec![
                OtherSpec {
                    pages: OtherPages::Huge(0),
                    mb: 945,
                    size: None,
                    has_port: false,
                    ..OTHER
                },
                OtherSpec {
                    mb: 100,
                    has_port: false,
                    ..OTHER
                },
            ];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 55,
                plus_kb: 629_152,
                size: SizeSpec::Nth(1),
                ..next(spec)
            });
        },
        boot_line_is_never_withheld,
    ),
    // Other servers request pages of another size than this one.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![4, 32];
            spec.server.next = NextSpec {
                percent_of_ram: 14,
                plus_kb: 238_640,
                ..next(spec)
            };
            spec.pools[0].persistent = exact_plus(-1);
            spec.others = vec![
                OtherSpec {
                    mb: 1924,
                    percent_of_ram: 26,
                    size: Some(SizeSpec::Nth(0)),
                    has_port: false,
                    ..OTHER
                },
                OtherSpec {
                    mb: 608,
                    size: None,
                    has_port: false,
                    ..OTHER
                },
            ];
            spec.host.thp = ("always", "always");
        },
        numbers_agree,
    ),
    // With strict overcommit, a line that systemd does not read sets more pages than fit.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![16];
            spec.host.strict = Some(Strict::Ratio(80));
            spec.host.committed_percent = 89;
            spec.server.is_on_huge_pages = false;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.boot.file = ("/etc/sysctl.conf", "vm.nr_hugepages = 4000\n");
            spec.boot.has_systemd = true;
        },
        boot_line_is_never_withheld,
    ),
    // Pending settings do not fit into memory, and a cgroup does not let the server use its pages.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.pools[1].reserved = 4;
            spec.limits = vec![LimitSpec {
                nth_size: 0,
                faults: Some(Amount {
                    percent: 0,
                    plus: 0,
                }),
                reservations: None,
                others: 0,
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 38,
                ..next(spec)
            });
        },
        no_remedy_has_a_redundant_step,
    ),
    // A larger segment is pending, and memory is too small for the pages of another server.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.server.next.size = SizeSpec::Nth(0);
            spec.pools[0].persistent = Amount {
                percent: 4,
                plus: 0,
            };
            spec.pools[1].persistent = exact_plus(1);
            spec.others = vec![
                OtherSpec {
                    pages: OtherPages::Huge(0),
                    mb: 2463,
                    size: None,
                    has_port: false,
                    ..OTHER
                },
                OtherSpec {
                    mb: 1833,
                    percent_of_ram: 33,
                    has_port: false,
                    ..OTHER
                },
            ];
            spec.files = FilesSpec::Planned(NextSpec {
                plus_kb: 821_256,
                ..next(spec)
            });
        },
        boot_line_is_never_withheld,
    ),
    // The kernel does not have the page size, and its default size is unknown.
    (
        |spec| {
            bare(spec);
            spec.server.next.plus_kb = 953_952;
            spec.server.next.size = SizeSpec::Bytes(3 * MB);
            spec.absent = vec![2];
        },
        absent_facts_yield_no_command,
    ),
    // PostgreSQL states the present segment in whole MB, one page more than it has.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![32];
            spec.server.next.percent_of_ram = 34;
            spec.server.next.plus_kb = 481_160;
            spec.server.next.size = SizeSpec::Bytes(3 * MB / 2);
        },
        plan_for_present_settings_is_the_plan,
    ),
    // Small pages are missing, although the server asks for huge ones.
    (
        |spec| {
            bare(spec);
            spec.server.is_on_huge_pages = false;
            spec.host.nodes_gb = vec![4];
            spec.host.strict = Some(Strict::Ratio(30));
            spec.host.swap_gb = 8;
            spec.host.committed_percent = 100;
            spec.server.next.percent_of_ram = 52;
            spec.server.next.plus_kb = 1_257_560;
            spec.others = vec![OtherSpec {
                mb: 119,
                percent_of_ram: 42,
                huge_pages: 'f',
                ..OTHER
            }];
        },
        decisions_are_enough,
    ),
    // Less memory is missing at boot than now.
    (
        |spec| {
            bare(spec);
            spec.server.is_on_huge_pages = false;
            spec.host.nodes_gb = vec![8];
            spec.host.used_percent = 20;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.pools[0].persistent = exact_plus(42);
            spec.pools[1].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.others = vec![OtherSpec { mb: 715, ..OTHER }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 72,
                plus_kb: 1_300_480,
                size: SizeSpec::Nth(1),
                ..next(spec)
            });
        },
        decisions_are_enough,
    ),
    // The pool is too small for both servers, and the memory of the host is unknown.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 8, 4];
            spec.host.shown_gb = Some(1);
            spec.server.next.percent_of_ram = 12;
            spec.server.next.plus_kb = 536_576;
            spec.server.bound = vec![0];
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.pools[0].is_on_first_node = true;
            spec.others = vec![OtherSpec {
                mb: 100,
                has_port: false,
                ..OTHER
            }];
        },
        no_line_is_printed_twice,
    ),
    // The next start and the next boot need about the same memory limit.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Small;
            spec.host.nodes_gb = vec![16];
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.memory_limits = vec![MemoryLimitSpec {
                percent_of_ram: 10,
                others_mb: 0,
                files_mb: 0,
                swap_room_mb: None,
                counts_hugetlb: true,
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 63,
                plus_kb: 1_081_344,
                ..next(spec)
            });
        },
        problems_have_different_remedies,
    ),
    // Of two other sizes with enough idle pages, the first one is for another server.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::Arm64k;
            spec.host.nodes_gb = vec![4];
            spec.host.scale = 1 << 20;
            spec.server.is_on_huge_pages = false;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.pools[1].persistent = exact_plus(-1);
            spec.pools[2].persistent = exact_plus(1);
            spec.others = vec![OtherSpec {
                mb: 100,
                percent_of_ram: 1,
                size: Some(SizeSpec::Nth(0)),
                has_port: false,
                ..OTHER
            }];
        },
        idle_pages_of_another_size_come_first,
    ),
    // A pool that grows leaves less than half of RAM available.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Small;
            spec.host.nodes_gb = vec![16];
            spec.host.strict = Some(Strict::Ratio(30));
            spec.host.is_commit_wrong = true;
            spec.server.next = NextSpec {
                percent_of_ram: 0,
                plus_kb: 204_800,
                huge_pages: 'f',
                ..next(spec)
            };
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 50,
                huge_pages: 't',
                ..next(spec)
            });
        },
        wrong_commit_counter_is_no_shortage,
    ),
    // systemd stops the server after a kill, of which the backends are exempt.
    (
        |spec| {
            spec.server.oom = (-1000, -1000);
            spec.server.oom_policy = Some(OomPolicy::Stop);
        },
        oom_remedies_do_not_endanger_the_server,
    ),
    // A setting is changed on the command line.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![16];
            spec.host.used_percent = 50;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 1_202_064;
            spec.server.is_on_huge_pages = false;
            spec.server.touched_percent = 100;
            spec.server.source = SettingSource::CommandLine;
            spec.pools[0].persistent = exact_plus(1);
            spec.pools[1].persistent = exact_plus(-1);
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 34,
                plus_kb: 1_748_424,
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            });
        },
        stopped_server_has_a_way_back,
    ),
    // A limit above the cgroup is left once the pages for the pending settings are there.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.server.next.percent_of_ram = 56;
            spec.server.next.plus_kb = 446_960;
            spec.pools[0].persistent = Amount {
                percent: 57,
                plus: 0,
            };
            spec.others = vec![OtherSpec {
                mb: 1631,
                size: None,
                has_port: false,
                ..OTHER
            }];
            spec.refused = 1;
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 35,
                plus_kb: 688_128,
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            });
        },
        problems_have_different_remedies,
    ),
    // The memory that other programs use is unknown, and assumed to be a part of RAM.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![4];
            spec.server.next.percent_of_ram = 10;
            spec.server.next.plus_kb = 828_832;
            spec.server.is_on_huge_pages = false;
            spec.server.touched_percent = 5;
            spec.others = vec![OtherSpec {
                pages: OtherPages::Huge(0),
                mb: 779,
                percent_of_ram: 35,
                size: None,
                has_port: false,
                ..OTHER
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 50,
                plus_kb: 1_048_584,
                ..next(spec)
            });
            spec.boot.sysctl = Some(exact_plus(-1));
            spec.absent = vec![6];
        },
        decisions_are_enough,
    ),
    // Two cgroups have the same room, and only the larger one is near its limit.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::Arm64k;
            spec.host.nodes_gb = vec![32];
            spec.host.is_small = true;
            spec.server.next.percent_of_ram = 0;
            spec.server.touched_percent = 100;
            let limit = MemoryLimitSpec {
                percent_of_ram: 10,
                others_mb: 0,
                files_mb: 100,
                swap_room_mb: None,
                counts_hugetlb: true,
            };
            let larger = MemoryLimitSpec {
                others_mb: 4000,
                counts_hugetlb: false,
                ..limit
            };
            spec.memory_limits = vec![limit, larger];
        },
        cgroup_near_its_limit_is_reported,
    ),
    // If processes have faulted in less, another plan is possible, after which less is committed.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.host.used_percent = 50;
            spec.host.strict = Some(Strict::PercentOfRam(30));
            spec.host.is_commit_wrong = true;
            spec.server.next.percent_of_ram = 20;
            spec.server.next.plus_kb = 317_440;
            spec.server.next.size = SizeSpec::Bytes(3 * MB);
            spec.server.touched_percent = 5;
            spec.pools[0].persistent = exact_plus(-1);
            spec.pools[0].others_percent = 4;
            spec.pools[0].reserved = 191;
            spec.pools[1].persistent = Amount {
                percent: 200,
                plus: 3,
            };
        },
        figures_that_are_bounds_are_called_so,
    ),
    // The pages of a start from the files are unknown at boot, and those of the server are not.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4];
            let from_files = NextSpec {
                percent_of_ram: 0,
                ..next(spec)
            };
            spec.server.from_files = Some(from_files);
            spec.server.next = NextSpec {
                size: SizeSpec::Nth(1),
                ..from_files
            };
            spec.boot.file = ("/etc/sysctl.d/95-a.conf", "vm.nr_hugep* = 5\n");
        },
        boot_line_is_never_withheld,
    ),
    // A line for another server is unknown, and the one of this server can be lowered.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 32];
            spec.server.next.percent_of_ram = 3;
            spec.pools[1].persistent = exact_plus(-1);
            spec.others = vec![OtherSpec {
                mb: 100,
                size: Some(SizeSpec::Nth(1)),
                ..OTHER
            }];
            spec.boot.sysctl = Some(exact_plus(0));
            spec.boot.word = "hugetlb_cma=2G";
        },
        huge_pages_turned_off_leave_nothing_behind,
    ),
    // The segment is larger than the memory of a container, and more could be missing for the
    // reserve.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::None;
            spec.host.nodes_gb = vec![32];
            spec.host.shown_gb = Some(1);
            spec.server.next.percent_of_ram = 18;
            spec.server.next.plus_kb = 1_809_168;
            spec.server.touched_percent = 100;
            spec.absent = vec![9];
        },
        figures_that_are_bounds_are_called_so,
    ),
    // A pool for another server takes memory that a restart on small pages needs.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 16, 16, 32];
            spec.host.is_small = true;
            spec.server.next.percent_of_ram = 72;
            spec.server.next.plus_kb = 1_811_456;
            spec.pools[0].persistent.percent = 0;
            spec.others = vec![OtherSpec { mb: 275, ..OTHER }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 86,
                plus_kb: 204_800,
                huge_pages: 'f',
                ..next(spec)
            });
        },
        no_state_on_the_way_is_critical,
    ),
    // A pool that the server does not ask for takes memory that a start from the files needs.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![4];
            spec.host.used_percent = 20;
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                huge_pages: 'f',
                ..next(spec)
            });
            spec.pools[1].persistent = exact_plus(-1);
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 2,
                plus_kb: 1_121_984,
                ..next(spec)
            });
        },
        no_step_does_harm,
    ),
    // The files ask for the default size, and the server for one that does not exist.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![16];
            spec.server.from_files = Some(NextSpec {
                percent_of_ram: 0,
                ..next(spec)
            });
            spec.server.next.percent_of_ram = 33;
            spec.server.next.size = SizeSpec::Bytes(3 * MB);
        },
        numbers_agree,
    ),
    // The line of another pool is not for the start from the files.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(next(spec));
            spec.server.next.plus_kb = 220_160;
            spec.others = vec![OtherSpec { mb: 100, ..OTHER }];
        },
        numbers_agree,
    ),
    // Page tables are large, and a plan keeps huge pages off against a pending change.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![64, 64];
            spec.server.next.percent_of_ram = 6;
            spec.server.next.huge_pages = 'f';
            spec.server.touched_percent = 50;
            spec.server.processes = 300;
            spec.server.page_tables_mb = 5000;
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 3,
                huge_pages: 't',
                ..next(spec)
            });
        },
        plan_does_not_undo_its_settings,
    ),
    // The pending settings and the files do not work, each for a reason of its own.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4];
            spec.server.next.percent_of_ram = 0;
            spec.server.is_on_huge_pages = false;
            spec.server.from_files = Some(NextSpec {
                is_sysv: true,
                ..next(spec)
            });
            spec.files = FilesSpec::Planned(NextSpec {
                huge_pages: 'o',
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            });
        },
        plan_for_present_settings_is_the_plan,
    ),
    // After the plan, a start from the files would not fit into its cgroup.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::Arm64k;
            spec.host.nodes_gb = vec![8];
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                huge_pages: 'f',
                ..next(spec)
            });
            spec.pools[1].persistent = exact_plus(-1);
            spec.memory_limits = vec![MemoryLimitSpec {
                percent_of_ram: 10,
                others_mb: 0,
                files_mb: 0,
                swap_room_mb: None,
                counts_hugetlb: false,
            }];
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 2,
                plus_kb: 671_096,
                ..next(spec)
            });
        },
        problems_have_different_remedies,
    ),
    // The kernel has refused pages to a server that needs none.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 4];
            spec.server.next.percent_of_ram = 83;
            spec.server.next.plus_kb = 1_426_432;
            spec.server.next.is_sysv = true;
            spec.refused = 1;
            spec.boot.sysctl = Some(exact_plus(0));
        },
        runbook_is_in_the_order_of_problems,
    ),
    // Steps for a start from the files are in the order of problems.
    (
        |spec| {
            bare(spec);
            spec.host.used_percent = 80;
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                plus_kb: 1_137_672,
                huge_pages: 'f',
                ..next(spec)
            });
            spec.pools[0].persistent = Amount {
                percent: 118,
                plus: 174,
            };
            spec.pools[1].persistent = exact_plus(50);
            spec.pools[1].others_percent = 13;
        },
        runbook_is_in_the_order_of_problems,
    ),
    // A start from the files depends on the memory that the server releases.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 16];
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                percent_of_ram: 80,
                plus_kb: 512_008,
                ..next(spec)
            });
            spec.server.is_on_huge_pages = false;
            spec.server.touched_percent = 5;
            spec.others = vec![OtherSpec {
                mb: 2167,
                size: None,
                ..OTHER
            }];
        },
        status_agrees_with_checks,
    ),
    // A line for another server is unknown, and the one of this server is lowered by hand.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::X86Large;
            spec.host.nodes_gb = vec![4, 128];
            spec.server.next.percent_of_ram = 21;
            spec.server.next.plus_kb = 1_403_624;
            spec.server.next.size = SizeSpec::Nth(0);
            spec.server.touched_percent = 5;
            spec.pools[0].persistent.percent = 41;
            spec.pools[1].persistent = exact_plus(-1);
            spec.others = vec![OtherSpec { mb: 100, ..OTHER }];
            spec.boot.words = vec![(0, exact_plus(0))];
            spec.boot.word = "hugepages=0:100,1:50";
        },
        huge_pages_turned_off_leave_nothing_behind,
    ),
    // The commit limit holds a start from the files only without the pool for the next start.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4];
            spec.host.strict = Some(Strict::Ratio(100));
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                huge_pages: 'f',
                ..next(spec)
            });
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 35,
                plus_kb: 359_224,
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            });
        },
        decisions_are_enough,
    ),
    // Whether there is a commit limit is unknown.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![8];
            spec.host.strict = Some(Strict::Ratio(50));
            spec.host.is_commit_wrong = true;
            spec.server.next.percent_of_ram = 0;
            spec.boot.sysctl = Some(exact_plus(0));
            spec.files = FilesSpec::Planned(NextSpec {
                plus_kb: 206_856,
                huge_pages: 'f',
                ..next(spec)
            });
            spec.absent = vec![18];
        },
        boot_that_is_ok_starts_the_server,
    ),
    // Pages of another size are idle, for which the kernel has refused nothing.
    (
        |spec| {
            bare(spec);
            spec.host.arch = Arch::Arm64k;
            spec.host.nodes_gb = vec![16];
            spec.server.next.percent_of_ram = 0;
            spec.pools[1].persistent = exact_plus(22);
            spec.limits = vec![LimitSpec {
                nth_size: 1,
                faults: None,
                reservations: Some(exact_plus(0)),
                others: 0,
            }];
            spec.refused = 1;
            spec.boot.sysctl = Some(exact_plus(0));
            spec.files = FilesSpec::Planned(NextSpec {
                percent_of_ram: 19,
                plus_kb: 959_448,
                size: SizeSpec::Nth(2),
                ..next(spec)
            });
        },
        refused_pages_need_a_decision,
    ),
    // A line for a start from the files leaves too little for the small pages of the server.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![128, 4];
            spec.host.used_percent = 80;
            spec.host.swap_gb = 60;
            spec.server.next.percent_of_ram = 0;
            spec.server.from_files = Some(NextSpec {
                huge_pages: 'o',
                ..next(spec)
            });
            spec.server.next = NextSpec {
                percent_of_ram: 50,
                huge_pages: 'f',
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            };
            spec.pools[1].persistent = exact_plus(-1);
            spec.others = vec![OtherSpec {
                mb: 100,
                percent_of_ram: 17,
                ..OTHER
            }];
        },
        boot_line_is_never_withheld,
    ),
    // A size that does not exist is corrected in the files, which then ask for one page more.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![16];
            spec.server.next.percent_of_ram = 0;
            spec.server.next.size = SizeSpec::Bytes(16 * MB);
            spec.server.from_files = Some(NextSpec {
                plus_kb: 205_824,
                ..next(spec)
            });
        },
        remedies_cure,
    ),
    // The nodes of a bound server need pages in addition to those that others have reserved.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 64, 4];
            spec.host.first_node_percent = 100;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.server.is_on_huge_pages = false;
            spec.server.touched_percent = 5;
            spec.server.bound = vec![2];
            spec.pools[0].is_on_first_node = true;
            spec.others = vec![
                OtherSpec {
                    mb: 100,
                    percent_of_ram: 26,
                    touched_percent: 100,
                    huge_pages: 'f',
                    size: None,
                    ..OTHER
                },
                OtherSpec {
                    pages: OtherPages::Huge(0),
                    mb: 1810,
                    percent_of_ram: 44,
                    size: None,
                    ..OTHER
                },
            ];
            spec.visibility = 'u';
        },
        status_agrees_with_checks,
    ),
    // A line for a start from the files, by which another server leaves its small pages.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![32];
            spec.server.next = NextSpec {
                percent_of_ram: 0,
                plus_kb: 204_800,
                huge_pages: 'f',
                size: SizeSpec::Bytes(3 * MB),
                ..next(spec)
            };
            spec.server.from_files = Some(NextSpec {
                huge_pages: 'o',
                size: SizeSpec::Default,
                ..next(spec)
            });
            spec.pools[1].persistent = exact_plus(-1);
            spec.others = vec![
                OtherSpec {
                    mb: 1584,
                    percent_of_ram: 41,
                    ..OTHER
                },
                OtherSpec {
                    mb: 787,
                    size: None,
                    ..OTHER
                },
            ];
            spec.visibility = 'h';
        },
        boot_line_is_never_withheld,
    ),
    // The pool and its line are for the files and for another server.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4, 4];
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 204_800;
            spec.server.from_files = Some(NextSpec {
                plus_kb: 205_824,
                ..next(spec)
            });
            spec.pools[0].persistent.percent = 10;
            spec.others = vec![OtherSpec { mb: 1819, ..OTHER }];
        },
        no_line_is_printed_twice,
    ),
    // Memory for the pool is not enough if a start from the files takes small pages in addition.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![64, 128];
            spec.host.first_node_percent = 100;
            spec.server.next = NextSpec {
                percent_of_ram: 20,
                plus_kb: 838_048,
                ..next(spec)
            };
            spec.server.is_on_huge_pages = false;
            spec.server.from_files = Some(NextSpec {
                percent_of_ram: 0,
                plus_kb: 204_800,
                is_sysv: true,
                ..next(spec)
            });
            spec.pools[0].persistent = Amount {
                percent: 0,
                plus: 0,
            };
            spec.pools[0].reserved = 66;
            spec.pools[1].persistent = exact_plus(-1);
            spec.pools[1].reserved = 144;
            spec.others = vec![OtherSpec {
                mb: 2559,
                size: None,
                has_port: false,
                ..OTHER
            }];
            spec.visibility = 'h';
        },
        decisions_are_enough,
    ),
    // A server on small pages asked for pages of the line, and gives up none.
    (
        |spec| {
            bare(spec);
            spec.host.nodes_gb = vec![4];
            spec.host.is_small = true;
            spec.server.next.percent_of_ram = 0;
            spec.server.next.plus_kb = 1_114_240;
            spec.server.is_on_huge_pages = false;
            spec.pools[0].persistent = exact_plus(23);
            spec.visibility = 'h';
            spec.files = FilesSpec::Planned(NextSpec {
                plus_kb: 295_040,
                ..next(spec)
            });
            spec.boot.sysctl = Some(Amount {
                percent: 200,
                plus: 3,
            });
        },
        no_remedy_has_a_redundant_step,
    ),
];
