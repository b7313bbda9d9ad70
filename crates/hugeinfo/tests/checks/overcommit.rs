use crate::scene::{GB, Scene};

const MEMORY: &str = "proc/sys/vm/overcommit_memory";
const RATIO: &str = "proc/sys/vm/overcommit_ratio";
const KBYTES: &str = "proc/sys/vm/overcommit_kbytes";

fn strict(m: &mut Scene, promised: u64) {
    m.file(MEMORY, "2\n");
    m.committed = Some(promised);
}

table! { overcommit;
    "not strict" |_| {} Ok "vm.overcommit_memory = 0";
    "strict, and little promised" |m| { strict(m, 4 * GB) } Ok "4 GB of 39 GB";
    "nearly all promised" |m| { strict(m, 38 * GB) }
        Warning "38 GB of 39 GB are promised" "the pools take 537 MB from the limit"
        => "echo 55 > /proc/sys/vm/overcommit_ratio";
    "a limit in kB takes the place of the ratio" |m| { strict(m, 38 * GB); m.file(KBYTES, "33554432\n") }
        Warning "38 GB of 40 GB are promised" => "echo 35987000 > /proc/sys/vm/overcommit_kbytes";
    "more promised than RAM and swap can hold" |m| { strict(m, 70 * GB); m.file(RATIO, "100\n") }
        Warning "70 GB of 71 GB are promised"
        => "add swap, or lower what the programs of this host promise themselves: vm.overcommit_ratio is as high as RAM allows";
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
