-- The contract of hugeinfo_fault_rates(duration), and of the view for one second.
\d hugeinfo_fault_rates
SELECT pg_get_function_result('hugeinfo_fault_rates(interval)'::regprocedure);
SELECT oid::regprocedure AS signature, proargnames[1:pronargs] AS arguments,
       pg_get_function_result(oid) = pg_get_function_result('hugeinfo_fault_rates(interval)'::regprocedure) AS same_columns
FROM pg_proc
WHERE proname = 'hugeinfo_fault_rates'
ORDER BY proargtypes;

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
SELECT min(seconds) >= 0.02 AND min(seconds) < 1 AS as_numeric FROM hugeinfo_fault_rates(duration => 0.02);
SELECT min(seconds) >= 0.02 AND min(seconds) < 1 AS as_double FROM hugeinfo_fault_rates(duration => 0.02::float8);
SELECT min(seconds) >= 0.02 AND min(seconds) < 1 AS as_real FROM hugeinfo_fault_rates(duration => 0.02::real);
SELECT min(seconds) BETWEEN 1 AND 30 AS as_integer FROM hugeinfo_fault_rates(duration => 1);
SELECT min(seconds) BETWEEN 1 AND 30 AS as_smallint FROM hugeinfo_fault_rates(duration => 1::smallint);
SELECT min(seconds) BETWEEN 1 AND 30 AS as_bigint FROM hugeinfo_fault_rates(duration => 1::bigint);
SELECT min(seconds) BETWEEN 1 AND 30 AS by_default FROM hugeinfo_fault_rates();
SELECT min(seconds) BETWEEN 1 AND 30 AS by_view FROM hugeinfo_fault_rates;

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
SELECT hugeinfo_fault_rates('a while');
\set VERBOSITY sqlstate
SELECT hugeinfo_fault_rates('');
SELECT hugeinfo_fault_rates(0);
SELECT hugeinfo_fault_rates(-1);
SELECT hugeinfo_fault_rates(3601);
SELECT hugeinfo_fault_rates(2147483648);
SELECT hugeinfo_fault_rates(-9223372036854775808);
SELECT hugeinfo_fault_rates(32767::smallint);
SELECT hugeinfo_fault_rates(-1::smallint);
SELECT hugeinfo_fault_rates(0::float8);
SELECT hugeinfo_fault_rates(-0.05::float8);
SELECT hugeinfo_fault_rates(1e308::float8);
SELECT hugeinfo_fault_rates(1e-308::float8);
SELECT hugeinfo_fault_rates('NaN'::float8);
SELECT hugeinfo_fault_rates('Infinity'::float8);
SELECT hugeinfo_fault_rates('NaN'::real);
SELECT hugeinfo_fault_rates(3601::real);
SELECT hugeinfo_fault_rates(0.0000004);
SELECT hugeinfo_fault_rates(-0.5);
SELECT hugeinfo_fault_rates(3600.000001);
SELECT hugeinfo_fault_rates('1e131000'::numeric);
SELECT hugeinfo_fault_rates('-1e131000'::numeric);
SELECT hugeinfo_fault_rates('1e-16000'::numeric);
SELECT hugeinfo_fault_rates('NaN'::numeric);
SELECT hugeinfo_fault_rates('Infinity'::numeric);
SELECT hugeinfo_fault_rates('-Infinity'::numeric);
\set VERBOSITY default
-- NULL: no row, and no sleep
SELECT count(*) FROM hugeinfo_fault_rates(NULL);
SELECT count(*) FROM hugeinfo_fault_rates(NULL::interval);
SELECT count(*) FROM hugeinfo_fault_rates(NULL::integer);

-- a cancel ends the wait, and the next call is correct
SET statement_timeout = '100ms';
SELECT count(*) FROM hugeinfo_fault_rates('10 minutes');
RESET statement_timeout;
SELECT count(*) > 0 AS processes FROM hugeinfo_fault_rates('1 ms');
