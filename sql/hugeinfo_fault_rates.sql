-- The contract of hugeinfo_fault_rates(duration), and of the view for one second.
\d hugeinfo_fault_rates
SELECT pg_get_function_result('hugeinfo_fault_rates(interval)'::regprocedure);

SELECT count(*) >= 4 AS processes,
       count(*) = count(DISTINCT pid) AS no_process_twice,
       bool_and(seconds >= 0.05) AS seconds,
       bool_and(minor_faults >= 0 AND major_faults >= 0) AS faults,
       bool_and(abs(minor_faults_per_second * seconds - minor_faults) < 0.001) AS rates,
       count(*) FILTER (WHERE backend_type = 'postmaster') AS postmasters
FROM hugeinfo_fault_rates('50 ms')
WHERE presence = 'stayed';

-- all notations of a duration
SELECT min(seconds) >= 0.02 AND min(seconds) < 1 AS as_text FROM hugeinfo_fault_rates(duration => '20 ms');
SELECT min(seconds) >= 0.02 AND min(seconds) < 1 AS as_interval FROM hugeinfo_fault_rates(duration => interval '20 ms');
SELECT min(seconds) BETWEEN 1 AND 30 AS by_default FROM hugeinfo_fault_rates();
SELECT min(seconds) BETWEEN 1 AND 30 AS by_view FROM hugeinfo_fault_rates;

-- bad samples
DO $$
DECLARE
    duration text;
    state text;
    hint text;
BEGIN
    FOREACH duration IN ARRAY ARRAY['0', '-1 second', '1 hour 1 microsecond', '178000000 years', '-178000000 years', '1 month', '-1 month 30 days', '1 day -25 hours'] LOOP
        BEGIN
            PERFORM hugeinfo_fault_rates(duration::interval);
            RAISE EXCEPTION '% was taken', duration;
        EXCEPTION WHEN invalid_parameter_value THEN
            GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
            RAISE NOTICE '%: % %', duration, state, hint <> '';
        END;
    END LOOP;
END
$$;
SELECT hugeinfo_fault_rates('0');
SELECT hugeinfo_fault_rates('a while');
\set VERBOSITY sqlstate
SELECT hugeinfo_fault_rates('');
\set VERBOSITY default
-- NULL: no row, and no sleep
SELECT count(*) FROM hugeinfo_fault_rates(NULL);
SELECT count(*) FROM hugeinfo_fault_rates(NULL::interval);

-- a cancel ends the wait, and the next call is correct
SET statement_timeout = '100ms';
SELECT count(*) FROM hugeinfo_fault_rates('10 minutes');
RESET statement_timeout;
SELECT count(*) > 0 AS processes FROM hugeinfo_fault_rates('1 ms');
