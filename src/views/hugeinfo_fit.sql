ALTER FUNCTION hugeinfo_fit(integer) ROWS 1;
ALTER FUNCTION hugeinfo_fit(integer, jsonb) ROWS 1;
ALTER FUNCTION hugeinfo_fit(integer, text) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint, jsonb) ROWS 1;
ALTER FUNCTION hugeinfo_fit(bigint, text) ROWS 1;

-- These functions run a program, so only superusers can call them until granted, as hugeinfo_plan.
REVOKE ALL ON FUNCTION hugeinfo_fit(integer), hugeinfo_fit(integer, jsonb), hugeinfo_fit(integer, text),
    hugeinfo_fit(bigint), hugeinfo_fit(bigint, jsonb), hugeinfo_fit(bigint, text) FROM PUBLIC;

COMMENT ON FUNCTION hugeinfo_fit(bigint) IS
'The largest shared_buffers whose main shared memory segment fits into this many huge pages, in one row, with the configuration files on disk; one block more does not fit.';
COMMENT ON FUNCTION hugeinfo_fit(bigint, jsonb) IS
'hugeinfo_fit(bigint) with these settings, as for hugeinfo_plan(jsonb), without shared_buffers; NULL raises an error.';
COMMENT ON FUNCTION hugeinfo_fit(bigint, text) IS
'hugeinfo_fit(bigint, jsonb) with the settings as name=value pairs, as in max_connections=500 huge_page_size=1GB, or as JSON.';
COMMENT ON FUNCTION hugeinfo_fit(integer) IS
'hugeinfo_fit(bigint) for numbers without a cast.';
COMMENT ON FUNCTION hugeinfo_fit(integer, jsonb) IS
'hugeinfo_fit(bigint, jsonb) for numbers without a cast.';
COMMENT ON FUNCTION hugeinfo_fit(integer, text) IS
'hugeinfo_fit(bigint, text) for numbers without a cast.';
