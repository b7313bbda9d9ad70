-- Small pages and two sizes of huge ones, on two nodes.
ALTER FUNCTION hugeinfo_numa() ROWS 6;

CREATE VIEW hugeinfo_numa AS
SELECT numa_node,
       page_size_bytes,
       is_used_by_server,
       total_pages,
       free_pages,
       surplus_pages,
       segment_pages
FROM hugeinfo_numa();

REVOKE ALL ON FUNCTION hugeinfo_numa() FROM PUBLIC;
REVOKE ALL ON hugeinfo_numa FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_numa() TO pg_monitor;
GRANT SELECT ON hugeinfo_numa TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_numa() IS
'Each NUMA node and page size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_numa IS
'Each NUMA node and page size: its part of the pool, and its part of the main segment. Touches no page of the segment, but walks the page tables of the process that has touched most of it: the kernel''s work grows with that. NULL: the kernel does not report it. No row: the kernel knows no NUMA, or /sys cannot be read.';
COMMENT ON COLUMN hugeinfo_numa.numa_node IS
'Number of the node. There can be holes between numbers. What the node has as a whole: hugeinfo_numa_nodes.';
COMMENT ON COLUMN hugeinfo_numa.page_size_bytes IS
'Bytes of a page: small pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_numa.is_used_by_server IS
'Whether the main shared memory segment lies on such pages.';
COMMENT ON COLUMN hugeinfo_numa.total_pages IS
'Pages of this size that the pool has on this node, surplus ones included (nr_hugepages in /sys/devices/system/node/nodeN/hugepages). NULL for small pages, which have no pool, and on a node without memory.';
COMMENT ON COLUMN hugeinfo_numa.free_pages IS
'Pages of them that nobody has touched yet, promised or not (free_hugepages). What is promised is not known by node.';
COMMENT ON COLUMN hugeinfo_numa.surplus_pages IS
'Pages of them beyond the persistent ones (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_numa.segment_pages IS
'Pages of page_size_bytes of the main segment that lie on this node, as far as one process has touched them: that which has touched most, by RssShmem and HugetlbPages in /proc/PID/status. A lower bound: of pages that only others have touched that process knows nothing. From N0=, N1= and so on in its numa_maps; no page is touched for it. NULL: numa_maps is missing or denied.';
