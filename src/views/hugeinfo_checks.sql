ALTER FUNCTION hugeinfo_checks() ROWS 22;

CREATE VIEW hugeinfo_checks AS
SELECT name,
       status,
       severity,
       is_muted,
       finding,
       evidence,
       remedy,
       steps
FROM hugeinfo_checks();

REVOKE ALL ON FUNCTION hugeinfo_checks() FROM PUBLIC;
REVOKE ALL ON hugeinfo_checks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_checks() TO pg_monitor;
GRANT SELECT ON hugeinfo_checks TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_checks() IS
'Each diagnosis of this server and its host, also the healthy ones; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_checks IS
'Each diagnosis of this server and its host, also the healthy ones: what was found, the figures that it rests on, what to type. hugeinfo_status gives the worst of the first four that are not muted: these are cheap.';
COMMENT ON COLUMN hugeinfo_checks.name IS
'Which diagnosis; the documentation has a section of that name.';
COMMENT ON COLUMN hugeinfo_checks.status IS
'ok, warning, critical, or unknown where a source that is needed is missing or denied.';
COMMENT ON COLUMN hugeinfo_checks.severity IS
'The status as a number, for sorting and thresholds: 0 ok, 1 unknown, 2 warning, 3 critical.';
COMMENT ON COLUMN hugeinfo_checks.is_muted IS
'Whether the setting pg_hugeinfo.muted_checks names this check. It still says what it finds; hugeinfo_status and hugeinfo_runbook leave it out.';
COMMENT ON COLUMN hugeinfo_checks.finding IS
'What was found, with the figures.';
COMMENT ON COLUMN hugeinfo_checks.evidence IS
'The figures by name: bytes end in _bytes, counts of pages in _pages. Those that the kernel does not report are null.';
COMMENT ON COLUMN hugeinfo_checks.remedy IS
'What to type. NULL: nothing.';
COMMENT ON COLUMN hugeinfo_checks.steps IS
'The remedy for programs: an array of objects with where_to_run, command and is_disruptive, in order. NULL: nothing.';
