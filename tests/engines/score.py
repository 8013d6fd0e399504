#!/usr/bin/env python3
"""What accdiff says of the cases of make.py: score.py FOLDER [--engine E] [--net N] [--show] [--swap]

Clean: a right engine ends in exit 0. Found: a faulty one in exit 1; at its layer: the op call that is named, or the
first of its stretch (on either side), is of the module with the fault or of one beneath the same block."""
import argparse
import collections
import json
import os
import re
import subprocess

import models

BIN = os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bin"))


def verdict(path, bench, swap):
    device = next(f"{path}/{f}" for f in sorted(os.listdir(path)) if f.startswith("device"))
    sides = [device, f"{path}/bench-{bench}"]
    q = subprocess.run([f"{BIN}/accdiff", "--all", "-f", "json"] + sides[::-1 if swap else 1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    rows = [json.loads(s) for s in q.stdout.splitlines() if s.startswith("{")]
    found = [r for r in rows if r["kind"] == "finding"]
    accused = [r for r in found if r["what"] in ("culprit", "overflow", "missing", "difference")]
    name = accused[0].get("name") if accused else None
    where, there = {}, {}
    side = "a" if swap else "b"
    for r in rows:
        if r["kind"] == "pair" and r.get("a.key"):
            where.setdefault(r["a.key"], []).append(str(r.get(side + ".scope") or "") + " " + str(r.get(side + ".name") or ""))
            where.setdefault(r["name"], where[r["a.key"]])
        if r["kind"] == "pair" and r.get(side + ".key"):
            there.setdefault(r[side + ".key"], str(r.get(side + ".scope") or r.get(side + ".name")))
    text = accused[0]["text"] if accused else " | ".join(r["text"] for r in found) or q.stderr
    # What has no partner stands for calls of the other side, as the finding says.
    on = re.search(r"on the bench it is ([^\s,;]+)", text)
    places = where.get(name, []) + [there.get(on.group(1), "")] if on else where.get(name, [str(name)])
    return q.returncode, name, " ".join(places), text


def layer(place):
    """A block; of the CNN what is folded into one, or the next that is there: a|b."""
    return re.match(r"(layers|encoder)\.\d+|[\w|]+", place).group().replace(".", r"\.")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--engine")
    p.add_argument("--net")
    p.add_argument("--show", action="store_true")
    p.add_argument("--kept", action="store_true", help="what models.KEPT keeps aside, and nothing else; without it all but that")
    p.add_argument("--swap", action="store_true", help="the engine is the bench")
    a = p.parse_args()
    total = collections.defaultdict(collections.Counter)
    for d, _, files in sorted(os.walk(a.folder)):
        engine, case = d.split("/")[-2:]
        if "truth.json" not in files or (a.engine and engine != a.engine) or (a.net and not case.startswith(a.net)):
            continue
        if a.kept != (case.split("-")[0] in models.KEPT["nets"] or case.split("-")[1] in models.KEPT["faults"]):
            continue
        with open(f"{d}/truth.json") as f:
            truth = json.load(f)
        for bench in "calls", "modules":
            if not os.path.isdir(f"{d}/bench-{bench}"):
                continue
            status, name, where, text = verdict(d, bench, a.swap)
            if truth["clean"]:
                what = "clean" if status == 0 else "accused" if status == 1 else "declined"
            elif status != 1:
                what = "silent" if status == 0 else "undecided"
            else:
                what = "at its layer" if re.search(rf"\b({layer(truth['place'])})\b", where) else "elsewhere"
            total[engine, bench]["right" if truth["clean"] else "faulty"] += 1
            total[engine, bench][what] += 1
            if a.show and what not in ("clean", "at its layer"):
                print(f"{engine}/{case}/{bench}: {what}, {truth['place']} off {truth['off']:.2g}: {name} = {where[:120]}: {text[:300]}\n")
    for k, v in sorted(total.items()):
        print(*k, dict(v))


main()
