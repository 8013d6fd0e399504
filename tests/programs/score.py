#!/usr/bin/env python3
"""What accdiff says of the cases of make.py: score.py FOLDER... [--jobs N] [--show] [--half teach|held]

Of pairs that are right: how many are accused (exit 1), or declined (2). Of those that are not: how many end in exit 1,
and how many name the place at once: the finding's op call, or the first of a stretch that it lists, ran where the
two differ, or is its backward call. Near: it names what takes the result, or a stretch of at most twelve op calls that
holds the place. --show lists what is not right, of the half that is to look at."""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import time

BIN = os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bin"))
ACCUSE = ("culprit", "overflow", "missing", "difference")


def forward(name):
    return name.replace(".backward", ".forward")


def verdict(path):
    start = time.time()
    q = subprocess.run([f"{BIN}/accdiff", "-f", "json", path + "/device", path + "/bench"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = [r for r in map(json.loads, q.stdout.splitlines()) if r["kind"] == "finding"] if q.returncode < 3 and q.stdout else []
    accused = [r for r in found if r["what"] in ACCUSE and (r["what"] != "missing" or r.get("rule") == "reduction")]
    text = accused[0]["text"] if accused else " | ".join(r["text"] for r in found) or q.stderr
    return q.returncode, accused[:1], text, time.time() - start


def judge(truth, status, accused):
    if status > 1:
        return "declined"
    if truth["clean"]:
        return "accused" if status == 1 else "clean"
    if status == 0:
        return "silent"
    place = {forward(n) for n in truth["device"] + truth["bench"]}
    if not accused:
        return "elsewhere"
    name, stretch = accused[0].get("name"), accused[0].get("ranked") or []
    name = forward(name) if name else None
    if name in place:
        return "named"
    if accused[0].get("rule") == "program" and len(stretch) <= 12 and place & set(map(forward, stretch)):
        return "near"
    return "elsewhere"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="+")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--show", action="store_true")
    p.add_argument("--half", choices=["teach", "held"])
    p.add_argument("--save", help="a file: one line a case, to compare two judges")
    a = p.parse_args()
    paths = sorted(d for folder in a.folder for d, _, f in os.walk(folder) if "truth.json" in f)
    cases = []
    for path in paths:
        with open(path + "/truth.json", encoding="utf8") as f:
            t = json.load(f)
        if a.half in (None, t["half"]):
            cases.append((path, t))
    n, of, right = collections.Counter(), collections.Counter(), collections.Counter()
    lines = []
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as ex:
        for (path, t), (status, accused, text, took) in zip(cases, ex.map(lambda c: verdict(c[0]), cases)):
            what = judge(t, status, accused)
            if accused and "witness" in accused[0] and t["half"] == "held":
                of[accused[0]["witness"]] += 1
                right[accused[0]["witness"]] += what == "named"
            for row in ("all", t["group"], t["kind"], t["recorder"], t["half"]):
                n[row, t["clean"], what] += 1
            lines.append(f"{t['group']}/{os.path.basename(path)}\t{what}\t{accused[0].get('name') if accused else ''}\n")
            if a.show and what not in ("named", "clean", "near") and t["half"] == "teach":
                print(f"{lines[-1].strip()}\t{' '.join(t['device'][:3])}; {' '.join(t['bench'][:3])}\t{text[:400]}")
    if a.save:
        with open(a.save, "w", encoding="utf8") as f:
            f.writelines(lines)
    print("| | clean | accused | declined | faults | exit 1 | named | near | elsewhere | silent | declined |\n" + "|---" * 11 + "|")
    for row in ("all", "teach", "held", "exchange", "fault", "rewriting", "clean", "hf", "f32", "bf16", "f16", "accrecord", "msprobe"):
        c = {w: n[row, True, w] for w in ("clean", "accused", "declined")}
        f = {w: n[row, False, w] for w in ("named", "near", "elsewhere", "silent", "declined")}
        if sum(c.values()) + sum(f.values()) == 0:
            continue
        print(f"| {row} | {sum(c.values())} | {c['accused']} | {c['declined']} | {sum(f.values())} | {f['named'] + f['near'] + f['elsewhere']} | "
              f"{f['named']} | {f['near']} | {f['elsewhere']} | {f['silent']} | {f['declined']} |")
    print("\nWitnesses in the held half, for lib/judge/measured.h:\n| witness | right | of |\n|---|---|---|")
    for w, k in of.most_common():
        print(f"| {w} | {right[w]} | {k} |")


if __name__ == "__main__":
    main()
