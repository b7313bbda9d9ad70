-- One view over all servers, by postgres_fdw: fleet.status. Run this file once for each server, as
-- a superuser, in a database of a server that reaches all others:
--
--   psql -d postgres -v server=db1 -v host=db1.example.com -v cluster=main -f postgres_fdw.sql
--
-- Variables, with what is taken without them:
--   server   its name in the view, and of a foreign table in the schema fleet; has to be given
--   host     where it is, as libpq takes it; has to be given
--   port     5432
--   dbname   the database that has the extension (postgres)
--   user     a member of pg_monitor there (monitoring)
--   schema   of the extension there (hugeinfo)
--   cluster  servers with the same one are copies of one another (none)
--   timeout  in seconds, for the connection, and then for the answer (5)
--
-- Run again, it makes the server's entry anew: other user mappings of it, and views on its foreign
-- table, are dropped. To take one away: DROP SERVER fleet_db1 CASCADE;
--
-- Passwords: in ~/.pgpass of the operating system's user that runs this PostgreSQL.
--
-- postgres_fdw raises an error for a server that is down, and that would end a plain view. So a
-- function asks each server within a block of its own, and an error becomes a row like others.
-- What it costs: servers are asked one after another; one that does not answer takes `timeout`;
-- each takes a connection, which closes with the transaction, and a subtransaction.

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
\set options '-c statement_timeout=' :timeout 's'

BEGIN;
SET LOCAL client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SCHEMA IF NOT EXISTS fleet;

-- What a server says of itself; the rest is NULL where it says nothing.
CREATE OR REPLACE FUNCTION fleet.ask() RETURNS TABLE (
    server text,
    cluster text,
    status text,
    reason text,
    remedy text,
    in_use boolean,
    fits_after_restart boolean,
    page_size_bytes bigint,
    segment_bytes bigint,
    required_huge_pages bigint,
    shortfall_pages bigint
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    source record;
    columns text;
    answer jsonb;
    context text;
    detail text;
BEGIN
    FOR source IN
        SELECT c.relname, c.oid::regclass AS foreign_table, nullif(s.srvtype, '') AS cluster
        FROM pg_foreign_table AS t
        JOIN pg_class AS c ON c.oid = t.ftrelid
        JOIN pg_foreign_server AS s ON s.oid = t.ftserver
        WHERE c.relnamespace = 'fleet'::regnamespace
        ORDER BY c.relname
    LOOP
        -- Of an older version the columns that every version has.
        FOREACH columns IN ARRAY ARRAY['*', 'status, reason'] LOOP
            BEGIN
                EXECUTE format('SELECT to_jsonb(s) FROM (SELECT %s FROM %s) AS s', columns, source.foreign_table)
                    INTO STRICT answer;
                EXIT;
            EXCEPTION WHEN query_canceled OR OTHERS THEN
                GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT, detail = PG_EXCEPTION_DETAIL;
                -- Cancelled there, by the timeout of this file; or here, by whoever asks.
                IF SQLSTATE = '57014' AND context NOT LIKE '%hugeinfo_status%' THEN
                    RAISE;
                END IF;
                -- 08: no connection. 57: shut down, not up yet, or no answer in time.
                answer := jsonb_build_object(
                    'status', CASE WHEN left(SQLSTATE, 2) IN ('08', '57') THEN 'critical' ELSE 'unknown' END,
                    'reason', concat_ws(': ', CASE WHEN SQLSTATE = '42P01' THEN 'no extension pg_hugeinfo' END,
                                        SQLERRM, nullif(btrim(detail, E' \n'), '')));
                EXIT WHEN SQLSTATE <> '42703';
            END;
        END LOOP;

        server := source.relname;
        cluster := source.cluster;
        SELECT a.* INTO status, reason, remedy, in_use, fits_after_restart, page_size_bytes, segment_bytes,
            required_huge_pages, shortfall_pages
        FROM jsonb_to_record(answer) AS a(status text, reason text, remedy text, in_use boolean, fits_after_restart boolean,
            page_size_bytes bigint, segment_bytes bigint, required_huge_pages bigint, shortfall_pages bigint);
        RETURN NEXT;
    END LOOP;
END
$function$;

-- The worst first. A cluster is uneven if a failover would lose huge pages.
CREATE OR REPLACE VIEW fleet.status AS
SELECT *,
       cluster IS NOT NULL AND bool_or(in_use) OVER members AND NOT bool_and(in_use) OVER members IS TRUE AS is_uneven
FROM fleet.ask()
WINDOW members AS (PARTITION BY cluster)
ORDER BY array_position('{critical,warning,unknown,ok}'::text[], status), server;

REVOKE ALL ON FUNCTION fleet.ask() FROM PUBLIC;
GRANT USAGE ON SCHEMA fleet TO pg_monitor;
GRANT EXECUTE ON FUNCTION fleet.ask() TO pg_monitor;
GRANT SELECT ON fleet.status TO pg_monitor;

DROP SERVER IF EXISTS :"foreign_server" CASCADE;
CREATE SERVER :"foreign_server" TYPE :'cluster' FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
    host :'host', port :'port', dbname :'dbname', connect_timeout :'timeout', options :'options', keep_connections 'off');
-- The function asks as its owner.
SELECT proowner::regrole AS owner FROM pg_proc WHERE oid = 'fleet.ask'::regproc \gset
CREATE USER MAPPING FOR :owner SERVER :"foreign_server" OPTIONS (user :'user');
CREATE FOREIGN TABLE fleet.:"server" (
    status text,
    reason text,
    remedy text,
    in_use boolean,
    fits_after_restart boolean,
    page_size_bytes bigint,
    segment_bytes bigint,
    required_huge_pages bigint,
    shortfall_pages bigint
) SERVER :"foreign_server" OPTIONS (schema_name :'schema', table_name 'hugeinfo_status');
COMMIT;
