-- The contract of hugeinfo_runbook, true on every machine: which steps there are depends on the
-- host, and is proven elsewhere.
\d hugeinfo_runbook
SELECT bool_and(step = n) IS NOT FALSE AS is_in_order,
       bool_and(where_to_run IN ('root shell', 'SQL', 'service', 'orchestrator', 'boot loader', 'decision')) IS NOT FALSE AS places,
       bool_and(command <> '' AND why <> '') IS NOT FALSE AS commands,
       bool_and((where_to_run = 'decision') = (expected IS NULL)) IS NOT FALSE AS expectations,
       bool_and(expected ~ '^(ok|warning|critical|unknown): |^the server is down$') IS NOT FALSE AS statuses,
       bool_and(NOT is_disruptive OR where_to_run = 'service') IS NOT FALSE AS disruptions
FROM (SELECT *, row_number() OVER () AS n FROM hugeinfo_runbook) AS r;

-- A remedy of the checks is part of it, or is a decision.
SELECT count(*) AS contradictions
FROM hugeinfo_checks AS c, jsonb_array_elements(c.steps) AS s
WHERE s ->> 'command' ~ '^sysctl -w vm.nr_hugepages='
    AND s ->> 'command' NOT IN (SELECT command FROM hugeinfo_runbook);

-- Nothing planned is the same as no plan, but for figures: memory comes and goes between two calls.
CREATE TEMPORARY VIEW unplanned AS
SELECT step, where_to_run, regexp_replace(command, '\d+', 'N', 'g') AS command FROM hugeinfo_runbook;
SELECT count(*) AS differences FROM (
    SELECT step, where_to_run, regexp_replace(command, '\d+', 'N', 'g') AS command FROM hugeinfo_runbook('{}'::jsonb)
) AS r FULL JOIN unplanned USING (step, where_to_run, command)
WHERE r IS NULL OR unplanned IS NULL;

-- What is planned is typed, after the pool and before the restart; or it cannot be had, and a
-- person is told so.
SELECT bool_or(command ~ 'ALTER SYSTEM SET max_connections = \d+' AND where_to_run = 'SQL'
               OR where_to_run = 'decision') AS is_planned
FROM hugeinfo_runbook(jsonb_build_object('max_connections', current_setting('max_connections')::int + 100));

-- What the server has already is not typed again, however it is written.
SELECT count(*) AS differences FROM (
    SELECT r.step, r.where_to_run, regexp_replace(r.command, '\d+', 'N', 'g') AS command
    FROM (SELECT jsonb_build_object(
            'shared_buffers', setting::bigint * 8 || 'kB',
            'hot_standby', CASE current_setting('hot_standby') WHEN 'on' THEN 'yes' ELSE 'no' END,
            'wal_level', upper(current_setting('wal_level')),
            'max_connections', current_setting('max_connections')::int,
            'wal_buffers', -1) AS settings
         FROM pg_settings WHERE name = 'shared_buffers') AS s,
        hugeinfo_runbook(settings) AS r
) AS r FULL JOIN unplanned USING (step, where_to_run, command)
WHERE r IS NULL OR unplanned IS NULL;

-- What changes no size is typed as well; one statement a row.
SELECT bool_or(command = 'ALTER SYSTEM SET wal_level = ''minimal''') AS wal_level,
       bool_or(command = 'ALTER SYSTEM SET max_wal_senders = 0') AS max_wal_senders,
       bool_or(command IN ('restart PostgreSQL', 'stop PostgreSQL')) AS restart,
       count(*) FILTER (WHERE where_to_run = 'SQL' AND command ~ ';') AS of_several
FROM hugeinfo_runbook('{"wal_level": "minimal", "max_wal_senders": 0}');

-- As in hugeinfo_plan.
SELECT count(*) FROM hugeinfo_runbook('{"work_mem": "4MB"}');
SELECT count(*) FROM hugeinfo_runbook('{"shared_buffers": "many"}');
SELECT count(*) FROM hugeinfo_runbook('[]');
-- It is for this host.
SELECT count(*) FROM hugeinfo_runbook('{"shared_buffers": "1GB", "HOST_RAM": "256GB"}');
SELECT count(*) FROM hugeinfo_runbook('{"host_huge_page_sizes": "2MB"}');
SELECT count(*) FROM hugeinfo_runbook('{"hostram": "256GB"}');
SELECT count(*) FROM hugeinfo_runbook(NULL);
\set VERBOSITY sqlstate
SELECT count(*) FROM hugeinfo_runbook(NULL::text);
SELECT count(*) FROM hugeinfo_runbook(NULL::jsonb);
\set VERBOSITY default
