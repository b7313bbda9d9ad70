ALTER FUNCTION hugeinfo_fault_rates(interval) ROWS 100;

-- With arguments: another function in this schema could match a call without any.
CREATE VIEW hugeinfo_fault_rates AS
SELECT pid,
       backend_type,
       presence,
       seconds,
       minor_faults,
       major_faults,
       minor_faults_per_second,
       major_faults_per_second
FROM hugeinfo_fault_rates(interval '1 s');

REVOKE ALL ON FUNCTION hugeinfo_fault_rates(interval) FROM PUBLIC;
REVOKE ALL ON hugeinfo_fault_rates FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugeinfo_fault_rates(interval) TO pg_monitor;
GRANT SELECT ON hugeinfo_fault_rates TO pg_monitor;

COMMENT ON FUNCTION hugeinfo_fault_rates(interval) IS
'Page faults of each process of this server during a sample of this duration, at most one hour.';
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
