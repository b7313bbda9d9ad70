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
'Each kernel source that this extension reads, and whether it can be read here: each is opened for this and, where that is cheap, its first byte is read. Walks no page tables but those of one small mapping. Another view shows NULL where its source is not ok.';
COMMENT ON COLUMN hugeinfo_sources.source IS
'A short name that will not change: of the file, the system call, or the purpose of a directory.';
COMMENT ON COLUMN hugeinfo_sources.path IS
'Its path. Files of a process are those of the postmaster; the first five, which need the right to inspect a process, are tried for this backend (/proc/self), too.';
COMMENT ON COLUMN hugeinfo_sources.status IS
'ok: it can be read. denied: it may not be read. missing: this kernel, container or sandbox does not have it, or nothing is in it. failed: the kernel failed to read it, or it has an unknown form.';
COMMENT ON COLUMN hugeinfo_sources.used_for IS
'Views and functions that need it, or use it where a better source is missing.';
