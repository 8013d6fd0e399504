#!/usr/bin/env python3
"""What accaudit and accfirstbad say of the runs of a maker.

Usage: score.py FOLDER [--MAKER] [CASE...]

MAKER: make (the default), fresh, others, more, unseen, held, last, joined, after, blind, legal, uneven, afresh, sound,
tracked, reported, kinds, scripts, calm, programs, trainers, library, rebuilt, quiet, sixkinds, othersix,
sixagain, tworanks, twomore, twofresh, twolast or torch2.
A clean run must not be accused; of a fault, the op call and the rank of MAKER.py's table must be named. What may be right
by design is a doubt, a warning: counted apart, of faults where nothing else is named. Prints a line for each run and the
sums."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DUNDER = {"div": "truediv"}
BIN = os.path.join(HERE, "..", "..", "bin")


def faults(maker):
    out = subprocess.run(["/usr/bin/python3", os.path.join(HERE, maker), "--faults"],
                         capture_output=True, text=True, check=True).stdout
    return {f[0]: f[1:] for f in (line.split("\t") for line in out.splitlines())}


def findings(folder):
    p = subprocess.run(f"'{BIN}/accdump-read' '{folder}' | '{BIN}/accaudit' -j1 |"
                       f" '{BIN}/accfirstbad' | '{BIN}/accfmt' --json",
                       shell=True, capture_output=True, text=True)
    if p.stderr:
        print(p.stderr, file=sys.stderr)
    return [r for r in map(json.loads, p.stdout.splitlines()) if r["kind"] == "finding"]


def spellings(name):
    """Tensor.mul.0.forward, where the recorder of the tests sees Tensor.__mul__."""
    family, op, rest = name.split(".", 2) if name.count(".") > 2 else ("", "", "")
    return [name, f"{family}.__{DUNDER.get(op, op)}__.{rest}"]


def is_at(finding, row):
    """Is it at the op call and rank of a fault's row?"""
    _, pattern, ranks = row
    step, _, op = pattern.rpartition(":")
    return any(re.search(op, n) for n in spellings(finding["name"])) and str(finding["rank"]) in ranks and \
        (not step or step == f"step{finding['step']}")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    maker = next((a[2:] for a in sys.argv[1:] if a.startswith("--")), "make")
    table, folder = faults(maker + ".py"), args[0]
    named = wrong = missed = accused = clean = 0
    doubted, doubts = [0, 0], 0
    for case in args[1:] or sorted(os.listdir(folder)):
        fault = next((m for m in case.split("-")[1:] if m in table), None)
        found = findings(os.path.join(folder, case))
        bad = [f for f in found
               if f["what"] in ("culprit", "overflow") and "; no harm: " not in f["text"]]
        doubt = next((f for f in found if f["what"] == "warning" and f["rule"] == "design"), None)
        first = bad[0] if bad else {}
        said = f"{first.get('name')} step {first.get('step')} rank {first.get('rank')}"
        if fault is None:
            clean += 1
            accused += bool(bad)
            doubts += doubt is not None
            word = "ACCUSED " + first["text"] if bad else "clean" + (", " + doubt["text"] if doubt else "")
        else:
            good = bad and is_at(first, table[fault])
            named, wrong, missed = named + bool(good), wrong + bool(bad and not good), \
                missed + (not bad)
            word = ("named" if good else "WRONG" if bad else "MISSED") + \
                ("" if not bad else f" {said}: {first['text']}")
            if doubt and not bad:
                doubted[is_at(doubt, table[fault])] += 1
                word = ("DOUBTED" if is_at(doubt, table[fault]) else "DOUBTED elsewhere") + " " + doubt["text"]
        print(f"{case}: {word[:300]}")
    print(f"faults: {named} named, {wrong} wrong, {missed} missed, of these {doubted[1]} doubted, {doubted[0]} elsewhere; "
          f"clean: {accused} of {clean} accused, {doubts} doubted")


if __name__ == "__main__":
    main()
