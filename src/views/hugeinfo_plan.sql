-- One for each huge page size, as hugeinfo_pools().
ALTER FUNCTION hugeinfo_plan() ROWS 2;
ALTER FUNCTION hugeinfo_plan(jsonb) ROWS 2;
ALTER FUNCTION hugeinfo_plan(text) ROWS 2;

-- They run a program: for superusers until granted, also with rights to monitor.
REVOKE ALL ON FUNCTION hugeinfo_plan(), hugeinfo_plan(jsonb), hugeinfo_plan(text) FROM PUBLIC;

COMMENT ON FUNCTION hugeinfo_plan() IS
'What the server would need at its next start with its configuration files as they are on disk now; the same as hugeinfo_plan(''{}'').';
COMMENT ON FUNCTION hugeinfo_plan(jsonb) IS
'What the server would need at its next start: with its configuration files as they are on disk now and its command line, changed by settings, as in {"shared_buffers": "64GB", "max_connections": 500}. Exact: PostgreSQL itself computes it, in a child process that takes some 15 ms and ends after 10 seconds at the latest. Takes the settings that change the size of shared memory, and huge_pages, huge_page_size and shared_memory_type. The data directory is not touched; a scratch directory is made in TMPDIR of the server, or /tmp, and removed. A row for each huge page size of the kernel; one row with page_size_bytes NULL where it has none. segment_bytes: main shared memory segment, exact up to 8 TiB, in whole MB beyond. segment_percent_of_ram: its share of MemTotal in /proc/meminfo. is_requested: whether the planned server asks for pages of this size, or would with huge_pages = try and shared_memory_type = mmap; a notice says so where it does not. required_pages, tail_waste_bytes, shortfall_pages, recommended_nr_hugepages, fits_after_restart, how_to_set: as in hugeinfo_pools, for the planned segment. The others are those of hugeinfo_pools. For another host: "host_ram": "256GB", and "host_huge_page_sizes": "2MB, 1GB" with its default first (else those of this kernel), beside the settings. segment_percent_of_ram and how_to_set are for that host then, recommended_nr_hugepages is what this server alone needs, and what tells of pools is NULL.';
COMMENT ON FUNCTION hugeinfo_plan(text) IS
'hugeinfo_plan(jsonb) of settings as text, of at most 64 kB: what a quoted literal goes to.';
