-- Small pages, and on most machines two sizes of huge pages.
ALTER FUNCTION hugeinfo_page_tables() ROWS 3;

CREATE VIEW hugeinfo_page_tables AS
SELECT page_size_bytes,
       is_used_by_server,
       one_backend_bytes,
       present_backends_bytes,
       max_connections_bytes,
       now_bytes,
       saving_bytes
FROM hugeinfo_page_tables();

REVOKE ALL ON FUNCTION hugeinfo_page_tables() FROM PUBLIC;
REVOKE ALL ON hugeinfo_page_tables FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_page_tables() TO pg_monitor;
GRANT SELECT ON hugeinfo_page_tables TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_page_tables() IS
'What page tables cost now, and what they would cost on pages of each size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_page_tables IS
'What page tables for the main shared memory segment would cost on pages of each size, and what all page tables cost now.';
COMMENT ON COLUMN hugeinfo_page_tables.page_size_bytes IS
'Bytes of a page: small pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_page_tables.is_used_by_server IS
'Whether the main shared memory segment is on pages of this size now.';
COMMENT ON COLUMN hugeinfo_page_tables.one_backend_bytes IS
'Bytes of page tables of one process that has touched the whole main segment on pages of this size: 8 bytes for each page. The upper levels of page tables add less than 1 %.';
COMMENT ON COLUMN hugeinfo_page_tables.present_backends_bytes IS
'one_backend_bytes times the number of processes that the server has now.';
COMMENT ON COLUMN hugeinfo_page_tables.max_connections_bytes IS
'one_backend_bytes times max_connections.';
COMMENT ON COLUMN hugeinfo_page_tables.now_bytes IS
'Bytes of page tables that all processes of this server have now, also for private memory (VmPTE). Page tables that processes share count for each of them.';
COMMENT ON COLUMN hugeinfo_page_tables.saving_bytes IS
'Bytes of page tables that these processes would save if the main segment were on pages of this size. An estimate: the process with the fewest page tables is taken to have them for private memory only, and every other process to have as many for private memory. What a process has beyond that counts for the segment, up to one_backend_bytes of the present page size. 0 for the size in use. NULL for smaller pages, since the kernel''s figures do not tell enough. Also NULL if the size in use is unknown or the kernel does not report page tables.';
