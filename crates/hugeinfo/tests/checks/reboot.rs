use crate::scene::{GB, denied};
use hugeinfo::server::facts::{AllowedNodes, HugePages};

table! { reboot;
    "as many as are needed" |_| {} Ok "sets up 537 huge pages of 2 MB at the next boot; needed: 537";
    "one too few" |m| { m.asked(536) }
        Warning "/etc/sysctl.d/hugepages.conf sets up 536 huge pages of 2 MB at the next boot; needed: 537"
        => "sed -i 's/^vm\\.nr_hugepages = 536$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf";
    "overcommit is no certainty" |m| { m.asked(536); m.pool(0).overcommit = 1 }
        Warning "sets up 536"
        => "sed -i 's/^vm\\.nr_hugepages = 536$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf";
    "nobody asks" |m| { m.file("etc/sysctl.d/hugepages.conf", None) }
        Warning "neither" "needed: 537"
        => "(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/hugepages.conf)";
    "the file that is read last has a name that cannot be quoted"
        |m| { m.file("etc/sysctl.d/zz\u{7f}.conf", "vm.nr_hugepages = 5\n") }
        Warning r"/etc/sysctl.d/zz\177.conf sets up 5 "
        => r"find the file that sets the pool at boot: a file that is read later, or that cannot be read, decides; a shell command cannot quote the name of /etc/sysctl.d/zz\177.conf";
    "a file that is read later wins" |m| { m.file("etc/sysctl.conf", "vm.nr_hugepages = 5\n") }
        Warning "/etc/sysctl.conf sets up 5 "
        => "sed -i 's/^vm\\.nr_hugepages = 5$/vm.nr_hugepages = 537/' /etc/sysctl.conf";
    "others have pages of the pool"
        |m| { m.pool(0).total = 737; m.pool(0).free = 512; m.around.nodes = Ok(vec![crate::on_node(0, 737)]) }
        Warning "sets up 537" "needed: 737, 200 of them by others"
        => "sed -i 's/^vm\\.nr_hugepages = 537$/vm.nr_hugepages = 737/' /etc/sysctl.d/hugepages.conf";
    "more than the host can spare"
        |m| { m.fall_back(0); m.needs(62 * GB); m.around.shared_buffers_bytes = 60 * GB }
        Warning "needed: 31744"
        => "lower shared_buffers to 56934MB or add memory: 31744 huge pages of 2 MB would leave less than 10 % of RAM; 4506 MB too much";
    "the nodes that the server may use get too few"
        |m| {
            m.nodes(&[(537, 32 * GB), (0, 32 * GB)]);
            let nodes = m.around.nodes.clone().expect("nodes");
            m.facts.allowed_nodes = AllowedNodes::Only(nodes[..1].to_vec());
        }
        Warning "needed: 537; the NUMA nodes that the server may use get 269 of them, and it needs 537"
        => "set up 537 huge pages of 2 MB at boot on NUMA nodes 0 by name on the kernel command line (hugepages=NODE:PAGES,…; Linux 5.16), or let the server use all nodes";
    "more than leaves RAM to work with" |m| { m.asked(31_744) }
        Warning "/etc/sysctl.d/hugepages.conf sets up 31744 huge pages of 2 MB at the next boot, and the pools then leave 2 GB of 64 GB RAM"
        => "sed -i 's/^vm\\.nr_hugepages = 31744$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf";
    "of another size" |m| { m.file("proc/cmdline", "hugepagesz=1G hugepages=60") }
        Warning "/proc/cmdline sets up 60 huge pages of 1 GB at the next boot, and the pools then leave 3022 MB of 64 GB RAM"
        => "for the next boot, on the kernel command line: hugepages=0 in place of hugepages=60";
    "the same for a server that asks for none"
        |m| { m.fall_back(0); m.asked(31_744); m.facts.server.huge_pages = HugePages::Off }
        Warning "leave 2 GB of 64 GB RAM"
        => "sed -i 's/^vm\\.nr_hugepages = 31744$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf";
    "and where nothing can be set now"
        |m| { m.asked(31_744); m.facts.server.shared_memory_bytes = 2 * GB; m.waits(|next| next.shared_memory_bytes = 10 * GB); m.available = Some(GB) }
        Warning "leave 2 GB of 64 GB RAM"
        => "sed -i 's/^vm\\.nr_hugepages = 31744$/vm.nr_hugepages = 5120/' /etc/sysctl.d/hugepages.conf";
    "a server that asks for none"
        |m| { m.fall_back(0); m.file("etc/sysctl.d/hugepages.conf", None); m.facts.server.huge_pages = HugePages::Off }
        Ok "asks for no huge pages";
    "gigantic pages" |m| { m.fall_back(537); m.facts.server.huge_page_size_bytes = Some(GB) }
        Warning "1 GB" "needed: 2"
        => "echo 1 > /proc/sys/vm/compact_memory; echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; for the next boot, on the kernel command line: hugepagesz=1G hugepages=2";
    "nobody may look" |m| { m.around.asked_at_boot = Err(denied("/proc/cmdline")) }
        Unknown "/proc/cmdline may not be read";
}
