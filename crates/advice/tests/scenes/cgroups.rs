//! Limits of cgroups on huge pages and on memory.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use host::{
    linux::cgroup::Limits,
    server::{
        facts::Facts,
        state::{AllowedNodes, Files, HugePages, ProcessFigures, SharedMemoryType},
    },
};

use expect_test::expect;

use crate::{scene::*, table::*};

fn limits(m: &mut Scene) -> &mut Limits {
    &mut m.state.hugetlb.as_mut().expect("cgroup").groups[0].limits[0]
}

fn pod_limit(m: &mut Scene, limit: &str) {
    let facts = Facts {
        state: m.state.clone(),
        ..m.facts.clone()
    };
    m.facts = facts
        .with_pod_limits(|name| (name == "PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi").then(|| limit.into()));
    m.state = m.facts.state.clone();
}

fn named(m: &mut Scene, name: &[u8]) {
    limited(&mut m.state, Some(100), None);
    let group = &mut m.state.hugetlb.as_mut().expect("cgroup").groups[0];
    group.directory = Path::new("/sys/fs/cgroup").join(OsStr::from_bytes(name));
}

/// Before Linux 5.7, in a pod that has faulted in all that its limit allows, and another one whose
/// pages are all reserved.
fn without_reservations(m: &mut Scene, fault_limit: u64, fault_use: u64) {
    limited(&mut m.state, Some(fault_limit), None);
    limits(m).reservation_use = None;
    limits(m).fault_use = Some(fault_use * MB);
}

#[test]
fn fault_limits() {
    test(vec![
        when("there is no limit", |_| {}).see("cgroup_fault_limit", expect![["ok not_limited: No cgroup limits 2 MB pages for this server."]]),
        when("a limit is lower than the mapped pages", |m| {
            limited(&mut m.state, Some(100), None);
        })
        .see("status", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]])
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]])
        .see("runbook", expect![[r#"
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("only the orchestrator can raise the limit", |m| {
            limited(&mut m.state, Some(100), None);
            m.state.hugetlb.as_mut().expect("cgroup").groups[0].is_set_outside = true;
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # raise the limit on 2 MB pages to 1126170624 bytes (1074 MB), where it is set (its unit, for example)"#]]),
        when("the files would keep the server from starting", |m| {
            limited(&mut m.state, Some(100), None);
            m.state.next.files = Files::Refused("syntax error".to_owned());
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]])
        .see("runbook", expect![[r#"
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]]),
        when("pending settings need more than RAM", |m| {
            limited(&mut m.state, Some(100), None);
            m.waits(|next| next.shared_memory_bytes = 62 * GB);
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 7455 MB of memory, or lower shared_buffers by 7456MB: too little memory is available for the pool"#]]),
        when("the next start ends the danger", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            limited(&mut m.state, Some(100), None);
            m.waits(|next| next.huge_pages = HugePages::Off);
        })
        .see("runbook", expect!["# if huge_pages = off is intended, follow the steps of hugeinfo_runbook('huge_pages=off'), because a restart alone leaves huge pages idle; otherwise, for the next start, set huge_pages to its running value (SHOW huge_pages)"]),
        when("the next start in a container ends the danger", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            m.container();
            limited(&mut m.state, Some(100), None);
            m.waits(|next| next.huge_pages = HugePages::Off);
        })
        .see("runbook", expect!["# restart PostgreSQL (ends all sessions) if huge_pages = off is intended; otherwise, for the next start, set huge_pages to its running value (SHOW huge_pages)"]),
        when("the limit holds the segment exactly", |m| {
            limited(&mut m.state, Some(1074), Some(1074));
        })
        .see("cgroup_fault_limit", expect![["ok not_limited: No cgroup limits 2 MB pages for this server."]]),
        when("others in the cgroup use a part of the limit", |m| {
            limited(&mut m.state, Some(1100), None);
            limits(m).reservation_use = Some(1174 * MB);
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 1100 MB of 2 MB pages, but 1174 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1231028224 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when(
            "a server on small pages would exceed the limit after a restart",
            |m| {
                m.fall_back(537);
                limited(&mut m.state, Some(100), None);
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # restart PostgreSQL (ends all sessions)"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # as cgroup_fault_limit"#]]),
        when("pending settings would exceed the limit", |m| {
            m.more(487);
            limited(&mut m.state, Some(1100), None);
            m.waits(|next| next.shared_memory_bytes = 2048 * MB);
        })
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: Cgroup /sys/fs/cgroup/pg allows 1100 MB of 2 MB pages, but 2 GB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            echo 2147483648 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1024/' /etc/sysctl.d/hugepages.conf"#]])
        .see("pending_settings", expect![[r#"
            warning cgroup_bomb_at_restart: Settings are pending a restart (shared_buffers). Cgroup /sys/fs/cgroup/pg allows 1100 MB of 2 MB pages, but 2 GB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            # as cgroup_fault_limit"#]]),
        when("pending settings need less than the limit", |m| {
            limited(&mut m.state, Some(300), None);
            m.waits(|next| next.shared_memory_bytes = 200 * MB);
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 300 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 100/' /etc/sysctl.d/hugepages.conf"#]]),
        when(
            "a limit is low, and a restart would not get huge pages",
            |m| {
                m.fall_back(10);
                limited(&mut m.state, Some(100), None);
            },
        )
        .see("cgroup_fault_limit", expect!["ok limited: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB would be mapped. This does no harm, because a restart would not get huge pages."])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 10 are available.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("a limit is low, and the kernel could allocate pages during the start", |m| {
            m.fall_back(0);
            m.pool(0).overcommit = 1000;
            limited(&mut m.state, Some(0), None);
        })
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: Cgroup /sys/fs/cgroup/pg allows 0 bytes of 2 MB pages, but 1074 MB would be mapped. If a restart gets surplus huge pages, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("a limit is low, and settings with surplus pages are pending", |m| {
            limited(&mut m.state, Some(1100), None);
            m.pool(0).overcommit = 1000;
            m.waits(|next| next.shared_memory_bytes = 2 * GB);
        })
        .see("pending_settings", expect![[r#"
            warning cgroup_bomb_at_restart: Settings are pending a restart (shared_buffers). Cgroup /sys/fs/cgroup/pg allows 1100 MB of 2 MB pages, but 2 GB would be mapped. If a restart gets surplus huge pages, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            # as cgroup_fault_limit"#]]),
        when("a limit is low, and the pages of the allowed nodes are unknown", |m| {
            m.fall_back(537);
            limited(&mut m.state, Some(100), None);
            m.facts.allowed_nodes = AllowedNodes::Unknown(denied("/proc/1/status"));
        })
        .see("cgroup_fault_limit", expect![["unknown unknown: Cannot judge cgroup_fault_limit: cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages. Only a start shows whether 1074 MB would be mapped. /proc/1/status cannot be read (permission denied)."]]),
        when("the limit of a pod is not visible as a cgroup", |m| {
            pod_limit(m, "104857600")
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: The pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"#]]),
        when("the limit of a pod comes before idle pages of its node", |m| {
            pod_limit(m, "104857600");
            m.more(4096);
        })
        .see("runbook", expect![[r#"
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)
            # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"#]]),
        when("a pod has no huge pages", |m| {
            m.fall_back(537);
            pod_limit(m, "0");
        })
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: The pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 0 bytes of 2 MB pages, but 1074 MB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"#]]),
        when("the node of a pod has too few pages", |m| {
            m.fall_back(0);
            pod_limit(m, "104857600");
        })
        .see("runbook", expect!["# first let the node have 537 huge pages of 2 MB (the kubelet counts them when it starts), then raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"]),
        when("another server of the node has too few pages, too", |m| {
            m.fall_back(0);
            pod_limit(m, "104857600");
            m.other(144 * MB, 4096, TRY);
        })
        .see("runbook", expect!["# first let the node have 537 huge pages of 2 MB (the kubelet counts them when it starts), then raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"]),
        when("only another server of the node has too few pages", |m| {
            m.fall_back(537);
            pod_limit(m, "104857600");
            m.other(144 * MB, 4096, TRY);
        })
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: The pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 100 MB of 2 MB pages, but 1074 MB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"#]]),
        when("the limit of a pod is enough", |m| {
            pod_limit(m, "1126170624")
        })
        .see("cgroup_fault_limit", expect![["ok not_limited: No cgroup limits 2 MB pages for this server."]]),
        when(
            "the limit of the container is lower than that of the pod",
            |m| {
                limited(&mut m.state, Some(100), None);
                pod_limit(m, "1126170624");
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("other containers of the pod use a part of its limit", |m| {
            limited(&mut m.state, None, None);
            limits(m).reservation_use = Some(1174 * MB);
            pod_limit(m, "1126170624");
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: The pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 1074 MB of 2 MB pages, but 1174 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1174Mi)"#]]),
        when("the limit of a pod is not a number", |m| {
            pod_limit(m, "550 pages")
        })
        .see("cgroup_fault_limit", expect![[r#"unknown unknown: Cannot judge cgroup_fault_limit: the server's environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi is not a number of bytes: "550 pages"."#]]),
        when("the limit of a pod has a unit", |m| pod_limit(m, "100Mi"))
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: The pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # raise the pod's limit on 2 MB pages (hugepages-2Mi: 1074Mi)"#]]),
        when("the limit of a pod is larger than Kubernetes allows", |m| {
            pod_limit(m, "18446744073707454464");
        })
        .see("cgroup_fault_limit", expect![[r#"unknown unknown: Cannot judge cgroup_fault_limit: the server's environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi is not a number of bytes: "18446744073707454464"."#]]),
        when("the limit of a pod is the largest of Kubernetes", |m| {
            pod_limit(m, "9223372036852678656");
        })
        .see("cgroup_fault_limit", expect![["ok not_limited: No cgroup limits 2 MB pages for this server."]]),
        when("the limit of a pod has control characters", |m| {
            pod_limit(m, "1\u{1b}[2J\r\n\u{202e}");
        })
        .see("cgroup_fault_limit", expect![[r#"unknown unknown: Cannot judge cgroup_fault_limit: the server's environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi is not a number of bytes: "1\033[2J\015\012\342\200\256"."#]]),
        when("a divisor made megabytes of the limit of a pod", |m| {
            pod_limit(m, "1100")
        })
        .see("cgroup_fault_limit", expect![[r#"unknown unknown: Cannot judge cgroup_fault_limit: the server's environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi is not a number of bytes: "1100"."#]]),
        when("the limit of a pod is empty", |m| pod_limit(m, "")).see("cgroup_fault_limit", expect![["ok not_limited: No cgroup limits 2 MB pages for this server."]]),
        when("the name of the cgroup has quotes", |m| {
            named(m, b"x';touch PWNED;echo '")
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/x';touch PWNED;echo ' allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > '/sys/fs/cgroup/x'\'';touch PWNED;echo '\''/hugetlb.2MB.max'
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("a shell would expand the name of the cgroup", |m| {
            named(m, b"$(touch PWNED)`touch PWNED`\\");
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/$(touch PWNED)`touch PWNED`\ allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 1126170624 > '/sys/fs/cgroup/$(touch PWNED)`touch PWNED`\/hugetlb.2MB.max'
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("the name of the cgroup has a line feed", |m| {
            named(m, b"x\n; touch PWNED")
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/x\012; touch PWNED allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # write 1126170624 into /sys/fs/cgroup/x\012; touch PWNED/hugetlb.2MB.max by hand: this name cannot be quoted in a shell command
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("the name of the cgroup has control characters", |m| {
            named(m, b"x\x1b[2J\ry")
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/x\033[2J\015y allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # write 1126170624 into /sys/fs/cgroup/x\033[2J\015y/hugetlb.2MB.max by hand: this name cannot be quoted in a shell command
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("the name of the cgroup is not UTF-8", |m| {
            named(m, b"x\xff")
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/x\377 allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # write 1126170624 into /sys/fs/cgroup/x\377/hugetlb.2MB.max by hand: this name cannot be quoted in a shell command
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when(
            "the name of the cgroup reverses the direction of text",
            |m| {
                named(m, "x\u{202e}y".as_bytes());
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/x\342\200\256y allows 100 MB of 2 MB pages, but 1074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            # write 1126170624 into /sys/fs/cgroup/x\342\200\256y/hugetlb.2MB.max by hand: this name cannot be quoted in a shell command
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
    ]);
}

/// A pending change of the page size, and limits on the present pages.
#[test]
fn limits_until_the_page_size_changes() {
    test(vec![
        when("the running server needs a higher one", |m| {
            m.on_huge_pages(16 * GB, 8 * GB);
            limited(&mut m.state, Some(8192), None);
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("runbook", expect![[r#"
            echo 17179869184 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            echo 1 > /proc/sys/vm/compact_memory
            echo 16 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 16 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=16 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("a pod has it", |m| {
            m.on_huge_pages(16 * GB, 8 * GB);
            limited(&mut m.state, Some(8192), None);
            m.state.hugetlb.as_mut().expect("cgroup").groups[0].is_set_outside = true;
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("status", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 8 GB of 2 MB pages, but 16 GB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit. Settings are pending a restart.
            # raise the limit on 2 MB pages to 17179869184 bytes (16 GB), where it is set (its unit, for example)"#]]),
        when("the page size that a restart changes has none", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=16");
            m.pool(1).total = 16;
            m.pool(1).free = 16;
            limited(&mut m.state, Some(8192), None);
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("restart", expect!["ok fits: A restart would get 16 huge pages of 1 GB."]),
        when("the check is muted", |m| {
            m.on_huge_pages(16 * GB, 8 * GB);
            limited(&mut m.state, Some(8192), None);
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
            m.muted = "cgroup_fault_limit";
        })
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            echo 16 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            sed -i 's/^vm\.nr_hugepages = 8192$/vm.nr_hugepages = 0/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 16 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=16 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("the way back needs a higher one", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(12 * GB);
            limited(&mut m.state, None, Some(20_480));
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("runbook", expect!["# undo the pending change: set huge_page_size to its running value (SHOW huge_page_size) and echo 42949672960 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max (also where the limit is set: unit or container runtime); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_page_size=1GB')"]),
        when("the way back needs a command of the node", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.state.server.huge_pages = HugePages::On;
            m.pool(0).surplus = 20_000;
            m.waits(|next| next.shared_memory_bytes = 54 * GB);
            m.available = Some(GB);
            m.container();
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 27648 huge pages of 2 MB; 480 are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers) and sysctl -w vm.nr_hugepages=20480 (on the node, as root); otherwise, free 14623 MB of memory, or lower shared_buffers by 14624MB: too little memory is available for the pool"#]]),
    ]);
}

#[test]
fn refused_pages() {
    fn refused(m: &mut Scene, count: u64) {
        m.facts.refused_pages = [(2 * MB, count)].into();
        limited(&mut m.state, None, None);
    }
    test(vec![
        when("no page was refused", |m| refused(m, 0)).see("cgroup_fault_limit", expect!["ok not_limited: No cgroup limits 2 MB pages for this server."]),
        when(
            "a limit above the container is lower than the mapped pages",
            |m| refused(m, 1),
        )
        .see("cgroup_fault_limit", expect![[r#"
            warning limit_above: The kernel refused 2 MB pages to this cgroup once. No visible limit explains this, so a hidden limit above the cgroup is too low. The server crashes (SIGBUS, or short reads) when it uses more than the limit; 1074 MB is mapped.
            # raise the limit above this cgroup to at least 1074 MB (in Kubernetes, the pod's hugepages-2Mi: 1074Mi), or lower shared_buffers"#]])
        .see("restart", expect!["ok fits: A restart would get them again, but the server could not use all of them: see cgroup_fault_limit."])
        .see("status", expect!["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again, but the server could not use all of them: see cgroup_fault_limit."])
        .see("runbook", expect!["# raise the limit above this cgroup to at least 1074 MB (in Kubernetes, the pod's hugepages-2Mi: 1074Mi), or lower shared_buffers"]),
        when(
            "a limit above the container is lower than a restart would map",
            |m| {
                m.fall_back(537);
                refused(m, 3);
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            warning limit_above: The kernel refused 2 MB pages to this cgroup 3 times. No visible limit explains this, so a hidden limit above the cgroup is too low. If a restart gets huge pages, the server would crash (SIGBUS, or short reads) when it uses more than the limit; 1074 MB would be mapped.
            # raise the limit above this cgroup to at least 1074 MB (in Kubernetes, the pod's hugepages-2Mi: 1074Mi), or lower shared_buffers"#]]),
        when(
            "pages were refused, and a restart would not get huge pages",
            |m| {
                m.fall_back(10);
                refused(m, 3);
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            warning limit_above: The kernel refused 2 MB pages to this cgroup 3 times. No visible limit explains this, so a hidden limit above the cgroup is too low. If a restart gets huge pages, the server would crash (SIGBUS, or short reads) when it uses more than the limit; 1074 MB would be mapped.
            # raise the limit above this cgroup to at least 1074 MB (in Kubernetes, the pod's hugepages-2Mi: 1074Mi), or lower shared_buffers"#]]),
        when(
            "a visible limit on reservations explains the refusals",
            |m| {
                m.fall_back(537);
                refused(m, 1);
                limited(&mut m.state, None, Some(100));
            },
        )
        .see("cgroup_fault_limit", expect!["ok not_limited: No cgroup limits 2 MB pages for this server."]),
        when("a visible limit allows the whole pool", |m| {
            refused(m, 1);
            limited(&mut m.state, Some(1074), Some(1074));
        })
        .see("cgroup_fault_limit", expect![[r#"
            warning limit_above: The kernel refused 2 MB pages to this cgroup once. No visible limit explains this, so a hidden limit above the cgroup is too low. The server crashes (SIGBUS, or short reads) when it uses more than the limit; 1074 MB is mapped.
            # raise the limit above this cgroup to at least 1074 MB (in Kubernetes, the pod's hugepages-2Mi: 1074Mi), or lower shared_buffers"#]]),
        when("a visible limit on faults explains the refusals", |m| {
            refused(m, 1);
            limited(&mut m.state, Some(1074), Some(1074));
            m.more(100);
        })
        .see("cgroup_fault_limit", expect!["ok not_limited: No cgroup limits 2 MB pages for this server."]),
        when("a visible limit is too low", |m| {
            refused(m, 1);
            limited(&mut m.state, Some(100), None);
        })
        .see("restart", expect!["ok fits: A restart would get them again, but the server could not use all of them: see cgroup_fault_limit."]),
        when("the refused pages have another size", |m| {
            refused(m, 0);
            m.facts.refused_pages.insert(GB, 7);
        })
        .see("cgroup_fault_limit", expect!["ok not_limited: No cgroup limits 2 MB pages for this server."]),
    ]);
}

#[test]
fn kernels_that_do_not_count_reservations() {
    test(vec![
        when("a sibling has faulted in pages under the same limit", |m| {
            without_reservations(m, 1200, 1050);
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 1200 MB of 2 MB pages, but 2074 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 2174746624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when(
            "a server on small pages would share the limit with a sibling",
            |m| {
                m.fall_back(537);
                without_reservations(m, 1200, 1000);
            },
        )
        .see("cgroup_fault_limit", expect![[r#"
            warning cgroup_bomb_at_restart: Cgroup /sys/fs/cgroup/pg allows 1200 MB of 2 MB pages, but 2074 MB would be mapped. After a restart, the server would crash (SIGBUS, or short reads) when it uses more than the limit.
            echo 2174746624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the use by others is unknown", |m| {
            without_reservations(m, 1074, 1074);
            let pool = m.pool(0);
            (pool.total, pool.free, pool.reserved) = (2000, 1463, 1000);
        })
        .see("cgroup_fault_limit", expect![["unknown unknown: Cannot judge cgroup_fault_limit: cgroup /sys/fs/cgroup/pg allows 1074 MB of 2 MB pages, and up to 2148 MB might be needed: this kernel does not report the use by others."]]),
        when("others have used at least 100 MB", |m| {
            without_reservations(m, 1100, 1174);
            let pool = m.pool(0);
            (pool.total, pool.free, pool.reserved) = (2000, 1463, 1463);
        })
        .see("cgroup_fault_limit", expect![[r#"
            critical cgroup_bomb: Cgroup /sys/fs/cgroup/pg allows 1100 MB of 2 MB pages, but 1174 MB is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.
            echo 2357198848 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
    ]);
}

#[test]
fn reservation_limits() {
    test(vec![
        when("a limit on reservations made the server fall back", |m| {
            m.fall_back(600);
            limited(&mut m.state, None, Some(100));
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 1074 MB is needed.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "a limit on reservations is lower than the mapped pages",
            |m| {
                limited(&mut m.state, None, Some(100));
            },
        )
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 1074 MB is needed.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]]),
        when("both limits are low", |m| {
            m.fall_back(537);
            limited(&mut m.state, Some(100), Some(100));
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 1074 MB is needed.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the pool is short, and the limit on faults is low", |m| {
            m.fall_back(10);
            limited(&mut m.state, Some(100), None);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 10 are available.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "the pool is short, the limit on reservations is low, and sysv is set",
            |m| {
                m.fall_back(10);
                limited(&mut m.state, None, Some(100));
                m.state.server.shared_memory_type = SharedMemoryType::Sysv;
            },
        )
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"#]]),
        when(
            "the pool is short, the limit on reservations is low, and on is pending",
            |m| {
                m.fall_back(10);
                limited(&mut m.state, None, Some(100));
                m.waits(|next| next.huge_pages = HugePages::On);
            },
        )
        .see("pending_settings", expect![[r#"
            critical would_not_start: Settings are pending a restart (huge_pages). A restart would fail, because huge_pages = on. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 1074 MB is needed.
            # as huge_pages"#]])
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 1074 MB is needed.
            # as huge_pages"#]]),
        when("a fallback would not fit in addition to the own pool", |m| {
            m.on_huge_pages(50 * GB, GB);
            limited(&mut m.state, None, Some(100));
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Cgroup /sys/fs/cgroup/pg limits reserved huge pages to 100 MB, but 50 GB is needed. On small pages, the segment takes 50 GB; 6 GB and 8 GB of swap are available.
            echo 53687091200 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it"#]])
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 50 GB; 6 GB and 8 GB of swap are available.
            # as restart"#]]),
        when(
            "pending settings would fall back, and no memory is left",
            |m| {
                m.on_huge_pages(50 * GB, GB);
                m.waits(|next| next.shared_memory_bytes = 52 * GB);
            },
        )
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 26624 huge pages of 2 MB; 25600 are available. On small pages, the segment takes 52 GB; 6 GB and 8 GB of swap are available.
            sysctl -w vm.nr_hugepages=26624
            sed -i 's/^vm\.nr_hugepages = 25600$/vm.nr_hugepages = 26624/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 26624 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("pending_settings", expect![[r#"
            critical would_run_out_of_memory: Settings are pending a restart (shared_buffers). After a restart, memory would run out. Needs 26624 huge pages of 2 MB; 25600 are available. On small pages, the segment takes 52 GB; 6 GB and 8 GB of swap are available.
            # as restart"#]])
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 52 GB; 6 GB and 8 GB of swap are available.
            # as restart"#]]),
        when("large page tables come with a low limit", |m| {
            m.on_small_pages(10 * GB, 5120);
            limited(&mut m.state, Some(100), None);
            m.state.processes = processes(
                80,
                ProcessFigures {
                    page_tables: Some(20 * MB),
                    ..ProcessFigures::default()
                },
            );
        })
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 1620 MB; on 2 MB pages they would take about 3240 kB.
            # as cgroup_fault_limit"#]]),
    ]);
}

#[test]
fn memory_limits() {
    /// A server of 8 GB on small pages. One process has faulted in this much.
    fn small(m: &mut Scene, touched: u64) {
        m.fall_back(4096);
        m.needs(8 * GB);
        m.asked(4096);
        m.faulted_in(touched);
        m.shmem = Some(8 * GB);
    }
    test(vec![
        when("a memory limit holds the segment", |m| {
            small(m, 2 * GB);
            m.memory_limit(10 * GB, 4 * GB, 0);
        })
        .see("memory_left", expect!["ok enough_left: Cgroup /sys/fs/cgroup/pg uses 4 GB of its memory limit of 10 GB, without the file cache."]),
        when("a memory limit does not hold the rest of the segment", |m| {
            small(m, 2 * GB);
            m.memory_limit(6 * GB, 4 * GB, 0);
        })
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 6 GB and needs at least 8 GB once the whole segment is in use. The OOM killer will kill a process.
            # as huge_pages"#]])
        .see("status", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 6 GB and needs at least 8 GB once the whole segment is in use. The OOM killer will kill a process.
            # restart PostgreSQL (ends all sessions)"#]]),
        when("swap on zram holds the rest, which the cgroup does not pay for", |m| {
            small(m, 2 * GB);
            m.memory_limit(6 * GB, 4 * GB, 0).swap_room_bytes = None;
            m.facts.free_zram_bytes = 8 * GB;
        })
        .see("memory_left", expect![[r#"
            warning will_swap: Cgroup /sys/fs/cgroup/pg has a memory limit of 6 GB and needs at least 8 GB once the whole segment is in use. It will swap.
            # as huge_pages"#]]),
        when("swap holds the rest", |m| {
            small(m, 2 * GB);
            m.memory_limit(6 * GB, 4 * GB, 0).swap_room_bytes = None;
        })
        .see("memory_left", expect![[r#"
            warning will_swap: Cgroup /sys/fs/cgroup/pg has a memory limit of 6 GB and needs at least 8 GB once the whole segment is in use. It will swap.
            # as huge_pages"#]]),
        when("swap holds a part of the rest", |m| {
            small(m, 2 * GB);
            m.memory_limit(6 * GB, 4 * GB, 0).swap_room_bytes = Some(GB);
        })
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 6 GB and needs at least 8 GB once the whole segment is in use. The OOM killer will kill a process.
            # as huge_pages"#]]),
        when("between 2 and 4 GB are faulted in", |m| {
            small(m, 2 * GB);
            m.memory_limit(9 * GB, 4 * GB, 0);
        })
        .see("memory_left", expect!["unknown unknown: Cgroup /sys/fs/cgroup/pg has a memory limit of 9 GB. It is unknown whether the segment fits, because its use is known only within bounds."]),
        when("cached files make way", |m| {
            small(m, 2 * GB);
            m.memory_limit(9 * GB, 4 * GB, GB);
        })
        .see("memory_left", expect!["ok enough_left: Cgroup /sys/fs/cgroup/pg uses 3 GB of its memory limit of 9 GB, without the file cache."]),
        when("an outer cgroup has the tighter limit", |m| {
            small(m, 2 * GB);
            m.memory_limit(60 * GB, 9 * GB, 0);
            m.memory_limit(20 * GB, 30 * GB, 9 * GB);
        })
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 20 GB and needs at least 21 GB once the whole segment is in use. The OOM killer will kill a process.
            # as huge_pages"#]]),
        when("huge pages do not count towards the limit", |m| {
            m.memory_limit(GB, GB, 0);
        })
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 1 GB of its memory limit of 1 GB, without the file cache.
            # raise the memory limit of cgroup /sys/fs/cgroup/pg by 54 MB, or let the server use less memory (shared_buffers, work_mem, max_connections)"#]]),
        when("huge pages count towards the limit", |m| {
            m.memory_limit(GB, 100 * MB, 0).counts_hugetlb = true;
        })
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 1 GB and needs 1124 MB once the whole segment is in use. Huge pages count toward the limit, and a process that uses more is killed.
            # raise the memory limit of the server's cgroup by 100 MB, or lower shared_buffers by as much"#]])
        .see("status", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 1 GB and needs 1124 MB once the whole segment is in use. Huge pages count toward the limit, and a process that uses more is killed.
            # raise the memory limit of the server's cgroup by 100 MB, or lower shared_buffers by as much"#]]),
        when(
            "the missing memory is a fraction of a GB more than 12",
            |m| {
                m.fall_back(0);
                m.on_small_pages(20 * GB, 0);
                m.file("etc/sysctl.d/hugepages.conf", None);
                m.off();
                m.faulted_in(20 * GB);
                m.memory_limit(8 * GB, 20 * GB + 480 * MB, 0);
            },
        )
        .see("restart", expect!["ok does_not_ask: The next start uses huge_pages = off."])
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 8 GB and needs 20 GB once the whole segment is in use. The OOM killer will kill a process.
            # raise the memory limit of the server's cgroup by 12768 MB, or lower shared_buffers by as much"#]]),
        when("a start on small pages would exceed the limit", |m| {
            m.waits(|next| next.shared_memory_bytes = 8 * GB);
            m.memory_limit(4 * GB, GB, 0);
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, cgroup /sys/fs/cgroup/pg needs 9 GB; its memory limit is 4 GB.
            # as restart"#]])
        .see("status", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 4096 huge pages of 2 MB; 537 are available. On small pages, cgroup /sys/fs/cgroup/pg needs 9 GB; its memory limit is 4 GB. Settings are pending a restart.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or reboot' >&2; false; fi"#]]),
        when("the limits cannot be read", |m| {
            m.state.memory_limits = Err(denied("/sys/fs/cgroup/pg/memory.max"));
        })
        .see("memory_left", expect![["unknown unknown: The memory limits of the cgroups are unknown: /sys/fs/cgroup/pg/memory.max cannot be read (permission denied)."]]),
        when("the kernel reserves the last free memory", |m| {
            m.available = Some(50 * MB);
            m.facts.nodes.as_mut().expect("nodes")[0].memory.free = Some(300 * MB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM. 50 MB is available, and 1311 MB should stay available.
            # free or add 1261 MB of memory: too little memory is available"#]]),
    ]);
}
