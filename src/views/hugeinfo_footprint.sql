ALTER FUNCTION hugeinfo_footprint(boolean) ROWS 1;

-- With arguments: another function in this schema could match a call without any.
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
FROM hugeinfo_footprint(false);

REVOKE ALL ON FUNCTION hugeinfo_footprint(boolean) FROM PUBLIC;
REVOKE ALL ON hugeinfo_footprint FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_footprint(boolean) TO pg_monitor;
GRANT SELECT ON hugeinfo_footprint TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_footprint(boolean) IS
'Memory of this server in one row, with exact private_bytes (Pss_Anon) if exact is true, for which the kernel walks the page tables of each process.';
COMMENT ON VIEW hugeinfo_footprint IS
'Memory of this server in one row: private memory, shared memory, page tables and swap.';
COMMENT ON COLUMN hugeinfo_footprint.in_use IS
'Whether the main shared memory segment is on huge pages.';
COMMENT ON COLUMN hugeinfo_footprint.processes IS
'Number of processes of this server, including the postmaster and the logger.';
COMMENT ON COLUMN hugeinfo_footprint.private_bytes IS
'Bytes of private memory in RAM (RssAnon); an upper bound, because unmodified memory inherited from the postmaster counts once for each process.';
COMMENT ON COLUMN hugeinfo_footprint.segment_bytes IS
'Bytes of the main shared memory segment.';
COMMENT ON COLUMN hugeinfo_footprint.segment_backed_bytes IS
'Bytes of the main segment that occupy memory now: all of it on huge pages, otherwise the part that one process has faulted in.';
COMMENT ON COLUMN hugeinfo_footprint.other_shared_bytes IS
'Bytes of other shared memory, such as dynamic shared memory.';
COMMENT ON COLUMN hugeinfo_footprint.page_table_bytes IS
'Bytes of page tables (VmPTE); page tables that processes share count once for each process.';
COMMENT ON COLUMN hugeinfo_footprint.swap_bytes IS
'Bytes of private memory swapped out (VmSwap); an upper bound for the same reason as private_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.total_bytes IS
'Sum of private_bytes, segment_backed_bytes, other_shared_bytes, page_table_bytes and swap_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.full_total_bytes IS
'total_bytes once the whole main segment is in use, which is the value to compare before and after a switch to huge pages.';
