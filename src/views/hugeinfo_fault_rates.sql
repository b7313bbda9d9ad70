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
'Page faults of each process of this server in a sample, as sar -B and pidstat -r show them. Sleeps for the duration, at most one hour; the snapshot of the query is held that long. presence: stayed; came: the process started in the sample, and its faults count from its start; went: it ended, and its faults are NULL. seconds: real length of the sample. minor_faults: faults in the sample that read nothing from disk. major_faults: faults that read from disk. minor_faults_per_second, major_faults_per_second: the same as rates. From fields 10 and 12 of /proc/PID/stat. With a NULL duration there is no row and no sleep.';
COMMENT ON FUNCTION hugeinfo_fault_rates(text) IS
'hugeinfo_fault_rates(interval) with the interval as text, for quoted literals.';
COMMENT ON FUNCTION hugeinfo_fault_rates(smallint) IS
'hugeinfo_fault_rates(interval) of this many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(integer) IS
'hugeinfo_fault_rates(interval) of this many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(bigint) IS
'hugeinfo_fault_rates(interval) of this many seconds.';
COMMENT ON FUNCTION hugeinfo_fault_rates(real) IS
'hugeinfo_fault_rates(interval) of this many seconds, fractions included.';
COMMENT ON FUNCTION hugeinfo_fault_rates(double precision) IS
'hugeinfo_fault_rates(interval) of this many seconds, fractions included.';
COMMENT ON FUNCTION hugeinfo_fault_rates(numeric) IS
'hugeinfo_fault_rates(interval) of this many seconds, fractions included, rounded to microseconds.';
