-- {{ generated }}
--
-- Returns one line of JSON with the rows of each query, for Zabbix. Content:
-- {{ collectors[0].about }}
SELECT jsonb_build_object(
{% for query in queries %}
    '{{ query.name }}', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        {{ query.sql | indent(8) }}
    ) AS q){{ "," if not loop.last }}
{% endfor %}
);
