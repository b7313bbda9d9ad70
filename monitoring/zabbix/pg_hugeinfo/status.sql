-- Made from monitoring/metrics.toml by: scripts/cargo run -p hugeinfo-monitoring
--
-- For Zabbix, one line of JSON with the rows of each query:
-- huge pages in use, settings, pools, host: a few small files
SELECT jsonb_build_object(
    'status', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT in_use::int,
               array_position(ARRAY['ok', 'unknown', 'warning', 'critical'], status) - 1 AS status_severity,
               page_size_bytes,
               segment_bytes,
               coalesce(huge_page_size_bytes, 0) AS huge_page_size_bytes,
               coalesce(required_huge_pages, 0) AS required_pages,
               coalesce(shortfall_pages, 0) AS shortfall_pages,
               coalesce(recommended_nr_hugepages, 0) AS recommended_pages
        FROM hugeinfo.hugeinfo_status
        WHERE in_use IS NOT NULL
        ORDER BY in_use
    ) AS q),
    'reason', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT code, 1 AS info
        FROM hugeinfo.hugeinfo_status
        ORDER BY code
    ) AS q),
    'restart', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT fits_after_restart::int AS after_restart
        FROM hugeinfo.hugeinfo_status
        WHERE fits_after_restart IS NOT NULL
        ORDER BY after_restart
    ) AS q),
    'setting', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT huge_pages, shared_memory_type, 1 AS info
        FROM hugeinfo.hugeinfo_status
        ORDER BY huge_pages
    ) AS q),
    'pool', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT CASE WHEN page_size_bytes >= 1 << 30 THEN (page_size_bytes >> 30) || 'GB'
                    WHEN page_size_bytes >= 1 << 20 THEN (page_size_bytes >> 20) || 'MB'
                    ELSE (page_size_bytes >> 10) || 'kB' END AS page_size,
               page_size_bytes,
               total_pages AS size_pages,
               free_pages,
               reserved_pages,
               surplus_pages,
               available_pages,
               own_pages,
               others_pages,
               required_pages,
               shortfall_pages,
               greatest(free_pages - reserved_pages - CASE WHEN s.huge_pages <> 'off' AND s.shared_memory_type = 'mmap'
                                                                AND s.huge_page_size_bytes = page_size_bytes AND NOT is_used_by_server
                                                           THEN required_pages ELSE 0 END, 0) AS idle_pages
        FROM hugeinfo.hugeinfo_pools,
             (SELECT huge_pages, shared_memory_type, huge_page_size_bytes FROM hugeinfo.hugeinfo_status) AS s
        WHERE required_pages IS NOT NULL
        ORDER BY page_size_bytes
    ) AS q),
    'pool_cgroup', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT CASE WHEN page_size_bytes >= 1 << 30 THEN (page_size_bytes >> 30) || 'GB'
                    WHEN page_size_bytes >= 1 << 20 THEN (page_size_bytes >> 20) || 'MB'
                    ELSE (page_size_bytes >> 10) || 'kB' END AS page_size,
               cgroup_limit_bytes AS limit_bytes,
               cgroup_used_bytes AS used_bytes
        FROM hugeinfo.hugeinfo_pools
        WHERE cgroup_limit_bytes IS NOT NULL AND cgroup_used_bytes IS NOT NULL
        ORDER BY page_size_bytes
    ) AS q),
    'host', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT h.memory_total_bytes,
               h.memory_available_bytes,
               h.page_table_bytes,
               coalesce(h.hugetlb_bytes, 0) AS hugetlb_bytes,
               v.hugetlb_allocation_failures_total,
               v.major_faults_total,
               v.oom_kills_total
        FROM hugeinfo.hugeinfo_host AS h,
             (SELECT coalesce(max(value) FILTER (WHERE name = 'htlb_buddy_alloc_fail'), 0) AS hugetlb_allocation_failures_total,
                     coalesce(max(value) FILTER (WHERE name = 'pgmajfault'), 0) AS major_faults_total,
                     coalesce(max(value) FILTER (WHERE name = 'oom_kill'), 0) AS oom_kills_total
              FROM hugeinfo.hugeinfo_vmstat) AS v
        WHERE h.memory_total_bytes IS NOT NULL AND h.memory_available_bytes IS NOT NULL AND h.page_table_bytes IS NOT NULL
        ORDER BY h.memory_total_bytes
    ) AS q),
    'host_thp', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT coalesce(thp_enabled, 'none') AS enabled, coalesce(thp_shmem_enabled, 'none') AS shmem, 1 AS info
        FROM hugeinfo.hugeinfo_host
        ORDER BY enabled
    ) AS q),
    'host_memory', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT kind, (microseconds / 1e6)::double precision AS stall_seconds_total
        FROM hugeinfo.hugeinfo_pressure,
             LATERAL (VALUES ('full', full_stall_microseconds), ('some', some_stall_microseconds)) AS stalls (kind, microseconds)
        WHERE scope = 'host' AND microseconds IS NOT NULL
        ORDER BY kind
    ) AS q),
    'cgroup', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT memory_used_bytes, oom_kills AS oom_kills_total
        FROM hugeinfo.hugeinfo_pressure
        WHERE scope = 'cgroup' AND memory_used_bytes IS NOT NULL AND oom_kills IS NOT NULL
        ORDER BY length(path) DESC
        LIMIT 1
    ) AS q),
    'cgroup_memory', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT memory_limit_bytes AS limit_bytes
        FROM hugeinfo.hugeinfo_pressure
        WHERE scope = 'cgroup' AND memory_limit_bytes IS NOT NULL
        ORDER BY memory_limit_bytes
        LIMIT 1
    ) AS q)
);
