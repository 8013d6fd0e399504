#!/usr/bin/env python3
"""What PyYAML makes of npu.yaml: npu.tsv. The other files are written by hand; what bash makes of
gpu.sh, and jq of the JSON files, the tests ask them."""
import pathlib
import re
import yaml

here = pathlib.Path(__file__).parent


def flat(value, key, out):
    if isinstance(value, dict):
        for k, v in value.items():
            flat(v, f"{key}.{k}" if key else str(k), out)
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        for i, v in enumerate(value):
            flat(v, f"{key}.{i}", out)
    elif isinstance(value, list):
        out[key] = "[" + ", ".join(map(str, value)) + "]"
    else:
        out[key] = "" if value is None else str(value)


class Loader(yaml.SafeLoader):
    """Scalars as text, as they are written; but merges."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))]}


out = {}
flat(yaml.load((here / "npu.yaml").read_text(), Loader=Loader), "", out)
with open(here / "npu.tsv", "w") as f:
    for k in sorted(out):
        f.write(f"{k}\t{out[k]}\n")
