-- The contract of hugeinfo_backends.
\d hugeinfo_backends

-- every process in pg_stat_activity, and the postmaster; no process twice
SELECT count(*) AS missing
FROM pg_stat_activity AS a
WHERE NOT EXISTS (SELECT FROM hugeinfo_backends AS b WHERE b.pid = a.pid)
  AND a.backend_type IN ('checkpointer', 'background writer', 'walwriter', 'client backend') AND a.state IS DISTINCT FROM 'idle';
SELECT count(*) FROM hugeinfo_backends WHERE backend_type = 'postmaster';
SELECT count(*) = count(DISTINCT pid) AS no_process_twice FROM hugeinfo_backends;

-- facts of this backend in PostgreSQL
SELECT b.backend_type = a.backend_type AS backend_type,
       b.datname = current_database() AS datname,
       b.usename = session_user AS usename,
       b.application_name = current_setting('application_name') AS application_name,
       b.state AS state,
       b.backend_start = a.backend_start AS backend_start
FROM hugeinfo_backends AS b
JOIN pg_stat_activity AS a USING (pid)
WHERE b.pid = pg_backend_pid();

-- No scores of a process that reuses the PID, or of a process of another server.
SELECT bool_and(hugeinfo_oom_scores(pid, start_ticks) IS NOT NULL) AS same,
       bool_or(hugeinfo_oom_scores(pid, start_ticks + 1) IS NOT NULL) AS started_later,
       bool_or(hugeinfo_oom_scores(pid, -start_ticks) IS NOT NULL) AS negative
FROM hugeinfo_backends()
WHERE pid IN (pg_backend_pid(), (SELECT pid FROM hugeinfo_backends WHERE backend_type = 'postmaster'));
SELECT hugeinfo_oom_scores(1, split_part(substring(pg_read_file('/proc/1/stat') from '\) (.*)'), ' ', 20)::bigint) AS of_process_1,
       hugeinfo_oom_scores(-1, 0) AS no_number, hugeinfo_oom_scores(NULL, 0) AS nobody;

-- Columns that are not selected cost nothing: no call for scores, and no join.
CREATE FUNCTION pg_temp.plan(query text) RETURNS TABLE (has_scores boolean, has_activity boolean) LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    has_scores := false;
    has_activity := false;
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
        has_scores := has_scores OR line ~ 'hugeinfo_oom_scores';
        has_activity := has_activity OR line ~ 'pg_stat_get_activity';
    END LOOP;
    RETURN NEXT;
END
$$;
SELECT columns, (pg_temp.plan('SELECT ' || columns || ' FROM hugeinfo_backends')).*
FROM unnest(ARRAY['pid, page_table_bytes, minor_faults, major_faults', 'pid, state', 'pid, oom_score_adj', '*']) AS columns;

-- the same as in the kernel's files; values that can grow meanwhile are between two reads
CREATE FUNCTION pg_temp.kb(name text) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT 1024 * substring(pg_read_file('/proc/self/status') from name || ':\s*([0-9]+) kB')::bigint $$;
CREATE FUNCTION pg_temp.fault(field int) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (string_to_array(substring(pg_read_file('/proc/self/stat') from '\) (.*)'), ' '))[field - 2]::bigint $$;
DO $$
DECLARE
    before record;
    seen record;
    later record;
BEGIN
    FOR attempt IN 1..2 LOOP -- the second time nothing is loaded any more
        SELECT pg_temp.kb('VmPTE') AS pte, pg_temp.kb('VmSize') AS size, pg_temp.kb('VmPeak') AS peak, pg_temp.kb('RssAnon') AS anon,
               pg_temp.kb('RssShmem') AS shmem, pg_temp.fault(10) AS minor, pg_temp.fault(12) AS major INTO before;
        SELECT * FROM hugeinfo_backends WHERE pid = pg_backend_pid() INTO seen;
        SELECT pg_temp.kb('VmPTE') AS pte, pg_temp.kb('VmSize') AS size, pg_temp.kb('VmPeak') AS peak, pg_temp.kb('RssAnon') AS anon,
               pg_temp.kb('RssShmem') AS shmem, pg_temp.fault(10) AS minor, pg_temp.fault(12) AS major INTO later;
    END LOOP;
    ASSERT seen.page_table_bytes BETWEEN least(before.pte, later.pte) AND greatest(before.pte, later.pte), 'page_table_bytes';
    ASSERT seen.virtual_peak_bytes BETWEEN before.peak AND later.peak, 'virtual_peak_bytes';
    ASSERT seen.rss_shmem_bytes BETWEEN before.shmem AND later.shmem, 'rss_shmem_bytes';
    ASSERT seen.minor_faults BETWEEN before.minor AND later.minor, 'minor_faults';
    ASSERT seen.major_faults BETWEEN before.major AND later.major, 'major_faults';
    ASSERT seen.virtual_bytes <= seen.virtual_peak_bytes, 'virtual_bytes';
    ASSERT seen.rss_bytes = seen.rss_anon_bytes + seen.rss_file_bytes + seen.rss_shmem_bytes, 'rss_bytes';
    ASSERT seen.oom_score_adj = pg_read_file('/proc/self/oom_score_adj')::int, 'oom_score_adj';
    ASSERT seen.oom_score BETWEEN 0 AND 2000, 'oom_score';
    ASSERT seen.swap_bytes >= 0 AND seen.hugetlb_bytes >= 0, 'swap_bytes, hugetlb_bytes';
END
$$;
