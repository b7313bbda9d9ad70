ALTER FUNCTION hugeinfo_memory(integer) ROWS 1;

-- With arguments: another function in this schema could match a call without any.
CREATE VIEW hugeinfo_memory AS
SELECT pid,
       rss_bytes,
       pss_bytes,
       pss_anon_bytes,
       pss_file_bytes,
       pss_shmem_bytes,
       uss_bytes,
       swap_pss_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes
FROM hugeinfo_memory(pg_catalog.pg_backend_pid());

REVOKE ALL ON FUNCTION hugeinfo_memory(integer) FROM PUBLIC;
REVOKE ALL ON hugeinfo_memory FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_memory(integer) TO pg_monitor;
GRANT SELECT ON hugeinfo_memory TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_memory(integer) IS
'Memory of one process of this server from /proc/PID/smaps_rollup, or the sum of smaps: RSS, PSS, USS, swap and huge pages.';
COMMENT ON VIEW hugeinfo_memory IS
'Memory of this backend from /proc/PID/smaps_rollup, or the sum of smaps: RSS, PSS, USS, swap and huge pages.';
COMMENT ON COLUMN hugeinfo_memory.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_memory.rss_bytes IS
'Bytes in RAM, without huge pages (Rss).';
COMMENT ON COLUMN hugeinfo_memory.pss_bytes IS
'rss_bytes with each page divided by the number of processes that map it (Pss).';
COMMENT ON COLUMN hugeinfo_memory.pss_anon_bytes IS
'The private part of pss_bytes (Pss_Anon; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.pss_file_bytes IS
'The part of pss_bytes that belongs to files (Pss_File; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.pss_shmem_bytes IS
'The part of pss_bytes that is shared memory on small pages (Pss_Shmem; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.uss_bytes IS
'Bytes that no other process maps (Private_Clean plus Private_Dirty).';
COMMENT ON COLUMN hugeinfo_memory.swap_pss_bytes IS
'Bytes swapped out, with each page divided by the number of processes that share it (SwapPss).';
COMMENT ON COLUMN hugeinfo_memory.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_memory.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_memory.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_memory.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
