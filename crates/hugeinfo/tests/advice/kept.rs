//! Machines that broke a rule once, each by what was wrong with the advice for it.

use super::draft::{Draft, Kept, Level, Neighbour, Next, On, Strict, Waiting};

fn pool(page_mb: u64, persistent: u64, others: u64) -> Kept {
    Kept {
        page_mb,
        persistent,
        others,
        promised: 0,
        overcommit: 0,
        first: None,
    }
}

fn planned(need_kb: u64, huge_pages: char) -> Next {
    Next {
        need_kb,
        huge_pages,
        is_sysv: false,
        size_kb: 0,
    }
}

pub fn all() -> Vec<(&'static str, Draft, Option<Next>)> {
    let usual = Draft::default;
    vec![
        ("a healthy server", usual(), None),
        (
            "a decision was dropped from the runbook of a plan",
            usual(),
            Some(planned(77_386_576, 'o')),
        ),
        (
            "ALTER SYSTEM on a server that was stopped before",
            Draft {
                pools: vec![
                    Kept {
                        overcommit: 28_510,
                        ..pool(2, 28_508, 0)
                    },
                    Kept {
                        promised: 3,
                        ..pool(1024, 3, 0)
                    },
                ],
                ..usual()
            },
            Some(Next {
                size_kb: 1 << 20,
                ..planned(29_192_360, 't')
            }),
        ),
        (
            "huge pages count in the memory limit",
            Draft {
                need_kb: 28_521_264,
                on: On::Small,
                memory_limit: Some((17_408, true)),
                ..usual()
            },
            None,
        ),
        (
            "two numbers for one pool while a smaller server waits",
            Draft {
                need_kb: 4_194_304,
                waiting: Waiting::Planned(planned(2_097_160, 't')),
                ..usual()
            },
            None,
        ),
        (
            "a pool on nodes that the server may not use",
            Draft {
                nodes_gb: vec![16, 16, 16, 16],
                allowed: Some(vec![1]),
                on: On::Small,
                ..usual()
            },
            None,
        ),
        (
            "idle pages of another size left neighbours out",
            Draft {
                nodes_gb: vec![16, 4, 128],
                need_kb: 74_489_856,
                pools: vec![pool(2, 0, 0), pool(1024, 52, 7)],
                neighbours: vec![Neighbour::Hidden, Neighbour::Small(13_828)],
                ..usual()
            },
            None,
        ),
        (
            "a group before Linux 5.7 forgot what others have",
            Draft {
                nodes_gb: vec![64, 32],
                need_kb: 1_655_512,
                pools: vec![pool(2, 3255, 2446)],
                levels: vec![Level {
                    page_mb: 2,
                    fault_mb: Some(1618),
                    reservation_mb: None,
                    others: 25,
                }],
                is_old: true,
                segment_on_node: Some(0),
                ..usual()
            },
            None,
        ),
        (
            "surplus that a stop frees was missing from CommitLimit",
            Draft {
                base_kb: 64,
                default_mb: 512,
                on: On::Huge(512),
                pools: vec![pool(2, 0, 0), pool(512, 0, 0), pool(16_384, 0, 0)],
                strict: Some(Strict::Ratio(100)),
                committed_percent: 80,
                in_sysctl: None,
                ..usual()
            },
            Some(Next {
                size_kb: 16_777_216,
                ..planned(1_426_048, 'o')
            }),
        ),
        (
            "how_to_set took pages of a node from servers that nobody sees",
            Draft {
                nodes_gb: vec![32, 32],
                allowed: Some(vec![0]),
                need_kb: 33_554_432,
                on: On::Small,
                pools: vec![Kept {
                    first: Some(1),
                    ..pool(2, 17_995, 0)
                }],
                used_percent: 5,
                neighbours: vec![Neighbour::Huge(3221), Neighbour::Hidden],
                ..usual()
            },
            None,
        ),
        (
            "numa_pool did the same with servers that are hidden",
            Draft {
                nodes_gb: vec![32, 32],
                on: On::Small,
                pools: vec![Kept {
                    first: Some(1),
                    ..pool(2, 237, 0)
                }],
                is_hidden: true,
                ..usual()
            },
            None,
        ),
        (
            "pool_size took what others were promised on a node",
            Draft {
                nodes_gb: vec![32, 32, 4, 8],
                pools: vec![Kept {
                    promised: 624,
                    ..pool(2, 7240, 0)
                }],
                ..usual()
            },
            None,
        ),
        (
            "the server was down while the limits were raised",
            Draft {
                nodes_gb: vec![16],
                need_kb: 8_220_672,
                on: On::Small,
                pools: vec![pool(2, 6274, 0), pool(1024, 0, 0)],
                swap_gb: 0,
                strict: Some(Strict::Ratio(80)),
                neighbours: vec![
                    Neighbour::SystemV(938),
                    Neighbour::Small(2212),
                    Neighbour::Huge(2309),
                ],
                levels: vec![Level {
                    page_mb: 2,
                    fault_mb: Some(8028),
                    reservation_mb: Some(8029),
                    others: 14,
                }],
                ..usual()
            },
            None,
        ),
        (
            "and while a pool became smaller that it needs no part of",
            Draft {
                nodes_gb: vec![128],
                default_mb: 1024,
                need_kb: 30_870_072,
                on: On::Small,
                pools: vec![
                    Kept {
                        promised: 5309,
                        ..pool(2, 54_509, 5339)
                    },
                    pool(1024, 17, 17),
                ],
                waiting: Waiting::Planned(planned(89_825_344, 't')),
                ..usual()
            },
            Some(planned(30_870_072, 't')),
        ),
        (
            "the runbook took a node's idle pages from servers that nobody sees",
            Draft {
                nodes_gb: vec![128, 128],
                need_kb: 34_895_872,
                on: On::Small,
                pools: vec![Kept {
                    first: Some(0),
                    ..pool(2, 17_039, 0)
                }],
                strict: Some(Strict::Ratio(30)),
                committed_percent: 89,
                neighbours: vec![Neighbour::Hidden],
                ..usual()
            },
            None,
        ),
    ]
}
