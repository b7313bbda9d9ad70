-- The host has a pool for each huge page size; two on most machines, up to four on arm64.
ALTER FUNCTION hugeinfo_pools() ROWS 2 COST 10000;

CREATE VIEW hugeinfo_pools AS
SELECT page_size_bytes,
       is_default,
       is_used_by_server,
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
FROM hugeinfo_pools();

REVOKE ALL ON FUNCTION hugeinfo_pools() FROM PUBLIC;
REVOKE ALL ON hugeinfo_pools FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_pools() TO pg_monitor;
GRANT SELECT ON hugeinfo_pools TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_pools() IS
'Each huge page size of the kernel: its pool, and how many pages this server needs; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_pools IS
'Each huge page size of the kernel: its pool, and how many pages this server would need. Counts are pages of page_size_bytes, of the whole host. NULL: the kernel does not report it. No row: the kernel has no huge pages, or /sys cannot be read.';
COMMENT ON COLUMN hugeinfo_pools.page_size_bytes IS
'Bytes of a page of this pool. From the names in /sys/kernel/mm/hugepages.';
COMMENT ON COLUMN hugeinfo_pools.is_default IS
'Whether this is the default size, used where a program names none: Hugepagesize in /proc/meminfo.';
COMMENT ON COLUMN hugeinfo_pools.is_used_by_server IS
'Whether the main shared memory segment of this server is on pages of this pool.';
COMMENT ON COLUMN hugeinfo_pools.required_pages IS
'Pages that the main segment takes at the next start, rounded up: changed settings that wait for a restart count.';
COMMENT ON COLUMN hugeinfo_pools.tail_waste_bytes IS
'Unused bytes in the last required page. On huge pages exact to 1 MB only, from the setting shared_memory_size.';
COMMENT ON COLUMN hugeinfo_pools.total_pages IS
'Pages in the pool, surplus pages included (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.free_pages IS
'Pages that nobody has touched yet, reserved or not (free_hugepages). Free pages can be reserved: see available_pages.';
COMMENT ON COLUMN hugeinfo_pools.reserved_pages IS
'Pages that a mapping has reserved and not touched yet (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.surplus_pages IS
'Pages beyond the persistent ones; the kernel frees them when they are given back (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.overcommit_pages IS
'Surplus pages that the kernel may make on demand, if it finds the memory (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus what overcommit still allows.';
COMMENT ON COLUMN hugeinfo_pools.committed_pages IS
'Pages in use or reserved: total minus free, plus reserved.';
COMMENT ON COLUMN hugeinfo_pools.own_pages IS
'Pages in use or reserved by this server''s main segment.';
COMMENT ON COLUMN hugeinfo_pools.others_pages IS
'Pages in use or reserved by all others on the host.';
COMMENT ON COLUMN hugeinfo_pools.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them; 0 if there are enough. Pages that this server gives back count.';
COMMENT ON COLUMN hugeinfo_pools.recommended_nr_hugepages IS
'Pages that this pool should have if the server is to use it: what this server needs, plus what others use or reserve. In the pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_pools.fits_after_restart IS
'Whether a restart on pages of this size would get them: the pool has enough, and the control group''s limit on reservations allows it.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_bytes IS
'Bytes of huge pages of this size that may be touched: the lowest limit of the postmaster''s control group and those above it (v1 hugetlb.SIZE.limit_in_bytes, v2 hugetlb.SIZE.max), and the limit in the server''s environment variable PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi, _1Gi and so on. NULL: no limit.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_source IS
'Where cgroup_limit_bytes comes from: the directory of the control group, or the environment variable with the pod''s limit. NULL: no limit.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_used_bytes IS
'Bytes touched in the group with this limit; without a limit, in the server''s own group (v1 usage_in_bytes, v2 current).';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_limit_bytes IS
'Bytes of huge pages of this size that mmap may reserve: the lowest limit of the postmaster''s control group and those above it (v1 rsvd.limit_in_bytes, v2 rsvd.max; Linux 5.7). NULL: no limit.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_bytes IS
'Bytes reserved in the group with this limit; without a limit, in the server''s own group (v1 rsvd.usage_in_bytes, v2 rsvd.current).';
COMMENT ON COLUMN hugeinfo_pools.how_to_set IS
'What to type to set the pool to recommended_nr_hugepages pages: now, and for the next boot.';
