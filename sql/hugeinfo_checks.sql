-- The contract of hugeinfo_checks on every machine. Other tests cover findings, which depend on the
-- host.
\d hugeinfo_checks
SELECT name FROM hugeinfo_checks LIMIT 3;

SELECT bool_and(status IN ('ok', 'warning', 'critical', 'unknown')) AS statuses,
       bool_and(finding <> '' AND finding ~ '\.$') AS findings,
       bool_and(code ~ '^[a-z_]+$') AS codes,
       bool_and(jsonb_typeof(evidence) = 'object') AS objects,
       coalesce(bool_and(remedy <> ''), true) AS remedies,
       coalesce(bool_and(status IN ('warning', 'critical')) FILTER (WHERE remedy IS NOT NULL), true) AS remedies_where_needed
FROM hugeinfo_checks;

-- In the order of their severity.
SELECT bool_and(severity = array_position(ARRAY['ok', 'unknown', 'warning', 'critical'], status) - 1) AS severities
FROM hugeinfo_checks;

-- Muted checks keep their findings, and the status and the runbook omit them. The format is a
-- PostgreSQL list, and an unknown name raises a warning.
SHOW pg_hugeinfo.muted_checks;
SELECT name, status, finding, remedy FROM hugeinfo_checks WHERE is_muted;
CREATE TEMPORARY TABLE loud AS SELECT name, status, severity FROM hugeinfo_checks;
SET pg_hugeinfo.muted_checks = cgroup_fault_limit, 'Huge_Pages', ' restart , "pool_size"';
SHOW pg_hugeinfo.muted_checks;
SELECT name FROM hugeinfo_checks WHERE is_muted;
SELECT name, status, severity FROM hugeinfo_checks WHERE is_muted EXCEPT TABLE loud;
SELECT status, remedy, reason ~ 'Muted: ' = EXISTS (SELECT FROM hugeinfo_checks WHERE is_muted AND severity > 0) AS reason
FROM hugeinfo_status;
SELECT coalesce(string_agg(name, ', '), '') AS ill FROM loud WHERE severity >= 2 \gset
SELECT set_config('pg_hugeinfo.muted_checks', :'ill', false) = :'ill' AS muted;
SELECT count(*) FROM hugeinfo_runbook;
\set VERBOSITY terse
SET pg_hugeinfo.muted_checks = hugepages, swap;
\set VERBOSITY default
SELECT name FROM hugeinfo_checks WHERE is_muted;
SET pg_hugeinfo.muted_check = swap;
RESET pg_hugeinfo.muted_checks;
DROP TABLE loud;

-- hugeinfo_status has the worst of the checks about the server, and all critical ones.
WITH cheap AS (
    SELECT c.*, array_position(ARRAY['critical', 'warning', 'unknown', 'ok'], c.status) AS rank
    FROM (SELECT *, row_number() OVER () AS n FROM hugeinfo_checks) AS c
    WHERE name IN ('cgroup_fault_limit', 'huge_pages', 'restart', 'pool_size') OR status = 'critical'
), worst AS (
    SELECT * FROM cheap ORDER BY rank, n LIMIT 1
)
SELECT s.status = w.status AS status, s.code = w.code OR s.status = 'ok' AS code, s.reason = w.finding OR s.status = 'ok' AS reason,
       s.remedy IS NOT DISTINCT FROM w.remedy AS remedy
FROM hugeinfo_status AS s, worst AS w;

-- The figures are the same as in other objects.
SELECT (c.evidence ->> 'needed_bytes')::bigint <= s.segment_bytes AS needed,
       (c.evidence ->> 'required_pages')::bigint IS NOT DISTINCT FROM s.required_huge_pages AS required,
       (c.evidence ->> 'shortfall_pages')::bigint IS NOT DISTINCT FROM s.shortfall_pages AS shortfall
FROM hugeinfo_checks AS c, hugeinfo_status AS s WHERE c.name = 'restart';
SELECT (evidence ->> 'hugetlb_shm_group')::bigint = (SELECT hugetlb_shm_group FROM hugeinfo_host) AS hugetlb_shm_group
FROM hugeinfo_checks WHERE name = 'hugetlb_shm_group';
SELECT (evidence ->> 'memory_total_bytes')::bigint = (SELECT memory_total_bytes FROM hugeinfo_host) AS memory_total_bytes
FROM hugeinfo_checks WHERE name = 'memory_left';

-- Nothing is pending, and pg_monitor can see that.
CREATE ROLE regress_hugeinfo_checks IN ROLE pg_monitor;
SET ROLE regress_hugeinfo_checks;
SELECT status, finding FROM hugeinfo_checks WHERE name = 'pending_settings';
SELECT count(*) FROM hugeinfo_checks WHERE status = 'unknown' AND name IN ('huge_pages', 'page_tables', 'swap', 'oom_protection');
RESET ROLE;
DROP ROLE regress_hugeinfo_checks;

-- It assigns no transaction ID, which is not possible on a standby or in a parallel query.
BEGIN;
SELECT count(*) > 0 AS checks FROM hugeinfo_checks;
SELECT pg_current_xact_id_if_assigned() IS NULL AS takes_none;
COMMIT;
