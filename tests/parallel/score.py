#!/usr/bin/env python3
"""Ranks against one: what accdiff says of the runs of make.py. BIN holds the programs.

Usage: score.py --list [many | mixed | experts | LAYOUT[:BENCH]...]
                                 the runs that it wants, as words for make.py
       score.py FOLDER [-v] [--statistics] [many | mixed | experts | LAYOUT[:BENCH]...]
                                 clean runs that are accused, faults that are named; many, mixed:
                                 with a bench of several ranks, too

The truth is that of twins: a run with a fault and the same run, with the same noise, without. Where it
enters is the first op call of each rank that changes, or the one that gave what changed. The rank is
asked for where it is one rank's fault, and the elements of tensors were recorded.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

BIN = os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin"))
MOVES = {"chunk", "contiguous", "reshape", "transpose", "view", "permute", "split", "cat"}
ONE = {"scale", "stale", "mask", "token"}   # faults of one rank
SUMS = {"noavg", "noreduce"}              # what changes is what gradients become
SUMMED = re.compile(r"\.backward|^Distributed\.(all_reduce|reduce_scatter)")   # they, or what sums them
# Layout, its bench, its faults.
TABLE = [
    ("tp2", "one", "scale lost stale order mask"),
    ("tp4", "one", "scale lost group stale order mask"),
    ("sp2", "one", "scale lost stale order mask"),
    ("tp2-bias", "one-bias", "scale lost stale order mask"),
    ("sp2-bias", "one-bias", "scale lost stale"),
    ("dp4", "one", "scale noreduce group noavg stale mask"),
    ("dp8", "one", "scale noreduce noavg stale"),
    ("pp2", "one", "scale stale mask"),
    ("pp4", "one", "scale stale mask"),
    ("pp4-m4", "one", "scale stale mask noavg"),
    ("pp2-v2", "one", "scale stale mask"),
    ("pp2-v2-m2", "one", "scale stale mask noavg"),
    ("ep2", "moe", "scale noreduce noavg stale order mask token"),
    ("cp2", "one", "scale noreduce noavg stale order mask"),
    ("fsdp4", "one", "scale noavg stale order mask"),
    ("zero4", "one-step", "scale lost noavg stale order mask"),
    ("tp2pp2", "one", "scale lost stale order mask"),
    ("tp2dp2", "one", "scale lost noavg stale order mask"),
    ("tp2dp2pp2-bias", "one-bias", "scale lost noavg stale"),
    ("tp2pp2-m2", "one", "scale lost stale noavg"),
    ("tp2-vocab", "one", "scale lost stale"),
    ("tp2-pad", "one", "scale lost stale"),
    ("tp4-fill", "one", "scale lost stale"),
    ("tp2-gqa-glu", "one-gqa-glu", "scale lost stale order mask"),
    ("sp4-gqa-glu", "one-gqa-glu", "scale lost stale order mask"),
    ("cp2-zig", "one", "scale noreduce noavg stale order mask"),
    ("cp2-ul", "one", "scale noreduce noavg stale mask"),
    ("ep2-sbh", "moe-sbh", "scale noreduce noavg stale order mask token"),
    ("ep4-sbh", "moe-sbh", "scale noreduce noavg stale order mask token"),
]
# The same with a bench of several ranks, of which each is some of the device's, or the other way round.
MANY = [
    ("tp4", "tp2", "scale lost group stale order mask"),
    ("tp2", "tp4", "scale lost stale order mask"),
    ("sp4", "sp2", "scale lost stale order mask"),
    ("sp4", "tp2", "scale lost stale mask"),
    ("dp4", "dp2", "scale noreduce noavg stale mask"),
    ("dp2", "dp8", "scale noreduce noavg stale"),
    ("pp4", "pp2", "scale stale mask"),
    ("pp2", "pp4", "scale stale mask"),
    ("tp2pp2", "tp2", "scale lost stale order mask"),
    ("tp2pp2", "pp2", "scale lost stale order mask"),
    ("tp2dp2", "tp2", "scale lost noavg stale order mask"),
    ("tp2dp2", "dp2", "scale lost noavg stale order mask"),
    ("tp2dp2pp2-bias", "tp2pp2-bias", "scale lost noavg stale"),
    ("ep4", "ep2", "scale noreduce noavg stale order mask token"),
    ("cp4", "cp2", "scale noreduce noavg stale order mask"),
    ("fsdp4", "fsdp2", "scale noavg stale order mask"),
    ("fsdp4", "dp2", "scale noavg stale order mask"),
    ("zero4", "zero2", "scale lost noavg stale order mask"),
    ("tp4-gqa-glu", "tp2-gqa-glu", "scale lost stale order mask"),
    ("cp4-zig", "cp2-zig", "scale noreduce noavg stale order mask"),
    ("cp2-zig", "cp2", "scale noreduce noavg stale order mask"),
    ("ep4-sbh", "ep2-sbh", "scale noreduce noavg stale order mask token"),
]
# The same where no rank is some of the other side's: both become one.
MIXED = [
    ("tp2", "dp2", "scale lost stale order mask"),
    ("dp2", "tp2", "scale noavg stale mask"),
    ("cp2", "tp2", "scale stale order mask"),
    ("cp2", "dp2", "scale stale order mask"),
    ("sp2", "tp2", "scale lost stale mask"),
    ("tp2", "pp2", "scale lost stale mask"),
    ("pp2", "tp2", "scale stale mask"),
    ("tp4", "dp2", "scale lost group stale mask"),
    ("tp4", "tp2dp2", "scale lost stale mask"),
    ("tp2dp2", "tp4", "scale lost stale mask"),
    ("fsdp4", "tp4", "scale noavg stale mask"),
    ("tp4", "fsdp4", "scale lost stale mask"),
    ("dp4", "tp2pp2", "scale stale mask"),
    ("tp2pp2", "tp2dp2", "scale lost stale mask"),
    ("tp2dp2", "tp2pp2", "scale lost noavg stale mask"),
    ("tp2pp2", "tp4", "scale lost stale mask"),
    ("pp4", "tp2dp2", "scale stale mask"),
    ("tp2pp2", "fsdp4", "scale lost stale mask"),
    ("tp4", "pp4-m4", "scale lost stale mask"),
    ("tp2pp2-m2", "tp2dp2", "scale lost stale noavg"),
    ("pp2-v2-m2", "tp2", "scale stale noavg"),
    ("pp4-m4", "dp4", "scale stale mask"),
    ("ep2", "dp2-moe", "scale noavg stale order mask token"),
    ("dp2-moe", "ep2", "scale stale mask token"),
    ("ep2", "ep4", "scale noavg stale order mask token"),
    ("ep4", "ep2", "scale noavg stale order mask token"),
    ("ep4", "dp2-moe", "scale stale order token"),
    ("dp4-moe", "ep2", "scale stale mask token"),
    ("tp2-moe", "ep2", "scale lost stale token"),
    ("ep2", "fsdp2-moe", "scale stale order token"),
    ("tp2-moe", "dp2-moe", "scale lost stale token"),
    ("ep2dp2", "ep4", "scale noavg stale order token"),
    ("ep4", "ep2dp2", "scale noavg stale order token"),
    ("ep2dp2", "dp2-moe", "scale stale order token"),
    ("dp2-moe", "ep2dp2", "scale stale mask token"),
    ("cp2-zig", "tp2", "scale stale order mask"),
    ("cp2-zig", "dp2", "scale stale order mask"),
    ("cp2-ul", "tp2", "scale stale mask"),
    ("tp2-gqa-glu", "dp2-gqa-glu", "scale lost stale order mask"),
    ("ep2-sbh", "dp2-moe-sbh", "scale noavg stale order mask token"),
    ("ep4-sbh", "ep2dp2-sbh", "scale noavg stale order token"),
]
EXPERTS = [f"{x}:{y}" for x, y, _ in MIXED if "moe" in x + y or "ep" in x + y]
NOISE = ["", "-noise", "-tf32"]


def chosen(only):
    """Of ranks against one, or of `many`, or `mixed`, or those of it with experts; or those of some layouts,
    such as tp4 or tp4:tp2."""
    if "experts" in only:
        only = only + EXPERTS
    for name, table in ("many", MANY), ("mixed", MIXED), ("", TABLE):
        for layout, bench, faults in table:
            if name in only or f"{layout}:{bench}" in only or \
                    not name and (not only or layout in only):
                yield layout, bench, faults


def wanted(only):
    for layout, bench, faults in chosen(only):
        yield bench
        for noise in NOISE:
            yield layout + noise
        for f in faults.split():
            yield f"{layout}-{f}-noise"


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items() if k != "data_name"}
    return [plain(v) for v in x] if isinstance(x, list) else repr(x)   # NaN is NaN


def changed(good, bad):
    """Of each rank the op calls that enter: the first that changes, those before it, and those behind it
    that only hand on what it gave, for the first may have no like on the bench."""
    names = set()
    for rank in sorted(os.listdir(os.path.join(good, "step0"))):
        a, b = (json.load(open(os.path.join(d, "step0", rank, "dump.json")))["data"] for d in (good, bad))
        last, entered = [], False
        for k, v in b.items():
            if entered and (k not in a or plain(a[k]) != plain(v)):
                if k.split(".")[1] not in MOVES:
                    break
                names.add(k)
            if entered or k.startswith("Torch.empty."):   # holds anything
                continue
            if k.startswith("Distributed."):
                last.append(k)
                if a.get(k) is not None and plain(a[k]) == plain(v):
                    continue
                names |= {k} if k in a and plain(a[k]["input_args"]) != plain(v["input_args"]) else set()
                continue
            if k not in a or plain(a[k]) != plain(v):
                names |= {k, *last[-4:]}
                entered = True
            last.append(k)
    return names


def bare(folder, to):
    """The same dump without the elements of tensors."""
    def strip(x):
        if isinstance(x, dict):
            return {k: strip(v) for k, v in x.items() if k != "data_name"}
        return [strip(v) for v in x] if isinstance(x, list) else x
    for rank in os.listdir(os.path.join(folder, "step0")):
        at = os.path.join(to, "step0", rank)
        os.makedirs(at)
        for name in os.listdir(os.path.join(folder, "step0", rank)):
            if not name.endswith(".json"):
                continue
            x = json.load(open(os.path.join(folder, "step0", rank, name)))
            if name == "dump.json":
                x = {**strip(x), "task": "statistics"}
            json.dump(x, open(os.path.join(at, name), "w"))


def diff(device, bench):
    if "--statistics" in sys.argv:
        with tempfile.TemporaryDirectory() as d:
            sides = []
            for x in device, bench:
                sides.append(os.path.join(d, os.path.basename(x)))
                bare(x, sides[-1])
            return judged(*sides)
    return judged(device, bench)


def judged(device, bench):
    p = subprocess.run([os.path.join(BIN, "accdiff"), "-f", "json", device, bench],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = [json.loads(x) for x in p.stdout.decode().splitlines()]
    return p.returncode, [r for r in rows if r["kind"] == "finding"], p.stderr.decode()


def main():
    only = [x for x in sys.argv[1:] if not x.startswith("-") and not os.path.isdir(x)]
    if "--list" in sys.argv:
        print(" ".join(dict.fromkeys(wanted(only))))
        return
    folder, verbose = sys.argv[1], "-v" in sys.argv
    total = Counter()
    for layout, bench, faults in chosen(only):
        if not os.path.isdir(os.path.join(folder, layout)):
            continue
        said = Counter()
        for noise in NOISE:
            rc, found, err = diff(os.path.join(folder, layout + noise), os.path.join(folder, bench))
            word = {0: "clean", 1: "ACCUSED"}.get(rc, "declined")
            said[word] += 1
            if verbose and rc:
                print("   ", layout + noise, word, err.strip()[:200], *[f["text"][:300] for f in found if f["what"] in ("culprit", "missing", "difference") or rc == 2][:2])
        for f in faults.split():
            run = f"{layout}-{f}-noise"
            if not os.path.isdir(os.path.join(folder, run)):
                continue
            rc, found, err = diff(os.path.join(folder, run), os.path.join(folder, bench))
            truth = changed(os.path.join(folder, layout + "-noise"), os.path.join(folder, run))
            bad = [x for x in found if x["what"] == "culprit" or
                   x["what"] == "missing" and x.get("rule") == "reduction"]
            name = bad[0]["name"] if bad else None
            summed = f in SUMS or f == "group" and layout.startswith("dp")
            word = "missed" if rc == 0 else "declined" if rc == 2 else \
                "named" if name in truth or summed and name and \
                (SUMMED.search(name) or bad[0]["what"] == "missing") else "later"
            said["fault"] += 1
            said[word] += 1
            n = len(os.listdir(os.path.join(folder, run, "step0")))
            rank = bad[0].get("rank") if bad else None
            right = ""
            if f in ONE:
                right = "unsaid" if rank is None else "right" if rank == n - 1 else "wrong"
                said["rank " + right] += 1
            if verbose:
                print("   ", run, word, name, f"rank {rank} {right}", "" if word == "named" else sorted(truth)[:6], err.strip()[:200])
        total += said
        print(f"{layout + ('' if bench.startswith(('one', 'moe')) else ' ' + bench):16}", ", ".join(f"{k} {v}" for k, v in said.items()))
        sys.stdout.flush()
    print("all:", ", ".join(f"{k} {v}" for k, v in total.items()))


if __name__ == "__main__":
    main()
