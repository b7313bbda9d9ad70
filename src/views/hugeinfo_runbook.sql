ALTER FUNCTION hugeinfo_runbook() ROWS 5;
ALTER FUNCTION hugeinfo_runbook(text) ROWS 5;

CREATE VIEW hugeinfo_runbook AS
SELECT step,
       where_to_run,
       command,
       why,
       expected,
       is_disruptive,
       instruction
FROM hugeinfo_runbook();

REVOKE ALL ON FUNCTION hugeinfo_runbook(), hugeinfo_runbook(text) FROM PUBLIC;
REVOKE ALL ON hugeinfo_runbook FROM PUBLIC;
-- With settings, it runs a program, so only superusers can call it until granted, as hugeinfo_plan.
GRANT EXECUTE ON FUNCTION hugeinfo_runbook() TO pg_monitor;
GRANT SELECT ON hugeinfo_runbook TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_runbook() IS
'Each step from here to a healthy server, in order; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_runbook(text) IS
'Each step from here to a healthy server with these settings, as in shared_buffers=64GB max_connections=500, or a JSON object; NULL raises an error.';
COMMENT ON VIEW hugeinfo_runbook IS
'Each step from here to a healthy server, in order; no row if there is nothing to do.';
COMMENT ON COLUMN hugeinfo_runbook.step IS
'Number of the step, from 1.';
COMMENT ON COLUMN hugeinfo_runbook.where_to_run IS
'root shell, root shell of the node, SQL, service, or by hand; NULL for a decision by a person.';
COMMENT ON COLUMN hugeinfo_runbook.command IS
'A line to paste; NULL if the step is not a command.';
COMMENT ON COLUMN hugeinfo_runbook.instruction IS
'Instruction for a person; NULL if the step is a command.';
COMMENT ON COLUMN hugeinfo_runbook.why IS
'Reason for the step.';
COMMENT ON COLUMN hugeinfo_runbook.expected IS
'Status and reason of hugeinfo_status after this step; NULL if the step does not change them.';
COMMENT ON COLUMN hugeinfo_runbook.is_disruptive IS
'Whether the step ends all sessions.';
