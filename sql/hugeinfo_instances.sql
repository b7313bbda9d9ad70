-- The contract of hugeinfo_instances. Compares only the row of this server, because other servers
-- can start and stop at any time.
\d hugeinfo_instances

SELECT count(*) FILTER (WHERE is_this_server) AS this_server,
       count(*) FILTER (WHERE is_this_server IS NULL) AS unknown,
       count(*) = count(DISTINCT pid) AS no_server_twice,
       bool_and(pid > 0) AS pid,
       bool_and(port BETWEEN 1 AND 65535) IS NOT FALSE AS port,
       bool_and(in_use IS NULL OR segment_bytes % page_size_bytes = 0) AS whole_pages
FROM hugeinfo_instances;

-- the same as in the server itself
SELECT i.pid = (SELECT pid FROM hugeinfo_backends WHERE backend_type = 'postmaster') AS pid,
       i.port = current_setting('port')::int AS port,
       i.data_directory LIKE '/%' AS data_directory,
       i.owner_uid = substring(pg_read_file('/proc/self/status') from 'Uid:\s+[0-9]+\s+([0-9]+)')::bigint AS owner_uid,
       i.owner IS NOT DISTINCT FROM
           (SELECT split_part(line, ':', 1)
            FROM regexp_split_to_table(pg_read_file('/etc/passwd'), '\n') WITH ORDINALITY AS passwd (line, n)
            WHERE split_part(line, ':', 3) = i.owner_uid::text
            ORDER BY n LIMIT 1) AS owner,
       i.segment_bytes = s.segment_bytes AS segment_bytes,
       i.page_size_bytes = s.page_size_bytes AS page_size_bytes,
       i.in_use = s.in_use AS in_use,
       i.required_pages = (SELECT ceil(s.segment_bytes::numeric / page_size_bytes) FROM hugeinfo_pools WHERE is_default) AS required_pages,
       i.huge_pages = current_setting('huge_pages') AS huge_pages
FROM hugeinfo_instances AS i, hugeinfo_status AS s
WHERE i.is_this_server;
-- the same directory by another path
SELECT pg_read_file(data_directory || '/postmaster.pid') = pg_read_file('postmaster.pid') AS data_directory
FROM hugeinfo_instances
WHERE is_this_server;

-- only the postmaster of this server
SELECT count(*) FROM hugeinfo_instances AS i JOIN hugeinfo_backends AS b USING (pid) WHERE b.backend_type <> 'postmaster';
