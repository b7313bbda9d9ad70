-- The contract of hugeinfo_status, on small and on huge pages. Columns that depend on the host are
-- compared with the kernel's files, read by pg_read_file, and only the result of the comparison is
-- printed.
\d hugeinfo_status

SELECT count(*) FROM hugeinfo_status;

-- settings
SELECT huge_pages = current_setting('huge_pages') AS huge_pages,
       shared_memory_type = current_setting('shared_memory_type') AS shared_memory_type,
       huge_page_size_bytes = coalesce(nullif(pg_size_bytes(current_setting('huge_page_size')), 0),
                                       1024 * substring(pg_read_file('/proc/meminfo') from 'Hugepagesize: *([0-9]+) kB')::bigint)
           AS huge_page_size_bytes
FROM hugeinfo_status;

-- the segment: PostgreSQL's own figure is rounded up to whole MB, the segment to whole pages
SELECT segment_bytes > pg_size_bytes(current_setting('shared_memory_size')) - 1024 * 1024
           AND segment_bytes < pg_size_bytes(current_setting('shared_memory_size')) + page_size_bytes AS segment_bytes,
       segment_bytes % page_size_bytes = 0 AS whole_pages,
       segment_pages * page_size_bytes = segment_bytes AS segment_pages
FROM hugeinfo_status;

-- whether huge pages back it, compared with smaps of this backend
WITH mapping AS (
    SELECT substring(entry from 'KernelPageSize: *([0-9]+) kB')::bigint * 1024 AS page_bytes,
           substring(entry from 'Size: *([0-9]+) kB')::bigint * 1024 AS bytes
    FROM regexp_split_to_table(pg_read_file('/proc/self/smaps'), '\n(?=[0-9a-f]+-[0-9a-f]+ )') AS entry
    WHERE entry ~ '^[0-9a-f]+-[0-9a-f]+ rw-s .*(/anon_hugepage|/dev/zero|/SYSV)'
    ORDER BY bytes DESC
    LIMIT 1
)
SELECT s.page_size_bytes = m.page_bytes AS page_size_bytes,
       s.segment_bytes = m.bytes AS segment_bytes,
       s.in_use = (m.page_bytes >= 2 * 1024 * 1024) AS in_use
FROM hugeinfo_status AS s, mapping AS m;

-- required pages: the server's own setting is one too many on an exact multiple
SELECT required_huge_pages = ceil(segment_bytes::numeric / huge_page_size_bytes) AS required_huge_pages,
       required_huge_pages - current_setting('shared_memory_size_in_huge_pages')::bigint IN (-1, 0) AS as_the_setting
FROM hugeinfo_status;

-- the pool, the same as in hugeinfo_pools; while this server is healthy, the status does not read
-- what other servers request
SELECT (s.pool_total_pages, s.pool_available_pages, s.shortfall_pages, s.fits_after_restart)
           IS NOT DISTINCT FROM
       (p.total_pages, p.available_pages, p.shortfall_pages, p.fits_after_restart) AS as_the_pool,
       s.recommended_nr_hugepages IS NOT DISTINCT FROM p.recommended_nr_hugepages
           OR s.status = 'ok' AND s.recommended_nr_hugepages < p.recommended_nr_hugepages
               AND EXISTS (SELECT FROM hugeinfo_instances AS i WHERE NOT i.is_this_server) AS recommended_nr_hugepages
FROM hugeinfo_status AS s
LEFT JOIN hugeinfo_pools AS p ON p.page_size_bytes = s.huge_page_size_bytes;

-- the verdict
SELECT status IN ('ok', 'warning', 'critical', 'unknown') AS status,
       reason <> '' AS reason,
       code ~ '^[a-z_]+$' AS code,
       (status = 'ok') <= (remedy IS NULL) AS no_remedy_if_healthy,
       (huge_pages = 'off') <= (code = 'turned_off' AND reason LIKE '%huge_pages = off%') AS turned_off,
       in_use <= (reason LIKE '%' || required_huge_pages || ' huge pages%' OR status <> 'ok') AS figures
FROM hugeinfo_status;

-- The remedy costs more than the rest, and is computed only if it is selected.
EXPLAIN (VERBOSE, COSTS OFF) SELECT status, reason FROM hugeinfo_status;

-- in any kind of query
SELECT count(*) FROM generate_series(1, 3), LATERAL (SELECT status FROM hugeinfo_status()) AS s;
SELECT (SELECT in_use FROM hugeinfo_status) IS NOT NULL AS as_a_subquery;
BEGIN TRANSACTION READ ONLY;
SELECT count(*) FROM hugeinfo_status;
COMMIT;
DECLARE c CURSOR WITH HOLD FOR SELECT in_use IS NOT NULL AS in_use FROM hugeinfo_status;
FETCH ALL FROM c;
CLOSE c;
