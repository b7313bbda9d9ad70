-- One row for each huge page size, as in hugeinfo_pools().
ALTER FUNCTION hugeinfo_plan(text) ROWS 2;

-- With arguments: another function in this schema could match a call without any.
CREATE VIEW hugeinfo_plan AS
SELECT segment_bytes,
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
FROM hugeinfo_plan(text '');

REVOKE ALL ON hugeinfo_plan FROM PUBLIC;

-- This function runs a program, so only superusers can call it until granted, not pg_monitor.
REVOKE ALL ON FUNCTION hugeinfo_plan(text) FROM PUBLIC;

COMMENT ON FUNCTION hugeinfo_plan(text) IS
'Huge pages that the next start needs with the configuration files on disk, the command line, and these settings: name=value pairs, as in shared_buffers=64GB max_connections=500, or a JSON object; "host_ram" and "host_huge_page_sizes" plan for another host; NULL raises an error.';
COMMENT ON VIEW hugeinfo_plan IS
'Huge pages that the next start needs with the configuration files on disk: a row for each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_plan.segment_bytes IS
'Bytes of the main shared memory segment of the next start, exact up to 8 TiB and in whole MB above.';
COMMENT ON COLUMN hugeinfo_plan.segment_percent_of_ram IS
'The segment as a percentage of RAM (MemTotal in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_plan.page_size_bytes IS
'Bytes of a page of this pool (/sys/kernel/mm/hugepages).';
COMMENT ON COLUMN hugeinfo_plan.is_default IS
'Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_plan.is_used_by_server IS
'Whether the main shared memory segment is on pages of this pool now.';
COMMENT ON COLUMN hugeinfo_plan.is_requested IS
'Whether the next start asks for pages of this size, or would ask with huge_pages = try and shared_memory_type = mmap.';
COMMENT ON COLUMN hugeinfo_plan.required_pages IS
'Pages that the main segment of the next start needs, rounded up.';
COMMENT ON COLUMN hugeinfo_plan.tail_waste_bytes IS
'Unused bytes in the last required page.';
COMMENT ON COLUMN hugeinfo_plan.total_pages IS
'Pages in the pool, including surplus pages (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.free_pages IS
'Pages that no process has faulted in, reserved or not (free_hugepages); see available_pages.';
COMMENT ON COLUMN hugeinfo_plan.reserved_pages IS
'Pages that a mapping has reserved and no process has faulted in (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.surplus_pages IS
'Pages beyond the persistent ones, which the kernel frees when they are released (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.overcommit_pages IS
'Surplus pages that the kernel is allowed to allocate on demand (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_plan.committed_pages IS
'Pages in use or reserved: total minus free, plus reserved.';
COMMENT ON COLUMN hugeinfo_plan.own_pages IS
'Pages that the main segment of this server has in use or reserved.';
COMMENT ON COLUMN hugeinfo_plan.others_pages IS
'Pages that other processes of the host have in use or reserved.';
COMMENT ON COLUMN hugeinfo_plan.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_plan.recommended_nr_hugepages IS
'Pages that this pool should have: the sum of all known demands, and idle pages that a hidden server could need.';
COMMENT ON COLUMN hugeinfo_plan.fits_after_restart IS
'Whether a restart on pages of this size would get them from the pool and within the cgroup limit on reservations.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that can be faulted in, from the server''s cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_limit_source IS
'Source of cgroup_limit_bytes: the directory of the cgroup, or the environment variable with the limit of the pod.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_used_bytes IS
'Bytes faulted in by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_reserved_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that the server''s cgroups can reserve (Linux 5.7); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_reserved_bytes IS
'Bytes reserved by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_plan.how_to_set IS
'Lines to paste into a root shell that set the pool to recommended_nr_hugepages, now and at boot.';
