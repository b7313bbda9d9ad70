-- The host, a control group, and the groups above it.
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
'Where memory ran short: OOM kills and waiting, on the host and in the server''s control groups; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_pressure IS
'Where memory ran short: OOM kills, limits that were hit, and time that processes waited for memory. One row for the host, then one for the postmaster''s control group and each group above it that can be seen, nearest first. Counters start at boot, or when the group was made; they are never reset. Reads a few small files. NULL: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_pressure.scope IS
'host or cgroup.';
COMMENT ON COLUMN hugeinfo_pressure.path IS
'Directory of the control group. NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_limit_bytes IS
'Limit on the memory of the group and those below it, in bytes (v1 memory.limit_in_bytes, v2 memory.max); of the group alone where its memory.use_hierarchy is 0, as v1 can have it up to Linux 5.10. NULL: no limit, or the row is the host; for its RAM see hugeinfo_host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_used_bytes IS
'Bytes that the group and those below it use, cached files included (v1 memory.usage_in_bytes, v2 memory.current). NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.limit_hits IS
'How often memory_limit_bytes was hit, so that the kernel had to free memory of the group first. v1: memory.failcnt and, for the limit on memory and swap together, memory.memsw.failcnt (not counted by new kernels, such as 6.18), of this group alone. v2: max in memory.events, with groups below it. Cached files alone can cause hits: harmless without stalls and OOM kills.';
COMMENT ON COLUMN hugeinfo_pressure.high_hits IS
'How often processes were slowed down because the group was above memory.high (v2, high in memory.events, with groups below it). NULL on v1, which has no such limit.';
COMMENT ON COLUMN hugeinfo_pressure.oom_kills IS
'Processes that the OOM killer ended, for lack of host memory or because of a limit. Host: all (oom_kill in /proc/vmstat). v1: of this group alone (memory.oom_control). v2: of groups below it, too (memory.events), unless cgroup2 is mounted with memory_localevents. Linux 4.13.';
COMMENT ON COLUMN hugeinfo_pressure.some_avg10_percent IS
'Percent of the last 10 seconds in which at least one process waited for memory: avg10 of some in /proc/pressure/memory, and in memory.pressure of the group (v2 only). Linux 4.20; NULL if the kernel was started with psi=0.';
COMMENT ON COLUMN hugeinfo_pressure.some_avg60_percent IS
'The same for the last 60 seconds (avg60).';
COMMENT ON COLUMN hugeinfo_pressure.some_avg300_percent IS
'The same for the last 300 seconds (avg300).';
COMMENT ON COLUMN hugeinfo_pressure.some_stall_microseconds IS
'Microseconds in which at least one process waited for memory, in total (total of some).';
COMMENT ON COLUMN hugeinfo_pressure.full_avg10_percent IS
'Percent of the last 10 seconds in which all processes with work to do waited for memory, so that no work was done (avg10 of full).';
COMMENT ON COLUMN hugeinfo_pressure.full_avg60_percent IS
'The same for the last 60 seconds (avg60).';
COMMENT ON COLUMN hugeinfo_pressure.full_avg300_percent IS
'The same for the last 300 seconds (avg300).';
COMMENT ON COLUMN hugeinfo_pressure.full_stall_microseconds IS
'Microseconds in which all processes with work to do waited for memory, in total (total of full).';
