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
'Every check of this server and its host, healthy ones too; the function behind the view of the same name.';
COMMENT ON VIEW hugeinfo_checks IS
'Every check of this server and its host, healthy ones too: what was found, with which figures, and what to type. The first four checks are cheap; hugeinfo_status shows the worst of them that is not muted.';
COMMENT ON COLUMN hugeinfo_checks.name IS
'Name of the check; docs/checks.md has a section of that name.';
COMMENT ON COLUMN hugeinfo_checks.status IS
'ok, warning, critical, or unknown: a source that the check needs is missing or may not be read.';
COMMENT ON COLUMN hugeinfo_checks.severity IS
'The status as a number, for sorting and thresholds: 0 ok, 1 unknown, 2 warning, 3 critical.';
COMMENT ON COLUMN hugeinfo_checks.is_muted IS
'Whether the setting pg_hugeinfo.muted_checks names this check. A muted check still runs; hugeinfo_status and hugeinfo_runbook leave it out.';
COMMENT ON COLUMN hugeinfo_checks.finding IS
'What was found, with the figures.';
COMMENT ON COLUMN hugeinfo_checks.evidence IS
'The figures by name. Names of bytes end in _bytes, names of counts of pages in _pages. null: the kernel does not report it.';
COMMENT ON COLUMN hugeinfo_checks.remedy IS
'What to type. NULL: there is nothing to do.';
COMMENT ON COLUMN hugeinfo_checks.steps IS
'The remedy for programs: an array of objects with where_to_run, command and is_disruptive, in order. NULL: there is nothing to do.';
