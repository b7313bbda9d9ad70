-- The contract of hugeinfo_runbook, true on every machine: which steps there are depends on the
-- host, and is proven elsewhere.
\d hugeinfo_runbook
SELECT bool_and(step = n) IS NOT FALSE AS is_in_order,
       bool_and(where_to_run IN ('root shell', 'SQL', 'service', 'orchestrator', 'decision')) IS NOT FALSE AS places,
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

-- Nothing planned is the same as no plan.
SELECT count(*) AS differences FROM (
    (TABLE hugeinfo_runbook EXCEPT SELECT * FROM hugeinfo_runbook('{}'))
    UNION ALL
    (SELECT * FROM hugeinfo_runbook('{}'::jsonb) EXCEPT TABLE hugeinfo_runbook)
) AS d;

-- What is planned is typed, after the pool and before the restart; or it cannot be had, and a
-- person is told so.
SELECT bool_or(command ~ 'ALTER SYSTEM SET "max_connections" = ''\d+''' AND where_to_run = 'SQL'
               OR where_to_run = 'decision') AS is_planned
FROM hugeinfo_runbook(jsonb_build_object('max_connections', current_setting('max_connections')::int + 100));

-- As in hugeinfo_plan.
SELECT count(*) FROM hugeinfo_runbook('{"work_mem": "4MB"}');
SELECT count(*) FROM hugeinfo_runbook('{"shared_buffers": "many"}');
SELECT count(*) FROM hugeinfo_runbook('[]');
