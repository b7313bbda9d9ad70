//! The order of steps and decisions, the way back, and one problem for each cause.

use advice::{
    answer::Answer,
    check::{CheckId, Status, problems},
    model::{other_host, step::Step},
    plan::how_to_set,
    render, runbook, text,
};
use expect_test::expect;
use host::{
    server::{
        setting::{FileLine, Setting, SettingSource},
        state::{Files, HugePages, Server, SharedMemoryType},
    },
    units::PageSize,
};

use crate::{scene::*, settings::plan, table::*};

fn set(m: &mut Scene, name: &'static str, value: &str, source: SettingSource) {
    let value = value.to_owned();
    let setting = Setting { value, source };
    m.state.next.settings.insert(name, setting);
}

/// The server runs with this option on its command line, and its files differ by this change.
fn with_option(m: &mut Scene, name: &'static str, value: &str, change: impl FnOnce(&mut Server)) {
    set(m, name, value, SettingSource::CommandLine);
    let mut files = m.state.server.clone();
    change(&mut files);
    m.state.next.from_files = Some(files);
}

#[test]
fn restarts_have_a_condition() {
    test(vec![
        when("the kernel might find one of two 1 GB pages", |m| {
            m.on_small_pages(GB + GB / 2, 0);
            m.ram(16 * GB);
            m.available = Some(6 * GB);
            m.state.server.huge_page_size_bytes = Some(GB);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 2 huge pages of 1 GB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 2 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=2 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("the pool is large enough", |m| m.fall_back(537)).see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]]),
    ]);
}

#[test]
fn what_a_restart_needs_comes_first() {
    test(vec![
        when("a container has a memory limit", |m| {
            m.fall_back(0);
            m.container();
            m.memory_limit(8 * GB, 2 * GB, GB);
            m.oom_scores(0, 0);
        })
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=537
            # set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /etc is not the host's (as in a container)"#]]),
        when(
            "the segment exceeds the memory limit, and pages are missing at boot",
            |m| {
                m.off();
                m.fall_back(0);
                m.oom_scores(0, 0);
                m.memory_limit(500 * MB, 450 * MB, 0);
                m.asked(100);
            },
        )
        .see("runbook", expect![[r#"
            # raise the memory limit of the server's cgroup by 573 MB, or lower shared_buffers by as much
            # set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server; takes effect at the next restart"#]]),
    ]);
}

#[test]
fn way_back_is_the_running_value() {
    fn lowered(m: &mut Scene) {
        m.on_huge_pages(40 * GB, 40 * GB);
        m.available = Some(8 * GB);
        m.waits(|next| next.huge_pages = HugePages::Off);
    }
    test(vec![
        when("the value came from ALTER SYSTEM", |m| {
            lowered(m);
            set(m, "huge_pages", "try", SettingSource::AutoConf);
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. The next start uses huge_pages = off. On small pages, the segment takes 40 GB; 8 GB and 8 GB of swap are available.
            # undo the pending change: ALTER SYSTEM SET huge_pages = 'try'; or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_pages=off')"#]]),
        when("ALTER SYSTEM is not allowed", |m| {
            lowered(m);
            m.facts.allows_alter_system = false;
            let line = FileLine {
                path: "/etc/postgresql/postgresql.conf".into(),
                line: 12,
            };
            set(m, "huge_pages", "on", SettingSource::File(Some(line)));
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. The next start uses huge_pages = off. On small pages, the segment takes 40 GB; 8 GB and 8 GB of swap are available.
            # undo the pending change: in /etc/postgresql/postgresql.conf, line 12: huge_pages = 'on'; or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_pages=off')"#]]),
        when("the running value is unknown", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(8 * GB);
            m.waits(|next| {
                next.huge_pages = HugePages::Off;
                next.shared_memory_bytes += GB;
            });
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. The next start uses huge_pages = off. On small pages, the segment takes 41 GB; 8 GB and 8 GB of swap are available.
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook(settings)"#]]),
        when("only the command line has the value", |m| {
            set(m, "huge_pages", "off", SettingSource::CommandLine);
        })
        .see("pending_settings", expect!["ok nothing_pending: No pending setting changes the number or size of huge pages. The command line of the server sets huge_pages = off. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start)."]),
        when("the command line turns off what the files insist on", |m| {
            m.fall_back(0);
            m.off();
            with_option(m, "huge_pages", "off", |files| files.huge_pages = HugePages::On);
        })
        .see("pending_settings", expect![[r#"
            warning needs_command_line: A start without the options of the command line would fail, because huge_pages = on. Needs 537 huge pages of 2 MB; 0 are available. No pending setting changes the number or size of huge pages. The command line of the server sets huge_pages = off. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start).
            # before a start without the options of the command line, correct the settings in the files, or allocate 537 huge pages of 2 MB for such a start"#]]),
        when("PostgreSQL refuses the files without the command line", |m| {
            set(m, "max_connections", "200", SettingSource::CommandLine);
            m.state.next.refused_alone = Some("too few max_connections".to_owned());
        })
        .see("pending_settings", expect![[r#"
            warning needs_command_line: A start without the options of the command line would fail because of the configuration files: too few max_connections. No pending setting changes the number or size of huge pages. The command line of the server sets max_connections = 200. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start).
            # before a start without the options of the command line, correct the settings in the files"#]]),
        when("root has only found the server, whose files have changed", |m| {
            m.fall_back(0);
            m.state.next.files = Files::NotNamed("hugeinfo status -D /srv/data".to_owned());
        })
        .see("status", expect!["unknown unknown: On 4 kB pages. Whether the server asks for huge pages is unknown (hugeinfo status -D /srv/data). The settings of the next start are unknown."])
        .see("huge_pages", expect!["unknown unknown: On 4 kB pages. Whether the server asks for huge pages is unknown (hugeinfo status -D /srv/data)."])
        .see("restart", expect!["unknown unknown: Cannot judge restart: whether the server asks for huge pages is unknown (hugeinfo status -D /srv/data)."]),
        when("the files alone need more pages than are there", |m| {
            m.fall_back(150);
            m.needs(150 * MB);
            with_option(m, "shared_buffers", "128MB", |files| {
                files.huge_pages = HugePages::On;
                files.shared_memory_bytes = 40 * GB;
            });
        })
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            # before a start without the options of the command line, correct the settings in the files, or allocate 20480 huge pages of 2 MB for such a start
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the files alone need the idle pages", |m| {
            m.needs(150 * MB);
            m.more(20_480);
            with_option(m, "shared_buffers", "128MB", |files| files.shared_memory_bytes = 40 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; needed: 20480 = 75 for this server + 20405 if this server starts without the options of its command line.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            # needed: 20480 = 75 for this server + 20405 if this server starts without the options of its command line; 20942 if the 462 that no visible server holds (hugeinfo_holders) are needed after a boot, too"#]])
        .see("how_to_set_2", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            # needed: 20480 = 75 for this server + 20405 if this server starts without the options of its command line; 20942 if the 462 that no visible server holds (hugeinfo_holders) are needed after a boot, too"#]])
        .see("pool_size", expect!["unknown unknown: 20480 huge pages of 2 MB (40 GB) are idle; needed: 537 = 75 for this server + 462 that no visible server holds. A start without the options of the command line needs 20480."])
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf"#]]),
        when("the command line needs fewer pages, and the files need the idle ones", |m| {
            m.state.server.huge_pages = HugePages::On;
            m.on_huge_pages(GB + 100 * MB, 0);
            m.more(20_480 - 562);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.available = Some(8 * GB);
            with_option(m, "shared_buffers", "1GB", |files| files.shared_memory_bytes = 40 * GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; needed: 20480 = 562 for this server + 19918 if this server starts without the options of its command line.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 20480' >> /etc/sysctl.d/60-hugepages.conf)
            # needed: 20480 = 562 for this server + 19918 if this server starts without the options of its command line"#]])
        .see("pool_size", expect!["unknown unknown: 19918 huge pages of 2 MB (39 GB) are idle; 562 are needed. A start without the options of the command line needs 20480."])
        .see("runbook", expect!["(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 20480' >> /etc/sysctl.d/60-hugepages.conf)"]),
        when("the files need the idle pages, and another server asks for pages", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(4000);
            m.other(8 * GB, 4096, TRY);
            with_option(m, "shared_buffers", "15GB", |files| {
                files.huge_pages = HugePages::On;
                files.shared_memory_bytes = 20 * GB;
            });
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 12192 huge pages of 2 MB; needed: 14336 = 8192 for this server + 2048 if this server starts without the options of its command line + 4096 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]])
        .see("pool_size", expect!["ok no_idle_pages: No pool holds idle pages."])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            # if no other program needs 4000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=14336
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 14336/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 14336 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when("the files have another page size", |m| {
            m.state.server.huge_pages = HugePages::On;
            m.on_huge_pages(8 * GB, 8 * GB);
            m.state.server.huge_page_size_bytes = Some(2 * MB);
            with_option(m, "huge_page_size", "2MB", |files| files.huge_page_size_bytes = Some(GB));
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 1 GB pages at boot; needed: 8 if this server starts without the options of its command line.
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=8 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("how_to_set_2", expect![""]),
        when("the files try another page size", |m| {
            m.on_huge_pages(20 * GB, 20 * GB);
            m.state.server.huge_page_size_bytes = Some(2 * MB);
            with_option(m, "huge_page_size", "2MB", |files| files.huge_page_size_bytes = Some(GB));
        })
        .see("runbook", expect![""]),
        when("the host cannot hold pages of both sizes", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(12 * GB);
            m.state.server.huge_page_size_bytes = Some(2 * MB);
            with_option(m, "huge_page_size", "2MB", |files| {
                files.huge_pages = HugePages::On;
                files.huge_page_size_bytes = Some(GB);
            });
        })
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 20480 huge pages of 2 MB at boot."])
        .see("runbook", expect!["# before a start without the options of the command line, correct the settings in the files"]),
        when("the pool has enough pages for another server, but not for the files", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            m.more(1024);
            m.asked(6144);
            m.other(2 * GB, 4096, TRY);
            with_option(m, "shared_buffers", "7GB", |files| files.shared_memory_bytes = 12 * GB);
        })
        .see("other_servers", expect!["ok enough_for_all: Another server runs on this host. The pool has 5120 huge pages of 2 MB; needed: 5120 = 4096 for this server + 1024 for the server on port 5433 (huge_pages = try). The server on port 5433 gets its pages when it restarts."])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 6144 huge pages of 2 MB at boot; needed: 7168 = 4096 for this server + 2048 if this server starts without the options of its command line + 1024 for the server on port 5433 (huge_pages = try).
            sed -i 's/^vm\.nr_hugepages = 6144$/vm.nr_hugepages = 7168/' /etc/sysctl.d/hugepages.conf
            # needed: 7168 = 4096 for this server + 2048 if this server starts without the options of its command line + 1024 for the server on port 5433 (huge_pages = try)"#]]),
        when("the command line has huge_pages = off, and the files have try", |m| {
            m.on_small_pages(8 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            with_option(m, "huge_pages", "off", |files| files.huge_pages = HugePages::Try);
        })
        .see("reboot", expect!["ok does_not_ask: This server does not ask for huge pages."])
        .see("runbook", expect![""]),
        when("the host cannot hold the segment of a start from the files", |m| {
            m.on_small_pages(150 * MB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.available = Some(10 * GB);
            m.swap(0);
            with_option(m, "shared_buffers", "128MB", |files| files.shared_memory_bytes = 40 * GB);
        })
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=75
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 75' >> /etc/sysctl.d/60-hugepages.conf)
            # before a start without the options of the command line, correct the settings in the files
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 75 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the server was started with try, and there are too few pages", |m| {
            m.ram(16 * GB);
            m.on_small_pages(8 * GB, 1000);
            m.asked(1000);
            m.faulted_in(4 * GB);
            m.available = Some(4 * GB);
            with_option(m, "huge_pages", "try", |files| files.huge_pages = HugePages::On);
        })
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 1000$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=1000; start PostgreSQL with the options that its command line had' >&2; false; fi
            # start PostgreSQL"#]]),
        when("PostgreSQL refuses the files alone, and the server has to stop", |m| {
            m.ram(16 * GB);
            m.on_small_pages(8 * GB, 1000);
            m.asked(1000);
            m.faulted_in(4 * GB);
            m.available = Some(4 * GB);
            set(m, "max_connections", "200", SettingSource::CommandLine);
            m.state.next.refused_alone = Some("too few max_connections".to_owned());
        })
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 1000$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            # before a start without the options of the command line, correct the settings in the files
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=1000; start PostgreSQL with the options that its command line had' >&2; false; fi
            # start PostgreSQL with the options that its command line had"#]])
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 1000 are available.
            sed -i 's/^vm\.nr_hugepages = 1000$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=4096
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=1000; start PostgreSQL with the options that its command line had' >&2; false; fi
            # start PostgreSQL with the options that its command line had"#]]),
        when("the command line has values, and others are pending", |m| {
            m.on_huge_pages(GB, GB);
            m.waits(|next| next.shared_memory_bytes = 100 * MB);
            set(m, "huge_pages", "try", SettingSource::CommandLine);
            set(m, "shared_buffers", "920MB", SettingSource::CommandLine);
        })
        .see("pending_settings", expect!["ok fits: Settings are pending a restart (shared_buffers). A restart would get 50 huge pages of 2 MB. The command line of the server sets huge_pages = try, shared_buffers = 920MB. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start)."])
        .see("text", expect![[r#"
            OK  On 512 huge pages of 2 MB. A restart would get 50 huge pages of 2 MB.
                Settings are pending a restart.
              2 MB pages      [|###############] 50 needed, 512 in the pool, 512 in use
              page tables     Page tables of 21 processes take 6300 kB.
              next restart    A restart would get 50 huge pages of 2 MB.
                              The command line of the server sets huge_pages = try,
                              shared_buffers = 920MB. A start without these options (see
                              postmaster.opts) uses the files (see hugeinfo_next_start).
              next reboot     /etc/sysctl.d/hugepages.conf:1 sets 512 huge pages of 2 MB at
                              boot; with the pending settings, 50 are enough.
              do this  1 root sed -i 's/^vm\.nr_hugepages = 512$/vm.nr_hugepages = 50/' /etc/sysctl.d/hugepages.conf"#]]),
    ]);
}

#[test]
fn one_cause_is_one_problem() {
    test(vec![
        when("everything follows from an empty pool", |m| {
            m.fall_back(0);
            m.asked(0);
            m.waits(|next| next.shared_memory_bytes += 100 * MB);
            m.other(
                GB,
                4096,
                host::server::configuration::RequestedPages::Known(HugePages::Try, Some(0)),
            );
        })
        .see("text", expect![[r#"
            WARNING  On 4 kB pages: huge_pages = try fell back. Needs 587 huge pages of
                     2 MB; 0 are available. Settings are pending a restart.
              2 MB pages      [...............|] 1099 needed, 0 in the pool, 0 in use
                              needed: 1099 = 587 for this server + 512 for the server on
                              port 5433 (huge_pages = try)
              page tables     Page tables of 21 processes take 6300 kB.
                              For the shared memory alone, with 100 connections: up to
                              229 MB. On 2 MB pages: up to 459 kB.
              next restart    A restart would not get huge pages. Needs 587 huge pages of
                              2 MB; 0 are available.
              next reboot     /etc/sysctl.d/hugepages.conf:1 sets 0 huge pages of 2 MB at
                              boot; needed: 1099 = 587 for this server + 512 for the server
                              on port 5433 (huge_pages = try).
              same cause      pending_settings, other_servers (as huge_pages)
              do this  1 root sysctl -w vm.nr_hugepages=1099
                       2 root sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 1099/' /etc/sysctl.d/hugepages.conf
                       3 root if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 587 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                       4 you  restart PostgreSQL (ends all sessions)
                       5 root if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 1099 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                       6 you  restart the server on port 5433 (ends all of its sessions)"#]]),
    ]);
}

/// A stopped server that is larger than RAM and swap.
#[test]
fn start_that_memory_cannot_hold_is_one_problem() {
    let mut scene = Scene::healthy();
    scene.on_small_pages(80 * GB, 0);
    let stopped = scene
        .machine()
        .apply(&Step::Stop)
        .expect("a server that runs");
    let answer = Answer::of(&stopped);
    let checks = answer.checks();
    let critical = checks
        .iter()
        .filter(|check| check.finding.status == Status::Critical);
    let ids: Vec<_> = critical.clone().map(|check| check.id).collect();
    assert_eq!(ids, [CheckId::Restart, CheckId::MemoryLeft]);
    assert_eq!(problems(critical).len(), 1);
    expect![[r#"
        CRITICAL  The server is stopped. A start would fail. Needs 40960 huge pages of
                  2 MB; 0 are available. On small pages, the segment takes 80 GB; the
                  kernel refuses more than RAM and swap (72 GB).
          2 MB pages      [...............|] 40960 needed, 0 in the pool, 0 in use
          page tables     For the shared memory alone, with 100 connections: up to
                          16 GB. On 2 MB pages: up to 31 MB.
          next start      A start would fail. Needs 40960 huge pages of 2 MB; 0 are
                          available. On small pages, the segment takes 80 GB; the kernel
                          refuses more than RAM and swap (72 GB).
          next reboot     /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at
                          boot; 40960 are needed.
          same cause      memory_left, pool_filled, pool_growth (as restart)
          do this  1 you  lower shared_buffers by 17696MB, or add 18056 MB of memory:
                          too little memory is available for the pool"#]]
    .assert_eq(&text::text(&stopped, &answer));
}

/// The default size of another host is a guess: `vm.nr_hugepages` could be for 2 MB pages there.
#[test]
fn pages_of_another_host() {
    let how = |megabytes: u64| {
        let next = Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 33 * GB,
        };
        let bytes = megabytes * MB;
        let machine = other_host::machine(next, 4096, Some(256 * GB), Some(bytes), &[bytes]);
        let remedy = how_to_set(&machine, PageSize(bytes));
        render::remedy(&machine, &remedy).expect("a remedy")
    };
    expect![[r#"
        echo 33 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
        # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=33 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]].assert_eq(&how(1024));
    expect![[r#"
        sysctl -w vm.nr_hugepages=16896
        (umask 022 && echo 'vm.nr_hugepages = 16896' >> /etc/sysctl.d/60-hugepages.conf)"#]]
    .assert_eq(&how(2));
}

/// A change of the files changes a start from the files alone in the same way.
#[test]
fn plan_names_files_that_need_the_command_line() {
    let mut scene = Scene::healthy();
    scene.on_huge_pages(GB, GB);
    set(
        &mut scene,
        "shared_buffers",
        "900MB",
        SettingSource::CommandLine,
    );
    scene.state.next.from_files = Some(Server {
        shared_memory_bytes: 40 * GB,
        ..scene.state.server.clone()
    });
    let machine = scene.machine();
    let next = Server {
        huge_pages: HugePages::On,
        ..machine.next_start()
    };
    let planned = plan(&[("huge_pages", "on", Ok(next))]);
    let rows = runbook::for_settings(&machine, &planned);
    let texts = rows
        .iter()
        .map(|row| row.command.as_ref().or(row.instruction.as_ref()));
    let texts: Vec<_> = texts.flatten().cloned().collect();
    expect![[r#"
        ALTER SYSTEM SET huge_pages = 'on';
        sed -i 's/^vm\.nr_hugepages = 512$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
        before a start without the options of the command line, correct the settings in the files, or allocate 20480 huge pages of 2 MB for such a start
        restart PostgreSQL (ends all sessions)"#]].assert_eq(&texts.join("\n"));
}

/// Files that differ from the command line, as those of Patroni do.
#[test]
fn files_differ_from_the_command_line() {
    const BOOT: &str = "etc/sysctl.d/hugepages.conf";
    test(vec![
        when("a pool that has to grow gets the pages of both starts", |m| {
            m.on_small_pages(30 * GB, 0);
            m.file(BOOT, None);
            m.available = Some(10 * GB);
            with_option(m, "max_connections", "300", |files| files.shared_memory_bytes += 100 * MB);
        })
        .see("runbook", expect![[r#"
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 15410' >> /etc/sysctl.d/60-hugepages.conf)
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=15410
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 15410 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("memory cannot hold the pool and the segment of the files", |m| {
            m.on_small_pages(16 * GB, 0);
            m.file(BOOT, None);
            m.available = Some(6 * GB);
            with_option(m, "shared_buffers", "300", |files| files.shared_memory_bytes = 24 * GB);
        })
        .see("runbook", expect![[r#"
            # first, correct the settings in the files: with a larger pool, a start without the options of the command line would run out of memory or exceed a limit
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 8192' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("a limit is too low for the files", |m| {
            m.on_small_pages(16 * GB, 0);
            m.file(BOOT, None);
            limited(&mut m.state, Some(16_384), None);
            with_option(m, "max_connections", "300", |files| files.shared_memory_bytes += 100 * MB);
        })
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=8192
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 8192' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8192 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("memory is short, and the files need the idle pages", |m| {
            m.state.server.huge_pages = HugePages::On;
            m.on_huge_pages(8 * GB, 8 * GB);
            m.more(4096);
            m.asked(8192);
            m.available = Some(600 * MB);
            with_option(m, "shared_buffers", "300", |files| files.shared_memory_bytes = 16 * GB);
        })
        .see("runbook", expect!["# lower shared_buffers to 7070MB, or free or add 711 MB of memory: too little memory is available"]),
        when("pages are idle that the files do not need", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(10_000);
            with_option(m, "max_connections", "300", |files| files.shared_memory_bytes += 100 * MB);
        })
        .see("pool_size", expect!["unknown unknown: 10000 huge pages of 2 MB (20 GB) are idle; 8192 are needed. A start without the options of the command line needs 8242."])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 8242/' /etc/sysctl.d/hugepages.conf
            # if no other program needs 10000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=8242"#]]),
        when("a pending setting needs fewer pages, and so do the files", |m| {
            m.on_huge_pages(30 * GB, 30 * GB);
            m.waits(|next| next.shared_memory_bytes = 15 * GB);
            with_option(m, "max_connections", "300", |files| files.shared_memory_bytes = 15 * GB + 100 * MB);
        })
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 15360$/vm.nr_hugepages = 7730/' /etc/sysctl.d/hugepages.conf"#]]),
        when("the options keep huge pages off, and another server asks for them", |m| {
            m.on_small_pages(16 * GB, 8192);
            m.asked(8192);
            m.off();
            with_option(m, "huge_pages", "300", |files| files.huge_pages = HugePages::Try);
            m.other(4 * GB, 4096, TRY);
        })
        .see("pool_size", expect!["ok idle_by_configuration: 6144 huge pages of 2 MB (12 GB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; needed: 2048 for the server on port 5433 (huge_pages = try)."])
        .see("runbook", expect![""]),
        when("memory is too small for small pages of a start from the files", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            with_option(m, "huge_pages", "300", |files| {
                files.huge_pages = HugePages::Off;
                files.shared_memory_bytes = 60 * GB;
            });
        })
        .see("pending_settings", expect![[r#"
            warning needs_command_line: After a start without the options of the command line, memory would run out. It uses huge_pages = off. On small pages, the segment takes 60 GB; 40 GB and 8 GB of swap are available. No pending setting changes the number or size of huge pages. The command line of the server sets huge_pages = 300. A start without these options (see postmaster.opts) uses the files (see hugeinfo_next_start).
            # before a start without the options of the command line, correct the settings in the files"#]]),
        when("the kernel has no pages of the size in the files", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            with_option(m, "huge_page_size", "300", |files| {
                files.huge_pages = HugePages::On;
                files.huge_page_size_bytes = Some(16 * MB);
            });
        })
        .see("runbook", expect!["# before a start without the options of the command line, correct the settings in the files"]),
    ]);
}
