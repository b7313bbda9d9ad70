//! Settings: where they are changed, pending ones, muted checks and planned configurations.

use std::sync::Arc;

use std::{collections::BTreeMap, path::PathBuf};

use advice::{
    answer::{self, Answer},
    model::{
        machine::Machine,
        step::{Pending, Step},
    },
    planned::{Planned, PlannedSetting},
    runbook,
};
use host::server::{
    configuration::RequestedPages,
    facts::Facts,
    setting::{FileLine, Setting, SettingSource},
    state::{Files, HugePages, Server, SharedMemoryType},
};

use expect_test::expect;

use crate::{scene::*, table::*};

fn sysv(m: &mut Scene, source: SettingSource, allows_alter_system: bool) {
    m.fall_back(537);
    m.state.server.shared_memory_type = SharedMemoryType::Sysv;
    let value = "sysv".to_owned();
    m.state.next.settings = BTreeMap::from([("shared_memory_type", Setting { value, source })]);
    m.facts.allows_alter_system = allows_alter_system;
}

fn line() -> SettingSource {
    SettingSource::File(Some(FileLine {
        path: PathBuf::from("/etc/postgresql/17/main/postgresql.conf"),
        line: 42,
    }))
}

#[test]
fn places() {
    test(vec![
        when("the command line sets it", |m| {
            sysv(m, SettingSource::CommandLine, true)
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, set shared_memory_type = 'mmap' on the command line of the server, which overrides its files (a systemd unit or Patroni can set it; see postmaster.opts)"#]]),
        when("a file sets it", |m| sysv(m, line(), true)).see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"#]]),
        when("a file sets it, and ALTER SYSTEM is not allowed", |m| {
            sysv(m, line(), false)
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, in /etc/postgresql/17/main/postgresql.conf, line 42: shared_memory_type = 'mmap'"#]]),
        when("ALTER SYSTEM set it, and is not allowed", |m| {
            sysv(m, SettingSource::AutoConf, false);
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, in postgresql.auto.conf: shared_memory_type = 'mmap'"#]]),
        when("sysv is set, and there is no pool", |m| {
            sysv(m, line(), true);
            m.fall_back(0);
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"#]])
        .see("runbook", expect!["# do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"]),
        when(
            "the kernel does not have the size, and there is a pool",
            |m| {
                m.fall_back(537);
                m.state.server.huge_page_size_bytes = Some(16 * MB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            ALTER SYSTEM SET huge_page_size = 0;
            -- restart PostgreSQL (ends all sessions)"#]])
        .see("runbook", expect![[r#"
            ALTER SYSTEM SET huge_page_size = 0;
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "the kernel has no such size, and huge_pages = on is set",
            |m| {
                m.state.server.huge_pages = HugePages::On;
                m.waits(|next| next.huge_page_size_bytes = Some(16 * MB));
            },
        )
        .see("huge_page_size", expect![[r#"
            critical no_such_size: huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            # as restart"#]])
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB. Settings are pending a restart.
            ALTER SYSTEM SET huge_page_size = 0;"#]]),
        when(
            "the kernel has no such size, and the server is turned off",
            |m| {
                m.fall_back(0);
                m.asked(0);
                m.state.server.huge_page_size_bytes = Some(16 * MB);
                m.off();
            },
        )
        .see("huge_page_size", expect![["ok no_such_size: huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB."]]),
        when("the kernel has neither of the powers of two", |m| {
            m.fall_back(537);
            m.state.server.huge_page_size_bytes = Some(3 * MB);
        })
        .see("huge_page_size", expect![[r#"
            warning no_such_size: huge_page_size asks for 3 MB pages; the kernel has 2 MB, 1 GB.
            # as huge_pages"#]]),
    ]);
}

#[test]
fn pending() {
    test(vec![
        when("nothing is pending", |_| {}).see("pending_settings", expect![["ok nothing_pending: No pending setting changes the number or size of huge pages."]]),
        when("settings that need more pages are pending", |m| {
            m.waits(|next| next.shared_memory_bytes = 2120 * MB);
        })
        .see("status", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 1060 huge pages of 2 MB; 537 are available. Settings are pending a restart.
            sysctl -w vm.nr_hugepages=1060
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1060/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1060 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 1060 huge pages of 2 MB; 537 are available.
            sysctl -w vm.nr_hugepages=1060
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1060/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1060 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("pending_settings", expect![[r#"
            warning would_lose_at_restart: Settings are pending a restart (shared_buffers). A restart would lose huge pages. Needs 1060 huge pages of 2 MB; 537 are available.
            # as restart"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 1060 are needed.
            # as restart"#]])
        .see("how_to_set_2", expect![[r#"
            sysctl -w vm.nr_hugepages=1060
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1060/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1060 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=1060
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1060/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1060 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]]),
        when("settings that need fewer pages are pending", |m| {
            m.waits(|next| next.shared_memory_bytes = 100 * MB);
        })
        .see("status", expect!["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get 50 huge pages of 2 MB. Settings are pending a restart."])
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]])
        .see("reboot", expect![[r#"
            warning too_many_after_restart: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; with the pending settings, 50 are enough.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 50/' /etc/sysctl.d/hugepages.conf"#]])
        .see("how_to_set_2", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 50/' /etc/sysctl.d/hugepages.conf"#]])
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 50/' /etc/sysctl.d/hugepages.conf"#]]),
        when("the line is already that of pending settings", |m| {
            m.asked(50);
            m.waits(|next| next.shared_memory_bytes = 100 * MB);
        })
        .see("runbook", expect![]),
        when("the line is on the kernel command line", |m| {
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.file("proc/cmdline", "hugepages=537");
            m.waits(|next| next.shared_memory_bytes = 100 * MB);
        })
        .see("runbook", expect!["(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 50' >> /etc/sysctl.d/60-hugepages.conf)"]),
        when("the files are refused", |m| {
            m.state.next.files = Files::Refused("syntax error".to_owned())
        })
        .see("status", expect![[r#"
            critical would_not_start: The next start would fail because of the configuration files: syntax error.
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]])
        .see("pending_settings", expect![[r#"
            critical would_not_start: The next start would fail because of the configuration files: syntax error.
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]])
        .see("restart", expect![["ok fits: A restart would get huge pages, but the configuration files prevent the start: see pending_settings."]])
        .see("runbook", expect![["# correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"]]),
        when("pending settings are hidden", |m| {
            m.fall_back(0);
            m.state.next.files = Files::Unknown {
                why: "only superusers can".to_owned(),
                is_pending: true,
            };
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available. Settings are pending a restart, and the pages that they need are unknown.
            # repeat the query as a role that can execute hugeinfo_plan: settings are pending a restart, and the pages that they need are unknown (only superusers can)"#]])
        .see("pending_settings", expect![["unknown unknown: Cannot judge pending_settings: only superusers can."]])
        .see("how_to_set_2", expect![["# repeat the query as a role that can execute hugeinfo_plan: settings are pending a restart, and the pages that they need are unknown (only superusers can)"]])
        .see("runbook", expect![["# repeat the query as a role that can execute hugeinfo_plan: settings are pending a restart, and the pages that they need are unknown (only superusers can)"]]),
    ]);
}

#[test]
fn muted() {
    test(vec![
        when(
            "huge_pages is muted for a server that was turned off",
            |m| {
                m.fall_back(0);
                m.off();
                m.muted = "huge_pages, pool_filled";
            },
        )
        .see("status", expect![["ok turned_off: On 4 kB pages: huge_pages = off."]])
        .see("runbook", expect![[""]]),
        when("huge_pages is muted for a server that fell back", |m| {
            m.fall_back(0);
            m.muted = "huge_pages";
        })
        .see("status", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537"#]])
        // A row that is not muted refers to no muted row.
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            # remove huge_pages from pg_hugeinfo.muted_checks: while it is muted, no remedy moves the server to huge pages"#]]),
        when("other checks are muted", |m| {
            m.fall_back(0);
            m.muted = "swap, major_faults";
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("everything about the server is muted", |m| {
            m.lowered(100);
            m.muted = "cgroup_fault_limit, huge_pages, restart, pool_size";
        })
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. Muted: restart (warning): A restart would lose huge pages. Needs 537 huge pages of 2 MB; 100 are available."]]),
        when("another tool sets the pool, and pool_size is muted", |m| {
            m.fall_back(4000);
            m.asked(537);
            m.muted = "pool_size";
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]])
        .see("pool_size", expect![[r#"
            warning unused_pages: 3463 huge pages of 2 MB (6926 MB) are idle: PostgreSQL needs none of them; 537 are needed.
            # remove pool_size from pg_hugeinfo.muted_checks: while it is muted, no remedy releases idle pages"#]])
        .see("runbook", expect!["# restart PostgreSQL (ends all sessions)"]),
        when("a healthy check is muted", |m| m.muted = "huge_pages").see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]]),
        when("the OOM score is not set", |m| m.oom_scores(0, 0)).see("runbook", expect!["# set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"]),
        when("the OOM score is not set, and the check is muted", |m| {
            m.oom_scores(0, 0);
            m.muted = "oom_protection";
        })
        .see("runbook", expect![[""]]),
    ]);
}

/// For small pages, facts are not enough: an environment is also needed.
#[test]
fn facts_are_enough_on_huge_pages() {
    fn turned_off(m: &mut Scene) {
        m.fall_back(0);
        m.off();
    }
    for (change, muted, is_healthy) in [
        ((|_| {}) as fn(&mut Scene), "", true),
        (|m| m.lowered(100), "", false),
        (|m| m.lowered(100), "restart", false),
        (|m| m.fall_back(537), "huge_pages", false),
        (turned_off, "", false),
        (turned_off, "restart", false),
    ] {
        let mut scene = Scene::healthy();
        change(&mut scene);
        scene.muted = muted;
        let machine = scene.machine();
        let machine = Machine {
            muted: machine.muted.clone(),
            ..Machine::new(Facts {
                is_whole: false,
                ..Facts::clone(&machine.facts)
            })
        };
        let verdict = answer::verdict_if_healthy(&machine);
        assert_eq!(verdict.is_some(), is_healthy, "{muted}");
    }
}

/// Settings that take effect at the next start.
pub fn plan(settings: &[(&str, &str, Result<Server, &str>)]) -> Planned {
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value, next)| PlannedSetting {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            source: SettingSource::Default,
            pending: Pending::Restart,
            next: next.clone().map_err(str::to_owned),
        })
        .collect();
    let last = settings.last().expect("a setting");
    let decides = |name: &str| matches!(name, "huge_pages" | "shared_memory_type");
    Planned {
        is_about_request: settings.iter().any(|setting| decides(&setting.name)),
        next: last.next.clone().expect("a start"),
        pending: Pending::Nothing,
        settings,
    }
}

pub fn commands(machine: &Machine, plan: &Planned) -> Vec<String> {
    let rows = runbook::for_settings(machine, plan).into_iter();
    rows.map(|row| match (row.command, row.instruction) {
        (Some(command), _) => command,
        (None, instruction) => format!("# {}", instruction.unwrap_or_default()),
    })
    .collect()
}

fn machine(change: fn(&mut Scene)) -> Machine {
    let mut scene = Scene::healthy();
    change(&mut scene);
    scene.machine()
}

fn with(machine: &Machine, bytes: u64, huge_pages: HugePages) -> Server {
    Server {
        shared_memory_bytes: bytes,
        huge_pages,
        ..machine.state.server.clone()
    }
}

const RESTART: &str = "# restart PostgreSQL (ends all sessions)";
const CHECK_1050: &str = r#"if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1050 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#;
const BOOT_1050: &str =
    r"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1050/' /etc/sysctl.d/hugepages.conf";

#[test]
fn planned_settings_are_changed_in_their_order() {
    let machine = machine(|_| {});
    let next = |bytes| with(&machine, bytes, HugePages::Try);
    let larger = plan(&[
        ("superuser_reserved_connections", "90", Err("too many")),
        ("max_connections", "200", Ok(next(1100 * MB))),
        ("shared_buffers", "it's 2GB", Ok(next(2100 * MB))),
    ]);
    assert_eq!(
        commands(&machine, &larger),
        [
            "ALTER SYSTEM SET superuser_reserved_connections = 90;",
            "ALTER SYSTEM SET max_connections = 200;",
            "ALTER SYSTEM SET shared_buffers = 'it''s 2GB';",
            "sysctl -w vm.nr_hugepages=1050",
            BOOT_1050,
            CHECK_1050,
            RESTART,
        ]
    );
    let octal = plan(&[
        ("max_connections", "0100", Ok(next(1073 * MB))),
        ("max_wal_senders", " 0\n", Ok(next(1073 * MB))),
    ]);
    assert_eq!(
        commands(&machine, &octal),
        [
            "ALTER SYSTEM SET max_connections = '0100';",
            "ALTER SYSTEM SET max_wal_senders = 0;",
            RESTART,
        ]
    );
}

#[test]
fn a_plan_keeps_the_decision_about_pages_for_other_servers() {
    let machine = machine(|m| {
        m.more(4096);
        m.other(8 * GB, 4096, TRY);
        m.other(MB, 4096, RequestedPages::Unknown(None)).segment = None;
    });
    let next = with(&machine, 4633 * 2 * MB, HugePages::Try);
    let larger = plan(&[("shared_buffers", "9GB", Ok(next))]);
    assert_eq!(
        commands(&machine, &larger),
        [
            "ALTER SYSTEM SET shared_buffers = '9GB';",
            r"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 8729/' /etc/sysctl.d/hugepages.conf",
            RESTART,
            "# on the host, allocate 8729 huge pages of 2 MB, if it has the memory: the memory of another server cannot be read",
        ]
    );
}

#[test]
fn planned_settings_are_changed_where_they_come_from() {
    let mut machine = machine(|_| {});
    let next = with(&machine, 2100 * MB, HugePages::Try);
    let mut larger = plan(&[("shared_buffers", "2GB", Ok(next))]);
    larger.settings[0].source = SettingSource::CommandLine;
    assert_eq!(
        commands(&machine, &larger)[0],
        "# set shared_buffers = '2GB' on the command line of the server, which overrides its files (a systemd unit or Patroni can set it; see postmaster.opts)"
    );
    Arc::make_mut(&mut machine.facts).allows_alter_system = false;
    larger.settings[0].source = line();
    assert_eq!(
        commands(&machine, &larger)[0],
        "# in /etc/postgresql/17/main/postgresql.conf, line 42: shared_buffers = '2GB'"
    );
}

#[test]
fn settings_that_are_in_the_files_are_not_changed_again() {
    let machine = machine(|_| {});
    let has = |pending| Planned {
        settings: Vec::new(),
        is_about_request: false,
        pending,
        next: machine.state.server.clone(),
    };
    assert!(commands(&machine, &has(Pending::Nothing)).is_empty());
    assert_eq!(
        commands(&machine, &has(Pending::Reload)),
        ["SELECT pg_reload_conf();"]
    );
    assert_eq!(commands(&machine, &has(Pending::Restart)), [RESTART]);
    // Another pending change stays a question.
    let turned_off = |is_about_request| {
        let mut scene = Scene::healthy();
        scene.waits(|next| next.huge_pages = HugePages::Off);
        let machine = scene.machine();
        let planned = Planned {
            is_about_request,
            next: machine.next_start(),
            ..has(Pending::Restart)
        };
        commands(&machine, &planned)
    };
    let asks = |command: &String| command.contains("huge_pages = off is intended");
    assert!(turned_off(false).iter().any(asks));
    let planned = turned_off(true);
    assert!(!planned.iter().any(asks), "{planned:#?}");
    assert!(planned.contains(&RESTART.to_owned()), "{planned:#?}");
    let next = machine.state.server.clone();
    let mut workers = plan(&[("io_workers", "5", Ok(next))]);
    workers.settings[0].pending = Pending::Reload;
    assert_eq!(
        commands(&machine, &workers),
        [
            "ALTER SYSTEM SET io_workers = 5;",
            "SELECT pg_reload_conf();"
        ]
    );
}

#[test]
fn plan_to_turn_huge_pages_off_is_followed() {
    let machine = machine(|_| {});
    let next = with(&machine, 1073 * MB, HugePages::Off);
    let off = plan(&[("huge_pages", "off", Ok(next))]);
    assert_eq!(
        commands(&machine, &off),
        [
            "ALTER SYSTEM SET huge_pages = 'off';",
            r"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf",
            RESTART,
            "sysctl -w vm.nr_hugepages=0",
        ]
    );
}

/// A planned change is intended, so the runbook does not ask about it.
#[test]
fn plan_for_sysv_has_no_question() {
    let machine = machine(|_| {});
    let next = Server {
        shared_memory_type: SharedMemoryType::Sysv,
        ..machine.state.server.clone()
    };
    let sysv = plan(&[("shared_memory_type", "sysv", Ok(next))]);
    assert_eq!(
        commands(&machine, &sysv),
        [
            "ALTER SYSTEM SET shared_memory_type = 'sysv';",
            r"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf",
            RESTART,
            "sysctl -w vm.nr_hugepages=0",
        ]
    );
}

/// The pool and the line were for the pages that the server asked for, even if it did not get them.
#[test]
fn plan_of_a_server_that_fell_back_leaves_no_pages_behind() {
    let plan_with = |pages, change: fn(&mut Server)| {
        let mut scene = Scene::healthy();
        scene.on_small_pages(16 * GB, 6000);
        scene.asked(pages);
        let machine = scene.machine();
        let mut next = machine.state.server.clone();
        change(&mut next);
        let planned = Planned {
            settings: Vec::new(),
            is_about_request: true,
            pending: Pending::Restart,
            next,
        };
        commands(&machine, &planned)
    };
    let release = [
        "sysctl -w vm.nr_hugepages=0",
        r"sed -i 's/^vm\.nr_hugepages = 6000$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf",
        RESTART,
    ];
    assert_eq!(
        plan_with(6000, |next| next.huge_pages = HugePages::Off),
        release
    );
    let sysv = |next: &mut Server| next.shared_memory_type = SharedMemoryType::Sysv;
    assert_eq!(plan_with(6000, sysv), release);
    let smaller = plan_with(6000, |next| next.shared_memory_bytes = GB);
    assert_eq!(smaller[0], "sysctl -w vm.nr_hugepages=512");
    let larger_pages = plan_with(6000, |next| next.huge_page_size_bytes = Some(GB));
    assert!(
        larger_pages.contains(&release[0].to_owned()),
        "{larger_pages:#?}"
    );
    assert!(
        larger_pages.contains(&release[1].to_owned()),
        "{larger_pages:#?}"
    );
    // A line that was made for more could be for others.
    assert_eq!(
        plan_with(20_000, |next| next.huge_pages = HugePages::Off),
        [RESTART]
    );
}

/// The kernel would choose the nodes that lose pages.
#[test]
fn plan_of_a_bound_server_names_the_pages_that_stay() {
    let machine = machine(|m| {
        m.on_huge_pages(8 * GB, 8 * GB);
        m.nodes(&[(4096, 32 * GB), (0, 32 * GB)]);
        m.bound(&[0]);
    });
    let off = with(&machine, 8 * GB, HugePages::Off);
    assert_eq!(
        commands(&machine, &plan(&[("huge_pages", "off", Ok(off))])),
        [
            "ALTER SYSTEM SET huge_pages = 'off';",
            RESTART,
            "# after the restart, release up to 4096 huge pages of 2 MB node by node (hugeinfo_numa); /etc/sysctl.d/hugepages.conf:1 sets 4096 at boot, on all nodes together",
        ]
    );
    let smaller = with(&machine, 4 * GB, HugePages::Try);
    assert_eq!(
        commands(
            &machine,
            &plan(&[("shared_buffers", "3900MB", Ok(smaller))])
        )[2],
        "# after the restart, release up to 2048 huge pages of 2 MB node by node (hugeinfo_numa), and keep 2048 on NUMA node 0, which the server is allowed to use; /etc/sysctl.d/hugepages.conf:1 sets 4096 at boot, on all nodes together"
    );
}

/// A stopped server is started, not restarted.
#[test]
fn stopped_server_is_started_with_idle_pages_of_another_size() {
    let running = machine(|m| {
        m.ram(32 * GB);
        m.on_small_pages(8 * GB, 0);
        m.file("etc/sysctl.d/hugepages.conf", None);
        m.pool(1).total = 20;
        m.pool(1).free = 20;
        m.available = Some(4 * GB);
        m.facts.allows_alter_system = false;
    });
    for (machine, verb) in [
        (running.clone(), "restart"),
        (running.apply(&Step::Stop).expect("it runs"), "start"),
    ] {
        let rows = runbook::for_answer(&machine, &Answer::of(&machine));
        let question = rows[0].instruction.as_deref().expect("a question");
        let change = format!(
            "if no other program needs the 20 huge pages of 1 GB that are idle, in the configuration file: huge_page_size = '1GB' and {verb} PostgreSQL; otherwise, "
        );
        assert!(question.starts_with(&change), "{question}");
    }
}

#[test]
fn plan_with_huge_pages_on_has_a_check_before_the_restart() {
    let machine = machine(|_| {});
    let insists = plan(&[
        (
            "shared_buffers",
            "2GB",
            Ok(with(&machine, 2100 * MB, HugePages::Try)),
        ),
        (
            "huge_pages",
            "on",
            Ok(with(&machine, 2100 * MB, HugePages::On)),
        ),
    ]);
    let rows = runbook::for_settings(&machine, &insists);
    let planned = rows.iter().take_while(|row| row.why == "as planned");
    assert_eq!(planned.count(), 2);
    let mut commands = rows.iter().filter_map(|row| row.command.as_deref());
    let check = CHECK_1050.replace("do not restart", "do not restart (huge_pages = on)");
    assert_eq!(commands.next_back(), Some(&*check));
}

#[test]
fn plan_that_is_too_large_is_a_decision() {
    let machine = machine(|_| {});
    for (bytes, huge_pages, decision) in [
        (
            62 * GB,
            HugePages::Try,
            "# free 7455 MB of memory, or lower shared_buffers by 7456MB: too little memory is available for the pool",
        ),
        (
            70 * GB,
            HugePages::Off,
            "# lower shared_buffers by 8529MB, or add 8529 MB of memory or swap: too little memory is available",
        ),
    ] {
        let next = with(&machine, bytes, huge_pages);
        let larger = plan(&[("shared_buffers", "60GB", Ok(next))]);
        assert_eq!(commands(&machine, &larger), [decision]);
    }
}

#[test]
fn plan_leaves_enough_to_commit() {
    let machine = machine(|m| {
        m.on_huge_pages(16 * GB, 16 * GB);
        m.strict(23 * GB + 512 * MB);
    });
    let off = with(&machine, 16 * GB, HugePages::Off);
    let off = plan(&[("huge_pages", "off", Ok(off))]);
    let decision =
        "# set vm.overcommit_ratio to 52, add 799 MB of swap, or lower committed memory by as much";
    assert_eq!(commands(&machine, &off), [decision]);
}

#[test]
fn plan_that_corrects_refused_files_is_followed() {
    let machine = machine(|m| {
        m.fall_back(537);
        m.state.next.files = Files::Refused("invalid value".to_owned());
    });
    let next = machine.state.server.clone();
    let enough = plan(&[("max_connections", "100", Ok(next))]);
    assert_eq!(
        commands(&machine, &enough),
        ["ALTER SYSTEM SET max_connections = 100;", RESTART]
    );
}
