ALTER FUNCTION hugeinfo_memory() ROWS 1;
ALTER FUNCTION hugeinfo_memory(integer) ROWS 1;

REVOKE ALL ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_memory(), hugeinfo_memory(integer) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_memory() IS
'hugeinfo_memory(integer) of this backend.';
COMMENT ON FUNCTION hugeinfo_memory(integer) IS
'Memory of one process of this server from /proc/PID/smaps_rollup, or the sum of smaps: RSS, PSS, USS, swap and huge pages.';
