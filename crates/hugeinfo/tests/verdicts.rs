//! The answer for the whole server, and the forecasts that it rests on. What each check says of
//! which machine: see checks.

#![allow(clippy::expect_used)]

mod scene;

use hugeinfo::{
    advice::{
        check::Status,
        diagnosis::{self, Verdict},
        how_to_set,
    },
    linux::{hugepages::Pool, process::segment::Segment},
    model::forecast::Forecast,
    server::{
        facts::{Facts, HugePages, Server},
        surroundings::Files,
    },
};

use scene::*;

#[track_caller]
fn expect(
    (verdict, typed): &(Verdict, Option<String>),
    status: Status,
    in_reason: &[&str],
    remedy: Option<&str>,
) {
    assert_eq!(verdict.status, status, "{verdict:?}");
    for part in in_reason {
        assert!(
            verdict.reason.contains(part),
            "{part:?} is not in {:?}",
            verdict.reason
        );
    }
    assert_eq!(typed.as_deref(), remedy);
}

#[test]
fn on_huge_pages_and_fine() {
    let answer = answer(&healthy());
    assert_eq!(
        answer.0.reason,
        "main segment of 1074 MB is on 537 huge pages of 2 MB; a restart would get them again; no pool holds unused pages"
    );
    expect(&answer, Status::Ok, &[], None);
}

#[test]
fn a_few_pages_too_many_are_mentioned() {
    let mut facts = healthy();
    pool(&mut facts, 0).total += 63;
    pool(&mut facts, 0).free += 63;
    expect(
        &answer(&facts),
        Status::Ok,
        &["the pool holds 63 huge pages of 2 MB (126 MB) that nobody uses"],
        None,
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
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
    assert_eq!(
        (forecast.shortfall, forecast.fits_after_restart),
        (Some(0), None)
    );
    pool(&mut facts, 0).overcommit = 500;
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
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
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
    assert_eq!(
        (forecast.others, forecast.shortfall),
        (Some(100), Some(537))
    );
}

#[test]
fn a_size_between_two_powers_of_two_is_rounded_up() {
    let mut facts = healthy();
    facts.server.huge_page_size_bytes = Some(1536 << 10);
    assert_eq!(facts.huge_page_asked_for(), Some(2 * MB));
    expect(
        &answer(&facts),
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
fn what_was_rounded_up_to_such_a_size_takes_as_many_pages_again() {
    let mut facts = healthy();
    facts.server.huge_page_size_bytes = Some(1536 << 10);
    let mut lies_on = |pages: u64, stated_mb: u64| {
        facts.segment.as_mut().expect("a segment").bytes = pages * 2 * MB;
        facts.server.shared_memory_bytes = stated_mb * MB;
        facts.clone()
    };
    // 1081.25 MB, of which PostgreSQL says 1082 MB: those alone would be 542 pages.
    let forecast = Forecast::of_target(&machine(&lies_on(541, 1082))).expect("a pool");
    assert_eq!(forecast.required, 541);
    // 1083.5 MB: without the first rounding these would be 542 pages.
    let facts = lies_on(543, 1084);
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
    assert_eq!(forecast.required, 543);
    let next = Server {
        shared_memory_bytes: 2167 * MB / 2,
        ..facts.server.clone()
    };
    assert!(facts.is_as_now(&next));
}

#[test]
fn of_two_that_are_equally_bad_the_first() {
    let mut facts = fallen_back(500);
    expect(
        &answer(&facts),
        Status::Warning,
        &["fell back", "37 too few"],
        Some("sysctl -w vm.nr_hugepages=537; then restart PostgreSQL"),
    );
    facts.server.huge_pages = HugePages::Off;
    let answer = answer(&facts);
    expect(
        &answer,
        Status::Warning,
        &["huge_pages = off"],
        Some(
            "ALTER SYSTEM SET huge_pages = 'try'; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL",
        ),
    );
    assert!(!answer.0.reason.contains("fell back"));
}

#[test]
fn and_the_worst_before_all_others() {
    let mut facts = healthy();
    // The pool was lowered to 100 under the running server.
    pool(&mut facts, 0).surplus = 437;
    let remedy = Some("sysctl -w vm.nr_hugepages=537");
    let reason = ["a restart would lose huge pages", "437 too few"];
    expect(&answer(&facts), Status::Warning, &reason, remedy);
    facts.server.huge_pages = HugePages::On;
    let reason = ["a restart would fail", "437 too few"];
    expect(&answer(&facts), Status::Critical, &reason, remedy);
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
            "PROCMAP_QUERY",
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
        expect(&answer(&facts), Status::Unknown, &[why], None);
    }
}

#[test]
fn everything_missing_at_once() {
    let mut facts = healthy();
    facts.segment = Err(missing("/proc/1/maps"));
    facts.meminfo = Err(missing("/proc/meminfo"));
    facts.pools = Err(missing("/sys/kernel/mm/hugepages"));
    facts.hugetlb = Err(missing("/proc/1/cgroup"));
    expect(&answer(&facts), Status::Unknown, &[], None);
    assert!(Forecast::of_target(&machine(&facts)).is_none());
}

#[test]
fn another_size_has_its_own_way_to_be_set() {
    let facts = healthy();
    let forecasts = Forecast::of_each_pool(&machine(&facts)).expect("pools");
    assert_eq!(
        how_to_set(&machine(&facts), &forecasts[0].pool).as_deref(),
        Some("sysctl -w vm.nr_hugepages=537")
    );
    assert_eq!(
        how_to_set(&machine(&facts), &forecasts[1].pool).as_deref(),
        Some(
            "echo 1 > /proc/sys/vm/compact_memory; echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; for the next boot, on the kernel command line: hugepagesz=1G hugepages=2"
        )
    );

    let mut small_host = healthy();
    small_host.meminfo.as_mut().expect("meminfo").total_bytes = Some(1100 * MB);
    let forecasts = Forecast::of_each_pool(&machine(&small_host)).expect("pools");
    assert_eq!(
        how_to_set(&machine(&small_host), &forecasts[0].pool).as_deref(),
        Some(
            "lower shared_buffers to 45MB or add memory: 537 huge pages of 2 MB would leave less than 10 % of RAM; 83 MB too much"
        )
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
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
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
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
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
    let forecast = Forecast::of_target(&machine(&facts)).expect("a pool");
    assert_eq!((forecast.pool.page_bytes, forecast.required), (GB, 2));
    assert_eq!(facts.lies_on().huge_page_bytes(), Some(2 * MB));
}

#[test]
fn files_that_stop_the_next_start_are_critical() {
    let mut scene = Scene::of(healthy());
    scene.around.files = Files::Refused("invalid value".to_owned());
    let verdict = diagnosis::verdict(&scene.machine());
    assert_eq!(verdict.status, Status::Critical);
    assert!(
        verdict.reason.starts_with("the next start would fail"),
        "{verdict:?}"
    );
}
