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
'Each kernel source that this extension reads, and whether it can be read here.';
COMMENT ON COLUMN hugeinfo_sources.source IS
'Stable short name of the file, system call or directory.';
COMMENT ON COLUMN hugeinfo_sources.path IS
'Path of the source; files of a process are those of the postmaster.';
COMMENT ON COLUMN hugeinfo_sources.status IS
'ok, denied (no permission), missing (this kernel, container or sandbox does not have it), or failed (an error, or an unknown format).';
COMMENT ON COLUMN hugeinfo_sources.used_for IS
'Views and functions that use it.';
