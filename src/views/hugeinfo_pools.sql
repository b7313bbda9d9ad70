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
'Each huge page size of the kernel: its pool on this host, its demands, and the limits of the server''s cgroups.';
COMMENT ON COLUMN hugeinfo_pools.page_size_bytes IS
'Bytes of a page of this pool (/sys/kernel/mm/hugepages).';
COMMENT ON COLUMN hugeinfo_pools.is_default IS
'Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_pools.is_used_by_server IS
'Whether the main shared memory segment is on pages of this pool now.';
COMMENT ON COLUMN hugeinfo_pools.required_pages IS
'Pages that the main segment needs at the next start, rounded up, with settings that are pending a restart.';
COMMENT ON COLUMN hugeinfo_pools.tail_waste_bytes IS
'Unused bytes in the last required page; on huge pages exact to 1 MB.';
COMMENT ON COLUMN hugeinfo_pools.total_pages IS
'Pages in the pool, including surplus pages (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.free_pages IS
'Pages that no process has faulted in, reserved or not (free_hugepages); see available_pages.';
COMMENT ON COLUMN hugeinfo_pools.reserved_pages IS
'Pages that a mapping has reserved and no process has faulted in (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.surplus_pages IS
'Pages beyond the persistent ones, which the kernel frees when they are released (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.overcommit_pages IS
'Surplus pages that the kernel is allowed to allocate on demand (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_pools.committed_pages IS
'Pages in use or reserved: total minus free, plus reserved.';
COMMENT ON COLUMN hugeinfo_pools.own_pages IS
'Pages that the main segment of this server has in use or reserved.';
COMMENT ON COLUMN hugeinfo_pools.others_pages IS
'Pages that other processes of the host have in use or reserved.';
COMMENT ON COLUMN hugeinfo_pools.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_pools.recommended_nr_hugepages IS
'Pages that this pool should have: the sum of all known demands, and idle pages that a hidden server could need.';
COMMENT ON COLUMN hugeinfo_pools.fits_after_restart IS
'Whether a restart on pages of this size would get them from the pool and within the cgroup limit on reservations.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that can be faulted in, from the server''s cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_source IS
'Source of cgroup_limit_bytes: the directory of the cgroup, or the environment variable with the limit of the pod.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_used_bytes IS
'Bytes faulted in by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that the server''s cgroups can reserve (Linux 5.7); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_bytes IS
'Bytes reserved by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_pools.how_to_set IS
'Lines to paste into a root shell that set the pool to recommended_nr_hugepages, now and at boot.';
