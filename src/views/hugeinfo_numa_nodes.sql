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
'Each NUMA node of the host: its memory, its processors, and whether this server may use it. Walks no page tables. Huge pages of a node are in hugeinfo_numa. NULL: the kernel does not report it. No row: the kernel has no NUMA support, or /sys cannot be read.';
COMMENT ON COLUMN hugeinfo_numa_nodes.numa_node IS
'Number of the node; numbers can have gaps.';
COMMENT ON COLUMN hugeinfo_numa_nodes.is_allowed IS
'Whether this server may take memory from this node: its cpuset (Mems_allowed_list in /proc/PID/status of the postmaster) and numactl --membind allow it. It cannot use huge pages on other nodes. False for a node without memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.processors IS
'Number of processors of the node that are online (cpulist in /sys/devices/system/node/nodeN). 0: the node has only memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_total_bytes IS
'Bytes of RAM of the node (MemTotal in /sys/devices/system/node/nodeN/meminfo). 0: the node has only processors or devices.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_free_bytes IS
'Bytes of unused RAM (MemFree). Cached files do not count as unused, although the kernel can give their memory to others.';
