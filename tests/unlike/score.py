#!/usr/bin/python3
"""What accdiff says of the cases of make.py: score.py FOLDER [--jobs N] [--show] [--statistics]

A fault is named if the op call is, or one that only hands on what the fault made; in a region, if another call
of the stretch where the two programs part is (rule program), which is short: see part-calls of accfirstbad(1)."""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import tempfile

BIN = os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bin"))


def verdict(path, statistics):
    with tempfile.TemporaryDirectory() as tmp:
        sides = [path + "/device", path + "/bench"]
        for i in range(2 if statistics else 0):
            out = f"{tmp}/{i}.acc"
            with open(out, "wb") as f:
                subprocess.run([os.path.join(BIN, "accdump-read"), "--keep=-", sides[i]], stdout=f, check=True)
            sides[i] = out
        q = subprocess.run([os.path.join(BIN, "accdiff"), "-f", "json", *sides],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if q.returncode > 1:
        return "declined", q.stderr[-200:], 0, []
    for line in q.stdout.splitlines():
        r = json.loads(line)
        if r["kind"] == "finding" and r["what"] in ("culprit", "overflow", "missing"):
            return r["name"], r["text"], r.get("confidence", 0), r.get("ranked", []) if r.get("rule") == "program" else []
    return None, "", 0, []


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--show", action="store_true")
    p.add_argument("--statistics", action="store_true", help="of what was recorded, statistics alone")
    a = p.parse_args()
    cases = sorted(d for d, _, f in os.walk(a.folder, followlinks=True) if "truth.json" in f)
    n = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as ex:
        for path, (name, text, sure, stretch) in zip(cases, ex.map(lambda d: verdict(d, a.statistics), cases)):
            with open(path + "/truth.json", encoding="utf8") as f:
                t = json.load(f)
            if name == "declined":
                what = "declined"
            elif t["ops"] is None:
                what = "clean" if name is None else "accused"
            else:
                what = "named" if name in t["ops"] else "missed" if name is None else \
                    "region" if set(stretch) & set(t["ops"]) else "another"
            for group in ("all", t["program"], t["dtypes"]) + (("bugs",) if " " in (t["kind"] or "") else ()):
                n[group, what] += 1
            if a.show and what not in ("clean", "named", "region", "declined"):
                print(f"{os.path.basename(path)}: {what}, {t['kind']} {' '.join((t['ops'] or [])[:4])}; got {name} ({sure:.3g}): {text[:300]}")
    for group in sorted({g for g, _ in n}):
        print(f"{group:10} clean accused {n[group, 'accused']}/{n[group, 'accused'] + n[group, 'clean']}, faults named "
              f"{n[group, 'named']}, in a region {n[group, 'region']}, another {n[group, 'another']}, missed {n[group, 'missed']}, declined {n[group, 'declined']}")


if __name__ == "__main__":
    main()
