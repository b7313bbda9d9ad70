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
'Each PostgreSQL server (postmaster) on this host that /proc shows, also those of other users. NULL: it may not be read, such as directory and memory of another user''s server. Not visible: servers of other users if /proc is mounted with hidepid, and servers outside this server''s PID namespace.';
COMMENT ON COLUMN hugeinfo_instances.pid IS
'Process ID of its postmaster.';
COMMENT ON COLUMN hugeinfo_instances.is_this_server IS
'Whether it is this server. NULL: /proc belongs to another PID namespace, so process IDs differ.';
COMMENT ON COLUMN hugeinfo_instances.owner IS
'Name of the user that it runs as, from /etc/passwd as this server sees it. NULL: the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_instances.owner_uid IS
'ID of that user (Uid in /proc/PID/status).';
COMMENT ON COLUMN hugeinfo_instances.data_directory IS
'Its data directory: the working directory of its postmaster (/proc/PID/cwd), as named in its own mount namespace. If that may not be read (server of another user, or caller without the privileges of pg_read_server_files): the absolute path after -D in its arguments. That path can be the directory of the configuration files instead.';
COMMENT ON COLUMN hugeinfo_instances.port IS
'Its port: line 4 of postmaster.pid in that directory, if that file belongs to this process.';
COMMENT ON COLUMN hugeinfo_instances.segment_bytes IS
'Bytes of its main shared memory segment: the largest shared memory object that its postmaster maps. From PROCMAP_QUERY or /proc/PID/maps.';
COMMENT ON COLUMN hugeinfo_instances.page_size_bytes IS
'Bytes of a page that backs this segment, huge or not. Source as hugeinfo_status.page_size_bytes.';
COMMENT ON COLUMN hugeinfo_instances.in_use IS
'Whether this segment is on huge pages.';
COMMENT ON COLUMN hugeinfo_instances.required_pages IS
'Huge pages of the default size that this segment takes, rounded up.';
