#!/usr/bin/env python3
"""What each witness, rule and limit wins and costs, over cases whose answer is known.

    worth.py OUT CASES... --rules            each witness of the judge, and each rule over ranks that speaks, switched off
    worth.py OUT CASES... --limits [--tried] each limit half, and twice as large; --tried: those set by experience alone
    worth.py --table OUT...                  the tables of what these files hold, as tests/RESULTS.md has them

CASES: folders of tests/programs/make.py (truth.json beside device and bench), of tests/data/make_regress.py and
tests/data/regress (cases.tsv), tests/torch/planted --keep (device, bench), tests/torch/sweep (calls.json: right kernels),
and fixtures, whose answer counts as right as it is: pairs of tests/data/judge and tests/data/unlike, op calls of
tests/data/replay*. --sample N: of each folder, every n-th case. --jobs N.

What comes before the judge runs once: accdiff, with a judge that keeps what it is given, and then the judge alone with
each switch. A limit of accaudit moves where the judge recomputes, and in streams of one side, which accaudit reads again.
A copy of the tree is built in a temporary folder, in which the environment multiplies a limit (../networks/limits.py).

A line of JSON in OUT for each case and switch whose answer is another one."""
import argparse
import gzip
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "programs"), os.path.join(ROOT, "tests", "networks")]
import limits  # noqa: E402
import score  # noqa: E402

# Records of one side, of which accaudit alone is asked.
ALONE = ("sweep", "audited")
KEEP = """#!/bin/sh
f=$(mktemp "$KEPT/XXXXXX")
cat >"$f"
for a in "$@"; do printf '%s\\0' "$a"; done >"$f.args"
exec "$JUDGE" "$@" <"$f"
"""


class Case:
    """Kind: what its answer is compared with; what: the name for the table; stream: what the judge is given."""

    def __init__(self, kind, what, truth, stream, args=()):
        self.kind, self.what, self.truth, self.stream, self.args = kind, what, truth, stream, list(args)


def kept(bin_, folder, device, bench):
    """(stream, arguments) of the last judge that accdiff asks."""
    programs = os.path.join(folder, "bin")
    if os.path.exists(folder):
        return last_kept(folder)
    os.makedirs(programs)
    for name in os.listdir(bin_):
        if name != "accfirstbad":
            os.symlink(os.path.join(bin_, name), os.path.join(programs, name))
    with open(os.path.join(programs, "accfirstbad"), "w") as f:
        f.write(KEEP)
    os.chmod(f.name, 0o755)
    # accdiff is found by its own name, and so are the programs beside it.
    os.unlink(os.path.join(programs, "accdiff"))
    os.link(os.path.realpath(os.path.join(bin_, "accdiff")), os.path.join(programs, "accdiff"))
    subprocess.run([os.path.join(programs, "accdiff"), "-f", "json", device, bench], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False,
                   env={**os.environ, "KEPT": folder, "JUDGE": os.path.join(bin_, "accfirstbad")})
    return last_kept(folder)


def last_kept(folder):
    """The same of a folder that was kept."""
    found = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".args")]
    if not found:
        return None
    last = max(found, key=os.path.getmtime)
    with open(last) as f:
        return last[:-len(".args")], f.read().split("\0")[:-1]


def prepared(job):
    """A case whose pipeline ran up to the judge; None: it did not come that far."""
    bin_, into, kind, what, truth, where = job
    if kind in ("fixture", "measured", "sweep", "audited"):
        stream = os.path.join(into, "stream")
        os.makedirs(into, exist_ok=True)
        if kind == "sweep":
            subprocess.run(f"{bin_}/accdump-read '{where}' >'{stream}'", shell=True, check=False)
        else:
            with (gzip.open if where.endswith(".gz") else open)(where, "rb") as f, open(stream, "wb") as g:
                g.write(f.read())
        return Case("regress" if kind == "measured" else kind, what, truth, stream)
    got = kept(bin_, into, os.path.join(where, "device"), os.path.join(where, "bench"))
    return got and Case(kind, what, truth, *got)


def listed(paths, sample):
    """(kind, name, truth, place) of each case."""
    for path in paths:
        here = []
        path = os.path.abspath(path)
        if os.path.exists(path + "/cases.tsv"):
            with open(path + "/cases.tsv") as f:
                for name, _, _, _, want, others in (line.rstrip("\n").split("\t") for line in f):
                    there = os.path.isdir(f"{path}/{name}")
                    here.append(("regress" if there else "measured", name, [want, *others.split()],
                                 f"{path}/{name}" if there else f"{path}/{name}.acc.gz"))
        elif os.path.exists(path + "/calls.json"):
            here.append(("sweep", os.path.basename(path), None, path))
        else:
            for d, _, files in sorted(os.walk(path)):
                if "truth.json" in files:
                    with open(d + "/truth.json") as f:
                        t = json.load(f)
                    here.append(("programs", os.path.relpath(d, path), t, d))
                elif os.path.isdir(d + "/device") and os.path.isdir(d + "/bench"):
                    here.append(("planted", os.path.relpath(d, path), None, d))
                here += [("fixture", os.path.basename(f), None, os.path.join(d, f)) for f in sorted(files)
                         if re.search(r"/judge/[^/]*\.acc$|-pairs\.acc\.gz$", os.path.join(d, f))]
                here += [("audited", os.path.basename(f), None, os.path.join(d, f)) for f in sorted(files)
                         if re.search(r"/replay\w*/[^/]*\.acc\.gz$", os.path.join(d, f))]
        step = max(1, len(here) // sample) if sample else 1
        yield from here[::step]


def answer(bin_, case, switch, before=None):
    """What is said: [verdict, what decides, checksum]. A switch is rule.ID, SIDE.LIMIT=FACTOR, or ''; before: the
    answer without it, which is this one where the streams are the same."""
    off = [f"--no-rule={switch[5:]}"] if switch.startswith("rule.") else []
    env = {**os.environ, "LIMIT": "" if off else switch}
    with open(case.stream, "rb") as f:
        if case.kind in ALONE:
            q = subprocess.run([f"{bin_}/accaudit", "-j1"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        else:
            q = subprocess.run([f"{bin_}/accfirstbad", *off, *case.args], stdin=f, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=env)
    sum_ = f"{q.returncode} {zlib.crc32(q.stdout)}"
    if before is not None and before[2] == sum_:
        return before
    return [*verdict(bin_, case, q), sum_]


def verdict(bin_, case, q):
    """What is said, and by which witness."""
    said = subprocess.run([f"{bin_}/accfmt", "--json"], input=q.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    records = [json.loads(line) for line in said.stdout.splitlines()]
    if case.kind in ALONE:
        return ["calls", sorted(r["name"] + f" {r.get('step')}" for r in records if r.get("audit.ok") is False)]
    found = [r for r in records if r["kind"] == "finding" and r.get("rule") != "rules"]   # which says what is off
    accused = [r for r in found if r["what"] in score.ACCUSE and (r["what"] != "missing" or r.get("rule") == "reduction")]
    by = accused[0].get("witness", accused[0].get("rule", "")) if accused else ""
    if case.kind == "programs":
        return [score.judge(case.truth, q.returncode, accused[:1]), by]
    first = accused[0].get("name", "?") if accused else "-"
    if case.kind == "regress":
        first = next((r["name"] for r in found if r["what"] == "culprit"), "-")
        clean = case.truth[0] == "-"
        return [("clean" if first == "-" else "accused") if clean else
                "named" if first in case.truth else "silent" if first == "-" else "elsewhere", by]
    if case.kind == "planted":
        return [first, by]
    return [first + "; " + ", ".join(sorted({r["what"] for r in found})), by]


def asked(job):
    try:
        return answer(*job)
    except (OSError, ValueError, KeyError) as e:
        return ["failed", str(e), ""]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("cases", nargs="*")
    p.add_argument("--rules", action="store_true")
    p.add_argument("--limits", action="store_true")
    p.add_argument("--tried", action="store_true")
    p.add_argument("--only")
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--times", default="0.5,2")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--kept", help="a folder in which what the judge is given stays, and is taken from")
    p.add_argument("--bin", help="programs of an earlier run, instead of a build: what limits.py made")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bin_ = o.bin or limits.build(folder)
        store = o.kept or os.path.join(folder, "s")
        jobs = [(bin_, os.path.join(store, re.sub(r"\W", "_", c[3])), *c) for c in listed(o.cases, o.sample)]
        with multiprocessing.get_context("fork").Pool(o.jobs) as pool, open(o.out, "a") as f:
            cases = [c for c in pool.imap(prepared, jobs) if c]
            print(f"{len(cases)} cases of {len(jobs)}", flush=True)
            base = pool.map(asked, [(bin_, c, "") for c in cases], 1)
            for c, b in zip(cases, base):
                print(json.dumps({"case": c.what, "kind": c.kind, "was": b}), file=f, flush=True)
            switches = []
            if o.rules:
                with open(os.path.join(ROOT, "lib/judge/witness.h")) as h:
                    switches += ["rule." + n for n in re.findall(r"\tWITNESS\(([a-z_]+),", h.read())]
            if o.limits:
                switches += [f"{side}.{name}={t}" for side, name in limits.names(bin_, o.tried) for t in o.times.split(",")]
            for switch in switches:
                if o.only and re.sub(r"^\w+\.|=.*", "", switch) not in o.only.split(","):
                    continue
                # Rules of one dump alone have no witness; a limit of the judge does not move in accaudit.
                those = [i for i, c in enumerate(cases) if c.kind not in ALONE or switch.startswith("replay.")]
                now = pool.map(asked, [(bin_, cases[i], switch, base[i]) for i in those], 8)
                n = 0
                for i, a in zip(those, now):
                    if a[0] != base[i][0] or (cases[i].kind in ALONE and a[1] != base[i][1]):
                        n += 1
                        print(json.dumps({"switch": switch, "case": cases[i].what, "kind": cases[i].kind, "was": base[i],
                                          "is": a}), file=f, flush=True)
                print(json.dumps({"switch": switch, "asked": len(those)}), file=f, flush=True)
                print(switch, n, flush=True)


GOOD = {"clean", "named", "near"}


def change(c):
    """What became of an answer, in words; of many kernels how many."""
    was, is_ = c["was"], c["is"]
    if c["kind"] in ALONE:
        return {"accused anew": len(set(is_[1]) - set(was[1])), "no longer accused": len(set(was[1]) - set(is_[1]))}
    if c["kind"] in ("programs", "regress"):
        if was[0] in ("clean", "accused", "declined"):
            return {"right ones " + ("accused" if is_[0] == "accused" else "declined" if is_[0] == "declined" else "spared"): 1}
        return {"faults " + ("lost" if was[0] in GOOD and is_[0] not in GOOD else
                             "won" if was[0] not in GOOD and is_[0] in GOOD else "said otherwise"): 1}
    # Of fixtures and planted faults the first that is accused, and whether there is a warning.
    (named, _, kinds), (now, _, kinds_now) = was[0].partition("; "), is_[0].partition("; ")
    if named == "-" and now != "-":
        return {"accused anew": 1}
    if named != "-" and now == "-":
        return {"no longer accused": 1}
    if named != now:
        return {"another accused": 1}
    if ("warning" in kinds) != ("warning" in kinds_now):
        return {"doubted anew" if "warning" in kinds_now else "no longer doubted": 1}
    return {"told otherwise": 1}


def row(changes):
    """Of all cases: right ones accused, faults lost and won, and what of fixtures is told otherwise."""
    n = defaultdict(int)
    for c in changes:
        for what, k in change(c).items():
            n[what] += k
    return ", ".join(f"{k} {v}" for k, v in sorted(n.items()) if v) or "nothing"


def table(files):
    by, order, of = defaultdict(list), [], defaultdict(int)
    for line in (json.loads(x) for f in files for x in open(f)):
        if "switch" in line and "is" in line:
            by[line["switch"]].append(line)
        elif "switch" in line:
            order.append(line["switch"])
        else:
            of[line["kind"], line["was"][0] if line["kind"] in ("programs", "regress") else ""] += 1
    print("; ".join(f"{k} {v} {n}".replace("  ", " ") for (k, v), n in sorted(of.items())))
    rules = [s for s in dict.fromkeys(order) if s.startswith("rule.")]
    if rules:
        print("\n| without | what is another answer |\n|---|---|")
    for switch in rules:
        print(f"| {switch[len('rule.'):]} | {row(by[switch])} |")
    moved = list(dict.fromkeys(s.partition("=")[0] for s in order if "=" in s))
    times = list(dict.fromkeys(s.partition("=")[2] for s in order if "=" in s))
    if moved:
        print(f"\n| limit | {' | '.join('times ' + t for t in times)} |\n|---" + "|---" * len(times) + "|")
    for limit in moved:
        side, _, name = limit.partition(".")
        print(f"| {name.lower().replace('_', '-')}{' (accaudit)' if side == 'replay' else ''} | "
              f"{' | '.join(row(by[f'{limit}={t}']) for t in times)} |")


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        table(sys.argv[2:])
    else:
        main()
