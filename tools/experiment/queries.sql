-- load: prepares the database, and returns sizes.
CREATE EXTENSION pg_hugeinfo;
CREATE EXTENSION pg_prewarm;
SELECT pg_relation_size('pgbench_accounts') / 1048576 AS table_mb,
       pg_size_bytes(current_setting('shared_memory_size')) / 1048576 AS segment_mb;

-- fill: reads the data into the buffers, and returns the pages on which they are. The process that
-- fills a buffer touches it, so its own mappings show these pages.
SELECT pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey') \g /dev/null
SELECT page_size_bytes / 1024 AS kb,
       (SELECT coalesce(sum(shmem_thp_bytes), 0) FROM hugeinfo_mappings
        WHERE kind = 'main segment') AS thp_bytes
FROM hugeinfo_status;

-- touch: lets connections of pgbench touch a row of each page of the table, and then stay.
SELECT count(aid) FROM pgbench_accounts WHERE ctid = ANY (ARRAY(
    SELECT format('(%s,1)', page)::tid
    FROM generate_series(0, pg_relation_size('pgbench_accounts')
                            / current_setting('block_size')::int - 1) AS page));
\sleep 1000 s

-- idle: the number of connections that have touched the data.
SELECT count(*) AS idle FROM pg_stat_activity
WHERE application_name = 'pgbench' AND state = 'idle' AND query <> '';

-- connections: these connections together, the server, the host, and one of the connections on
-- average. hugeinfo_page_tables predicts the page tables of one.
SELECT :'pages' AS pages, :connections AS connections, c.page_table_bytes,
       f.page_table_bytes AS server_page_table_bytes, h.page_table_bytes AS host_page_table_bytes,
       f.total_bytes AS server_total_bytes, :page_kb * 1024 AS page_size_bytes,
       :thp_bytes AS thp_bytes, c.one_page_table_bytes,
       (SELECT one_backend_bytes FROM hugeinfo_page_tables
        WHERE page_size_bytes = :page_kb * 1024) AS one_forecast_bytes,
       c.one_minor_faults, c.one_pss_bytes
FROM hugeinfo_footprint AS f, hugeinfo_host AS h,
     (SELECT sum(b.page_table_bytes) AS page_table_bytes,
             round(avg(b.page_table_bytes)) AS one_page_table_bytes,
             round(avg(b.minor_faults)) AS one_minor_faults,
             round(avg(m.pss_bytes)) AS one_pss_bytes
      FROM hugeinfo_backends AS b, LATERAL hugeinfo_memory(b.pid) AS m
      WHERE b.application_name = 'pgbench') AS c;

-- processes: each process of the server.
SELECT :'pages' AS pages, :connections AS connections, b.pid, b.backend_type,
       coalesce(b.application_name = 'pgbench', false) AS is_connection, b.page_table_bytes,
       b.minor_faults, b.major_faults, m.pss_bytes
FROM hugeinfo_backends AS b, LATERAL hugeinfo_memory(b.pid) AS m
WHERE b.pid <> pg_backend_pid()
ORDER BY b.pid;

-- faults: page faults of the connections so far, and page tables of the server.
SELECT sum(minor_faults) AS minor_faults,
       (SELECT page_table_bytes FROM hugeinfo_footprint) AS page_table_bytes
FROM hugeinfo_backends WHERE application_name = 'pgbench';
