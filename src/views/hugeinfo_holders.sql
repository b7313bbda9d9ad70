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
'Who holds huge pages of this host: each process that uses some, each mount of hugetlbfs, and for each pool the pages in use or reserved that none of these explains. Shared pages count in the row of each process, so a sum over processes means nothing. NULL: it may not be read, or there is no such thing. Not seen: processes of other users where /proc is mounted with hidepid, those outside this server''s PID namespace, and mounts outside its mount namespace; what they hold is unexplained.';
COMMENT ON COLUMN hugeinfo_holders.kind IS
'process, mount, or unexplained: System V segments that nobody is attached to, files without a process on a mount without size, and all that cannot be seen from here.';
COMMENT ON COLUMN hugeinfo_holders.pid IS
'Number of the process.';
COMMENT ON COLUMN hugeinfo_holders.name IS
'Name of its program, at most 15 bytes of it (/proc/PID/stat); of a mount the directory (/proc/self/mountinfo).';
COMMENT ON COLUMN hugeinfo_holders.owner IS
'Name of the user that the process runs as, from /etc/passwd as this server sees it. NULL: that number has no name there.';
COMMENT ON COLUMN hugeinfo_holders.owner_uid IS
'Number of that user (Uid in /proc/PID/status).';
COMMENT ON COLUMN hugeinfo_holders.is_of_this_server IS
'Whether it is a process of this server. NULL: /proc does not show this server''s own processes by the numbers that it knows.';
COMMENT ON COLUMN hugeinfo_holders.page_size_bytes IS
'Bytes of one of its huge pages. NULL: of several sizes, or unknown.';
COMMENT ON COLUMN hugeinfo_holders.held_bytes IS
'Bytes of huge pages: of a process those that it has touched (HugetlbPages in /proc/PID/status), of a mount what is reserved for it or, where it has a size, what its files take (statfs), of what is unexplained at least so much.';
COMMENT ON COLUMN hugeinfo_holders.held_pages IS
'The same in pages.';
COMMENT ON COLUMN hugeinfo_holders.min_size_bytes IS
'Bytes that are reserved for the files of the mount, whether there are any or not (min_size).';
COMMENT ON COLUMN hugeinfo_holders.max_size_bytes IS
'Bytes that the files of the mount may take (size). NULL: as many as there are.';
