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
'Each process of this server as the kernel reports it; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_oom_scores(integer, bigint) IS
'oom_score and oom_score_adj of the process of this server with this pid and these start_ticks, for the view hugeinfo_backends.';
COMMENT ON VIEW hugeinfo_backends IS
'Each process of this server, including the postmaster and the logger: page tables, memory by kind, faults and OOM score.';
COMMENT ON COLUMN hugeinfo_backends.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_backends.backend_type IS
'Type of the process, as in pg_stat_activity, or postmaster or logger; NULL if the process started after this transaction first read pg_stat_activity.';
COMMENT ON COLUMN hugeinfo_backends.datname IS
'Database of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.usename IS
'Role of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.application_name IS
'Application name of the client (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.state IS
'State of the backend, such as active or idle (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.backend_start IS
'Start time of the process (pg_stat_activity) or, for the postmaster, of the server.';
COMMENT ON COLUMN hugeinfo_backends.page_table_bytes IS
'Bytes of page tables (VmPTE); page tables that processes share count once for each process.';
COMMENT ON COLUMN hugeinfo_backends.virtual_bytes IS
'Bytes of address space, used or not (VmSize).';
COMMENT ON COLUMN hugeinfo_backends.virtual_peak_bytes IS
'Largest virtual_bytes so far (VmPeak), which is not the number of huge pages that the server needs.';
COMMENT ON COLUMN hugeinfo_backends.rss_bytes IS
'Bytes in RAM, with shared memory and without huge pages (VmRSS); shared memory counts once for each process.';
COMMENT ON COLUMN hugeinfo_backends.rss_anon_bytes IS
'Bytes of private memory in RAM (RssAnon; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_file_bytes IS
'Bytes of mapped files in RAM (RssFile; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_shmem_bytes IS
'Bytes of shared memory in RAM that this process has faulted in, without huge pages (RssShmem; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.hugetlb_bytes IS
'Bytes of huge pages that the process has faulted in (HugetlbPages), without those behind shared page tables.';
COMMENT ON COLUMN hugeinfo_backends.swap_bytes IS
'Bytes of private memory swapped out (VmSwap).';
COMMENT ON COLUMN hugeinfo_backends.minor_faults IS
'Page faults since the process started that did not read from disk.';
COMMENT ON COLUMN hugeinfo_backends.major_faults IS
'Page faults since the process started that read from disk.';
COMMENT ON COLUMN hugeinfo_backends.oom_score IS
'Score of the process for the OOM killer, which first kills the process with the highest score on the host.';
COMMENT ON COLUMN hugeinfo_backends.oom_score_adj IS
'Adjustment of the score by an administrator, from -1000 (never kill) to 1000.';
