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

DROP FUNCTION hugeinfo_report(boolean);
CREATE TYPE hugeinfo_report AS ();
COMMENT ON TYPE hugeinfo_report IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE FUNCTION hugeinfo_report() RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_whole_wrapper';
CREATE FUNCTION hugeinfo_report(redact boolean) RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_wrapper';
CREATE FUNCTION hugeinfo_report(redact text) RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_text_wrapper';
REVOKE ALL ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_report() IS
'Returns a report on this server and its host as one HTML page with pictures. To write it to a file: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. The page is ASCII, at most 100 kB, and has no scripts. Costs as much as hugeinfo_checks and one plan.';
COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'Like hugeinfo_report(). If redact is true, the page has no names of roles, databases, applications, hosts and clusters, and no paths, ports and addresses, so that it can be attached to a public ticket. Returns NULL if redact is NULL.';
COMMENT ON FUNCTION hugeinfo_report(text) IS
'Like hugeinfo_report(boolean), with the value as text, for quoted literals. Returns NULL if redact is NULL.';
COMMENT ON VIEW hugeinfo_meminfo IS
'Each line of /proc/meminfo, in the kernel''s order: memory of the whole host by use. Some lines are parts of others, so do not add them up. A figure too large for bigint is NULL, with a warning.';
COMMENT ON VIEW hugeinfo_vmstat IS
'Each line of /proc/vmstat, in the kernel''s order: counters of the memory management of the whole host. Each kernel has its own set. A number too large for bigint is NULL, with a warning.';
COMMENT ON COLUMN hugeinfo_own_mappings.path IS
'Name of the file as the kernel writes it, with (deleted) after it if the file was removed. Each byte of a control or format character is written as a backslash and three octal digits, such as \012 for a line feed. The same applies to characters that the encoding of this database lacks. NULL: anonymous memory, or no privilege as for start_address.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.path IS
'Name of the file as the kernel writes it, with (deleted) after it if the file was removed. Each byte of a control or format character is written as a backslash and three octal digits, such as \012 for a line feed. The same applies to characters that the encoding of this database lacks. NULL: anonymous memory, or no privilege as for start_address.';
