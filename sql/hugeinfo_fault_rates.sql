-- The contract of hugeinfo_fault_rates(duration).
SELECT pg_get_function_arguments('hugeinfo_fault_rates(interval)'::regprocedure),
       pg_get_function_result('hugeinfo_fault_rates(interval)'::regprocedure);

SELECT count(*) >= 4 AS processes,
       count(*) = count(DISTINCT pid) AS no_process_twice,
       bool_and(seconds >= 0.05) AS seconds,
       bool_and(minor_faults >= 0 AND major_faults >= 0) AS faults,
       bool_and(abs(minor_faults_per_second * seconds - minor_faults) < 0.001) AS rates,
       count(*) FILTER (WHERE backend_type = 'postmaster') AS postmasters
FROM hugeinfo_fault_rates('50 ms')
WHERE presence = 'stayed';

-- bad samples
DO $$
DECLARE
    duration text;
    state text;
    hint text;
BEGIN
    FOREACH duration IN ARRAY ARRAY['0', '-1 second', '1 hour 1 microsecond', '178000000 years', '1 month', '-1 month 30 days'] LOOP
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
SELECT count(*) FROM hugeinfo_fault_rates(NULL);

-- a cancel ends the wait, and the next call is right
SET statement_timeout = '100ms';
SELECT count(*) FROM hugeinfo_fault_rates('10 minutes');
RESET statement_timeout;
SELECT count(*) > 0 AS processes FROM hugeinfo_fault_rates('1 ms');
