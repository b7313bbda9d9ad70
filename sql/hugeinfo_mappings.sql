-- The contract of hugeinfo_mappings(pid) and hugeinfo_postmaster_mappings.
\d hugeinfo_mappings
SELECT array_agg(attname || ' ' || format_type(atttypid, atttypmod) ORDER BY attnum)
     = (SELECT array_agg(name || ' ' || format_type(type, NULL) ORDER BY n)
        FROM pg_proc, unnest(proargnames, proallargtypes, proargmodes) WITH ORDINALITY AS argument (name, type, mode, n)
        WHERE oid = 'hugeinfo_mappings(int)'::regprocedure AND mode = 't') AS function_and_view
FROM pg_attribute
WHERE attrelid = 'hugeinfo_postmaster_mappings'::regclass AND attnum > 0;

-- the main segment, on the pages in hugeinfo_status
SELECT sum(m.size_bytes) = s.segment_bytes AS size_bytes,
       bool_and(m.page_size_bytes = s.page_size_bytes) AS page_size_bytes,
       bool_and(m.permissions = 'rw-s') AS permissions
FROM hugeinfo_mappings AS m, hugeinfo_status AS s
WHERE m.kind = 'main segment'
GROUP BY s.segment_bytes;

-- the same mapping at the same address in the postmaster
SELECT (SELECT array_agg((start_address, end_address) ORDER BY start_address) FROM hugeinfo_postmaster_mappings WHERE kind = 'main segment')
     = (SELECT array_agg((start_address, end_address) ORDER BY start_address) FROM hugeinfo_mappings WHERE kind = 'main segment')
       AS same_place;

-- kinds that every backend has
SELECT kind, count(*) > 0 AS there
FROM hugeinfo_mappings
WHERE kind NOT IN ('dynamic shared memory', 'file')
GROUP BY kind
ORDER BY kind COLLATE "C";

-- paths are complete, compared with maps as the server reads it
SELECT count(*) AS not_in_maps
FROM hugeinfo_mappings AS m
WHERE m.kind IN ('main segment', 'executable', 'sysv shim')
  AND pg_read_file('/proc/self/maps') !~ format('(?n)^%s-%s %s .* %s$', m.start_address, m.end_address, m.permissions, regexp_replace(m.path, '[][\\.()+]', '.', 'g'));
SELECT bool_and(size_bytes = ('x' || lpad(end_address, 16, '0'))::bit(64)::bigint - ('x' || lpad(start_address, 16, '0'))::bit(64)::bigint) AS size_bytes,
       bool_and(rss_bytes BETWEEN 0 AND size_bytes) AS rss_bytes,
       bool_and(pss_bytes <= rss_bytes) AS pss_bytes,
       bool_and(pid = pg_backend_pid()) AS pid
FROM hugeinfo_mappings();

-- not a process of this server: a warning and no row; NULL: no row
SELECT count(*) FROM hugeinfo_mappings(1);
SELECT count(*) FROM hugeinfo_mappings(NULL);
SELECT bool_and(m.pid = b.pid) AS is_postmaster FROM hugeinfo_backends AS b, hugeinfo_postmaster_mappings AS m WHERE b.backend_type = 'postmaster';

-- Only roles that can read /proc/PID/maps anyway see addresses and paths; pg_monitor sees the rest.
CREATE ROLE regress_hugeinfo_sees IN ROLE pg_monitor, pg_read_server_files;
CREATE ROLE regress_hugeinfo_sees_not IN ROLE pg_monitor;
CREATE TEMP TABLE shown (who text, LIKE hugeinfo_mappings);
GRANT ALL ON shown TO PUBLIC;
SET ROLE regress_hugeinfo_sees;
INSERT INTO shown SELECT current_user, * FROM hugeinfo_mappings;
INSERT INTO shown SELECT current_user, * FROM hugeinfo_postmaster_mappings;
SET ROLE regress_hugeinfo_sees_not;
INSERT INTO shown SELECT current_user, * FROM hugeinfo_mappings;
INSERT INTO shown SELECT current_user, * FROM hugeinfo_postmaster_mappings;
SELECT count(*) > 0 AS rows, count(start_address) + count(end_address) + count(path) AS places FROM hugeinfo_mappings();
RESET ROLE;
SELECT who, count(start_address) = count(*) AS start_address, count(end_address) = count(*) AS end_address, count(path) > 0 AS path,
       count(start_address) + count(end_address) + count(path) = 0 AS no_place,
       count(size_bytes) = count(*) AS size_bytes, count(kind) = count(*) AS kind,
       count(page_size_bytes) = count(*) AS page_size_bytes, count(*) FILTER (WHERE kind = 'main segment') >= 2 AS main_segment
FROM shown
GROUP BY who
ORDER BY who;
DROP TABLE shown;
DROP ROLE regress_hugeinfo_sees, regress_hugeinfo_sees_not;
