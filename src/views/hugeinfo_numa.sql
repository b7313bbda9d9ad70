-- Small pages and two sizes of huge pages, on two nodes.
ALTER FUNCTION hugeinfo_numa() ROWS 6;

CREATE VIEW hugeinfo_numa AS
SELECT numa_node,
       page_size_bytes,
       is_used_by_server,
       total_pages,
       free_pages,
       surplus_pages,
       touched_segment_pages,
       is_allowed,
       processors,
       memory_total_bytes,
       memory_free_bytes
FROM hugeinfo_numa();

REVOKE ALL ON FUNCTION hugeinfo_numa() FROM PUBLIC;
REVOKE ALL ON hugeinfo_numa FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_numa() TO pg_monitor;
GRANT SELECT ON hugeinfo_numa TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_numa() IS
'Each NUMA node and page size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_numa IS
'Each NUMA node and page size: its part of the pool, and its part of the main segment; the row of regular pages also has the memory and the processors of the node.';
COMMENT ON COLUMN hugeinfo_numa.numa_node IS
'Number of the node; numbers can have gaps.';
COMMENT ON COLUMN hugeinfo_numa.page_size_bytes IS
'Bytes of a page: regular pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_numa.is_used_by_server IS
'Whether the main shared memory segment is on pages of this size.';
COMMENT ON COLUMN hugeinfo_numa.total_pages IS
'Pages of the pool on this node, including surplus pages; NULL for regular pages, and on a node without memory.';
COMMENT ON COLUMN hugeinfo_numa.free_pages IS
'Pages of total_pages that no process has faulted in, reserved or not.';
COMMENT ON COLUMN hugeinfo_numa.surplus_pages IS
'Pages of total_pages beyond the persistent ones.';
COMMENT ON COLUMN hugeinfo_numa.touched_segment_pages IS
'Pages of the main segment on this node that one process has faulted in, a lower bound (numa_maps); NULL if it cannot be read.';
COMMENT ON COLUMN hugeinfo_numa.is_allowed IS
'Whether cpuset and numactl --membind allow this server to use memory of this node; NULL for huge pages.';
COMMENT ON COLUMN hugeinfo_numa.processors IS
'Number of processors of the node that are online, 0 for a node that has only memory; NULL for huge pages.';
COMMENT ON COLUMN hugeinfo_numa.memory_total_bytes IS
'Bytes of RAM of the node (MemTotal), 0 for a node without memory; NULL for huge pages.';
COMMENT ON COLUMN hugeinfo_numa.memory_free_bytes IS
'Bytes of unused RAM of the node, without cached files (MemFree); NULL for huge pages.';
