REVOKE ALL ON FUNCTION hugeinfo_report(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_report(jsonb) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_report(jsonb) IS
'A report on this server and its host as one HTML page: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. With a saved row of hugeinfo_footprint as JSON, before => to_jsonb(f), it compares the memory before and now.';
