ALTER FUNCTION hugeinfo_footprint() ROWS 1;

CREATE VIEW hugeinfo_footprint AS
SELECT in_use,
       processes,
       private_bytes,
       segment_bytes,
       segment_backed_bytes,
       other_shared_bytes,
       page_table_bytes,
       swap_bytes,
       total_bytes,
       full_total_bytes
FROM hugeinfo_footprint();

REVOKE ALL ON FUNCTION hugeinfo_footprint() FROM PUBLIC;
REVOKE ALL ON hugeinfo_footprint FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_footprint() TO pg_monitor;
GRANT SELECT ON hugeinfo_footprint TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_footprint() IS
'What this server costs the host, in one row; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_footprint IS
'What this server costs the host, in one row: private memory, shared memory, page tables and swap. Shared memory counts once. Reads two small files for each process and walks no page tables. Processes are read one after the other, not at one moment. Programs, libraries and cached files do not count: the kernel can give their memory to others. To compare before and after a switch to huge pages, save this row and compare full_total_bytes. NULL: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_footprint.in_use IS
'Whether huge pages back the main shared memory segment, as hugeinfo_status.in_use.';
COMMENT ON COLUMN hugeinfo_footprint.processes IS
'Number of processes of this server, postmaster and logger included.';
COMMENT ON COLUMN hugeinfo_footprint.private_bytes IS
'Bytes of private memory in RAM: the sum of RssAnon in /proc/PID/status (Linux 4.5). An upper bound: memory that a process inherited from the postmaster and has not changed counts twice.';
COMMENT ON COLUMN hugeinfo_footprint.segment_bytes IS
'Bytes of the main shared memory segment, touched or not, as hugeinfo_status.segment_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.segment_backed_bytes IS
'Bytes of the main segment that take memory now. On huge pages the whole segment, exact: untouched pages are reserved, and nobody else can use them. With shared_memory_type = sysv what is in RAM, exact (rss in /proc/sysvipc/shm). On small pages with mmap a lower bound: what one process has touched, the largest RssShmem minus other_shared_bytes. The kernel allocates a page when it is first touched, so this grows up to segment_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.other_shared_bytes IS
'Bytes of other shared memory: dynamic shared memory (parallel queries, statistics, extensions), swapped out or not, and the small System V segment that guards the data directory. From the sizes of the server''s own files in /dev/shm or pg_dynshmem; with dynamic_shared_memory_type = sysv a lower bound: the segments that its present processes made (/proc/sysvipc/shm).';
COMMENT ON COLUMN hugeinfo_footprint.page_table_bytes IS
'Bytes of page tables: the sum of VmPTE in /proc/PID/status. An upper bound: on huge pages processes can share page tables, which count for each of them.';
COMMENT ON COLUMN hugeinfo_footprint.swap_bytes IS
'Bytes of private memory swapped out: the sum of VmSwap. An upper bound, for the same reason as private_bytes. With shared_memory_type = sysv it includes swapped-out parts of the main segment; with mmap the kernel does not report these.';
COMMENT ON COLUMN hugeinfo_footprint.total_bytes IS
'What the server costs now: private_bytes, segment_backed_bytes, other_shared_bytes, page_table_bytes and swap_bytes added up.';
COMMENT ON COLUMN hugeinfo_footprint.full_total_bytes IS
'What the server costs once all of the main segment has been touched: total_bytes with segment_bytes instead of segment_backed_bytes. Compare this figure before and after a switch to huge pages: it does not depend on how warm the cache is. On small pages page tables grow until then, too; hugeinfo_page_tables says how far.';
