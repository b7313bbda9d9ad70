//! The OOM killer.

use std::path::PathBuf;

use expect_test::expect;

use crate::{scene::*, table::*};

#[test]
fn oom_protection() {
    test(vec![
        when("the postmaster is protected", |_| {}).see("oom_protection", expect![["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]]),
        when("all processes have 0", |m| m.oom_scores(0, 0))
            .see("oom_protection", expect![[r#"
                warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
                # set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]])
            .see("runbook", expect![["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]]),
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
            # set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
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
            # set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
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
            # set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
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
            # lower the OOM score of the postmaster to -900 from outside (here CAP_SYS_RESOURCE is missing); set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"#]]),
        when("root lacks CAP_SYS_RESOURCE", |m| {
            m.facts.can_lower_oom_score = Some(false);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # lower the OOM score of the postmaster to -900 from outside (here CAP_SYS_RESOURCE is missing); set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"#]]),
        when("there is no systemd", |m| {
            m.facts.has_systemd = Some(false);
            m.oom_scores(0, 0);
        })
        .see("oom_protection", expect![[r#"
            warning not_protected: The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.
            # start PostgreSQL with oom_score_adj = -900, and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
    ]);
}
