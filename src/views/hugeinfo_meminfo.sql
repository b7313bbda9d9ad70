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
'Each line of /proc/meminfo, in the kernel''s order; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_meminfo IS
'Each line of /proc/meminfo, in the kernel''s order: memory of the whole host by use. Some lines are parts of others, so do not add them up. A figure too large for bigint is NULL, with a warning.';
COMMENT ON COLUMN hugeinfo_meminfo.name IS
'Name of the line, as the kernel writes it.';
COMMENT ON COLUMN hugeinfo_meminfo.bytes IS
'The figure in bytes. HugePages_Total and the like count pages: here times the default huge page size. NULL: the line counts something else or has no number, or the kernel reports no huge page size.';
COMMENT ON COLUMN hugeinfo_meminfo.huge_pages IS
'Huge pages of the default size (Hugepagesize) that these bytes would fill, rounded up. NULL: bytes is NULL, or the kernel has no huge pages.';
