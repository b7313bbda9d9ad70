use crate::scene::{MB, Scene, denied};

const ALWAYS: &str = "[always] within_size advise never deny force\n";
const OF_64KB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled";

fn mode(m: &mut Scene, mode: &str) {
    m.fall_back(537);
    m.file("sys/kernel/mm/transparent_hugepage/shmem_enabled", mode);
}

table! { thp_shared;
    "never" |m| { m.fall_back(537) } Ok "never";
    "always" |m| { mode(m, ALWAYS); m.around.segment_thp_bytes = Some(Ok(10 * MB)) }
        Warning "10 MB of the main segment" "shmem_enabled = always" => "restart PostgreSQL";
    "nobody may look how much"
        |m| { mode(m, ALWAYS); m.around.segment_thp_bytes = Some(Err(denied("/proc/1/smaps"))) }
        Warning "an unknown part" "/proc/1/smaps may not be read" => "restart PostgreSQL";
    "always, and a pool that is short" |m| { mode(m, ALWAYS); m.fall_back(0) }
        Warning "shmem_enabled = always" => "sysctl -w vm.nr_hugepages=537; then restart PostgreSQL";
    "only a hint of the program's would do, and PostgreSQL gives none"
        |m| { mode(m, "always within_size [advise] never deny force\n") } Ok "advise";
    "a server on huge pages of the pool"
        |m| { m.file("sys/kernel/mm/transparent_hugepage/shmem_enabled", ALWAYS) } Ok "do not affect";
    "private memory's mode says nothing of it"
        |m| { m.fall_back(537); m.file("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n") }
        Ok "never";
    "a size of its own word" |m| { m.fall_back(537); m.file(OF_64KB, "[always] inherit within_size advise never\n") }
        Warning "hugepages-64kB/shmem_enabled = always" => "restart PostgreSQL";
    "the general word counts for no size"
        |m| { mode(m, ALWAYS); m.file(OF_64KB, "always inherit within_size advise [never]\n") } Ok "always";
    "the general word counts for one size"
        |m| { mode(m, ALWAYS); m.file(OF_64KB, "always [inherit] within_size advise never\n") }
        Warning "(shmem_enabled = always)" => "restart PostgreSQL";
    "deny overrides the words of sizes"
        |m| { mode(m, "always within_size advise never [deny] force\n"); m.file(OF_64KB, "[always] inherit within_size advise never\n") }
        Ok "deny";
    "force overrides them, too"
        |m| { mode(m, "always within_size advise never deny [force]\n"); m.file(OF_64KB, "always inherit within_size advise [never]\n") }
        Warning "shmem_enabled = force" => "restart PostgreSQL";
}
