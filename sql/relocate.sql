-- The extension can be in any schema and can be moved to another. Dropping it leaves nothing
-- behind.
CREATE SCHEMA "Odd schema";
ALTER EXTENSION pg_hugeinfo SET SCHEMA "Odd schema";
SELECT count(*) FROM "Odd schema".hugeinfo_status;
SELECT count(*) FROM public.hugeinfo_status;

DROP EXTENSION pg_hugeinfo;
SELECT relname FROM pg_class WHERE relname LIKE 'hugeinfo\_%';
SELECT proname FROM pg_proc WHERE proname LIKE 'hugeinfo\_%';
SELECT typname FROM pg_type WHERE typname LIKE '%hugeinfo\_%';

CREATE EXTENSION pg_hugeinfo SCHEMA "Odd schema";
SET search_path = pg_catalog;
SELECT count(*) FROM "Odd schema".hugeinfo_status;
SELECT count(*) >= 0 AS readable FROM "Odd schema".hugeinfo_pools;
DROP EXTENSION pg_hugeinfo;
