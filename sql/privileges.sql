-- Only for superusers and pg_monitor, functions and views alike.
CREATE ROLE regress_hugeinfo_nobody;
CREATE ROLE regress_hugeinfo_monitor IN ROLE pg_monitor;
\set VERBOSITY sqlstate

SET ROLE regress_hugeinfo_nobody;
SELECT count(*) FROM hugeinfo_status;
SELECT count(*) FROM hugeinfo_status();
SELECT count(*) FROM hugeinfo_pools;
SELECT count(*) FROM hugeinfo_pools();
SELECT count(*) FROM hugeinfo_backends;
SELECT count(*) FROM hugeinfo_backends();
SELECT hugeinfo_oom_scores(pg_backend_pid(), 0);
SELECT count(*) FROM hugeinfo_memory;
SELECT count(*) FROM hugeinfo_memory();
SELECT count(*) FROM hugeinfo_memory(pg_backend_pid());
SELECT count(*) FROM hugeinfo_mappings();
SELECT count(*) FROM hugeinfo_mappings(pg_backend_pid());
SELECT count(*) FROM hugeinfo_mappings;
SELECT count(*) FROM hugeinfo_postmaster_mappings;
SELECT count(*) FROM hugeinfo_fault_rates;
SELECT count(*) FROM hugeinfo_fault_rates();
SELECT count(*) FROM hugeinfo_fault_rates('1 ms');
SELECT count(*) FROM hugeinfo_fault_rates(interval '1 ms');
SELECT count(*) FROM hugeinfo_fault_rates(1);
SELECT count(*) FROM hugeinfo_fault_rates(0.001);
SELECT count(*) FROM hugeinfo_fault_rates(1::smallint);
SELECT count(*) FROM hugeinfo_fault_rates(1::bigint);
SELECT count(*) FROM hugeinfo_fault_rates(0.001::real);
SELECT count(*) FROM hugeinfo_fault_rates(0.001::float8);
SELECT count(*) FROM hugeinfo_footprint;
SELECT count(*) FROM hugeinfo_footprint();
SELECT count(*) FROM hugeinfo_footprint(exact => true);
SELECT count(*) FROM hugeinfo_footprint('true');
SELECT count(*) FROM hugeinfo_pressure;
SELECT count(*) FROM hugeinfo_pressure();
SELECT count(*) FROM hugeinfo_page_tables;
SELECT count(*) FROM hugeinfo_page_tables();
SELECT count(*) FROM hugeinfo_checks;
SELECT count(*) FROM hugeinfo_checks();
SELECT count(*) FROM hugeinfo_meminfo;
SELECT count(*) FROM hugeinfo_meminfo();
SELECT count(*) FROM hugeinfo_vmstat;
SELECT count(*) FROM hugeinfo_vmstat();
SELECT count(*) FROM hugeinfo_host;
SELECT count(*) FROM hugeinfo_host();
SELECT count(*) FROM hugeinfo_sources;
SELECT count(*) FROM hugeinfo_sources();
SELECT count(*) FROM hugeinfo_numa;
SELECT count(*) FROM hugeinfo_numa();
SELECT count(*) FROM hugeinfo_numa_nodes;
SELECT count(*) FROM hugeinfo_numa_nodes();
SELECT count(*) FROM hugeinfo_holders;
SELECT count(*) FROM hugeinfo_holders();
SELECT count(*) FROM hugeinfo_instances;
SELECT count(*) FROM hugeinfo_instances();
SELECT hugeinfo_postmaster_pid();
SELECT count(*) FROM hugeinfo_runbook;
SELECT count(*) FROM hugeinfo_runbook();
SELECT count(*) FROM hugeinfo_runbook('{}');
SELECT count(*) FROM hugeinfo_runbook('{}'::jsonb);
SELECT hugeinfo_report();
SELECT hugeinfo_report('{"page_table_bytes": 1}'::jsonb);
SELECT count(*) FROM hugeinfo_next_start;
SELECT count(*) FROM hugeinfo_next_start();
SELECT count(*) FROM hugeinfo_plan();
SELECT count(*) FROM hugeinfo_plan('{}');
SELECT count(*) FROM hugeinfo_plan('{}'::jsonb);
SELECT count(*) FROM hugeinfo_fit(2000);
SELECT count(*) FROM hugeinfo_fit(2000, '{}');
SELECT count(*) FROM hugeinfo_fit(2000, '{}'::jsonb);
SELECT count(*) FROM hugeinfo_fit(2000::bigint);
SELECT count(*) FROM hugeinfo_fit(2000::bigint, '{}');
SELECT count(*) FROM hugeinfo_fit(2000::bigint, '{}'::jsonb);

SET ROLE regress_hugeinfo_monitor;
SELECT count(*) = 1 AS may_read FROM hugeinfo_status;
SELECT count(*) = 1 AS may_read FROM hugeinfo_status();
SELECT count(*) >= 0 AS may_read FROM hugeinfo_pools;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_pools();
SELECT count(*) > 0 AS may_read FROM hugeinfo_backends;
SELECT count(*) = 1 AS may_read FROM hugeinfo_memory;
SELECT count(*) = 1 AS may_read FROM hugeinfo_memory();
SELECT count(*) = 1 AS may_read FROM hugeinfo_memory(pg_backend_pid());
SELECT count(*) > 0 AS may_read FROM hugeinfo_mappings();
SELECT count(*) > 0 AS may_read FROM hugeinfo_mappings(pg_backend_pid());
SELECT count(*) > 0 AS may_read FROM hugeinfo_mappings;
SELECT count(*) > 0 AS may_read FROM hugeinfo_postmaster_mappings;
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates;
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates();
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates('1 ms');
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(interval '1 ms');
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(1);
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(0.001);
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(1::smallint);
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(1::bigint);
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(0.001::real);
SELECT count(*) > 0 AS may_read FROM hugeinfo_fault_rates(0.001::float8);
SELECT count(*) = 1 AS may_read FROM hugeinfo_footprint;
SELECT count(*) = 1 AS may_read FROM hugeinfo_footprint(exact => true);
SELECT count(*) = 1 AS may_read FROM hugeinfo_footprint('true');
SELECT count(*) > 0 AS may_read FROM hugeinfo_pressure;
SELECT count(*) > 0 AS may_read FROM hugeinfo_page_tables;
SELECT count(*) > 0 AS may_read FROM hugeinfo_meminfo;
SELECT count(*) > 0 AS may_read FROM hugeinfo_vmstat;
SELECT count(*) = 1 AS may_read FROM hugeinfo_host;
SELECT count(*) > 0 AS may_read FROM hugeinfo_sources;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_numa;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_numa_nodes;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_holders;
SELECT count(*) > 0 AS may_read FROM hugeinfo_instances;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_runbook;
SELECT count(*) >= 0 AS may_read FROM hugeinfo_runbook();
SELECT length(hugeinfo_report()) > 0 AS may_read;
SELECT length(hugeinfo_report('{"page_table_bytes": 1}'::jsonb)) > 0 AS may_read;
SELECT count(*) > 0 AS may_read FROM hugeinfo_next_start;
SELECT count(*) > 0 AS may_read FROM hugeinfo_next_start();
-- runs a program
SELECT count(*) FROM hugeinfo_runbook('{}');
SELECT count(*) FROM hugeinfo_runbook('{}'::jsonb);
SELECT count(*) FROM hugeinfo_plan();
SELECT count(*) FROM hugeinfo_plan('{}');
SELECT count(*) FROM hugeinfo_plan('{}'::jsonb);
SELECT count(*) FROM hugeinfo_fit(2000);
SELECT count(*) FROM hugeinfo_fit(2000, '{}');
SELECT count(*) FROM hugeinfo_fit(2000, '{}'::jsonb);
SELECT count(*) FROM hugeinfo_fit(2000::bigint);
SELECT count(*) FROM hugeinfo_fit(2000::bigint, '{}');
SELECT count(*) FROM hugeinfo_fit(2000::bigint, '{}'::jsonb);
RESET ROLE;

-- The view does not bypass the privileges on the function.
GRANT SELECT ON hugeinfo_status TO regress_hugeinfo_nobody;
SET ROLE regress_hugeinfo_nobody;
SELECT count(*) FROM hugeinfo_status;
RESET ROLE;
REVOKE SELECT ON hugeinfo_status FROM regress_hugeinfo_nobody;

-- No other privileges are granted.
\set VERBOSITY default
SELECT c.relname, grantee.rolname, acl.privilege_type
FROM pg_class AS c, aclexplode(c.relacl) AS acl
LEFT JOIN pg_roles AS grantee ON grantee.oid = acl.grantee
WHERE c.relname LIKE 'hugeinfo\_%' AND acl.grantee <> c.relowner
ORDER BY 1, 2, 3;
SELECT p.oid::regprocedure AS function, grantee.rolname, acl.privilege_type
FROM pg_proc AS p, aclexplode(p.proacl) AS acl
LEFT JOIN pg_roles AS grantee ON grantee.oid = acl.grantee
WHERE p.proname LIKE 'hugeinfo\_%' AND acl.grantee <> p.proowner
ORDER BY p.oid::regprocedure::text COLLATE "C", 2, 3;

DROP ROLE regress_hugeinfo_nobody, regress_hugeinfo_monitor;
