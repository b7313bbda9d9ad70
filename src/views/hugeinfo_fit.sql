ALTER FUNCTION hugeinfo_fit(bigint, text) ROWS 1;

-- This function runs a program, so only superusers can call it until granted, as hugeinfo_plan.
REVOKE ALL ON FUNCTION hugeinfo_fit(bigint, text) FROM PUBLIC;

COMMENT ON FUNCTION hugeinfo_fit(bigint, text) IS
'The largest shared_buffers whose main shared memory segment fits into this many huge pages, in one row, with the configuration files on disk and these settings, as for hugeinfo_plan, without shared_buffers; one block more does not fit.';
