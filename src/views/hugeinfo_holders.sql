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
'Who holds huge pages of this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_holders IS
'Who holds huge pages of this host: a row for each process that uses some, for each hugetlbfs mount, and for each pool with pages in use or reserved that these rows do not explain. Shared pages count in the row of each process, so a sum over processes is too high. NULL: it may not be read, or it does not exist. Not visible: processes of other users if /proc is mounted with hidepid, processes outside this server''s PID namespace, and mounts outside its mount namespace. What they hold is unexplained.';
COMMENT ON COLUMN hugeinfo_holders.kind IS
'process, mount, or unexplained. Unexplained are System V segments without attached processes, files without a process on a mount without a size, and everything that is not visible from here.';
COMMENT ON COLUMN hugeinfo_holders.pid IS
'Process ID. NULL: not a process.';
COMMENT ON COLUMN hugeinfo_holders.name IS
'Process: name of its program, at most 15 bytes (/proc/PID/stat). Mount: its directory (/proc/self/mountinfo).';
COMMENT ON COLUMN hugeinfo_holders.owner IS
'Name of the user that the process runs as, from /etc/passwd as this server sees it. NULL: the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_holders.owner_uid IS
'ID of that user (Uid in /proc/PID/status).';
COMMENT ON COLUMN hugeinfo_holders.is_of_this_server IS
'Whether it is a process of this server. NULL: /proc belongs to another PID namespace, so process IDs differ.';
COMMENT ON COLUMN hugeinfo_holders.page_size_bytes IS
'Bytes of one of its huge pages. NULL: several sizes, or unknown.';
COMMENT ON COLUMN hugeinfo_holders.held_bytes IS
'Bytes of huge pages. Process: what it has touched (HugetlbPages in /proc/PID/status). Mount: what is reserved for it or, if it has a size, what its files take (statfs). Unexplained: a lower bound.';
COMMENT ON COLUMN hugeinfo_holders.held_pages IS
'The same in pages.';
COMMENT ON COLUMN hugeinfo_holders.min_size_bytes IS
'Bytes that are reserved for files of the mount, even if there are none (min_size).';
COMMENT ON COLUMN hugeinfo_holders.max_size_bytes IS
'Bytes that files of the mount may take at most (size). NULL: no limit.';
