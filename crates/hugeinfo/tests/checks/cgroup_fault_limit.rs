use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use hugeinfo::advice::{
    diagnosis,
    words::{Place, command, place},
};

use crate::scene::{MB, limited};

fn limits(m: &mut crate::Scene) -> &mut hugeinfo::linux::cgroup::Limits {
    &mut m.facts.hugetlb.as_mut().expect("cgroup").groups[0].limits[0]
}

fn told(m: &mut crate::Scene, limit: &str) {
    m.facts = m
        .facts
        .clone()
        .with_pod_limits(|name| (name == "PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi").then(|| limit.into()));
}

fn named(m: &mut crate::Scene, name: &[u8]) {
    limited(&mut m.facts, Some(100), None);
    let group = &mut m.facts.hugetlb.as_mut().expect("cgroup").groups[0];
    group.directory = Path::new("/sys/fs/cgroup").join(OsStr::from_bytes(name));
}

/// A person could not check a command that contains such a name.
#[test]
fn cgroup_names_with_hidden_characters_need_a_decision() {
    for (name, shown) in [
        (&b"x\n; touch PWNED"[..], r"x\012; touch PWNED"),
        (b"x\x1b[2J\ry", r"x\033[2J\015y"),
        (b"x\xff", r"x\377"),
        ("x\u{202e}y".as_bytes(), r"x\342\200\256y"),
    ] {
        let mut scene = crate::Scene::healthy();
        named(&mut scene, name);
        let machine = scene.machine();
        let verdict = diagnosis::verdict(&machine);
        let group = format!("control group /sys/fs/cgroup/{shown} allows 100 MB");
        assert!(verdict.reason.contains(&group), "{}", verdict.reason);
        let steps = diagnosis::remedy(&machine);
        let [step] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert_eq!(place(step), Place::Decision);
        let by_hand = format!(
            "write 1126170624 into /sys/fs/cgroup/{shown}/hugetlb.2MB.max by hand: this name cannot be quoted in a shell command"
        );
        assert_eq!(command(&machine, step), by_hand);
    }
}

table! { cgroup_fault_limit;
    "no limit" |_| {} Ok "no control group keeps the server from huge pages of 2 MB";
    "the time bomb" |m| { limited(&mut m.facts, Some(100), None) }
        Critical "/sys/fs/cgroup/pg allows 100 MB of 2 MB pages" "1074 MB are mapped" "SIGBUS"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "a limit that only the orchestrator can raise"
        |m| {
            limited(&mut m.facts, Some(100), None);
            m.facts.hugetlb.as_mut().expect("cgroup").groups[0].is_set_outside = true;
        }
        Critical "1074 MB are mapped"
        => "raise the limit on huge pages of the pod, or of whatever sets the limits of this container";
    "a limit that holds the segment exactly" |m| { limited(&mut m.facts, Some(1074), Some(1074)) } Ok;
    "others in the group help to fill it"
        |m| { limited(&mut m.facts, Some(1100), None); limits(m).reservation_use = Some(1174 * MB) }
        Critical "1100 MB" "1174 MB"
        => "echo 1231028224 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "a restart would arm it" |m| { m.fall_back(537); limited(&mut m.facts, Some(100), None) }
        Warning "after a restart the server would crash"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "what waits would arm it, and nothing is mapped beyond the limit yet"
        |m| { m.pool(0).total = 1024; m.pool(0).free = 999; limited(&mut m.facts, Some(1100), None); m.waits(|next| next.shared_memory_bytes = 2048 * MB) }
        Warning "allows 1100 MB of 2 MB pages, and 2 GB would be mapped"
        => "echo 2147483648 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "less waits: no restart is needed to disarm it"
        |m| { limited(&mut m.facts, Some(300), None); m.waits(|next| next.shared_memory_bytes = 200 * MB) }
        Critical "1074 MB are mapped"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "a restart gets no huge pages to be limited" |m| { m.fall_back(10); limited(&mut m.facts, Some(100), None) }
        Ok "a restart would not get huge pages anyway";
    "others count where the kernel counts no promises"
        |m| {
            m.fall_back(537);
            limited(&mut m.facts, Some(1200), None);
            limits(m).reservation_use = None;
            limits(m).fault_use = Some(1000 * MB);
        }
        Warning "1200 MB" "2074 MB"
        => "echo 2174746624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "the limit of a pod, above what can be seen" |m| { told(m, "104857600") }
        Critical "the pod's limit (environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi) allows 100 MB of 2 MB pages, and 1074 MB are mapped"
        => "raise the limit on huge pages of the pod, or of whatever sets the limits of this container";
    "a pod without a limit has none to use" |m| { m.fall_back(537); told(m, "0") }
        Warning "allows 0 bytes of 2 MB pages, and 1074 MB would be mapped"
        => "raise the limit on huge pages of the pod, or of whatever sets the limits of this container";
    "a pod's limit that suffices" |m| { told(m, "1126170624") } Ok;
    "the container's is the lower one" |m| { limited(&mut m.facts, Some(100), None); told(m, "1126170624") }
        Critical "control group /sys/fs/cgroup/pg allows 100 MB"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
    "others in the container count against the pod's"
        |m| { limited(&mut m.facts, None, None); limits(m).reservation_use = Some(1174 * MB); told(m, "1126170624") }
        Critical "allows 1074 MB of 2 MB pages, and 1174 MB are mapped"
        => "raise the limit on huge pages of the pod, or of whatever sets the limits of this container";
    "not a number of bytes" |m| { told(m, "1100Mi") }
        Unknown "the server's environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi is not a number of bytes: \"1100Mi\"";
    "larger than any Kubernetes quantity" |m| { told(m, "18446744073707454464") }
        Unknown "is not a number of bytes: \"18446744073707454464\"";
    "the largest valid Kubernetes quantity" |m| { told(m, "9223372036852678656") } Ok;
    "control characters" |m| { told(m, "1\u{1b}[2J\r\n\u{202e}") }
        Unknown r#"is not a number of bytes: "1\033[2J\015\012\342\200\256""#;
    "a value of 100,000 characters" |m| { told(m, &"x".repeat(100_000)) }
        Unknown r#"is not a number of bytes: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…""#;
    "a cgroup name with quotes" |m| { named(m, b"x';touch PWNED;echo '") }
        Critical "control group /sys/fs/cgroup/x';touch PWNED;echo ' allows 100 MB"
        => r"echo 1126170624 > '/sys/fs/cgroup/x'\'';touch PWNED;echo '\''/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead";
    "a cgroup name that a shell would expand" |m| { named(m, b"$(touch PWNED)`touch PWNED`\\") }
        Critical
        => r"echo 1126170624 > '/sys/fs/cgroup/$(touch PWNED)`touch PWNED`\/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead";
    "a divisor has made it megabytes" |m| { told(m, "1100") } Unknown "is not a number of bytes: \"1100\"";
    "nothing in it" |m| { told(m, "") } Ok;
    "groups that may not be seen" |m| { m.facts.hugetlb = Err(crate::denied("/proc/4711/cgroup")) }
        Unknown "/proc/4711/cgroup may not be read";
}
