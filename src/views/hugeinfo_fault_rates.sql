ALTER FUNCTION hugeinfo_fault_rates() ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(interval) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(text) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(smallint) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(integer) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(bigint) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(real) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(double precision) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(numeric) ROWS 100;

REVOKE ALL ON FUNCTION hugeinfo_fault_rates(), hugeinfo_fault_rates(interval),
    hugeinfo_fault_rates(text), hugeinfo_fault_rates(smallint), hugeinfo_fault_rates(integer),
    hugeinfo_fault_rates(bigint), hugeinfo_fault_rates(real),
    hugeinfo_fault_rates(double precision), hugeinfo_fault_rates(numeric) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_fault_rates(), hugeinfo_fault_rates(interval),
    hugeinfo_fault_rates(text), hugeinfo_fault_rates(smallint), hugeinfo_fault_rates(integer),
    hugeinfo_fault_rates(bigint), hugeinfo_fault_rates(real),
    hugeinfo_fault_rates(double precision), hugeinfo_fault_rates(numeric) TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_fault_rates() IS
'hugeinfo_fault_rates(interval) of one second.';
COMMENT ON FUNCTION hugeinfo_fault_rates(interval) IS
'Page faults of each process of this server over a sample, as sar -B and pidstat -r show them: sleeps for the duration, at most an hour, and holds the snapshot of its query as long. presence: stayed, came (faults since it started) or went (NULL). seconds: the real length of the sample. minor_faults, major_faults: in the sample, without and with reading from disk. minor_faults_per_second, major_faults_per_second: the same as rates. From fields 10 and 12 of /proc/PID/stat. A duration that is NULL: no row, and no sleep.';
COMMENT ON FUNCTION hugeinfo_fault_rates(text) IS
'hugeinfo_fault_rates(interval) with the interval as text, for quoted literals.';
COMMENT ON FUNCTION hugeinfo_fault_rates(smallint) IS
'hugeinfo_fault_rates(interval) of so many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(integer) IS
'hugeinfo_fault_rates(interval) of so many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(bigint) IS
'hugeinfo_fault_rates(interval) of so many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(real) IS
'hugeinfo_fault_rates(interval) of so many seconds and parts of one.';
COMMENT ON FUNCTION hugeinfo_fault_rates(double precision) IS
'hugeinfo_fault_rates(interval) of so many seconds and parts of one.';
COMMENT ON FUNCTION hugeinfo_fault_rates(numeric) IS
'hugeinfo_fault_rates(interval) of so many seconds and parts of one, rounded to microseconds.';
