\echo Use "ALTER EXTENSION pg_hugeinfo UPDATE TO '0.2.0'" to load this file. \quit

-- Views whose columns changed, and functions whose columns or arguments changed, are dropped and
-- created again, with the privileges that they had. This fails if objects outside the extension
-- depend on them: drop those first. All operators are exact matches in pg_catalog, because a role
-- that can create objects in this schema could otherwise provide better matches.
CREATE TEMPORARY TABLE hugeinfo_grants AS
SELECT pg_catalog.format('%s ON %s', a.privilege_type, c.oid::pg_catalog.regclass) AS what,
       a.grantee, a.is_grantable
FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
WHERE c.oid = ANY ('{hugeinfo_checks,hugeinfo_status}'::pg_catalog.regclass[]::pg_catalog.oid[])
    AND a.grantee <> c.relowner
UNION ALL
SELECT pg_catalog.format('%s (%I) ON %s', a.privilege_type, t.attname, c.oid::pg_catalog.regclass),
       a.grantee, a.is_grantable
FROM pg_catalog.pg_class AS c, pg_catalog.pg_attribute AS t, pg_catalog.aclexplode(t.attacl) AS a
WHERE c.oid = ANY ('{hugeinfo_checks,hugeinfo_status}'::pg_catalog.regclass[]::pg_catalog.oid[])
    AND t.attrelid = c.oid AND a.grantee <> c.relowner
UNION ALL
SELECT pg_catalog.format('%s ON FUNCTION %s', a.privilege_type, p.oid::pg_catalog.regprocedure),
       a.grantee, a.is_grantable
FROM pg_catalog.pg_proc AS p, pg_catalog.aclexplode(p.proacl) AS a
WHERE p.oid = ANY ('{hugeinfo_checks(),hugeinfo_host(),hugeinfo_instances(),hugeinfo_report(boolean),hugeinfo_runbook(),hugeinfo_runbook(jsonb),hugeinfo_runbook(text),hugeinfo_status()}'
        ::pg_catalog.regprocedure[]::pg_catalog.oid[])
    AND a.grantee <> p.proowner;

CREATE OR REPLACE VIEW hugeinfo_host AS
SELECT NULL::text AS kernel_release,
       NULL::text AS machine,
       NULL::bigint AS base_page_size_bytes,
       NULL::bigint AS default_huge_page_size_bytes,
       NULL::bigint AS memory_total_bytes,
       NULL::bigint AS memory_available_bytes,
       NULL::bigint AS swap_total_bytes,
       NULL::bigint AS swap_free_bytes,
       NULL::bigint AS page_table_bytes,
       NULL::bigint AS hugetlb_bytes,
       NULL::integer AS overcommit_memory,
       NULL::integer AS overcommit_ratio,
       NULL::bigint AS overcommit_bytes,
       NULL::bigint AS commit_limit_bytes,
       NULL::bigint AS committed_as_bytes,
       NULL::integer AS swappiness,
       NULL::text AS thp_enabled,
       NULL::text AS thp_defrag,
       NULL::text AS thp_shmem_enabled,
       NULL::bigint AS hugetlb_shm_group,
       NULL::integer AS numa_nodes,
       NULL::integer AS processors;
CREATE OR REPLACE VIEW hugeinfo_instances AS
SELECT NULL::integer AS pid,
       NULL::boolean AS is_this_server,
       NULL::text AS owner,
       NULL::bigint AS owner_uid,
       NULL::text AS data_directory,
       NULL::integer AS port,
       NULL::bigint AS segment_bytes,
       NULL::bigint AS page_size_bytes,
       NULL::boolean AS in_use,
       NULL::bigint AS required_pages;
CREATE OR REPLACE VIEW hugeinfo_runbook AS
SELECT NULL::integer AS step,
       NULL::text AS where_to_run,
       NULL::text AS command,
       NULL::text AS why,
       NULL::text AS expected,
       NULL::boolean AS is_disruptive;
DROP VIEW hugeinfo_checks;
DROP VIEW hugeinfo_status;
DROP FUNCTION hugeinfo_checks();
DROP FUNCTION hugeinfo_host();
DROP FUNCTION hugeinfo_instances();
DROP FUNCTION hugeinfo_report(boolean);
DROP FUNCTION hugeinfo_runbook();
DROP FUNCTION hugeinfo_runbook(jsonb);
DROP FUNCTION hugeinfo_runbook(text);
DROP FUNCTION hugeinfo_status();
DROP TYPE hugeinfo_mappings;
DROP TYPE hugeinfo_memory;
DROP TYPE hugeinfo_plan;

ALTER VIEW hugeinfo_own_mappings RENAME TO hugeinfo_mappings;

CREATE TYPE hugeinfo_fit AS ();
CREATE TYPE hugeinfo_report AS ();
COMMENT ON TYPE hugeinfo_fit IS
'Reserves the name of the function, so that no type can capture calls of it.';
COMMENT ON TYPE hugeinfo_report IS
'Reserves the name of the function, so that no type can capture calls of it.';

CREATE FUNCTION hugeinfo_checks() RETURNS TABLE (
	name text, status text, code text, finding text, remedy text, evidence jsonb, steps jsonb,
	severity integer, is_muted boolean)
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_checks_wrapper';
ALTER FUNCTION hugeinfo_checks() ROWS 22;
CREATE VIEW hugeinfo_checks AS
SELECT name,
       status,
       code,
       finding,
       remedy,
       evidence,
       steps,
       severity,
       is_muted
FROM hugeinfo_checks();
REVOKE ALL ON FUNCTION hugeinfo_checks() FROM PUBLIC;
REVOKE ALL ON hugeinfo_checks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_checks() TO pg_monitor;
GRANT SELECT ON hugeinfo_checks TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_checks() IS
'Every check of this server and its host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_checks IS
'Every check of this server and its host, including healthy ones, in order of importance.';
COMMENT ON COLUMN hugeinfo_checks.name IS
'Name of the check; docs/checks.md has a section for each.';
COMMENT ON COLUMN hugeinfo_checks.status IS
'ok, unknown (a source is missing or cannot be read), warning or critical.';
COMMENT ON COLUMN hugeinfo_checks.code IS
'Stable reason for programs, such as fell_back.';
COMMENT ON COLUMN hugeinfo_checks.severity IS
'The status as a number: 0 ok, 1 unknown, 2 warning, 3 critical.';
COMMENT ON COLUMN hugeinfo_checks.is_muted IS
'Whether the setting pg_hugeinfo.muted_checks names this check, so that hugeinfo_status and hugeinfo_runbook leave it out.';
COMMENT ON COLUMN hugeinfo_checks.finding IS
'The result as text: one statement, one number, one cause.';
COMMENT ON COLUMN hugeinfo_checks.evidence IS
'The numbers by name, for programs; null if the kernel does not report a number.';
COMMENT ON COLUMN hugeinfo_checks.remedy IS
'Lines to paste, with other text as comments; NULL if there is nothing to do.';
COMMENT ON COLUMN hugeinfo_checks.steps IS
'The remedy for programs: an array of objects with action, where, is_disruptive, and command or instruction.';

COMMENT ON FUNCTION hugeinfo_fault_rates(interval) IS
'Page faults of each process of this server during a sample of this duration, at most one hour.';
COMMENT ON VIEW hugeinfo_fault_rates IS
'Page faults of each process of this server during one second, as sar -B and pidstat -r show them.';
COMMENT ON COLUMN hugeinfo_fault_rates.backend_type IS
'Type of the process, as in hugeinfo_backends.';
COMMENT ON COLUMN hugeinfo_fault_rates.presence IS
'stayed, came (the process started during the sample), or went (it ended, and its faults are NULL).';
COMMENT ON COLUMN hugeinfo_fault_rates.seconds IS
'Actual length of the sample in seconds.';
COMMENT ON COLUMN hugeinfo_fault_rates.minor_faults IS
'Faults during the sample that did not read from disk.';
COMMENT ON COLUMN hugeinfo_fault_rates.major_faults IS
'Faults during the sample that read from disk.';
COMMENT ON COLUMN hugeinfo_fault_rates.minor_faults_per_second IS
'minor_faults per second.';
COMMENT ON COLUMN hugeinfo_fault_rates.major_faults_per_second IS
'major_faults per second.';

CREATE FUNCTION hugeinfo_fit(pages bigint) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_wrapper';
CREATE FUNCTION hugeinfo_fit(pages bigint, settings jsonb) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_jsonb_wrapper';
CREATE FUNCTION hugeinfo_fit(pages bigint, settings text) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_text_wrapper';
CREATE FUNCTION hugeinfo_fit(pages integer) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_integer_wrapper';
CREATE FUNCTION hugeinfo_fit(pages integer, settings jsonb) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_integer_jsonb_wrapper';
CREATE FUNCTION hugeinfo_fit(pages integer, settings text) RETURNS TABLE (
	shared_buffers text, shared_buffers_bytes bigint, page_size_bytes bigint,
	available_pages bigint, required_pages bigint, segment_bytes bigint, tail_waste_bytes bigint)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_fit_integer_text_wrapper';
ALTER FUNCTION hugeinfo_fit(integer) ROWS 1;
ALTER FUNCTION hugeinfo_fit(integer, jsonb) ROWS 1;
ALTER FUNCTION hugeinfo_fit(integer, text) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint, jsonb) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint, text) ROWS 1;
REVOKE ALL ON FUNCTION hugeinfo_fit(integer), hugeinfo_fit(integer, jsonb), hugeinfo_fit(integer, text),
    hugeinfo_fit(bigint), hugeinfo_fit(bigint, jsonb), hugeinfo_fit(bigint, text) FROM PUBLIC;
COMMENT ON FUNCTION hugeinfo_fit(bigint) IS
'The largest shared_buffers whose main shared memory segment fits into this many huge pages, in one row, with the configuration files on disk; one block more does not fit.';
COMMENT ON FUNCTION hugeinfo_fit(bigint, jsonb) IS
'hugeinfo_fit(bigint) with these settings, as for hugeinfo_plan(jsonb), without shared_buffers; NULL raises an error.';
COMMENT ON FUNCTION hugeinfo_fit(bigint, text) IS
'hugeinfo_fit(bigint, jsonb) with the settings as name=value pairs, as in max_connections=500 huge_page_size=1GB, or as JSON.';
COMMENT ON FUNCTION hugeinfo_fit(integer) IS
'hugeinfo_fit(bigint) for numbers without a cast.';
COMMENT ON FUNCTION hugeinfo_fit(integer, jsonb) IS
'hugeinfo_fit(bigint, jsonb) for numbers without a cast.';
COMMENT ON FUNCTION hugeinfo_fit(integer, text) IS
'hugeinfo_fit(bigint, text) for numbers without a cast.';

CREATE FUNCTION hugeinfo_footprint(exact boolean) RETURNS TABLE (
	in_use boolean, processes bigint, private_bytes bigint, segment_bytes bigint,
	segment_backed_bytes bigint, other_shared_bytes bigint, page_table_bytes bigint,
	swap_bytes bigint, total_bytes bigint, full_total_bytes bigint)
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_footprint_exact_wrapper';
CREATE FUNCTION hugeinfo_footprint(exact text) RETURNS TABLE (
	in_use boolean, processes bigint, private_bytes bigint, segment_bytes bigint,
	segment_backed_bytes bigint, other_shared_bytes bigint, page_table_bytes bigint,
	swap_bytes bigint, total_bytes bigint, full_total_bytes bigint)
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_footprint_text_wrapper';
ALTER FUNCTION hugeinfo_footprint(boolean) ROWS 1;
ALTER FUNCTION hugeinfo_footprint(text) ROWS 1;
REVOKE ALL ON FUNCTION hugeinfo_footprint(boolean), hugeinfo_footprint(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_footprint(boolean), hugeinfo_footprint(text) TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_footprint() IS
'Memory of this server in one row; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_footprint(boolean) IS
'hugeinfo_footprint() with exact private_bytes (Pss_Anon) if exact is true, for which the kernel walks the page tables of each process.';
COMMENT ON FUNCTION hugeinfo_footprint(text) IS
'hugeinfo_footprint(boolean) with the value as text, for quoted literals.';
COMMENT ON VIEW hugeinfo_footprint IS
'Memory of this server in one row: private memory, shared memory, page tables and swap.';
COMMENT ON COLUMN hugeinfo_footprint.in_use IS
'Whether the main shared memory segment is on huge pages.';
COMMENT ON COLUMN hugeinfo_footprint.processes IS
'Number of processes of this server, including the postmaster and the logger.';
COMMENT ON COLUMN hugeinfo_footprint.private_bytes IS
'Bytes of private memory in RAM (RssAnon); an upper bound, because unmodified memory inherited from the postmaster counts once for each process.';
COMMENT ON COLUMN hugeinfo_footprint.segment_bytes IS
'Bytes of the main shared memory segment.';
COMMENT ON COLUMN hugeinfo_footprint.segment_backed_bytes IS
'Bytes of the main segment that occupy memory now: all of it on huge pages, otherwise the part that one process has faulted in.';
COMMENT ON COLUMN hugeinfo_footprint.other_shared_bytes IS
'Bytes of other shared memory, such as dynamic shared memory.';
COMMENT ON COLUMN hugeinfo_footprint.page_table_bytes IS
'Bytes of page tables (VmPTE); page tables that processes share count once for each process.';
COMMENT ON COLUMN hugeinfo_footprint.swap_bytes IS
'Bytes of private memory swapped out (VmSwap); an upper bound for the same reason as private_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.total_bytes IS
'Sum of private_bytes, segment_backed_bytes, other_shared_bytes, page_table_bytes and swap_bytes.';
COMMENT ON COLUMN hugeinfo_footprint.full_total_bytes IS
'total_bytes once the whole main segment is in use, which is the value to compare before and after a switch to huge pages.';

COMMENT ON FUNCTION hugeinfo_holders() IS
'Holders of huge pages of this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_holders IS
'Holders of huge pages of this host: processes, hugetlbfs mounts, and pages that these do not explain.';
COMMENT ON COLUMN hugeinfo_holders.kind IS
'process, mount, or unexplained, which includes everything that is not visible from here.';
COMMENT ON COLUMN hugeinfo_holders.pid IS
'Process ID; NULL if the holder is not a process.';
COMMENT ON COLUMN hugeinfo_holders.name IS
'Name of the program, or directory of the mount.';
COMMENT ON COLUMN hugeinfo_holders.owner IS
'Name of the user of the process in /etc/passwd; NULL if the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_holders.owner_uid IS
'ID of the user of the process.';
COMMENT ON COLUMN hugeinfo_holders.is_of_this_server IS
'Whether the holder is a process of this server; NULL if /proc belongs to another PID namespace.';
COMMENT ON COLUMN hugeinfo_holders.page_size_bytes IS
'Bytes of one of its huge pages; NULL for several sizes, or if unknown.';
COMMENT ON COLUMN hugeinfo_holders.held_bytes IS
'Bytes of huge pages that a process has faulted in, that are reserved for a mount or used by its files, or that are unexplained.';
COMMENT ON COLUMN hugeinfo_holders.held_pages IS
'held_bytes in pages.';
COMMENT ON COLUMN hugeinfo_holders.min_size_bytes IS
'Bytes that are reserved for files of the mount (min_size).';
COMMENT ON COLUMN hugeinfo_holders.max_size_bytes IS
'Limit on the bytes of files of the mount (size); NULL if there is none.';

CREATE FUNCTION hugeinfo_host() RETURNS TABLE (
	kernel_release text, machine text, base_page_size_bytes bigint,
	default_huge_page_size_bytes bigint, memory_total_bytes bigint,
	memory_available_bytes bigint, swap_total_bytes bigint, swap_free_bytes bigint,
	page_table_bytes bigint, hugetlb_bytes bigint, overcommit_memory integer,
	overcommit_ratio integer, overcommit_bytes bigint, commit_limit_bytes bigint,
	committed_as_bytes bigint, swappiness integer, thp_enabled text, thp_defrag text,
	thp_shmem_enabled text, hugetlb_shm_group bigint, numa_nodes integer, processors integer,
	hugetlb_optimize_vmemmap boolean, vmemmap_saving_bytes bigint)
STRICT PARALLEL RESTRICTED COST 10000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_host_wrapper';
ALTER FUNCTION hugeinfo_host() ROWS 1;
CREATE OR REPLACE VIEW hugeinfo_host AS
SELECT kernel_release,
       machine,
       base_page_size_bytes,
       default_huge_page_size_bytes,
       memory_total_bytes,
       memory_available_bytes,
       swap_total_bytes,
       swap_free_bytes,
       page_table_bytes,
       hugetlb_bytes,
       overcommit_memory,
       overcommit_ratio,
       overcommit_bytes,
       commit_limit_bytes,
       committed_as_bytes,
       swappiness,
       thp_enabled,
       thp_defrag,
       thp_shmem_enabled,
       hugetlb_shm_group,
       numa_nodes,
       processors,
       hugetlb_optimize_vmemmap,
       vmemmap_saving_bytes
FROM hugeinfo_host();
REVOKE ALL ON FUNCTION hugeinfo_host() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_host() TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_host() IS
'The host in one row; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_host IS
'The host in one row: kernel, memory, and the kernel settings for memory.';
COMMENT ON COLUMN hugeinfo_host.base_page_size_bytes IS
'Bytes of a regular page.';
COMMENT ON COLUMN hugeinfo_host.default_huge_page_size_bytes IS
'Bytes of a huge page of the default size (Hugepagesize); NULL if the kernel has no huge pages.';
COMMENT ON COLUMN hugeinfo_host.memory_total_bytes IS
'Bytes of usable RAM, including huge page pools (MemTotal).';
COMMENT ON COLUMN hugeinfo_host.memory_available_bytes IS
'Bytes that new programs could use without swapping, excluding huge page pools (MemAvailable).';
COMMENT ON COLUMN hugeinfo_host.hugetlb_bytes IS
'Bytes of RAM in huge page pools of all sizes, used or not (Hugetlb; Linux 4.18).';
COMMENT ON COLUMN hugeinfo_host.overcommit_memory IS
'vm.overcommit_memory: 0 refuses obvious overcommits, 1 nothing, and 2 everything beyond commit_limit_bytes.';
COMMENT ON COLUMN hugeinfo_host.overcommit_ratio IS
'vm.overcommit_ratio: the percentage of RAM without huge page pools that commit_limit_bytes includes.';
COMMENT ON COLUMN hugeinfo_host.overcommit_bytes IS
'vm.overcommit_kbytes in bytes, which replaces overcommit_ratio; NULL if it is 0.';
COMMENT ON COLUMN hugeinfo_host.commit_limit_bytes IS
'Limit on committed bytes with vm.overcommit_memory = 2 (CommitLimit).';
COMMENT ON COLUMN hugeinfo_host.committed_as_bytes IS
'Bytes committed now, without huge pages (Committed_AS).';
COMMENT ON COLUMN hugeinfo_host.swappiness IS
'vm.swappiness, from 0 to 200: how much the kernel prefers swapping to dropping cached files.';
COMMENT ON COLUMN hugeinfo_host.thp_enabled IS
'Mode of transparent huge pages for private memory: always, madvise or never.';
COMMENT ON COLUMN hugeinfo_host.thp_defrag IS
'When a process waits while the kernel allocates a transparent huge page: always, defer, defer+madvise, madvise or never.';
COMMENT ON COLUMN hugeinfo_host.thp_shmem_enabled IS
'Mode of transparent huge pages for shared memory: always, within_size, advise, never, deny or force.';
COMMENT ON COLUMN hugeinfo_host.hugetlb_shm_group IS
'vm.hugetlb_shm_group, which does not affect PostgreSQL.';
COMMENT ON COLUMN hugeinfo_host.numa_nodes IS
'Number of NUMA nodes that are online, with or without memory.';
COMMENT ON COLUMN hugeinfo_host.processors IS
'Number of processors that are online.';
COMMENT ON COLUMN hugeinfo_host.hugetlb_optimize_vmemmap IS
'Whether the kernel frees most page structures of new huge pages (vm.hugetlb_optimize_vmemmap); NULL if this kernel cannot.';
COMMENT ON COLUMN hugeinfo_host.vmemmap_saving_bytes IS
'Bytes of page structures of all huge page pools that vm.hugetlb_optimize_vmemmap saves, or would save if it were on.';

CREATE FUNCTION hugeinfo_instances() RETURNS TABLE (
	pid integer, is_this_server boolean, owner text, owner_uid bigint, data_directory text,
	port integer, segment_bytes bigint, page_size_bytes bigint, in_use boolean,
	required_pages bigint, huge_pages text)
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_instances_wrapper';
ALTER FUNCTION hugeinfo_instances() ROWS 3;
CREATE OR REPLACE VIEW hugeinfo_instances AS
SELECT pid,
       is_this_server,
       owner,
       owner_uid,
       data_directory,
       port,
       segment_bytes,
       page_size_bytes,
       in_use,
       required_pages,
       huge_pages
FROM hugeinfo_instances();
REVOKE ALL ON FUNCTION hugeinfo_instances() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_instances() TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_instances() IS
'Each PostgreSQL server on this host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_instances IS
'Each PostgreSQL server of this host that is visible in /proc, including those of other users; NULL if a value cannot be read.';
COMMENT ON COLUMN hugeinfo_instances.is_this_server IS
'Whether the row is about this server; NULL if /proc belongs to another PID namespace.';
COMMENT ON COLUMN hugeinfo_instances.owner IS
'Name of its user in /etc/passwd; NULL if the user ID has no name there.';
COMMENT ON COLUMN hugeinfo_instances.owner_uid IS
'ID of its user.';
COMMENT ON COLUMN hugeinfo_instances.data_directory IS
'Its data directory (/proc/PID/cwd) or, if that cannot be read, the absolute path after -D in its arguments.';
COMMENT ON COLUMN hugeinfo_instances.port IS
'Its port (line 4 of postmaster.pid).';
COMMENT ON COLUMN hugeinfo_instances.segment_bytes IS
'Bytes of its main shared memory segment, the largest shared memory object that its postmaster maps.';
COMMENT ON COLUMN hugeinfo_instances.page_size_bytes IS
'Bytes of a page that backs this segment, huge or not.';
COMMENT ON COLUMN hugeinfo_instances.required_pages IS
'Huge pages of the default size that this segment needs, rounded up.';
COMMENT ON COLUMN hugeinfo_instances.huge_pages IS
'Setting huge_pages of its next start (off, on or try), from its command line or configuration files; NULL if one of them cannot be read.';

COMMENT ON FUNCTION hugeinfo_meminfo() IS
'Each line of /proc/meminfo, in the order of the kernel; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_meminfo IS
'Each line of /proc/meminfo, in the order of the kernel.';
COMMENT ON COLUMN hugeinfo_meminfo.bytes IS
'The value in bytes, with counts of huge pages multiplied by the default size; NULL if it is not an amount of memory, or below zero.';
COMMENT ON COLUMN hugeinfo_meminfo.huge_pages IS
'The value in huge pages of the default size, rounded up; NULL if bytes is NULL, or if the kernel has no huge pages.';

CREATE VIEW hugeinfo_memory AS
SELECT pid,
       rss_bytes,
       pss_bytes,
       pss_anon_bytes,
       pss_file_bytes,
       pss_shmem_bytes,
       uss_bytes,
       swap_pss_bytes,
       anon_thp_bytes,
       shmem_thp_bytes,
       shared_hugetlb_bytes,
       private_hugetlb_bytes
FROM hugeinfo_memory();
REVOKE ALL ON hugeinfo_memory FROM PUBLIC;
GRANT SELECT ON hugeinfo_memory TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_memory() IS
'Memory of this backend; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_memory(integer) IS
'Memory of one process of this server from /proc/PID/smaps_rollup, or the sum of smaps: RSS, PSS, USS, swap and huge pages.';
COMMENT ON VIEW hugeinfo_memory IS
'Memory of this backend from /proc/PID/smaps_rollup, or the sum of smaps: RSS, PSS, USS, swap and huge pages.';
COMMENT ON COLUMN hugeinfo_memory.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_memory.rss_bytes IS
'Bytes in RAM, without huge pages (Rss).';
COMMENT ON COLUMN hugeinfo_memory.pss_bytes IS
'rss_bytes with each page divided by the number of processes that map it (Pss).';
COMMENT ON COLUMN hugeinfo_memory.pss_anon_bytes IS
'The private part of pss_bytes (Pss_Anon; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.pss_file_bytes IS
'The part of pss_bytes that belongs to files (Pss_File; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.pss_shmem_bytes IS
'The part of pss_bytes that is shared memory on small pages (Pss_Shmem; Linux 5.4).';
COMMENT ON COLUMN hugeinfo_memory.uss_bytes IS
'Bytes that no other process maps (Private_Clean plus Private_Dirty).';
COMMENT ON COLUMN hugeinfo_memory.swap_pss_bytes IS
'Bytes swapped out, with each page divided by the number of processes that share it (SwapPss).';
COMMENT ON COLUMN hugeinfo_memory.anon_thp_bytes IS
'Bytes of private memory on transparent huge pages (AnonHugePages).';
COMMENT ON COLUMN hugeinfo_memory.shmem_thp_bytes IS
'Bytes of shared memory on transparent huge pages (ShmemPmdMapped).';
COMMENT ON COLUMN hugeinfo_memory.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_memory.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';

COMMENT ON FUNCTION hugeinfo_next_start() IS
'Huge pages that the next start needs with the configuration files on disk; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_next_start IS
'Huge pages that the next start needs, and settings that are pending a restart: a row for each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_next_start.waiting_settings IS
'Names of settings in the configuration files that are pending a restart and affect the size of shared memory or huge pages.';
COMMENT ON COLUMN hugeinfo_next_start.huge_pages IS
'Setting huge_pages of the next start: off, on or try.';
COMMENT ON COLUMN hugeinfo_next_start.shared_memory_type IS
'Setting shared_memory_type of the next start; only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_next_start.segment_bytes IS
'Bytes of the main shared memory segment of the next start, exact up to 8 TiB and in whole MB above.';
COMMENT ON COLUMN hugeinfo_next_start.page_size_bytes IS
'Bytes of a page of this pool (/sys/kernel/mm/hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.is_default IS
'Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_next_start.is_requested IS
'Whether the next start asks for pages of this size, or would ask with huge_pages = try and shared_memory_type = mmap.';
COMMENT ON COLUMN hugeinfo_next_start.required_pages IS
'Pages that the main segment of the next start needs, rounded up.';
COMMENT ON COLUMN hugeinfo_next_start.total_pages IS
'Pages in the pool, including surplus pages (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.free_pages IS
'Pages that no process has faulted in, reserved or not (free_hugepages); see available_pages.';
COMMENT ON COLUMN hugeinfo_next_start.reserved_pages IS
'Pages that a mapping has reserved and no process has faulted in (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.surplus_pages IS
'Pages beyond the persistent ones, which the kernel frees when they are released (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.overcommit_pages IS
'Surplus pages that the kernel is allowed to allocate on demand (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_next_start.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_next_start.own_pages IS
'Pages that the main segment of this server has in use or reserved.';
COMMENT ON COLUMN hugeinfo_next_start.others_pages IS
'Pages that other processes of the host have in use or reserved.';
COMMENT ON COLUMN hugeinfo_next_start.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_next_start.recommended_nr_hugepages IS
'Pages that this pool should have: the sum of all known demands, and idle pages that a hidden server could need.';
COMMENT ON COLUMN hugeinfo_next_start.fits_after_restart IS
'Whether a restart on pages of this size would get them from the pool and within the cgroup limit on reservations.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that can be faulted in, from the server''s cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_limit_source IS
'Source of cgroup_limit_bytes: the directory of the cgroup, or the environment variable with the limit of the pod.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_used_bytes IS
'Bytes faulted in by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that the server''s cgroups can reserve (Linux 5.7); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_next_start.cgroup_reserved_bytes IS
'Bytes reserved by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_next_start.how_to_set IS
'Lines to paste into a root shell that set the pool to recommended_nr_hugepages, now and at boot.';

COMMENT ON VIEW hugeinfo_numa IS
'Each NUMA node and page size: its part of the pool, and its part of the main segment.';
COMMENT ON COLUMN hugeinfo_numa.numa_node IS
'Number of the node; numbers can have gaps.';
COMMENT ON COLUMN hugeinfo_numa.page_size_bytes IS
'Bytes of a page: regular pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_numa.total_pages IS
'Pages of the pool on this node, including surplus pages; NULL for regular pages, and on a node without memory.';
COMMENT ON COLUMN hugeinfo_numa.free_pages IS
'Pages of total_pages that no process has faulted in, reserved or not.';
COMMENT ON COLUMN hugeinfo_numa.surplus_pages IS
'Pages of total_pages beyond the persistent ones.';
COMMENT ON COLUMN hugeinfo_numa.touched_segment_pages IS
'Pages of the main segment on this node that one process has faulted in, a lower bound (numa_maps); NULL if it cannot be read.';

COMMENT ON VIEW hugeinfo_numa_nodes IS
'Each NUMA node of the host: its memory, its processors, and whether this server is allowed to use it.';
COMMENT ON COLUMN hugeinfo_numa_nodes.is_allowed IS
'Whether cpuset and numactl --membind allow this server to use memory of this node.';
COMMENT ON COLUMN hugeinfo_numa_nodes.processors IS
'Number of processors of the node that are online; 0 for a node that has only memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_total_bytes IS
'Bytes of RAM of the node (MemTotal); 0 for a node without memory.';
COMMENT ON COLUMN hugeinfo_numa_nodes.memory_free_bytes IS
'Bytes of unused RAM of the node, without cached files (MemFree).';

COMMENT ON FUNCTION hugeinfo_backends() IS
'Each process of this server as the kernel reports it; the function behind the view of the same name.';

COMMENT ON FUNCTION hugeinfo_oom_scores(integer, bigint) IS
'oom_score and oom_score_adj of the process of this server with this pid and these start_ticks, for the view hugeinfo_backends.';

COMMENT ON VIEW hugeinfo_backends IS
'Each process of this server, including the postmaster and the logger: page tables, memory by kind, faults and OOM score.';
COMMENT ON COLUMN hugeinfo_backends.backend_type IS
'Type of the process, as in pg_stat_activity, or postmaster or logger; NULL if the process started after this transaction first read pg_stat_activity.';
COMMENT ON COLUMN hugeinfo_backends.datname IS
'Database of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.usename IS
'Role of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.application_name IS
'Application name of the client (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.state IS
'State of the backend, such as active or idle (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.backend_start IS
'Start time of the process (pg_stat_activity) or, for the postmaster, of the server.';
COMMENT ON COLUMN hugeinfo_backends.page_table_bytes IS
'Bytes of page tables (VmPTE); page tables that processes share count once for each process.';
COMMENT ON COLUMN hugeinfo_backends.virtual_peak_bytes IS
'Largest virtual_bytes so far (VmPeak), which is not the number of huge pages that the server needs.';
COMMENT ON COLUMN hugeinfo_backends.rss_bytes IS
'Bytes in RAM, with shared memory and without huge pages (VmRSS); shared memory counts once for each process.';
COMMENT ON COLUMN hugeinfo_backends.rss_shmem_bytes IS
'Bytes of shared memory in RAM that this process has faulted in, without huge pages (RssShmem; Linux 4.5).';
COMMENT ON COLUMN hugeinfo_backends.hugetlb_bytes IS
'Bytes of huge pages that the process has faulted in (HugetlbPages), without those behind shared page tables.';
COMMENT ON COLUMN hugeinfo_backends.swap_bytes IS
'Bytes of private memory swapped out (VmSwap).';
COMMENT ON COLUMN hugeinfo_backends.minor_faults IS
'Page faults since the process started that did not read from disk.';
COMMENT ON COLUMN hugeinfo_backends.major_faults IS
'Page faults since the process started that read from disk.';
COMMENT ON COLUMN hugeinfo_backends.oom_score IS
'Score of the process for the OOM killer, which first kills the process with the highest score on the host.';
COMMENT ON COLUMN hugeinfo_backends.oom_score_adj IS
'Adjustment of the score by an administrator, from -1000 (never kill) to 1000.';

COMMENT ON FUNCTION hugeinfo_page_tables() IS
'Page tables now and on pages of each size; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_page_tables IS
'Page tables of this server now, and page tables for the main segment on pages of each size.';
COMMENT ON COLUMN hugeinfo_page_tables.page_size_bytes IS
'Bytes of a page: regular pages, then each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_page_tables.one_backend_bytes IS
'Bytes of page tables of one process that has touched the whole main segment on pages of this size.';
COMMENT ON COLUMN hugeinfo_page_tables.present_backends_bytes IS
'one_backend_bytes times the number of current processes.';
COMMENT ON COLUMN hugeinfo_page_tables.now_bytes IS
'Bytes of page tables that all processes of this server have now (VmPTE), the same in each row.';
COMMENT ON COLUMN hugeinfo_page_tables.saving_bytes IS
'Estimate of the bytes of page tables that these processes would save on pages of this size; NULL if unknown.';

CREATE VIEW hugeinfo_plan AS
SELECT segment_bytes,
       segment_percent_of_ram,
       page_size_bytes,
       is_default,
       is_used_by_server,
       is_requested,
       required_pages,
       tail_waste_bytes,
       total_pages,
       free_pages,
       reserved_pages,
       surplus_pages,
       overcommit_pages,
       available_pages,
       committed_pages,
       own_pages,
       others_pages,
       shortfall_pages,
       recommended_nr_hugepages,
       fits_after_restart,
       cgroup_limit_bytes,
       cgroup_limit_source,
       cgroup_used_bytes,
       cgroup_reserved_limit_bytes,
       cgroup_reserved_bytes,
       how_to_set
FROM hugeinfo_plan();
REVOKE ALL ON hugeinfo_plan FROM PUBLIC;
COMMENT ON FUNCTION hugeinfo_plan() IS
'Huge pages that the next start needs with the configuration files on disk; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_plan(jsonb) IS
'Huge pages that the next start needs with the configuration files on disk, the command line, and these settings, as in {"shared_buffers": "64GB", "max_connections": 500}; "host_ram" and "host_huge_page_sizes" are for another host, and NULL raises an error.';
COMMENT ON FUNCTION hugeinfo_plan(text) IS
'hugeinfo_plan(jsonb) with the settings as name=value pairs, as in shared_buffers=64GB max_connections=500, or as JSON.';
COMMENT ON VIEW hugeinfo_plan IS
'Huge pages that the next start needs with the configuration files on disk: a row for each huge page size of the kernel.';
COMMENT ON COLUMN hugeinfo_plan.segment_bytes IS
'Bytes of the main shared memory segment of the next start, exact up to 8 TiB and in whole MB above.';
COMMENT ON COLUMN hugeinfo_plan.segment_percent_of_ram IS
'The segment as a percentage of RAM (MemTotal in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_plan.page_size_bytes IS
'Bytes of a page of this pool (/sys/kernel/mm/hugepages).';
COMMENT ON COLUMN hugeinfo_plan.is_default IS
'Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_plan.is_used_by_server IS
'Whether the main shared memory segment is on pages of this pool now.';
COMMENT ON COLUMN hugeinfo_plan.is_requested IS
'Whether the next start asks for pages of this size, or would ask with huge_pages = try and shared_memory_type = mmap.';
COMMENT ON COLUMN hugeinfo_plan.required_pages IS
'Pages that the main segment of the next start needs, rounded up.';
COMMENT ON COLUMN hugeinfo_plan.tail_waste_bytes IS
'Unused bytes in the last required page.';
COMMENT ON COLUMN hugeinfo_plan.total_pages IS
'Pages in the pool, including surplus pages (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.free_pages IS
'Pages that no process has faulted in, reserved or not (free_hugepages); see available_pages.';
COMMENT ON COLUMN hugeinfo_plan.reserved_pages IS
'Pages that a mapping has reserved and no process has faulted in (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.surplus_pages IS
'Pages beyond the persistent ones, which the kernel frees when they are released (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.overcommit_pages IS
'Surplus pages that the kernel is allowed to allocate on demand (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_plan.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_plan.committed_pages IS
'Pages in use or reserved: total minus free, plus reserved.';
COMMENT ON COLUMN hugeinfo_plan.own_pages IS
'Pages that the main segment of this server has in use or reserved.';
COMMENT ON COLUMN hugeinfo_plan.others_pages IS
'Pages that other processes of the host have in use or reserved.';
COMMENT ON COLUMN hugeinfo_plan.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_plan.recommended_nr_hugepages IS
'Pages that this pool should have: the sum of all known demands, and idle pages that a hidden server could need.';
COMMENT ON COLUMN hugeinfo_plan.fits_after_restart IS
'Whether a restart on pages of this size would get them from the pool and within the cgroup limit on reservations.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that can be faulted in, from the server''s cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_limit_source IS
'Source of cgroup_limit_bytes: the directory of the cgroup, or the environment variable with the limit of the pod.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_used_bytes IS
'Bytes faulted in by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_reserved_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that the server''s cgroups can reserve (Linux 5.7); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_plan.cgroup_reserved_bytes IS
'Bytes reserved by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_plan.how_to_set IS
'Lines to paste into a root shell that set the pool to recommended_nr_hugepages, now and at boot.';

COMMENT ON VIEW hugeinfo_pools IS
'Each huge page size of the kernel: its pool on this host, its demands, and the limits of the server''s cgroups.';
COMMENT ON COLUMN hugeinfo_pools.page_size_bytes IS
'Bytes of a page of this pool (/sys/kernel/mm/hugepages).';
COMMENT ON COLUMN hugeinfo_pools.is_default IS
'Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).';
COMMENT ON COLUMN hugeinfo_pools.is_used_by_server IS
'Whether the main shared memory segment is on pages of this pool now.';
COMMENT ON COLUMN hugeinfo_pools.required_pages IS
'Pages that the main segment needs at the next start, rounded up, with settings that are pending a restart.';
COMMENT ON COLUMN hugeinfo_pools.tail_waste_bytes IS
'Unused bytes in the last required page; on huge pages exact to 1 MB.';
COMMENT ON COLUMN hugeinfo_pools.total_pages IS
'Pages in the pool, including surplus pages (nr_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.free_pages IS
'Pages that no process has faulted in, reserved or not (free_hugepages); see available_pages.';
COMMENT ON COLUMN hugeinfo_pools.reserved_pages IS
'Pages that a mapping has reserved and no process has faulted in (resv_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.surplus_pages IS
'Pages beyond the persistent ones, which the kernel frees when they are released (surplus_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.overcommit_pages IS
'Surplus pages that the kernel is allowed to allocate on demand (nr_overcommit_hugepages).';
COMMENT ON COLUMN hugeinfo_pools.available_pages IS
'Pages that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_pools.own_pages IS
'Pages that the main segment of this server has in use or reserved.';
COMMENT ON COLUMN hugeinfo_pools.others_pages IS
'Pages that other processes of the host have in use or reserved.';
COMMENT ON COLUMN hugeinfo_pools.shortfall_pages IS
'Pages to add so that a restart on pages of this size gets them, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_pools.recommended_nr_hugepages IS
'Pages that this pool should have: the sum of all known demands, and idle pages that a hidden server could need.';
COMMENT ON COLUMN hugeinfo_pools.fits_after_restart IS
'Whether a restart on pages of this size would get them from the pool and within the cgroup limit on reservations.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that can be faulted in, from the server''s cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_limit_source IS
'Source of cgroup_limit_bytes: the directory of the cgroup, or the environment variable with the limit of the pod.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_used_bytes IS
'Bytes faulted in by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_limit_bytes IS
'Lowest limit on bytes of huge pages of this size that the server''s cgroups can reserve (Linux 5.7); NULL if there is none.';
COMMENT ON COLUMN hugeinfo_pools.cgroup_reserved_bytes IS
'Bytes reserved by the cgroup with this limit or, without a limit, by the server''s own cgroup.';
COMMENT ON COLUMN hugeinfo_pools.how_to_set IS
'Lines to paste into a root shell that set the pool to recommended_nr_hugepages, now and at boot.';

CREATE OR REPLACE VIEW hugeinfo_mappings AS
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
COMMENT ON FUNCTION hugeinfo_mappings() IS
'Each mapping of this backend, by address; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_mappings(integer) IS
'Each mapping of one process of this server, by address, with the columns of the view hugeinfo_mappings.';

COMMENT ON VIEW hugeinfo_mappings IS
'Each mapping of this backend, by address (/proc/PID/smaps).';
COMMENT ON COLUMN hugeinfo_mappings.start_address IS
'First address, in hexadecimal; NULL without the privileges of pg_read_server_files, because addresses help attackers.';
COMMENT ON COLUMN hugeinfo_mappings.end_address IS
'First address after the mapping; NULL when start_address is NULL.';
COMMENT ON COLUMN hugeinfo_mappings.permissions IS
'Permissions as in /proc/PID/maps: r, w and x, then p (private) or s (shared).';
COMMENT ON COLUMN hugeinfo_mappings.device IS
'Device of the file as major:minor, in hexadecimal.';
COMMENT ON COLUMN hugeinfo_mappings.path IS
'Name of the file, with special characters as a backslash and octal digits; NULL for anonymous memory, or without the privileges of pg_read_server_files.';
COMMENT ON COLUMN hugeinfo_mappings.kind IS
'Use of the mapping: main segment, sysv shim, dynamic shared memory, heap, stack, anonymous, executable, library, file, or kernel.';
COMMENT ON COLUMN hugeinfo_mappings.page_size_bytes IS
'Bytes of a page that backs it (KernelPageSize), regardless of transparent huge pages.';
COMMENT ON COLUMN hugeinfo_mappings.shared_clean_bytes IS
'Clean bytes that other processes also map (Shared_Clean).';
COMMENT ON COLUMN hugeinfo_mappings.shared_dirty_bytes IS
'Dirty bytes that other processes also map (Shared_Dirty).';
COMMENT ON COLUMN hugeinfo_mappings.lazy_free_bytes IS
'Bytes that the process freed with MADV_FREE and the kernel has not reclaimed yet (LazyFree).';
COMMENT ON COLUMN hugeinfo_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_mappings.vm_flags IS
'Flags of the mapping in the kernel (VmFlags), two letters each; ht means huge pages.';

COMMENT ON VIEW hugeinfo_postmaster_mappings IS
'Each mapping of the postmaster, by address (/proc/PID/smaps).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.start_address IS
'First address, in hexadecimal; NULL without the privileges of pg_read_server_files, because addresses help attackers.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.end_address IS
'First address after the mapping; NULL when start_address is NULL.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.permissions IS
'Permissions as in /proc/PID/maps: r, w and x, then p (private) or s (shared).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.device IS
'Device of the file as major:minor, in hexadecimal.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.path IS
'Name of the file, with special characters as a backslash and octal digits; NULL for anonymous memory, or without the privileges of pg_read_server_files.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.kind IS
'Use of the mapping: main segment, sysv shim, dynamic shared memory, heap, stack, anonymous, executable, library, file, or kernel.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.page_size_bytes IS
'Bytes of a page that backs it (KernelPageSize), regardless of transparent huge pages.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_clean_bytes IS
'Clean bytes that other processes also map (Shared_Clean).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_dirty_bytes IS
'Dirty bytes that other processes also map (Shared_Dirty).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.lazy_free_bytes IS
'Bytes that the process freed with MADV_FREE and the kernel has not reclaimed yet (LazyFree).';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.shared_hugetlb_bytes IS
'Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.private_hugetlb_bytes IS
'Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other columns.';
COMMENT ON COLUMN hugeinfo_postmaster_mappings.vm_flags IS
'Flags of the mapping in the kernel (VmFlags), two letters each; ht means huge pages.';

COMMENT ON FUNCTION hugeinfo_pressure() IS
'OOM kills and memory pressure of the host and of the server''s cgroups; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_pressure IS
'OOM kills, limits that were hit, and time that processes waited for memory: a row for the host, and one for each cgroup of the postmaster.';
COMMENT ON COLUMN hugeinfo_pressure.path IS
'Directory of the cgroup; NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_limit_bytes IS
'Memory limit of the cgroup (v1 memory.limit_in_bytes, v2 memory.max); NULL if there is none, and for the host.';
COMMENT ON COLUMN hugeinfo_pressure.memory_used_bytes IS
'Bytes that the cgroup uses, including the file cache; NULL for the host.';
COMMENT ON COLUMN hugeinfo_pressure.limit_hits IS
'How often the cgroup hit its memory limit (v1 memory.failcnt, v2 max in memory.events); the file cache alone can cause hits.';
COMMENT ON COLUMN hugeinfo_pressure.high_hits IS
'How often processes were slowed down because the cgroup exceeded memory.high; NULL on cgroup v1.';
COMMENT ON COLUMN hugeinfo_pressure.oom_kills IS
'Number of processes that the OOM killer killed (Linux 4.13).';
COMMENT ON COLUMN hugeinfo_pressure.some_avg10_percent IS
'Percentage of the last 10 seconds in which at least one process waited for memory (Linux 4.20).';
COMMENT ON COLUMN hugeinfo_pressure.some_avg60_percent IS
'Percentage of the last 60 seconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.some_avg300_percent IS
'Percentage of the last 300 seconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.some_stall_microseconds IS
'Total microseconds in which at least one process waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg10_percent IS
'Percentage of the last 10 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg60_percent IS
'Percentage of the last 60 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_avg300_percent IS
'Percentage of the last 300 seconds in which all processes with work to do waited for memory.';
COMMENT ON COLUMN hugeinfo_pressure.full_stall_microseconds IS
'Total microseconds in which all processes with work to do waited for memory.';

CREATE FUNCTION hugeinfo_report(redact boolean) RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_wrapper';
CREATE FUNCTION hugeinfo_report(before jsonb) RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_compared_wrapper';
CREATE FUNCTION hugeinfo_report(redact text) RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_text_wrapper';
CREATE FUNCTION hugeinfo_report() RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_report_whole_wrapper';
REVOKE ALL ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(jsonb), hugeinfo_report(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(jsonb), hugeinfo_report(text) TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_report() IS
'A report on this server and its host as one HTML page: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html.';
COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'hugeinfo_report() without names, paths, ports and addresses if redact is true, for a public ticket.';
COMMENT ON FUNCTION hugeinfo_report(jsonb) IS
'hugeinfo_report() with a comparison of the memory before and now; before is a saved row of hugeinfo_footprint as JSON: to_jsonb(f).';
COMMENT ON FUNCTION hugeinfo_report(text) IS
'hugeinfo_report(boolean) with the value as text, for quoted literals.';

CREATE FUNCTION hugeinfo_runbook() RETURNS TABLE (
	step integer, where_to_run text, command text, why text, expected text,
	is_disruptive boolean, instruction text)
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_runbook_wrapper';
CREATE FUNCTION hugeinfo_runbook(settings jsonb) RETURNS TABLE (
	step integer, where_to_run text, command text, why text, expected text,
	is_disruptive boolean, instruction text)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_runbook_jsonb_wrapper';
CREATE FUNCTION hugeinfo_runbook(settings text) RETURNS TABLE (
	step integer, where_to_run text, command text, why text, expected text,
	is_disruptive boolean, instruction text)
PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_runbook_text_wrapper';
ALTER FUNCTION hugeinfo_runbook() ROWS 5;
ALTER FUNCTION hugeinfo_runbook(jsonb) ROWS 5;
ALTER FUNCTION hugeinfo_runbook(text) ROWS 5;
CREATE OR REPLACE VIEW hugeinfo_runbook AS
SELECT step,
       where_to_run,
       command,
       why,
       expected,
       is_disruptive,
       instruction
FROM hugeinfo_runbook();
REVOKE ALL ON FUNCTION hugeinfo_runbook(), hugeinfo_runbook(jsonb), hugeinfo_runbook(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_runbook() TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_runbook() IS
'Each step from here to a healthy server, in order; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_runbook(jsonb) IS
'Each step from here to a healthy server with these settings, as in {"shared_buffers": "64GB"}; NULL raises an error.';
COMMENT ON FUNCTION hugeinfo_runbook(text) IS
'hugeinfo_runbook(jsonb) with the settings as name=value pairs, as in shared_buffers=64GB max_connections=500, or as JSON.';
COMMENT ON VIEW hugeinfo_runbook IS
'Each step from here to a healthy server, in order; no row if there is nothing to do.';
COMMENT ON COLUMN hugeinfo_runbook.where_to_run IS
'root shell, root shell of the node, SQL, service, or by hand; NULL for a decision by a person.';
COMMENT ON COLUMN hugeinfo_runbook.command IS
'A line to paste; NULL if the step is not a command.';
COMMENT ON COLUMN hugeinfo_runbook.instruction IS
'Instruction for a person; NULL if the step is a command.';
COMMENT ON COLUMN hugeinfo_runbook.expected IS
'Status and reason of hugeinfo_status after this step; NULL if the step does not change them.';

COMMENT ON VIEW hugeinfo_sources IS
'Each kernel source that this extension reads, and whether it can be read here.';
COMMENT ON COLUMN hugeinfo_sources.source IS
'Stable short name of the file, system call or directory.';
COMMENT ON COLUMN hugeinfo_sources.path IS
'Path of the source; files of a process are those of the postmaster.';
COMMENT ON COLUMN hugeinfo_sources.status IS
'ok, denied (no permission), missing (this kernel, container or sandbox does not have it), or failed (an error, or an unknown format).';
COMMENT ON COLUMN hugeinfo_sources.used_for IS
'Views and functions that use it.';

CREATE FUNCTION hugeinfo_status() RETURNS TABLE (
	status text, code text, reason text, huge_pages text, shared_memory_type text,
	in_use boolean, page_size_bytes bigint, segment_bytes bigint, segment_pages bigint,
	huge_page_size_bytes bigint, required_huge_pages bigint, pool_total_pages bigint,
	pool_available_pages bigint, shortfall_pages bigint, fits_after_restart boolean,
	recommended_nr_hugepages bigint)
STRICT PARALLEL RESTRICTED COST 10000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_status_wrapper';
ALTER FUNCTION hugeinfo_status() ROWS 1;
CREATE VIEW hugeinfo_status AS
SELECT status,
       code,
       reason,
       CASE WHEN status IN ('warning', 'critical') THEN hugeinfo_remedy() END AS remedy,
       huge_pages,
       shared_memory_type,
       in_use,
       page_size_bytes,
       segment_bytes,
       segment_pages,
       huge_page_size_bytes,
       required_huge_pages,
       pool_total_pages,
       pool_available_pages,
       shortfall_pages,
       fits_after_restart,
       recommended_nr_hugepages
FROM hugeinfo_status();
REVOKE ALL ON FUNCTION hugeinfo_status() FROM PUBLIC;
REVOKE ALL ON hugeinfo_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_status() TO pg_monitor;
GRANT SELECT ON hugeinfo_status TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_status() IS
'Whether huge pages back this server, whether a restart would get them, and what is wrong; the function behind the view of the same name.';

COMMENT ON FUNCTION hugeinfo_remedy() IS
'The column remedy of hugeinfo_status; NULL if there is nothing to do.';

COMMENT ON VIEW hugeinfo_status IS
'Whether huge pages back this server, whether a restart would get them, what is wrong, and the lines to paste: one row, read from the kernel now.';
COMMENT ON COLUMN hugeinfo_status.huge_pages IS
'Setting huge_pages of the running server: off, on or try.';
COMMENT ON COLUMN hugeinfo_status.shared_memory_type IS
'Setting shared_memory_type of the running server; only mmap can use huge pages.';
COMMENT ON COLUMN hugeinfo_status.in_use IS
'Whether the kernel backs the main shared memory segment with huge pages of a pool; transparent huge pages do not count.';
COMMENT ON COLUMN hugeinfo_status.page_size_bytes IS
'Bytes of a page that backs the main segment, huge or not.';
COMMENT ON COLUMN hugeinfo_status.segment_bytes IS
'Bytes of the main shared memory segment.';
COMMENT ON COLUMN hugeinfo_status.segment_pages IS
'Pages of page_size_bytes in the main segment.';
COMMENT ON COLUMN hugeinfo_status.huge_page_size_bytes IS
'Bytes of a huge page that the server asks for (huge_page_size, or the default size of the kernel); NULL if the kernel has none.';
COMMENT ON COLUMN hugeinfo_status.required_huge_pages IS
'Huge pages of huge_page_size_bytes that the main segment needs at the next start, rounded up, with settings that are pending a restart.';
COMMENT ON COLUMN hugeinfo_status.pool_total_pages IS
'Pages in the pool of huge_page_size_bytes, including surplus pages.';
COMMENT ON COLUMN hugeinfo_status.pool_available_pages IS
'Pages of that pool that a new mapping could get now: free minus reserved, plus surplus pages that are still allowed.';
COMMENT ON COLUMN hugeinfo_status.shortfall_pages IS
'Pages to add to that pool so that a restart gets huge pages, or 0; pages that this server releases count as available.';
COMMENT ON COLUMN hugeinfo_status.fits_after_restart IS
'Whether a restart would get huge pages from the pool and within the cgroup limit on reservations, regardless of the setting huge_pages.';
COMMENT ON COLUMN hugeinfo_status.recommended_nr_hugepages IS
'Pages that the pool should have for the demands that this view reads; while this server is healthy, other servers that run on small pages are left out, so use hugeinfo_pools to size a pool.';
COMMENT ON COLUMN hugeinfo_status.status IS
'ok, unknown, warning or critical: the worst of the checks cgroup_fault_limit, huge_pages, restart and pool_size, and any critical check.';
COMMENT ON COLUMN hugeinfo_status.code IS
'Stable reason for programs, such as fell_back.';
COMMENT ON COLUMN hugeinfo_status.reason IS
'The worst finding as text or, if the status is ok, the pages of the segment and what a restart would get.';
COMMENT ON COLUMN hugeinfo_status.remedy IS
'Lines to paste, including the line for the next boot; NULL if there is nothing to do.';

CREATE FUNCTION hugeinfo_text() RETURNS text
STRICT PARALLEL RESTRICTED COST 1000000
LANGUAGE c AS 'MODULE_PATHNAME', 'hugeinfo_text_wrapper';
REVOKE ALL ON FUNCTION hugeinfo_text() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_text() TO pg_monitor;
COMMENT ON FUNCTION hugeinfo_text() IS
'The answer for people, as text of at most 80 columns: status, pools, page tables, the next restart and reboot, and the steps to take.';

COMMENT ON FUNCTION hugeinfo_vmstat() IS
'Each line of /proc/vmstat, in the order of the kernel; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_vmstat IS
'Each line of /proc/vmstat, in the order of the kernel.';
COMMENT ON COLUMN hugeinfo_vmstat.name IS
'Name of the counter; names that begin with nr_ are current amounts, and most others count events since boot.';
COMMENT ON COLUMN hugeinfo_vmstat.value IS
'Value of the counter; NULL if it is below zero.';
COMMENT ON COLUMN hugeinfo_vmstat.topic IS
'Topic of the counter: thp, huge_pages, compaction, swap, numa, reclaim, faults, or other.';

DO $$
DECLARE
    recreated pg_catalog.oid[] := pg_catalog.array_cat(
        '{hugeinfo_checks,hugeinfo_status}'::pg_catalog.regclass[]::pg_catalog.oid[],
        '{hugeinfo_checks(),hugeinfo_host(),hugeinfo_instances(),hugeinfo_report(boolean),hugeinfo_runbook(),hugeinfo_runbook(jsonb),hugeinfo_runbook(text),hugeinfo_status()}'
            ::pg_catalog.regprocedure[]::pg_catalog.oid[]);
    -- Privileges that pg_dump does not save, because CREATE EXTENSION grants them.
    initial pg_catalog.pg_init_privs[] := (
        SELECT pg_catalog.array_agg(i) FROM pg_catalog.pg_init_privs AS i
        WHERE i.objoid = ANY (recreated));
    saved record;
BEGIN
    REVOKE ALL ON hugeinfo_checks, hugeinfo_status FROM pg_monitor;
    REVOKE ALL ON FUNCTION hugeinfo_checks(), hugeinfo_host(), hugeinfo_instances(),
        hugeinfo_report(boolean), hugeinfo_runbook(),
        hugeinfo_runbook(jsonb), hugeinfo_runbook(text), hugeinfo_status() FROM pg_monitor;
    FOR saved IN SELECT * FROM pg_temp.hugeinfo_grants LOOP
        EXECUTE pg_catalog.format('GRANT %s TO %s%s', saved.what,
            CASE WHEN saved.grantee = '0' THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(saved.grantee)::pg_catalog.text) END,
            CASE WHEN saved.is_grantable THEN ' WITH GRANT OPTION' END);
    END LOOP;
    DELETE FROM pg_catalog.pg_init_privs AS i WHERE i.objoid = ANY (recreated);
    INSERT INTO pg_catalog.pg_init_privs SELECT (i).* FROM pg_catalog.unnest(initial) AS i;
END
$$;
DROP TABLE pg_temp.hugeinfo_grants;
