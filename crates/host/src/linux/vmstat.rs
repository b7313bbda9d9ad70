//! `/proc/vmstat`: counters of the kernel's memory management (mm/vmstat.c).

use crate::linux::{
    error::ReadError,
    mounts::of_machine,
    root::Root,
    text::{lines, parse_counter, split_once},
};

pub(crate) const PATH: &str = "/proc/vmstat";

/// All counters, in the kernel's order. The set depends on the kernel's version and build options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vmstat {
    counters: Vec<(String, Option<u64>)>,
}

impl Vmstat {
    /// A counter by its name. `None`: this kernel does not have it, or it is below zero.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.counters.iter().find(|(n, _)| n == name);
        found.and_then(|(_, value)| *value)
    }

    /// Names and values. `None`: the value is below zero, or not a number.
    pub fn counters(&self) -> &[(String, Option<u64>)] {
        &self.counters
    }
}

/// The topic of a counter, derived from its name: `thp`, `huge_pages`, `compaction`, `swap`,
/// `numa`, `reclaim`, `faults` or `other`. New counters of newer kernels can also be `other`.
pub fn topic(name: &str) -> &'static str {
    const TOPICS: [(&str, &[&str]); 7] = [
        (
            "thp",
            &[
                "thp_",
                "nr_anon_transparent_hugepages",
                "nr_file_hugepages",
                "nr_file_pmdmapped",
                "nr_shmem_hugepages",
                "nr_shmem_pmdmapped",
            ],
        ),
        ("huge_pages", &["htlb_", "cma_"]),
        ("compaction", &["compact_", "pgmigrate_"]),
        (
            "swap",
            &[
                "pswp",
                "swap_",
                "swpin_",
                "swpout_",
                "zswp",
                "nr_swapcached",
            ],
        ),
        ("numa", &["numa_", "pgpromote_", "pgdemote_"]),
        ("faults", &["pgfault", "pgmajfault"]),
        (
            "reclaim",
            &[
                "allocstall_",
                "drop_",
                "kswapd_",
                "nr_vmscan_",
                "oom_kill",
                "pageoutrun",
                "pgactivate",
                "pgdeactivate",
                "pginodesteal",
                "pglazyfree",
                "pgrefill",
                "pgrotated",
                "pgscan_",
                "pgskip_",
                "pgsteal_",
                "slabs_scanned",
                "workingset_",
                "zone_reclaim_",
            ],
        ),
    ];
    let is_about = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let found = TOPICS.iter().find(|(_, starts)| is_about(starts));
    found.map_or("other", |(topic, _)| topic)
}

/// Reads the file.
pub fn read(root: &Root) -> Result<Vmstat, ReadError> {
    let read = root.read_filled(PATH);
    Ok(parse(&of_machine(root, read)?))
}

/// Parses lines such as `pgmajfault 123`.
pub fn parse(bytes: &[u8]) -> Vmstat {
    let counter = |line| {
        let (name, value) = split_once(line, b' ').unwrap_or((line, b""));
        let name = String::from_utf8_lossy(name).into_owned();
        (name, parse_counter(value))
    };
    Vmstat {
        counters: lines(bytes).map(|(_, line)| counter(line)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_by_name_and_in_order() {
        let vmstat = parse(b"nr_free_pages 3395814\nhtlb_buddy_alloc_fail 7\npgmajfault 0\n");
        let names: Vec<_> = vmstat.counters().iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            ["nr_free_pages", "htlb_buddy_alloc_fail", "pgmajfault"]
        );
        assert_eq!(vmstat.get("htlb_buddy_alloc_fail"), Some(7));
        assert_eq!(vmstat.get("pgmajfault"), Some(0));
        assert_eq!(vmstat.get("thp_fault_alloc"), None);
    }

    #[test]
    fn each_counter_has_a_topic() {
        for (name, expected) in [
            ("thp_fault_fallback", "thp"),
            ("nr_anon_transparent_hugepages", "thp"),
            ("htlb_buddy_alloc_fail", "huge_pages"),
            ("compact_stall", "compaction"),
            ("pgmigrate_success", "compaction"),
            ("pswpin", "swap"),
            ("swap_ra_hit", "swap"),
            ("numa_foreign", "numa"),
            ("pgpromote_success", "numa"),
            ("allocstall_movable", "reclaim"),
            ("pgscan_direct", "reclaim"),
            ("oom_kill", "reclaim"),
            ("pgmajfault", "faults"),
            ("nr_dirty", "other"),
            ("", "other"),
            ("xthp_", "other"),
        ] {
            assert_eq!(topic(name), expected, "{name}");
        }
    }

    #[test]
    fn invalid_counter_has_a_name_but_no_value() {
        for line in ["b", "b ", "b -1", "b 1 kB", "b 18446744073709551615"] {
            let vmstat = parse(format!("a 1\n{line}\nc 2\n").as_bytes());
            let counter = |name: &str, value| (name.to_owned(), value);
            let expected = [
                counter("a", Some(1)),
                counter("b", None),
                counter("c", Some(2)),
            ];
            assert_eq!(vmstat.counters(), expected, "{line}");
            assert_eq!(vmstat.get("b"), None, "{line}");
        }
        assert_eq!(parse(b""), Vmstat::default());
    }
}
