-- The contract of hugeinfo_numa_nodes. On a kernel without NUMA support, there is no row.
\d hugeinfo_numa_nodes

-- a row for each node, in order
SELECT (SELECT array_agg(numa_node) FROM hugeinfo_numa_nodes)
     IS NOT DISTINCT FROM (SELECT array_agg(substr(name, 5)::bigint ORDER BY substr(name, 5)::bigint)
                           FROM pg_ls_dir('/sys/devices/system/node', true, false) AS name WHERE name ~ '^node[0-9]+$') AS nodes;

-- the node's files
SELECT n.numa_node
FROM hugeinfo_numa_nodes AS n,
     LATERAL (SELECT '/sys/devices/system/node/node' || numa_node AS dir) AS d
WHERE n.memory_total_bytes IS DISTINCT FROM 1024 * substring(pg_read_file(dir || '/meminfo') from 'MemTotal: *([0-9]+) kB')::bigint
   OR (n.memory_free_bytes BETWEEN 0 AND n.memory_total_bytes) IS NOT TRUE
   OR n.processors IS DISTINCT FROM (
        SELECT coalesce(sum(coalesce(nullif(split_part(part, '-', 2), ''), part)::int - split_part(part, '-', 1)::int + 1), 0)
        FROM regexp_split_to_table(rtrim(pg_read_file(dir || '/cpulist'), E'\n'), ',') AS part WHERE part <> '');

-- memory counts once with any number of page sizes; a server that is not bound is allowed to use
-- all nodes
SELECT coalesce(sum(memory_total_bytes) = 1024 * sum(substring(pg_read_file('/sys/devices/system/node/node' || numa_node || '/meminfo')
                                                                from 'MemTotal: *([0-9]+) kB')::bigint), true) AS sum,
       coalesce(bool_and(is_allowed), true) AS is_allowed
FROM hugeinfo_numa_nodes;
