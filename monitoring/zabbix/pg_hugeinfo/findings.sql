-- Made from monitoring/metrics.toml by: scripts/cargo run -p hugeinfo-monitoring
--
-- For Zabbix, one line of JSON with the rows of each query:
-- findings of the checks as labels: a new series with each new number
SELECT jsonb_build_object(
    'finding', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        SELECT name, finding, coalesce(remedy, '') AS remedy, 1 AS info
        FROM hugeinfo.hugeinfo_checks
        WHERE severity >= 2 AND NOT is_muted
    ) AS q)
);
