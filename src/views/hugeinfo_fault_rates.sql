ALTER FUNCTION hugeinfo_fault_rates() ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(interval) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(text) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(smallint) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(integer) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(bigint) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(real) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(double precision) ROWS 100;
ALTER FUNCTION hugeinfo_fault_rates(numeric) ROWS 100;

CREATE VIEW hugeinfo_fault_rates AS
SELECT pid,
       backend_type,
       presence,
       seconds,
       minor_faults,
       major_faults,
       minor_faults_per_second,
       major_faults_per_second
FROM hugeinfo_fault_rates();

REVOKE ALL ON FUNCTION hugeinfo_fault_rates(), hugeinfo_fault_rates(interval),
    hugeinfo_fault_rates(text), hugeinfo_fault_rates(smallint), hugeinfo_fault_rates(integer),
    hugeinfo_fault_rates(bigint), hugeinfo_fault_rates(real),
    hugeinfo_fault_rates(double precision), hugeinfo_fault_rates(numeric) FROM PUBLIC;
REVOKE ALL ON hugeinfo_fault_rates FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_fault_rates(), hugeinfo_fault_rates(interval),
    hugeinfo_fault_rates(text), hugeinfo_fault_rates(smallint), hugeinfo_fault_rates(integer),
    hugeinfo_fault_rates(bigint), hugeinfo_fault_rates(real),
    hugeinfo_fault_rates(double precision), hugeinfo_fault_rates(numeric) TO pg_monitor;
GRANT SELECT ON hugeinfo_fault_rates TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_fault_rates() IS
'hugeinfo_fault_rates(interval) of one second; the function behind the view of the same name.';
COMMENT ON FUNCTION hugeinfo_fault_rates(interval) IS
'Page faults of each process of this server during a sample of this duration, at most one hour.';
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
COMMENT ON VIEW hugeinfo_fault_rates IS
'Page faults of each process of this server during one second, as sar -B and pidstat -r show them.';
COMMENT ON COLUMN hugeinfo_fault_rates.pid IS
'Process ID.';
COMMENT ON COLUMN hugeinfo_fault_rates.backend_type IS
'Type of the process, as in hugeinfo_backends.';
COMMENT ON COLUMN hugeinfo_fault_rates.presence IS
'stayed, came (the process started during the sample), or went (it ended, and its faults are NULL).';
COMMENT ON COLUMN hugeinfo_fault_rates.seconds IS
'Actual length of the sample in seconds.';
COMMENT ON COLUMN hugeinfo_fault_rates.minor_faults IS
'Faults during the sample that did not read from disk.';
COMMENT ON COLUMN hugeinfo_fault_rates.major_faults IS
'Faults during the sample that read from disk.';
COMMENT ON COLUMN hugeinfo_fault_rates.minor_faults_per_second IS
'minor_faults per second.';
COMMENT ON COLUMN hugeinfo_fault_rates.major_faults_per_second IS
'major_faults per second.';
