//! A host of which nothing is known but its RAM and its huge page sizes.

use crate::{
    linux::{error::Absent, hugepages::Pool, meminfo::Meminfo, process::segment::Segment},
    model::machine::Machine,
    server::facts::{AllowedNodes, Facts, Server},
};

/// With empty pools of these sizes, where that server is to start for the first time. Without a
/// default nobody can tell which size a start asks for that names none.
pub fn machine(
    next: Server,
    base_page_bytes: u64,
    ram_bytes: Option<u64>,
    default_page_bytes: Option<u64>,
    page_sizes_bytes: &[u64],
) -> Machine {
    let mut sizes = page_sizes_bytes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let pool = |page_bytes| Pool {
        page_bytes,
        total: 0,
        free: 0,
        reserved: 0,
        surplus: 0,
        overcommit: 0,
    };
    let facts = Facts {
        server: next.clone(),
        planned: Some(next),
        base_page_bytes,
        segment: Ok(Segment {
            bytes: 0,
            page_bytes: Some(base_page_bytes),
            mappings: 0,
        }),
        meminfo: Ok(Meminfo {
            total_bytes: ram_bytes,
            default_huge_page_bytes: default_page_bytes,
        }),
        pools: Ok(sizes.into_iter().map(pool).collect()),
        hugetlb: Err(Absent::not_looked_at()),
        misread_limits: Vec::new(),
        allowed_nodes: AllowedNodes::All,
    };
    Machine::new(facts, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        advice::how_to_set,
        model::forecast::Forecast,
        server::facts::{HugePages, SharedMemoryType},
    };

    const GB: u64 = 1 << 30;

    fn server(huge_page_size_bytes: Option<u64>) -> Server {
        Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes,
            shared_memory_bytes: 64 * GB + 1,
        }
    }

    fn of(ram_bytes: Option<u64>) -> Vec<(Forecast, Option<String>)> {
        let machine = machine(server(None), 4096, ram_bytes, Some(GB), &[GB, 2 << 20]);
        let forecasts = Forecast::of_each_pool(&machine).unwrap_or_default();
        forecasts
            .into_iter()
            .map(|forecast| {
                let how = how_to_set(&machine, &forecast.pool);
                (forecast, how)
            })
            .collect()
    }

    #[test]
    fn what_fits_is_set() {
        for ram in [Some(256 * GB), None] {
            let [small, large] = of(ram).try_into().unwrap_or_else(|_| panic!("two sizes"));
            assert_eq!(small.0.recommended, Some(32769));
            assert_eq!(large.0.recommended, Some(65));
            assert_eq!(large.0.is_default, Some(true));
            assert_eq!(large.1.as_deref(), Some("sysctl -w vm.nr_hugepages=65"));
            let echo = "echo 32769 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
            assert_eq!(small.1.as_deref(), Some(echo));
        }
    }

    #[test]
    fn no_size_is_taken_for_the_default() {
        let aimed = |asked_for, default| {
            let sizes = [64 << 10, 2 << 20, 32 << 20];
            machine(server(asked_for), 4096, None, default, &sizes).aimed_page_bytes()
        };
        for lacking in [None, Some(16 << 20)] {
            assert_eq!(aimed(lacking, None), None);
            assert_eq!(aimed(lacking, Some(2 << 20)), Some(2 << 20));
        }
        assert_eq!(aimed(Some(32 << 20), None), Some(32 << 20));
    }

    #[test]
    fn what_is_too_large_is_said() {
        let how = of(Some(64 * GB)).remove(0).1.unwrap_or_default();
        assert!(
            how.starts_with("lower shared_buffers or add memory"),
            "{how}"
        );
    }
}
