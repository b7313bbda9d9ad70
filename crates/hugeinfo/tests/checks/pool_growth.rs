use crate::scene::{GB, Scene};
use hugeinfo::server::facts::HugePages;

fn fragmented(m: &mut Scene) {
    let blocks = "Node 0, zone   Normal   900000   400000    6    3    1    0     0     0      0      3   2\n";
    m.file("proc/buddyinfo", blocks);
    m.file("proc/vmstat", "htlb_buddy_alloc_fail 17\n");
}

table! { pool_growth;
    "it need not grow" |m| { fragmented(m) } Ok "need not grow";
    "memory in small blocks" |m| { m.fall_back(500); fragmented(m) }
        Warning "grow by 37 huge pages of 2 MB" "has only 7 in blocks of that size"
        => "echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=537";
    "memory in whole blocks" |m| { m.fall_back(500) } Ok "grow by 37" "has 2009";
    "gigantic pages" |m| { m.fall_back(0); m.facts.server.huge_page_size_bytes = Some(GB) }
        Warning "grow by 2 huge pages of 1 GB" "larger than any free block"
        => "echo 1 > /proc/sys/vm/compact_memory; echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    "nobody asks" |m| { m.fall_back(0); fragmented(m); m.facts.server.huge_pages = HugePages::Off }
        Ok "asks for no huge pages";
}

#[test]
fn evidence() {
    let mut scene = Scene::healthy();
    scene.fall_back(500);
    fragmented(&mut scene);
    let check = scene.check("pool_growth");
    assert_eq!(check.evidence["htlb_buddy_alloc_fail"], 17);
    assert_eq!(check.evidence["free_in_blocks_pages"], 7);
}
