const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const OF_2MB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
const OF_64KB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

table! { thp_private;
    "only where asked for" |_| {} Ok "madvise";
    "always" |m| { m.file(ENABLED, "[always] madvise never\n") }
        Warning "enabled = always" "the host has 90 MB on them"
        => "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    "never" |m| { m.file(ENABLED, "always madvise [never]\n") } Ok "never";
    "shared memory's mode says nothing of it"
        |m| { m.fall_back(0); m.file("sys/kernel/mm/transparent_hugepage/shmem_enabled", "[always] within_size advise never deny force\n") }
        Ok "madvise";
    "a size of its own word" |m| { m.file(OF_2MB, "[always] inherit madvise never\n") }
        Warning "hugepages-2048kB/enabled = always"
        => "echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    "the general word counts for no size"
        |m| { m.file(ENABLED, "[always] madvise never\n"); m.file(OF_2MB, "always inherit madvise [never]\n") }
        Ok "enabled = always";
    "the general word counts for one size"
        |m| {
            m.file(ENABLED, "[always] madvise never\n");
            m.file(OF_2MB, "always [inherit] madvise never\n");
            m.file(OF_64KB, "always inherit madvise [never]\n");
        }
        Warning "without a request (enabled = always)" => "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    "both"
        |m| {
            m.file(ENABLED, "[always] madvise never\n");
            m.file(OF_2MB, "always [inherit] madvise never\n");
            m.file(OF_64KB, "[always] inherit madvise never\n");
        }
        Warning "hugepages-64kB/enabled = always, enabled = always"
        => "echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
}
