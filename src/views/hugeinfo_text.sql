REVOKE ALL ON FUNCTION hugeinfo_text() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_text() TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_text() IS
'The answer for people, as text of at most 80 columns: status, pools, page tables, the next restart and reboot, and the steps to take.';
