"""What paths find in JSON, as Zabbix's JSONPath does it: {"json": …, "paths": […]} on standard input.

Zabbix's own function first() is taken off, and its work done here.
"""

import json
import sys

import jsonpath

asked = json.load(sys.stdin)
answers = [jsonpath.findall(path.removesuffix(".first()"), asked["json"]) for path in asked["paths"]]
json.dump([found[0] if found else None for found in answers], sys.stdout)
