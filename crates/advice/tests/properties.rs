//! Properties that hold for all inputs: readers never panic and lose no digit, and the arithmetic
//! of a restart is consistent.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

mod readers;
#[path = "../../host/tests/txtar/mod.rs"]
mod txtar;

use std::path::{Path, PathBuf};

use advice::{
    answer,
    model::{forecast::Forecast, machine::Machine, page_tables::bytes_of_one},
    plan,
};
use host::{
    linux::{
        cgroup::{Group, Hugetlb, Limit, Limits, Version, membership, mount, parse_limit},
        error::{Absence, Absent},
        hugepages::{self, Pool},
        meminfo::{self, Meminfo},
        pages::pages_required,
        process::{
            children,
            maps::{self, Device, Extent, Mapping},
            oom_score,
            segment::{self, Segment},
            smaps, stat, status,
        },
    },
    server::{
        facts::Facts,
        state::{HugePages, Server, SharedMemoryType, State},
    },
    units::{PageSize, Pages},
};
use proptest::prelude::*;

/// A number as of a real machine, or close to a limit of 64 bits.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0..1_000_000_u64,
        1 => any::<u64>(),
        1 => u64::MAX - 3..=u64::MAX,
        1 => (0..64_u32).prop_map(|bits| 1 << bits),
    ]
}

/// A number of kB whose bytes fit in 64 bits.
fn kilobytes() -> impl Strategy<Value = u64> {
    number().prop_map(|n| n >> 11)
}

fn page_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => prop::sample::select(vec![64 << 10, 2 << 20, 32 << 20, 512 << 20, 1 << 30, 16_u64 << 30]),
        1 => number().prop_map(|n| n.max(1)),
    ]
}

mod bytes {
    use std::{collections::BTreeSet, fs, panic::catch_unwind};

    use super::*;

    /// Words that most formats do not allow in most places.
    const ODD_WORDS: [&[u8]; 19] = [
        b"",
        b" ",
        b"\n",
        b":",
        b"\\",
        b"-",
        b"\xff",
        b"\0",
        b"\x1b",
        b"x",
        b"inf",
        b"0",
        b"-1",
        b"0000000000000000000000001",
        b"2147483648",
        b"4294967296",
        b"9223372036854775807",
        b"18014398509481983",
        b"18446744073709551616",
    ];

    /// The sample cut at each byte, and with each of its numbers, words and separators, or all of
    /// its numbers, replaced by each odd word.
    fn damaged(sample: &[u8]) -> Vec<Vec<u8>> {
        let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_alphabetic());
        let parts: Vec<_> = sample.chunk_by(|a, b| kind(a) == kind(b)).collect();
        let mut all = Vec::new();
        for at in 0..=sample.len() {
            all.push(sample[..at].to_vec());
            all.push(sample[at..].to_vec());
        }
        for odd in ODD_WORDS {
            for at in 0..parts.len() {
                let mut parts = parts.clone();
                parts[at] = odd;
                all.push(parts.concat());
            }
            let parts = parts.iter().map(|part| {
                let is_number = part.first().is_some_and(u8::is_ascii_digit);
                if is_number { odd } else { part }
            });
            all.push(parts.collect::<Vec<_>>().concat());
        }
        all
    }

    fn names(directory: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
        entries
            .map(|entry| name(entry.expect("an entry")))
            .collect()
    }

    #[test]
    fn damaged_samples_do_not_panic() {
        let samples = txtar::unpack("tests/readers/samples.txtar");
        let readers = readers::READERS.iter();
        let expected: BTreeSet<_> = readers.map(|&(name, _)| name.to_owned()).collect();
        assert_eq!(names(samples.path()), expected);
        for (name, reader) in readers::READERS {
            let directory = samples.path().join(name);
            for file in names(&directory) {
                let sample = fs::read(directory.join(file)).expect("a sample");
                for bytes in damaged(&sample) {
                    let result = catch_unwind(|| reader(&bytes));
                    assert!(result.is_ok(), "{name}: {}", bytes.escape_ascii());
                }
            }
        }
    }

    /// Pieces of kernel files in random order.
    fn kernel_like() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            b" ",
            b" ",
            b"\n",
            b"\n",
            b":",
            b"-",
            b"/",
            b"\\040",
            b"\0",
            b"\xff",
            b"0",
            b"4",
            b" kB\n",
            b"18446744073709551615",
            b"18446744073709551616",
            b"7f0000000000-7f0044400000 rw-s 00000000 00:01 42 ",
            b"0-ffffffffffffffff ---p 0 0:0 0\n",
            b"/anon_hugepage (deleted)",
            b"[heap]",
            b"Rss:",
            b"Private_Clean: ",
            b"Private_Dirty: 18014398509481983 kB\n",
            b"KernelPageSize: ",
            b"VmFlags: ",
            b"VmRSS:\t",
            b"VmPTE:\t",
            b"MemTotal: ",
            b"Hugepagesize: ",
            b"7f0000000000 default ",
            b"kernelpagesize_kB=",
            b"42 (postgres) S ",
            b"1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 88123 ",
            b"0::",
            b"9:hugetlb:",
            b"30 23 0:26 ",
            b" / ",
            b" - cgroup ",
            b" - cgroup2 ",
            b" rw,hugetlb",
            b"hugepages-",
            b"kB",
            b"max",
        ];
        prop::collection::vec(prop::sample::select(pieces), 0..24)
            .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            for (_, reader) in readers::READERS {
                reader(&bytes);
            }
        }

        #[test]
        fn those_that_look_right_too(bytes in kernel_like()) {
            for (_, reader) in readers::READERS {
                reader(&bytes);
            }
        }
    }
}

mod round_trips {
    use super::*;

    prop_compose! {
        fn extent()(start in 0..u64::MAX, offset in number(), major in any::<u32>(), minor in any::<u32>(), inode in number())
            (end in start + 1..=u64::MAX, start in Just(start), offset in Just(offset), device in Just(Device { major, minor }), inode in Just(inode)) -> Extent {
            Extent { start, end, offset, device, inode }
        }
    }

    /// Any bytes but line feeds, which the kernel escapes.
    fn file_name() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(Vec::new()),
            Just(b"[heap]".to_vec()),
            prop::collection::vec(
                any::<u8>().prop_filter("a line feed", |&b| b != b'\n'),
                0..64
            )
            .prop_map(|name| [b"/", name.as_slice()].concat()),
        ]
    }

    prop_compose! {
        fn mapping()(extent in extent(), permissions in "[r-][w-][x-][sp]", path in file_name()) -> Mapping {
            Mapping { extent, permissions, path }
        }
    }

    /// A path, and the form in which the kernel writes it in `mountinfo`.
    fn mangled() -> impl Strategy<Value = (PathBuf, String)> {
        "(/[a-z \t\\\\#:é.-]{1,8}){1,4}".prop_map(|path| {
            let mangle = |c| match c {
                ' ' | '\t' | '\\' | '#' => format!("\\{:03o}", u32::from(c)),
                c => c.to_string(),
            };
            (PathBuf::from(&path), path.chars().map(mangle).collect())
        })
    }

    proptest! {
        #[test]
        fn maps(mappings in prop::collection::vec(mapping(), 0..8)) {
            let mut text = Vec::new();
            for mapping in &mappings {
                let line = readers::written(mapping);
                prop_assert_eq!(maps::parse_line(&line), Some(mapping.clone()));
                text.extend_from_slice(&line);
                text.push(b'\n');
            }
            let extents: Vec<_> = mappings.iter().map(|mapping| mapping.extent).collect();
            prop_assert_eq!(maps::parse_extents(&text).expect("extents"), extents);
            let entries = smaps::parse(text.as_slice(), || ());
            let read: Vec<_> = entries.map(|entry| entry.expect("a mapping").mapping).collect();
            prop_assert_eq!(read, mappings);
        }

        #[test]
        fn smaps(mapping in mapping(), page in kilobytes(), rss in kilobytes(), clean in kilobytes(), dirty in kilobytes()) {
            let mut text = readers::written(&mapping);
            let figures = format!(
                "\nSize: 4 kB\nKernelPageSize: {page:8} kB\nRss: {rss:8} kB\nPrivate_Clean: {clean:8} kB\nPrivate_Dirty: {dirty:8} kB\nVmFlags: rd wr ht\n"
            );
            text.extend_from_slice(figures.as_bytes());
            let entries: Result<Vec<_>, _> = smaps::parse(text.as_slice(), || ()).collect();
            let entries = entries.expect("an entry");
            prop_assert_eq!(entries.len(), 1);
            let entry = &entries[0];
            prop_assert_eq!(&entry.mapping, &mapping);
            prop_assert_eq!(entry.figures.page_size, Some(page << 10));
            prop_assert_eq!(entry.figures.rss, Some(rss << 10));
            prop_assert_eq!(entry.figures.uss(), Some((clean << 10).saturating_add(dirty << 10)));
            let looked_up = segment::parse_smaps(text.as_slice(), mapping.extent.start).expect("a page size");
            prop_assert_eq!(looked_up, Some(page << 10));
        }

        #[test]
        fn numa_maps(mapping in extent(), page in kilobytes()) {
            let Extent { start, .. } = mapping;
            let text = format!("{start:08x} default\n{start:08x} default file=/x huge dirty=1 N0=1 kernelpagesize_kB={page}\n");
            let looked_up = segment::parse_numa_maps(text.as_bytes(), &[mapping]).expect("a page size");
            prop_assert_eq!(looked_up, Some(page << 10));
        }

        #[test]
        fn stat(comm in prop::collection::vec(any::<u8>(), 0..16), parent in any::<u32>(), minor in number(), major in number(), start in number()) {
            let mut line = b"42 (".to_vec();
            line.extend_from_slice(&comm);
            let fields = format!(") S {parent} 1 1 0 -1 4194560 {minor} 7 {major} 3 10 20 -30 40 20 0 1 0 {start} 1 2\n");
            line.extend_from_slice(fields.as_bytes());
            let counter = |number: u64| Some(number).filter(|&number| number <= i64::MAX.unsigned_abs());
            let expected = counter(start).map(|start_ticks| stat::Stat {
                parent,
                minor_faults: counter(minor),
                major_faults: counter(major),
                start_ticks,
            });
            prop_assert_eq!(stat::parse(&line), expected);
        }

        #[test]
        fn status(name in "[^:\n]{0,15}", rss in kilobytes(), page_tables in kilobytes()) {
            let text = format!("Name:\t{name}\nVmRSS:\t{rss:8} kB\nVmPTE:\t{page_tables:8} kB\n");
            let expected = status::Memory {
                rss: Some(rss << 10),
                page_tables: Some(page_tables << 10),
                ..status::Memory::default()
            };
            prop_assert_eq!(status::parse_memory(text.as_bytes()), expected);
        }

        #[test]
        fn meminfo(total in 1..1_u64 << 53, page in kilobytes()) {
            let text = format!("MemTotal:  {total:8} kB\nHugePages_Total: 3\nHugepagesize: {page:7} kB\n");
            let expected = Meminfo {
                total_bytes: Some(total << 10),
                default_huge_page_bytes: Some(page << 10).filter(|&bytes| bytes > 0),
            };
            prop_assert_eq!(meminfo::parse(text.as_bytes()), Ok(expected));
        }

        #[test]
        fn children(pids in prop::collection::vec(any::<u32>(), 0..32), no_pid in u64::from(u32::MAX) + 1..) {
            let text: String = pids.iter().map(|pid| format!("{pid} ")).collect();
            let parse = |text: &str| children::parse_children(text.as_bytes()).collect::<Vec<_>>();
            prop_assert_eq!(&parse(&text), &pids);
            prop_assert_eq!(parse(&format!("{no_pid} {text}")), pids);
        }

        #[test]
        fn oom_scores(score in -i32::MAX..=i32::MAX) {
            prop_assert_eq!(oom_score::parse(score.to_string().as_bytes()), Some(score));
        }

        #[test]
        fn pools(page in 1..1_u64 << 54) {
            prop_assert_eq!(hugepages::parse_name(&format!("hugepages-{page}kB")), Some(page << 10));
        }

        #[test]
        fn limits(limit in number(), page_bytes in page_bytes()) {
            let read = parse_limit(format!("{limit}\n").as_bytes(), page_bytes).expect("a limit");
            prop_assert!(read.bytes().is_none_or(|read| read == limit));
            // The kernel writes "unlimited" as the largest multiple of the page size that fits in
            // its counter.
            let unlimited = i64::MAX.unsigned_abs() / page_bytes * page_bytes;
            let read = parse_limit(unlimited.to_string().as_bytes(), page_bytes);
            prop_assert!(read == Some(Limit::Unlimited) || page_bytes > i64::MAX.unsigned_abs() / 2);
            prop_assert_eq!(parse_limit(b"max\n", page_bytes), Some(Limit::Unlimited));
        }

        #[test]
        fn groups(path in "(/[^\n\0/]{1,8}){0,4}", others in 0..3_usize) {
            let path = if path.is_empty() { "/" } else { &path };
            let named = "5:name=systemd:/init.scope\n4:cpu,cpuacct:/\n".repeat(others);
            let v2 = format!("{named}0::{path}\n");
            prop_assert_eq!(membership::parse(v2.as_bytes(), "hugetlb"), Ok(Some((Version::V2, path.into()))));
            let v1 = format!("0::/elsewhere\n{named}9:devices,hugetlb:{path}\n");
            prop_assert_eq!(membership::parse(v1.as_bytes(), "hugetlb"), Ok(Some((Version::V1, path.into()))));
        }

        #[test]
        fn mounts((root, mangled_root) in mangled(), (point, mangled_point) in mangled(), below in "[a-z]{1,8}(/[a-z]{1,8}){0,3}") {
            let group = root.join(&below);
            let text = format!(
                "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 {mangled_root} {mangled_point} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
            );
            let visible = mount::parse(text.as_bytes(), Version::V2, "hugetlb", &group);
            let visible = visible.expect("mounts").expect("a mount");
            prop_assert_eq!((visible.mount.point, visible.below), (point, PathBuf::from(below)));
            prop_assert_eq!(mount::parse(text.as_bytes(), Version::V2, "hugetlb", Path::new("relative")).ok(), Some(None));
            prop_assert_eq!(mount::parse(text.as_bytes(), Version::V1, "hugetlb", &group).ok(), Some(None));
        }
    }
}

mod sizes {
    use super::*;

    proptest! {
        #[test]
        fn required_pages_hold_the_bytes_with_less_than_a_page_of_waste(bytes in number(), page in page_bytes()) {
            let pages = pages_required(bytes, page);
            let held = u128::from(pages) * u128::from(page);
            let needed = u128::from(bytes);
            prop_assert!(held >= needed && held - needed < u128::from(page));
            let _ = bytes_of_one(bytes, page);
        }

        #[test]
        fn sizes_are_rendered_within_five_percent(bytes in number()) {
            let text = host::units::Bytes(bytes).to_string();
            let (figure, unit) = text.split_once(' ').expect("a figure and a unit");
            let shift = match unit {
                "bytes" => 0,
                "kB" => 10,
                "MB" => 20,
                "GB" => 30,
                "TB" => 40,
                _ => return Err(TestCaseError::fail(text)),
            };
            let rendered = figure.parse::<u128>().expect("a number") << shift;
            prop_assert!(rendered.abs_diff(bytes.into()) <= u128::from(bytes / 20), "{}", text);
        }
    }
}

mod restarts {
    use super::*;

    /// A pool with consistent counters: reserved pages are free, and surplus pages are in use or
    /// reserved.
    #[derive(Debug, Clone, Copy)]
    struct Kept {
        page_bytes: u64,
        in_use: u64,
        reserved: u64,
        nr_hugepages: u64,
        overcommit: u64,
    }

    impl Kept {
        fn pool(self) -> Pool {
            let total = self.nr_hugepages.max(self.in_use + self.reserved);
            Pool {
                page_bytes: self.page_bytes,
                total,
                free: total - self.in_use,
                reserved: self.reserved,
                surplus: total - self.nr_hugepages,
                overcommit: self.overcommit,
                demote_bytes: None,
                below_zero: Vec::new(),
            }
        }
    }

    prop_compose! {
        /// A pool, and a server that has all, some or none of the committed pages.
        fn kept()(page_bytes in prop::sample::select(vec![2_u64 << 20, 1 << 30]), in_use in 0..1000_u64, reserved in 0..1000_u64,
                  nr_hugepages in 0..3000_u64, overcommit in prop_oneof![Just(0), 0..1000_u64])
            (kept in Just(Kept { page_bytes, in_use, reserved, nr_hugepages, overcommit }), own in 0..=in_use + reserved) -> (Kept, u64) {
            (kept, own)
        }
    }

    fn facts(pools: Vec<Pool>, segment: Segment, stated_bytes: u64) -> Facts {
        let server = Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: stated_bytes,
        };
        Facts::unread(State {
            base_page_bytes: 4096,
            segment: Ok(segment),
            meminfo: Ok(Meminfo {
                total_bytes: Some(1 << 40),
                default_huge_page_bytes: pools.first().map(|pool| pool.page_bytes),
            }),
            pools: Ok(pools),
            hugetlb: Ok(Hugetlb {
                version: Version::V2,
                groups: Vec::new(),
                counts_as_memory: false,
            }),
            ..State::unread(server)
        })
    }

    /// A forecast for a server with `own` pages of the pool. 0: its segment is on small pages.
    fn forecast(kept: Kept, own: u64, stated_bytes: u64) -> Forecast {
        let on_huge_pages = Segment {
            bytes: own * kept.page_bytes,
            page_bytes: Some(kept.page_bytes),
            mappings: 1,
        };
        let on_small_pages = Segment {
            bytes: stated_bytes,
            page_bytes: Some(4096),
            mappings: 1,
        };
        let segment = if own > 0 {
            on_huge_pages
        } else {
            on_small_pages
        };
        let facts = facts(vec![kept.pool()], segment, stated_bytes);
        Forecast::for_target(&Machine::new(facts)).expect("a pool")
    }

    proptest! {
        #[test]
        fn recommended_pages_are_enough_and_one_less_is_not((kept, own) in kept(), stated_bytes in 1..4_u64 << 40) {
            let now = forecast(kept, own, stated_bytes);
            let recommended = now.recommended().expect("a number").0;
            let with = |nr_hugepages| forecast(Kept { nr_hugepages, ..kept }, own, stated_bytes);
            let enough = with(recommended);
            prop_assert_eq!(enough.shortfall, Some(Pages(0)));
            prop_assert_eq!(enough.fits_after_restart, Some(true));
            prop_assert_eq!(enough.recommended(), Some(Pages(recommended)));
            if kept.overcommit == 0 {
                let short = with(recommended - 1);
                prop_assert_eq!(short.shortfall, Some(Pages(1)));
                prop_assert_eq!(short.fits_after_restart, Some(false));
            }
        }

        #[test]
        fn adding_the_shortfall_is_enough((kept, own) in kept(), stated_bytes in 1..4_u64 << 40) {
            // Surplus pages beyond overcommit, which exist after the pool was made smaller, become
            // persistent first.
            let overcommit = kept.overcommit.max(kept.pool().surplus);
            let kept = Kept { overcommit, ..kept };
            let now = forecast(kept, own, stated_bytes);
            let shortfall = now.shortfall.expect("a number").0;
            // It is uncertain whether the kernel can allocate surplus pages.
            prop_assert_eq!(now.fits_after_restart != Some(false), shortfall == 0);
            prop_assert!(shortfall > 0 || kept.overcommit > 0 || now.fits_after_restart == Some(true));
            prop_assert!(shortfall <= now.required.0);
            let nr_hugepages = kept.nr_hugepages + shortfall;
            prop_assert_eq!(forecast(Kept { nr_hugepages, ..kept }, own, stated_bytes).shortfall, Some(Pages(0)));
        }

        #[test]
        fn pages_are_neither_lost_nor_counted_twice((kept, own) in kept(), stated_bytes in 1..4_u64 << 40) {
            let now = forecast(kept, own, stated_bytes);
            let pool = &now.pool;
            prop_assert_eq!(now.held, Some(Pages(own)));
            let committed = pool.committed().expect("a number");
            let available = pool.available().expect("a number");
            prop_assert_eq!(own + now.others.expect("a number").0, committed);
            prop_assert_eq!(committed, kept.in_use + kept.reserved);
            prop_assert_eq!(pool.persistent(), kept.nr_hugepages);
            prop_assert!(available <= pool.free + pool.overcommit);
            prop_assert!(available <= pool.total - committed + pool.overcommit);
            prop_assert!(now.tail_waste.0 < pool.page_bytes);
        }
    }

    prop_compose! {
        fn any_pool(target: u64)(page_bytes in prop_oneof![Just(target), page_bytes()], total in number(), free in number(), reserved in number(), surplus in number(), overcommit in number()) -> Pool {
            Pool { page_bytes, total, free, reserved, surplus, overcommit, demote_bytes: None, below_zero: Vec::new() }
        }
    }

    prop_compose! {
        fn any_limits(page_bytes: u64)(fault_limit in prop::option::of(number()), fault_use in prop::option::of(number()),
                      reservation_limit in prop::option::of(number()), reservation_use in prop::option::of(number())) -> Limits {
            Limits { page_bytes, fault_limit, fault_use, reservation_limit, reservation_use }
        }
    }

    prop_compose! {
        fn any_facts()(target in page_bytes())
            (target in Just(target), pools in prop::collection::vec(any_pool(target), 0..3), limits in prop::collection::vec(any_limits(target), 0..3),
             segment in prop::option::of((number(), prop::option::of(prop_oneof![Just(4096), Just(target), number()]))),
             huge_pages in prop::sample::select(vec![HugePages::Off, HugePages::On, HugePages::Try]),
             shared_memory_type in prop::sample::select(vec![SharedMemoryType::Mmap, SharedMemoryType::Sysv]),
             shared_memory_bytes in number(), total_bytes in prop::option::of(number()), is_set in any::<bool>()) -> Facts {
            let absent = || Absent { path: "/proc/4711/maps".into(), why: Absence::Missing };
            let segment = segment.map(|(bytes, page_bytes)| Segment { bytes, page_bytes, mappings: 1 });
            let server = Server {
                huge_pages,
                shared_memory_type,
                huge_page_size_bytes: is_set.then_some(target),
                shared_memory_bytes,
            };
            Facts::unread(State {
                base_page_bytes: 4096,
                segment: segment.ok_or_else(absent),
                meminfo: Ok(Meminfo { total_bytes, default_huge_page_bytes: Some(target) }),
                pools: if pools.is_empty() { Err(absent()) } else { Ok(pools) },
                hugetlb: Ok(Hugetlb {
                    version: Version::V1,
                    groups: vec![Group { directory: "/sys/fs/cgroup/hugetlb/pg".into(), limits, is_told: false, is_set_outside: false }],
                    counts_as_memory: false,
                }),
                ..State::unread(server)
            })
        }
    }

    proptest! {
        #[test]
        fn any_counters_get_a_verdict(facts in any_facts()) {
            let machine = Machine::new(facts);
            let verdict = answer::verdict(&machine);
            prop_assert!(!verdict.reason.is_empty());
            for forecast in Forecast::for_each_pool(&machine).unwrap_or_default() {
                let _ = forecast.pool.available();
                let page = forecast.pool.page_bytes;
                // PostgreSQL first rounds up to the size in its setting, such as 1536 kB for 2 MB.
                let set = machine.next_start_on_huge_pages().huge_page_size_bytes.filter(|&set| set < page && page % set > 0);
                prop_assert!(forecast.tail_waste.0 < page.saturating_add(set.unwrap_or(0)));
                let _ = plan::how_to_set(&machine, PageSize(page));
                let wanted = u128::from(forecast.pool.committed().expect("a number")) + u128::from(forecast.required.0);
                let is_plenty = u128::from(forecast.pool.persistent()) >= wanted;
                if let Some(shortfall) = forecast.shortfall {
                    prop_assert!(shortfall <= forecast.required);
                    prop_assert!(shortfall == Pages(0) || !is_plenty);
                }
            }
        }
    }
}
