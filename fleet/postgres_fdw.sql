-- Creates fleet.status, one view over all servers, with postgres_fdw. Run this file once for each
-- server, as a superuser, in a database of a server that can connect to all others:
--
--   psql -d postgres -v server=db1 -v host=db1 -v cluster=main -f postgres_fdw.sql
--
-- Variables, with their defaults:
--   server   name in the view, and of a foreign table in the schema fleet; required
--   host     host, as in libpq; required
--   port     5432
--   dbname   the database that has the extension (postgres)
--   user     a member of pg_monitor there (monitoring)
--   schema   schema of the extension there (hugeinfo)
--   cluster  servers with the same cluster are copies of one another (none)
--   timeout  in seconds, for the connection, and then for the answer (5); if the network fails
--            during the answer, the query notices it one second later
--
-- Running it again replaces the entry of the server, and drops its other user mappings and views on
-- its foreign table. To remove a server: DROP SERVER fleet_db1 CASCADE;
-- To replace a schema fleet that an older version of this file created: DROP SCHEMA fleet CASCADE;
--
-- Put passwords in the ~/.pgpass file of the operating system user that runs this PostgreSQL.
--
-- postgres_fdw raises an error if a server is down, which would end a plain view. Therefore, a
-- function queries each server in a separate block, and turns an error into a row. Only a
-- connection that breaks during the answer still ends the query. Then run the query again.
-- Cost: servers are queried one after another. A server that does not respond takes `timeout`, or
-- more if it ignores that setting: use statement_timeout in this session, too. Each server needs a
-- subtransaction, and a connection, which is closed at the end of the transaction.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?port}
\else
\set port 5432
\endif
\if :{?dbname}
\else
\set dbname postgres
\endif
\if :{?user}
\else
\set user monitoring
\endif
\if :{?schema}
\else
\set schema hugeinfo
\endif
\if :{?cluster}
\else
\set cluster ''
\endif
\if :{?timeout}
\else
\set timeout 5
\endif
\set foreign_server fleet_ :server
\set foreign_settings :server ' settings'
\set options '-c statement_timeout=' :timeout 's'
\set milliseconds :timeout '000'

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA pg_catalog;
CREATE SCHEMA IF NOT EXISTS fleet;

-- A function of another role would run here, and use this server's passwords.
DO $$
DECLARE
    strange record;
BEGIN
    SELECT pg_describe_object(o.classid, o.objid, 0) AS object, r.rolname INTO strange
    FROM pg_shdepend AS o
    JOIN pg_roles AS r ON r.oid = o.refobjid AND NOT r.rolsuper
    WHERE o.deptype = 'o'
      AND o.refclassid = 'pg_authid'::regclass
      AND o.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (o.classid = 'pg_namespace'::regclass AND o.objid = 'fleet'::regnamespace
           OR (o.classid, o.objid) IN (
               SELECT classid, objid FROM pg_depend
               WHERE refclassid = 'pg_namespace'::regclass AND refobjid = 'fleet'::regnamespace))
    ORDER BY o.classid <> 'pg_namespace'::regclass, 1
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% belongs to %, which is not a superuser', strange.object, quote_ident(strange.rolname)
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Nothing was changed. If the schema fleet has another use, rename it or use another database.';
    END IF;
END
$$;

-- Columns of hugeinfo_status. The foreign tables inherit them.
CREATE TABLE IF NOT EXISTS fleet.answer (
    status text,
    code text,
    reason text,
    remedy text,
    huge_pages text,
    in_use boolean,
    fits_after_restart boolean,
    page_size_bytes bigint,
    segment_bytes bigint,
    required_huge_pages bigint,
    shortfall_pages bigint
);

-- The status of each server, and whether it muted the check huge_pages. Unknown values are NULL.
CREATE OR REPLACE FUNCTION fleet.ask() RETURNS TABLE (server text, cluster text, is_muted boolean, answer fleet.answer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
AS $function$
DECLARE
    source record;
    columns text;
    said jsonb;
    context text;
    detail text;
BEGIN
    FOR source IN
        SELECT c.relname, c.oid::regclass AS foreign_table, nullif(s.srvtype, '') AS cluster,
               format('fleet.%I', c.relname || ' settings') AS foreign_settings
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        JOIN pg_foreign_table AS t ON t.ftrelid = c.oid
        JOIN pg_foreign_server AS s ON s.oid = t.ftserver
        WHERE i.inhparent = 'fleet.answer'::regclass
        ORDER BY c.relname
    LOOP
        is_muted := NULL;
        -- An older version has fewer columns. These two exist in all versions.
        FOREACH columns IN ARRAY ARRAY['*', 'status, reason'] LOOP
            BEGIN
                EXECUTE format('SELECT to_jsonb(s) FROM (SELECT %s FROM %s) AS s', columns, source.foreign_table)
                    INTO STRICT said;
                -- The setting exists once the session has used the extension.
                EXECUTE format($$SELECT coalesce(max(setting), '') ~ '\mhuge_pages\M' FROM %s WHERE name = 'pg_hugeinfo.muted_checks'$$,
                               source.foreign_settings) INTO is_muted;
                EXIT;
            EXCEPTION WHEN query_canceled OR OTHERS THEN
                GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT, detail = PG_EXCEPTION_DETAIL;
                -- Canceled there, by the timeout of this file, or here, by the caller.
                IF SQLSTATE = '57014' AND context !~ 'hugeinfo_status|pg_settings' THEN
                    RAISE;
                END IF;
                -- 08: no connection. 57: shut down, starting up, or no answer in time.
                said := jsonb_build_object(
                    'status', CASE WHEN left(SQLSTATE, 2) IN ('08', '57') THEN 'critical' ELSE 'unknown' END,
                    'reason', concat_ws(': ', CASE WHEN SQLSTATE = '42P01' THEN 'no extension pg_hugeinfo' END,
                                        SQLERRM, nullif(btrim(detail, E' \n'), '')));
                EXIT WHEN SQLSTATE <> '42703';
            END;
        END LOOP;

        -- Truncate texts from the server, and replace invisible characters, the same as in
        -- crates/linux/src/escape.rs. A remedy can have several lines.
        SELECT jsonb_object_agg(key, regexp_replace(
                   left(value, CASE WHEN key = 'remedy' THEN 10000 ELSE 1000 END),
                   CASE WHEN key = 'remedy' THEN '(?!\n)' ELSE '' END
                       || '[\u0001-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F'
                       || '\uE000-\uF8FF\uFDD0-\uFDEF\uFE00-\uFE0F\uFEFF\uFFF9-\uFFFB\uFFFE\uFFFF\U000E0000-\U0010FFFF]',
                   ' ', 'g'))
            INTO said
            FROM jsonb_each_text(said);
        IF coalesce(said ->> 'status', '') NOT IN ('ok', 'unknown', 'warning', 'critical') THEN
            said := said || '{"status": "unknown"}';
        END IF;
        server := source.relname;
        cluster := source.cluster;
        answer := jsonb_populate_record(NULL::fleet.answer, said);
        RETURN NEXT;
    END LOOP;
END
$function$;

-- The worst first. A cluster is uneven if a failover would lose huge pages. Servers with
-- huge_pages = off, or with the check huge_pages muted, do not count.
CREATE OR REPLACE VIEW fleet.status AS
SELECT server,
       cluster,
       (answer).*,
       is_muted,
       cluster IS NOT NULL
       AND bool_or((answer).in_use) FILTER (WHERE counts) OVER members IS TRUE
       AND bool_and((answer).in_use) FILTER (WHERE counts) OVER members IS FALSE AS is_uneven
FROM fleet.ask(), LATERAL (SELECT NOT is_muted AND (answer).huge_pages <> 'off' AS counts) AS c
WINDOW members AS (PARTITION BY cluster)
ORDER BY array_position('{critical,warning,unknown,ok}'::text[], (answer).status), server;

REVOKE ALL ON FUNCTION fleet.ask() FROM PUBLIC;
GRANT USAGE ON SCHEMA fleet TO pg_monitor;
GRANT EXECUTE ON FUNCTION fleet.ask() TO pg_monitor;
GRANT SELECT ON fleet.status TO pg_monitor;

DROP SERVER IF EXISTS :"foreign_server" CASCADE;
CREATE SERVER :"foreign_server" TYPE :'cluster' FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
    host :'host', port :'port', dbname :'dbname', connect_timeout :'timeout', options :'options', keep_connections 'off',
    keepalives_idle :'timeout', keepalives_interval '1', tcp_user_timeout :'milliseconds');
-- The function runs as its owner.
SELECT proowner::regrole AS owner FROM pg_proc WHERE oid = 'fleet.ask'::regproc \gset
CREATE USER MAPPING FOR :owner SERVER :"foreign_server" OPTIONS (user :'user');
CREATE FOREIGN TABLE fleet.:"server" () INHERITS (fleet.answer)
    SERVER :"foreign_server" OPTIONS (schema_name :'schema', table_name 'hugeinfo_status');
CREATE FOREIGN TABLE fleet.:"foreign_settings" (name text, setting text)
    SERVER :"foreign_server" OPTIONS (schema_name 'pg_catalog', table_name 'pg_settings');
COMMIT;
