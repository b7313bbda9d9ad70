-- Prints docs/reference.md from the comments in the catalog:
--
--   tools/with-postgres --server=on psql -XAtq -d postgres -f docs/reference.sql
--
-- Without the extension, creates it. t/036_docs.pl compares the output with the page.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_hugeinfo;

WITH costs (name, cost) AS (
    VALUES ('hugeinfo_status', 'a few small files; `remedy` costs more, but only if it is selected'),
           ('hugeinfo_checks', 'as `hugeinfo_backends`, and a scan of the host''s processes; one plan if a setting is pending a restart or the role can execute `hugeinfo_plan`'),
           ('hugeinfo_runbook', 'as `hugeinfo_checks`'),
           ('hugeinfo_pools', 'as `hugeinfo_checks`'),
           ('hugeinfo_next_start', 'two child processes, 16 to 24 ms'),
           ('hugeinfo_plan', 'two child processes, 16 to 24 ms'),
           ('hugeinfo_footprint', 'two small files for each process'),
           ('hugeinfo_page_tables', 'as `hugeinfo_backends`'),
           ('hugeinfo_backends', 'two small files for each process, and three more if an OOM column is selected'),
           ('hugeinfo_fault_rates', 'reads each process twice; takes one second'),
           ('hugeinfo_memory', 'walks the page tables of this backend'),
           ('hugeinfo_mappings', 'walks the page tables of this backend'),
           ('hugeinfo_postmaster_mappings', 'walks the page tables of the postmaster'),
           ('hugeinfo_host', 'a few small files'),
           ('hugeinfo_meminfo', 'one file'),
           ('hugeinfo_vmstat', 'one file'),
           ('hugeinfo_numa', 'walks the page tables of up to eight processes'),
           ('hugeinfo_holders', 'one small file for each process of the host, and page tables of holders'),
           ('hugeinfo_instances', 'one small file for each process of the host'),
           ('hugeinfo_sources', 'a few small files')
), members AS (
    SELECT classid, objid
    FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_hugeinfo')
), views AS (
    SELECT c.oid, c.relname::text AS name
    FROM members JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid AND c.relkind = 'v'
), columns AS (
    SELECT attrelid AS oid,
           string_agg(format('| `%s` | %s | %s |', attname, format_type(atttypid, NULL),
                             replace(col_description(attrelid, attnum), '|', '\|')), E'\n' ORDER BY attnum) AS rows
    FROM pg_attribute
    WHERE attnum > 0 AND NOT attisdropped
    GROUP BY attrelid
), functions AS (
    SELECT p.proname::text AS name,
           format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) AS signature,
           replace(obj_description(p.oid, 'pg_proc'), '|', '\|') AS comment
    FROM members JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
)
SELECT $$# Reference

This page lists all views with their columns, and all functions. `docs/reference.sql` prints it from
the comments in the catalog, which `\d+` and `\df+` also show. [README.md](../README.md) names the
pages that explain how to use the views.

Sizes are in bytes and end in `_bytes`. Counts of pages end in `_pages`. NULL means that the kernel
does not report the value. 0 means that it reported zero.
$$
UNION ALL
(SELECT format(E'## %s\n\n| | |\n|---|---|\n| content | %s |\n| cost | %s |\n\n| column | type | meaning |\n|---|---|---|\n%s\n',
               name, replace(obj_description(views.oid, 'pg_class'), '|', '\|'), coalesce(cost, '?'), rows)
 FROM views LEFT JOIN costs USING (name) JOIN columns USING (oid)
 ORDER BY name COLLATE "C")
UNION ALL
SELECT $$## Functions

A function with the name of a view returns the rows of that view. A NULL pid returns no rows. NULL
settings and NULL pages raise an error. If a pid is not a process of this server, the functions
raise a warning and return no row.

| function | meaning |
|---|---|$$
UNION ALL
(SELECT format('| `%s` | %s |', signature, comment) FROM functions ORDER BY name COLLATE "C", signature COLLATE "C")
UNION ALL
SELECT $$
## Settings

| setting | meaning |
|---|---|
| `pg_hugeinfo.muted_checks` | names of [checks that do not raise alerts](checks.md#muting-a-check) |$$;
