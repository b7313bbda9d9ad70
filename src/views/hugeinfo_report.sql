REVOKE ALL ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_report() IS
'This server and its host as one HTML page with pictures, for a file: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. ASCII, at most 100 kB, without scripts. Costs as much as hugeinfo_checks and one plan.';
COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'hugeinfo_report(); if redact is true, without names of roles, databases, applications, hosts and clusters, and without paths, ports and addresses, for a public ticket. NULL gives NULL.';
COMMENT ON FUNCTION hugeinfo_report(text) IS
'hugeinfo_report(boolean) with the value as text, for quoted literals. NULL gives NULL.';
