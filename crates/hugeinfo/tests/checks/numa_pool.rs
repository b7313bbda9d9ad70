use crate::scene::{GB, MB, Scene};
use hugeinfo::server::facts::HugePages;

/// Nodes of the same memory.
fn over(m: &mut Scene, pages: &[u64]) {
    let each = 64 * GB / pages.len() as u64;
    let nodes: Vec<_> = pages.iter().map(|&pages| (pages, each)).collect();
    m.nodes(&nodes);
}

table! { numa_pool;
    "one node" |_| {} Ok "one node";
    "uneven" |m| { over(m, &[500, 37]) }
        Warning "node 1 has 37 huge pages of 2 MB, and its share of 537 would be 269: the segment lies mostly on other nodes"
        => "echo 269 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 268 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    "a kernel without NUMA" |m| { m.around.nodes = Err(crate::missing("/sys/devices/system/node")) } Ok "one node";
    "nodes that are hidden" |m| { m.around.nodes = Err(crate::denied("/sys/devices/system/node")) }
        Unknown "/sys/devices/system/node may not be read";
    "surplus pages cannot be moved"
        |m| {
            over(m, &[869, 268]);
            m.pool(0).total += 600;
            m.pool(0).free += 600;
            m.pool(0).surplus = 600;
            let nodes = m.around.nodes.as_mut().expect("nodes");
            nodes[0].pools[0].counters.as_mut().expect("counters").surplus = 600;
        }
        Ok "2 nodes hold 537 huge pages of 2 MB";
    "surplus pages that others use"
        |m| {
            over(m, &[1269, 268]);
            m.pool(0).total += 1000;
            m.pool(0).surplus = 1000;
            let nodes = m.around.nodes.as_mut().expect("nodes");
            let counters = nodes[0].pools[0].counters.as_mut().expect("counters");
            counters.surplus = 1000;
            counters.free = 200;
        }
        Ok "2 nodes hold 537 huge pages of 2 MB";
    "uneven, and too few for the segment" |m| { m.fall_back(11); over(m, &[0, 11]) }
        Warning "its share of 11 would be 5: on huge pages the segment would lie mostly on other nodes"
        => "echo 5 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages; echo 6 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    "nobody asks" |m| { m.fall_back(537); m.facts.server.huge_pages = HugePages::Off; over(m, &[500, 37]) }
        Ok "asks for no huge pages";
    "even" |m| { over(m, &[269, 268]) } Ok "in proportion to their memory";
    "uneven as the memory is" |m| { m.nodes(&[(480, 57 * GB), (57, 7 * GB)]) } Ok "in proportion to their memory";
    "empty" |m| { m.fall_back(0); over(m, &[0, 0]) } Ok "empty";
    "many nodes, one of them without pages"
        |m| {
            m.ram(128 * GB);
            m.pool(0).total = 25_500;
            m.pool(0).free = 25_475;
            m.asked(25_500);
            let mut many = vec![100; 255];
            many.push(0);
            over(m, &many);
            for node in m.around.nodes.as_mut().expect("nodes") {
                node.memory.total = Some(512 * MB);
            }
        }
        Warning "node 255 has 0 huge pages of 2 MB, and its share of 25500 would be 100" => "echo 100 > /sys/devices/system/node/node255/hugepages/hugepages-2048kB/nr_hugepages";
}
