//! Each verdict: when it is given, and that reason and remedy name the figures.

#![allow(clippy::expect_used)]

mod scene;

use hugeinfo::{
    advice::{
        check::Status,
        checks::{Verdict, verdict},
    },
    linux::{cgroup::Limits, hugepages::Pool, meminfo::Meminfo, process::segment::Segment},
    model::forecast::Forecast,
    server::facts::{Facts, HugePages, Server, SharedMemoryType},
};

use scene::*;

#[track_caller]
fn expect(verdict: &Verdict, status: Status, in_reason: &[&str], remedy: Option<&str>) {
    assert_eq!(verdict.status, status, "{verdict:?}");
    for part in in_reason {
        assert!(
            verdict.reason.contains(part),
            "{part:?} is not in {:?}",
            verdict.reason
        );
    }
    assert_eq!(verdict.remedy.as_deref(), remedy);
}

#[test]
fn on_huge_pages_and_fine() {
    let answer = verdict(&healthy());
    assert_eq!(
        answer.reason,
        "main segment of 1074 MB lies on 537 huge pages of 2 MB; a restart would get them again; no pool holds more than is needed"
    );
    expect(&answer, Status::Ok, &[], None);
}

#[test]
fn a_few_pages_too_many_are_mentioned() {
    let mut facts = healthy();
    pool(&mut facts, 0).total += 63;
    pool(&mut facts, 0).free += 63;
    expect(
        &verdict(&facts),
        Status::Ok,
        &["63 huge pages of 2 MB (126 MB) are needed by nobody"],
        None,
    );
}

#[test]
fn an_oversized_pool() {
    let mut facts = healthy();
    pool(&mut facts, 0).total += 1000;
    pool(&mut facts, 0).free += 1000;
    expect(
        &verdict(&facts),
        Status::Warning,
        &["1000 huge pages of 2 MB (2000 MB) are needed by nobody"],
        Some("sysctl -w vm.nr_hugepages=537"),
    );
}

#[test]
fn an_oversized_pool_of_another_size() {
    let mut facts = healthy();
    *pool(&mut facts, 1) = Pool {
        total: 8,
        free: 6,
        ..pool(&mut facts, 1).clone()
    };
    expect(
        &verdict(&facts),
        Status::Warning,
        &["6 huge pages of 1 GB (6 GB)"],
        Some("echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"),
    );
}

#[test]
fn fallback_because_the_pool_is_short() {
    expect(
        &verdict(&fallen_back(500)),
        Status::Warning,
        &[
            "huge_pages = try fell back",
            "1073 MB",
            "4 kB",
            "537 huge pages of 2 MB",
            "can give 500",
            "37 too few",
        ],
        Some("sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"),
    );
}

#[test]
fn fallback_because_others_hold_the_pool() {
    let mut facts = fallen_back(600);
    *pool(&mut facts, 0) = Pool {
        reserved: 100,
        ..pool(&mut facts, 0).clone()
    };
    expect(
        &verdict(&facts),
        Status::Warning,
        &["can give 500", "37 too few"],
        Some("sysctl -w vm.nr_hugepages=637; then restart PostgreSQL"),
    );
}

#[test]
fn fallback_because_the_pool_has_pages_of_another_size() {
    let mut facts = fallen_back(0);
    *pool(&mut facts, 1) = Pool {
        total: 2,
        free: 2,
        ..pool(&mut facts, 1).clone()
    };
    expect(
        &verdict(&facts),
        Status::Warning,
        &["can give 0", "pages of another size would suffice: 1 GB"],
        Some(
            "sysctl -w vm.nr_hugepages=537; then restart PostgreSQL; or ALTER SYSTEM SET huge_page_size = '1GB'; then restart PostgreSQL",
        ),
    );
}

#[test]
fn fallback_because_the_kernel_lacks_the_size() {
    let mut facts = fallen_back(600);
    facts.server.huge_page_size_bytes = Some(16 * MB);
    expect(
        &verdict(&facts),
        Status::Warning,
        &[
            "huge pages of 16 MB are asked for",
            "the kernel has 2 MB, 1 GB",
        ],
        Some("ALTER SYSTEM SET huge_page_size = 0; then restart PostgreSQL"),
    );
    assert_eq!(Forecast::target_fits_after_restart(&facts), Some(false));
}

#[test]
fn sysv_cannot() {
    let mut facts = fallen_back(0);
    facts.server.shared_memory_type = SharedMemoryType::Sysv;
    expect(
        &verdict(&facts),
        Status::Warning,
        &["shared_memory_type = sysv"],
        Some(
            "ALTER SYSTEM SET shared_memory_type = 'mmap'; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL",
        ),
    );
}

#[test]
fn switched_off() {
    let mut facts = fallen_back(537);
    facts.server.huge_pages = HugePages::Off;
    let answer = verdict(&facts);
    expect(
        &answer,
        Status::Warning,
        &["1073 MB", "4 kB", "huge_pages = off"],
        Some("ALTER SYSTEM SET huge_pages = 'try'; then restart PostgreSQL"),
    );
    assert!(!answer.reason.contains("fell back"));
}

#[test]
fn fallback_because_of_the_reservation_limit() {
    let mut facts = fallen_back(600);
    limited(&mut facts, None, Some(100));
    expect(
        &verdict(&facts),
        Status::Warning,
        &["/sys/fs/cgroup/pg allows reserving 100 MB", "1074 MB"],
        Some(
            "echo 1126170624 > '/sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max'; in Kubernetes raise the pod's limit on huge pages instead; then restart PostgreSQL",
        ),
    );
}

#[test]
fn fallback_on_a_kernel_without_huge_pages() {
    let mut facts = fallen_back(0);
    facts.pools = Err(missing("/sys/kernel/mm/hugepages"));
    facts.meminfo = Ok(Meminfo {
        total_bytes: Some(64 * GB),
        default_huge_page_bytes: None,
    });
    expect(&verdict(&facts), Status::Warning, &["no huge pages"], None);
}

#[test]
fn fallback_whose_cause_has_gone() {
    expect(
        &verdict(&fallen_back(537)),
        Status::Warning,
        &["too few huge pages when the server started"],
        Some("restart PostgreSQL"),
    );
}

#[test]
fn a_restart_would_lose_them() {
    let mut facts = healthy();
    // nr_hugepages was lowered to 100 under the running server.
    pool(&mut facts, 0).surplus = 437;
    expect(
        &verdict(&facts),
        Status::Warning,
        &[
            "a restart would lose huge pages",
            "can give 100",
            "437 too few",
        ],
        Some("sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"),
    );
    facts.server.huge_pages = HugePages::On;
    expect(
        &verdict(&facts),
        Status::Critical,
        &["a restart would fail", "437 too few"],
        Some("sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"),
    );
}

#[test]
fn surplus_pages_come_back_as_far_as_overcommit_allows() {
    let mut facts = healthy();
    *pool(&mut facts, 0) = Pool {
        surplus: 537,
        overcommit: 600,
        ..pool(&mut facts, 0).clone()
    };
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!(
        (forecast.shortfall, forecast.fits_after_restart),
        (Some(0), Some(true))
    );
    pool(&mut facts, 0).overcommit = 500;
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!(
        (forecast.shortfall, forecast.fits_after_restart),
        (Some(37), Some(false))
    );
    // Surplus pages that others hold are theirs, and stay.
    *pool(&mut facts, 0) = Pool {
        total: 637,
        surplus: 637,
        overcommit: 0,
        ..pool(&mut facts, 0).clone()
    };
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!(
        (forecast.others, forecast.shortfall),
        (Some(100), Some(537))
    );
}

#[test]
fn the_time_bomb() {
    let mut facts = healthy();
    limited(&mut facts, Some(100), None);
    expect(
        &verdict(&facts),
        Status::Critical,
        &[
            "/sys/fs/cgroup/pg lets 100 MB of 2 MB pages be touched",
            "1074 MB are mapped",
            "SIGBUS",
        ],
        Some(
            "echo 1126170624 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn a_limit_that_holds_the_segment_exactly_is_no_bomb() {
    let mut facts = healthy();
    limited(&mut facts, Some(1074), Some(1074));
    expect(&verdict(&facts), Status::Ok, &[], None);
}

#[test]
fn a_bomb_that_others_in_the_group_help_to_fill() {
    let mut facts = healthy();
    limited(&mut facts, Some(1100), None);
    let group = &mut facts.hugetlb.as_mut().expect("cgroup").groups[0];
    group.limits[0].reservation_use = Some(1174 * MB);
    expect(
        &verdict(&facts),
        Status::Critical,
        &["1100 MB", "1174 MB"],
        Some(
            "echo 1231028224 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn a_bomb_that_a_restart_would_arm() {
    let mut facts = fallen_back(537);
    limited(&mut facts, Some(100), None);
    expect(
        &verdict(&facts),
        Status::Warning,
        &["after a restart the server would break"],
        Some(
            "echo 1126170624 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
    // Whatever else is in the way, its remedy ends in a restart and must not arm it.
    let raise = "echo 1126170624 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead";
    pool(&mut facts, 0).total = 10;
    pool(&mut facts, 0).free = 10;
    let reason = [
        "527 too few",
        "/sys/fs/cgroup/pg would let 100 MB be touched of 1074 MB",
    ];
    let remedy = format!("{raise}; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL");
    expect(&verdict(&facts), Status::Warning, &reason, Some(&remedy));

    facts.server.huge_pages = HugePages::Off;
    let remedy = format!(
        "{raise}; ALTER SYSTEM SET huge_pages = 'try'; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"
    );
    expect(
        &verdict(&facts),
        Status::Warning,
        &["huge_pages = off", "100 MB"],
        Some(&remedy),
    );

    facts = fallen_back(537);
    limited(&mut facts, Some(100), Some(100));
    let remedy = format!(
        "{raise}; {}; then restart PostgreSQL",
        raise.replace("2MB.max", "2MB.rsvd.max")
    );
    expect(
        &verdict(&facts),
        Status::Warning,
        &["allows reserving 100 MB", "100 MB be touched"],
        Some(&remedy),
    );
}

#[test]
fn a_size_that_a_control_group_limits_is_not_recommended() {
    let mut facts = fallen_back(0);
    *pool(&mut facts, 1) = Pool {
        total: 2,
        free: 2,
        ..pool(&mut facts, 1).clone()
    };
    limited(&mut facts, None, None);
    let limits = &mut facts.hugetlb.as_mut().expect("cgroup").groups[0].limits;
    let of_2mb = limits[0].clone();
    limits.push(Limits {
        page_bytes: GB,
        fault_limit: Some(0),
        ..of_2mb
    });
    let answer = verdict(&facts);
    expect(
        &answer,
        Status::Warning,
        &["537 too few"],
        Some("sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"),
    );
    assert!(!answer.reason.contains("1 GB"), "{}", answer.reason);
}

#[test]
fn others_count_where_the_kernel_counts_no_promises() {
    let mut facts = fallen_back(537);
    limited(&mut facts, Some(1200), None);
    let limits = &mut facts.hugetlb.as_mut().expect("cgroup").groups[0].limits[0];
    limits.reservation_use = None;
    limits.fault_use = Some(1000 * MB);
    expect(
        &verdict(&facts),
        Status::Warning,
        &["1200 MB", "2074 MB"],
        Some(
            "echo 2174746624 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn the_largest_idle_pool_may_not_be_the_one_that_matters() {
    let mut facts = healthy();
    facts.meminfo.as_mut().expect("meminfo").total_bytes = Some(128 * GB);
    facts.server.huge_page_size_bytes = Some(GB);
    facts.server.shared_memory_bytes = 100 * GB;
    facts.segment = Ok(Segment {
        bytes: 100 * GB,
        page_bytes: Some(GB),
        mappings: 1,
    });
    *pool(&mut facts, 1) = Pool {
        total: 105,
        free: 5,
        ..pool(&mut facts, 1).clone()
    };
    *pool(&mut facts, 0) = Pool {
        total: 2048,
        free: 2048,
        reserved: 0,
        ..pool(&mut facts, 0).clone()
    };
    expect(
        &verdict(&facts),
        Status::Warning,
        &["2048 huge pages of 2 MB (4 GB)"],
        Some("sysctl -w vm.nr_hugepages=0"),
    );
}

#[test]
fn idle_pages_cannot_be_judged_without_the_size_of_ram() {
    let mut facts = healthy();
    pool(&mut facts, 0).total += 10_000;
    pool(&mut facts, 0).free += 10_000;
    facts.meminfo.as_mut().expect("meminfo").total_bytes = None;
    expect(&verdict(&facts), Status::Unknown, &["MemTotal"], None);
}

#[test]
fn a_size_between_two_powers_of_two_is_rounded_up() {
    let mut facts = healthy();
    facts.server.huge_page_size_bytes = Some(1536 << 10);
    assert_eq!(facts.huge_page_asked_for(), Some(2 * MB));
    expect(
        &verdict(&facts),
        Status::Ok,
        &["537 huge pages of 2 MB"],
        None,
    );
    facts.server.huge_page_size_bytes = Some(3 * MB);
    assert_eq!(
        facts.huge_page_asked_for(),
        Some(3 * MB),
        "the kernel has no 4 MB either"
    );
}

#[test]
fn what_cannot_be_seen_is_unknown_never_ok() {
    type Blind = fn(&mut Facts);
    let cases: [(Blind, &str); 5] = [
        (
            |facts| facts.segment = Err(denied("/proc/4711/maps")),
            "/proc/4711/maps may not be read",
        ),
        (
            |facts| facts.segment.as_mut().expect("a segment").page_bytes = None,
            "page size",
        ),
        (
            |facts| facts.pools = Err(missing("/sys/kernel/mm/hugepages")),
            "/sys/kernel/mm/hugepages is missing",
        ),
        (
            |facts| facts.hugetlb = Err(denied("/proc/4711/cgroup")),
            "/proc/4711/cgroup may not be read",
        ),
        (
            |facts| facts.meminfo = Err(missing("/proc/meminfo")),
            "/proc/meminfo is missing",
        ),
    ];
    for (blind, why) in cases {
        let mut facts = healthy();
        blind(&mut facts);
        expect(&verdict(&facts), Status::Unknown, &[why], None);
    }
}

#[test]
fn everything_missing_at_once() {
    let mut facts = healthy();
    facts.segment = Err(missing("/proc/1/maps"));
    facts.meminfo = Err(missing("/proc/meminfo"));
    facts.pools = Err(missing("/sys/kernel/mm/hugepages"));
    facts.hugetlb = Err(missing("/proc/1/cgroup"));
    expect(&verdict(&facts), Status::Unknown, &[], None);
    assert!(Forecast::of_target(&facts).is_none());
}

#[test]
fn a_fallback_whose_cause_cannot_be_seen_is_still_a_fallback() {
    let mut facts = fallen_back(0);
    facts.pools = Err(denied("/sys/kernel/mm/hugepages"));
    expect(
        &verdict(&facts),
        Status::Warning,
        &["fell back", "may not be read"],
        None,
    );
}

#[test]
fn another_size_has_its_own_way_to_be_set() {
    let facts = healthy();
    let forecasts = Forecast::of_each_pool(&facts).expect("pools");
    assert_eq!(
        forecasts[0].how_to_set(&facts).as_deref(),
        Some(
            "sysctl -w vm.nr_hugepages=537; for the next boot, in /etc/sysctl.d/hugepages.conf: vm.nr_hugepages = 537"
        )
    );
    assert_eq!(
        forecasts[1].how_to_set(&facts).as_deref(),
        Some(
            "echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; for the next boot, on the kernel command line: hugepagesz=1G hugepages=2"
        )
    );

    let mut small_host = healthy();
    small_host.meminfo.as_mut().expect("meminfo").total_bytes = Some(1100 * MB);
    let forecasts = Forecast::of_each_pool(&small_host).expect("pools");
    assert_eq!(
        forecasts[0].how_to_set(&small_host).as_deref(),
        Some("lower shared_buffers: 537 huge pages of 2 MB would leave 26 MB of 1100 MB RAM")
    );
}

#[test]
fn terabytes_on_pages_of_a_gigabyte() {
    let mut facts = healthy();
    facts.server.huge_page_size_bytes = Some(GB);
    facts.segment = Ok(Segment {
        bytes: 3 << 40,
        page_bytes: Some(GB),
        mappings: 1,
    });
    facts.server.shared_memory_bytes = 3 << 40;
    *pool(&mut facts, 1) = Pool {
        total: 3072,
        free: 0,
        ..pool(&mut facts, 1).clone()
    };
    *pool(&mut facts, 0) = Pool {
        total: 0,
        free: 0,
        reserved: 0,
        ..pool(&mut facts, 0).clone()
    };
    expect(
        &verdict(&facts),
        Status::Ok,
        &["3 TB", "3072 huge pages of 1 GB"],
        None,
    );
}

#[test]
fn the_published_pool_of_72457_pages() {
    // 8402592 kB on a host whose pool was sized by VmPeak: total 72457, free 70919, reserved 70833.
    let mut facts = fallen_back(0);
    facts.segment = Ok(Segment {
        bytes: 8_402_592 << 10,
        page_bytes: Some(4096),
        mappings: 1,
    });
    facts.server.shared_memory_bytes = 8206 * MB;
    *pool(&mut facts, 0) = Pool {
        total: 72_457,
        free: 70_919,
        reserved: 70_833,
        ..pool(&mut facts, 0).clone()
    };
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!(forecast.required, 4103);
    assert_eq!(forecast.pool.available(), 86);
    assert_eq!(forecast.pool.committed(), 72_371);
}

#[test]
fn a_plan_counts_for_the_next_start_and_not_for_what_runs() {
    let mut facts = healthy();
    let larger = Server {
        shared_memory_bytes: 1076 * MB + 8192,
        ..facts.server.clone()
    };
    facts.planned = Some(larger);
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!(forecast.required, 539);
    assert_eq!(forecast.recommended, Some(539));
    assert_eq!(forecast.shortfall, Some(2));
    assert_eq!(forecast.own, Some(537));
    assert_eq!(forecast.fits_after_restart, Some(false));

    let on_large_pages = Server {
        huge_page_size_bytes: Some(GB),
        ..facts.server.clone()
    };
    facts.planned = Some(on_large_pages);
    let forecast = Forecast::of_target(&facts).expect("a pool");
    assert_eq!((forecast.pool.page_bytes, forecast.required), (GB, 2));
    assert_eq!(facts.huge_page_in_use(), Some(Some(2 * MB)));
}
