-- The contract of hugeinfo_fit(pages, settings), the reverse of hugeinfo_plan(settings). With
-- huge_pages = off, each call raises a notice.
SET client_min_messages = warning;
SELECT unnest(string_to_array(pg_get_function_result('hugeinfo_fit(bigint, text)'::regprocedure), ', ')) AS result;

-- All notations have the same result.
SELECT count(*) AS calls, count(DISTINCT fit) AS answers
FROM (SELECT f::text AS fit FROM hugeinfo_fit(pages => 300, settings => jsonb_build_object('max_connections', 50, 'huge_page_size', 0)::text) AS f
      UNION ALL SELECT f::text FROM hugeinfo_fit(300, '{"max_connections": 50, "huge_page_size": 0}') AS f
      UNION ALL SELECT f::text FROM hugeinfo_fit(300, 'max_connections=50 huge_page_size=0') AS f
      UNION ALL SELECT f::text FROM hugeinfo_fit(300::bigint, 'max_connections=50 huge_page_size=0') AS f
      UNION ALL SELECT f::text FROM hugeinfo_fit(300::bigint, '{"max_connections": 50, "huge_page_size": 0}'::text) AS f) AS fits;

-- The result fits according to hugeinfo_plan, which reports the same numbers, and one block more
-- does not fit.
CREATE FUNCTION planned(settings jsonb, buffers bigint)
RETURNS TABLE (page_size_bytes bigint, segment_bytes bigint, required_pages bigint, tail_waste_bytes bigint)
LANGUAGE sql AS $$
SELECT page_size_bytes, segment_bytes, required_pages, tail_waste_bytes
FROM hugeinfo_plan((settings || jsonb_build_object('shared_buffers', format('%skB', buffers / 1024)))::text) WHERE is_requested
$$;
SELECT bool_and(available_pages = pages) AS available,
       bool_and(required_pages <= pages) AS fits,
       bool_and(f.page_size_bytes = size) AS page_size,
       bool_and(shared_buffers = format('%skB', shared_buffers_bytes / 1024)) AS text,
       bool_and((f.page_size_bytes, f.segment_bytes, f.required_pages, f.tail_waste_bytes) = (SELECT * FROM planned(s, shared_buffers_bytes))) AS as_planned,
       bool_and((SELECT required_pages FROM planned(s, shared_buffers_bytes + current_setting('block_size')::bigint)) = pages + 1) AS one_block_more
FROM (VALUES (200::bigint << 20, '{}'), (1::bigint << 30, '{"max_connections": 500}'),
             (2058::bigint << 20, '{"min_dynamic_shared_memory": "64MB"}'), (128::bigint << 30, '{"wal_buffers": "1MB"}'),
             -- above 8 TiB
             (8200::bigint << 30, '{}')) AS v (bytes, settings),
     LATERAL (SELECT page_size_bytes AS size, bytes / page_size_bytes + 1 AS pages FROM hugeinfo_pools) AS pool,
     LATERAL (SELECT settings::jsonb || jsonb_build_object('huge_page_size', size / 1024) AS s) AS of_size,
     LATERAL hugeinfo_fit(pages, s::text) AS f;
DROP FUNCTION planned;

-- PostgreSQL's maximum
SELECT shared_buffers_bytes / current_setting('block_size')::bigint AS blocks, required_pages < available_pages AS fits
FROM hugeinfo_fit(9223372036854775807, 'huge_page_size=0');

-- The same notices as in hugeinfo_plan
RESET client_min_messages;
SELECT count(*) FROM hugeinfo_fit(1000, 'huge_pages=off shared_memory_type=sysv huge_page_size=0');
SET client_min_messages = warning;

-- The number of pages
SELECT hugeinfo_fit(NULL);
SELECT hugeinfo_fit(0);
SELECT hugeinfo_fit(-1::bigint, 'max_connections=30');
CREATE FUNCTION least_pages(settings text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    message text;
BEGIN
    PERFORM hugeinfo_fit(1, settings);
    RETURN 1;
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    RETURN (regexp_match(message, '^pages must be at least (\d+): the minimum of shared_buffers needs \1 huge pages of \d+ [MG]B$'))[1];
END
$$;
-- The number in the error is enough.
SELECT least > 1 AS more_than_one,
       (SELECT required_pages = least FROM hugeinfo_fit(least, s)) AS enough,
       (SELECT required_pages = least FROM hugeinfo_plan(s || ' shared_buffers=128kB') WHERE is_requested) AS as_planned
FROM (VALUES ('huge_page_size=0 min_dynamic_shared_memory=4GB')) AS v (s), least_pages(s) AS least;
DROP FUNCTION least_pages;

-- The settings
SELECT hugeinfo_fit(1000, 'shared_buffers=1GB');
SELECT hugeinfo_fit(1000, '{"SHARED_BUFFERS": 1000}');
\set VERBOSITY terse
SELECT hugeinfo_fit(1000, 'huge_page_size=16MB');
\set VERBOSITY default
SELECT hugeinfo_fit(1000, 'max_connections=0');
SELECT hugeinfo_fit(1000, 'max_connections');
\set VERBOSITY sqlstate
SELECT hugeinfo_fit(1000, NULL);
SELECT hugeinfo_fit(1000, '[]');
SELECT hugeinfo_fit(1000, 'max_connection=30');
SELECT hugeinfo_fit(1000, 'work_mem=4MB');
SELECT hugeinfo_fit(1000, '{"max_connections": 2, "superuser_reserved_connections": 2}');
\set VERBOSITY default

-- For superusers only, until granted
CREATE ROLE regress_hugeinfo_planner IN ROLE pg_monitor;
SET ROLE regress_hugeinfo_planner;
SELECT hugeinfo_fit(1000);
RESET ROLE;
GRANT EXECUTE ON FUNCTION hugeinfo_fit(bigint, text) TO regress_hugeinfo_planner;
SET ROLE regress_hugeinfo_planner;
SELECT count(*) AS granted FROM hugeinfo_fit(1000, 'huge_page_size=0');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION hugeinfo_fit(bigint, text) FROM regress_hugeinfo_planner;
DROP ROLE regress_hugeinfo_planner;
