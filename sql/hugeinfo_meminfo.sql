-- The contract of hugeinfo_meminfo.
\d hugeinfo_meminfo

-- every line, in the kernel's order
CREATE TEMP TABLE line AS
SELECT n, parts[1] AS name, parts[2]::bigint AS figure, parts[3] = ' kB' AS is_kb
FROM regexp_split_to_table(rtrim(pg_read_file('/proc/meminfo'), E'\n'), '\n') WITH ORDINALITY AS file (text, n),
     regexp_match(text, '^([^:]*): +([0-9]+)( kB)?$') AS parts;
SELECT (SELECT array_agg(name) FROM hugeinfo_meminfo) = (SELECT array_agg(name ORDER BY n) FROM line) AS names;

-- constant values: numbers of kB, and numbers of pages
SELECT bool_and(m.bytes = l.figure * 1024) AS bytes
FROM hugeinfo_meminfo AS m
JOIN line AS l USING (name)
WHERE name IN ('MemTotal', 'SwapTotal', 'VmallocTotal', 'Hugepagesize') AND l.is_kb;
SELECT bool_and(m.bytes = l.figure * s.bytes) AS bytes, bool_and(m.huge_pages = l.figure) AS huge_pages
FROM hugeinfo_meminfo AS m
JOIN line AS l USING (name), (SELECT bytes FROM hugeinfo_meminfo WHERE name = 'Hugepagesize') AS s
WHERE name IN ('HugePages_Total', 'HugePages_Surp');

-- in huge pages, rounded up
SELECT bool_and(m.huge_pages = ceil(m.bytes::numeric / s.bytes)) AS huge_pages,
       count(*) FILTER (WHERE m.huge_pages IS NULL) AS unknown
FROM hugeinfo_meminfo AS m, (SELECT bytes FROM hugeinfo_meminfo WHERE name = 'Hugepagesize') AS s;
