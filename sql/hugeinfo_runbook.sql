-- The contract of hugeinfo_runbook on every machine. Other tests cover the steps, which depend on
-- the host.
\d hugeinfo_runbook
SELECT bool_and(step = n) IS NOT FALSE AS is_in_order,
       bool_and(where_to_run IN ('root shell', 'root shell of the node', 'SQL', 'service', 'by hand')) IS NOT FALSE AS places,
       bool_and(num_nonnulls(command, instruction) = 1 AND why <> '') IS NOT FALSE AS commands,
       bool_and(where_to_run IS NOT NULL OR expected IS NULL) IS NOT FALSE AS expectations,
       bool_and(expected ~ '^(ok|warning|critical|unknown): |^the server is stopped$') IS NOT FALSE AS statuses,
       bool_and(NOT is_disruptive OR where_to_run = 'service') IS NOT FALSE AS disruptions
FROM (SELECT *, row_number() OVER () AS n FROM hugeinfo_runbook) AS r;

-- The runbook sets every pool that a remedy sets.
SELECT count(*) AS contradictions
FROM hugeinfo_checks AS c, jsonb_array_elements(c.steps) AS s
WHERE s ->> 'command' ~ '^sysctl -w vm.nr_hugepages='
    AND s ->> 'command' NOT IN (SELECT command FROM hugeinfo_runbook);

-- An empty plan equals no plan. Figures differ, because memory changes between two calls.
CREATE TEMPORARY VIEW unplanned AS
SELECT step, coalesce(where_to_run, '') AS where_to_run, regexp_replace(coalesce(command, instruction), '\d+', 'N', 'g') AS command FROM hugeinfo_runbook;
SELECT count(*) AS differences FROM (
    SELECT step, coalesce(where_to_run, '') AS where_to_run, regexp_replace(coalesce(command, instruction), '\d+', 'N', 'g') AS command
    FROM hugeinfo_runbook('')
) AS r FULL JOIN unplanned USING (step, where_to_run, command)
WHERE r IS NULL OR unplanned IS NULL;

-- A planned setting is changed. Only where nothing can be changed without a plan, either, a person has
-- to decide.
CREATE TEMPORARY VIEW host AS
SELECT coalesce(bool_and(where_to_run = ''), false) AS is_fixed FROM unplanned;
SELECT coalesce(bool_or(command ~ 'ALTER SYSTEM SET max_connections = \d+' AND where_to_run = 'SQL'), false)
       OR host.is_fixed AS is_planned
FROM host LEFT JOIN hugeinfo_runbook(jsonb_build_object('max_connections', current_setting('max_connections')::int + 100)::text) AS r
    ON true
GROUP BY host.is_fixed;

-- Settings that the server already has are not changed, in any notation.
SELECT count(*) AS differences FROM (
    SELECT r.step, coalesce(r.where_to_run, '') AS where_to_run, regexp_replace(coalesce(r.command, r.instruction), '\d+', 'N', 'g') AS command
    FROM (SELECT jsonb_build_object(
            'shared_buffers', setting::bigint * 8 || 'kB',
            'hot_standby', CASE current_setting('hot_standby') WHEN 'on' THEN 'yes' ELSE 'no' END,
            'wal_level', upper(current_setting('wal_level')),
            'max_connections', current_setting('max_connections')::int,
            'wal_buffers', -1) AS settings
         FROM pg_settings WHERE name = 'shared_buffers') AS s,
        hugeinfo_runbook(settings::text) AS r
) AS r FULL JOIN unplanned USING (step, where_to_run, command)
WHERE r IS NULL OR unplanned IS NULL;

-- Settings that change no size are also changed, with one statement per row.
SELECT coalesce(bool_or(command = 'ALTER SYSTEM SET hot_standby = ''off'';'), false) OR host.is_fixed AS hot_standby,
       coalesce(bool_or(command = 'ALTER SYSTEM SET max_wal_senders = 0;'), false) OR host.is_fixed AS max_wal_senders,
       coalesce(bool_or(instruction ~ '^(restart|stop) PostgreSQL'), false) OR host.is_fixed AS restart,
       count(*) FILTER (WHERE where_to_run = 'SQL' AND command ~ ';.') AS of_several
FROM host LEFT JOIN hugeinfo_runbook('{"hot_standby": "off", "max_wal_senders": 0}') AS r ON true
GROUP BY host.is_fixed;

-- The same errors as in hugeinfo_plan.
SELECT count(*) > 0 AS pairs FROM hugeinfo_runbook('shared_buffers=40MB max_connections=60');
SELECT count(*) FROM hugeinfo_runbook('{"work_mem": "4MB"}');
SELECT count(*) FROM hugeinfo_runbook('{"shared_buffers": "many"}');
SELECT count(*) FROM hugeinfo_runbook('[]');
SELECT count(*) FROM hugeinfo_runbook(NULL);
