use std::path::PathBuf;

use crate::scene::{GB, MB, Scene};
use hugeinfo::{linux::cgroup::memory::MemoryLimit, server::sight::Sight};

/// A limit on the memory of the server's group, what is used of it, and what of that is files.
fn limit(m: &mut Scene, limit_bytes: u64, use_bytes: u64, files: u64) -> &mut MemoryLimit {
    let limits = m.around.memory_limits.as_mut().expect("limits");
    limits.push(MemoryLimit {
        directory: PathBuf::from("/sys/fs/cgroup/pg"),
        limit_bytes,
        use_bytes,
        file_bytes: Some(files),
        swap_room_bytes: Some(0),
        counts_hugetlb: false,
    });
    let last = limits.len() - 1;
    &mut limits[last]
}

/// A server of 8 GB on small pages, of which one process has touched so much.
fn on_small_pages(m: &mut Scene, touched: u64) {
    m.fall_back(4096);
    m.needs(8 * GB);
    m.asked(4096);
    for process in &mut m.around.processes {
        process.rss_shmem = Some(touched);
    }
}

table! { memory_left;
    "plenty" |_| {} Ok "the pools hold 1074 MB and leave 63 GB of 64 GB RAM";
    "a pool that leaves too little, and that nobody needs" |m| { m.pool(0).total = 30_000; m.pool(0).free = 29_975 }
        Warning "leave" "of 64 GB RAM" => "sysctl -w vm.nr_hugepages=537";
    "a pool that leaves too little, and somebody who is hidden may need it"
        |m| { m.pool(0).total = 30_000; m.pool(0).free = 29_975; m.around.sight = Sight::Hidden }
        Warning "leave" "of 64 GB RAM"
        => "ask root, who sees all servers of this host, whether one of them needs 29463 huge pages of 2 MB that no visible server needs: they could be given back";
    "a segment that would" |m| { m.fall_back(0); m.needs(60 * GB); m.around.shared_buffers_bytes = 58 * GB }
        Warning "and leave 4 GB of 64 GB RAM" "too large for this host"
        => "lower shared_buffers to 56934MB or add memory: 30720 huge pages of 2 MB would leave less than 10 % of RAM; 2458 MB too much";
    "a segment that would not" |m| { m.fall_back(0); m.needs(8 * GB) } Ok "and leave 56 GB of 64 GB RAM";
    "falling back beside a full pool"
        |m| { m.fall_back(25_600); m.pool(0).reserved = 25_600; m.asked(25_600); m.needs(16_000 * MB) }
        Critical "after a restart on small pages the main segment takes 16 GB, and the pools leave only 14 GB of RAM"
        => "find out who holds the huge pages (hugeinfo_holders): other programs have them, or pools that others have set up";
    "a group that holds the segment" |m| { on_small_pages(m, 2 * GB); limit(m, 10 * GB, 4 * GB, 0); } Ok;
    "whoever has touched nothing yet has all before it"
        |m| { on_small_pages(m, 2 * GB); limit(m, 6 * GB, 4 * GB, 0); }
        Critical "control group /sys/fs/cgroup/pg has a memory limit of 6 GB, and needs 8 GB" "the OOM killer"
        => "restart PostgreSQL";
    "swap holds the rest" |m| { on_small_pages(m, 2 * GB); limit(m, 6 * GB, 4 * GB, 0).swap_room_bytes = None; }
        Warning "needs 8 GB once the whole main segment is in use: it will swap"
        => "restart PostgreSQL";
    "not all of it" |m| { on_small_pages(m, 2 * GB); limit(m, 6 * GB, 4 * GB, 0).swap_room_bytes = Some(GB); }
        Critical "the OOM killer" => "restart PostgreSQL";
    "how much has been touched decides, and lies between 2 and 4 GB"
        |m| { on_small_pages(m, 2 * GB); limit(m, 9 * GB, 4 * GB, 0); }
        Unknown "known only within bounds";
    "files make way" |m| { on_small_pages(m, 2 * GB); limit(m, 9 * GB, 4 * GB, GB); } Ok;
    "any level limits" |m| { on_small_pages(m, 2 * GB); limit(m, 60 * GB, 9 * GB, 0); limit(m, 20 * GB, 30 * GB, 9 * GB); }
        Critical "has a memory limit of 20 GB, and needs 21 GB" => "restart PostgreSQL";
    "huge pages do not count" |m| { limit(m, GB, GB, 0); } Ok;
    "unless the mount says so"
        |m| { limit(m, GB, 100 * MB, 0).counts_hugetlb = true; }
        Critical "has a memory limit of 1 GB, and needs 1124 MB" "huge pages count towards it"
        => "raise the memory limit of the server's control group by 100 MB or lower shared_buffers";
    "a start on small pages is judged by the whole segment"
        |m| { m.waits(|next| next.shared_memory_bytes = 8 * GB); limit(m, 4 * GB, GB, 0); }
        Critical "after a restart on small pages control group /sys/fs/cgroup/pg would need 9 GB, and its memory limit is 4 GB"
        => "echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=4096";
    "limits that may not be seen" |m| { m.around.memory_limits = Err(crate::denied("/sys/fs/cgroup/pg/memory.max")) }
        Unknown "/sys/fs/cgroup/pg/memory.max may not be read";
    "what the kernel keeps of the last free memory makes no container"
        |m| {
            m.available = Some(50 * MB);
            let nodes = m.around.nodes.as_mut().expect("nodes");
            nodes[0].memory.free = Some(300 * MB);
        }
        Ok "leave";
    "more pools than RAM: MemTotal is a container's" |m| { m.ram(GB) } Unknown "not of one host";
}
