-- The contract of hugeinfo_sources. Sources differ between kernels, so statuses are compared with
-- the files that the server itself can read.
\d hugeinfo_sources

SELECT source, count(*) AS tried FROM hugeinfo_sources GROUP BY source ORDER BY source COLLATE "C";
SELECT count(DISTINCT (source, path)) = count(*) AS no_row_twice,
       bool_and(status IN ('ok', 'denied', 'missing', 'failed')) AS status,
       bool_and((status = 'ok') = (reason IS NULL)) AS reason
FROM hugeinfo_sources;

-- sources that every server has
SELECT source, status
FROM hugeinfo_sources
WHERE source IN ('maps', 'status', 'stat', 'cmdline', 'exe', 'cwd', 'mountinfo', 'meminfo', 'vmstat', 'processors', 'vm settings')
GROUP BY source, status
ORDER BY source COLLATE "C";

-- sources of two processes and of the host
SELECT bool_and(path LIKE '/proc/self/%' OR path LIKE '/proc/' || (SELECT pid FROM hugeinfo_backends WHERE backend_type = 'postmaster') || '/%')
           FILTER (WHERE path ~ '^/proc/([0-9]|self)') AS processes,
       bool_and(path ~ '^/(proc|sys|etc)/') AS below,
       bool_and(path = rtrim(path, '/')) AS paths
FROM hugeinfo_sources
WHERE source NOT IN ('hugetlb cgroup', 'memory cgroup', 'mountinfo of process 1');

-- ok: the server's own functions can read or list it
SELECT s.source
FROM hugeinfo_sources AS s
WHERE s.source IN ('smaps', 'smaps_rollup', 'numa_maps', 'oom_score', 'oom_score_adj', 'cgroup', 'uid_map', 'children', 'buddyinfo', 'kernel command line')
  AND (s.status = 'ok') IS DISTINCT FROM (pg_read_file(s.path, 0, 1, true) IS NOT NULL);
SELECT s.source
FROM hugeinfo_sources AS s
WHERE s.source IN ('pools', 'transparent huge pages', 'nodes')
  AND (s.status = 'ok') IS DISTINCT FROM EXISTS (SELECT FROM pg_ls_dir(s.path, true, false));

-- one of these has the huge page size in use
SELECT (SELECT page_size_bytes IS NOT NULL FROM hugeinfo_status)
     = bool_or(status = 'ok') AS page_size_bytes
FROM hugeinfo_sources
WHERE source IN ('PROCMAP_QUERY', 'smaps', 'numa_maps');
