-- Linux 6.18 has about 200 lines.
ALTER FUNCTION hugeinfo_vmstat() ROWS 200;

CREATE VIEW hugeinfo_vmstat AS
SELECT name,
       value,
       topic
FROM hugeinfo_vmstat();

REVOKE ALL ON FUNCTION hugeinfo_vmstat() FROM PUBLIC;
REVOKE ALL ON hugeinfo_vmstat FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_vmstat() TO pg_monitor;
GRANT SELECT ON hugeinfo_vmstat TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_vmstat() IS
'Each line of /proc/vmstat, in the kernel''s order; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_vmstat IS
'Each line of /proc/vmstat, in the kernel''s order: counters of the memory management of the whole host. Each kernel has its own set. A number too large for bigint is NULL, with a warning.';
COMMENT ON COLUMN hugeinfo_vmstat.name IS
'Name of the counter in the kernel. Names that begin with nr_ are present amounts, in pages or other units of the kernel. Most others count events since boot.';
COMMENT ON COLUMN hugeinfo_vmstat.value IS
'Value of the counter.';
COMMENT ON COLUMN hugeinfo_vmstat.topic IS
'Topic of the counter: thp (transparent huge pages), huge_pages (the pools), compaction (making room for huge pages; compact_stall: how often a process waited for it), swap, numa, reclaim (taking pages back; allocstall_*: how often a process waited for it; oom_kill: processes that the OOM killer ended), faults, or other. Derived from the name.';
