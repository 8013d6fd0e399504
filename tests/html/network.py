#!/usr/bin/env python3
"""The network in a page of accfmt --html (lib/format/network_json.c) against the same stream as JSON
Lines, by what network.h says of it: network.py PAGE JSONL. Silent where they agree. Of op calls; stages are
taken from the page, and each must hold the ranks that hear from none, or from the one before."""
import json
import math
import re
import sys

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
MEASURES = ["m.err_max", "m.max_rel", "m.norm_relerr", "m.max_relerr", "m.max_abs"]
ACCUSING = ["culprit", "overflow", "difference", "rule", "missing"]


def size(r):
    v = next((float(r[m]) for m in MEASURES if isinstance(r.get(m), (int, float, str))), None)
    if v is None:
        return 0
    v = abs(v)
    if v == 0:
        return 1
    return 15 if not math.isfinite(v) else max(2, min(15, math.floor(math.log10(v)) + 14))


def grade(r):
    if r.get("bad") in ("error", "warning"):
        return 3 if r["bad"] == "error" else 2
    ok = next((r[k] for k in ("a.audit.ok", "audit.ok", "b.audit.ok") if k in r), None)
    return 2 if ok is False else 1 if ok or "m.mode" in r else 0


def expected(lines):
    """{(key, bench alone, rank, step): (grade, size)}, and of keys their scopes, and other names."""
    cells, scopes, others, judged = {}, {}, {}, False
    for r in lines:
        judged |= r["kind"] in ("finding", "curve")
        if r["kind"] == "finding" and r["what"] in ACCUSING:
            for c in cells:
                if c[0] == r["name"] and c[2:] == (r.get("rank"), r.get("step")):
                    cells[c] = (3, cells[c][1])
        side = "a." if r["kind"] == "pair" else ""
        kind = r.get("a.kind", r.get("b.kind")) if side else r["kind"]
        if kind not in ("tensor", "arg", "call"):
            continue
        bench = side + "key" not in r
        side = "b." if bench else side
        key = r.get(side + "key")
        if key is None:
            continue
        at = (key, bench, r.get(side + "rank"), r.get(side + "step"))
        had = cells.get(at, (0, 0))
        cells[at] = (max(had[0], grade(r)), max(had[1], size(r)))
        scopes.setdefault((key, bench), r.get(side + "scope"))
        if not bench and r.get("b.key", key) != key:
            others[key] = r["b.key"]
    if not judged:
        cells = {k: (0 if g == 1 else g, s) for k, (g, s) in cells.items()}
    return cells, scopes, others


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    net = json.loads(re.search(r'id="network">(.*?)</script>', page, re.S)[1])
    want, scopes, others = expected(map(json.loads, open(sys.argv[2], encoding="utf-8")))
    ranks, steps, got = net["ranks"], net["steps"], {}
    assert ranks == sorted(ranks, key=lambda v: (v is not None, v)) and steps == sorted(steps, key=lambda v: (v is not None, v))
    for i, key in enumerate(net["key"]):
        bench = isinstance(key, list)
        name = key[0] if bench else key
        of = net["sets"][net["set"][i]] if net["set"][i] >= 0 else []
        assert len(net["cells"][i]) == len(of) * len(steps)
        for k, c in enumerate(net["cells"][i]):
            at = (name, bench, ranks[of[k // len(steps)]], steps[k % len(steps)])
            if c != ".":
                assert at not in got, at
                got[at] = divmod(DIGITS.index(c), 16)
        up = net["up"][i] and i - net["up"][i] + 1
        assert 0 <= net["up"][i] <= i
        scope = scopes.get((name, bench))
        if of and net["title"] == "Modules" and scope is not None and not bench:
            assert up and net["key"][up - 1] == scope, (name, scope)
        assert (str(i) in net["other"]) == (not bench and name in others), name
        if net["stage"]:
            assert len({net["stage"][r] for r in of}) <= 1
    assert got == want, (set(got.items()) ^ set(want.items()))
    if "named" in net:
        node, rank, step = net["named"]
        worst = max(g for g, _ in want.values())
        assert want[(net["key"][node], False, ranks[rank], steps[step])][0] == worst


main()
