#!/usr/bin/env python3
"""What accdiff says of the recordings of layouts.py: score_layouts.py FOLDER [--show] [--jobs N]

Of each layout (with .1: of statistics alone) against its bench: right, if its exit status is 0; wrong, if it is 1."""
import argparse
import concurrent.futures
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin"))


def bench(name):
    layout, end = re.sub(r"-.*|\.1$", "", name), ".1" * name.endswith(".1")
    kind = layout.partition(".")[2]
    return (layout if kind == "drop" else f"one.{kind}" if kind else "one") + end


def judge(folder, name):
    done = subprocess.run([os.path.join(BIN, "accdiff"), os.path.join(folder, name), os.path.join(folder, bench(name))],
                          capture_output=True, text=True)
    said = re.findall(r"^(?:rank.*: )?\S+\.(?:forward|backward|parameters_grad)\S*: .*", done.stdout, re.M)
    return name, done.returncode, said[0] if said else (done.stdout + done.stderr).strip().split("\n")[-1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--show", action="store_true", help="what is not as it should be, too")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    names = sorted(n for n in os.listdir(a.folder) if not n.startswith("one"))
    table = {}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, status, said in pool.map(lambda n: judge(a.folder, n), names):
            wrong = "-" in name
            row = table.setdefault((re.sub(r"-.*|\.1$", "", name), ), {})
            cell = row.setdefault(wrong, [0, 0, 0, 0])
            cell[min(status, 2)] += 1
            cell[3] += 1
            if a.show and status != wrong:
                print(f"{name}: {status}: {said[:200]}")
    total = {False: [0] * 4, True: [0] * 4}
    print("| layout | right: exit 0, 1, 2 | wrong: exit 0, 1, 2 |\n|---|---|---|")
    for (layout,), row in sorted(table.items()):
        cells = [row.get(w, [0] * 4) for w in (False, True)]
        for w in (False, True):
            total[w] = [x + y for x, y in zip(total[w], cells[w])]
        print(f"| {layout} | " + " | ".join(", ".join(map(str, c[:3])) for c in cells) + " |")
    print("| all | " + " | ".join(f"{', '.join(map(str, total[w][:3]))} of {total[w][3]}" for w in (False, True)) + " |")


if __name__ == "__main__":
    main()
