#!/usr/bin/env python3
"""Runs accdiff on what make.py recorded: score.py FOLDER [PATTERN]. Clean pairs that are accused, faults that are missed."""

import concurrent.futures
import fnmatch
import glob
import json
import os
import subprocess
import sys


def judge(place):
    out = subprocess.run(["accdiff", "-f", "json", os.path.join(place, "device"), os.path.join(place, "bench")],
                         capture_output=True, text=True)
    name, text = "", ""
    for line in out.stdout.splitlines():
        r = json.loads(line)
        if r["kind"] == "finding" and r.get("what") in ("culprit", "overflow", "difference", "missing") and not name:
            name, text = r.get("name", r["what"]), r.get("text", "")
    return place, out.returncode, name, text, out.stderr


def main(folder, pattern="*"):
    places = sorted(os.path.dirname(p) for p in glob.glob(os.path.join(folder, pattern, "truth.json")))
    accused = clean = faults = found = named = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for place, status, name, text, err in pool.map(judge, places):
            with open(os.path.join(place, "truth.json")) as f:
                truth = json.load(f)
            if truth["clean"]:
                clean += 1
                accused += status != 0
                verdict = "" if status == 0 else "ACCUSED"
            else:
                faults += 1
                found += status == 1
                right = status == 1 and any(fnmatch.fnmatch(name, n) for n in truth["named"])
                named += right
                verdict = "" if right else "OTHER" if status == 1 else "MISSED"
            if verdict:
                print(f"{os.path.basename(place)}: {verdict} {status} {text[:300]} {err.strip()[:200]}")
    print(f"clean: {accused} of {clean} accused; faults: {found} of {faults} with exit status 1, {named} named")


if __name__ == "__main__":
    main(*sys.argv[1:])
