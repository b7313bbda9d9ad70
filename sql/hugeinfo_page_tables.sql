-- The contract of hugeinfo_page_tables.
\d hugeinfo_page_tables

-- small pages first, then each pool
SELECT (SELECT array_agg(page_size_bytes) FROM hugeinfo_page_tables)
     = (SELECT (SELECT min(page_size_bytes) FROM hugeinfo_mappings WHERE kind = 'executable') || array_agg(page_size_bytes)
        FROM hugeinfo_pools) AS sizes,
       (SELECT count(*) FROM hugeinfo_page_tables WHERE is_used_by_server) AS used;

-- 8 bytes for each page
SELECT bool_and(t.one_backend_bytes = 8 * ceil(need::numeric / t.page_size_bytes)) AS one_backend_bytes,
       bool_and(t.present_backends_bytes % t.one_backend_bytes = 0
                AND t.present_backends_bytes / t.one_backend_bytes >= 4) AS present_backends_bytes,
       bool_and(t.max_connections_bytes = t.one_backend_bytes * current_setting('max_connections')::bigint) AS max_connections_bytes,
       bool_and(t.saving_bytes < t.now_bytes
                AND sign(t.saving_bytes) = sign(t.page_size_bytes - s.page_size_bytes)) AS saving_bytes
FROM hugeinfo_page_tables AS t, hugeinfo_status AS s,
     LATERAL least(s.segment_bytes, pg_size_bytes(current_setting('shared_memory_size'))) AS need;
