-- The contract of hugeinfo_host.
\d hugeinfo_host

CREATE FUNCTION pg_temp.bytes(name text) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT 1024 * substring(pg_read_file('/proc/meminfo', 0, 65536, true) from '(?n)^' || name || ': *([0-9]+) kB$')::bigint $$;
CREATE FUNCTION pg_temp.vm(name text) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT pg_read_file('/proc/sys/vm/' || name, 0, 4096, true)::bigint $$;
CREATE FUNCTION pg_temp.thp(name text) RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT substring(pg_read_file('/sys/kernel/mm/transparent_hugepage/' || name, 0, 4096, true) from '\[(.*)\]') $$;

SELECT count(*) FROM hugeinfo_host;

-- constant values are the same as in the kernel's files; NULL if there is no such file
SELECT kernel_release = rtrim(pg_read_file('/proc/sys/kernel/osrelease'), E'\n') AS kernel_release,
       machine IN ('x86_64', 'aarch64') AS machine,
       base_page_size_bytes = (SELECT page_size_bytes FROM hugeinfo_page_tables LIMIT 1) AS base_page_size_bytes,
       default_huge_page_size_bytes IS NOT DISTINCT FROM nullif(pg_temp.bytes('Hugepagesize'), 0) AS default_huge_page_size_bytes,
       memory_total_bytes = pg_temp.bytes('MemTotal') AS memory_total_bytes,
       swap_total_bytes = pg_temp.bytes('SwapTotal') AS swap_total_bytes,
       hugetlb_bytes IS NOT DISTINCT FROM pg_temp.bytes('Hugetlb') AS hugetlb_bytes,
       commit_limit_bytes IS NOT DISTINCT FROM pg_temp.bytes('CommitLimit') AS commit_limit_bytes
FROM hugeinfo_host;
SELECT overcommit_memory IS NOT DISTINCT FROM pg_temp.vm('overcommit_memory') AS overcommit_memory,
       overcommit_ratio IS NOT DISTINCT FROM pg_temp.vm('overcommit_ratio') AS overcommit_ratio,
       overcommit_bytes IS NOT DISTINCT FROM 1024 * nullif(pg_temp.vm('overcommit_kbytes'), 0) AS overcommit_bytes,
       swappiness IS NOT DISTINCT FROM pg_temp.vm('swappiness') AS swappiness,
       hugetlb_shm_group IS NOT DISTINCT FROM pg_temp.vm('hugetlb_shm_group') AS hugetlb_shm_group
FROM hugeinfo_host;
SELECT thp_enabled IS NOT DISTINCT FROM pg_temp.thp('enabled') AS thp_enabled,
       thp_defrag IS NOT DISTINCT FROM pg_temp.thp('defrag') AS thp_defrag,
       thp_shmem_enabled IS NOT DISTINCT FROM pg_temp.thp('shmem_enabled') AS thp_shmem_enabled
FROM hugeinfo_host;
SELECT numa_nodes IS NOT DISTINCT FROM
           (SELECT nullif(count(*), 0) FROM pg_ls_dir('/sys/devices/system/node', true, false) AS name WHERE name ~ '^node[0-9]+$') AS numa_nodes,
       processors =
           (SELECT sum(split_part(part, '-', 2)::int - split_part(part, '-', 1)::int + 1)
            FROM (SELECT CASE WHEN part LIKE '%-%' THEN part ELSE part || '-' || part END AS part
                  FROM regexp_split_to_table(rtrim(pg_read_file('/sys/devices/system/cpu/online'), E'\n'), ',') AS part) AS ranges) AS processors
FROM hugeinfo_host;

SELECT hugetlb_optimize_vmemmap IS NOT DISTINCT FROM pg_temp.vm('hugetlb_optimize_vmemmap')::int::boolean AS hugetlb_optimize_vmemmap
FROM hugeinfo_host;

-- values that change
SELECT memory_available_bytes BETWEEN 1 AND memory_total_bytes AS memory_available_bytes,
       swap_free_bytes BETWEEN 0 AND swap_total_bytes AS swap_free_bytes,
       page_table_bytes BETWEEN 1 AND memory_total_bytes AS page_table_bytes,
       hugetlb_bytes >= (SELECT coalesce(sum(total_pages * page_size_bytes), 0) FROM hugeinfo_pools) AS pools,
       vmemmap_saving_bytes >= (SELECT coalesce(sum(total_pages * (page_size_bytes / 64 - 4096)), 0) FROM hugeinfo_pools
           WHERE page_size_bytes / 64 > 4096) OR base_page_size_bytes > 4096 AS vmemmap_saving_bytes,
       committed_as_bytes > 0 AS committed_as_bytes
FROM hugeinfo_host;

-- the server's cgroup, if it is visible
SELECT (cgroup_memory_limit_bytes > 0) IS NOT FALSE AS cgroup_memory_limit_bytes,
       (cgroup_memory_used_bytes >= 0) IS NOT FALSE AS cgroup_memory_used_bytes,
       (cgroup_oom_kills >= 0) IS NOT FALSE AS cgroup_oom_kills,
       (cgroup_memory_used_bytes IS NOT NULL) = (s.status = 'ok') AS is_readable
FROM hugeinfo_host, hugeinfo_sources AS s
WHERE s.source = 'memory cgroup';
