-- The contract of hugeinfo_vmstat.
\d hugeinfo_vmstat

-- every line, in the kernel's order
CREATE TEMP TABLE before AS
SELECT n, split_part(text, ' ', 1) AS name, split_part(text, ' ', 2)::bigint AS value
FROM regexp_split_to_table(rtrim(pg_read_file('/proc/vmstat'), E'\n'), '\n') WITH ORDINALITY AS file (text, n);
CREATE TEMP TABLE seen AS SELECT * FROM hugeinfo_vmstat;
CREATE TEMP TABLE later AS
SELECT split_part(text, ' ', 1) AS name, split_part(text, ' ', 2)::bigint AS value
FROM regexp_split_to_table(rtrim(pg_read_file('/proc/vmstat'), E'\n'), '\n') AS text;
SELECT (SELECT array_agg(name) FROM seen) = (SELECT array_agg(name ORDER BY n) FROM before) AS names;

-- by topic
SELECT bool_and(topic IN ('thp', 'huge_pages', 'compaction', 'swap', 'numa', 'reclaim', 'faults', 'other')) AS topics,
       bool_and((topic = 'thp') = (name ~ '^(thp_|nr_anon_transparent|nr_(shmem|file)_(hugepages|pmdmapped))')) AS thp,
       bool_and(topic = 'faults') FILTER (WHERE name IN ('pgfault', 'pgmajfault')) AS faults,
       bool_and(topic = 'reclaim') FILTER (WHERE name ~ '^(allocstall_|pgsteal_|pgscan_)') AS reclaim
FROM seen;

-- counters that only grow are between two reads of the file
SELECT bool_and(s.value BETWEEN b.value AND l.value) AS counts, count(*) > 10 AS many
FROM seen AS s
JOIN before AS b USING (name)
JOIN later AS l USING (name)
WHERE name ~ '^(pg(fault|majfault|pgin|pgout|free|activate|deactivate|alloc_\w+|steal_\w+|scan_\w+)|pswp\w+|thp_\w+_(alloc|fallback)|htlb_\w+)$';
