ALTER FUNCTION hugeinfo_memory() ROWS 1;
ALTER FUNCTION hugeinfo_memory(integer) ROWS 1;

REVOKE ALL ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_memory() IS
'hugeinfo_memory(integer) of this backend.';
COMMENT ON FUNCTION hugeinfo_memory(integer) IS
'What one process of this server really takes, in bytes, from /proc/PID/smaps_rollup (Linux 4.14), else the sum of smaps. Walks its page tables. pid: the process. rss_bytes: resident, huge pages not included. pss_bytes: the same, each page divided by the number of processes that map it, so that a sum over all processes counts nothing twice; pss_anon_bytes, pss_file_bytes, pss_shmem_bytes: its parts (Linux 5.4). uss_bytes: mapped by this process alone, what its end would free (Private_Clean and Private_Dirty). swap_pss_bytes: swapped out, divided likewise. anon_thp_bytes, shmem_thp_bytes: on transparent huge pages, private and shared (AnonHugePages, ShmemPmdMapped). shared_hugetlb_bytes, private_hugetlb_bytes: huge pages, which are in none of the other figures. NULL: the kernel does not report it, or it may not be read. A warning and no row for a pid that is not of this server; no row for NULL.';
