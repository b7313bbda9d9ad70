-- The contract of hugeinfo_memory(pid) and its view.
\d hugeinfo_memory
SELECT pg_get_function_result('hugeinfo_memory(int)'::regprocedure);

SELECT pid = pg_backend_pid() AS pid,
       pss_bytes <= rss_bytes AS pss_bytes,
       abs(pss_bytes - (pss_anon_bytes + pss_file_bytes + pss_shmem_bytes)) < 16 * 1024 AS parts,
       uss_bytes <= pss_bytes AS uss_bytes,
       swap_pss_bytes >= 0 AND anon_thp_bytes >= 0 AND shmem_thp_bytes >= 0 AS others,
       (shared_hugetlb_bytes + private_hugetlb_bytes > 0) = (SELECT in_use FROM hugeinfo_status) AS hugetlb
FROM hugeinfo_memory(pg_backend_pid());
-- without an argument: this backend
SELECT abs(a.rss_bytes - b.rss_bytes) < 1 << 20 AND a.pid = b.pid AS this_backend FROM hugeinfo_memory() AS a, hugeinfo_memory(pid => pg_backend_pid()) AS b;
SELECT count(*) = 1 AND bool_and(pid = pg_backend_pid()) AS this_backend FROM hugeinfo_memory;

-- row by row over all processes; one that ends meanwhile has no row
SET client_min_messages = error;
SELECT count(*) >= 4 AS rows, bool_and(m.pss_bytes > 0) AS pss_bytes, bool_and(m.pid = b.pid) AS pid
FROM hugeinfo_backends AS b, LATERAL hugeinfo_memory(b.pid) AS m
WHERE b.backend_type IN ('postmaster', 'checkpointer', 'background writer', 'walwriter') OR b.pid = pg_backend_pid();
RESET client_min_messages;

-- not a process of this server: a warning and no row, so that a query over many PIDs does not fail;
-- NULL: no row
SELECT count(*) FROM hugeinfo_memory(1);
SELECT count(*) FROM hugeinfo_memory(0);
SELECT count(*) FROM hugeinfo_memory(-1);
SELECT count(*) FROM hugeinfo_memory(2147483647);
SELECT count(*) FROM hugeinfo_memory(NULL);
SELECT count(m.*), bool_and(m.rss_bytes > 0) AS rss_bytes
FROM unnest(ARRAY[1, pg_backend_pid(), NULL, 2147483647]) AS pid, LATERAL hugeinfo_memory(pid) AS m;
