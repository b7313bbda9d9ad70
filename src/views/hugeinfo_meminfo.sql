-- Linux 6.18 has 60 lines.
ALTER FUNCTION hugeinfo_meminfo() ROWS 60;

CREATE VIEW hugeinfo_meminfo AS
SELECT name,
       bytes,
       huge_pages
FROM hugeinfo_meminfo();

REVOKE ALL ON FUNCTION hugeinfo_meminfo() FROM PUBLIC;
REVOKE ALL ON hugeinfo_meminfo FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_meminfo() TO pg_monitor;
GRANT SELECT ON hugeinfo_meminfo TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_meminfo() IS
'Each line of /proc/meminfo, in the order of the kernel; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_meminfo IS
'Each line of /proc/meminfo, in the order of the kernel.';
COMMENT ON COLUMN hugeinfo_meminfo.name IS
'Name of the line, as the kernel writes it.';
COMMENT ON COLUMN hugeinfo_meminfo.bytes IS
'The value in bytes, with counts of huge pages multiplied by the default size; NULL if it is not an amount of memory, or below zero.';
COMMENT ON COLUMN hugeinfo_meminfo.huge_pages IS
'The value in huge pages of the default size, rounded up; NULL if bytes is NULL, or if the kernel has no huge pages.';
