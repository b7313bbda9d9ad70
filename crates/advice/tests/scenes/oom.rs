//! The OOM killer.

use std::path::PathBuf;

use expect_test::expect;
use host::{
    linux::error::Fact,
    server::unit::{OomPolicy, Unit},
};

use crate::{scene::*, table::*};

#[test]
fn oom_protection() {
    test(vec![
        when("the postmaster is protected", |_| {}).see("oom_protection", expect![["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]]),
        when("all processes have 0", |m| m.oom_scores(0, 0))
            .see("oom_protection", expect![[r#"
                warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
                # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]])
            .see("runbook", expect!["# set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("the backends are exempt, too", |m| {
            m.oom_scores(-1000, -1000)
        })
        .see("oom_protection", expect![[r#"
            warning backends_exempt: The OOM killer also spares the backends (oom_score_adj = -1000), however large they are.
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when("only the postmaster is exempt", |m| m.oom_scores(-1000, 0)).see("oom_protection", expect![["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -1000)."]]),
        when("overcommit is strict", |m| {
            m.strict(4 * GB);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![["ok strict_overcommit: The postmaster is not protected (oom_score_adj = 0); with strict overcommit the OOM killer is rarely needed."]]),
        when("overcommit is strict, and a cgroup limits memory", |m| {
            m.strict(4 * GB);
            m.oom_scores(0, 0);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected_in_cgroup: A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 0, children 0). It can kill the postmaster, which ends all sessions.
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when(
            "overcommit is strict, and the OOM killer has killed in the cgroup",
            |m| {
                m.strict(4 * GB);
                m.oom_scores(0, 0);
                m.memory_limit(GB * 8, GB, 0);
                m.facts.cgroup_oom_kills = Some(2);
            },
        )
        .see("oom_protection", expect![[r#"
            warning not_protected_in_cgroup: A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 0, children 0). It can kill the postmaster, which ends all sessions. The OOM killer has killed 2 processes of this cgroup.
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when(
            "overcommit is strict without a cgroup, and the OOM killer has killed",
            |m| {
                m.strict(4 * GB);
                m.oom_scores(0, 0);
                m.facts.cgroup_oom_kills = Some(2);
            },
        )
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions. The OOM killer has killed 2 processes of this cgroup.
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when("all processes of a Guaranteed pod have -997", |m| {
            m.container();
            m.oom_scores(-997, -997);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected_in_cgroup: A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster -997, children -997). It can kill the postmaster, which ends all sessions.
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when("the backends of a Guaranteed pod have 0", |m| {
            m.container();
            m.oom_scores(-997, 0);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect![["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -997)."]]),
        when("memory.oom.group is set", |m| {
            m.container();
            m.oom_scores(-997, 0);
            m.memory_limit(GB * 8, GB, 0);
            m.facts.memory_oom_group = Some(PathBuf::from("/sys/fs/cgroup/pg"));
        })
        .see("oom_protection", expect![[r#"
            warning oom_group: If a process exceeds the memory limit of cgroup /sys/fs/cgroup/pg, all of its processes are killed together (memory.oom.group = 1).
            # let the container runtime set memory.oom.group to 0 (kubelet: singleProcessOOMKill: true), or raise the memory limit"#]]),
        when("memory.oom.group is set by the service on a host", |m| {
            m.memory_limit(GB * 8, GB, 0);
            m.facts.memory_oom_group = Some(PathBuf::from("/sys/fs/cgroup/pg"));
        })
        .see("oom_protection", expect![[r#"
            warning oom_group: If a process exceeds the memory limit of cgroup /sys/fs/cgroup/pg, all of its processes are killed together (memory.oom.group = 1).
            # set memory.oom.group to 0 (OOMPolicy=continue in a systemd unit), or raise the memory limit"#]]),
        when("all processes of a BestEffort pod have 999", |m| {
            m.container();
            m.oom_scores(999, 999);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected_in_cgroup: A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 999, children 999). It can kill the postmaster, which ends all sessions.
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege"#]]),
        when("all processes of a Burstable pod have 2", |m| {
            m.container();
            m.oom_scores(2, 2);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected_in_cgroup: A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 2, children 2). It can kill the postmaster, which ends all sessions.
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege"#]]),
        when("a unit in an LXC container cannot lower the score", |m| {
            m.facts.is_container = Some(true);
            m.facts.has_systemd = Some(true);
            m.facts.can_lower_oom_score = Some(false);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # lower the OOM score of the postmaster to -900 from outside the container; set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"#]]),
        when("root lacks CAP_SYS_RESOURCE", |m| {
            m.facts.can_lower_oom_score = Some(false);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # lower the OOM score of the postmaster to -900 with CAP_SYS_RESOURCE, which root lacks here; set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"#]]),
        when("there is no systemd", |m| {
            m.facts.has_systemd = Some(false);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # start PostgreSQL with oom_score_adj = -900, and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
    ]);
}

#[test]
fn scores_are_compared_by_the_formula_of_the_kernel() {
    test(vec![
        when("postmaster 500, children 900", |m| m.oom_scores(500, 900))
            .see("oom_protection", expect!["ok protected: The OOM killer prefers the children to the postmaster (oom_score_adj = 500)."]),
        when("postmaster 500, children 900, and a memory limit", |m| {
            m.oom_scores(500, 900);
            m.memory_limit(GB * 8, GB, 0);
        })
        .see("oom_protection", expect!["ok protected: The OOM killer prefers the children to the postmaster (oom_score_adj = 500)."]),
        when("postmaster 100, children 300", |m| m.oom_scores(100, 300))
            .see("oom_protection", expect!["ok protected: The OOM killer prefers the children to the postmaster (oom_score_adj = 100)."]),
        when("postmaster 0, children 500", |m| m.oom_scores(0, 500))
            .see("oom_protection", expect!["ok protected: The OOM killer prefers the children to the postmaster (oom_score_adj = 0)."]),
        when("postmaster 500, children 0", |m| m.oom_scores(500, 0))
            .see("oom_protection", expect![[r#"
                warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 500), which ends all sessions.
                # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=500 in the environment of the server; takes effect at the next restart"#]]),
        when("all have 500", |m| m.oom_scores(500, 500)).see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 500), which ends all sessions.
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=500 in the environment of the server; takes effect at the next restart"#]]),
        when("all have -900", |m| m.oom_scores(-900, -900)).see("oom_protection", expect![[r#"
            warning backends_exempt: The OOM killer also spares the backends (oom_score_adj = -900), however large they are.
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when("the memory of the postmaster exceeds the difference", |m| {
            m.oom_scores(0, 10);
            m.state.processes[0].rss_anon = Some(GB);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=10 in the environment of the server; takes effect at the next restart"#]]),
        when("the difference exceeds the memory of the postmaster", |m| {
            m.oom_scores(0, 20);
            m.state.processes[0].rss_anon = Some(GB);
        })
        .see("oom_protection", expect!["ok protected: The OOM killer prefers the children to the postmaster (oom_score_adj = 0)."]),
        when("the kernel panics", |m| {
            m.file("proc/sys/vm/panic_on_oom", "1\n")
        })
        .see("oom_protection", expect![[r#"
            warning panic_on_oom: If memory runs out, the kernel panics and kills no process (vm.panic_on_oom = 1).
            # set vm.panic_on_oom to 0, now and in /etc/sysctl.d, unless you want the machine to reboot when memory runs out"#]]),
        when("the kernel does not panic", |m| {
            m.file("proc/sys/vm/panic_on_oom", "0\n")
        })
        .see("oom_protection", expect!["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]),
    ]);
}

#[test]
fn systemd_acts_after_the_kernel() {
    fn unit(m: &mut Scene, oom_policy: Fact<OomPolicy>) {
        let name = "postgresql@15-main.service".to_owned();
        m.state.unit = Some(Unit { name, oom_policy });
    }
    test(vec![
        when("systemd stops the unit", |m| unit(m, Ok(OomPolicy::Stop)))
            .see("oom_protection", expect![[r#"
                warning unit_stops: If the OOM killer kills one backend, systemd stops the whole server (OOMPolicy=stop applies to postgresql@15-main.service).
                # set OOMPolicy=continue in the systemd unit (systemctl edit, which applies it at once)"#]])
            .see("runbook", expect!["# set OOMPolicy=continue in the systemd unit (systemctl edit, which applies it at once)"]),
        when(
            "systemd stops the unit, and the OOM killer has killed",
            |m| {
                unit(m, Ok(OomPolicy::Stop));
                m.facts.cgroup_oom_kills = Some(1);
            },
        )
        .see("oom_protection", expect![[r#"
            warning unit_stops: If the OOM killer kills one backend, systemd stops the whole server (OOMPolicy=stop applies to postgresql@15-main.service). The OOM killer has killed a process of this cgroup.
            # set OOMPolicy=continue in the systemd unit (systemctl edit, which applies it at once)"#]]),
        when("systemd keeps the unit", |m| {
            unit(m, Ok(OomPolicy::Continue))
        })
        .see("oom_protection", expect!["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]),
        when("the files of the unit cannot be read", |m| {
            unit(
                m,
                Err(denied("/etc/systemd/system/postgresql@15-main.service.d")),
            );
        })
        .see("oom_protection", expect!["unknown unknown: Cannot judge oom_protection: /etc/systemd/system/postgresql@15-main.service.d cannot be read (permission denied)."]),
        when(
            "systemd stops the unit, and the backends have the score of the postmaster",
            |m| {
                unit(m, Ok(OomPolicy::Stop));
                m.oom_scores(-900, -900);
            },
        )
        .see("oom_protection", expect![[r#"
            warning backends_exempt: The OOM killer also spares the backends (oom_score_adj = -900), however large they are.
            # set OOMPolicy=continue in the systemd unit, and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
        when("systemd stops the unit, and overcommit is strict", |m| {
            unit(m, Ok(OomPolicy::Stop));
            m.strict(4 * GB);
        })
        .see("oom_protection", expect!["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]),
    ]);
}
