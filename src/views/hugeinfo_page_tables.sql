-- Small pages, and on most machines two sizes of huge ones.
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
'What page tables cost now, and would cost on pages of each size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_page_tables IS
'What page tables for the main shared memory segment would cost on pages of each size, beside what all page tables cost now.';
COMMENT ON COLUMN hugeinfo_page_tables.page_size_bytes IS
'Bytes of a page: small pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_page_tables.is_used_by_server IS
'Whether the main shared memory segment lies on such pages now.';
COMMENT ON COLUMN hugeinfo_page_tables.one_backend_bytes IS
'Bytes of page tables of one process that has touched the whole segment on such pages: 8 for each page. The levels above add less than 1 %.';
COMMENT ON COLUMN hugeinfo_page_tables.present_backends_bytes IS
'The same for all processes that the server has now.';
COMMENT ON COLUMN hugeinfo_page_tables.max_connections_bytes IS
'The same for max_connections processes.';
COMMENT ON COLUMN hugeinfo_page_tables.now_bytes IS
'Bytes of page tables that all processes of this server have now, private memory included (VmPTE). Tables that processes share count for each of them.';
COMMENT ON COLUMN hugeinfo_page_tables.saving_bytes IS
'Bytes that these processes would have less in page tables if the main segment lay on such pages: an estimate. The process with the fewest page tables has them for private memory, and each of the others as much; what is beyond, up to one_backend_bytes of the present page size, is for the segment. 0 for the size in use. NULL for smaller pages, which the kernel''s figures say too little about; also where the size in use cannot be seen, or the kernel shows no page tables.';
