ALTER FUNCTION hugeinfo_host() ROWS 1;

CREATE VIEW hugeinfo_host AS
SELECT kernel_release,
       machine,
       base_page_size_bytes,
       default_huge_page_size_bytes,
       memory_total_bytes,
       memory_available_bytes,
       swap_total_bytes,
       swap_free_bytes,
       page_table_bytes,
       hugetlb_bytes,
       overcommit_memory,
       overcommit_ratio,
       overcommit_bytes,
       commit_limit_bytes,
       committed_as_bytes,
       swappiness,
       thp_enabled,
       thp_defrag,
       thp_shmem_enabled,
       hugetlb_shm_group,
       numa_nodes,
       processors,
       hugetlb_optimize_vmemmap,
       vmemmap_saving_bytes,
       cgroup_memory_limit_bytes,
       cgroup_memory_used_bytes,
       cgroup_oom_kills
FROM hugeinfo_host();

REVOKE ALL ON FUNCTION hugeinfo_host() FROM PUBLIC;
REVOKE ALL ON hugeinfo_host FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_host() TO pg_monitor;
GRANT SELECT ON hugeinfo_host TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_host() IS
'The host in one row; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_host IS
'The host in one row: kernel, memory, the kernel settings for memory, and the memory of the server''s cgroups.';
COMMENT ON COLUMN hugeinfo_host.kernel_release IS
'Version of the kernel (uname -r).';
COMMENT ON COLUMN hugeinfo_host.machine IS
'Processor architecture (uname -m).';
COMMENT ON COLUMN hugeinfo_host.base_page_size_bytes IS
'Bytes of a regular page.';
COMMENT ON COLUMN hugeinfo_host.default_huge_page_size_bytes IS
'Bytes of a huge page of the default size (Hugepagesize); NULL if the kernel has no huge pages.';
COMMENT ON COLUMN hugeinfo_host.memory_total_bytes IS
'Bytes of usable RAM, including huge page pools (MemTotal).';
COMMENT ON COLUMN hugeinfo_host.memory_available_bytes IS
'Bytes that new programs could use without swapping, excluding huge page pools (MemAvailable).';
COMMENT ON COLUMN hugeinfo_host.swap_total_bytes IS
'Bytes of swap space (SwapTotal).';
COMMENT ON COLUMN hugeinfo_host.swap_free_bytes IS
'Bytes of unused swap space (SwapFree).';
COMMENT ON COLUMN hugeinfo_host.page_table_bytes IS
'Bytes of page tables of all processes of the host (PageTables).';
COMMENT ON COLUMN hugeinfo_host.hugetlb_bytes IS
'Bytes of RAM in huge page pools of all sizes, used or not (Hugetlb; Linux 4.18).';
COMMENT ON COLUMN hugeinfo_host.overcommit_memory IS
'vm.overcommit_memory: 0 refuses obvious overcommits, 1 nothing, and 2 everything beyond commit_limit_bytes.';
COMMENT ON COLUMN hugeinfo_host.overcommit_ratio IS
'vm.overcommit_ratio: the percentage of RAM without huge page pools that commit_limit_bytes includes.';
COMMENT ON COLUMN hugeinfo_host.overcommit_bytes IS
'vm.overcommit_kbytes in bytes, which replaces overcommit_ratio; NULL if it is 0.';
COMMENT ON COLUMN hugeinfo_host.commit_limit_bytes IS
'Limit on committed bytes with vm.overcommit_memory = 2 (CommitLimit).';
COMMENT ON COLUMN hugeinfo_host.committed_as_bytes IS
'Bytes committed now, without huge pages (Committed_AS).';
COMMENT ON COLUMN hugeinfo_host.swappiness IS
'vm.swappiness, from 0 to 200: how much the kernel prefers swapping to dropping cached files.';
COMMENT ON COLUMN hugeinfo_host.thp_enabled IS
'Mode of transparent huge pages for private memory: always, madvise or never.';
COMMENT ON COLUMN hugeinfo_host.thp_defrag IS
'When a process waits while the kernel allocates a transparent huge page: always, defer, defer+madvise, madvise or never.';
COMMENT ON COLUMN hugeinfo_host.thp_shmem_enabled IS
'Mode of transparent huge pages for shared memory: always, within_size, advise, never, deny or force.';
COMMENT ON COLUMN hugeinfo_host.hugetlb_shm_group IS
'vm.hugetlb_shm_group, which does not affect PostgreSQL.';
COMMENT ON COLUMN hugeinfo_host.numa_nodes IS
'Number of NUMA nodes that are online, with or without memory.';
COMMENT ON COLUMN hugeinfo_host.processors IS
'Number of processors that are online.';
COMMENT ON COLUMN hugeinfo_host.hugetlb_optimize_vmemmap IS
'Whether the kernel frees most page structures of new huge pages (vm.hugetlb_optimize_vmemmap); NULL if this kernel cannot.';
COMMENT ON COLUMN hugeinfo_host.vmemmap_saving_bytes IS
'Bytes of page structures of all huge page pools that vm.hugetlb_optimize_vmemmap saves, or would save if it were on.';
COMMENT ON COLUMN hugeinfo_host.cgroup_memory_limit_bytes IS
'Lowest limit on the memory of the server''s cgroup and the cgroups above it (v1 memory.limit_in_bytes, v2 memory.max); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_host.cgroup_memory_used_bytes IS
'Bytes that the server''s cgroup uses, including the file cache (v1 memory.usage_in_bytes, v2 memory.current).';
COMMENT ON COLUMN hugeinfo_host.cgroup_oom_kills IS
'Number of processes of the server''s cgroup that the OOM killer killed (Linux 4.13).';
