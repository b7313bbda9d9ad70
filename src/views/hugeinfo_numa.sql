-- Small pages and two sizes of huge pages, on two nodes.
ALTER FUNCTION hugeinfo_numa() ROWS 6;

CREATE VIEW hugeinfo_numa AS
SELECT numa_node,
       page_size_bytes,
       is_used_by_server,
       total_pages,
       free_pages,
       surplus_pages,
       touched_segment_pages
FROM hugeinfo_numa();

REVOKE ALL ON FUNCTION hugeinfo_numa() FROM PUBLIC;
REVOKE ALL ON hugeinfo_numa FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_numa() TO pg_monitor;
GRANT SELECT ON hugeinfo_numa TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_numa() IS
'Each NUMA node and page size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_numa IS
'Each NUMA node and page size: its part of the pool, and its part of the main segment. Touches no page of the segment. Walks page tables: on small pages those of the process that has touched most of it, and the more that is, the longer it takes; on huge pages those of the eight that have touched most. NULL: the kernel does not report it. No row: the kernel has no NUMA support, or /sys cannot be read.';
COMMENT ON COLUMN hugeinfo_numa.numa_node IS
'Number of the node; numbers can have gaps. hugeinfo_numa_nodes has the figures of the whole node.';
COMMENT ON COLUMN hugeinfo_numa.page_size_bytes IS
'Bytes of a page: small pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_numa.is_used_by_server IS
'Whether the main shared memory segment is on pages of this size.';
COMMENT ON COLUMN hugeinfo_numa.total_pages IS
'Pages of the pool on this node, surplus pages included (nr_hugepages in /sys/devices/system/node/nodeN/hugepages). NULL for small pages, which have no pool, and on a node without memory.';
COMMENT ON COLUMN hugeinfo_numa.free_pages IS
'Pages of total_pages that nobody has touched yet, reserved or not (free_hugepages). The kernel does not count reserved pages by node.';
COMMENT ON COLUMN hugeinfo_numa.surplus_pages IS
'Pages of total_pages beyond the persistent ones (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_numa.touched_segment_pages IS
'Pages of the main segment on this node that one process has touched: the process that has touched most. On small pages RssShmem in /proc/PID/status tells which that is; on huge pages, where processes share page tables, it is the one that sees most of the eight with the largest HugetlbPages. A lower bound: pages that only other processes have touched do not count. From N0=, N1= and so on in its numa_maps; this touches no page. NULL: numa_maps is missing or may not be read.';
