#!/usr/bin/env python3
"""msprobe's own table against accdiff's, cell by cell: table.py FOLDER [PATTERN], of what make.py recorded.

Needs what make.py needs. The table is msprobe's `compare` with the pandas that Python finds (PYTHONPATH chooses):
of pandas 2 the preset is msprobe, of a later one msprobe-26.
"""

import collections
import csv
import glob
import io
import os
import shutil
import subprocess
import sys
import tempfile

import pandas


def rows(text):
    return list(csv.reader(io.StringIO(text.lstrip("\ufeff"))))


def theirs(device, bench):
    from msprobe.pytorch.compare.pt_compare import pt_compare

    out = tempfile.mkdtemp()
    try:
        pt_compare({"npu_path": device, "bench_path": bench, "is_print_compare_log": False}, out, xlsx=False)
        with open(glob.glob(os.path.join(out, "*.csv"))[0], encoding="utf-8-sig") as f:
            return rows(f.read())
    finally:
        shutil.rmtree(out)


def ours(preset, device, bench):
    out = subprocess.run(["accdiff", "-p", preset, "--all", "-f", "csv", "-c", preset, device, bench],
                         capture_output=True, text=True)
    if out.returncode == 2:
        sys.exit(f"{device}: {out.stderr}")
    return rows(out.stdout)


def main(folder, pattern="*"):
    preset = "msprobe" if pandas.__version__.startswith("2.") else "msprobe-26"
    cells, other = collections.Counter(), collections.Counter()
    for place in sorted(os.path.dirname(p) for p in glob.glob(os.path.join(folder, pattern, "truth.json"))):
        steps = [sorted(glob.glob(os.path.join(place, side, "step*", "*", "dump.json"))) for side in ("device", "bench")]
        for device, bench in zip(*steps):
            a, b = theirs(device, bench), ours(preset, device, bench)
            if len(a) != len(b):
                print(f"{device}: {len(a)} rows, {len(b)} of accdiff")
                other["rows"] += 1
            for x, y in zip(a, b):
                cells.update(a[0])
                for title, p, q in zip(a[0], x, y):
                    if p != q:
                        other[title] += 1
                        if other[title] < 6:
                            print(f"= {device}: {x[0]}: {title}: {p!r}, {q!r} of accdiff")
    print(f"{preset}, pandas {pandas.__version__}: {cells.total() - other.total()} of {cells.total()} cells are equal")
    for title, n in other.most_common():
        print(f"    {title}: {n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
