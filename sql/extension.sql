-- Installed objects, their comments, and properties of functions for the planner.
CREATE EXTENSION pg_hugeinfo;

SELECT extversion = (SELECT default_version FROM pg_available_extensions WHERE name = 'pg_hugeinfo') AS is_default_version,
       extrelocatable
FROM pg_extension
WHERE extname = 'pg_hugeinfo';

SELECT pg_describe_object(classid, objid, 0) AS object
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_hugeinfo')
  AND classid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
  -- from 17 on, also what no command has made: rows of views, and arrays
  AND (classid, objid) NOT IN (SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t
      WHERE t.typcategory = 'A' OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'v'))
ORDER BY 1;

-- volatile: the kernel's values change; parallel restricted: the result depends on this backend
SELECT oid::regprocedure AS function, provolatile, proparallel, prorows, procost > 100 AS is_costly, prosecdef
FROM pg_proc
WHERE proname LIKE 'hugeinfo\_%'
ORDER BY oid::regprocedure::text COLLATE "C";

-- Every object has a comment.
SELECT c.relname, a.attname
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum >= 0 AND NOT a.attisdropped
WHERE c.relname LIKE 'hugeinfo\_%' AND c.relkind = 'v'
  AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL);

SELECT proname FROM pg_proc WHERE proname LIKE 'hugeinfo\_%' AND obj_description(oid, 'pg_proc') IS NULL;
