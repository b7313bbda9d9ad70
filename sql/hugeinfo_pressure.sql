-- The contract of hugeinfo_pressure.
\d hugeinfo_pressure

-- one row for the host, which is the first
SELECT count(*) FILTER (WHERE scope = 'host') AS hosts,
       bool_and(scope IN ('host', 'cgroup')) AS scope,
       bool_and((scope = 'host') = (path IS NULL)) AS path,
       bool_and((scope = 'host') = (number = 1)) AS order_of_rows,
       count(*) = count(DISTINCT coalesce(path, '')) AS no_row_twice
FROM (SELECT *, row_number() OVER () AS number FROM hugeinfo_pressure) AS p;

-- nearest first: each cgroup is in the next one
SELECT bool_and(starts_with(nearer, path)) IS NOT FALSE AS order_of_groups
FROM (SELECT path, lag(path) OVER (ORDER BY number) AS nearer
      FROM (SELECT path, row_number() OVER () AS number FROM hugeinfo_pressure) AS p
      WHERE path IS NOT NULL) AS p;

SELECT bool_and(least(memory_used_bytes, limit_hits, high_hits, oom_kills) >= 0) AS counts,
       bool_and(memory_limit_bytes > 0) IS NOT FALSE AS memory_limit_bytes,
       bool_and(greatest(some_avg10_percent, some_avg60_percent, some_avg300_percent, full_avg10_percent, full_avg60_percent, full_avg300_percent)
                <= 100) IS NOT FALSE AS at_most_all_of_the_time,
       bool_and(least(some_avg10_percent, some_avg60_percent, some_avg300_percent, full_avg10_percent, full_avg60_percent, full_avg300_percent)
                >= 0) IS NOT FALSE AS at_least_none_of_it,
       bool_and(full_stall_microseconds <= some_stall_microseconds) IS NOT FALSE AS where_all_wait_one_waits
FROM hugeinfo_pressure;

-- exactly the values of the kernel
SELECT memory_limit_bytes IS NULL AND memory_used_bytes IS NULL AND limit_hits IS NULL AND high_hits IS NULL AS only_groups_have_limits,
       oom_kills = (SELECT value FROM hugeinfo_vmstat WHERE name = 'oom_kill') AS oom_kills,
       (some_stall_microseconds IS NULL) = (pg_read_file('/proc/pressure/memory', 0, 100, true) IS NULL) AS some_stall_microseconds,
       (some_avg10_percent IS NULL) = (some_stall_microseconds IS NULL) AS some_avg10_percent
FROM hugeinfo_pressure
WHERE scope = 'host';

-- the status of its sources
SELECT s.source, (s.status = 'ok') = p.is_told AS status
FROM hugeinfo_sources AS s
JOIN (SELECT 'memory pressure' AS source, bool_or(scope = 'host' AND some_stall_microseconds IS NOT NULL) AS is_told
      FROM hugeinfo_pressure
      UNION ALL
      SELECT 'memory control group', bool_or(scope = 'cgroup' AND memory_used_bytes IS NOT NULL)
      FROM hugeinfo_pressure) AS p USING (source)
ORDER BY s.source COLLATE "C";
