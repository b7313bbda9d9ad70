ALTER FUNCTION hugeinfo_status() ROWS 1;

CREATE VIEW hugeinfo_status AS
SELECT huge_pages,
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
       recommended_nr_hugepages,
       status,
       reason,
       CASE WHEN status IN ('warning', 'critical') THEN hugeinfo_remedy() END AS remedy
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
'What to type if hugeinfo_status finds something wrong: its column remedy. NULL: there is nothing to do.';
COMMENT ON VIEW hugeinfo_status IS
'Whether huge pages back this server, whether a restart would get them, what is wrong and what to type: one row, read from the kernel now. Walks no page tables; before Linux 6.11 those of the postmaster, up to a main segment on huge pages. NULL: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_status.huge_pages IS
'Setting huge_pages that the server runs with: off, on or try.';
COMMENT ON COLUMN hugeinfo_status.shared_memory_type IS
'Setting shared_memory_type that the server runs with. Only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_status.in_use IS
'Whether the kernel backs the main shared memory segment with huge pages (hugetlb; transparent huge pages do not count). Read from the mapping itself: PROCMAP_QUERY, else its name in /proc/PID/maps, KernelPageSize in smaps or kernelpagesize_kB in numa_maps.';
COMMENT ON COLUMN hugeinfo_status.page_size_bytes IS
'Bytes of a page that really backs the main segment, huge or not. Same source as in_use.';
COMMENT ON COLUMN hugeinfo_status.segment_bytes IS
'Bytes of the main shared memory segment, the sum of its mappings. From PROCMAP_QUERY or /proc/PID/maps.';
COMMENT ON COLUMN hugeinfo_status.segment_pages IS
'Pages of page_size_bytes in the main segment.';
COMMENT ON COLUMN hugeinfo_status.huge_page_size_bytes IS
'Bytes of a huge page that the server asks for: setting huge_page_size, else Hugepagesize in /proc/meminfo. NULL: the kernel has none.';
COMMENT ON COLUMN hugeinfo_status.required_huge_pages IS
'Huge pages of huge_page_size_bytes that the main segment takes at the next start, rounded up: changed settings that wait for a restart count.';
COMMENT ON COLUMN hugeinfo_status.pool_total_pages IS
'Pages in the pool of huge_page_size_bytes, surplus pages included. From nr_hugepages in /sys/kernel/mm/hugepages.';
COMMENT ON COLUMN hugeinfo_status.pool_available_pages IS
'Pages of that pool that a new mapping could get now: free minus reserved, plus what overcommit still allows.';
COMMENT ON COLUMN hugeinfo_status.shortfall_pages IS
'Pages to add to that pool so that a restart gets huge pages; 0 if the pool has enough. Pages that this server gives back count.';
COMMENT ON COLUMN hugeinfo_status.fits_after_restart IS
'Whether the main segment would get its huge pages after a restart: the pool has enough, and the control group''s limit on reservations allows it. The setting huge_pages does not matter here.';
COMMENT ON COLUMN hugeinfo_status.recommended_nr_hugepages IS
'Pages that the pool should have, neither too few nor too many: what this server needs, plus what others use or reserve. In a pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_status.status IS
'ok, warning, critical, or unknown (a source that is needed is missing or may not be read): the worst of four cheap checks, cgroup_fault_limit, huge_pages, restart and pool_size. It does not look at the next boot: hugeinfo_checks does. Muted checks do not count (setting pg_hugeinfo.muted_checks).';
COMMENT ON COLUMN hugeinfo_status.reason IS
'The worst finding with its figures. If all is well: all findings, and what muted checks would say.';
COMMENT ON COLUMN hugeinfo_status.remedy IS
'What to type. NULL: there is nothing to do.';
