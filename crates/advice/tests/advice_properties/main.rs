//! Properties of the advice, tested on random machines.
//!
//! `HUGEINFO_MACHINES` sets the number of machines for each property (500), and `HUGEINFO_SEED`
//! selects them.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

mod build;
mod kept;
mod machines;
mod properties;

use advice::model::machine::Machine;
use machines::{
    Spec, any_machine, healthy_machine, with_a_boot_line, with_a_command_line,
    with_another_server_that_is_off, with_idle_pages_of_another_size, with_wrong_commit_counter,
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner},
};

fn number(name: &str, usual: u32) -> u32 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

/// Tests a property on many machines, the same ones for each property.
fn on_each(machines: impl Strategy<Value = Spec>, property: fn(&Spec, &Machine) -> TestCaseResult) {
    let config = Config {
        cases: number("HUGEINFO_MACHINES", 500),
        max_global_rejects: u32::MAX,
        max_local_rejects: u32::MAX,
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number("HUGEINFO_SEED", 1).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let possible = machines.prop_filter("no such machine", |spec| spec.machine().is_some());
    let result = runner.run(&possible, |spec| {
        let machine = spec.machine().expect("it was filtered");
        property(&spec, &machine)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Err(TestError::Fail(reason, spec)) => panic!("{reason}\nOf {spec:?}"),
    }
}

macro_rules! properties {
    ($($machines:ident => [$($name:ident,)*])*) => {$($(
        #[test]
        fn $name() {
            on_each($machines(), properties::$name);
        }
    )*)*};
}

properties! {
    any_machine => [
        no_step_does_harm,
        rows_in_order_do_what_the_runbook_does,
        healthy_by_facts_is_healthy,
        status_has_a_remedy,
        status_agrees_with_checks,
        plan_for_present_settings_is_the_plan,
        plan_does_not_undo_its_settings,
        plans_keep_pages_of_unknown_owner,
        remedies_cure,
        findings_that_stay_have_a_decision,
        no_state_on_the_way_is_critical,
        pools_leave_enough_memory,
        numbers_agree,
        pages_for_other_servers_are_kept,
        no_remedy_has_a_redundant_step,
        starts_after_a_growing_pool_have_a_condition,
        stopped_server_has_a_way_back,
        runbook_ends_healthy_or_with_a_decision,
        no_line_is_printed_twice,
        problems_have_different_remedies,
        runbook_is_in_the_order_of_problems,
        settings_are_changed_in_the_place_that_decides,
        settings_of_the_command_line_are_named,
        texts_name_what_failed,
        figures_that_are_bounds_are_called_so,
        small_pages_leave_a_reserve,
        one_ratio_is_enough,
        absent_facts_yield_no_command,
        absent_facts_improve_no_verdict,
        expected_is_the_status_after_the_step,
        following_the_runbook_twice_changes_nothing,
        decisions_are_enough,
        idle_pages_that_stay_are_announced,
        decisions_are_about_the_machine_after_the_steps,
        more_memory_is_never_worse,
        boot_line_is_never_withheld,
        remedies_refer_to_rows_that_are_shown,
        server_that_would_not_start_gets_help,
        everything_can_be_rendered,
        text_fits_on_a_terminal,
        boot_lines_leave_memory,
        boot_lines_have_pages_that_are_explained,
        steps_keep_a_start_from_the_files,
        ensured_starts_get_huge_pages,
        row_names_the_restart_of_other_servers,
        healthy_after_a_boot_with_the_others_first,
        idle_pages_are_released_without_a_stop,
        pages_of_unknown_owner_have_a_condition,
        boot_that_is_ok_starts_the_server,
        small_pages_fit_what_is_available,
        more_swap_is_never_worse,
        running_server_keeps_the_reserve,
        ensure_needs_nothing_where_a_restart_fits,
        scores_of_backends_alone_do_no_harm,
        refused_pages_need_a_decision,
        growing_pools_leave_room_to_commit,
        server_that_is_off_asks_for_no_pages,
        cgroup_near_its_limit_is_reported,
        full_node_is_named,
        swap_on_zram_holds_nothing,
        panic_is_reported,
        oom_remedies_do_not_endanger_the_server,
    ]
    with_a_command_line => [
        boot_lines_serve_a_start_from_the_files,
    ]
    with_a_boot_line => [
        smaller_demand_leaves_nothing_behind,
        huge_pages_turned_off_leave_nothing_behind,
    ]
    with_idle_pages_of_another_size => [
        idle_pages_of_another_size_come_first,
    ]
    with_another_server_that_is_off => [
        servers_that_are_off_are_no_demand,
    ]
    with_wrong_commit_counter => [
        wrong_commit_counter_is_no_shortage,
    ]
    healthy_machine => [
        healthy_machines_get_no_advice,
    ]
}

#[test]
fn properties_hold_on_kept_machines() {
    for (number, (change, property)) in kept::ROWS.iter().enumerate() {
        let mut spec = Spec::usual();
        change(&mut spec);
        let machine = spec.machine().expect("a possible machine");
        if let Err(error) = property(&spec, &machine) {
            panic!("row {number}: {error}");
        }
    }
}

/// Common kinds of machines are not rare among the random ones.
#[test]
fn machines_of_common_kinds_are_frequent() {
    type IsOfKind = fn(&Spec, &Machine) -> bool;
    fn gigabytes(machine: &Machine) -> u64 {
        machine.ram().map_or(0, |ram| ram.0 / machines::GB)
    }
    fn is_strict(spec: &Spec) -> bool {
        spec.host.strict.is_some()
    }
    let kinds: [(&str, u32, IsOfKind); 15] = [
        ("swap on zram", 10, |spec, _| {
            spec.host.zram_percent > 0 && spec.host.swap_gb > 0
        }),
        ("a wrong commit counter", 1, |spec, _| {
            is_strict(spec) && spec.host.is_commit_wrong
        }),
        ("a full node", 1, |_, machine| {
            properties::has_full_node(machine)
        }),
        ("a cgroup near its limit", 1, |_, machine| {
            properties::has_cgroup_near_its_limit(machine)
        }),
        ("a command line", 10, |_, machine| {
            machine.next_start_from_files().is_some()
        }),
        ("vm.panic_on_oom", 5, |spec, _| spec.host.panic_on_oom > 0),
        ("OOMPolicy", 15, |spec, _| spec.server.oom_policy.is_some()),
        ("1 to 4 GB", 10, |_, machine| {
            (1..=4).contains(&gigabytes(machine))
        }),
        ("two servers", 10, |spec, _| spec.others.len() == 1),
        ("strict overcommit", 15, |spec, _| is_strict(spec)),
        ("no swap", 30, |spec, _| spec.host.swap_gb == 0),
        ("1 to 4 GB without swap", 4, |spec, machine| {
            (1..=4).contains(&gigabytes(machine)) && spec.host.swap_gb == 0
        }),
        ("1 to 4 GB and two servers", 1, |spec, machine| {
            (1..=4).contains(&gigabytes(machine)) && spec.others.len() == 1
        }),
        ("1 to 4 GB with strict overcommit", 1, |spec, machine| {
            (1..=4).contains(&gigabytes(machine)) && is_strict(spec)
        }),
        ("strict overcommit without swap", 5, |spec, _| {
            is_strict(spec) && spec.host.swap_gb == 0
        }),
    ];
    const MACHINES: u32 = 2000;
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut counts = [0; 15];
    let mut left = MACHINES;
    while left > 0 {
        let tree = any_machine().new_tree(&mut runner).expect("a description");
        let spec = tree.current();
        let Some(machine) = spec.machine() else {
            continue;
        };
        left -= 1;
        for ((_, _, is_of_kind), count) in kinds.iter().zip(&mut counts) {
            *count += u32::from(is_of_kind(&spec, &machine));
        }
    }
    for ((name, percent, _), count) in kinds.iter().zip(counts) {
        println!("{name}: {count} of {MACHINES}");
        assert!(count * 100 >= percent * MACHINES, "{name}: {count}");
    }
}

#[test]
fn answers_about_large_machines_are_short() {
    properties::large_machines();
}
