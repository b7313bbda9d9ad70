REVOKE ALL ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(text) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_report() IS
'Returns a report on this server and its host as one HTML page with pictures. To write it to a file: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. The page is ASCII, at most 100 kB, and has no scripts. Costs as much as hugeinfo_checks and one plan.';
COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'Like hugeinfo_report(). If redact is true, the page has no names of roles, databases, applications, hosts and clusters, and no paths, ports and addresses, so that it can be attached to a public ticket. Returns NULL if redact is NULL.';
COMMENT ON FUNCTION hugeinfo_report(text) IS
'Like hugeinfo_report(boolean), with the value as text, for quoted literals. Returns NULL if redact is NULL.';
