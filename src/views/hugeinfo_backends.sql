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
    -- Kept apart, so that both scores come from one call, and none is made where neither is
    -- selected.
    SELECT f.*, hugeinfo_oom_scores(f.pid, f.start_ticks) AS oom_scores
    FROM hugeinfo_backends() AS f
    OFFSET 0
) AS b
LEFT JOIN (
    -- One row for each process, which lets the planner leave out the join where nothing of it is
    -- selected.
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
'Each process of this server as the kernel sees it; the function behind the view of the same name. backend_type is NULL for those that only pg_stat_activity describes. start_ticks: when it started, in clock ticks since boot (field 22 of /proc/PID/stat); with the pid it names a process for good.';
COMMENT ON FUNCTION hugeinfo_oom_scores(integer, bigint) IS
'oom_score and oom_score_adj of the process of this server that has this pid and these start_ticks: columns of the view hugeinfo_backends. NULL: there is no such process, so that a pid that was reused never gives the scores of another.';
COMMENT ON VIEW hugeinfo_backends IS
'Each process of this server, postmaster and logger included: page tables, memory by kind, faults and OOM score, without walking page tables. Two small files a process; the OOM columns cost three more where one of them is selected, and the columns from pg_stat_activity are looked up only where selected. Processes are read one after the other: sums over them are not of one moment. NULL: the kernel does not report it, as for a process that has ended and is not waited for yet.';
COMMENT ON COLUMN hugeinfo_backends.pid IS
'Process number.';
COMMENT ON COLUMN hugeinfo_backends.backend_type IS
'What the process is for: as in pg_stat_activity, and postmaster, logger and background workers without a database, which that view lacks. NULL: it is just starting or ending, or has started since this transaction first read pg_stat_activity, which then stays as it was.';
COMMENT ON COLUMN hugeinfo_backends.datname IS
'Database that it is connected to. From pg_stat_activity, as the five columns after it but one.';
COMMENT ON COLUMN hugeinfo_backends.usename IS
'Role that it is logged in as.';
COMMENT ON COLUMN hugeinfo_backends.application_name IS
'What the client calls itself.';
COMMENT ON COLUMN hugeinfo_backends.state IS
'active, idle and so on.';
COMMENT ON COLUMN hugeinfo_backends.backend_start IS
'When the process started. For the postmaster, when the server did.';
COMMENT ON COLUMN hugeinfo_backends.page_table_bytes IS
'Bytes of page tables (VmPTE in /proc/PID/status). Tables that processes share count for each of them: a sum over processes may be too high.';
COMMENT ON COLUMN hugeinfo_backends.virtual_bytes IS
'Bytes of address space, used or not (VmSize).';
COMMENT ON COLUMN hugeinfo_backends.virtual_peak_bytes IS
'Most bytes of address space so far (VmPeak). No measure of the huge pages that are needed.';
COMMENT ON COLUMN hugeinfo_backends.rss_bytes IS
'Bytes resident, shared memory included, huge pages not (VmRSS). Shared memory counts for each process that has touched it: a sum over processes counts it many times.';
COMMENT ON COLUMN hugeinfo_backends.rss_anon_bytes IS
'Bytes resident of private memory (RssAnon; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_file_bytes IS
'Bytes resident of mapped files (RssFile; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.rss_shmem_bytes IS
'Bytes resident of shared memory on small pages (RssShmem; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.hugetlb_bytes IS
'Bytes of huge pages mapped here (HugetlbPages). Less what lies below page tables that processes share, so it proves nothing: 0 is possible on a server that uses huge pages.';
COMMENT ON COLUMN hugeinfo_backends.swap_bytes IS
'Bytes of private memory swapped out (VmSwap). Shared memory is not in it.';
COMMENT ON COLUMN hugeinfo_backends.minor_faults IS
'Page faults since the process started that needed no reading from disk (field 10 of /proc/PID/stat).';
COMMENT ON COLUMN hugeinfo_backends.major_faults IS
'Page faults since the process started that did (field 12 of /proc/PID/stat).';
COMMENT ON COLUMN hugeinfo_backends.oom_score IS
'What the OOM killer would go by now: the highest score on the host is killed first (/proc/PID/oom_score).';
COMMENT ON COLUMN hugeinfo_backends.oom_score_adj IS
'What an administrator adds to that, from -1000 (never kill) to 1000 (/proc/PID/oom_score_adj).';
