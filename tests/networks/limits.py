#!/usr/bin/python3
"""What each limit of the judge and of the audit is worth: what changes where it is half, or twice, as large.

    limits.py CASES [--only NAME,...] [--tried] [--times 0.5,2] [--jobs N]
    limits.py CASES --rules [--only ID,...] [--jobs N]      each rule of the judge, switched off

CASES: what `run FOLDER --make` left. A copy of the tree is built in a temporary folder, in which the environment may
multiply one limit. Cases are read, aligned and measured once; then accfirstbad alone (its limits), or accaudit on both
sides and what follows (its own), runs again with each limit. --tried: only limits whose source is experience. A line a
limit and factor: right cases accused, and faults named, more (+) or fewer (-) than with the limit as it is; `.`: the
same verdict in each case. `make` must have been run: files that it generates are taken as they are."""
import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLES = {"judge": ("lib/judge/limits.h", "JUDGE_LIMITS", "accfirstbad"),
          "replay": ("lib/replay/limits.h", "AUDIT_LIMITS", "accaudit")}
FIXED = "static const double LIMIT_##name = value;"
# Whole numbers that are no size of an array, and may be variables, too.
COUNTS = {"judge": "LOW_SHARE LEARN_TAIL LEARN_TAIL_STAT SUM_EVIDENCE".split(),
          "replay": "SLOPE_CALLS ROUGH_CALLS ROUGH_MAX_CALLS CAUSE_SHARE".split()}
MOVED = """#include <stdlib.h>
#include <string.h>
#include "%(header)s"
#undef LIMIT_DOUBLE
#define LIMIT_DOUBLE(name, value, what, source) double LIMIT_##name = value;
%(table)s(LIMIT_DOUBLE, LIMIT_NOTHING)
#undef LIMIT_DOUBLE
#define LIMIT_DOUBLE(name, value, what, source) \\
	if (strncmp(s, "%(side)s." #name "=", sizeof "%(side)s." #name) == 0) \\
		LIMIT_##name *= atof(s + sizeof "%(side)s." #name);
__attribute__((constructor)) static void
moved(void)
{
	const char *s = getenv("LIMIT");
	if (s == NULL)
		return;
	%(table)s(LIMIT_DOUBLE, LIMIT_NOTHING)
%(counts)s}
"""
COUNT = """	if (strncmp(s, "%(side)s.%(name)s=", sizeof "%(side)s.%(name)s") == 0)
		%(side)s_n_%(name)s = (int)(%(side)s_n_%(name)s * atof(s + sizeof "%(side)s.%(name)s"));
"""


def build(folder):
    """Programs whose limits the environment multiplies: LIMIT=judge.NAME=FACTOR."""
    tree = os.path.join(folder, "tree")
    leave = {os.path.join(ROOT, n) for n in (".git", "bin", "build", "build-san", "tests/data")}
    shutil.copytree(ROOT, tree, symlinks=True,
                    ignore=lambda where, found: [n for n in found if os.path.join(where, n) in leave])
    for side, (header, table, _) in TABLES.items():
        path = os.path.join(tree, header)
        with open(path) as f:
            text = f.read()
        if FIXED not in text:
            sys.exit(f"limits.py: {header}: no line '{FIXED}'")
        # Both tables have some names: each has symbols of its own.
        value = {n: re.search(rf"\bN\({n}, (\d+),", text).group(1) for n in COUNTS[side]}
        with open(path, "w") as f:
            f.write(text.replace(FIXED, f'extern double LIMIT_##name __asm__("{side}_" #name);').replace("#endif", "".join(
                f"extern int {side}_n_{n};\n#define LIMIT_{n} {side}_n_{n}\n" for n in value) + "#endif"))
        with open(os.path.join(tree, f"lib/base/limits_{side}.c"), "w") as f:
            f.write(MOVED % {"header": header[len("lib/"):], "table": table, "side": side,
                             "counts": "".join(COUNT % {"side": side, "name": n} for n in value)})
            f.writelines(f"int {side}_n_{n} = {v};\n" for n, v in value.items())
    subprocess.run(["make", "-s", "-C", tree, "-j2", *(f"bin/{p}" for p in (
        "accdump-read", "accalign", "accmetric", "accfirstbad", "accaudit", "accfmt", "accdiff", "accfold"))], check=True)
    return os.path.join(tree, "bin")


def names(bin_, tried):
    """(side, NAME as in C) of each limit that may be moved: those that are no size of an array."""
    for side, (header, _, program) in TABLES.items():
        with open(os.path.join(ROOT, header)) as f:
            doubles = {n.lower().replace("_", "-"): n
                       for n in re.findall(r"\bX\(([A-Z0-9_]+),", f.read()) + COUNTS[side]}
        shown = subprocess.run([os.path.join(bin_, program), "--limits"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        for line in shown.splitlines():
            name = line.split()[0]
            if name in doubles and (not tried or "experience" in line):
                yield side, doubles[name]


def shell(command, **environment):
    q = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       env={**os.environ, **environment})
    return q.stdout if q.returncode in (0, 1) else "ERROR"


def prepare(job):
    """The streams of a case: both sides as read, and the pairs as measured, with the audit and without."""
    case, into = job
    c, i = f"'{case}'", f"'{into}'"
    os.makedirs(into)
    shell(f"accdump-read {c}/device >{i}/d; accdump-read {c}/bench >{i}/b; "
          f"accalign {i}/d {i}/b | accmetric >{i}/plain; accaudit <{i}/d >{i}/da; accaudit <{i}/b >{i}/ba; "
          f"accalign {i}/da {i}/ba | accmetric >{i}/audit")
    with open(os.path.join(case, "truth.json")) as f:
        t = json.load(f)
    return into, t["clean"] or t.get("tie", False), t.get("op"), t["task"] == "statistics"


def named(out):
    for line in out.splitlines():
        if '"culprit"' in line and json.loads(line).get("what") == "culprit":
            return json.loads(line).get("name", "?")
    return "ERROR" if out == "ERROR" else "-"


def verdicts(job):
    """What is named in a case, plain and audited, with one limit moved."""
    (into, _, _, statistics), limit = job
    i, end = f"'{into}'", "accfirstbad | accfmt --json"
    if limit.startswith("rule."):
        end = end.replace("accfirstbad", f"accfirstbad --no-rule={limit[len('rule.'):]}")
        limit = ""
    if limit.startswith("replay."):
        if statistics:
            return ["-", "-"]   # there is nothing to audit
        # Of the two tables one limit moves, in all programs that know it.
        return ["-", named(shell(f"accaudit <{i}/b >{i}/t$$; accaudit <{i}/d | accalign - {i}/t$$ | accmetric | {end}; "
                                 f"rc=$?; rm {i}/t$$; exit $rc", LIMIT=limit))]
    return [named(shell(f"{end.replace(' | accfmt', f' {i}/{kind} | accfmt')}", LIMIT=limit))
            for kind in (["plain"] if statistics else ["plain", "audit"])]


def compare(cases, base, now):
    accused = found = changed = 0
    for (_, right, op, _), was, is_ in zip(cases, base, now):
        changed += was != is_
        for w, n in zip(was, is_):
            if right:
                accused += (n != "-") - (w != "-")
            else:
                found += (n == op) - (w == op)
    return "." if changed == 0 else f"{accused:+d} right accused, {found:+d} faults named, {changed} cases"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases")
    p.add_argument("--only")
    p.add_argument("--tried", action="store_true")
    p.add_argument("--rules", action="store_true")
    p.add_argument("--times", default="0.5,2")
    p.add_argument("--jobs", type=int, default=2)
    o = p.parse_args()
    found = sorted(d for d, _, files in os.walk(o.cases) if "truth.json" in files)
    with tempfile.TemporaryDirectory() as folder:
        bin_ = build(folder)
        os.environ["PATH"] = bin_ + ":" + os.environ["PATH"]
        with multiprocessing.get_context("fork").Pool(o.jobs) as pool:
            cases = pool.map(prepare, [(c, os.path.join(folder, "s", str(i))) for i, c in enumerate(found)])
            base = {side: pool.map(verdicts, [(c, side + ".") for c in cases], 4) for side in TABLES}
            faults = [c for c in cases if not c[1]]
            right = len(cases) - len(faults)
            print(f"{right} right cases, {len(faults)} with a fault, each plain and audited", flush=True)
            with open(os.path.join(ROOT, "lib/judge/witness.h")) as f:
                rules = re.findall(r"\tWITNESS\(([a-z_]+),", f.read())
            for name in rules:
                if o.rules and (not o.only or name in o.only.split(",")):
                    now = pool.map(verdicts, [(c, f"rule.{name}") for c in cases], 4)
                    print(f"{name}\t{compare(cases, base['judge'], now)}", flush=True)
            for side, name in [] if o.rules else names(bin_, o.tried):
                if o.only and name not in o.only.split(","):
                    continue
                for times in o.times.split(","):
                    now = pool.map(verdicts, [(c, f"{side}.{name}={times}") for c in cases], 4)
                    print(f"{side}.{name}\t{times}\t{compare(cases, base[side], now)}", flush=True)


if __name__ == "__main__":
    main()
