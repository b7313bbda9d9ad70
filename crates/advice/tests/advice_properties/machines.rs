//! Random machines with consistent counters, like those of one kernel.

use host::server::{
    setting::{FileLine, SettingSource},
    unit::OomPolicy,
};
use proptest::{
    collection::vec,
    option::{self, weighted},
    prelude::*,
    sample::{select, subsequence},
};

pub const KB: u64 = 1 << 10;
pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;

/// A number in relation to another one, such as pages to the pages that are needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    pub percent: u64,
    pub plus: i64,
}

impl Amount {
    pub const EXACT: Self = Self {
        percent: 100,
        plus: 0,
    };

    pub fn of(self, number: u64) -> u64 {
        let scaled = u128::from(number) * u128::from(self.percent) / 100;
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled.saturating_add_signed(self.plus)
    }
}

fn amount() -> impl Strategy<Value = Amount> {
    let of = |percent, plus| Just(Amount { percent, plus });
    prop_oneof![
        5 => of(100, 0),
        1 => of(100, 1),
        1 => of(100, -1),
        2 => of(0, 0),
        2 => (0..100_u64).prop_map(|percent| Amount { percent, plus: 0 }),
        1 => (100..130_u64, 0..600_i64).prop_map(|(percent, plus)| Amount { percent, plus }),
        1 => of(200, 3),
    ]
}

/// True once in that many cases.
fn one_in(n: u32) -> impl Strategy<Value = bool> {
    prop_oneof![n - 1 => Just(false), 1 => Just(true)]
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arch {
    /// Base pages of 4 kB, huge pages of 2 MB and 1 GB.
    X86,
    /// Like `X86`, with 1 GB as the default.
    X86Large,
    /// Huge pages of 2 MB only.
    X86Small,
    /// Base pages of 64 kB, huge pages of 2 MB, 512 MB and 16 GB.
    Arm64k,
    /// No huge pages.
    None,
}

impl Arch {
    pub fn sizes(self) -> &'static [u64] {
        match self {
            Self::X86 | Self::X86Large => &[2 * MB, GB],
            Self::X86Small => &[2 * MB],
            Self::Arm64k => &[2 * MB, 512 * MB, 16 * GB],
            Self::None => &[],
        }
    }

    pub fn default_size(self) -> Option<u64> {
        match self {
            Self::X86 | Self::X86Small => Some(2 * MB),
            Self::X86Large => Some(GB),
            Self::Arm64k => Some(512 * MB),
            Self::None => None,
        }
    }

    pub fn base(self) -> u64 {
        match self {
            Self::Arm64k => 64 * KB,
            _ => 4 * KB,
        }
    }
}

/// The host without its pools.
#[derive(Debug, Clone)]
pub struct HostSpec {
    pub arch: Arch,
    /// Memory of each NUMA node. 0: a node without memory.
    pub nodes_gb: Vec<u64>,
    /// Multiplies all sizes: petabytes.
    pub scale: u64,
    /// The part of the memory outside of pools and segments that other programs use.
    pub used_percent: u64,
    /// Node 0 has this share of its available memory; the others have the rest.
    pub first_node_percent: u64,
    /// Free memory in blocks that are large enough.
    pub blocks_percent: u64,
    pub swap_gb: u64,
    /// Files in memory, which the kernel counts as shared memory.
    pub tmpfs_mb: u64,
    /// A host with a sixteenth of the memory.
    pub is_small: bool,
    pub strict: Option<Strict>,
    /// Committed memory apart from segments, in percent of the room under the limit.
    pub committed_percent: u64,
    /// `vm.admin_reserve_kbytes` and `vm.user_reserve_kbytes`, in MB.
    pub reserves_mb: (u64, u64),
    /// Whether the kernel has counted committed memory several times.
    pub is_commit_wrong: bool,
    /// The part of free swap that is on zram.
    pub zram_percent: u64,
    /// Whether one node has most of the segment and almost no free memory.
    pub is_node_full: bool,
    pub panic_on_oom: i64,
    /// `MemTotal` of a container with its own `/proc/meminfo`.
    pub shown_gb: Option<u64>,
    pub thp: (&'static str, &'static str),
    pub thp_of_sizes: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
pub enum Strict {
    Ratio(u64),
    PercentOfRam(u64),
}

/// This server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub next: NextSpec,
    pub is_on_huge_pages: bool,
    pub touched_percent: u64,
    /// Nodes that it is allowed to use, by position. Empty: all.
    pub bound: Vec<usize>,
    pub processes: u64,
    pub page_tables_mb: u64,
    pub swapped_mb: u64,
    pub oom: (i32, i32),
    /// What systemd does after an OOM kill. `None`: it has no unit.
    pub oom_policy: Option<OomPolicy>,
    pub is_container: bool,
    /// The source of its settings.
    pub source: SettingSource,
    pub allows_alter_system: bool,
    /// Node that holds the segment, by position.
    pub segment_node: Option<usize>,
    /// Settings of the files, some of which the command line overrides. `None`: it sets none.
    pub from_files: Option<NextSpec>,
}

/// Settings of a start.
#[derive(Debug, Clone, Copy)]
pub struct NextSpec {
    /// The segment, in percent of RAM, and bytes in addition.
    pub percent_of_ram: u64,
    pub plus_kb: u64,
    /// `t`ry, `o`n or of`f`.
    pub huge_pages: char,
    pub is_sysv: bool,
    pub size: SizeSpec,
}

#[derive(Debug, Clone, Copy)]
pub enum SizeSpec {
    Default,
    /// One of the kernel's.
    Nth(usize),
    /// Any number of bytes.
    Bytes(u64),
}

/// A pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolSpec {
    /// Persistent pages, of those that this server and others need.
    pub persistent: Amount,
    /// Pages in use by other programs, in percent of RAM.
    pub others_percent: u64,
    /// Pages that other programs have reserved.
    pub reserved: u64,
    /// Pages that the kernel can allocate on demand, of those that the server needs.
    pub overcommit: Amount,
    /// Surplus pages in use in addition to idle persistent ones.
    pub extra_surplus: u64,
    /// Whether the first node has all that it has room for.
    pub is_on_first_node: bool,
    pub is_demotable: bool,
}

/// Another server.
#[derive(Debug, Clone, Copy)]
pub struct OtherSpec {
    pub pages: OtherPages,
    pub mb: u64,
    pub percent_of_ram: u64,
    pub touched_percent: u64,
    /// `t`ry, `o`n, of`f` or unknown.
    pub huge_pages: char,
    /// `None`: unknown.
    pub size: Option<SizeSpec>,
    pub has_port: bool,
    pub has_rss: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OtherPages {
    Small,
    SystemV,
    /// Huge pages of the size at this position.
    Huge(usize),
    Unreadable,
}

/// The limits of one cgroup on the pages of one size.
#[derive(Debug, Clone, Copy)]
pub struct LimitSpec {
    pub nth_size: usize,
    pub faults: Option<Amount>,
    pub reservations: Option<Amount>,
    /// Pages of others in it.
    pub others: u64,
}

/// A memory limit of a cgroup.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimitSpec {
    pub percent_of_ram: u64,
    pub others_mb: u64,
    pub files_mb: u64,
    pub swap_room_mb: Option<u64>,
    pub counts_hugetlb: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum FilesSpec {
    Nothing,
    Planned(NextSpec),
    Refused,
    /// And whether settings are pending.
    Unknown(bool),
}

/// The boot configuration.
#[derive(Debug, Clone)]
pub struct BootSpec {
    /// `vm.nr_hugepages` in `/etc/sysctl.d`.
    pub sysctl: Option<Amount>,
    /// `vm.nr_hugepages` in a later file.
    pub later: Option<Amount>,
    /// `hugepagesz=` and `hugepages=` for the size at this position.
    pub words: Vec<(usize, Amount)>,
    /// Other words of the command line.
    pub word: &'static str,
    /// Another file and its text.
    pub file: (&'static str, &'static str),
    pub has_systemd: bool,
    pub is_kept: bool,
    pub is_readable: bool,
}

/// Everything about a machine.
#[derive(Debug, Clone)]
pub struct Spec {
    pub host: HostSpec,
    pub server: ServerSpec,
    /// For the sizes of the kernel, in their order.
    pub pools: Vec<PoolSpec>,
    pub others: Vec<OtherSpec>,
    /// `h`ost, `n`amespace, hi`d`den, or `u`nreadable.
    pub visibility: char,
    pub limits: Vec<LimitSpec>,
    pub is_v1: bool,
    pub counts_reservations: bool,
    /// A limit in an environment variable of the container.
    pub told_limit: Option<Amount>,
    /// How often a hidden limit refused pages of each size.
    pub refused: u64,
    pub memory_limits: Vec<MemoryLimitSpec>,
    /// `memory.high` of a cgroup.
    pub high: Option<MemoryLimitSpec>,
    pub files: FilesSpec,
    pub boot: BootSpec,
    pub muted: Vec<&'static str>,
    /// Facts that are absent.
    pub absent: Vec<usize>,
}

fn size() -> impl Strategy<Value = SizeSpec> {
    prop_oneof![
        8 => Just(SizeSpec::Default),
        2 => (0..3_usize).prop_map(SizeSpec::Nth),
        1 => select(vec![1536 * KB, 3 * MB, 16 * MB, 8 * GB, 100 * GB]).prop_map(SizeSpec::Bytes),
    ]
}

fn next(max_percent: u64) -> impl Strategy<Value = NextSpec> {
    let percent = prop_oneof![
        3 => Just(0),
        6 => 0..50_u64,
        2 => 50..80_u64,
        2 => 80..max_percent,
    ];
    let huge_pages = select(vec!['t', 't', 't', 't', 'o', 'o', 'f']);
    (
        percent,
        200 * KB..2 * MB,
        huge_pages,
        one_in(12),
        size(),
        one_in(5),
    )
        .prop_map(|(percent_of_ram, kb, huge_pages, is_sysv, size, is_even)| {
            let plus_kb = if is_even { kb / KB * KB } else { kb / 8 * 8 };
            NextSpec {
                percent_of_ram,
                plus_kb,
                huge_pages,
                is_sysv,
                size,
            }
        })
}

/// Files that often have `huge_pages = on`.
fn from_files() -> impl Strategy<Value = NextSpec> {
    (next(90), select(vec!['t', 'o', 'o', 'f']))
        .prop_map(|(next, huge_pages)| NextSpec { huge_pages, ..next })
}

fn host() -> impl Strategy<Value = HostSpec> {
    let arch = prop_oneof![
        12 => Just(Arch::X86),
        2 => Just(Arch::X86Large),
        2 => Just(Arch::X86Small),
        3 => Just(Arch::Arm64k),
        1 => Just(Arch::None),
    ];
    let node = select(vec![4, 8, 16, 16, 32, 64, 128]);
    let nodes = prop_oneof![
        4 => vec(node.clone(), 1),
        4 => vec(prop_oneof![12 => node, 1 => Just(0)], 2..=4),
    ];
    let strict = prop_oneof![
        select(vec![30, 50, 80, 95, 100]).prop_map(Strict::Ratio),
        select(vec![30, 60, 90]).prop_map(Strict::PercentOfRam),
    ];
    let memory = (
        select(vec![5_u64, 5, 20, 20, 50, 80, 95, 99]),
        prop_oneof![6 => Just(100), 1 => select(vec![0_u64, 5, 30, 60])],
        select(vec![0_u64, 1, 30, 90, 100]),
        select(vec![0_u64, 0, 2, 8, 60]),
        weighted(0.2, strict),
        (
            select(vec![10_u64, 40, 80, 89, 95, 100]),
            select(vec![(8, 128), (8, 128), (0, 0), (64, 1024)]),
        ),
        weighted(0.06, select(vec![1_u64, 2, 8])),
        select(vec![0_u64, 0, 0, 1, 100, 4000]),
        one_in(4),
    );
    let scale = prop_oneof![40 => Just(1_u64), 1 => Just(1_u64 << 20)];
    let modes = (
        select(vec!["always", "madvise", "madvise", "never"]),
        select(vec![
            "always",
            "within_size",
            "advise",
            "never",
            "never",
            "deny",
            "force",
        ]),
    );
    let of_sizes = (
        select(vec!["always", "madvise", "never", "inherit"]),
        select(vec!["always", "advise", "never", "inherit"]),
    );
    let odd = (
        one_in(8),
        select(vec![0_u64, 0, 0, 50, 100]),
        any::<bool>(),
        prop_oneof![8 => Just(0_i64), 1 => 1..3_i64],
    );
    (
        arch,
        nodes,
        scale,
        memory,
        modes,
        weighted(0.3, of_sizes),
        odd,
    )
        .prop_map(
            |(arch, mut nodes_gb, scale, memory, thp, thp_of_sizes, odd)| {
                if nodes_gb.iter().all(|gb| *gb == 0) {
                    nodes_gb = vec![16];
                }
                HostSpec {
                    arch,
                    nodes_gb,
                    scale,
                    used_percent: memory.0,
                    first_node_percent: memory.1,
                    blocks_percent: memory.2,
                    swap_gb: memory.3,
                    tmpfs_mb: memory.7,
                    is_small: memory.8,
                    strict: memory.4,
                    committed_percent: memory.5.0,
                    reserves_mb: memory.5.1,
                    is_commit_wrong: odd.0,
                    zram_percent: odd.1,
                    is_node_full: odd.2,
                    panic_on_oom: odd.3,
                    shown_gb: memory.6,
                    thp,
                    thp_of_sizes,
                }
            },
        )
}

fn source() -> impl Strategy<Value = SettingSource> {
    let line = FileLine {
        path: "/etc/postgresql/postgresql.conf".into(),
        line: 12,
    };
    prop_oneof![
        8 => Just(SettingSource::Default),
        2 => Just(SettingSource::CommandLine),
        2 => Just(SettingSource::File(Some(line))),
        1 => Just(SettingSource::File(None)),
        2 => Just(SettingSource::AutoConf),
    ]
}

fn server() -> impl Strategy<Value = ServerSpec> {
    let bound = prop_oneof![3 => Just(vec![]), 1 => subsequence(vec![0, 1, 2, 3], 1..3)];
    let processes = (
        prop_oneof![20 => 2..5_u64, 1 => Just(300)],
        select(vec![1, 6, 6, 200, 5000]),
        select(vec![0, 0, 0, 300]),
        select(vec![
            (-900, 0),
            (-900, 0),
            (0, 0),
            (-900, -900),
            (-1000, 0),
            (-1000, -1000),
            (500, 0),
            (500, 900),
            (0, 500),
            (300, 301),
        ]),
        weighted(
            0.3,
            select(vec![
                OomPolicy::Continue,
                OomPolicy::Stop,
                OomPolicy::Stop,
                OomPolicy::Kill,
            ]),
        ),
    );
    let flags = (one_in(6), source(), one_in(8));
    (
        next(105),
        prop_oneof![2 => Just(true), 1 => Just(false)],
        select(vec![0, 0, 5, 50, 100]),
        bound,
        processes,
        flags,
        (weighted(0.2, 0..4_usize), weighted(0.15, from_files())),
    )
        .prop_map(
            |(next, is_on_huge_pages, touched_percent, bound, processes, flags, rest)| ServerSpec {
                next,
                is_on_huge_pages,
                touched_percent,
                bound,
                processes: processes.0,
                page_tables_mb: processes.1,
                swapped_mb: processes.2,
                oom: processes.3,
                oom_policy: processes.4,
                is_container: flags.0,
                source: flags.1,
                allows_alter_system: !flags.2,
                segment_node: rest.0,
                from_files: rest.1,
            },
        )
}

fn pool() -> impl Strategy<Value = PoolSpec> {
    let rarely = |strategy: BoxedStrategy<u64>| prop_oneof![5 => Just(0_u64), 1 => strategy];
    let no_overcommit = Amount {
        percent: 0,
        plus: 0,
    };
    (
        amount(),
        rarely((1..15_u64).boxed()),
        rarely((1..200_u64).boxed()),
        prop_oneof![8 => Just(no_overcommit), 1 => amount()],
        rarely((1..200_u64).boxed()),
        one_in(4),
        any::<bool>(),
    )
        .prop_map(
            |(
                persistent,
                others_percent,
                reserved,
                overcommit,
                extra_surplus,
                is_first,
                is_demotable,
            )| {
                PoolSpec {
                    persistent,
                    others_percent,
                    reserved,
                    overcommit,
                    extra_surplus,
                    is_on_first_node: is_first,
                    is_demotable,
                }
            },
        )
}

fn other() -> impl Strategy<Value = OtherSpec> {
    let pages = prop_oneof![
        4 => Just(OtherPages::Small),
        1 => Just(OtherPages::SystemV),
        4 => Just(OtherPages::Huge(0)),
        1 => Just(OtherPages::Huge(1)),
        1 => Just(OtherPages::Unreadable),
    ];
    (
        pages,
        100..3000_u64,
        prop_oneof![2 => Just(0), 1 => 0..45_u64],
        select(vec![0, 5, 50, 100]),
        select(vec!['t', 't', 'o', 'f', '?']),
        weighted(0.9, size()),
        any::<bool>(),
        prop_oneof![5 => Just(true), 1 => Just(false)],
    )
        .prop_map(
            |(pages, mb, percent_of_ram, touched_percent, huge_pages, size, has_port, has_rss)| {
                OtherSpec {
                    pages,
                    mb,
                    percent_of_ram,
                    touched_percent,
                    huge_pages,
                    size,
                    has_port,
                    has_rss,
                }
            },
        )
}

fn limit() -> impl Strategy<Value = LimitSpec> {
    let limit = || option::of(amount());
    let others = prop_oneof![2 => Just(0), 1 => 0..50_u64];
    (0..3_usize, limit(), limit(), others).prop_map(|(nth_size, faults, reservations, others)| {
        LimitSpec {
            nth_size,
            faults,
            reservations,
            others,
        }
    })
}

fn memory_limit() -> impl Strategy<Value = MemoryLimitSpec> {
    (
        select(vec![10, 25, 50, 90]),
        select(vec![0, 100, 4000]),
        select(vec![0, 100, 1000]),
        option::of(select(vec![0, 500, 100_000])),
        any::<bool>(),
    )
        .prop_map(
            |(percent_of_ram, others_mb, files_mb, swap_room_mb, counts_hugetlb)| MemoryLimitSpec {
                percent_of_ram,
                others_mb,
                files_mb,
                swap_room_mb,
                counts_hugetlb,
            },
        )
}

fn files() -> impl Strategy<Value = FilesSpec> {
    prop_oneof![
        12 => Just(FilesSpec::Nothing),
        5 => next(105).prop_map(FilesSpec::Planned),
        1 => Just(FilesSpec::Refused),
        1 => any::<bool>().prop_map(FilesSpec::Unknown),
    ]
}

fn boot() -> impl Strategy<Value = BootSpec> {
    let word = prop_oneof![
        12 => Just("quiet"),
        1 => select(vec![
            "hugepages=0:100,1:50",
            "hugetlb_cma=2G",
            "hugepages=many",
            "default_hugepagesz=1G",
            "hugepagesz=2M hugepages=10 hugepagesz=2M hugepages=20",
            "hugepagesz=16M hugepages=7",
        ]),
    ];
    let file = prop_oneof![
        10 => Just(("", "")),
        1 => select(vec![
            ("/etc/sysctl.conf", "vm.nr_hugepages = 4000\n"),
            ("/etc/sysctl.d/99-typo.conf", "vm.nr_hugepages = 537MB\n"),
            ("/etc/sysctl.d/40-a.conf", "vm.nr_hugepages = lots\n"),
            ("/etc/sysctl.d/95-a.conf", "vm.nr_hugep* = 5\n"),
            ("/etc/sysctl.d/40-b.conf", "vm.nr_overcommit_hugepages = 100\n"),
            ("/etc/tmpfiles.d/huge.conf",
             "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 50\n"),
        ]),
    ];
    (
        weighted(0.6, amount()),
        weighted(0.1, amount()),
        prop_oneof![5 => Just(vec![]), 1 => vec((0..3_usize, amount()), 1..3)],
        word,
        file,
        one_in(4),
        one_in(15),
        one_in(15),
    )
        .prop_map(
            |(sysctl, later, words, word, file, no_systemd, is_lost, is_unreadable)| BootSpec {
                sysctl,
                later,
                words,
                word,
                file,
                has_systemd: !no_systemd,
                is_kept: !is_lost,
                is_readable: !is_unreadable,
            },
        )
}

/// Any machine.
pub fn any_machine() -> impl Strategy<Value = Spec> {
    let others = prop_oneof![3 => Just(vec![]), 2 => vec(other(), 1..4)];
    let limits = prop_oneof![
        5 => Just((vec![], vec![])),
        2 => vec(limit(), 1..4).prop_map(|limits| (limits, vec![])),
        1 => vec(memory_limit(), 1..3).prop_map(|limits| (vec![], limits)),
    ];
    let flags = (
        select(vec!['h', 'h', 'h', 'h', 'h', 'h', 'n', 'd', 'u']),
        one_in(4),
        one_in(5),
        weighted(0.04, amount()),
        prop_oneof![12 => Just(0), 1 => 1..9_u64],
        weighted(0.06, memory_limit()),
    );
    let muted = prop_oneof![
        10 => Just(vec![]),
        1 => subsequence(
            vec!["huge_pages", "restart", "pool_size", "reboot", "thp_private",
                "page_tables", "other_servers", "memory_left"],
            1..4,
        ),
    ];
    let absent = prop_oneof![20 => Just(vec![]), 1 => vec(0..super::build::FACTS, 1..3)];
    (
        (host(), server(), vec(pool(), 3)),
        (others, limits, flags),
        (files(), boot(), muted, absent),
    )
        .prop_map(
            |((host, server, pools), (others, limits, flags), (files, boot, muted, absent))| Spec {
                host,
                server,
                pools,
                others,
                visibility: flags.0,
                limits: limits.0,
                memory_limits: limits.1,
                is_v1: flags.1,
                counts_reservations: !flags.2,
                told_limit: flags.3,
                refused: flags.4,
                high: flags.5,
                files,
                boot,
                muted,
                absent,
            },
        )
}

impl Spec {
    /// A server of 10% of RAM on the huge pages that it needs, on a host of 64 GB.
    pub fn usual() -> Self {
        let nothing = Amount {
            percent: 0,
            plus: 0,
        };
        let empty = PoolSpec {
            persistent: nothing,
            others_percent: 0,
            reserved: 0,
            overcommit: nothing,
            extra_surplus: 0,
            is_on_first_node: false,
            is_demotable: false,
        };
        let pool = PoolSpec {
            persistent: Amount::EXACT,
            ..empty
        };
        Self {
            host: HostSpec {
                arch: Arch::X86,
                nodes_gb: vec![64],
                scale: 1,
                used_percent: 20,
                first_node_percent: 100,
                blocks_percent: 100,
                swap_gb: 8,
                tmpfs_mb: 0,
                is_small: false,
                strict: None,
                committed_percent: 40,
                reserves_mb: (8, 128),
                is_commit_wrong: false,
                zram_percent: 0,
                is_node_full: false,
                panic_on_oom: 0,
                shown_gb: None,
                thp: ("madvise", "never"),
                thp_of_sizes: None,
            },
            server: ServerSpec {
                next: NextSpec {
                    percent_of_ram: 10,
                    plus_kb: 200 * KB,
                    huge_pages: 't',
                    is_sysv: false,
                    size: SizeSpec::Default,
                },
                is_on_huge_pages: true,
                touched_percent: 5,
                bound: vec![],
                processes: 3,
                page_tables_mb: 6,
                swapped_mb: 0,
                oom: (-900, 0),
                oom_policy: None,
                is_container: false,
                source: SettingSource::Default,
                allows_alter_system: true,
                segment_node: None,
                from_files: None,
            },
            pools: vec![pool, empty, empty],
            others: vec![],
            visibility: 'h',
            limits: vec![],
            is_v1: false,
            counts_reservations: true,
            told_limit: None,
            refused: 0,
            memory_limits: vec![],
            high: None,
            files: FilesSpec::Nothing,
            boot: BootSpec {
                sysctl: Some(Amount::EXACT),
                later: None,
                words: vec![],
                word: "quiet",
                file: ("", ""),
                has_systemd: true,
                is_kept: true,
                is_readable: true,
            },
            muted: vec![],
            absent: vec![],
        }
    }
}

/// A machine on which nothing has to be done.
pub fn healthy_machine() -> impl Strategy<Value = Spec> {
    let kind = prop_oneof![
        4 => Just("on huge pages"),
        1 => Just("off"),
        1 => Just("no huge pages"),
    ];
    let satisfied = other().prop_map(|other| OtherSpec {
        mb: other.mb / 4,
        percent_of_ram: 0,
        huge_pages: match other.pages {
            OtherPages::Small => 'f',
            _ => other.huge_pages,
        },
        pages: match other.pages {
            OtherPages::Unreadable | OtherPages::Huge(_) => OtherPages::Huge(0),
            small => small,
        },
        ..other
    });
    let others = prop_oneof![2 => Just(vec![]), 1 => vec(satisfied, 1..3)];
    (any_machine(), kind, others, 0..30_u64, one_in(4)).prop_map(
        |(any, kind, others, percent_of_ram, has_idle)| {
            let is_off = kind != "on huge pages";
            let mut next = NextSpec {
                percent_of_ram,
                is_sysv: false,
                size: SizeSpec::Default,
                ..any.server.next
            };
            if kind == "off" {
                next.huge_pages = 'f';
            } else if next.huge_pages != 'o' || is_off {
                next.huge_pages = 't';
            }
            let nothing = Amount {
                percent: 0,
                plus: 0,
            };
            // Idle pages that the boot configuration requests belong to another program.
            let pages = match (is_off, has_idle) {
                (false, false) => Amount::EXACT,
                (false, true) => Amount {
                    percent: 120,
                    plus: 9,
                },
                (true, false) => nothing,
                (true, true) => Amount {
                    percent: 0,
                    plus: 500,
                },
            };
            let pool = |pool: &PoolSpec| PoolSpec {
                persistent: pages,
                others_percent: 0,
                reserved: 0,
                overcommit: nothing,
                extra_surplus: 0,
                is_on_first_node: false,
                ..*pool
            };
            let mut pools: Vec<_> = any.pools.iter().map(pool).collect();
            for pool in pools.iter_mut().skip(1) {
                pool.persistent = nothing;
            }
            Spec {
                host: HostSpec {
                    arch: match kind {
                        "no huge pages" => Arch::None,
                        _ => Arch::X86,
                    },
                    nodes_gb: any.host.nodes_gb.iter().map(|_| 32).collect(),
                    used_percent: 20,
                    first_node_percent: 100,
                    strict: None,
                    is_node_full: false,
                    panic_on_oom: 0,
                    shown_gb: None,
                    thp: ("madvise", "never"),
                    thp_of_sizes: None,
                    // Segments of others and idle pages do not depend on the size of the host.
                    is_small: any.host.is_small && others.is_empty() && !has_idle,
                    ..any.host
                },
                server: ServerSpec {
                    next,
                    is_on_huge_pages: !is_off,
                    bound: vec![],
                    processes: 3,
                    page_tables_mb: 6,
                    swapped_mb: 0,
                    oom: (-900, 0),
                    oom_policy: any.server.oom_policy.map(|_| OomPolicy::Continue),
                    segment_node: None,
                    from_files: None,
                    ..any.server
                },
                pools,
                others: if kind == "no huge pages" {
                    vec![]
                } else {
                    others
                },
                visibility: 'h',
                limits: vec![],
                told_limit: None,
                refused: 0,
                memory_limits: vec![],
                high: None,
                files: FilesSpec::Nothing,
                boot: BootSpec {
                    sysctl: Some(pages),
                    later: None,
                    words: vec![],
                    word: "quiet",
                    file: ("", ""),
                    has_systemd: true,
                    is_kept: true,
                    is_readable: true,
                },
                muted: vec![],
                absent: vec![],
                ..any
            }
        },
    )
}

/// Machines whose files differ from the command line.
pub fn with_a_command_line() -> impl Strategy<Value = Spec> {
    (any_machine(), from_files()).prop_map(|(mut spec, files)| {
        spec.server.from_files.get_or_insert(files);
        spec.server.bound.clear();
        spec.muted.clear();
        spec
    })
}

/// Machines whose boot line could be for the server. Nothing is pending.
pub fn with_a_boot_line() -> impl Strategy<Value = Spec> {
    (any_machine(), 3..60_u64, -20..20_i64).prop_map(|(mut spec, percent_of_ram, plus)| {
        spec.files = FilesSpec::Nothing;
        spec.muted.clear();
        spec.absent.clear();
        spec.visibility = 'h';
        spec.boot.is_readable = true;
        spec.boot.later = None;
        asks_for_huge_pages(&mut spec.server.next);
        let next = &mut spec.server.next;
        next.percent_of_ram = next.percent_of_ram.max(percent_of_ram);
        let line = Amount { percent: 100, plus };
        let default = spec.host.arch.default_size();
        let sizes = spec.host.arch.sizes();
        match next.size {
            SizeSpec::Nth(nth) if sizes.get(nth).copied() != default => {
                spec.boot.words = vec![(nth, line)];
            }
            _ => spec.boot.sysctl = Some(line),
        }
        spec
    })
}

/// Machines that lack pages of the size that the server asks for, and could have enough idle pages
/// of another one.
pub fn with_idle_pages_of_another_size() -> impl Strategy<Value = Spec> {
    any_machine().prop_map(|mut spec| {
        if spec.host.arch.sizes().len() < 2 {
            spec.host.arch = Arch::X86;
        }
        let sizes = spec.host.arch.sizes();
        spec.limits.clear();
        spec.memory_limits.clear();
        spec.told_limit = None;
        spec.absent.clear();
        spec.server.bound.clear();
        let next = match &mut spec.files {
            FilesSpec::Planned(next) => {
                // The pages of a third size are not among those that it could use.
                spec.server.is_on_huge_pages &= sizes.len() > 2;
                next
            }
            _ => {
                spec.files = FilesSpec::Nothing;
                spec.server.is_on_huge_pages = false;
                &mut spec.server.next
            }
        };
        asks_for_huge_pages(next);
        next.size = SizeSpec::Default;
        let is_asked = |nth: usize| sizes.get(nth).copied() == spec.host.arch.default_size();
        let segment = spec.host.nodes_gb.iter().sum::<u64>() * next.percent_of_ram / 100 + 3;
        let is_spared = |amount: Amount| amount.percent < 100;
        let has_enough =
            (0..sizes.len()).any(|nth| !is_asked(nth) && !is_spared(spec.pools[nth].persistent));
        for (nth, &size) in sizes.iter().enumerate() {
            let pool = &mut spec.pools[nth];
            if is_asked(nth) {
                pool.persistent.percent %= 100;
                pool.persistent.plus = 0;
                pool.overcommit.percent %= 100;
            } else if !has_enough || !is_spared(pool.persistent) {
                let pages = (segment * GB).div_ceil(size);
                pool.persistent.percent = pool.persistent.percent.max(100);
                pool.persistent.plus += i64::try_from(pages).unwrap_or(i64::MAX / 2);
            }
        }
        spec
    })
}

/// Machines with a strict commit limit whose counter is wrong.
pub fn with_wrong_commit_counter() -> impl Strategy<Value = Spec> {
    let strict = prop_oneof![
        select(vec![30, 50, 80, 95, 100]).prop_map(Strict::Ratio),
        select(vec![30, 60, 90]).prop_map(Strict::PercentOfRam),
    ];
    (any_machine(), strict, 0..40_u64).prop_map(|(mut spec, strict, used_percent)| {
        spec.host.strict.get_or_insert(strict);
        spec.host.is_commit_wrong = true;
        spec.host.used_percent = spec.host.used_percent.min(used_percent);
        spec.absent.clear();
        spec
    })
}

/// Machines with another server on small pages that asks for no huge pages.
pub fn with_another_server_that_is_off() -> impl Strategy<Value = Spec> {
    (any_machine(), other(), one_in(2)).prop_map(|(mut spec, other, has_files)| {
        if !has_files {
            spec.host.tmpfs_mb = 0;
        }
        if spec.others.is_empty() {
            spec.others.push(other);
        }
        if let Some(last) = spec.others.last_mut() {
            last.pages = OtherPages::Small;
            last.huge_pages = 'f';
        }
        for other in &mut spec.others {
            if (other.pages, other.huge_pages) == (OtherPages::Small, 'f') {
                other.touched_percent = 0;
            }
        }
        spec
    })
}

fn asks_for_huge_pages(next: &mut NextSpec) {
    next.is_sysv = false;
    if next.huge_pages == 'f' {
        next.huge_pages = 't';
    }
}
