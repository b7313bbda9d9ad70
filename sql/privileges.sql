-- Nothing is granted to PUBLIC. pg_monitor reads everything, except what runs PostgreSQL with
-- settings of the caller: this needs a grant of its own.

-- Exceptions from this rule: a privilege that somebody other than the owner has and should not
-- have ("extra"), or should have and does not have ("missing").
WITH member AS (
    SELECT pg_describe_object(d.classid, d.objid, 0) AS object,
           coalesce(p.proowner, c.relowner, t.typowner) AS owner,
           CASE
               WHEN p.oid IS NOT NULL THEN coalesce(p.proacl, acldefault('f', p.proowner))
               WHEN c.oid IS NOT NULL THEN coalesce(c.relacl, acldefault('r', c.relowner))
               WHEN t.oid IS NOT NULL THEN coalesce(t.typacl, acldefault('T', t.typowner))
           END AS acl,
           CASE WHEN p.oid IS NOT NULL THEN 'EXECUTE' WHEN c.oid IS NOT NULL THEN 'SELECT' END AS privilege
    FROM pg_extension AS e
    JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
    WHERE e.extname = 'pg_hugeinfo'
      -- The row types of the views, and arrays of them, are members since PostgreSQL 17.
      AND NOT coalesce(t.typcategory = 'A' OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'v'), false)
), granted AS (
    SELECT m.object, a.grantee, a.privilege_type, a.is_grantable
    FROM member AS m, aclexplode(m.acl) AS a
    WHERE a.grantee <> m.owner
    UNION ALL
    SELECT format('column %I of %s', a.attname, m.object), x.grantee, x.privilege_type, x.is_grantable
    FROM member AS m
    JOIN pg_attribute AS a ON m.object = pg_describe_object('pg_class'::regclass, a.attrelid, 0)
    CROSS JOIN LATERAL aclexplode(a.attacl) AS x
), expected AS (
    SELECT object, 'pg_monitor'::regrole::oid, privilege, false
    FROM member
    WHERE privilege IS NOT NULL AND object !~ '^(view|function) hugeinfo_(plan|fit)\M' AND object !~ '^function hugeinfo_runbook\(.+\)$'
), compared AS (
    SELECT 'extra' AS kind, e.* FROM (TABLE granted EXCEPT ALL TABLE expected) AS e
    UNION ALL
    SELECT 'missing', m.* FROM (TABLE expected EXCEPT ALL TABLE granted) AS m
)
SELECT kind, object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee, privilege_type, is_grantable
FROM compared
ORDER BY kind, object COLLATE "C", grantee;

-- The views work for pg_monitor, so the functions in them have the same grants.
CREATE ROLE regress_hugeinfo_nobody;
CREATE ROLE regress_hugeinfo_monitor IN ROLE pg_monitor;
SET ROLE regress_hugeinfo_monitor;
DO $$
DECLARE
    view regclass;
    readable integer := 0;
BEGIN
    FOR view IN
        SELECT c.oid FROM pg_class AS c JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
        WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_hugeinfo') AND d.deptype = 'e'
          AND has_table_privilege(c.oid, 'SELECT')
    LOOP
        EXECUTE format('SELECT count(v) FROM %s AS v', view);
        readable := readable + 1;
    END LOOP;
    ASSERT readable > 15, 'pg_monitor reads the views';
END
$$;
SELECT count(*) > 0 AS readable FROM hugeinfo_mappings(pg_backend_pid());
SELECT length(hugeinfo_text()) > 0 AS readable;

-- A single grant allows that object only.
\set VERBOSITY sqlstate
SET client_min_messages = warning;
RESET ROLE;
GRANT SELECT ON hugeinfo_status, hugeinfo_plan TO regress_hugeinfo_nobody;
SET ROLE regress_hugeinfo_nobody;
-- the views do not bypass the privileges on their functions
SELECT count(*) FROM hugeinfo_status;
SELECT count(*) FROM hugeinfo_plan;
SELECT count(*) FROM hugeinfo_pools;
RESET ROLE;
GRANT EXECUTE ON FUNCTION hugeinfo_plan(text) TO regress_hugeinfo_nobody;
SET ROLE regress_hugeinfo_nobody;
SELECT count(*) > 0 AS readable FROM hugeinfo_plan;
SELECT count(*) > 0 AS readable FROM hugeinfo_plan('shared_buffers=16MB');
SELECT count(*) FROM hugeinfo_runbook('shared_buffers=16MB');
SELECT count(*) FROM hugeinfo_runbook;
SELECT count(*) FROM hugeinfo_fit(2000, 'huge_page_size=0');
SELECT count(*) FROM hugeinfo_status();
RESET ROLE;

DROP OWNED BY regress_hugeinfo_nobody;
DROP ROLE regress_hugeinfo_nobody, regress_hugeinfo_monitor;
