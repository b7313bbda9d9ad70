-- Made from monitoring/metrics.toml by: scripts/cargo run -p hugeinfo-monitoring
--
-- For Zabbix, one line of JSON with the rows of each query:
-- checks and processes: two small files for each process of the server
SELECT jsonb_build_object(
    'host_instances', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT a.in_use, count(i.pid) AS running
        FROM unnest(ARRAY['false', 'true', 'unknown']) AS a (in_use)
        LEFT JOIN hugeinfo.hugeinfo_instances AS i ON coalesce(i.in_use::text, 'unknown') = a.in_use
        GROUP BY a.in_use
        ORDER BY a.in_use
    ) AS q),
    'check', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT name, is_muted::text AS muted, severity
        FROM hugeinfo.hugeinfo_checks
    ) AS q),
    'processes', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT coalesce(backend_type, 'unknown') AS backend_type,
               count(*) AS running,
               coalesce(sum(page_table_bytes), 0)::bigint AS page_table_bytes,
               coalesce(max(page_table_bytes), 0) AS page_table_max_bytes,
               coalesce(sum(rss_anon_bytes), 0)::bigint AS rss_anon_bytes,
               coalesce(sum(swap_bytes), 0)::bigint AS swap_bytes,
               coalesce(sum(minor_faults), 0)::bigint AS minor_faults,
               coalesce(sum(major_faults), 0)::bigint AS major_faults
        FROM hugeinfo.hugeinfo_backends
        GROUP BY 1
        ORDER BY 1
    ) AS q),
    'page_tables', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT CASE WHEN page_size_bytes >= 1 << 30 THEN (page_size_bytes >> 30) || 'GB'
                    WHEN page_size_bytes >= 1 << 20 THEN (page_size_bytes >> 20) || 'MB'
                    ELSE (page_size_bytes >> 10) || 'kB' END AS page_size,
               max_connections_bytes,
               coalesce(saving_bytes, 0) AS saving_bytes
        FROM hugeinfo.hugeinfo_page_tables
        WHERE max_connections_bytes IS NOT NULL
        ORDER BY page_size_bytes
    ) AS q)
);
