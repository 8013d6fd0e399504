#!/usr/bin/env python3
"""What others take for the same files: peers.py DATA FOLDER [OPS [TENSORS [BYTES]]] prints a table in Markdown of
seconds, of CPU seconds of all processes, of memory, and of what each leaves out. DATA is build/bench/data, accdiff
is found by PATH; of torch, mindstudio-probe and polygraphy those that this Python has."""
import os
import resource
import statistics
import subprocess
import sys
import time

DATA, FOLDER = sys.argv[1:3]
OPS, TENSORS, BYTES = (int(x) for x in (sys.argv[3:] + ["2000", "64", "4000000"][len(sys.argv) - 3:]))
FIND = """
import glob, os, sys
a, b = (sorted(glob.glob(d + "/step0/rank0/dump_tensor_data/*")) for d in sys.argv[1:3])
"""
ASSERT = FIND + """
import torch
for x, y in zip(a, b):
    try:
        torch.testing.assert_close(torch.load(x), torch.load(y))
    except AssertionError:
        pass
"""
NUMPY = FIND + """
import numpy, torch
for x, y in zip(a, b):
    x, y = (torch.load(p).detach().numpy().astype("f8").ravel() for p in (x, y))
    d = abs(x - y)
    d.max(), (d / abs(y)).max(), x @ y / (x @ x) ** .5 / (y @ y) ** .5, (d ** 2).sum() ** .5, (d == 0).mean()
"""
POLYGRAPHY = FIND + """
import torch
from polygraphy.comparator import Comparator, CompareFunc, IterationResult, RunResults
from polygraphy.logger import G_LOGGER
G_LOGGER.module_severity = G_LOGGER.CRITICAL
name = os.path.basename
runs = RunResults([(n, [IterationResult({name(p): torch.load(p).detach().numpy() for p in paths})])
                   for n, paths in (("a", a), ("b", b))])
bool(Comparator.compare_accuracy(runs, compare_func=CompareFunc.simple(rtol=1.3e-6, atol=1e-5)))
"""
STATISTICS = """
import json, sys
def walk(x, at, out):
    if isinstance(x, dict) and "Max" in x:
        out[at] = [x[k] for k in ("Max", "Min", "Mean", "Norm")]
    elif isinstance(x, (dict, list)):
        for k, v in x.items() if isinstance(x, dict) else enumerate(x):
            walk(v, at + (k,), out)
a, b = {}, {}
for d, out in zip(sys.argv[1:3], (a, b)):
    walk(json.load(open(d + "/step0/rank0/dump.json"))["data"], (), out)
for k in a.keys() & b.keys():
    [(x - y, (x - y) / y if y else 0) for x, y in zip(a[k], b[k])]
"""
MSPROBE = """
import os, sys
from msprobe.pytorch.compare.pt_compare import pt_compare
a, b, out = sys.argv[1:4]
files = {"npu_path": a + "/step0/rank0/dump.json", "bench_path": b + "/step0/rank0/dump.json"}
stack = a + "/step0/rank0/stack.json"
pt_compare(dict(files, is_print_compare_log=False, **({"stack_path": stack} if os.path.exists(stack) else {})), out)
"""
a, b, out = (os.path.join(FOLDER, x) for x in ("a", "b", "out"))


def python(code, *more):
    return [sys.executable, "-c", code, a, b, *more]


def run(command):
    """Seconds, CPU seconds, MB of the largest process; None: it failed, or is not there."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(os.path.join(FOLDER, "said"), "w") as f:
        p = subprocess.Popen(command, stdout=f, stderr=f)
        _, status, used = os.wait4(p.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    right = (0, 1) if command[0] == "accdiff" else (0,)
    return (time.monotonic() - begun, cpu, used.ru_maxrss / 1024) if os.waitstatus_to_exitcode(status) in right else None


def table(what, ways, rounds):
    got = [[] for _ in ways]
    for _ in range(rounds):
        for i, (_, command, _) in enumerate(ways):
            subprocess.run(["rm", "-rf", out])
            os.mkdir(out)
            got[i].append(run(command))
    print("| %s | seconds | CPU seconds | x accdiff's CPU | MB | leaves out |\n|---|---|---|---|---|---|" % what)
    base = statistics.median(g[1] for g in got[0])
    for (name, _, less), g in zip(ways, got):
        if None in g:
            print("| %s | - | - | - | - | not installed, or failed |" % name)
            continue
        s, cpu, mb = (statistics.median(x[k] for x in g) for k in range(3))
        print("| %s | %.2f | %.2f | %.1f | %.0f | %s |" % (name, s, cpu, cpu / base, mb, less))
    print(flush=True)


def make(*words):
    subprocess.run(["rm", "-rf", a, b])
    subprocess.run([DATA, *words, FOLDER], check=True)


ROUNDS = int(os.environ.get("ROUNDS", "3"))
make("stats", str(OPS))
table("statistics of %d op calls, %d records a side" % (OPS, 5 * OPS), [
    ("accdiff", ["accdiff", a, b], "nothing: pairs, measures, judges"),
    ("msprobe compare", python(MSPROBE, out), "a verdict: a table of differences, coloured"),
    ("a script: json, four differences a tensor", python(STATISTICS), "other names, arguments, stacks, a verdict, a table"),
], ROUNDS)
make("pt", "f32", str(TENSORS), str(BYTES))
table("%d tensors of %d bytes, .pt" % (TENSORS, BYTES), [
    ("accdiff", ["accdiff", a, b], "nothing: 34 values a pair, checksums of the files, judges"),
    ("msprobe compare", python(MSPROBE, out), "a verdict: cosine, errors, a table; checksums"),
    ("torch.testing.assert_close", python(ASSERT), "all values but whether it is close: pairs by order alone"),
    ("Polygraphy's comparer", python(POLYGRAPHY), "all values but four and a verdict: one tolerance, equal names"),
    ("a script: numpy, five values", python(NUMPY), "29 values, checksums, names, a verdict"),
], ROUNDS)
