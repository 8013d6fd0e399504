#!/usr/bin/env python3
"""What accdiff says of the recordings of layouts.py, or of meshes.py: score_layouts.py FOLDER [--show] [--jobs N] [--save FILE]

Of each layout (with .1: of statistics alone) against its bench: right, if its exit status is 0; wrong, if it is 1, and named,
if the first that is accused is where the fault is (places.py). --against right: wrong ones against the right one of their
own layout, rank by rank, instead."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess

import places

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin"))
ACCUSE = ("culprit", "overflow", "missing", "difference")


def bench(name, right):
    layout, end = re.sub(r"-.*|\.1$", "", name), ".1" * name.endswith(".1")
    kind = layout.partition(".")[2]
    return (layout if right or kind == "drop" else f"one.{kind}" if kind else "one") + end


def judge(folder, name, right):
    done = subprocess.run([os.path.join(BIN, "accdiff"), "-f", "json",
                           os.path.join(folder, name), os.path.join(folder, bench(name, right))], capture_output=True, text=True)
    found = [r for r in map(json.loads, done.stdout.splitlines()) if r["kind"] == "finding"] if done.returncode < 3 else []
    said = [r for r in found if r["what"] in ACCUSE and (r["what"] != "missing" or r.get("rule") == "reduction")]
    text = " | ".join(r["text"] for r in said[:1] or found) or done.stderr.strip()
    layout, _, fault = name.removesuffix(".1").partition("-")
    ranks = len([n for n in os.listdir(os.path.join(folder, name)) if n.startswith("rank") and n.endswith(".acc")])
    maker = "meshes" if any(n.startswith("ddp3") for n in os.listdir(folder)) else "layouts"
    at_once = done.returncode == 1 and fault and said and places.named(maker, layout, fault, ranks, said[0])
    return name, done.returncode, bool(at_once), text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--show", action="store_true", help="what is not as it should be, too")
    p.add_argument("--against", choices=["one", "right"], default="one")
    p.add_argument("--save", help="a file: one line a recording, to compare two judges")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    names = sorted(n for n in os.listdir(a.folder) if not n.startswith("one") and (a.against == "one" or "-" in n))
    table, lines = {}, []
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, status, at_once, said in pool.map(lambda n: judge(a.folder, n, a.against == "right"), names):
            wrong = "-" in name
            row = table.setdefault(re.sub(r"-.*|\.1$", "", name), {})
            cell = row.setdefault(wrong, [0] * 5)
            cell[min(status, 2)] += 1
            cell[3] += 1
            cell[4] += at_once
            lines.append(f"{name}\t{status}\t{'named' if at_once else ''}\t{said}\n")
            if a.show and (status != wrong or (wrong and not at_once)):
                print(f"{name}: {status}: {said[:300]}")
    if a.save:
        with open(a.save, "w", encoding="utf8") as f:
            f.writelines(lines)
    total = {False: [0] * 5, True: [0] * 5}
    print("| layout | right: exit 0, 1, 2 | wrong: exit 0, 1, 2 | of these named at the place |\n|---|---|---|---|")
    for layout, row in sorted(table.items()):
        cells = [row.get(w, [0] * 5) for w in (False, True)]
        for w in (False, True):
            total[w] = [x + y for x, y in zip(total[w], cells[w])]
        print(f"| {layout} | " + " | ".join(", ".join(map(str, c[:3])) for c in cells) + f" | {cells[1][4]} |")
    print("| all | " + " | ".join(f"{', '.join(map(str, total[w][:3]))} of {total[w][3]}" for w in (False, True)) +
          f" | {total[True][4]} |")


if __name__ == "__main__":
    main()
