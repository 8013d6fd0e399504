#!/usr/bin/env python3
"""What each rule over ranks is worth, and what is lost without it. BIN holds the programs.

Usage: without.py OUT kept                      the cases of selfcheck.bats; needs nothing else
       without.py OUT MAKER=FOLDER...             runs of MAKER.py
       without.py OUT parallel=FOLDER...          runs of ../parallel/make.py
       without.py --table OUT...                  the table of what these files hold

Writes into OUT a line of JSON for each case: what was said, and what was said with each of these rules switched off. An
accusation is right where it names an op call and a rank of the maker's table (score.py), or one where the fault enters
(../parallel/rules.py); a run without a fault is never accused rightly. What is kept taught, and is not counted among the sets."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin"))
DATA = os.path.join(HERE, "..", "data")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "parallel")]
import score as own  # noqa: E402

Verdict = list[dict[str, object]]


def said(run: str, options: str = "", off: str = "") -> Verdict:
    """Culprits, and doubts of ranks, of a run; a rule switched off."""
    read = f"cat '{run}'" if run.endswith(".gz") else f"'{BIN}/accdump-read' {options} '{run}'"
    p = subprocess.run(f"{read} | '{BIN}/accaudit' -j1 {'--no-rule=' + off if off else ''} | '{BIN}/accfirstbad' |"
                       f" '{BIN}/accfmt' --json", shell=True, capture_output=True, text=True)
    found = [json.loads(line) for line in p.stdout.splitlines()]
    return [{"rule": f.get("audit.rule", ""), "name": f["name"], "step": f.get("step"), "rank": f.get("rank"),
             "place": "".join(re.findall(r"; at (\S+:\d+) in ", f["text"])[:1]), "doubt": f["what"] == "warning"}
            for f in found
            if f.get("kind") == "finding" and (f["what"] in ("culprit", "overflow") and "; no harm: " not in f["text"] or
                                               f["what"] == "warning" and f["rule"] == "design")]


def verdict(found: Verdict, truth: list[str] | None) -> str:
    """Of the first that is accused; truth: name, step and rank, each a pattern, None: a right run."""
    bad = [f for f in found if not f["doubt"]]
    if not bad:
        return "doubt" if found else "nothing"
    return "right" if truth is not None and at(bad[0], truth) else "elsewhere"


def at(f: dict[str, object], truth: list[str]) -> bool:
    return any(re.search(truth[0], n) for n in [*own.spellings(f["name"]), f["place"]]) and \
        re.search(truth[1], str(f["step"])) is not None and re.search(truth[2], str(f["rank"])) is not None


def measured(case: list[object]) -> dict[str, object]:
    """All that is said of a case, with each rule that speaks, and without."""
    which, name, run, options, truth = case
    found = said(run, options)
    out = {"set": which, "case": name, "fault": truth is not None, "verdict": verdict(found, truth), "off": {},
           "said": [[f["rule"], f["name"], f["place"], f["doubt"], truth is not None and at(f, truth)] for f in found]}
    for rule in sorted({f["rule"] for f in found if f["rule"]}):
        without = said(run, options, rule)
        out["off"][rule] = [verdict(without, truth), *sorted({f["rule"] for f in without if f["rule"]})]
    return out


def kept(folder: str) -> list[list[object]]:
    """The cases that selfcheck.bats asks, with what it wants."""
    for tar in re.findall(r'-xzf "\$DATA/(\w+\.tar\.gz)"', open(f"{HERE}/../selfcheck.bats").read()):
        subprocess.run(["tar", "-C", folder, "-xzf", os.path.join(DATA, tar)], check=True)
    text, cases = open(f"{HERE}/../selfcheck.bats").read(), []
    for how, what in re.findall(r"^\t(named|alone|doubted|right) (.*(?:\\\n.*)*)", text, re.M):
        what = what.replace("\\\n", " ").replace('"$DATA/', DATA + "/").replace('.gz"', ".gz")
        words = re.match(r'("[^"]*"|\S+)\s+(\S+)\s*(\d?)\s*(\d?)', what)
        if how == "right":
            cases += [["kept", os.path.basename(w), w if w[0] == "/" else os.path.join(folder, w), "", None]
                      for w in what.split()]
            continue
        run, options = words[1].strip('"'), ""
        if run.startswith("-s "):
            options, run = "-s " + run.split()[1], run.split()[2]
        step, rank = (words[3], words[4]) if how == "named" else ("", "") if how == "alone" else ("", words[3])
        path = run if run[0] == "/" else f"{DATA}/collective/{run}.acc.gz" if how == "alone" else os.path.join(folder, run)
        cases.append(["kept", os.path.basename(run), path, options,
                      ["^" + re.escape(words[2]) + "$", f"^{step}$" if step else "", f"^{rank}$" if rank else ""]])
    return cases


def of_maker(maker: str, folder: str) -> list[list[object]]:
    table, cases = own.faults(maker + ".py"), []
    for case in sorted(os.listdir(folder)):
        fault = next((m for m in case.split("-")[1:] if m in table), None)
        truth = None
        if fault is not None:
            step, _, op = table[fault][1].rpartition(":")
            truth = [op, f"^{step[4:]}$" if step else "", f"^[{table[fault][2]}]$"]
        cases.append([maker, case, os.path.join(folder, case), "", truth])
    return cases


def of_parallel(folder: str) -> list[list[object]]:
    import rules  # ../parallel
    cases: list[list[object]] = []
    for case in sorted(os.listdir(folder)):
        run, twin = os.path.join(folder, case), os.path.join(folder, rules.FAULT.sub("", case))
        if os.path.isdir(os.path.join(run, "step0", "rank1")) and os.path.isdir(twin):
            names = "|".join(map(re.escape, sorted(rules.enters(twin, run)))) if twin != run else ""
            cases.append(["parallel", case, run, "", [f"^({names})$", "", ""] if twin != run else None])
    return cases


def collect(out: str, words: list[str]) -> None:
    import tempfile
    with tempfile.TemporaryDirectory() as d, open(out, "a") as f, concurrent.futures.ThreadPoolExecutor(2) as pool:
        cases = []
        for word in words:
            maker, _, folder = word.partition("=")
            cases += kept(d) if word == "kept" else of_parallel(folder) if maker == "parallel" else of_maker(maker, folder)
        for line in pool.map(measured, cases):
            print(json.dumps(line), file=f, flush=True)


def taught() -> set[tuple[str, str]]:
    """Maker and case of the recordings that are kept, as the head of selfcheck.bats says."""
    head = open(f"{HERE}/../selfcheck.bats").read().partition("setup_file()")[0]
    head = re.sub(r"\\\n#\s*", " ", head)
    return {(maker, case) for maker, words in
            re.findall(r"tests/selfcheck/(\w+)\.py (?:OUT|torch2) (.*?)(?:\n|;|--task|--small|$)", head)
            for case in words.split() if not case.startswith("-") and case != "torch2"}


def share(cases: list[dict], rule: str) -> tuple[int, int]:
    """Accusations that were right, and all."""
    told = [s[-1] for c in cases for s in c["said"] if s[0] == rule and not s[-2]]
    return sum(told), len(told)


def without(cases: list[dict], rule: str, same: bool) -> int:
    """Faults that the rule speaks of rightly, and that are named as well, or are not, where it is off."""
    return sum(c["fault"] and (c["off"][rule][0] == c["verdict"]) == same for c in cases if rule in c["off"] and
               any(s[0] == rule and s[-1] for s in c["said"]))


def table(files: list[str]) -> None:
    """What rules are worth in cases that did not teach, and what is lost without them."""
    cases, known = [json.loads(line) for f in files for line in open(f)], taught()
    old = [c for c in cases if c["set"] == "kept"]
    new, layouts = ([c for c in cases if c["set"] == name] for name in ("worth", "parallel"))
    sets = [c for c in cases if c["set"] not in ("kept", "worth", "parallel") and (c["set"], c["case"]) not in known]
    spoke = sorted({rule for c in cases for rule in c["off"]})
    rows = []
    for rule in spoke:
        parts = [share(part, rule) for part in (sets, new, layouts)]
        right, of = (sum(p[k] for p in parts[1:]) for k in (0, 1))
        rows.append((-of, rule, [f"{r} of {n}" if n else "" for r, n in parts], right, of))
    print("| rule | other sets | new networks | layouts | right | of |\n|---|---|---|---|---|---|")
    for _, rule, parts, right, of in sorted(rows):
        print(f"| {rule} | {' | '.join(parts)} | {right} | {of} |")
    print("\n| rule | kept cases lost | other cases lost | said by another as well |\n|---|---|---|---|")
    for rule in spoke:
        print(f"| `{rule}` | {without(old, rule, False)} | {without(sets + new, rule, False)} |"
              f" {without(sets + new, rule, True)} |")
    for name, part in (("new networks", new), ("other sets", sets), ("layouts", layouts)):
        count = Counter((c["fault"], c["verdict"]) for c in part)
        print(f"{name}: " + ", ".join(f"{'faults' if f else 'right runs'} {v}: {n}" for (f, v), n in sorted(count.items())))


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        table(sys.argv[2:])
    else:
        collect(sys.argv[1], sys.argv[2:])
