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
'Page tables now and on pages of each size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_page_tables IS
'Page tables of this server now, and page tables for the main segment on pages of each size.';
COMMENT ON COLUMN hugeinfo_page_tables.page_size_bytes IS
'Bytes of a page: regular pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_page_tables.is_used_by_server IS
'Whether the main shared memory segment is on pages of this size now.';
COMMENT ON COLUMN hugeinfo_page_tables.one_backend_bytes IS
'Bytes of page tables of one process that has touched the whole main segment on pages of this size.';
COMMENT ON COLUMN hugeinfo_page_tables.present_backends_bytes IS
'one_backend_bytes times the number of current processes.';
COMMENT ON COLUMN hugeinfo_page_tables.max_connections_bytes IS
'one_backend_bytes times max_connections.';
COMMENT ON COLUMN hugeinfo_page_tables.now_bytes IS
'Bytes of page tables that all processes of this server have now (VmPTE), the same in each row.';
COMMENT ON COLUMN hugeinfo_page_tables.saving_bytes IS
'Estimate of the bytes of page tables that these processes would save on pages of this size; NULL if unknown.';
