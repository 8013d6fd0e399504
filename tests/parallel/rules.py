#!/usr/bin/env python3
"""What the rules over ranks are worth: how often what they accuse is wrong. BIN holds the programs.

Usage: rules.py FOLDER...     runs of make.py, one without a fault for each layout

A run without a fault must not be accused. In one with a fault the op call that is named must be one where the fault
enters, as the twin without it shows (score.py). Prints, of each rule, its accusations that were right and all of them,
and the runs in which it was wrong. What taught a rule does not measure it: take a seed that nobody has looked at."""
import json
import os
import re
import subprocess
import sys
from collections import Counter

from score import BIN, MOVES, changed, plain

FAULT = re.compile(r"-(lost|noavg|noreduce|scale|token|order|mask|group|stale)(?=-|$)")


def culprits(run: str) -> list[tuple[str, str]]:
    """The rule over ranks and the op call of each culprit."""
    out = subprocess.run(f"'{BIN}/accdump-read' '{run}' | '{BIN}/accaudit' -j1 | '{BIN}/accfirstbad' |"
                         f" '{BIN}/accfmt' --json", shell=True, capture_output=True, text=True).stdout
    found = [json.loads(line) for line in out.splitlines()]
    return [(f["audit.rule"], f["name"]) for f in found if f.get("what") == "culprit" and "audit.rule" in f]


def enters(good: str, bad: str) -> set[str]:
    """Where a fault enters, as score.py says, and what is given that by ops that only move elements."""
    names = changed(good, bad)
    for rank in os.listdir(os.path.join(bad, "step0")):
        a, b = (json.load(open(os.path.join(run, "step0", rank, "dump.json")))["data"] for run in (good, bad))
        apart = [k for k, v in b.items() if k not in a or plain(a[k]) != plain(v)]
        names.update([k for k in apart if k.split(".")[1] not in MOVES and not k.startswith("Torch.empty.")][:1])
    return names


def main() -> None:
    right, of, runs, wrong = Counter(), Counter(), Counter(), []
    for folder in sys.argv[1:]:
        for name in sorted(os.listdir(folder)):
            run, twin = os.path.join(folder, name), os.path.join(folder, FAULT.sub("", name))
            if not os.path.isdir(os.path.join(run, "step0", "rank1")) or not os.path.isdir(twin):
                continue
            truth = enters(twin, run) if twin != run else set()
            runs["right runs" if twin == run else "faults"] += 1
            named = culprits(run)
            runs["right runs accused" if twin == run else "faults accused"] += bool(named)
            for rule, call in named:
                of[rule] += 1
                right[rule] += call in truth
                if call not in truth:
                    wrong.append(f"{rule}: {name}: {call}")
    print(", ".join(f"{n} {what}" for what, n in sorted(runs.items())))
    print("| rule | right | of |\n|---|---|---|")
    for rule in sorted(of, key=lambda r: (-of[r], r)):
        print(f"| {rule} | {right[rule]} | {of[rule]} |")
    print("\n".join(wrong))


if __name__ == "__main__":
    main()
