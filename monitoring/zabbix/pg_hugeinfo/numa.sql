-- Made from monitoring/metrics.toml by: scripts/cargo run -p hugeinfo-monitoring
--
-- For Zabbix, one line of JSON with the rows of each query:
-- NUMA nodes: walks the page tables of one process
SELECT jsonb_build_object(
    'numa', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT numa_node::text AS numa_node,
               CASE WHEN page_size_bytes >= 1 << 30 THEN (page_size_bytes >> 30) || 'GB'
                    WHEN page_size_bytes >= 1 << 20 THEN (page_size_bytes >> 20) || 'MB'
                    ELSE (page_size_bytes >> 10) || 'kB' END AS page_size,
               coalesce(total_pages, 0) AS pool_pages,
               touched_segment_pages AS segment_pages
        FROM hugeinfo.hugeinfo_numa AS n
        WHERE touched_segment_pages IS NOT NULL
        ORDER BY n.numa_node, page_size_bytes
    ) AS q)
);
