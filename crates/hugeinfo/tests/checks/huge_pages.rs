use crate::scene::{GB, MB, denied, limited, missing};
use hugeinfo::{
    linux::{cgroup::Limits, meminfo::Meminfo},
    server::facts::{HugePages, SharedMemoryType},
};

table! { huge_pages;
    "on huge pages" |_| {} Ok "main segment of 1074 MB is on 537 huge pages of 2 MB";
    "terabytes on pages of a gigabyte"
        |m| {
            m.ram(4 << 40);
            m.facts.server.huge_page_size_bytes = Some(GB);
            m.needs(3 << 40);
            m.facts.segment.as_mut().expect("a segment").page_bytes = Some(GB);
            *m.pool(0) = hugeinfo::linux::hugepages::Pool { total: 0, free: 0, reserved: 0, ..m.pool(0).clone() };
            m.pool(1).total = 3072;
        }
        Ok "3 TB" "3072 huge pages of 1 GB";
    "the pool is short" |m| { m.fall_back(500) }
        Warning "huge_pages = try fell back" "1073 MB" "4 kB" "537 huge pages of 2 MB" "can give 500" "37 too few"
        => "sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "others hold the pool" |m| { m.fall_back(600); m.pool(0).reserved = 100 }
        Warning "can give 500" "37 too few"
        => "sysctl -w vm.nr_hugepages=637; then restart PostgreSQL";
    "there are pages of another size" |m| { m.fall_back(0); m.pool(1).total = 2; m.pool(1).free = 2 }
        Warning "can give 0" "pages of another size would suffice: 1 GB"
        => "sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "of which a control group lets none be touched"
        |m| {
            m.fall_back(0);
            m.pool(1).total = 2;
            m.pool(1).free = 2;
            limited(&mut m.facts, None, None);
            let limits = &mut m.facts.hugetlb.as_mut().expect("cgroup").groups[0].limits;
            let of_2mb = limits[0].clone();
            limits.push(Limits { page_bytes: GB, fault_limit: Some(0), ..of_2mb });
        }
        Warning "can give 0, 537 too few"
        => "sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "the kernel lacks the size" |m| { m.fall_back(600); m.facts.server.huge_page_size_bytes = Some(16 * MB) }
        Warning "asks for huge pages of 16 MB" "the kernel has 2 MB, 1 GB"
        => "ALTER SYSTEM SET huge_page_size = 0; then restart PostgreSQL";
    "sysv cannot" |m| { m.fall_back(0); m.facts.server.shared_memory_type = SharedMemoryType::Sysv }
        Warning "shared_memory_type = sysv"
        => "ALTER SYSTEM SET shared_memory_type = 'mmap'; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "switched off" |m| { m.fall_back(537); m.facts.server.huge_pages = HugePages::Off }
        Warning "1073 MB" "4 kB pages: huge_pages = off"
        => "ALTER SYSTEM SET huge_pages = 'try'; then restart PostgreSQL";
    "a limit on reservations" |m| { m.fall_back(600); limited(&mut m.facts, None, Some(100)) }
        Warning "/sys/fs/cgroup/pg lets 100 MB of huge pages be reserved" "1074 MB"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max; in Kubernetes raise the pod's limit on huge pages instead; then restart PostgreSQL";
    "both limits: the restart must not arm the other one" |m| { m.fall_back(537); limited(&mut m.facts, Some(100), Some(100)) }
        Warning "lets 100 MB of huge pages be reserved" "would allow 100 MB"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max; in Kubernetes raise the pod's limit on huge pages instead; then restart PostgreSQL";
    "a short pool, and a limit that the restart must not arm" |m| { m.fall_back(10); limited(&mut m.facts, Some(100), None) }
        Warning "527 too few" "/sys/fs/cgroup/pg would allow 100 MB of 1074 MB"
        => "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "the same, switched off"
        |m| { m.fall_back(10); limited(&mut m.facts, Some(100), None); m.facts.server.huge_pages = HugePages::Off }
        Warning "huge_pages = off" "100 MB"
        => "ALTER SYSTEM SET huge_pages = 'try'; echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead; sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "a kernel without huge pages"
        |m| {
            m.fall_back(0);
            m.facts.pools = Err(missing("/sys/kernel/mm/hugepages"));
            m.facts.meminfo = Ok(Meminfo { total_bytes: Some(64 * GB), default_huge_page_bytes: None });
        }
        Warning "no huge pages";
    "the cause has gone" |m| { m.fall_back(537) }
        Warning "too few huge pages were free when the server started" => "restart PostgreSQL";
    "the files do not let it start again" |m| { m.fall_back(537); m.around.files = hugeinfo::server::surroundings::Files::Refused("syntax error".to_owned()) }
        Warning "too few huge pages were free when the server started"
        => "correct what the message names; SELECT * FROM pg_file_settings WHERE NOT applied names files and lines";
    "a cause that cannot be seen" |m| { m.fall_back(0); m.facts.pools = Err(denied("/sys/kernel/mm/hugepages")) }
        Warning "fell back" "may not be read";
    "a page size that cannot be seen" |m| { m.facts.segment.as_mut().expect("a segment").page_bytes = None }
        Unknown "PROCMAP_QUERY";
    "RAM holds the pool beside the segment" |m| { m.fall_back(0); m.needs(8 * GB) }
        Warning "4096 too few"
        => "echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=4096; then restart PostgreSQL";
    "RAM holds it only without the segment" |m| { m.fall_back(0); m.needs(40 * GB) }
        Warning "20480 too few"
        => "stop PostgreSQL; echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=20480; if nr_hugepages reads less than 20480, first set it back: sysctl -w vm.nr_hugepages=0; start PostgreSQL";
    "RAM does not hold it with anything else"
        |m| { m.fall_back(0); m.needs(62 * GB); m.around.shared_buffers_bytes = 60 * GB }
        Warning "31744 too few"
        => "lower shared_buffers to 56934MB or add memory: 31744 huge pages of 2 MB would leave less than 10 % of RAM; 4506 MB too much";
}
