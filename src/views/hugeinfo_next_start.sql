-- One row for each huge page size, as in hugeinfo_pools().
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
'What the next start would need, and which settings wait for it. It uses the configuration files as they are on disk now, and the command line of the server. A row for each huge page size of the kernel, as hugeinfo_plan() gives them. Exact: PostgreSQL itself computes it, in a child process that takes about 15 ms. Error F0000: PostgreSQL would not start with these files; superusers see why.';
COMMENT ON COLUMN hugeinfo_next_start.waiting_settings IS
'Names of the settings that the files change at the next start, if they affect the size of shared memory or huge pages. Empty: none. Superusers find the values in pg_file_settings.';
COMMENT ON COLUMN hugeinfo_next_start.huge_pages IS
'Setting huge_pages that the next start will use: off, on or try.';
COMMENT ON COLUMN hugeinfo_next_start.shared_memory_type IS
'Setting shared_memory_type that the next start will use. Only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_next_start.segment_bytes IS
'Bytes of the main shared memory segment of the next start: exact up to 8 TiB, whole MB above.';
COMMENT ON COLUMN hugeinfo_next_start.segment_percent_of_ram IS
'The segment as a percentage of RAM (MemTotal in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_next_start.page_size_bytes IS
'Bytes of a page of this pool. From the names in /sys/kernel/mm/hugepages.';
COMMENT ON COLUMN hugeinfo_next_start.is_default IS
'Whether this is the default size, used where a program names none: Hugepagesize in /proc/meminfo.';
COMMENT ON COLUMN hugeinfo_next_start.is_used_by_server IS
'Whether the main shared memory segment is on pages of this pool now.';
COMMENT ON COLUMN hugeinfo_next_start.is_requested IS
'Whether the next start asks for pages of this size, or would ask with huge_pages = try and shared_memory_type = mmap. If the kernel lacks the size in huge_page_size: whether this is the default size.';
COMMENT ON COLUMN hugeinfo_next_start.required_pages IS
'Pages that the main segment of the next start takes, rounded up.';
COMMENT ON COLUMN hugeinfo_next_start.tail_waste_bytes IS
'Unused bytes in the last required page.';
COMMENT ON COLUMN hugeinfo_next_start.total_pages IS
'Pages in the pool, surplus pages included (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.free_pages IS
'Pages that nobody has touched yet, reserved or not (free_hugepages). Free pages can be reserved: see available_pages.';
COMMENT ON COLUMN hugeinfo_next_start.reserved_pages IS
'Pages that a mapping has reserved and not touched yet (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.surplus_pages IS
'Pages beyond the persistent ones; the kernel frees them when they are given back (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.overcommit_pages IS
'Surplus pages that the kernel may make on demand, if it finds the memory (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus what overcommit still allows.';
COMMENT ON COLUMN hugeinfo_next_start.committed_pages IS
'Pages in use or reserved: total minus free, plus reserved.';
COMMENT ON COLUMN hugeinfo_next_start.own_pages IS
'Pages in use or reserved by this server''s main segment.';
COMMENT ON COLUMN hugeinfo_next_start.others_pages IS
'Pages in use or reserved by all others on the host.';
COMMENT ON COLUMN hugeinfo_next_start.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them; 0 if there are enough. Pages that this server gives back count.';
COMMENT ON COLUMN hugeinfo_next_start.recommended_nr_hugepages IS
'Pages that this pool should have if the server is to use it: what this server needs, plus what others use or reserve. In the pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_next_start.fits_after_restart IS
'Whether a restart on pages of this size would get them: the pool has enough, and the control group''s limit on reservations allows it.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_bytes IS
'Bytes of huge pages of this size that may be touched: the lowest limit of the postmaster''s control group and those above it (v1 hugetlb.SIZE.limit_in_bytes, v2 hugetlb.SIZE.max), and the limit in the server''s environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi, _1Gi and so on. NULL: no limit.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_source IS
'Where cgroup_limit_bytes comes from: the directory of the control group, or the environment variable with the pod''s limit. NULL: no limit.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_used_bytes IS
'Bytes touched in the group with this limit; without a limit, in the server''s own group (v1 usage_in_bytes, v2 current).';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_limit_bytes IS
'Bytes of huge pages of this size that mmap may reserve: the lowest limit of the postmaster''s control group and those above it (v1 rsvd.limit_in_bytes, v2 rsvd.max; Linux 5.7). NULL: no limit.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_bytes IS
'Bytes reserved in the group with this limit; without a limit, in the server''s own group (v1 rsvd.usage_in_bytes, v2 rsvd.current).';
COMMENT ON COLUMN hugeinfo_next_start.how_to_set IS
'What to type to set the pool to recommended_nr_hugepages pages: now, and for the next boot.';
