ALTER FUNCTION hugeinfo_memory() ROWS 1;
ALTER FUNCTION hugeinfo_memory(integer) ROWS 1;

REVOKE ALL ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_memory() IS
'hugeinfo_memory(integer) of this backend.';
COMMENT ON FUNCTION hugeinfo_memory(integer) IS
'What one process of this server really takes, in bytes, from /proc/PID/smaps_rollup (Linux 4.14), else the sum of smaps. Walks its page tables. pid: process ID. rss_bytes: in RAM, without huge pages. pss_bytes: the same, with each page divided by the number of processes that map it; a sum over all processes counts nothing twice. pss_anon_bytes, pss_file_bytes, pss_shmem_bytes: parts of pss_bytes (Linux 5.4). uss_bytes: mapped by this process alone; its end would free them (Private_Clean and Private_Dirty). swap_pss_bytes: swapped out, divided like pss_bytes. anon_thp_bytes, shmem_thp_bytes: private and shared memory on transparent huge pages (AnonHugePages, ShmemPmdMapped). shared_hugetlb_bytes, private_hugetlb_bytes: huge pages; no other figure includes them. NULL: the kernel does not report it, or it may not be read. A pid that is not of this server gives a warning and no row. NULL as pid gives no row.';
