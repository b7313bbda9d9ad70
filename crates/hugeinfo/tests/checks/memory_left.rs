use crate::scene::{GB, MB};
use hugeinfo::server::sight::Sight;

table! { memory_left;
    "plenty" |_| {} Ok "huge pages of 1074 MB leave 63 GB of 64 GB RAM";
    "a pool that leaves too little, and that nobody needs" |m| { m.pool(0).total = 30_000; m.pool(0).free = 29_975 }
        Warning "leave" "of 64 GB RAM" => "sysctl -w vm.nr_hugepages=537";
    "a pool that leaves too little, and somebody who is hidden may need it"
        |m| { m.pool(0).total = 30_000; m.pool(0).free = 29_975; m.around.sight = Sight::Hidden }
        Warning "leave" "of 64 GB RAM"
        => "ask root, who sees all servers of this host, whether one of them wants the 29463 huge pages of 2 MB that no server seen from here needs: they could be given back";
    "a segment that would" |m| { m.fall_back(0); m.needs(60 * GB); m.around.shared_buffers_bytes = 58 * GB }
        Warning "would leave 4 GB of 64 GB RAM" "too large for this host"
        => "lower shared_buffers to 56934MB or add memory: 30720 huge pages of 2 MB are more than this host can spare";
    "a segment that would not" |m| { m.fall_back(0); m.needs(8 * GB) } Ok "would leave 56 GB of 64 GB RAM";
    "falling back beside a full pool"
        |m| { m.fall_back(25_600); m.pool(0).reserved = 25_600; m.asked(25_600); m.needs(16_000 * MB) }
        Critical "after a restart on small pages the main segment takes 16 GB, and the pools leave 14 GB of RAM"
        => "look for who holds the huge pages (hugeinfo_holders): other programs have them, or pools that others have set up";
    "more pools than RAM: MemTotal is a container's" |m| { m.ram(GB) } Unknown "not of one host";
}
