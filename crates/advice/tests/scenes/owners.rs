//! Pages whose owner is this server, another one, or unknown.

use advice::model::{forecast::Forecast, machine::Machine};
use host::server::{
    setting::{Setting as Known, SettingSource},
    state::{HugePages, Server, SharedMemoryType},
};

use expect_test::{Expect, expect};

use crate::{
    scene::*,
    settings::{commands, plan},
    table::*,
};

const CONF: &str = "etc/sysctl.d/hugepages.conf";

#[test]
fn pages_for_another_server_come_with_its_restart() {
    test(vec![
        when("memory holds its old segment and its pages", |m| {
            m.available = Some(18 * GB);
            m.other(16 * GB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 8729 = 537 for this server + 8192 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=8729
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 8729/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8729 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when("memory cannot hold its old segment and its pages", |m| {
            m.available = Some(17 * GB);
            m.other(16 * GB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 8729 = 537 for this server + 8192 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # stop the server on port 5433, allocate 8729 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 8729/' /etc/sysctl.d/hugepages.conf
            # stop the server on port 5433, allocate 8729 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]]),
        when("a small host without swap", |m| {
            m.ram(4000 * MB);
            m.available = Some(1100 * MB);
            m.other(800 * MB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 937 = 537 for this server + 400 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=937
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 937/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 937 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when("the pool has its pages already", |m| {
            m.more(8192);
            m.other(16 * GB, 4096, TRY);
        })
        .see("other_servers", expect!["ok enough_for_all: Another server runs on this host. The pool has 8729 huge pages of 2 MB; needed: 8729 = 537 for this server + 8192 for the server on port 5433 (huge_pages = try). The server on port 5433 gets its pages when it restarts."])
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 8729/' /etc/sysctl.d/hugepages.conf"#]]),
        when("other_servers is muted", |m| {
            m.fall_back(0);
            m.muted = "other_servers";
            m.other(16 * GB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 2 MB; needed: 8729 = 537 for this server + 8192 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # remove other_servers from pg_hugeinfo.muted_checks: while it is muted, no remedy adds pages for other servers"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
    ]);
}

/// A server that was turned off is no demand, on itself as on other servers.
#[test]
fn turned_off_server_is_no_demand_on_itself() {
    let mut scene = Scene::healthy();
    scene.on_small_pages(1710 * MB, 0);
    scene.off();
    scene.asked(0);
    scene.other(1162 * MB, 4096, TRY);
    let machine = scene.machine();
    let target = Forecast::for_target(&machine).expect("a pool");
    assert_eq!(target.required.0, 855);
    assert_eq!(target.recommended().map(|pages| pages.0), Some(581));
    test(vec![
        when("this server was turned off, and another asks", |m| {
            m.on_small_pages(1710 * MB, 0);
            m.off();
            m.asked(0);
            m.other(1162 * MB, 4096, TRY);
        })
        .see(
            "how_to_set_2",
            expect![[r#"
                sysctl -w vm.nr_hugepages=581
                sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 581/' /etc/sysctl.d/hugepages.conf
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 581 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart the server on port 5433 (ends all of its sessions)"#]],
        )
        .see(
            "runbook",
            expect![[r#"
                sysctl -w vm.nr_hugepages=581
                sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 581/' /etc/sysctl.d/hugepages.conf
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 581 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart the server on port 5433 (ends all of its sessions)"#]],
        ),
        when("it is alone", |m| {
            m.on_small_pages(1710 * MB, 0);
            m.off();
            m.asked(0);
        })
        .see("how_to_set_2", expect![""])
        .see("runbook", expect![""]),
    ]);
}

#[test]
fn idle_pages_of_another_size_are_used_first() {
    test(vec![
        when("34 pages of 1 GB are idle", |m| {
            m.on_small_pages(33 * GB, 0);
            m.faulted_in(GB);
            m.ram(128 * GB);
            m.file(CONF, None);
            m.pool(1).total = 34;
            m.pool(1).free = 34;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 16896 huge pages of 2 MB; 0 are available. There are enough 1 GB pages for a start with huge_page_size = 1GB.
            # if no other program needs the 34 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, stop PostgreSQL, sysctl -w vm.nr_hugepages=16896, and start it"#]])
        .see("runbook", expect!["# if no other program needs the 34 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, stop PostgreSQL, sysctl -w vm.nr_hugepages=16896, and start it"]),
        when("memory will run out", |m| {
            m.on_small_pages(33 * GB, 0);
            m.faulted_in(0);
            m.ram(80 * GB);
            m.file(CONF, None);
            m.swap(0);
            m.available = Some(30 * GB);
            m.pool(1).total = 34;
            m.pool(1).free = 34;
        })
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 33 GB; 30 GB is available.
            # as huge_pages"#]])
        .see("runbook", expect!["# if no other program needs the 34 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, add 39289 MB of memory, or set the pool at boot: too little memory is available for the pool"]),
        when("the pool was lowered under the server", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            m.lowered(2000);
            m.asked(2000);
            m.pool(1).total = 10;
            m.pool(1).free = 10;
        })
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=4096
            sed -i 's/^vm\.nr_hugepages = 2000$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            # if no other program needs 10 huge pages of 1 GB that are idle now: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"#]]),
        when("the other pool needs a stop", |m| {
            m.on_small_pages(33 * GB, 0);
            m.faulted_in(GB);
            m.ram(80 * GB);
            m.available = Some(44 * GB);
            m.file(CONF, None);
            m.pool(1).total = 34;
            m.pool(1).free = 34;
        })
        .see("runbook", expect!["# if no other program needs the 34 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, stop PostgreSQL, sysctl -w vm.nr_hugepages=16896, and start it"]),
        when("the size is set", |m| {
            m.on_small_pages(33 * GB, 0);
            m.faulted_in(GB);
            m.ram(128 * GB);
            m.file(CONF, None);
            m.state.server.huge_page_size_bytes = Some(2 * MB);
            m.pool(1).total = 34;
            m.pool(1).free = 34;
        })
        .see("runbook", expect![[r#"
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 16896' >> /etc/sysctl.d/60-hugepages.conf)
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=16896
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 16896 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL
            # if no other program needs 34 huge pages of 1 GB that are idle now: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"#]]),
        when("the pool of a server on huge pages cannot grow", |m| {
            m.ram(32 * GB);
            m.on_huge_pages(4 * GB, 4 * GB);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=18");
            (m.pool(1).total, m.pool(1).free) = (18, 18);
            m.available = Some(6 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 17 * GB);
        })
        .see("runbook", expect!["# if no other program needs the 18 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, lower shared_buffers by 7824MB, or add 7984 MB of memory: too little memory is available for the pool"]),
        when("too few are idle", |m| {
            m.on_small_pages(33 * GB, 0);
            m.faulted_in(GB);
            m.ram(128 * GB);
            m.file(CONF, None);
            m.pool(1).total = 32;
            m.pool(1).free = 32;
        })
        .see("runbook", expect![[r#"
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 16896' >> /etc/sysctl.d/60-hugepages.conf)
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=16896
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 16896 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL
            # if no other program needs 32 huge pages of 1 GB that are idle now: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"#]]),
    ]);
}

#[test]
fn pages_of_an_unknown_owner() {
    test(vec![
        when("pages are idle that nothing sets at boot", |m| m.more(4096))
            .see("pool_size", expect![[r#"
                warning unused_pages: 4096 huge pages of 2 MB (8 GB) are idle: PostgreSQL needs none of them; 537 are needed.
                # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"#]])
            .see("runbook", expect!["# if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"]),
        when("a boot line sets them", |m| {
            m.more(4096);
            m.asked(4633);
        })
        .see("pool_size", expect!["ok idle_by_configuration: 4096 huge pages of 2 MB (8 GB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; 537 are needed."])
        .see("runbook", expect![""]),
        when("a pool that nothing sets at boot grows", |m| {
            m.on_small_pages(6000 * MB, 2000);
            m.file(CONF, None);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 3000 huge pages of 2 MB; 2000 are available.
            # if no other program needs 2000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=3000
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 3000' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 3000 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("runbook", expect![[r##"
            # if no other program needs 2000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=3000
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 3000' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 3000 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"##]]),
        when("memory is too small to add to it", |m| {
            m.on_small_pages(30 * GB, 15_000);
            m.file(CONF, None);
        })
        .see("runbook", expect![[r#"
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 15360' >> /etc/sysctl.d/60-hugepages.conf)
            # if no other program needs 15000 huge pages of 2 MB that are idle now: stop PostgreSQL (ends all sessions)
            # if no other program needs 15000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=15360
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 15360 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=15000' >&2; false; fi
            # start PostgreSQL"#]]),
        when("a pool that a boot line sets grows", |m| {
            m.on_small_pages(6000 * MB, 2000);
            m.asked(2000);
        })
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=3000
            sed -i 's/^vm\.nr_hugepages = 2000$/vm.nr_hugepages = 3000/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 3000 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("nobody visible holds 4 pages", |m| {
            m.on_small_pages(14 * GB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=16");
            m.file(CONF, None);
            m.pool(1).total = 16;
            m.pool(1).free = 12;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 14 huge pages of 1 GB; 12 are available.
            echo 1 > /proc/sys/vm/compact_memory
            echo 18 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            # needed: 18 = 14 for this server + 4 that no visible server holds
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 18 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: change hugepagesz=1G hugepages=16 to hugepagesz=1G hugepages=18 on the kernel command line (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /proc/cmdline (hugepagesz=1G hugepages=16) sets 16 huge pages of 1 GB at boot; needed: 18 = 14 for this server + 4 that no visible server holds.
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            echo 18 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 18 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: change hugepagesz=1G hugepages=16 to hugepagesz=1G hugepages=18 on the kernel command line (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
    ]);
}

/// Pages that a program holds which is not visible, on a host whose pool is as large as its line.
fn held_by_nobody(m: &mut Scene, pages: u64) {
    m.pool(0).free -= pages;
}

#[test]
fn pages_that_the_line_explains_stay_in_it() {
    test(vec![
        when("they are missing to this server", |m| {
            m.on_small_pages(16 * GB, 8192);
            m.asked(8192);
            held_by_nobody(m, 512);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 8192 huge pages of 2 MB at boot; needed: 8704 = 8192 for this server + 512 that no visible server holds.
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=8704
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 8704/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8704 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the line is for both", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(512);
            held_by_nobody(m, 512);
            m.asked(8704);
        })
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 8704 huge pages of 2 MB at boot."])
        .see("runbook", expect![]),
        when("the line is for both, and the demand grows", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(2048);
            held_by_nobody(m, 2048);
            m.asked(10_240);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 10240 huge pages of 2 MB at boot; needed: 12288 = 10240 for this server + 2048 that no visible server holds.
            # as restart"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=12288
            sed -i 's/^vm\.nr_hugepages = 10240$/vm.nr_hugepages = 12288/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12288 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]]),
        when("the line explains a part, and the demand grows", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(2048);
            held_by_nobody(m, 2048);
            m.asked(8704);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 8704 huge pages of 2 MB at boot; needed: 10752 = 10240 for this server + 512 that no visible server holds.
            # as restart"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=12288
            sed -i 's/^vm\.nr_hugepages = 8704$/vm.nr_hugepages = 10752/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12288 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi"#]]),
        when("no line explains them, and the demand grows", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.more(512);
            held_by_nobody(m, 512);
            m.asked(8192);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 8192 huge pages of 2 MB at boot; 10240 are needed.
            # as restart"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=10752
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 10240/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10752 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi"#]]),
    ]);
}

fn planned(machine: &Machine, name: &str, value: &str, change: fn(&mut Server)) -> String {
    let mut next = machine.next_start();
    change(&mut next);
    let plan = plan(&[(name, value, Ok(next))]);
    commands(machine, &plan).join("\n")
}

/// A setting, its new value, the change of the next start, and the commands.
type Setting = (&'static str, &'static str, fn(&mut Server), Expect);

/// A demand that shrinks also lowers its pool, and the line that was made for it.
#[test]
fn plans_for_fewer_pages_leave_nothing_behind() {
    let rows: [Setting; 4] = [
        (
            "shared_buffers",
            "20GB",
            |next| next.shared_memory_bytes = 21 * GB,
            expect![[r#"
                ALTER SYSTEM SET shared_buffers = '20GB';
                sed -i 's/^vm\.nr_hugepages = 21504$/vm.nr_hugepages = 10752/' /etc/sysctl.d/hugepages.conf
                # restart PostgreSQL (ends all sessions)
                sysctl -w vm.nr_hugepages=10752"#]],
        ),
        (
            "huge_pages",
            "off",
            |next| next.huge_pages = HugePages::Off,
            expect![[r#"
                ALTER SYSTEM SET huge_pages = 'off';
                sed -i 's/^vm\.nr_hugepages = 21504$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
                # restart PostgreSQL (ends all sessions)
                sysctl -w vm.nr_hugepages=0"#]],
        ),
        (
            "shared_memory_type",
            "sysv",
            |next| next.shared_memory_type = SharedMemoryType::Sysv,
            expect![[r#"
                ALTER SYSTEM SET shared_memory_type = 'sysv';
                sed -i 's/^vm\.nr_hugepages = 21504$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
                # restart PostgreSQL (ends all sessions)
                sysctl -w vm.nr_hugepages=0"#]],
        ),
        (
            "huge_page_size",
            "1GB",
            |next| next.huge_page_size_bytes = Some(GB),
            expect![[r#"
                ALTER SYSTEM SET huge_page_size = '1GB';
                echo 1 > /proc/sys/vm/compact_memory
                echo 42 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
                sed -i 's/^vm\.nr_hugepages = 21504$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
                if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 42 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or set them at boot' >&2; false; fi
                # restart PostgreSQL (ends all sessions)
                sysctl -w vm.nr_hugepages=0
                # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=42 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]],
        ),
    ];
    for (name, value, change, expected) in rows {
        let mut scene = Scene::healthy();
        scene.ram(128 * GB);
        scene.on_huge_pages(42 * GB, 42 * GB);
        expected.assert_eq(&planned(&scene.machine(), name, value, change));
    }
    // The new pages need the memory of the old ones.
    for huge_pages in [HugePages::Try, HugePages::On] {
        let mut scene = Scene::healthy();
        scene.ram(64 * GB);
        scene.on_huge_pages(42 * GB, 42 * GB);
        scene.state.server.huge_pages = huge_pages;
        let size = Known {
            value: "0".to_owned(),
            source: SettingSource::AutoConf,
        };
        scene.state.next.settings.insert("huge_page_size", size);
        expect![[r#"
            ALTER SYSTEM SET huge_page_size = '1GB';
            sed -i 's/^vm\.nr_hugepages = 21504$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            sysctl -w vm.nr_hugepages=0
            echo 1 > /proc/sys/vm/compact_memory
            echo 42 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 42 ]; then echo 'too few pages, undo the changes before the start: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; sysctl -w vm.nr_hugepages=21504; set huge_page_size = 0 in postgresql.auto.conf; set /etc/sysctl.d/hugepages.conf:1 to 21504' >&2; false; fi
            # start PostgreSQL
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=42 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]].assert_eq(&planned(
            &scene.machine(),
            "huge_page_size",
            "1GB",
            |next| {
                next.huge_page_size_bytes = Some(GB);
            },
        ));
    }
    // The line was rounded up.
    let mut scene = Scene::healthy();
    scene.ram(128 * GB);
    scene.on_huge_pages(42 * GB, 42 * GB);
    scene.more(3_496);
    scene.asked(25_000);
    expect![[r#"
        ALTER SYSTEM SET shared_buffers = '20GB';
        sed -i 's/^vm\.nr_hugepages = 25000$/vm.nr_hugepages = 14248/' /etc/sysctl.d/hugepages.conf
        # restart PostgreSQL (ends all sessions)
        sysctl -w vm.nr_hugepages=14248"#]]
    .assert_eq(&planned(
        &scene.machine(),
        "shared_buffers",
        "20GB",
        |next| next.shared_memory_bytes = 21 * GB,
    ));
    // Half of the line is for something else.
    let mut scene = Scene::healthy();
    scene.ram(128 * GB);
    scene.on_huge_pages(21 * GB, 21 * GB);
    scene.more(10_752);
    scene.asked(21_504);
    expect![[r#"
        ALTER SYSTEM SET shared_buffers = '10GB';
        # restart PostgreSQL (ends all sessions)"#]]
    .assert_eq(&planned(
        &scene.machine(),
        "shared_buffers",
        "10GB",
        |next| {
            next.shared_memory_bytes = 10 * GB + 512 * MB;
        },
    ));
}

/// The part of a pool that the server gives up is released. Idle pages beyond it have an unknown
/// owner.
#[test]
fn plans_release_idle_pages_of_an_unknown_owner_under_a_condition() {
    let machine = |idle| {
        let mut scene = Scene::healthy();
        scene.ram(128 * GB);
        scene.on_huge_pages(42 * GB, 42 * GB);
        scene.file(CONF, None);
        scene.more(idle);
        scene.machine()
    };
    let off = |next: &mut Server| next.huge_pages = HugePages::Off;
    let half = |next: &mut Server| next.shared_memory_bytes = 21 * GB;
    expect![[r#"
        ALTER SYSTEM SET huge_pages = 'off';
        # restart PostgreSQL (ends all sessions)
        sysctl -w vm.nr_hugepages=0"#]]
    .assert_eq(&planned(&machine(0), "huge_pages", "off", off));
    expect![[r#"
        ALTER SYSTEM SET huge_pages = 'off';
        # restart PostgreSQL (ends all sessions)
        sysctl -w vm.nr_hugepages=4096
        # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=0"#]].assert_eq(&planned(&machine(4096), "huge_pages", "off", off));
    expect![[r#"
        ALTER SYSTEM SET shared_buffers = '20GB';
        (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 10752' >> /etc/sysctl.d/60-hugepages.conf)
        # restart PostgreSQL (ends all sessions)
        sysctl -w vm.nr_hugepages=14848
        # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=10752"#]].assert_eq(&planned(&machine(4096), "shared_buffers", "20GB", half));
}

/// A plan ends with the settings that it was made for, or names why it cannot.
#[test]
fn plans_do_not_undo_their_settings() {
    let mut scene = Scene::healthy();
    scene.state.server.huge_pages = HugePages::On;
    let sysv = |next: &mut Server| next.shared_memory_type = SharedMemoryType::Sysv;
    expect!["# plan other settings: with huge_pages = on, the server would not start. The next start uses shared_memory_type = sysv, which cannot use huge pages."].assert_eq(&planned(
        &scene.machine(),
        "shared_memory_type",
        "sysv",
        sysv,
    ));
    expect!["# plan other settings: the server would not get huge pages. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB."].assert_eq(&planned(
        &Scene::healthy().machine(),
        "huge_page_size",
        "16MB",
        |next| next.huge_page_size_bytes = Some(16 * MB),
    ));
}
