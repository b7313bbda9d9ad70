//! The OOM killer, locked memory, and `initdb`.

use std::path::PathBuf;

use hugeinfo::server::{
    environment::IoUringRings,
    setting::{Setting, SettingSource},
};

use crate::{scene::*, table::*};

fn uring(m: &mut Scene, release: &str, connections: u64, limit: Option<u64>) {
    m.env.uses_io_uring = true;
    m.env.host.kernel_release = release.to_owned();
    m.env.max_connections = connections;
    // With the defaults of PostgreSQL 18.
    m.env.io_uring_rings = Some(IoUringRings::of(connections + 36, -1));
    m.env.locked_memory = Ok(limit);
}

#[test]
fn oom_protection() {
    test(vec![
        when("the postmaster is protected", |_| {}).says("oom_protection", OK, "protected", "The OOM killer prefers other processes to the postmaster (oom_score_adj = -900).", &[]),
        when("all processes have 0", |m| m.oom_scores(0, 0))
            .says("oom_protection", WARNING, "not_protected", "The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.", &["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"])
            .runbook(&["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("the backends are exempt, too", |m| {
            m.oom_scores(-1000, -1000)
        })
        .says("oom_protection", WARNING, "backends_exempt", "The OOM killer also spares the backends (oom_score_adj = -1000), however large they are.", &["# set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("only the postmaster is exempt", |m| m.oom_scores(-1000, 0)).says("oom_protection", OK, "protected", "The OOM killer prefers other processes to the postmaster (oom_score_adj = -1000).", &[]),
        when("overcommit is strict", |m| {
            m.strict(4 * GB);
            m.oom_scores(0, 0);
        })
        .says("oom_protection", OK, "strict_overcommit", "The postmaster is not protected (oom_score_adj = 0); with strict overcommit the OOM killer is rarely needed.", &[]),
        when("overcommit is strict, and a cgroup limits memory", |m| {
            m.strict(4 * GB);
            m.oom_scores(0, 0);
            m.memory_limit(GB * 8, GB, 0);
        })
        .says("oom_protection", WARNING, "not_protected_in_cgroup", "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 0, children 0). It can kill the postmaster, which ends all sessions.", &["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when(
            "overcommit is strict, and the OOM killer has killed in the cgroup",
            |m| {
                m.strict(4 * GB);
                m.oom_scores(0, 0);
                m.memory_limit(GB * 8, GB, 0);
                m.env.cgroup_oom_kills = Some(2);
            },
        )
        .says("oom_protection", WARNING, "not_protected_in_cgroup", "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 0, children 0). It can kill the postmaster, which ends all sessions. The OOM killer has killed 2 processes of this cgroup.", &["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when(
            "overcommit is strict without a cgroup, and the OOM killer has killed",
            |m| {
                m.strict(4 * GB);
                m.oom_scores(0, 0);
                m.env.cgroup_oom_kills = Some(2);
            },
        )
        .says("oom_protection", WARNING, "not_protected", "The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions. The OOM killer has killed 2 processes of this cgroup.", &["# set OOMScoreAdjust=-900 in the systemd unit (if it is already set, find out why it has no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("all processes of a Guaranteed pod have -997", |m| {
            m.container();
            m.oom_scores(-997, -997);
            m.memory_limit(GB * 8, GB, 0);
        })
        .says("oom_protection", WARNING, "not_protected_in_cgroup", "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster -997, children -997). It can kill the postmaster, which ends all sessions.", &["# set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("the backends of a Guaranteed pod have 0", |m| {
            m.container();
            m.oom_scores(-997, 0);
            m.memory_limit(GB * 8, GB, 0);
        })
        .says("oom_protection", OK, "protected", "The OOM killer prefers other processes to the postmaster (oom_score_adj = -997).", &[]),
        when("memory.oom.group is set", |m| {
            m.container();
            m.oom_scores(-997, 0);
            m.memory_limit(GB * 8, GB, 0);
            m.env.memory_oom_group = Some(PathBuf::from("/sys/fs/cgroup/pg"));
        })
        .says("oom_protection", WARNING, "oom_group", "If a process exceeds the memory limit of cgroup /sys/fs/cgroup/pg, all of its processes are killed together (memory.oom.group = 1).", &["# let the container runtime set memory.oom.group to 0 (kubelet: singleProcessOOMKill: true), or raise the memory limit"]),
        when("memory.oom.group is set by the service on a host", |m| {
            m.memory_limit(GB * 8, GB, 0);
            m.env.memory_oom_group = Some(PathBuf::from("/sys/fs/cgroup/pg"));
        })
        .says("oom_protection", WARNING, "oom_group", "If a process exceeds the memory limit of cgroup /sys/fs/cgroup/pg, all of its processes are killed together (memory.oom.group = 1).", &["# set memory.oom.group to 0 (OOMPolicy=continue in a systemd unit), or raise the memory limit"]),
        when("all processes of a BestEffort pod have 999", |m| {
            m.container();
            m.oom_scores(999, 999);
            m.memory_limit(GB * 8, GB, 0);
        })
        .says("oom_protection", WARNING, "not_protected_in_cgroup", "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 999, children 999). It can kill the postmaster, which ends all sessions.", &["# set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege"]),
        when("all processes of a Burstable pod have 2", |m| {
            m.container();
            m.oom_scores(2, 2);
            m.memory_limit(GB * 8, GB, 0);
        })
        .says("oom_protection", WARNING, "not_protected_in_cgroup", "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster 2, children 2). It can kill the postmaster, which ends all sessions.", &["# set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege"]),
        when("a unit in an LXC container cannot lower the score", |m| {
            m.env.is_container = Some(true);
            m.env.has_systemd = Some(true);
            m.env.can_lower_oom_score = Some(false);
            m.oom_scores(0, 0);
        })
        .says("oom_protection", WARNING, "not_protected", "The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.", &["# lower the OOM score of the postmaster to -900 from outside (here CAP_SYS_RESOURCE is missing); set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"]),
        when("root lacks CAP_SYS_RESOURCE", |m| {
            m.env.can_lower_oom_score = Some(false);
            m.oom_scores(0, 0);
        })
        .says("oom_protection", WARNING, "not_protected", "The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.", &["# lower the OOM score of the postmaster to -900 from outside (here CAP_SYS_RESOURCE is missing); set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server"]),
        when("there is no systemd", |m| {
            m.env.has_systemd = Some(false);
            m.oom_scores(0, 0);
        })
        .says("oom_protection", WARNING, "not_protected", "The OOM killer can kill the postmaster (oom_score_adj = 0), which ends all sessions.", &["# start PostgreSQL with oom_score_adj = -900, and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
    ]);
}

#[test]
fn memlock() {
    test(vec![
        when("the limit is 64 kB", |m| m.fall_back(0)).says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: 64 kB).", &[]),
        when("the limit is 0", |m| m.env.locked_memory = Ok(Some(0))).says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: 0 bytes).", &[]),
        when("there is no limit", |m| m.env.locked_memory = Ok(None)).says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: unlimited).", &[]),
        when("1000 connections use io_uring on Linux 6.14", |m| {
            uring(m, "6.14.0-15-generic", 1000, Some(8 * MB));
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (1042 with 64 entries each) need 8336 kB of locked memory; the limit is 8 MB, and other servers of the same user share it.", &["# set LimitMEMLOCK=17825792 in the systemd unit; takes effect at the next restart"])
        .runbook(&["# set LimitMEMLOCK=17825792 in the systemd unit; takes effect at the next restart"]),
        when("1000 connections use io_uring on Linux 7.0", |m| {
            uring(m, "7.0.0-10-generic", 1000, Some(8 * MB));
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (1042 with 64 entries each) need 8336 kB of locked memory; the limit is 8 MB, and other servers of the same user share it.", &["# set LimitMEMLOCK=17825792 in the systemd unit; takes effect at the next restart"]),
        when(
            "100 connections use io_uring on Linux 6.18 with the default limit",
            |m| {
                uring(m, "6.18.5", 100, Some(8 * MB));
            },
        )
        .says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: 8 MB).", &[]),
        when(
            "100 connections use io_uring on Linux 6.18 with 64 kB",
            |m| {
                uring(m, "6.18.5", 100, Some(64 << 10));
            },
        )
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (142 with 64 entries each) need 1136 kB of locked memory; the limit is 64 kB, and other servers of the same user share it.", &["# set LimitMEMLOCK=3145728 in the systemd unit; takes effect at the next restart"]),
        when("1000 connections use io_uring on Linux 6.8", |m| {
            uring(m, "6.8.0-60-generic", 1000, Some(8 * MB));
        })
        .says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: 8 MB).", &[]),
        when("1000 connections use io_uring on Linux 6.18 as root", |m| {
            uring(m, "6.18.5", 1000, Some(8 * MB));
            m.env.has_ipc_lock = Some(true);
        })
        .says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: 8 MB).", &[]),
        when(
            "1000 connections use io_uring on Linux 6.18 without a limit",
            |m| {
                uring(m, "6.18.5", 1000, None);
            },
        )
        .says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: unlimited).", &[]),
        when(
            "each process of Linux 5.10 is charged for its own ring",
            |m| {
                uring(m, "5.10.0-35-amd64", 100, Some(64 << 10));
            },
        )
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (142 with 64 entries each) need 1136 kB of locked memory; the limit is 64 kB, and other servers of the same user share it.", &["# set LimitMEMLOCK=3145728 in the systemd unit; takes effect at the next restart"]),
        when("each process of Linux 5.10 has no locked memory", |m| {
            uring(m, "5.10.0-35-amd64", 100, Some(0));
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (142 with 64 entries each) need 1136 kB of locked memory; the limit is 0 bytes, and other servers of the same user share it.", &["# set LimitMEMLOCK=3145728 in the systemd unit; takes effect at the next restart"]),
        when("1000 connections use io_uring in a pod", |m| {
            uring(m, "6.18.5", 1000, Some(8 * MB));
            m.container();
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (1042 with 64 entries each) need 8336 kB of locked memory; the limit is 8 MB, and other servers of the same user share it.", &["# let the container runtime allow 17408 kB of locked memory (ulimit -l), or set io_method = worker; takes effect at the next restart"]),
        when("100 connections have large rings", |m| {
            uring(m, "6.18.5", 100, Some(8 * MB));
            m.env.io_uring_rings = Some(IoUringRings::of(136, 1024));
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (142 with 1024 entries each) need 14 MB of locked memory; the limit is 8 MB, and other servers of the same user share it.", &["# set LimitMEMLOCK=30408704 in the systemd unit; takes effect at the next restart"]),
        when("the base pages of 100 connections have 64 kB", |m| {
            uring(m, "6.18.5", 100, Some(8 * MB));
            m.facts.base_page_bytes = 64 << 10;
            m.facts.segment.as_mut().expect("a segment").page_bytes = Some(64 << 10);
        })
        .says("memlock", WARNING, "memlock_too_low", "The rings of io_method = io_uring (142 with 64 entries each) need 18 MB of locked memory; the limit is 8 MB, and other servers of the same user share it.", &["# set LimitMEMLOCK=37748736 in the systemd unit; takes effect at the next restart"]),
        when("the number and the size of the rings are unknown", |m| {
            uring(m, "6.18.5", 100, Some(8 * MB));
            m.env.io_uring_rings = None;
        })
        .says("memlock", UNKNOWN, "unknown", "Cannot judge memlock: the rings of io_method = io_uring need locked memory, and their number and size are unknown here (see io_max_concurrency, max_connections, max_worker_processes, max_wal_senders, autovacuum_worker_slots).", &[]),
        when("unknown rings have no limit", |m| {
            uring(m, "6.18.5", 100, None);
            m.env.io_uring_rings = None;
        })
        .says("memlock", OK, "memlock_not_needed", "Huge pages do not need locked memory (memlock: unlimited).", &[]),
        when("a pending setting changes the size of the rings", |m| {
            uring(m, "6.18.5", 100, Some(8 * MB));
            m.env.pending_settings = vec!["io_max_concurrency".to_owned()];
        })
        .says("memlock", UNKNOWN, "unknown", "Cannot judge memlock: a pending change of io_max_concurrency is not counted.", &[]),
    ]);
}

#[test]
fn initdb() {
    fn in_file(m: &mut Scene, name: &'static str, value: &str) {
        let value = value.to_owned();
        let source = SettingSource::File(None);
        m.env.settings.insert(name, Setting { value, source });
    }
    test(vec![
        when("the settings are those of an administrator", |_| {}).says("initdb", OK, "initdb_settings", "The settings are not those that initdb writes after crashes.", &[]),
        when("initdb crashed in each trial start", |m| {
            in_file(m, "max_connections", "20");
            in_file(m, "shared_buffers", "400kB");
        })
        .says("initdb", WARNING, "initdb_fell_back", "A configuration file has max_connections = 20 and shared_buffers = 400kB, which initdb writes if all of its trial starts crash.", &["# set max_connections and shared_buffers as intended; before the next initdb, let the cgroup use huge pages, or run initdb -c huge_pages=off (PostgreSQL 16 and newer)"]),
        when("initdb of PostgreSQL 18 crashed in each trial start", |m| {
            in_file(m, "max_connections", "25");
            in_file(m, "shared_buffers", "400kB");
        })
        .says("initdb", WARNING, "initdb_fell_back", "A configuration file has max_connections = 25 and shared_buffers = 400kB, which initdb writes if all of its trial starts crash.", &["# set max_connections and shared_buffers as intended; before the next initdb, let the cgroup use huge pages, or run initdb -c huge_pages=off (PostgreSQL 16 and newer)"]),
        when("only max_connections is 20", |m| {
            in_file(m, "max_connections", "20")
        })
        .says("initdb", OK, "initdb_settings", "The settings are not those that initdb writes after crashes.", &[]),
    ]);
}
