ALTER FUNCTION hugeinfo_mappings() ROWS 100;
ALTER FUNCTION hugeinfo_mappings(integer) ROWS 100;

CREATE VIEW hugeinfo_mappings AS
SELECT pid,
       start_address,
       end_address,
       size_bytes,
       permissions,
       file_offset_bytes,
       device,
       inode,
       path,
       kind,
       page_size_bytes,
       rss_bytes,
       pss_bytes,
       pss_dirty_bytes,
       shared_clean_bytes,
       shared_dirty_bytes,
       private_clean_bytes,
       private_dirty_bytes,
       referenced_bytes,
       anonymous_bytes,
       ksm_bytes,
       lazy_free_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       file_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes,
       swap_bytes,
       swap_pss_bytes,
       locked_bytes,
       vm_flags
FROM hugeinfo_mappings();

CREATE VIEW hugeinfo_postmaster_mappings AS
SELECT pid,
       start_address,
       end_address,
       size_bytes,
       permissions,
       file_offset_bytes,
       device,
       inode,
       path,
       kind,
       page_size_bytes,
       rss_bytes,
       pss_bytes,
       pss_dirty_bytes,
       shared_clean_bytes,
       shared_dirty_bytes,
       private_clean_bytes,
       private_dirty_bytes,
       referenced_bytes,
       anonymous_bytes,
       ksm_bytes,
       lazy_free_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       file_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes,
       swap_bytes,
       swap_pss_bytes,
       locked_bytes,
       vm_flags
FROM hugeinfo_mappings(hugeinfo_postmaster_pid());

REVOKE ALL ON FUNCTION hugeinfo_mappings(), hugeinfo_mappings(integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION hugeinfo_postmaster_pid() FROM PUBLIC;
REVOKE ALL ON hugeinfo_mappings FROM PUBLIC;
REVOKE ALL ON hugeinfo_postmaster_mappings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_mappings(), hugeinfo_mappings(integer) TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugeinfo_postmaster_pid() TO pg_monitor;
GRANT SELECT ON hugeinfo_mappings TO pg_monitor;
GRANT SELECT ON hugeinfo_postmaster_mappings TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_mappings() IS
'Each mapping of this backend, by address; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_mappings(integer) IS
'Each mapping of one process of this server, by address, with the columns of the view hugeinfo_mappings.';
COMMENT ON FUNCTION hugeinfo_postmaster_pid() IS
'Process ID of the postmaster; in single-user mode, of this process.';
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
COMMENT ON COLUMN hugeinfo_mappings.file_offset_bytes IS
'Offset in the file at which the mapping starts.';
COMMENT ON COLUMN hugeinfo_mappings.device IS
'Device of the file as major:minor, in hexadecimal.';
COMMENT ON COLUMN hugeinfo_mappings.inode IS
'Inode of the file; 0 for private anonymous memory.';
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
COMMENT ON COLUMN hugeinfo_mappings.pss_dirty_bytes IS
'The dirty part of pss_bytes (Pss_Dirty; Linux 6.0).';
COMMENT ON COLUMN hugeinfo_mappings.shared_clean_bytes IS
'Clean bytes that other processes also map (Shared_Clean).';
COMMENT ON COLUMN hugeinfo_mappings.shared_dirty_bytes IS
'Dirty bytes that other processes also map (Shared_Dirty).';
COMMENT ON COLUMN hugeinfo_mappings.private_clean_bytes IS
'Clean bytes that no other process maps (Private_Clean).';
COMMENT ON COLUMN hugeinfo_mappings.private_dirty_bytes IS
'Dirty bytes that no other process maps (Private_Dirty).';
COMMENT ON COLUMN hugeinfo_mappings.referenced_bytes IS
'Bytes marked as accessed (Referenced).';
COMMENT ON COLUMN hugeinfo_mappings.anonymous_bytes IS
'Bytes that belong to no file (Anonymous).';
COMMENT ON COLUMN hugeinfo_mappings.ksm_bytes IS
'Bytes merged with equal pages (KSM; Linux 6.8).';
COMMENT ON COLUMN hugeinfo_mappings.lazy_free_bytes IS
'Bytes that the process freed with MADV_FREE and the kernel has not reclaimed yet (LazyFree).';
COMMENT ON COLUMN hugeinfo_mappings.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_mappings.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_mappings.file_thp_bytes IS
'Bytes of files on transparent huge pages (FilePmdMapped).';
COMMENT ON COLUMN hugeinfo_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.swap_bytes IS
'Bytes swapped out (Swap).';
COMMENT ON COLUMN hugeinfo_mappings.swap_pss_bytes IS
'swap_bytes with each page divided by the number of processes that share it (SwapPss).';
COMMENT ON COLUMN hugeinfo_mappings.locked_bytes IS
'Bytes locked in memory (Locked).';
COMMENT ON COLUMN hugeinfo_mappings.vm_flags IS
'Flags of the mapping in the kernel (VmFlags), two letters each; ht means huge pages.';
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
COMMENT ON COLUMN hugeinfo_postmaster_mappings.file_offset_bytes IS
'Offset in the file at which the mapping starts.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.device IS
'Device of the file as major:minor, in hexadecimal.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.inode IS
'Inode of the file; 0 for private anonymous memory.';
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
COMMENT ON COLUMN hugeinfo_postmaster_mappings.pss_dirty_bytes IS
'The dirty part of pss_bytes (Pss_Dirty; Linux 6.0).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_clean_bytes IS
'Clean bytes that other processes also map (Shared_Clean).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_dirty_bytes IS
'Dirty bytes that other processes also map (Shared_Dirty).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.private_clean_bytes IS
'Clean bytes that no other process maps (Private_Clean).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.private_dirty_bytes IS
'Dirty bytes that no other process maps (Private_Dirty).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.referenced_bytes IS
'Bytes marked as accessed (Referenced).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.anonymous_bytes IS
'Bytes that belong to no file (Anonymous).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.ksm_bytes IS
'Bytes merged with equal pages (KSM; Linux 6.8).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.lazy_free_bytes IS
'Bytes that the process freed with MADV_FREE and the kernel has not reclaimed yet (LazyFree).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.file_thp_bytes IS
'Bytes of files on transparent huge pages (FilePmdMapped).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.swap_bytes IS
'Bytes swapped out (Swap).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.swap_pss_bytes IS
'swap_bytes with each page divided by the number of processes that share it (SwapPss).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.locked_bytes IS
'Bytes locked in memory (Locked).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.vm_flags IS
'Flags of the mapping in the kernel (VmFlags), two letters each; ht means huge pages.';
