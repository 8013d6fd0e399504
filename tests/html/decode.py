#!/usr/bin/env python3
"""The records in a page of accfmt --html, by what lib/format/columns.h says of them, against the same
stream as JSON Lines: decode.py PAGE JSONL. Silent where they agree."""
import json
import re
import sys

STORAGE = re.compile(r"^([ab]\.)?(off|len|clen|enc|crc32|fsize|mtime|s\.few)$")


def column(block, key, texts, rows):
    spec, text = block["k"][key], False
    if isinstance(spec, dict) and "r" in spec:
        return column(block, spec["r"], texts, rows)
    if isinstance(spec, dict) and spec.get("t") == 1:
        spec, text = spec["v"], True

    def value(x):
        return texts[x] if text else texts[x[0]] if isinstance(x, list) else x

    out = [None] * rows
    if isinstance(spec, list):
        assert len(spec) == rows
        out = [None if x is None else (value(x),) for x in spec]
    elif "i" in spec:
        at = 0
        for d, x in zip(spec["i"], spec["v"], strict=True):
            at += d
            out[at] = (value(x),)
    else:
        out = [(value(spec["c"]),)] * rows
    return out


def decode(page):
    texts, rows, objects = [], [], []
    for m in re.finditer(r'<script type="application/json" class="data">(.*?)</script>', page, re.S):
        b = json.loads(m[1])
        texts += b["s"]
        cols = {k: column(b, k, texts, b["n"]) for k in b["k"]}
        rows += [{k: c[i][0] for k, c in cols.items() if c[i] is not None} for i in range(b["n"])]
        objects += b["o"]
    for o in objects:
        if o["kind"] == "stack":
            o["frames"] = [texts[n] for n in o["frames"]]
    return rows, objects


def plain(v):
    """As a page has it: 9 digits; lists and what is not finite as a table's cell."""
    if isinstance(v, bool):
        return v
    if isinstance(v, float):
        return float("%.9g" % v)
    if v is None:
        return "null"
    if isinstance(v, list):
        return "[" + ", ".join(map(str, v)) + "]"
    return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(v, v)


def main():
    rows, objects = decode(open(sys.argv[1], encoding="utf-8").read())
    want_rows, want_objects, hashes, back = [], [], {}, {}
    for line in open(sys.argv[2], encoding="utf-8"):
        r = json.loads(line)
        if r["kind"] in ("finding", "source", "stack"):
            want_objects.append(r)
        elif r["kind"] != "data":
            want_rows.append(r)
    assert objects == want_objects, "findings, sources or stacks differ"
    assert len(rows) == len(want_rows), (len(rows), len(want_rows))
    for got, want in zip(rows, want_rows):
        want = {k: plain(v) for k, v in want.items() if not STORAGE.match(k)}
        for k in [k for k in want if k.endswith("s.hash")]:
            # Any number will do, but one for each hash.
            n, h = got.pop(k), want.pop(k)
            assert hashes.setdefault(h, n) == n and back.setdefault(n, h) == h, k
        for k in want:
            assert got.get(k) == want[k], (k, got.get(k), want[k])
        assert set(got) == set(want), set(got) ^ set(want)


main()
