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
       processors
FROM hugeinfo_host();

REVOKE ALL ON FUNCTION hugeinfo_host() FROM PUBLIC;
REVOKE ALL ON hugeinfo_host FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_host() TO pg_monitor;
GRANT SELECT ON hugeinfo_host TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_host() IS
'The host in one row; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_host IS
'The host in one row: its kernel, its memory, and the kernel settings for memory. Figures are for the whole host, also inside a container. NULL: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_host.kernel_release IS
'Version of the kernel (uname -r).';
COMMENT ON COLUMN hugeinfo_host.machine IS
'Processor architecture (uname -m).';
COMMENT ON COLUMN hugeinfo_host.base_page_size_bytes IS
'Bytes of a small page.';
COMMENT ON COLUMN hugeinfo_host.default_huge_page_size_bytes IS
'Bytes of a huge page of the default size, which a program gets if it names no size (Hugepagesize in /proc/meminfo). NULL: the kernel has no huge pages.';
COMMENT ON COLUMN hugeinfo_host.memory_total_bytes IS
'Bytes of usable RAM, pools of huge pages included (MemTotal in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_host.memory_available_bytes IS
'Bytes that new programs could use without swapping (MemAvailable). Pools of huge pages do not count.';
COMMENT ON COLUMN hugeinfo_host.swap_total_bytes IS
'Bytes of swap space (SwapTotal).';
COMMENT ON COLUMN hugeinfo_host.swap_free_bytes IS
'Bytes of unused swap space (SwapFree).';
COMMENT ON COLUMN hugeinfo_host.page_table_bytes IS
'Bytes of page tables of all processes of the host (PageTables).';
COMMENT ON COLUMN hugeinfo_host.hugetlb_bytes IS
'Bytes of RAM in the pools of huge pages of all sizes, used or not (Hugetlb; Linux 4.18).';
COMMENT ON COLUMN hugeinfo_host.overcommit_memory IS
'vm.overcommit_memory. 0: the kernel refuses obvious overcommits. 1: it refuses nothing. 2: it commits at most commit_limit_bytes (strict).';
COMMENT ON COLUMN hugeinfo_host.overcommit_ratio IS
'vm.overcommit_ratio: commit_limit_bytes is this percentage of RAM without the pools of huge pages, plus swap space.';
COMMENT ON COLUMN hugeinfo_host.overcommit_bytes IS
'vm.overcommit_kbytes in bytes; it replaces overcommit_ratio. NULL: it is 0, and overcommit_ratio applies.';
COMMENT ON COLUMN hugeinfo_host.commit_limit_bytes IS
'Most bytes that the kernel commits with vm.overcommit_memory = 2 (CommitLimit).';
COMMENT ON COLUMN hugeinfo_host.committed_as_bytes IS
'Bytes committed now (Committed_AS). Huge pages do not count.';
COMMENT ON COLUMN hugeinfo_host.swappiness IS
'vm.swappiness, 0 to 200: how much the kernel prefers swapping memory out to dropping cached files.';
COMMENT ON COLUMN hugeinfo_host.thp_enabled IS
'When private memory gets transparent huge pages: always, madvise or never (/sys/kernel/mm/transparent_hugepage/enabled). It does not affect the main segment.';
COMMENT ON COLUMN hugeinfo_host.thp_defrag IS
'Whether a process waits while the kernel makes a transparent huge page (/sys/kernel/mm/transparent_hugepage/defrag).';
COMMENT ON COLUMN hugeinfo_host.thp_shmem_enabled IS
'When anonymous shared memory, such as a main segment on small pages, gets transparent huge pages: always, within_size, advise, never, deny or force (shmem_enabled).';
COMMENT ON COLUMN hugeinfo_host.hugetlb_shm_group IS
'vm.hugetlb_shm_group: the group that may create System V segments on huge pages. It does not affect PostgreSQL.';
COMMENT ON COLUMN hugeinfo_host.numa_nodes IS
'Number of NUMA nodes that are online, with or without memory (/sys/devices/system/node).';
COMMENT ON COLUMN hugeinfo_host.processors IS
'Number of processors that are online (/sys/devices/system/cpu/online).';
