ALTER FUNCTION hugeinfo_sources() ROWS 30;

CREATE VIEW hugeinfo_sources AS
SELECT source,
       path,
       status,
       used_for
FROM hugeinfo_sources();

REVOKE ALL ON FUNCTION hugeinfo_sources() FROM PUBLIC;
REVOKE ALL ON hugeinfo_sources FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_sources() TO pg_monitor;
GRANT SELECT ON hugeinfo_sources TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_sources() IS
'Each kernel source that this extension reads, and whether it can be read here; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_sources IS
'Each kernel source that this extension reads, and whether it can be read here: each is opened and, if that is cheap, its first byte is read. Walks page tables of one small mapping only. If a source is not ok, other views show NULL.';
COMMENT ON COLUMN hugeinfo_sources.source IS
'Short name of the file, the system call, or the purpose of a directory. It will not change.';
COMMENT ON COLUMN hugeinfo_sources.path IS
'Path of the source. Files of a process are those of the postmaster. The first five need the right to inspect a process; they are tried for this backend (/proc/self), too.';
COMMENT ON COLUMN hugeinfo_sources.status IS
'ok: it can be read. denied: it may not be read. missing: this kernel, container or sandbox does not have it, or it is empty. failed: reading it failed, or its format is unknown.';
COMMENT ON COLUMN hugeinfo_sources.used_for IS
'Views and functions that need it, or use it if a better source is missing.';
