-- The contract of hugeinfo_report.
SELECT pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
FROM pg_proc
WHERE proname = 'hugeinfo_report'
ORDER BY 1;

SET application_name = '<script>alert(''&"'')</script>';
CREATE TEMP TABLE report AS
SELECT hugeinfo_report() AS page, hugeinfo_report(before => to_jsonb(f)) AS compared, NULL AS words
FROM hugeinfo_footprint AS f;
-- the text of a page
UPDATE report
SET words = replace(replace(replace(replace(regexp_replace(substring(page FROM '<body>.*'), '<[^>]*>', '', 'g'),
    '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&amp;', '&');

-- one page in ASCII, which any encoding supports
SELECT starts_with(page, '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">') AS is_page,
       page LIKE '%</html>' AS is_whole,
       octet_length(page) < 100000 AS is_small,
       page !~ '[^\x0a\x20-\x7e]' AS is_ascii,
       position('<script' IN page) = 0 AS runs_nothing,
       position('default-src ''none''; style-src ''unsafe-inline''' IN page) > 0 AS has_policy
FROM report;

-- a name is escaped
SELECT position('&lt;script&gt;alert(' IN page) > 0 AS is_shown,
       position(current_setting('application_name') IN words) > 0 AS is_text
FROM report;

-- the page has the results of the views
SELECT position(s.status || ' ' || s.reason IN words) > 0 AS has_reason
FROM report, hugeinfo_status AS s;
SELECT count(*) FILTER (WHERE position(format('<b class="badge %1$s">%1$s</b> <code>%2$s</code>', c.status, c.name) IN page) = 0) AS missing
FROM report, hugeinfo_checks AS c;
SELECT count(*) FILTER (WHERE position(r.command IN words) = 0) AS missing
FROM report, hugeinfo_runbook AS r;
SELECT count(*) FILTER (WHERE words !~ format('\m%s huge pages? of ', p.total_pages)) AS missing
FROM report, hugeinfo_pools AS p
WHERE p.total_pages > 0;

-- a saved row is compared
SELECT position('Before and now' IN compared) > 0 AS is_compared, position('Before and now' IN page) = 0 AS is_optional
FROM report;
SELECT hugeinfo_report(before => '{"page_table_bytes": null}'::jsonb);
SELECT hugeinfo_report(before => '[]'::jsonb);
SELECT hugeinfo_report(before => 'null');
-- without a row
SELECT position('Before and now' IN hugeinfo_report(before => NULL)) = 0 AS is_not_compared;
DROP TABLE report;
RESET application_name;
