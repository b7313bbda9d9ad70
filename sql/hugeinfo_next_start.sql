-- The contract of hugeinfo_next_start: hugeinfo_plan() as a view, for pg_monitor.
\d hugeinfo_next_start
SET client_min_messages = warning;

-- Nothing is pending here.
SELECT DISTINCT waiting_settings,
       huge_pages = current_setting('huge_pages') AS huge_pages,
       shared_memory_type = current_setting('shared_memory_type') AS shared_memory_type
FROM hugeinfo_next_start;

-- The rest are the rows of hugeinfo_plan().
SELECT count(*) = (SELECT count(*) FROM hugeinfo_plan()) AS rows,
       count(*) FILTER (WHERE to_jsonb(n) @> to_jsonb(p) - ARRAY['free_pages', 'reserved_pages', 'available_pages', 'committed_pages', 'own_pages',
           'others_pages', 'shortfall_pages', 'recommended_nr_hugepages', 'fits_after_restart', 'how_to_set',
           'cgroup_used_bytes', 'cgroup_reserved_bytes']) = count(*) AS same_rows
FROM hugeinfo_next_start AS n JOIN hugeinfo_plan() AS p ON n.page_size_bytes IS NOT DISTINCT FROM p.page_size_bytes;

-- For pg_monitor without a grant on hugeinfo_plan, which only superusers can call.
CREATE ROLE regress_hugeinfo_watcher IN ROLE pg_monitor;
SET ROLE regress_hugeinfo_watcher;
SELECT count(*) >= 1 AS may_read, bool_and(segment_bytes > 0) AS segment_bytes FROM hugeinfo_next_start;
SELECT hugeinfo_plan();
RESET ROLE;
DROP ROLE regress_hugeinfo_watcher;
