ALTER FUNCTION hugeinfo_checks() ROWS 22;

CREATE VIEW hugeinfo_checks AS
SELECT name,
       status,
       code,
       finding,
       remedy,
       evidence,
       steps,
       severity,
       is_muted
FROM hugeinfo_checks();

REVOKE ALL ON FUNCTION hugeinfo_checks() FROM PUBLIC;
REVOKE ALL ON hugeinfo_checks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_checks() TO pg_monitor;
GRANT SELECT ON hugeinfo_checks TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_checks() IS
'Every check of this server and its host; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_checks IS
'Every check of this server and its host, including healthy ones, in order of importance.';
COMMENT ON COLUMN hugeinfo_checks.name IS
'Name of the check; docs/checks.md has a section for each.';
COMMENT ON COLUMN hugeinfo_checks.status IS
'ok, unknown (a source is missing or cannot be read), warning or critical.';
COMMENT ON COLUMN hugeinfo_checks.code IS
'Stable reason for programs, such as fell_back.';
COMMENT ON COLUMN hugeinfo_checks.severity IS
'The status as a number: 0 ok, 1 unknown, 2 warning, 3 critical.';
COMMENT ON COLUMN hugeinfo_checks.is_muted IS
'Whether the setting pg_hugeinfo.muted_checks names this check, so that hugeinfo_status and hugeinfo_runbook leave it out.';
COMMENT ON COLUMN hugeinfo_checks.finding IS
'The result as text: one statement, one number, one cause.';
COMMENT ON COLUMN hugeinfo_checks.evidence IS
'The numbers by name, for programs; null if the kernel does not report a number.';
COMMENT ON COLUMN hugeinfo_checks.remedy IS
'Lines to paste, with other text as comments; NULL if there is nothing to do.';
COMMENT ON COLUMN hugeinfo_checks.steps IS
'The remedy for programs: an array of objects with action, where, is_disruptive, and command or instruction.';
