use crate::scene::{GB, MB, Scene};
use hugeinfo::{
    linux::{hugepages::Pool, process::segment::Segment},
    server::{
        facts::{HugePages, SharedMemoryType},
        instances::Instance,
        sight::Sight,
    },
};

fn other(m: &mut Scene, segment: Option<Segment>) {
    let instance = Instance {
        pid: 815,
        owner_uid: Some(1001),
        owner: None,
        data_directory: None,
        directory_argument: None,
        port: None,
        shared_memory_type: segment.as_ref().map(|_| SharedMemoryType::Mmap),
        segment,
    };
    m.around
        .neighbours
        .as_mut()
        .expect("servers")
        .push(instance);
}

fn of(m: &mut Scene, bytes: u64, page_bytes: u64) {
    let page_bytes = Some(page_bytes);
    other(
        m,
        Some(Segment {
            bytes,
            page_bytes,
            mappings: 1,
        }),
    );
}

table! { neighbours;
    "none" |_| {} Ok "no other PostgreSQL server";
    "one on small pages" |m| { of(m, 143 * MB, 4096) }
        Warning "another server runs on this host; all together need 609 huge pages of 2 MB; the pool has 537"
        => "sysctl -w vm.nr_hugepages=609";
    "overcommit is no certainty" |m| { of(m, 143 * MB, 4096); m.pool(0).overcommit = 72 }
        Warning "need 609" "has 537" => "sysctl -w vm.nr_hugepages=609";
    "a pool for both" |m| { of(m, 143 * MB, 4096); m.pool(0).total += 72; m.pool(0).free += 72 }
        Ok "need 609" "has 609";
    "what another program has is not to be had" |m| { of(m, 143 * MB, 4096); m.pool(0).total = 1037 }
        Warning "need 1109 huge pages of 2 MB, including 500 that other programs hold; the pool has 1037"
        => "sysctl -w vm.nr_hugepages=1109";
    "more than the host has" |m| { of(m, 70 * GB, 4096) }
        Warning "the one that starts last"
        => "lower shared_buffers of one of the servers, or move one to another host: together they need 36377 huge pages of 2 MB, more than this host can spare";
    "a server that asks for none, as on purpose"
        |m| { m.fall_back(100); m.facts.server.huge_pages = HugePages::Off; of(m, 143 * MB, 4096) }
        Ok "another server runs on this host; this one asks for no huge pages";
    "one on pages of another size"
        |m| { of(m, 9 * GB, GB); *m.pool(1) = Pool { total: 9, free: 0, ..m.pool(1).clone() } } Ok "need 537";
    "none, as far as a container shows" |m| { m.around.sight = Sight::Namespace }
        Ok "no other PostgreSQL server runs as far as is seen from here";
    "none, and processes are hidden" |m| { m.around.sight = Sight::Hidden }
        Unknown "processes of other users are hidden, and some may be servers";
    "a pool for one, and processes are hidden"
        |m| { of(m, 143 * MB, 4096); m.pool(0).total += 72; m.pool(0).free += 72; m.around.sight = Sight::Hidden }
        Unknown "another server runs as far as is seen from here; processes of other users";
    "one too many is too many, whoever is hidden"
        |m| { of(m, 143 * MB, 4096); m.around.sight = Sight::Hidden }
        Warning "need 609" => "sysctl -w vm.nr_hugepages=609";
    "two that nobody may look into" |m| { other(m, None); other(m, None) }
        Unknown "2 other servers" "the needs of 2 other servers";
    "System V shared memory takes no huge pages"
        |m| {
            of(m, 143 * MB, 4096);
            let servers = m.around.neighbours.as_mut().expect("servers");
            servers[0].shared_memory_type = Some(SharedMemoryType::Sysv);
        }
        Ok "another server runs on this host; all together need 537";
    "all on small pages, and no pool at all" |m| { m.fall_back(0); of(m, 143 * MB, 4096); of(m, 143 * MB, 4096) }
        Warning "2 other servers run" "need 681 huge pages of 2 MB; the pool has 0" => "sysctl -w vm.nr_hugepages=681";
}
