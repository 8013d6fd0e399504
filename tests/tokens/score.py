#!/usr/bin/env python3
"""What acctoken says of the cases of make.py: how many causes are named, how many clean pairs accused.

    tests/tokens/score.py FOLDER [-v]        # programs from PATH
"""
import collections
import glob
import json
import os
import subprocess
import sys

named, count, wrong = collections.Counter(), collections.Counter(), []
said, right = collections.Counter(), collections.Counter()  # by the rule that is named first
for d in sorted(glob.glob(os.path.join(sys.argv[1], "*", "*"))):
    truth = json.load(open(os.path.join(d, "truth.json")))
    b = glob.glob(os.path.join(d, "trainer.*"))[0]
    r = subprocess.run(
        f"accalign '{d}/rollout.jsonl' '{b}' | acctoken --preset {truth.get('preset', 'bf16')} | accfmt --json",
        shell=True, capture_output=True, text=True)
    found = [json.loads(x) for x in r.stdout.splitlines()]
    found = [f for f in found if f["kind"] == "finding"]
    rules = [f.get("rule") for f in found if f["what"] in ("culprit",) or f.get("rule") in ("alike", "grows", "some")]
    name = os.path.basename(d)
    clean = not truth["rules"]
    count["clean" if clean else "cause"] += 1
    if rules:
        said[rules[0]] += 1
        right[rules[0]] += rules[0] in truth["rules"]
    ok = r.returncode == 0 if clean else bool(rules) and rules[0] in truth["rules"]
    ok |= r.returncode == 0 and truth.get("either", False)
    if ok:
        named["clean" if clean else "cause"] += 1
    else:
        wrong.append((d, truth["rules"], r.returncode, rules))
    if "-v" in sys.argv or not ok:
        print("ok   " if ok else "WRONG", d, truth["rules"], rules, r.returncode, r.stderr.strip())
        if not ok:
            for f in found:
                print("      ", f["what"], f.get("rule"), f.get("text"))
print(f"{named['cause']} of {count['cause']} causes named, {count['clean'] - named['clean']} of {count['clean']} clean pairs accused")
for rule in sorted(said):
    print(f"{rule}: right {right[rule]} of {said[rule]}")
