-- {{ generated }}
--
-- {{ collectors[0].about }}: rows of each query, as one line of JSON for Zabbix.
SELECT jsonb_build_object(
{% for query in queries %}
    '{{ query.name }}', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
        {{ query.sql | indent(8) }}
    ) AS q){{ "," if not loop.last }}
{% endfor %}
);
