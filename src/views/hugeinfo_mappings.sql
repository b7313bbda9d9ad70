ALTER FUNCTION hugeinfo_mappings(integer) ROWS 100;
ALTER FUNCTION hugeinfo_postmaster_mappings() ROWS 100;

-- With arguments: another function in this schema could match a call without any.
CREATE VIEW hugeinfo_mappings AS
SELECT pid,
       start_address,
       end_address,
       size_bytes,
       permissions,
       path,
       kind,
       page_size_bytes,
       rss_bytes,
       pss_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes,
       swap_bytes
FROM hugeinfo_mappings(pg_catalog.pg_backend_pid());

CREATE VIEW hugeinfo_postmaster_mappings AS
SELECT pid,
       start_address,
       end_address,
       size_bytes,
       permissions,
       path,
       kind,
       page_size_bytes,
       rss_bytes,
       pss_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes,
       swap_bytes
FROM hugeinfo_postmaster_mappings();

REVOKE ALL ON FUNCTION hugeinfo_mappings(integer), hugeinfo_postmaster_mappings() FROM PUBLIC;
REVOKE ALL ON hugeinfo_mappings FROM PUBLIC;
REVOKE ALL ON hugeinfo_postmaster_mappings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_mappings(integer), hugeinfo_postmaster_mappings() TO pg_monitor;
GRANT SELECT ON hugeinfo_mappings TO pg_monitor;
GRANT SELECT ON hugeinfo_postmaster_mappings TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_mappings(integer) IS
'Each mapping of one process of this server, by address, with the columns of the view hugeinfo_mappings.';
COMMENT ON FUNCTION hugeinfo_postmaster_mappings() IS
'Each mapping of the postmaster, by address; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_mappings IS
'Each mapping of this backend, by address (/proc/PID/smaps).';
COMMENT ON COLUMN hugeinfo_mappings.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_mappings.start_address IS
'First address, in hexadecimal; NULL without the privileges of pg_read_server_files, because addresses help attackers.';
COMMENT ON COLUMN hugeinfo_mappings.end_address IS
'First address after the mapping; NULL when start_address is NULL.';
COMMENT ON COLUMN hugeinfo_mappings.size_bytes IS
'Bytes of address space.';
COMMENT ON COLUMN hugeinfo_mappings.permissions IS
'Permissions as in /proc/PID/maps: r, w and x, then p (private) or s (shared).';
COMMENT ON COLUMN hugeinfo_mappings.path IS
'Name of the file, with special characters as a backslash and octal digits; NULL for anonymous memory, or without the privileges of pg_read_server_files.';
COMMENT ON COLUMN hugeinfo_mappings.kind IS
'Use of the mapping: main segment, sysv shim, dynamic shared memory, heap, stack, anonymous, executable, library, file, or kernel.';
COMMENT ON COLUMN hugeinfo_mappings.page_size_bytes IS
'Bytes of a page that backs it (KernelPageSize), regardless of transparent huge pages.';
COMMENT ON COLUMN hugeinfo_mappings.rss_bytes IS
'Bytes in RAM, without huge pages (Rss).';
COMMENT ON COLUMN hugeinfo_mappings.pss_bytes IS
'rss_bytes with each page divided by the number of processes that map it (Pss).';
COMMENT ON COLUMN hugeinfo_mappings.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_mappings.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.swap_bytes IS
'Bytes swapped out (Swap).';
COMMENT ON VIEW hugeinfo_postmaster_mappings IS
'Each mapping of the postmaster, by address (/proc/PID/smaps).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.start_address IS
'First address, in hexadecimal; NULL without the privileges of pg_read_server_files, because addresses help attackers.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.end_address IS
'First address after the mapping; NULL when start_address is NULL.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.size_bytes IS
'Bytes of address space.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.permissions IS
'Permissions as in /proc/PID/maps: r, w and x, then p (private) or s (shared).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.path IS
'Name of the file, with special characters as a backslash and octal digits; NULL for anonymous memory, or without the privileges of pg_read_server_files.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.kind IS
'Use of the mapping: main segment, sysv shim, dynamic shared memory, heap, stack, anonymous, executable, library, file, or kernel.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.page_size_bytes IS
'Bytes of a page that backs it (KernelPageSize), regardless of transparent huge pages.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.rss_bytes IS
'Bytes in RAM, without huge pages (Rss).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.pss_bytes IS
'rss_bytes with each page divided by the number of processes that map it (Pss).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.swap_bytes IS
'Bytes swapped out (Swap).';
