-- The contract of hugeinfo_report.
SELECT pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
FROM pg_proc
WHERE proname = 'hugeinfo_report'
ORDER BY 1;

SET application_name = '<script>alert(''&"'')</script>';
CREATE TEMP TABLE report AS SELECT hugeinfo_report() AS page, hugeinfo_report(redact => true) AS redacted, NULL::jsonb AS figures;
-- the figures of a page, for programs
UPDATE report
SET figures = replace(replace(replace(replace(substring(page FROM '<pre class="json"><code>(.*)</code></pre>'),
    '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&amp;', '&')::jsonb;

-- one page in ASCII, which any encoding supports
SELECT starts_with(page, '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">') AS is_page,
       page LIKE '%</html>' AS is_whole,
       octet_length(page) < 100000 AS is_small,
       page !~ '[^\x0a\x20-\x7e]' AS is_ascii,
       position('<script' IN page) = 0 AS runs_nothing,
       position('default-src ''none''; style-src ''unsafe-inline''' IN page) > 0 AS has_policy
FROM report;

-- a name is escaped, and is not in a redacted page
SELECT position('&lt;script&gt;alert(' IN page) > 0 AS is_shown,
       position('alert(' IN redacted) = 0 AS is_left_out,
       figures #> '{report}' ->> 'is_redacted' AS is_redacted,
       figures -> 'processes' @> jsonb_build_array(jsonb_build_object('application_name', current_setting('application_name'))) AS is_in_figures
FROM report;

-- the figures are the same as in the views
SELECT figures -> 'status' ->> 'status' = s.status AS status,
       figures -> 'status' ->> 'reason' = s.reason AS reason,
       figures -> 'status' ->> 'remedy' IS NOT DISTINCT FROM s.remedy AS remedy,
       (figures -> 'server' ->> 'segment_bytes')::bigint IS NOT DISTINCT FROM s.segment_bytes AS segment_bytes
FROM report, hugeinfo_status AS s;
SELECT bool_and(f ->> 'status' = c.status) AS statuses, count(*) = (SELECT count(*) FROM hugeinfo_checks) AS all_checks
FROM report, jsonb_array_elements(figures -> 'checks') AS f
JOIN hugeinfo_checks AS c ON c.name = f ->> 'name';
SELECT count(*) FILTER (WHERE r.command IS DISTINCT FROM f ->> 'command') AS different
FROM report, jsonb_array_elements(figures -> 'runbook') AS f
FULL JOIN hugeinfo_runbook AS r ON r.step = (f ->> 'step')::int;
SELECT count(*) FILTER (WHERE (f ->> 'required_pages')::bigint IS DISTINCT FROM p.required_pages
    OR (f ->> 'recommended_nr_hugepages')::bigint IS DISTINCT FROM p.recommended_nr_hugepages) AS different
FROM report, jsonb_array_elements(figures -> 'pools') AS f
FULL JOIN hugeinfo_pools AS p ON p.page_size_bytes = (f ->> 'page_size_bytes')::bigint;
SELECT count(*) FILTER (WHERE (f ->> 'max_connections_bytes')::bigint IS DISTINCT FROM p.max_connections_bytes) AS different
FROM report, jsonb_array_elements(figures -> 'page_tables') AS f
FULL JOIN hugeinfo_page_tables AS p ON p.page_size_bytes = (f ->> 'page_size_bytes')::bigint;

-- the figures are consistent: each type is the sum of its processes
SELECT (figures #>> '{footprint,page_table_bytes}')::bigint = (SELECT sum((t ->> 'page_table_bytes')::bigint) FROM jsonb_array_elements(figures -> 'backend_types') AS t) AS page_table_bytes,
       (figures #>> '{footprint,page_table_bytes}')::bigint = (figures #>> '{page_tables,0,now_bytes}')::bigint AS now_bytes,
       (figures #>> '{footprint,processes}')::bigint = (SELECT sum((t ->> 'processes')::bigint) FROM jsonb_array_elements(figures -> 'backend_types') AS t) AS processes
FROM report;

-- a quoted literal is read as PostgreSQL reads a boolean
SELECT position('is_redacted&quot;: ' || redacted IN hugeinfo_report(literal)) > 0 AS is_read
FROM (VALUES (text 'on', 'true'), ('f', 'false')) AS v (literal, redacted);
SELECT hugeinfo_report('secret');
-- NULL is not accepted
SELECT hugeinfo_report(NULL) IS NULL AS is_null, hugeinfo_report(NULL::boolean) IS NULL AS is_null_of_boolean;
DROP TABLE report;
RESET application_name;
