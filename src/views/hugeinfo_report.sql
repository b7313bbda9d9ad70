REVOKE ALL ON FUNCTION hugeinfo_report(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(boolean) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'This server and its host as one HTML page with pictures, for a file: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. ASCII, at most 100 kB, without scripts. redact: names of roles, databases, applications, hosts and clusters, paths, ports and addresses are left out, for a public ticket. Costs as much as hugeinfo_checks and one plan.';
