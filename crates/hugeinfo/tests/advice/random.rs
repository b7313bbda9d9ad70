//! Random machines: a seed makes the same one everywhere.

use super::draft::{Draft, GB, KB, Kept, Level, MB, Neighbour, Next, On, Strict, Waiting};

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.roll() % most.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).expect("small")]
    }

    /// About that many: exactly, one more or less, none, some part, twice.
    fn about(&mut self, n: u64) -> u64 {
        match self.below(9) {
            0..=2 => n,
            3 => n + 1,
            4 => n.saturating_sub(1),
            5 => 0,
            6 => self.below(n + 1),
            7 => n * 2,
            _ => n + self.below(n + 100),
        }
    }
}

/// A machine, and what is planned for it.
pub fn machine(seed: u64) -> (Draft, Option<Next>) {
    let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    for _ in 0..50 {
        let draft = draft(&mut dice);
        if draft.machine().is_some() {
            let plan = dice.one_in(3).then(|| next(&mut dice, &draft));
            return (draft, plan);
        }
    }
    (Draft::default(), None)
}

fn next(dice: &mut Dice, draft: &Draft) -> Next {
    let sizes: Vec<u64> = draft.pools.iter().map(|kept| kept.page_mb * KB).collect();
    Next {
        need_kb: match dice.below(4) {
            0 => draft.need_kb,
            1 => draft.need_kb / 2 / 8 * 8 + 8,
            2 => draft.need_kb * 2,
            _ => (dice.below(draft.need_kb * 3) / 8 + 1) * 8,
        },
        huge_pages: dice.of(&['t', 't', 't', 'o', 'o', 'n']),
        is_sysv: dice.one_in(12),
        size_kb: if dice.one_in(4) { dice.of(&sizes) } else { 0 },
    }
}

fn draft(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    let count = dice.of(&[1, 1, 1, 2, 2, 3, 4]);
    draft.nodes_gb = (0..count)
        .map(|_| dice.of(&[4, 8, 16, 16, 32, 64, 128]))
        .collect();
    if count > 1 && dice.one_in(3) {
        let list: Vec<u32> = (0..count).filter(|_| dice.one_in(2)).collect();
        draft.allowed = Some(list).filter(|list| !list.is_empty());
    }
    let is_large = dice.one_in(8);
    let sizes: &[u64] = if is_large {
        draft.base_kb = 64;
        draft.default_mb = 512;
        &[2, 512, 16_384]
    } else {
        if dice.one_in(8) {
            draft.default_mb = 1024;
        }
        dice.of(&[&[2, 1024][..], &[2, 1024], &[2]])
    };
    if !sizes.contains(&draft.default_mb) {
        draft.default_mb = 2;
    }
    let ram_gb: u64 = draft.nodes_gb.iter().sum();
    // A server takes a quarter of RAM, or any other share.
    let need = match dice.below(6) {
        0 => 200 * MB + dice.below(2 * GB),
        1 => ram_gb * GB / 4,
        2 => ram_gb * GB / 2,
        3 => ram_gb * GB / 100 * (75 + dice.below(30)),
        _ => ram_gb * GB / 100 * (1 + dice.below(50)),
    };
    draft.need_kb = need / (8 * KB) * 8;
    let exact = dice.one_in(6);
    if exact {
        draft.need_kb = draft.need_kb / (2 * KB) * 2 * KB;
    }
    draft.huge_pages = dice.of(&['t', 't', 't', 'o', 'n']);
    draft.is_sysv = dice.one_in(12);
    if dice.one_in(5) {
        draft.size_kb = match dice.below(8) {
            0 => 1536,
            1 => 3 * KB,
            _ => dice.of(sizes) * KB,
        };
    }
    let asked = if draft.size_kb == 0 {
        draft.default_mb
    } else {
        draft.size_kb / KB
    };
    let asks = draft.huge_pages != 'n' && !draft.is_sysv && sizes.contains(&asked);
    draft.on = if asks && (draft.huge_pages == 'o' || !dice.one_in(3)) {
        On::Huge(asked)
    } else {
        if draft.huge_pages == 'o' {
            draft.huge_pages = 't';
        }
        On::Small
    };
    draft.touched_percent = dice.of(&[0, 5, 50, 100]);
    if dice.one_in(4) {
        for _ in 0..1 + dice.below(3) {
            let mb = 100 + dice.below(ram_gb * 200);
            let neighbour = match dice.below(6) {
                0 => Neighbour::Hidden,
                1 => Neighbour::SystemV(mb),
                2 | 3 => Neighbour::Huge(mb),
                _ => Neighbour::Small(mb),
            };
            draft.neighbours.push(neighbour);
        }
    }
    draft.is_hidden = dice.one_in(12);
    let waiting = dice.below(10);
    if waiting < 4 {
        draft.waiting = match waiting {
            0 if draft.touched_percent < 50 => Waiting::Refused,
            0 => Waiting::TooLow,
            1 => Waiting::Unseen,
            _ => Waiting::Planned(next(dice, &draft)),
        };
    }
    let need_kb = match &draft.waiting {
        Waiting::Planned(next) if dice.one_in(2) => next.need_kb,
        _ => draft.need_kb,
    };
    draft.pools = sizes
        .iter()
        .map(|&page_mb| {
            let is_asked = page_mb == asked;
            let required = need_kb.div_ceil(page_mb * KB);
            let others = if dice.one_in(5) {
                dice.below(ram_gb * KB / page_mb / 8 + 2)
            } else {
                0
            };
            let promised = if dice.one_in(8) {
                dice.below(required / 8 + 2)
            } else {
                0
            };
            let of_neighbours: u64 = if page_mb == draft.default_mb {
                draft
                    .neighbours
                    .iter()
                    .map(|n| match n {
                        Neighbour::Huge(mb) | Neighbour::Small(mb) => mb.div_ceil(page_mb),
                        Neighbour::SystemV(_) | Neighbour::Hidden => 0,
                    })
                    .sum()
            } else {
                0
            };
            let wanted = others + promised + of_neighbours + if is_asked { required } else { 0 };
            Kept {
                page_mb,
                persistent: if is_asked || dice.one_in(4) {
                    dice.about(wanted)
                } else {
                    others + promised
                },
                others,
                promised,
                overcommit: if dice.one_in(8) && page_mb <= draft.default_mb {
                    dice.about(required)
                } else {
                    0
                },
                first: (count > 1 && dice.one_in(4))
                    .then(|| usize::try_from(dice.below(u64::from(count))).expect("small")),
            }
        })
        .collect();
    draft.used_percent = dice.of(&[5, 20, 50, 80, 95, 99]);
    if dice.one_in(15) {
        draft.shown_gb = Some(dice.of(&[1, 2, 4, 8]));
    }
    draft.swap_gb = dice.of(&[0, 0, 2, 8]);
    if dice.one_in(5) {
        draft.strict = Some(if dice.one_in(3) {
            Strict::Megabytes(ram_gb * dice.of(&[300, 600, 900]))
        } else {
            Strict::Ratio(dice.of(&[30, 50, 80, 95, 100]))
        });
    }
    draft.committed_percent = dice.of(&[10, 40, 80, 89, 95, 100]);
    draft.whole_percent = dice.of(&[0, 1, 30, 90, 100]);
    let segment = need_kb.div_ceil(asked.max(1) * KB) * asked;
    for _ in 0..dice.of(&[0, 0, 0, 1, 2, 3]) {
        let page_mb = if dice.one_in(5) {
            dice.of(sizes)
        } else {
            asked
        };
        let limit = |dice: &mut Dice| dice.one_in(2).then(|| dice.about(segment));
        let level = Level {
            page_mb,
            fault_mb: limit(dice),
            reservation_mb: limit(dice),
            others: if dice.one_in(3) { dice.below(50) } else { 0 },
        };
        if sizes.contains(&page_mb) {
            draft.levels.push(level);
        }
    }
    draft.is_container = dice.one_in(8);
    draft.is_v1 = dice.one_in(4);
    draft.is_old = dice.one_in(5);
    let required = need_kb.div_ceil(draft.default_mb * KB);
    draft.in_sysctl = dice.one_in(2).then(|| dice.about(required));
    draft.on_line = dice.one_in(5).then(|| {
        let mb = dice.of(sizes);
        (mb, dice.about(need_kb.div_ceil(mb * KB)))
    });
    draft.in_tmpfiles = dice.one_in(6).then(|| {
        let mb = dice.of(sizes);
        (mb, dice.about(need_kb.div_ceil(mb * KB)))
    });
    draft.is_unread = dice.one_in(12);
    draft.has_systemd = !dice.one_in(4);
    draft.thp = (
        u8::try_from(dice.below(3)).expect("small"),
        u8::try_from(dice.below(6)).expect("small"),
    );
    if dice.one_in(3) {
        draft.thp_sizes = vec![
            (
                64,
                u8::try_from(dice.below(4)).expect("small"),
                u8::try_from(dice.below(7)).expect("small"),
            ),
            (
                2048,
                u8::try_from(dice.below(4)).expect("small"),
                u8::try_from(dice.below(7)).expect("small"),
            ),
        ];
    }
    draft.is_on_command_line = dice.one_in(8);
    draft.allows_alter_system = !dice.one_in(8);
    draft.processes = usize::try_from(1 + dice.below(3)).expect("small");
    draft.page_tables_mb = dice.of(&[1, 6, 6, 200, 5000]);
    draft.swapped_mb = dice.of(&[0, 0, 0, 300]);
    draft.oom = dice.of(&[(-900, 0), (-900, 0), (0, 0), (-900, -900), (-1000, 0)]);
    draft.uses_io_uring = dice.one_in(10);
    if dice.one_in(8) {
        draft.in_limit_mb = dice.of(&[0, 100, ram_gb * 100]);
        draft.memory_limit = Some((ram_gb * KB * dice.of(&[25, 50, 90]) / 100, dice.one_in(2)));
    }
    if count > 1 && dice.one_in(5) {
        draft.segment_on_node = Some(0);
    }
    draft.crowded = (count > 1 && dice.one_in(3)).then(|| {
        let node = usize::try_from(dice.below(u64::from(count))).expect("small");
        (node, dice.of(&[0, 5, 30, 60]))
    });
    draft.turned = dice.below(8);
    if count > 1 && dice.one_in(3) {
        draft.extra = dice.below(need_kb / 2048 + 2);
    }
    draft
}
