ALTER FUNCTION hugeinfo_holders() ROWS 100;

CREATE VIEW hugeinfo_holders AS
SELECT kind,
       pid,
       name,
       owner,
       owner_uid,
       is_of_this_server,
       page_size_bytes,
       held_bytes,
       held_pages,
       min_size_bytes,
       max_size_bytes
FROM hugeinfo_holders();

REVOKE ALL ON FUNCTION hugeinfo_holders() FROM PUBLIC;
REVOKE ALL ON hugeinfo_holders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_holders() TO pg_monitor;
GRANT SELECT ON hugeinfo_holders TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_holders() IS
'Holders of huge pages of this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_holders IS
'Holders of huge pages of this host: processes, hugetlbfs mounts, and pages that these do not explain.';
COMMENT ON COLUMN hugeinfo_holders.kind IS
'process, mount, or unexplained, which includes everything that is not visible from here.';
COMMENT ON COLUMN hugeinfo_holders.pid IS
'Process ID; NULL if the holder is not a process.';
COMMENT ON COLUMN hugeinfo_holders.name IS
'Name of the program, or directory of the mount.';
COMMENT ON COLUMN hugeinfo_holders.owner IS
'Name of the user of the process in /etc/passwd; NULL if the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_holders.owner_uid IS
'ID of the user of the process.';
COMMENT ON COLUMN hugeinfo_holders.is_of_this_server IS
'Whether the holder is a process of this server; NULL if /proc belongs to another PID namespace.';
COMMENT ON COLUMN hugeinfo_holders.page_size_bytes IS
'Bytes of one of its huge pages; NULL for several sizes, or if unknown.';
COMMENT ON COLUMN hugeinfo_holders.held_bytes IS
'Bytes of huge pages that a process has faulted in, that are reserved for a mount or used by its files, or that are unexplained.';
COMMENT ON COLUMN hugeinfo_holders.held_pages IS
'held_bytes in pages.';
COMMENT ON COLUMN hugeinfo_holders.min_size_bytes IS
'Bytes that are reserved for files of the mount (min_size).';
COMMENT ON COLUMN hugeinfo_holders.max_size_bytes IS
'Limit on the bytes of files of the mount (size); NULL if there is none.';
