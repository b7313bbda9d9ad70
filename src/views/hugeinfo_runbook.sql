ALTER FUNCTION hugeinfo_runbook() ROWS 5;
ALTER FUNCTION hugeinfo_runbook(jsonb) ROWS 5;
ALTER FUNCTION hugeinfo_runbook(text) ROWS 5;

CREATE VIEW hugeinfo_runbook AS
SELECT step,
       where_to_run,
       command,
       why,
       expected,
       is_disruptive
FROM hugeinfo_runbook();

REVOKE ALL ON FUNCTION hugeinfo_runbook(), hugeinfo_runbook(jsonb), hugeinfo_runbook(text) FROM PUBLIC;
REVOKE ALL ON hugeinfo_runbook FROM PUBLIC;
-- With settings it runs a program: superusers only until granted, as hugeinfo_plan.
GRANT EXECUTE ON FUNCTION hugeinfo_runbook() TO pg_monitor;
GRANT SELECT ON hugeinfo_runbook TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_runbook() IS
'Each step from here to a healthy server, in order; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_runbook(jsonb) IS
'Each step from here to a healthy server with these settings, as in {"shared_buffers": "64GB"}, in order. ALTER SYSTEM is one of the steps. Takes the settings of the server that hugeinfo_plan(jsonb) takes, and no other host. NULL settings are an error.';
COMMENT ON FUNCTION hugeinfo_runbook(text) IS
'hugeinfo_runbook(jsonb) with the settings as text of at most 64 kB, for quoted literals. NULL is an error.';
COMMENT ON VIEW hugeinfo_runbook IS
'Each step from here to a healthy server, in order. The steps were tried on a model of this machine: no step does harm, and none can be left out. There is no step for muted checks (setting pg_hugeinfo.muted_checks). No row: there is nothing to do.';
COMMENT ON COLUMN hugeinfo_runbook.step IS
'Number of the step, from 1.';
COMMENT ON COLUMN hugeinfo_runbook.where_to_run IS
'root shell: on the host. SQL: as a superuser. service: where PostgreSQL is started, such as systemd. orchestrator: where limits of containers are set, such as Kubernetes. boot loader: its configuration, for the kernel command line. decision: a person has to decide.';
COMMENT ON COLUMN hugeinfo_runbook.command IS
'What to type, or what to do.';
COMMENT ON COLUMN hugeinfo_runbook.why IS
'Reason for the step.';
COMMENT ON COLUMN hugeinfo_runbook.expected IS
'What hugeinfo_status will say after this step, computed on the model: status and reason. NULL: it depends on a decision.';
COMMENT ON COLUMN hugeinfo_runbook.is_disruptive IS
'Whether the step ends all sessions.';
