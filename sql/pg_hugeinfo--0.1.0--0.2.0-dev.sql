\echo Use "ALTER EXTENSION pg_hugeinfo UPDATE TO '0.2.0-dev'" to load this file. \quit

COMMENT ON VIEW hugeinfo_status IS
'Whether huge pages back this server, whether a restart would get them, what is wrong and what to type: one row, read from the kernel now. Walks no page tables; before Linux 6.11 those of the postmaster, up to a main segment on huge pages. NULL: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_status.in_use IS
'Whether the kernel backs the main shared memory segment with huge pages (hugetlb; transparent huge pages do not count). Read from the mapping itself: PROCMAP_QUERY, else its name in /proc/PID/maps, KernelPageSize in smaps or kernelpagesize_kB in numa_maps.';
COMMENT ON COLUMN hugeinfo_next_start.recommended_nr_hugepages IS
'Pages that this pool should have if the server is to use it: what this server needs, plus what others use or reserve. In the pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_pools.recommended_nr_hugepages IS
'Pages that this pool should have if the server is to use it: what this server needs, plus what others use or reserve. In the pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_status.recommended_nr_hugepages IS
'Pages that the pool should have, neither too few nor too many: what this server needs, plus what others use or reserve. In a pool of the default size, plus what other PostgreSQL servers on small pages would take, if the host has memory for all of them. Where other servers cannot be seen, as from a container, plus idle pages, which they may want.';
COMMENT ON COLUMN hugeinfo_pressure.memory_limit_bytes IS
'Limit on the memory of the group and those below it, in bytes (v1 memory.limit_in_bytes, v2 memory.max); of the group alone where its memory.use_hierarchy is 0, as v1 can have it up to Linux 5.10. NULL: no limit, or the row is the host; for its RAM see hugeinfo_host.';
