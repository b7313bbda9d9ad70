use crate::scene::{GB, Scene, denied};

const MEMORY: &str = "proc/sys/vm/overcommit_memory";
const RATIO: &str = "proc/sys/vm/overcommit_ratio";
const KBYTES: &str = "proc/sys/vm/overcommit_kbytes";

const CONF: &str = "etc/sysctl.d/m.conf";

fn strict(m: &mut Scene, promised: u64) {
    m.file(MEMORY, "2\n");
    m.committed = Some(promised);
}

table! { overcommit;
    "not strict" |_| {} Ok "vm.overcommit_memory = 0";
    "strict, and little committed" |m| { strict(m, 4 * GB) } Ok "4 GB of 39 GB";
    "nearly all committed" |m| { strict(m, 38 * GB) }
        Warning "38 GB of 39 GB are committed" "the pools take 537 MB from the limit"
        => "echo 55 > /proc/sys/vm/overcommit_ratio && (umask 022 && echo 'vm.overcommit_ratio = 55' >> /etc/sysctl.d/hugepages.conf)";
    "a file sets it" |m| { strict(m, 38 * GB); m.file(CONF, "vm.overcommit_memory=2\nvm.overcommit_ratio=50\n") }
        Warning "38 GB of 39 GB are committed"
        => "echo 55 > /proc/sys/vm/overcommit_ratio && sed -i 's/^vm\\.overcommit_ratio=50$/vm.overcommit_ratio = 55/' /etc/sysctl.d/m.conf";
    "a file sets it already" |m| { strict(m, 38 * GB); m.file(CONF, "vm.overcommit_ratio=55\n") }
        Warning "38 GB of 39 GB are committed" => "echo 55 > /proc/sys/vm/overcommit_ratio";
    "a later line in kB would take its place"
        |m| { strict(m, 38 * GB); m.file(CONF, "vm.overcommit_ratio=50\n"); m.file("usr/lib/sysctl.d/n.conf", "vm.overcommit_kbytes=0\n") }
        Warning "38 GB of 39 GB are committed"
        => "echo 55 > /proc/sys/vm/overcommit_ratio && (umask 022 && echo 'vm.overcommit_ratio = 55' >> /etc/sysctl.d/zz-hugepages.conf)";
    "the files of the host cannot be seen" |m| { strict(m, 38 * GB); m.around.asked_at_boot = Err(denied("/etc")) }
        Warning "38 GB of 39 GB are committed" => "echo 55 > /proc/sys/vm/overcommit_ratio";
    "a limit in kB takes the place of the ratio" |m| { strict(m, 38 * GB); m.file(KBYTES, "33554432\n") }
        Warning "38 GB of 40 GB are committed"
        => "echo 35987000 > /proc/sys/vm/overcommit_kbytes && (umask 022 && echo 'vm.overcommit_kbytes = 35987000' >> /etc/sysctl.d/hugepages.conf)";
    "more committed than RAM and swap can hold" |m| { strict(m, 70 * GB); m.file(RATIO, "100\n") }
        Warning "70 GB of 71 GB are committed"
        => "add swap, or lower what the programs of this host commit: vm.overcommit_ratio is as high as RAM allows";
}

#[test]
fn a_limit_in_kilobytes_loses_nothing_to_pools() {
    let mut scene = Scene::healthy();
    strict(&mut scene, 4 * GB);
    scene.file(KBYTES, "41943040\n");
    let check = scene.check("overcommit");
    assert!(
        check.evidence["taken_by_pools_bytes"].is_null() && !check.finding.contains("take"),
        "{check:?}"
    );
}

#[test]
fn the_kernel_takes_any_ratio() {
    let mut scene = Scene::healthy();
    strict(&mut scene, 4 * GB);
    scene.file(RATIO, "9223372036854775807\n");
    let check = scene.check("overcommit");
    assert_eq!(check.evidence["taken_by_pools_bytes"], u64::MAX);
}
