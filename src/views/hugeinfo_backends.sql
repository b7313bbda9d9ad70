ALTER FUNCTION hugeinfo_backends() ROWS 100;

CREATE VIEW hugeinfo_backends AS
SELECT b.pid,
       coalesce(a.backend_type, b.backend_type) AS backend_type,
       a.datname,
       a.usename,
       a.application_name,
       a.state,
       CASE WHEN b.backend_type = 'postmaster' THEN pg_catalog.pg_postmaster_start_time() ELSE a.backend_start END AS backend_start,
       b.page_table_bytes,
       b.virtual_bytes,
       b.virtual_peak_bytes,
       b.rss_bytes,
       b.rss_anon_bytes,
       b.rss_file_bytes,
       b.rss_shmem_bytes,
       b.hugetlb_bytes,
       b.swap_bytes,
       b.minor_faults,
       b.major_faults,
       b.oom_scores[1] AS oom_score,
       b.oom_scores[2] AS oom_score_adj
FROM (
    -- OFFSET 0 keeps this query apart: one call gives both scores, and there is no call if
    -- neither is selected.
    SELECT f.*, hugeinfo_oom_scores(f.pid, f.start_ticks) AS oom_scores
    FROM hugeinfo_backends() AS f
    OFFSET 0
) AS b
LEFT JOIN (
    -- One row for each process: the planner can remove the join if no column of it is selected.
    SELECT DISTINCT ON (pid) pid, backend_type, datname, usename, application_name, state, backend_start
    FROM pg_catalog.pg_stat_activity
) AS a ON a.pid = b.pid;

REVOKE ALL ON FUNCTION hugeinfo_backends() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugeinfo_oom_scores(integer, bigint) FROM PUBLIC;
REVOKE ALL ON hugeinfo_backends FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_backends() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugeinfo_oom_scores(integer, bigint) TO pg_monitor;
GRANT SELECT ON hugeinfo_backends TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_backends() IS
'Each process of this server as the kernel sees it; the function behind the view of the same name. backend_type is NULL for processes that only pg_stat_activity describes. start_ticks: start of the process in clock ticks since boot (field 22 of /proc/PID/stat); pid and start_ticks together never name another process.';
COMMENT ON FUNCTION hugeinfo_oom_scores(integer, bigint) IS
'oom_score and oom_score_adj of the process of this server with this pid and these start_ticks; for the view hugeinfo_backends. NULL: there is no such process. A reused pid never gives the scores of another process.';
COMMENT ON VIEW hugeinfo_backends IS
'Each process of this server, postmaster and logger included: page tables, memory by kind, faults and OOM score, without walking page tables. Reads two small files for each process, and three more if an OOM column is selected. Reads pg_stat_activity only if one of its columns is selected. Processes are read one after the other, not at one moment. NULL: the kernel does not report it, as for a zombie process.';
COMMENT ON COLUMN hugeinfo_backends.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_backends.backend_type IS
'Type of the process, as in pg_stat_activity. Also postmaster, logger, and background workers without a database, which pg_stat_activity does not show. NULL: the process is starting or ending, or it started after this transaction first read pg_stat_activity (a transaction sees that view unchanged).';
COMMENT ON COLUMN hugeinfo_backends.datname IS
'Database that the process is connected to (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.usename IS
'Role that the process is logged in as (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.application_name IS
'Name that the client gave itself (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.state IS
'State of the backend: active, idle and so on (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.backend_start IS
'Start time of the process (pg_stat_activity). For the postmaster: start time of the server.';
COMMENT ON COLUMN hugeinfo_backends.page_table_bytes IS
'Bytes of page tables (VmPTE in /proc/PID/status). Page tables that processes share count for each of them, so a sum over processes can be too high.';
COMMENT ON COLUMN hugeinfo_backends.virtual_bytes IS
'Bytes of address space, used or not (VmSize).';
COMMENT ON COLUMN hugeinfo_backends.virtual_peak_bytes IS
'Largest virtual_bytes so far (VmPeak). It does not tell how many huge pages are needed.';
COMMENT ON COLUMN hugeinfo_backends.rss_bytes IS
'Bytes in RAM, with shared memory, without huge pages (VmRSS). Shared memory counts for each process that has touched it, so a sum over processes is too high.';
COMMENT ON COLUMN hugeinfo_backends.rss_anon_bytes IS
'Bytes of private memory in RAM (RssAnon; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_file_bytes IS
'Bytes of mapped files in RAM (RssFile; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_shmem_bytes IS
'Bytes of shared memory on small pages that this process has touched and that are in RAM (RssShmem; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.hugetlb_bytes IS
'Bytes of huge pages that the process has touched (HugetlbPages). Pages behind page tables that processes share do not count: 0 is possible on a server that uses huge pages.';
COMMENT ON COLUMN hugeinfo_backends.swap_bytes IS
'Bytes of private memory swapped out (VmSwap). Shared memory does not count.';
COMMENT ON COLUMN hugeinfo_backends.minor_faults IS
'Page faults since the process started that read nothing from disk (field 10 of /proc/PID/stat).';
COMMENT ON COLUMN hugeinfo_backends.major_faults IS
'Page faults since the process started that read from disk (field 12 of /proc/PID/stat).';
COMMENT ON COLUMN hugeinfo_backends.oom_score IS
'Score of the process for the OOM killer now: the process with the highest score on the host is killed first (/proc/PID/oom_score).';
COMMENT ON COLUMN hugeinfo_backends.oom_score_adj IS
'What an administrator adds to the score: -1000 (never kill) to 1000 (/proc/PID/oom_score_adj).';
