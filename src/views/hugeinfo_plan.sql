-- One row for each huge page size, as in hugeinfo_pools().
ALTER FUNCTION hugeinfo_plan() ROWS 2;
ALTER FUNCTION hugeinfo_plan(jsonb) ROWS 2;
ALTER FUNCTION hugeinfo_plan(text) ROWS 2;

-- They run a program: superusers only until granted, not even pg_monitor.
REVOKE ALL ON FUNCTION hugeinfo_plan(), hugeinfo_plan(jsonb), hugeinfo_plan(text) FROM PUBLIC;

COMMENT ON FUNCTION hugeinfo_plan() IS
'What the server would need at its next start, with its configuration files as they are on disk now; the same as hugeinfo_plan(''{}'').';
COMMENT ON FUNCTION hugeinfo_plan(jsonb) IS
'What the server would need at its next start, with its configuration files as they are on disk now, its command line, and these settings instead, as in {"shared_buffers": "64GB", "max_connections": 500}. Exact: PostgreSQL itself computes it, in a child process that takes about 15 ms and at most 10 seconds. Takes the settings that change the size of shared memory, and huge_pages, huge_page_size and shared_memory_type. Does not touch the data directory; makes a scratch directory in the server''s TMPDIR or in /tmp, and removes it. A row for each huge page size of the kernel; if it has none, one row with page_size_bytes NULL. segment_bytes: main shared memory segment, exact up to 8 TiB, whole MB above. segment_percent_of_ram: the segment as a percentage of RAM (MemTotal in /proc/meminfo). is_requested: whether the planned server asks for pages of this size, or would ask with huge_pages = try and shared_memory_type = mmap; if it does not ask, a notice for each reason says why. required_pages, tail_waste_bytes, shortfall_pages, recommended_nr_hugepages, fits_after_restart, how_to_set: as in hugeinfo_pools, but for the planned segment. Other columns: as in hugeinfo_pools. For another host, add "host_ram": "256GB" and, unless it has the page sizes of this kernel, "host_huge_page_sizes": "2MB, 1GB" with its default first. Then segment_percent_of_ram and how_to_set are for that host, recommended_nr_hugepages is what this server alone needs, and columns about pools are NULL. NULL settings are an error.';
COMMENT ON FUNCTION hugeinfo_plan(text) IS
'hugeinfo_plan(jsonb) with the settings as text of at most 64 kB, for quoted literals. NULL is an error.';
