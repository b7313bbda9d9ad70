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
       required_pages
FROM hugeinfo_instances();

REVOKE ALL ON FUNCTION hugeinfo_instances() FROM PUBLIC;
REVOKE ALL ON hugeinfo_instances FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_instances() TO pg_monitor;
GRANT SELECT ON hugeinfo_instances TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_instances() IS
'Each PostgreSQL server on this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_instances IS
'Each PostgreSQL server (postmaster) on this host as /proc shows it, of other users and data directories too. NULL: it may not be read, as the directory and memory of another user''s server. Not seen: servers of other users where /proc is mounted with hidepid, and those outside this server''s PID namespace.';
COMMENT ON COLUMN hugeinfo_instances.pid IS
'Process number of its postmaster.';
COMMENT ON COLUMN hugeinfo_instances.is_this_server IS
'Whether it is the server that is asked. NULL: /proc does not show this server''s own processes by the numbers that it knows.';
COMMENT ON COLUMN hugeinfo_instances.owner IS
'Name of the user that it runs as, from /etc/passwd as this server sees it. NULL: that number has no name there.';
COMMENT ON COLUMN hugeinfo_instances.owner_uid IS
'Number of that user (Uid in /proc/PID/status).';
COMMENT ON COLUMN hugeinfo_instances.data_directory IS
'Its data directory: where its postmaster works (/proc/PID/cwd), as seen in its own mount namespace. Of another user''s, which may not be read, and of other servers for callers without the privileges of pg_read_server_files, the absolute path behind -D in its arguments, which everybody may see and which can be that of the configuration files alone.';
COMMENT ON COLUMN hugeinfo_instances.port IS
'Its port: line 4 of postmaster.pid in that directory, if that file is of this process.';
COMMENT ON COLUMN hugeinfo_instances.segment_bytes IS
'Bytes of its main shared memory segment: the largest shared memory object that its postmaster maps. From PROCMAP_QUERY or /proc/PID/maps.';
COMMENT ON COLUMN hugeinfo_instances.page_size_bytes IS
'Bytes of a page that backs it, huge or not. Source as hugeinfo_status.page_size_bytes.';
COMMENT ON COLUMN hugeinfo_instances.in_use IS
'Whether it lies on huge pages.';
COMMENT ON COLUMN hugeinfo_instances.required_pages IS
'Huge pages of the default size that it takes, rounded up.';
