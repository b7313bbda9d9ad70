-- The contract of hugeinfo_numa. On a kernel without NUMA support, there is no row, and nothing to
-- compare.
\d hugeinfo_numa

-- a row for each node and page size
SELECT count(*) = (SELECT count(*) FROM pg_ls_dir('/sys/devices/system/node', true, false) AS name WHERE name ~ '^node[0-9]+$')
                * (SELECT count(*) + 1 FROM hugeinfo_pools) AS rows,
       count(DISTINCT (numa_node, page_size_bytes)) = count(*) AS no_row_twice
FROM hugeinfo_numa;
SELECT (SELECT array_agg((numa_node, page_size_bytes)) FROM hugeinfo_numa)
     IS NOT DISTINCT FROM (SELECT array_agg((numa_node, page_size_bytes) ORDER BY numa_node, page_size_bytes) FROM hugeinfo_numa) AS in_order;

-- the node's files
SELECT count(*) AS differences
FROM hugeinfo_numa AS n,
     LATERAL (SELECT '/sys/devices/system/node/node' || numa_node AS dir) AS d,
     LATERAL (SELECT format('%s/hugepages/hugepages-%skB/', dir, page_size_bytes / 1024) AS pool) AS p
WHERE n.total_pages IS DISTINCT FROM pg_read_file(pool || 'nr_hugepages', 0, 100, true)::bigint
   OR (n.free_pages BETWEEN 0 AND n.total_pages) IS NOT DISTINCT FROM false
   OR n.surplus_pages IS DISTINCT FROM pg_read_file(pool || 'surplus_hugepages', 0, 100, true)::bigint;

-- the sum over the nodes is the pool
SELECT p.page_size_bytes
FROM hugeinfo_pools AS p
JOIN hugeinfo_numa AS n USING (page_size_bytes)
GROUP BY p.page_size_bytes, p.total_pages, p.surplus_pages
HAVING sum(n.total_pages) <> p.total_pages OR sum(n.surplus_pages) <> p.surplus_pages;

-- the segment: only on its page size, and never more than its pages
SELECT count(*) FILTER (WHERE n.is_used_by_server <> (n.page_size_bytes = s.page_size_bytes)) AS is_used_by_server,
       count(*) FILTER (WHERE n.touched_segment_pages > 0 AND NOT n.is_used_by_server) AS elsewhere,
       count(*) FILTER (WHERE n.total_pages IS NULL AND n.page_size_bytes > b.page_size_bytes AND m.memory_total_bytes > 0) AS without_pool,
       bool_and(n.total_pages IS NULL OR n.page_size_bytes > b.page_size_bytes) AS small_pages_have_none
FROM hugeinfo_numa AS n
JOIN hugeinfo_numa AS m ON m.numa_node = n.numa_node AND m.memory_total_bytes IS NOT NULL,
     hugeinfo_status AS s, (SELECT min(page_size_bytes) AS page_size_bytes FROM hugeinfo_page_tables) AS b;
SELECT (SELECT coalesce(sum(touched_segment_pages) BETWEEN 1 AND s.segment_pages, false) FROM hugeinfo_numa)
     = (pg_read_file('/proc/self/numa_maps', 0, 1, true) IS NOT NULL) AS touched_segment_pages
FROM hugeinfo_status AS s;

-- whole nodes: only in the row of small pages, so that sums count each node once
SELECT count(*) FILTER (WHERE (n.page_size_bytes = b.page_size_bytes) <> (n.memory_total_bytes IS NOT NULL)) AS memory_total_bytes,
       count(*) FILTER (WHERE num_nulls(is_allowed, processors, memory_total_bytes, memory_free_bytes) NOT IN (0, 4)) AS incomplete,
       -- a server that is not bound is allowed to use all nodes
       count(*) FILTER (WHERE NOT is_allowed AND memory_total_bytes > 0) AS is_allowed
FROM hugeinfo_numa AS n, (SELECT min(page_size_bytes) AS page_size_bytes FROM hugeinfo_page_tables) AS b;
SELECT n.numa_node
FROM hugeinfo_numa AS n,
     LATERAL (SELECT '/sys/devices/system/node/node' || numa_node AS dir) AS d
WHERE n.memory_total_bytes IS NOT NULL
  AND (n.memory_total_bytes IS DISTINCT FROM 1024 * substring(pg_read_file(dir || '/meminfo') from 'MemTotal: *([0-9]+) kB')::bigint
   OR (n.memory_free_bytes BETWEEN 0 AND n.memory_total_bytes) IS NOT TRUE
   OR n.processors IS DISTINCT FROM (
        SELECT coalesce(sum(coalesce(nullif(split_part(part, '-', 2), ''), part)::int - split_part(part, '-', 1)::int + 1), 0)
        FROM regexp_split_to_table(rtrim(pg_read_file(dir || '/cpulist'), E'\n'), ',') AS part WHERE part <> ''));
