ALTER FUNCTION hugeinfo_numa_nodes() ROWS 2;

CREATE VIEW hugeinfo_numa_nodes AS
SELECT numa_node,
       is_allowed,
       processors,
       memory_total_bytes,
       memory_free_bytes
FROM hugeinfo_numa_nodes();

REVOKE ALL ON FUNCTION hugeinfo_numa_nodes() FROM PUBLIC;
REVOKE ALL ON hugeinfo_numa_nodes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_numa_nodes() TO pg_monitor;
GRANT SELECT ON hugeinfo_numa_nodes TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_numa_nodes() IS
'Each NUMA node of the host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_numa_nodes IS
'Each NUMA node of the host: its memory, its processors, and whether this server is allowed to use it.';
COMMENT ON COLUMN hugeinfo_numa_nodes.numa_node IS
'Number of the node; numbers can have gaps.';
COMMENT ON COLUMN hugeinfo_numa_nodes.is_allowed IS
'Whether cpuset and numactl --membind allow this server to use memory of this node.';
COMMENT ON COLUMN hugeinfo_numa_nodes.processors IS
'Number of processors of the node that are online; 0 for a node that has only memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_total_bytes IS
'Bytes of RAM of the node (MemTotal); 0 for a node without memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_free_bytes IS
'Bytes of unused RAM of the node, without cached files (MemFree).';
