//! Pages that `hugeinfo ensure` adds before a start.

use hugeinfo::{
    advice::{ensure, render},
    model::step::Step,
};

use crate::scene::*;

/// The commands for the next start, once the server has stopped.
#[track_caller]
fn commands(change: impl FnOnce(&mut Scene)) -> Vec<String> {
    let mut scene = Scene::healthy();
    change(&mut scene);
    let stopped = scene
        .machine()
        .apply(&Step::Stop)
        .expect("a server that runs");
    let steps = ensure::steps(&stopped).expect("pages that can be added");
    let commands = steps.iter().map(|step| render::command(&stopped, step));
    commands
        .map(|command| command.expect("a command"))
        .collect()
}

#[test]
fn pages_are_persistent_whatever_the_kernel_could_allocate_later() {
    for overcommit in [0, 100, 137, 1000] {
        let added = commands(|m| {
            m.fall_back(400);
            m.pool(0).overcommit = overcommit;
        });
        assert_eq!(added, ["sysctl -w vm.nr_hugepages=537"], "{overcommit}");
    }
}

#[test]
fn surplus_pages_of_others_are_not_for_the_server() {
    for overcommit in [0, 100] {
        let added = commands(|m| {
            m.fall_back(100);
            m.pool(0).free = 0;
            m.pool(0).surplus = 100;
            m.pool(0).overcommit = overcommit;
        });
        assert_eq!(added, ["sysctl -w vm.nr_hugepages=637"], "{overcommit}");
    }
}
