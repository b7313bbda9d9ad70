-- The contract of hugeinfo_plan(settings). With huge_pages = off, each plan raises a notice.
SET client_min_messages = warning;
SELECT unnest(string_to_array(pg_get_function_result('hugeinfo_plan(text)'::regprocedure), ', ')) AS result;

-- All notations have the same result.
SELECT count(DISTINCT segment_bytes) AS one_answer
FROM (SELECT segment_bytes FROM hugeinfo_plan(settings => jsonb_build_object('shared_buffers', '40MB')::text)
      UNION ALL SELECT segment_bytes FROM hugeinfo_plan(settings => '{"shared_buffers": "40MB"}')
      UNION ALL SELECT segment_bytes FROM hugeinfo_plan('{"shared_buffers": "40MB"}'::text)) AS plans;
SELECT count(DISTINCT segment_bytes) AS one_answer
FROM (SELECT segment_bytes FROM hugeinfo_plan() UNION ALL SELECT segment_bytes FROM hugeinfo_plan('{}')
      UNION ALL SELECT segment_bytes FROM hugeinfo_plan(' ')) AS plans;

-- Without settings, the plan is for the next restart. Here, the configuration has not changed since
-- the start. The setting is in whole MB.
SELECT count(*) >= 1 AS rows,
       count(DISTINCT segment_bytes) = 1 AS one_segment,
       bool_and((segment_bytes + 1048575) >> 20 = setting::bigint) AS as_the_setting,
       bool_and(segment_bytes % 8192 = 0) AS whole_blocks,
       bool_and(segment_percent_of_ram > 0) AS percent
FROM hugeinfo_plan(), pg_settings
WHERE name = 'shared_memory_size';

-- A row for each pool, or one without a pool. Columns that do not depend on the plan are the same
-- as in the view.
SELECT array_agg(page_size_bytes ORDER BY page_size_bytes) FILTER (WHERE page_size_bytes IS NOT NULL)
           IS NOT DISTINCT FROM (SELECT array_agg(page_size_bytes ORDER BY page_size_bytes) FROM hugeinfo_pools) AS pools,
       count(*) FILTER (WHERE page_size_bytes IS NULL) = (NOT EXISTS (SELECT FROM hugeinfo_pools))::int AS without
FROM hugeinfo_plan();
SELECT bool_and((p.is_default, p.is_used_by_server) IS NOT DISTINCT FROM (v.is_default, v.is_used_by_server)) IS NOT FALSE AS same_pools,
       bool_and(p.required_pages = ceil(p.segment_bytes / v.page_size_bytes::numeric)) IS NOT FALSE AS required,
       bool_and(p.tail_waste_bytes = p.required_pages * p.page_size_bytes - p.segment_bytes) IS NOT FALSE AS tail,
       bool_and(p.recommended_nr_hugepages >= p.others_pages + p.required_pages) IS NOT FALSE AS recommended,
       bool_and((p.shortfall_pages = 0) >= p.fits_after_restart) IS NOT FALSE AS fits,
       bool_and((p.recommended_nr_hugepages IS NULL) = (p.how_to_set IS NULL)) IS NOT FALSE AS how_to_set
FROM hugeinfo_plan('{"shared_buffers": "1GB"}') AS p JOIN hugeinfo_pools AS v USING (page_size_bytes);

-- Higher settings need more memory. Numbers, strings and booleans have the same meaning as in a
-- configuration file.
CREATE FUNCTION planned(settings text DEFAULT '') RETURNS bigint
LANGUAGE sql AS 'SELECT DISTINCT segment_bytes FROM hugeinfo_plan(settings)';
SELECT planned('{"shared_buffers": "1GB"}') - planned('{"shared_buffers": "512MB"}') BETWEEN 512 << 20 AND 544 << 20 AS buffers;
SELECT planned('{"shared_buffers": 65536}') = planned('{"Shared_Buffers": "512MB"}') AS blocks,
       planned('{"shared_buffers": 6.5536e4}') = planned('{"shared_buffers": "0.5GB"}') AS digits;
SELECT planned('{"max_connections": 500, "hot_standby": true}') > planned('{"max_connections": "400", "hot_standby": "on"}') AS connections,
       planned('{"max_connections": 400, "hot_standby": false}') < planned('{"max_connections": "400", "hot_standby": "on"}') AS booleans;
SELECT planned('{"shared_buffers": "7TB"}') > 7::bigint << 40 AS far_beyond,
       planned('{"shared_buffers": "8191GB", "wal_buffers": "1GB"}') > 8::bigint << 40 AS beyond_8_tib;

-- Plans do not change the running server.
SELECT count(*) FROM pg_settings WHERE pending_restart;

-- The pages that the planned server requests
SELECT count(*) FILTER (WHERE is_requested) = least(count(page_size_bytes), 1) AS default_size, bool_and(is_requested = is_default) IS NOT FALSE AS is_default
FROM hugeinfo_plan('{"huge_pages": "try", "huge_page_size": 0}');
SELECT bool_and(is_requested = (page_size_bytes = 1073741824)) IS NOT FALSE AS one_gb
FROM hugeinfo_plan('{"huge_pages": "on", "huge_page_size": "1GB"}');
-- The pages that it would request, and a notice that it does not
RESET client_min_messages;
SELECT count(*) FILTER (WHERE is_requested) = least(count(page_size_bytes), 1) AS off FROM hugeinfo_plan('{"huge_pages": false}');
SELECT count(*) FILTER (WHERE is_requested) = least(count(page_size_bytes), 1) AS sysv
FROM hugeinfo_plan('{"huge_pages": "on", "shared_memory_type": "sysv"}');
SET client_min_messages = warning;
SELECT count(*) FILTER (WHERE is_requested) = least(count(page_size_bytes), 1) AS no_such_size
FROM hugeinfo_plan('{"huge_pages": "try", "huge_page_size": "4MB"}');
RESET client_min_messages;

SET client_min_messages = warning;

-- NULL is an error.
SELECT hugeinfo_plan(NULL);

-- Pairs of names and values
\d hugeinfo_plan
SELECT count(DISTINCT segment_bytes) AS one_answer
FROM (SELECT segment_bytes FROM hugeinfo_plan('{"shared_buffers": "40MB", "max_connections": 60}')
      UNION ALL SELECT segment_bytes FROM hugeinfo_plan('shared_buffers=40MB max_connections=60')
      UNION ALL SELECT segment_bytes FROM hugeinfo_plan(E' shared_buffers = ''40MB''\n max_connections =60 ')) AS plans;
SELECT hugeinfo_plan('shared_buffers');
SELECT hugeinfo_plan('=40MB');
SELECT hugeinfo_plan('shared_buffers=');
SELECT hugeinfo_plan('shared_buffers=''40MB');
SELECT hugeinfo_plan('work_mem=4MB');
SELECT hugeinfo_plan('shared_bufers=4MB');

-- Invalid JSON raises PostgreSQL's own error. Text that is too long is not parsed.
SELECT hugeinfo_plan('{"shared_buffers": }');
\set VERBOSITY sqlstate
SELECT hugeinfo_plan(repeat('[', 65536));
\set VERBOSITY default
SELECT count(*) > 0 AS just_short_enough FROM hugeinfo_plan(repeat(' ', 65534) || '{}');
SELECT hugeinfo_plan(repeat(' ', 65535) || '{}');

-- PostgreSQL's own errors name the setting.
SELECT hugeinfo_plan('{"shared_buffers": "12 apples"}');
SELECT hugeinfo_plan('{"shared_buffers": ""}');
SELECT hugeinfo_plan('{"max_connections": 0}');
SELECT hugeinfo_plan('{"max_connections": 1e9}');
SELECT hugeinfo_plan('{"huge_pages": "perhaps"}');
SELECT hugeinfo_plan('{"max_connections": true}');
-- A combination with which the server would not start
\set VERBOSITY sqlstate
SELECT hugeinfo_plan('{"max_connections": 2, "superuser_reserved_connections": 2}');
\set VERBOSITY default

-- Other settings, and invalid values, are errors with a hint.
CREATE FUNCTION refusal(settings jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    message text;
    hint text;
BEGIN
    PERFORM hugeinfo_plan(settings::text);
    RETURN 'was taken';
EXCEPTION WHEN invalid_parameter_value OR undefined_object THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || CASE WHEN hint <> '' THEN ' with a hint: ' ELSE ': ' END || message;
END
$$;
SELECT refusal(settings::jsonb)
FROM unnest(ARRAY[
    'null', '1', '"shared_buffers"', '[]', '["shared_buffers"]', '[{"shared_buffers": 1000}]',
    '{"shared_buffers": null}', '{"shared_buffers": {"a": 1}}', '{"shared_buffers": ["1GB"]}', '{"shared_buffers": []}',
    '{"": "1"}', '{" shared_buffers": "1GB"}', '{"shared-buffers": "1GB"}', '{"shared_buffers\n": "1GB"}',
    '{"shared_buffers=1GB -c archive_command": "x"}', '{"shared_buffers": "1GB", "SHARED_BUFFERS": "2GB"}',
    '{"shared_preload_libraries": "x"}', '{"session_preload_libraries": "x"}', '{"local_preload_libraries": "x"}',
    '{"dynamic_library_path": "/tmp"}', '{"archive_library": "x"}', '{"jit_provider": "x"}',
    '{"archive_command": "touch /tmp/x"}', '{"restore_command": "x"}', '{"archive_cleanup_command": "x"}',
    '{"ssl_passphrase_command": "x"}', '{"config_file": "/tmp/x"}', '{"data_directory": "/tmp/x"}', '{"hba_file": "x"}',
    '{"ident_file": "x"}', '{"external_pid_file": "/tmp/x"}', '{"log_directory": "/tmp"}', '{"unix_socket_directories": "/tmp"}',
    '{"include": "/etc/passwd"}', '{"include_dir": "/etc"}', '{"port": 1}', '{"work_mem": "1GB"}', '{"shared_memory_size": 1}',
    '{"-D": "/tmp"}', '{"--single": true}', '{"-c": "x"}', '{"a.b": 1}', '{"pg_stat_statements.max": 1000}', '{"no_such_setting": 1}',
    '{"max_connections": "10 -c archive_command=x"}', '{"max_connections": "10''; DROP TABLE x"}', '{"max_connections": "$(id)"}',
    '{"max_connections": "10\n20"}', '{"max_connections": "`id`"}', '{"max_connections": "--single"}'
]) AS settings;
-- A complete error
SELECT hugeinfo_plan('{"archive_command": "x"}');
-- and one that suggests a similar name
CREATE FUNCTION meant(name text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM hugeinfo_plan(jsonb_build_object(name, 1)::text);
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN substring(hint FROM '^Did you mean ".*"[?]');
END
$$;
SELECT name, meant(name)
FROM unnest(ARRAY['shared_bufers', 'SHARED-BUFFERS', 'shared_buffer', 'max_connection', 'hugepages', 'work_mem', 'x', '', repeat('x', 64)]) AS name;
DROP FUNCTION meant;
SELECT hugeinfo_plan('{"shared_buffers": []}');
SELECT refusal(('{"shared_buffers": ' || repeat('[', 5000) || repeat(']', 5000) || '}')::jsonb);
-- a long name is truncated, PostgreSQL checks a long value, and settings that are too long together
-- are not parsed
SELECT length(refusal(jsonb_build_object(repeat('x', 60000), 1))) BETWEEN 1000 AND 1100 AS long_name,
       length(refusal(jsonb_build_object('max_connections', repeat('9', 60000)))) > 60000 AS long_value,
       refusal(jsonb_build_object('max_connections', '40' || repeat(' ', 2000) || 'x')) <> 'was taken' AS long_tail,
       refusal(jsonb_build_object('max_connections', repeat(' ', 2000) || '40')) AS long_head,
       length(refusal('{"max_connections": 1e60000}')) < 2000 AS many_digits;
SELECT hugeinfo_plan(jsonb_build_object('max_connections', repeat('9', 65536))::text);
DROP FUNCTION planned, refusal;

-- For superusers only, until granted
CREATE ROLE regress_hugeinfo_planner IN ROLE pg_monitor;
SET ROLE regress_hugeinfo_planner;
SELECT hugeinfo_plan();
SELECT hugeinfo_plan('{}');
RESET ROLE;
GRANT EXECUTE ON FUNCTION hugeinfo_plan(text) TO regress_hugeinfo_planner;
SET ROLE regress_hugeinfo_planner;
SELECT count(*) >= 1 AS granted FROM hugeinfo_plan('{"shared_buffers": "1GB"}');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION hugeinfo_plan(text) FROM regress_hugeinfo_planner;
DROP ROLE regress_hugeinfo_planner;
