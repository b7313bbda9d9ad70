"""A file of YAML as JSON."""

import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as text:
    json.dump(yaml.safe_load(text), sys.stdout)
