-- With arguments of the exact types, because another function in this schema could match a call
-- without arguments better than a function with defaults.
CREATE VIEW hugeinfo_checks AS SELECT * FROM hugeinfo_checks();
CREATE VIEW hugeinfo_fault_rates AS SELECT * FROM hugeinfo_fault_rates(interval '1 s');
CREATE VIEW hugeinfo_footprint AS SELECT * FROM hugeinfo_footprint(false);
CREATE VIEW hugeinfo_holders AS SELECT * FROM hugeinfo_holders();
CREATE VIEW hugeinfo_host AS SELECT * FROM hugeinfo_host();
CREATE VIEW hugeinfo_instances AS SELECT * FROM hugeinfo_instances();
CREATE VIEW hugeinfo_mappings AS SELECT * FROM hugeinfo_mappings(pg_catalog.pg_backend_pid());
CREATE VIEW hugeinfo_meminfo AS SELECT * FROM hugeinfo_meminfo();
CREATE VIEW hugeinfo_memory AS SELECT * FROM hugeinfo_memory(pg_catalog.pg_backend_pid());
CREATE VIEW hugeinfo_next_start AS SELECT * FROM hugeinfo_next_start();
CREATE VIEW hugeinfo_numa AS SELECT * FROM hugeinfo_numa();
CREATE VIEW hugeinfo_page_tables AS SELECT * FROM hugeinfo_page_tables();
CREATE VIEW hugeinfo_plan AS SELECT * FROM hugeinfo_plan(text '');
CREATE VIEW hugeinfo_pools AS SELECT * FROM hugeinfo_pools();
CREATE VIEW hugeinfo_postmaster_mappings AS SELECT * FROM hugeinfo_postmaster_mappings();
CREATE VIEW hugeinfo_runbook AS SELECT * FROM hugeinfo_runbook();
CREATE VIEW hugeinfo_sources AS SELECT * FROM hugeinfo_sources();
CREATE VIEW hugeinfo_status AS SELECT * FROM hugeinfo_status();
CREATE VIEW hugeinfo_vmstat AS SELECT * FROM hugeinfo_vmstat();

CREATE VIEW hugeinfo_backends AS
SELECT b.pid,
       coalesce(a.backend_type, b.backend_type) AS backend_type,
       a.datname,
       a.usename,
       a.application_name,
       a.state,
       CASE WHEN b.backend_type = 'postmaster' THEN pg_catalog.pg_postmaster_start_time() ELSE a.backend_start END AS backend_start,
       b.page_table_bytes,
       b.virtual_bytes,
       b.virtual_peak_bytes,
       b.rss_bytes,
       b.rss_anon_bytes,
       b.rss_file_bytes,
       b.rss_shmem_bytes,
       b.hugetlb_bytes,
       b.swap_bytes,
       b.minor_faults,
       b.major_faults,
       b.oom_scores[1] AS oom_score,
       b.oom_scores[2] AS oom_score_adj
FROM (
    -- OFFSET 0 keeps this query apart: one call gives both scores, and there is no call if
    -- neither is selected.
    SELECT f.*, hugeinfo_oom_scores(f.pid, f.start_ticks) AS oom_scores
    FROM hugeinfo_backends() AS f
    OFFSET 0
) AS b
LEFT JOIN (
    -- One row for each process: the planner can remove the join if no column of it is selected.
    SELECT DISTINCT ON (pid) pid, backend_type, datname, usename, application_name, state, backend_start
    FROM pg_catalog.pg_stat_activity
) AS a ON a.pid = b.pid;
COMMENT ON COLUMN hugeinfo_backends.datname IS
'Database of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.usename IS
'Role of the process (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.application_name IS
'Application name of the client (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.state IS
'State of the backend, such as active or idle (pg_stat_activity).';
COMMENT ON COLUMN hugeinfo_backends.backend_start IS
'Start time of the process (pg_stat_activity) or, for the postmaster, of the server.';
COMMENT ON COLUMN hugeinfo_backends.oom_score IS
'Score of the process for the OOM killer, which first kills the process with the highest score on the host.';
COMMENT ON COLUMN hugeinfo_backends.oom_score_adj IS
'Adjustment of the score by an administrator, from -1000 (never kill) to 1000.';
COMMENT ON FUNCTION hugeinfo_explain(text) IS
'Explains a check or a code of hugeinfo_checks, with instructions, in Markdown.';
COMMENT ON FUNCTION hugeinfo_oom_scores(integer, bigint) IS
'oom_score and oom_score_adj of the process of this server with this pid and these start_ticks, for the view hugeinfo_backends.';
COMMENT ON FUNCTION hugeinfo_report(jsonb) IS
'A report on this server and its host as one HTML page: psql -XAtqc ''SELECT hugeinfo_report()'' -o report.html. With a saved row of hugeinfo_footprint as JSON, before => to_jsonb(f), it compares the memory before and now.';
COMMENT ON FUNCTION hugeinfo_text() IS
'The answer for people, as text of at most 80 columns: status, pools, page tables, the next restart and reboot, and the steps to take.';

DO $$
DECLARE
    -- Granted to pg_monitor. hugeinfo_plan, hugeinfo_fit and hugeinfo_runbook(text) run PostgreSQL
    -- with settings of the caller, so they need a grant of their own.
    granted CONSTANT text[] := ARRAY[
        'view hugeinfo_backends', 'hugeinfo_backends()', 'hugeinfo_oom_scores(integer, bigint)',
        'view hugeinfo_checks', 'hugeinfo_checks()',
        'hugeinfo_explain(text)',
        'view hugeinfo_fault_rates', 'hugeinfo_fault_rates(interval)',
        'view hugeinfo_footprint', 'hugeinfo_footprint(boolean)',
        'view hugeinfo_holders', 'hugeinfo_holders()',
        'view hugeinfo_host', 'hugeinfo_host()',
        'view hugeinfo_instances', 'hugeinfo_instances()',
        'view hugeinfo_mappings', 'hugeinfo_mappings(integer)',
        'view hugeinfo_meminfo', 'hugeinfo_meminfo()',
        'view hugeinfo_memory', 'hugeinfo_memory(integer)',
        'view hugeinfo_next_start', 'hugeinfo_next_start()',
        'view hugeinfo_numa', 'hugeinfo_numa()',
        'view hugeinfo_page_tables', 'hugeinfo_page_tables()',
        'view hugeinfo_pools', 'hugeinfo_pools()',
        'view hugeinfo_postmaster_mappings', 'hugeinfo_postmaster_mappings()',
        'hugeinfo_report(jsonb)',
        'view hugeinfo_runbook', 'hugeinfo_runbook()',
        'view hugeinfo_sources', 'hugeinfo_sources()',
        'view hugeinfo_status', 'hugeinfo_status()',
        'hugeinfo_text()',
        'view hugeinfo_vmstat', 'hugeinfo_vmstat()'];
    home record;
    member record;
    note record;
    creators text[];
BEGIN
    -- Functions and operators of others in the extension's schema are not used. The old path is
    -- back at the end of CREATE EXTENSION.
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT e.oid, e.extnamespace, n.nspname INTO STRICT home
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_hugeinfo';

    FOR note IN EXECUTE format('SELECT * FROM %I.hugeinfo_comments()', home.nspname) LOOP
        FOR member IN
            SELECT CASE
                       WHEN p.oid IS NOT NULL THEN format('FUNCTION %s', p.oid::regprocedure)
                       WHEN note.name = '' THEN format('VIEW %s', c.oid::regclass)
                       ELSE format('COLUMN %s.%I', c.oid::regclass, note.name)
                   END AS object
            FROM pg_depend AS d
            LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid AND p.prosrc = note.object
            LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relname = note.object
            WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = home.oid AND d.deptype = 'e'
              AND num_nonnulls(p.oid, c.oid) > 0
        LOOP
            EXECUTE format('COMMENT ON %s IS %L', member.object, note.comment);
        END LOOP;
    END LOOP;
    EXECUTE format('DROP FUNCTION %I.hugeinfo_comments()', home.nspname);

    FOR member IN
        SELECT CASE WHEN p.oid IS NULL THEN c.oid::regclass::text ELSE format('FUNCTION %s', p.oid::regprocedure) END AS object,
               CASE WHEN p.oid IS NULL THEN 'SELECT' ELSE 'EXECUTE' END AS privilege,
               CASE
                   WHEN p.oid IS NULL THEN format('view %s', c.relname)
                   ELSE format('%s(%s)', p.proname, oidvectortypes(p.proargtypes))
               END AS name
        FROM pg_depend AS d
        LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
        LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
        WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = home.oid AND d.deptype = 'e'
          AND num_nonnulls(p.oid, c.oid) > 0
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', member.object);
        IF member.name = ANY (granted) THEN
            EXECUTE format('GRANT %s ON %s TO pg_monitor', member.privilege, member.object);
        END IF;
    END LOOP;

    -- The only member of pg_database_owner is the owner of the database, who is listed by name.
    SELECT array_agg(rolname ORDER BY rolname) INTO creators
    FROM pg_roles
    WHERE NOT rolsuper AND oid <> 'pg_database_owner'::regrole AND has_schema_privilege(oid, home.extnamespace, 'CREATE');
    IF creators IS NOT NULL THEN
        RAISE WARNING 'roles other than superusers can create objects in schema %', quote_ident(home.nspname)
        USING DETAIL = format('Roles (%s): %s', cardinality(creators), array_to_string(creators[:5], ', ')),
              HINT = 'Their functions could be called instead of those of pg_hugeinfo. Choose another schema with ALTER EXTENSION pg_hugeinfo SET SCHEMA, or revoke CREATE on this schema.';
    END IF;
END
$$;
