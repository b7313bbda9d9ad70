use crate::scene::{GB, denied, limited};
use hugeinfo::{
    linux::hugepages::Pool,
    server::facts::{HugePages, SharedMemoryType},
};

table! { restart;
    "a pool of the right size" |_| {} Ok "a restart would get them again";
    "a server that fell back, and would not again" |m| { m.fall_back(537) } Ok "a restart would get huge pages";
    "one that would" |m| { m.fall_back(500) }
        Warning "a restart would not get huge pages" "37 too few"
        => "sysctl -w vm.nr_hugepages=537";
    "the pool was lowered to 100 under the server" |m| { m.pool(0).surplus = 437 }
        Warning "a restart would lose huge pages" "can give 100" "437 too few"
        => "sysctl -w vm.nr_hugepages=537";
    "which requires huge pages" |m| { m.pool(0).surplus = 437; m.facts.server.huge_pages = HugePages::On }
        Critical "a restart would fail" "437 too few" => "sysctl -w vm.nr_hugepages=537";
    "pages that the kernel has to make anew"
        |m| { *m.pool(0) = Pool { surplus: 537, overcommit: 600, ..m.pool(0).clone() } }
        Warning "a restart may not get huge pages" "make 537 of them" "only a start shows whether it can"
        => "sysctl -w vm.nr_hugepages=537";
    "huge_pages = off waits while they are in use" |m| { m.waits(|next| next.huge_pages = HugePages::Off) }
        Warning "a restart would lose huge pages: huge_pages = off"
        => "ALTER SYSTEM SET huge_pages = 'try'";
    "shared_memory_type = sysv waits" |m| { m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv) }
        Warning "a restart would lose huge pages: shared_memory_type = sysv"
        => "ALTER SYSTEM SET shared_memory_type = 'mmap'";
    "a server that asks for none" |m| { m.fall_back(0); m.facts.server.huge_pages = HugePages::Off }
        Ok "a restart would not ask for huge pages: huge_pages = off";
    "groups that may not be seen" |m| { m.facts.hugetlb = Err(denied("/proc/4711/cgroup")) }
        Unknown "/proc/4711/cgroup may not be read";
    "a limit on reservations below what is mapped" |m| { limited(&mut m.facts, None, Some(100)) }
        Warning "a restart would lose huge pages" "lets 100 MB of huge pages be reserved"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max; in Kubernetes raise the pod's limit on huge pages instead";
    "RAM holds the pool only without the segment" |m| { m.fall_back(0); m.needs(40 * GB) }
        Warning "20480 too few"
        => "stop PostgreSQL; echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=20480; if nr_hugepages reads less than 20480, first set it back: sysctl -w vm.nr_hugepages=0; start PostgreSQL";
    "RAM does not hold it with anything else"
        |m| { m.fall_back(0); m.needs(62 * GB); m.around.shared_buffers_bytes = 60 * GB }
        Warning "31744 too few"
        => "lower shared_buffers to 56934MB or add memory: 31744 huge pages of 2 MB would leave less than 10 % of RAM; 4506 MB too much";
}
