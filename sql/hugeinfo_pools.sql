-- The contract of hugeinfo_pools. As for hugeinfo_status, figures are compared with the kernel's
-- files and not printed.
\d hugeinfo_pools

-- a row for each directory, smallest page first, one of them the default
SELECT (SELECT array_agg(page_size_bytes) FROM hugeinfo_pools)
     = (SELECT array_agg(kb * 1024 ORDER BY kb)
        FROM pg_ls_dir('/sys/kernel/mm/hugepages') AS name,
             CAST(substring(name from 'hugepages-([0-9]+)kB') AS bigint) AS kb) AS every_size,
       (SELECT count(*) FROM hugeinfo_pools WHERE is_default) AS defaults,
       (SELECT page_size_bytes FROM hugeinfo_pools WHERE is_default)
     = 1024 * substring(pg_read_file('/proc/meminfo') from 'Hugepagesize: *([0-9]+) kB')::bigint AS is_default;

-- the kernel's counters
CREATE FUNCTION pg_temp.counter(page_size_bytes bigint, name text) RETURNS bigint LANGUAGE sql AS
$$ SELECT pg_read_file(format('/sys/kernel/mm/hugepages/hugepages-%skB/%s', page_size_bytes / 1024, name))::bigint $$;

SELECT bool_and(total_pages = pg_temp.counter(page_size_bytes, 'nr_hugepages')) AS total_pages,
       bool_and(free_pages = pg_temp.counter(page_size_bytes, 'free_hugepages')) AS free_pages,
       bool_and(reserved_pages = pg_temp.counter(page_size_bytes, 'resv_hugepages')) AS reserved_pages,
       bool_and(surplus_pages = pg_temp.counter(page_size_bytes, 'surplus_hugepages')) AS surplus_pages,
       bool_and(overcommit_pages = pg_temp.counter(page_size_bytes, 'nr_overcommit_hugepages')) AS overcommit_pages
FROM hugeinfo_pools;

-- columns that are computed from the counters
SELECT bool_and(available_pages = free_pages - reserved_pages + greatest(0, overcommit_pages - surplus_pages)) AS available_pages,
       bool_and(committed_pages = total_pages - free_pages + reserved_pages) AS committed_pages,
       bool_and(own_pages + others_pages = committed_pages) AS others_pages,
       bool_and(recommended_nr_hugepages >= others_pages
                + CASE current_setting('huge_pages') WHEN 'off' THEN 0 ELSE required_pages END) AS recommended_nr_hugepages,
       bool_and(shortfall_pages BETWEEN 0 AND required_pages) AS shortfall_pages,
       bool_and(fits_after_restart <= (shortfall_pages = 0)) AS fits_after_restart
FROM hugeinfo_pools;

-- pages of this server: the segment is rounded up to whole pages, and PostgreSQL's own figure to
-- whole MB
SELECT bool_and(p.is_used_by_server = (p.page_size_bytes = s.page_size_bytes)) AS is_used_by_server,
       bool_and(p.own_pages = CASE WHEN p.is_used_by_server THEN s.segment_pages ELSE 0 END) AS own_pages,
       bool_and(p.required_pages = ceil(need::numeric / p.page_size_bytes)) AS required_pages,
       bool_and(p.required_pages = s.segment_pages OR NOT p.is_used_by_server) AS as_mapped,
       bool_and(p.tail_waste_bytes = p.required_pages * p.page_size_bytes - need) AS tail_waste_bytes
FROM hugeinfo_pools AS p, hugeinfo_status AS s,
     LATERAL least(s.segment_bytes, pg_size_bytes(current_setting('shared_memory_size'))) AS need;

-- a limit is in the same row as its use
SELECT bool_and(cgroup_limit_bytes IS NULL OR cgroup_used_bytes <= cgroup_limit_bytes) AS cgroup_limit_bytes,
       bool_and(cgroup_reserved_limit_bytes IS NULL OR cgroup_reserved_bytes <= cgroup_reserved_limit_bytes)
           AS cgroup_reserved_limit_bytes
FROM hugeinfo_pools;

-- how_to_set has the number of pages and, for sizes other than the default, the file and the kernel
-- parameters
SELECT bool_and(how_to_set LIKE '%' || recommended_nr_hugepages || '%') IS NOT FALSE AS pages,
       bool_and(is_default = (how_to_set LIKE '%vm.nr\_hugepages%')) IS NOT FALSE AS by_sysctl,
       bool_and(is_default <> (how_to_set LIKE '%hugepagesz=%')) IS NOT FALSE AS by_command_line
FROM hugeinfo_pools
WHERE how_to_set !~ '^# ';
