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
'Each line of /proc/vmstat, in the order of the kernel; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_vmstat IS
'Each line of /proc/vmstat, in the order of the kernel.';
COMMENT ON COLUMN hugeinfo_vmstat.name IS
'Name of the counter; names that begin with nr_ are current amounts, and most others count events since boot.';
COMMENT ON COLUMN hugeinfo_vmstat.value IS
'Value of the counter; NULL if it is below zero.';
COMMENT ON COLUMN hugeinfo_vmstat.topic IS
'Topic of the counter: thp, huge_pages, compaction, swap, numa, reclaim, faults, or other.';
