ALTER FUNCTION hugeinfo_instances() ROWS 3;

CREATE VIEW hugeinfo_instances AS
SELECT pid,
       is_this_server,
       owner,
       owner_uid,
       data_directory,
       port,
       segment_bytes,
       page_size_bytes,
       in_use,
       required_pages,
       huge_pages
FROM hugeinfo_instances();

REVOKE ALL ON FUNCTION hugeinfo_instances() FROM PUBLIC;
REVOKE ALL ON hugeinfo_instances FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_instances() TO pg_monitor;
GRANT SELECT ON hugeinfo_instances TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_instances() IS
'Each PostgreSQL server on this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_instances IS
'Each PostgreSQL server of this host that is visible in /proc, including those of other users; NULL if a value cannot be read.';
COMMENT ON COLUMN hugeinfo_instances.pid IS
'Process ID of its postmaster.';
COMMENT ON COLUMN hugeinfo_instances.is_this_server IS
'Whether the row is about this server; NULL if /proc belongs to another PID namespace.';
COMMENT ON COLUMN hugeinfo_instances.owner IS
'Name of its user in /etc/passwd; NULL if the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_instances.owner_uid IS
'ID of its user.';
COMMENT ON COLUMN hugeinfo_instances.data_directory IS
'Its data directory (/proc/PID/cwd) or, if that cannot be read, the absolute path after -D in its arguments.';
COMMENT ON COLUMN hugeinfo_instances.port IS
'Its port (line 4 of postmaster.pid).';
COMMENT ON COLUMN hugeinfo_instances.segment_bytes IS
'Bytes of its main shared memory segment, the largest shared memory object that its postmaster maps.';
COMMENT ON COLUMN hugeinfo_instances.page_size_bytes IS
'Bytes of a page that backs this segment, huge or not.';
COMMENT ON COLUMN hugeinfo_instances.in_use IS
'Whether this segment is on huge pages.';
COMMENT ON COLUMN hugeinfo_instances.required_pages IS
'Huge pages of the default size that this segment needs, rounded up.';
COMMENT ON COLUMN hugeinfo_instances.huge_pages IS
'Setting huge_pages of its next start (off, on or try), from its command line or configuration files; NULL if one of them cannot be read.';
