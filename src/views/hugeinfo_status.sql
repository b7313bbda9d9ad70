ALTER FUNCTION hugeinfo_status() ROWS 1;

CREATE VIEW hugeinfo_status AS
SELECT status,
       code,
       reason,
       CASE WHEN status IN ('warning', 'critical') THEN hugeinfo_remedy() END AS remedy,
       huge_pages,
       shared_memory_type,
       in_use,
       page_size_bytes,
       segment_bytes,
       segment_pages,
       huge_page_size_bytes,
       required_huge_pages,
       pool_total_pages,
       pool_available_pages,
       shortfall_pages,
       fits_after_restart,
       recommended_nr_hugepages
FROM hugeinfo_status();

REVOKE ALL ON FUNCTION hugeinfo_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugeinfo_remedy() FROM PUBLIC;
REVOKE ALL ON hugeinfo_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugeinfo_remedy() TO pg_monitor;
GRANT SELECT ON hugeinfo_status TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_status() IS
'Whether huge pages back this server, whether a restart would get them, and what is wrong; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_remedy() IS
'The column remedy of hugeinfo_status; NULL if there is nothing to do.';
COMMENT ON VIEW hugeinfo_status IS
'Whether huge pages back this server, whether a restart would get them, what is wrong, and the lines to paste: one row, read from the kernel now.';
COMMENT ON COLUMN hugeinfo_status.huge_pages IS
'Setting huge_pages of the running server: off, on or try.';
COMMENT ON COLUMN hugeinfo_status.shared_memory_type IS
'Setting shared_memory_type of the running server; only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_status.in_use IS
'Whether the kernel backs the main shared memory segment with huge pages of a pool; transparent huge pages do not count.';
COMMENT ON COLUMN hugeinfo_status.page_size_bytes IS
'Bytes of a page that backs the main segment, huge or not.';
COMMENT ON COLUMN hugeinfo_status.segment_bytes IS
'Bytes of the main shared memory segment.';
COMMENT ON COLUMN hugeinfo_status.segment_pages IS
'Pages of page_size_bytes in the main segment.';
COMMENT ON COLUMN hugeinfo_status.huge_page_size_bytes IS
'Bytes of a huge page that the server asks for (huge_page_size, or the default size of the kernel); NULL if the kernel has none.';
COMMENT ON COLUMN hugeinfo_status.required_huge_pages IS
'Huge pages of huge_page_size_bytes that the main segment needs at the next start, rounded up, with settings that are pending a restart.';
COMMENT ON COLUMN hugeinfo_status.pool_total_pages IS
'Pages in the pool of huge_page_size_bytes, including surplus pages.';
COMMENT ON COLUMN hugeinfo_status.pool_available_pages IS
'Pages of that pool that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_status.shortfall_pages IS
'Pages to add to that pool so that a restart gets huge pages, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_status.fits_after_restart IS
'Whether a restart would get huge pages from the pool and within the cgroup limit on reservations, regardless of the setting huge_pages.';
COMMENT ON COLUMN hugeinfo_status.recommended_nr_hugepages IS
'Pages that the pool should have for the demands that this view reads; while this server is healthy, other servers that run on small pages are left out, so use hugeinfo_pools to size a pool.';
COMMENT ON COLUMN hugeinfo_status.status IS
'ok, unknown, warning or critical: the worst of the checks cgroup_fault_limit, huge_pages, restart and pool_size, and any critical check.';
COMMENT ON COLUMN hugeinfo_status.code IS
'Stable reason for programs, such as fell_back.';
COMMENT ON COLUMN hugeinfo_status.reason IS
'The worst finding as text or, if the status is ok, the pages of the segment and what a restart would get.';
COMMENT ON COLUMN hugeinfo_status.remedy IS
'Lines to paste, including the line for the next boot; NULL if there is nothing to do.';
