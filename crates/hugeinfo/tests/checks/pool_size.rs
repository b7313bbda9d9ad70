use crate::scene::{GB, MB, Scene};
use hugeinfo::{
    linux::hugepages::Pool, server::facts::HugePages, server::sight::Sight,
    server::surroundings::Files,
};

fn more(m: &mut Scene, pages: u64) {
    m.pool(0).total += pages;
    m.pool(0).free += pages;
}

table! { pool_size;
    "no page too many" |_| {} Ok "no pool holds unused pages";
    "a few pages too many are mentioned" |m| { more(m, 63) }
        Ok "the pool holds 63 huge pages of 2 MB (126 MB) that nobody uses";
    "an oversized pool" |m| { more(m, 1000) }
        Warning "the pool holds 1000 huge pages of 2 MB (2000 MB) that nobody uses"
        => "sysctl -w vm.nr_hugepages=537";
    "somebody who is hidden may want them" |m| { more(m, 1000); m.around.sight = Sight::Hidden }
        Unknown "the pool holds 1000 huge pages of 2 MB (2000 MB) that nobody uses as far as can be seen; processes of other users";
    "a container sees no more than its own" |m| { more(m, 1000); m.around.sight = Sight::Namespace }
        Unknown "1000 huge pages of 2 MB (2000 MB) that nobody uses as far as can be seen; servers of other containers";
    "what stops the next start says nothing of what it needs"
        |m| { more(m, 1000); m.around.files = Files::Refused("invalid value".to_owned()) }
        Unknown "1000 huge pages of 2 MB (2000 MB) that nobody uses now; settings wait for a restart: invalid value";
    "of another size" |m| { m.pool(1).total = 8; m.pool(1).free = 6 }
        Warning "6 huge pages of 1 GB (6 GB)"
        => "echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    "the largest is not the one that matters"
        |m| {
            m.ram(128 * GB);
            m.facts.server.huge_page_size_bytes = Some(GB);
            m.needs(100 * GB);
            m.facts.segment.as_mut().expect("a segment").page_bytes = Some(GB);
            m.pool(1).total = 105;
            m.pool(1).free = 5;
            *m.pool(0) = Pool { total: 2048, free: 2048, reserved: 0, ..m.pool(0).clone() };
        }
        Warning "2048 huge pages of 2 MB (4 GB)" => "sysctl -w vm.nr_hugepages=0";
    "RAM of unknown size" |m| { more(m, 10_000); m.facts.meminfo.as_mut().expect("meminfo").total_bytes = None }
        Unknown "MemTotal";
    "settings wait for less than the server has" |m| { more(m, 1511); m.waits(|next| next.shared_memory_bytes = GB) }
        Ok "the pool holds 1511 huge pages of 2 MB (3022 MB) that nobody uses, and 25 more after the next restart";
    "for some of it" |m| { more(m, 1511); m.waits(|next| next.shared_memory_bytes = 2 * GB) }
        Warning "1024 huge pages of 2 MB" => "sysctl -w vm.nr_hugepages=1024";
    "for all of it" |m| { more(m, 1511); m.waits(|next| next.shared_memory_bytes = 3 * GB + 900 * MB) }
        Ok "62 huge pages of 2 MB (";
    "settings wait that nobody may see"
        |m| { more(m, 1511); m.around.settings_wait_for_restart = true; m.around.files = Files::Unseen("for superusers".to_owned()) }
        Unknown "1511 huge pages" "settings wait for a restart: for superusers";
    "switched off, and huge_pages wants the pages" |m| { m.fall_back(537); m.facts.server.huge_pages = HugePages::Off }
        Ok "no pool holds unused pages";
    "about to be switched on"
        |m| { m.fall_back(537); m.facts.server.huge_pages = HugePages::Off; m.waits(|next| next.huge_pages = HugePages::Try) }
        Ok;
    "surplus pages are nobody's excess" |m| { m.pool(0).surplus = 100 } Ok "no pool holds unused pages";
    "a segment that cannot be seen" |m| { m.facts.segment = Err(crate::denied("/proc/4711/maps")) }
        Unknown "/proc/4711/maps may not be read";
}
