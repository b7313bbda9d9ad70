"""What arrives at Datadog's Agent from the custom_queries of FILE, as JSON: datadog.py FILE CONNINFO

The queries are compiled and run as the Agent does it, by the class that all of its database checks use. The
connection is made here.
"""

import json
import sys

import psycopg
import yaml
from datadog_checks.base import AgentCheck
from datadog_checks.base.stubs import aggregator
from datadog_checks.base.utils.db import QueryManager

file, conninfo = sys.argv[1:]
with open(file, encoding="utf-8") as text:
    instance = yaml.safe_load(text)["instances"][0]
with psycopg.connect(conninfo, autocommit=True) as connection:
    check = AgentCheck("postgres", {}, [instance])
    queries = QueryManager(check, lambda sql: connection.execute(sql).fetchall())
    queries.compile_queries()
    queries.execute()

types = {number: name for name, number in aggregator.METRIC_ENUM_MAP.items()}
print(
    json.dumps(
        [
            {"name": metric.name, "type": types[metric.type], "value": metric.value, "tags": metric.tags}
            for name in aggregator.metric_names
            for metric in aggregator.metrics(name)
        ]
    )
)
