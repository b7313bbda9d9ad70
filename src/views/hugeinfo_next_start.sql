-- One for each huge page size, as hugeinfo_pools().
ALTER FUNCTION hugeinfo_next_start() ROWS 2;

CREATE VIEW hugeinfo_next_start AS
SELECT waiting_settings,
       huge_pages,
       shared_memory_type,
       segment_bytes,
       segment_percent_of_ram,
       page_size_bytes,
       is_default,
       is_used_by_server,
       is_requested,
       required_pages,
       tail_waste_bytes,
       total_pages,
       free_pages,
       reserved_pages,
       surplus_pages,
       overcommit_pages,
       available_pages,
       committed_pages,
       own_pages,
       others_pages,
       shortfall_pages,
       recommended_nr_hugepages,
       fits_after_restart,
       cgroup_limit_bytes,
       cgroup_limit_source,
       cgroup_used_bytes,
       cgroup_reserved_limit_bytes,
       cgroup_reserved_bytes,
       how_to_set
FROM hugeinfo_next_start();

REVOKE ALL ON FUNCTION hugeinfo_next_start() FROM PUBLIC;
REVOKE ALL ON hugeinfo_next_start FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_next_start() TO pg_monitor;
GRANT SELECT ON hugeinfo_next_start TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_next_start() IS
'What the next start would need with the configuration files as they are; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_next_start IS
'What the next start would need with the configuration files as they are on disk now and the command line of the server, and which settings wait for it: the rows of hugeinfo_plan(), a row for each huge page size of the kernel. Exact: PostgreSQL itself computes it, in a child process that takes some 15 ms. Error F0000: PostgreSQL would not start with these files; superusers are told why.';
COMMENT ON COLUMN hugeinfo_next_start.waiting_settings IS
'Names of the settings that the files have changed for the next start, of those that change the size of shared memory or decide over huge pages. Empty: none waits. Their values are for superusers: pg_file_settings.';
COMMENT ON COLUMN hugeinfo_next_start.huge_pages IS
'Setting huge_pages that the next start will use: off, on or try.';
COMMENT ON COLUMN hugeinfo_next_start.shared_memory_type IS
'Setting shared_memory_type that the next start will use. Only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_next_start.segment_bytes IS
'Bytes of the main shared memory segment of the next start, exact up to 8 TiB, in whole MB beyond.';
COMMENT ON COLUMN hugeinfo_next_start.segment_percent_of_ram IS
'Share of the segment in MemTotal of /proc/meminfo.';
COMMENT ON COLUMN hugeinfo_next_start.page_size_bytes IS
'Bytes of a page of this pool. From the names in /sys/kernel/mm/hugepages.';
COMMENT ON COLUMN hugeinfo_next_start.is_default IS
'Whether this is the size that is used where none is asked for: Hugepagesize in /proc/meminfo.';
COMMENT ON COLUMN hugeinfo_next_start.is_used_by_server IS
'Whether the main shared memory segment lies in this pool now.';
COMMENT ON COLUMN hugeinfo_next_start.is_requested IS
'Whether the next start asks for pages of this size, or would with huge_pages = try and shared_memory_type = mmap. If the kernel lacks the size that huge_page_size names: whether this is its default.';
COMMENT ON COLUMN hugeinfo_next_start.required_pages IS
'Pages that the segment of the next start takes, rounded up.';
COMMENT ON COLUMN hugeinfo_next_start.tail_waste_bytes IS
'Bytes of the last required page that stay unused.';
COMMENT ON COLUMN hugeinfo_next_start.total_pages IS
'Pages that exist, surplus ones included (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.free_pages IS
'Pages that nobody has touched yet, promised or not (free_hugepages). Free is not available.';
COMMENT ON COLUMN hugeinfo_next_start.reserved_pages IS
'Pages that are promised to a mapping and not touched yet (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.surplus_pages IS
'Pages beyond the persistent ones, which go when they are given back (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.overcommit_pages IS
'Surplus pages that the kernel may make on demand, if it finds the memory (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.available_pages IS
'Pages that a new mapping could have now: free, less reserved, plus what overcommit still allows.';
COMMENT ON COLUMN hugeinfo_next_start.committed_pages IS
'Pages in use or promised: total, less free, plus reserved.';
COMMENT ON COLUMN hugeinfo_next_start.own_pages IS
'Pages committed to this server''s main segment.';
COMMENT ON COLUMN hugeinfo_next_start.others_pages IS
'Pages committed to all others on the host.';
COMMENT ON COLUMN hugeinfo_next_start.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them; 0 if there are enough, counting those that this server gives back.';
COMMENT ON COLUMN hugeinfo_next_start.recommended_nr_hugepages IS
'Pages that this pool should have if the server is to use it: what others have committed plus what this server needs.';
COMMENT ON COLUMN hugeinfo_next_start.fits_after_restart IS
'Whether a restart on pages of this size would get them: from the pool, and under the control group''s limit on reservations.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_bytes IS
'Bytes of huge pages of this size that may be touched: the lowest limit of the postmaster''s control group and those above it (v1 hugetlb.SIZE.limit_in_bytes, v2 hugetlb.SIZE.max). NULL: unlimited, or none.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_source IS
'Where cgroup_limit_bytes comes from: the directory of the control group, or the environment variable that told the server its pod''s limit. NULL: there is no limit.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_used_bytes IS
'Bytes touched in the group that has this limit, or in the server''s own group where there is none (v1 usage_in_bytes, v2 current).';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_limit_bytes IS
'Bytes of huge pages of this size that may be reserved by mmap: the lowest limit, as above (v1 rsvd.limit_in_bytes, v2 rsvd.max; Linux 5.7). NULL: unlimited, or none.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_bytes IS
'Bytes reserved in the group that has this limit, or in the server''s own group where there is none (v1 rsvd.usage_in_bytes, v2 rsvd.current).';
COMMENT ON COLUMN hugeinfo_next_start.how_to_set IS
'What to type for recommended_nr_hugepages pages: now, and for the next boot.';
