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
'Each kernel source that this extension reads, and whether it can be read here: really tried, by opening it and, where that costs nothing, reading a first byte. Walks no page tables but those of one small mapping. Another view shows NULL where its source is not ok.';
COMMENT ON COLUMN hugeinfo_sources.source IS
'Short name that stays: that of the file, of the system call, or of what the directory is for.';
COMMENT ON COLUMN hugeinfo_sources.path IS
'Where it was looked for. Files of a process are those of the postmaster; the first five, which take the rights to look into a process, are tried for this backend (/proc/self) as well.';
COMMENT ON COLUMN hugeinfo_sources.status IS
'ok: it can be read. denied: it may not be read. missing: this kernel, container or sandbox does not have it, or nothing is in it. failed: the kernel failed to read it, or it has an unknown form.';
COMMENT ON COLUMN hugeinfo_sources.used_for IS
'Views and functions that need it, or use it where a better source is missing.';
