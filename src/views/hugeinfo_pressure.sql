-- The host, a cgroup, and its ancestors.
ALTER FUNCTION hugeinfo_pressure() ROWS 4;

CREATE VIEW hugeinfo_pressure AS
SELECT scope,
       path,
       memory_limit_bytes,
       memory_used_bytes,
       limit_hits,
       high_hits,
       oom_kills,
       some_avg10_percent,
       some_avg60_percent,
       some_avg300_percent,
       some_stall_microseconds,
       full_avg10_percent,
       full_avg60_percent,
       full_avg300_percent,
       full_stall_microseconds
FROM hugeinfo_pressure();

REVOKE ALL ON FUNCTION hugeinfo_pressure() FROM PUBLIC;
REVOKE ALL ON hugeinfo_pressure FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_pressure() TO pg_monitor;
GRANT SELECT ON hugeinfo_pressure TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_pressure() IS
'OOM kills and memory pressure of the host and of the server''s cgroups; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_pressure IS
'OOM kills, limits that were hit, and time that processes waited for memory: a row for the host, and one for each cgroup of the postmaster.';
COMMENT ON COLUMN hugeinfo_pressure.scope IS
'host or cgroup.';
COMMENT ON COLUMN hugeinfo_pressure.path IS
'Directory of the cgroup; NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_limit_bytes IS
'Memory limit of the cgroup (v1 memory.limit_in_bytes, v2 memory.max); NULL if there is none, and for the host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_used_bytes IS
'Bytes that the cgroup uses, including the file cache; NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.limit_hits IS
'How often the cgroup hit its memory limit (v1 memory.failcnt, v2 max in memory.events); the file cache alone can cause hits.';
COMMENT ON COLUMN hugeinfo_pressure.high_hits IS
'How often processes were slowed down because the cgroup exceeded memory.high; NULL on cgroup v1.';
COMMENT ON COLUMN hugeinfo_pressure.oom_kills IS
'Number of processes that the OOM killer killed (Linux 4.13).';
COMMENT ON COLUMN hugeinfo_pressure.some_avg10_percent IS
'Percentage of the last 10 seconds in which at least one process waited for memory (Linux 4.20).';
COMMENT ON COLUMN hugeinfo_pressure.some_avg60_percent IS
'Percentage of the last 60 seconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.some_avg300_percent IS
'Percentage of the last 300 seconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.some_stall_microseconds IS
'Total microseconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg10_percent IS
'Percentage of the last 10 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg60_percent IS
'Percentage of the last 60 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg300_percent IS
'Percentage of the last 300 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_stall_microseconds IS
'Total microseconds in which all processes with work to do waited for memory.';
