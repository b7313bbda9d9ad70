//! `/proc/vmstat`: counters of the kernel's memory management (mm/vmstat.c).

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number, split_once},
};

/// All counters, in the kernel's order. Which there are depends on the kernel's version and how it
/// was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vmstat {
    counters: Vec<(String, u64)>,
}

impl Vmstat {
    /// The counter of that name. `None`: this kernel has none.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.counters.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| *value)
    }

    /// Name and value of each.
    pub fn counters(&self) -> &[(String, u64)] {
        &self.counters
    }
}

/// What a counter is about, by its name: `thp`, `huge_pages`, `compaction`, `swap`, `numa`,
/// `reclaim`, `faults`, or `other`, which newer kernels' new counters may be, too.
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
    const PATH: &str = "proc/vmstat";
    root.parse(PATH, "a name and a number were expected", parse)
}

/// `pgmajfault 123` in each line. Errors: the number of a line of another form.
pub fn parse(bytes: &[u8]) -> Result<Vmstat, usize> {
    let counters = lines(bytes).map(|(number, line)| {
        let (name, value) = split_once(line, b' ').ok_or(number)?;
        let name = str::from_utf8(name).ok().filter(|name| !name.is_empty());
        Ok((
            name.ok_or(number)?.to_owned(),
            parse_number(value).ok_or(number)?,
        ))
    });
    Ok(Vmstat {
        counters: counters.collect::<Result<_, usize>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_by_name_and_in_order() {
        let vmstat = parse(
            b"nr_free_pages 3395814\nhtlb_buddy_alloc_fail 7\npgmajfault 18446744073709551615\n",
        )
        .expect("counters");
        let names: Vec<_> = vmstat.counters().iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            ["nr_free_pages", "htlb_buddy_alloc_fail", "pgmajfault"]
        );
        assert_eq!(vmstat.get("htlb_buddy_alloc_fail"), Some(7));
        assert_eq!(vmstat.get("pgmajfault"), Some(u64::MAX));
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
    fn the_line_is_named() {
        for line in ["b", "b ", " 1", "b -1", "b 1 kB", "b 18446744073709551616"] {
            assert_eq!(parse(format!("a 1\n{line}\n").as_bytes()), Err(2), "{line}");
        }
        assert_eq!(parse(b""), Ok(Vmstat::default()));
    }
}
