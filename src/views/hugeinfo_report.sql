REVOKE ALL ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(jsonb), hugeinfo_report(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(), hugeinfo_report(boolean), hugeinfo_report(jsonb), hugeinfo_report(text) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_report() IS
'A report on this server and its host as one HTML page: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html.';
COMMENT ON FUNCTION hugeinfo_report(boolean) IS
'hugeinfo_report() without names, paths, ports and addresses if redact is true, for a public ticket.';
COMMENT ON FUNCTION hugeinfo_report(jsonb) IS
'hugeinfo_report() with a comparison of the memory before and now; before is a saved row of hugeinfo_footprint as JSON: to_jsonb(f).';
COMMENT ON FUNCTION hugeinfo_report(text) IS
'hugeinfo_report(boolean) with the value as text, for quoted literals.';
