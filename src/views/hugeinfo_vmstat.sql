-- Linux 6.18 has some 200 lines.
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
'Each line of /proc/vmstat, in the kernel''s order: counters of the memory management of the whole host. Which there are depends on the kernel. A number beyond bigint is an error.';
COMMENT ON COLUMN hugeinfo_vmstat.name IS
'What the kernel calls it: a name with nr_ in front is an amount of now in pages or others of the kernel''s units, most others are counts of events since boot.';
COMMENT ON COLUMN hugeinfo_vmstat.value IS
'The number.';
COMMENT ON COLUMN hugeinfo_vmstat.topic IS
'What it is about: thp (transparent huge pages), huge_pages (the pools), compaction (making room for huge pages; compact_stall counts processes that waited for it), swap, numa, reclaim (taking pages back; allocstall_* counts processes that waited for it, oom_kill what the OOM killer ended), faults, or other. By the name: not told by the kernel.';
