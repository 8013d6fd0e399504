#!/usr/bin/python3
"""What accdiff makes of the cases of make.py: score.py FOLDER [--jobs N] [--show]

Of the pairs: precision (of those made, how many are right) and recall (of the tensors that both
sides have as input or output of the same step, how many are paired).
Of the verdicts: how many clean pairs are accused, how many faults are named."""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROLE = {"in": "in", "kw": "in", "param": "in", "out": "out"}


def truth_of(side, r, p):
    key = "%s|%s|%s" % (r.get(p + "key"), r.get(p + "io"), r.get(p + "pos"))
    t = side.get(key)
    return None if t is None else (t[0], ROLE[r[p + "io"]], t[1])


def score(path, show):
    with open(os.path.join(path, "truth.json")) as f:
        t = json.load(f)
    q = subprocess.run([os.path.join(HERE, "..", "..", "bin", "accdiff"), "--all", "-f", "json", os.path.join(path, "device"),
                        os.path.join(path, "bench")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    right = made = found = 0
    paired, culprit, wrong = set(), None, []
    whole = t["torch"]
    other = "bench" if whole == "device" else "device"
    classes = {}
    for name, side in ((whole, t[whole]), (other, t[other])):
        for k, v in side.items():
            classes.setdefault(name, set()).add((v[0], ROLE[k.split("|")[1]], v[1]))
    for line in q.stdout.splitlines():
        r = json.loads(line)
        if r.get("kind") == "finding" and r.get("what") == "culprit" and culprit is None:
            culprit = r
        if r.get("kind") != "pair" or r.get("a.kind") != "tensor" or r.get("b.kind") != "tensor":
            continue
        a, b = truth_of(t["device"], r, "a."), truth_of(t["bench"], r, "b.")
        made += 1
        if a is not None and a == b:
            right += 1
            paired.add(a)
        else:
            wrong.append("%s %s %s <> %s %s %s  %s %s" % (r["a.key"], r["a.io"], r["a.pos"], r["b.key"],
                                                      r["b.io"], r["b.pos"], a, b))
    due = classes[whole] & classes[other]
    missed = [k for k, v in t[whole].items() if (v[0], ROLE[k.split("|")[1]], v[1]) in due - paired]
    found, due = len(due & paired), len(due)
    name = culprit["name"] if culprit else None
    ok = q.returncode == (1 if t["fault"] else 0) and (name in t["names"] if t["fault"] else culprit is None)
    if show:
        for w in wrong:
            print("   wrong", w)
        for m in missed:
            print("   missed", m)
    return os.path.basename(path), t, right, made, found, due, ok, q.returncode, name, \
        culprit["text"] if culprit else q.stderr.strip()[-300:], (len(wrong), len(missed))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--show", action="store_true", help="the pairs that are wrong or missing")
    a = p.parse_args()
    cases = sorted(d for d in os.listdir(a.folder) if os.path.exists(os.path.join(a.folder, d, "truth.json")))
    if not cases and os.path.exists(os.path.join(a.folder, "truth.json")):
        a.folder, cases = os.path.dirname(os.path.abspath(a.folder)), [os.path.basename(a.folder)]
    sums = collections.defaultdict(lambda: [0] * 8)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for x in pool.map(lambda d: score(os.path.join(a.folder, d), a.show), cases):
            name, t, right, made, found, due, ok, status, got, text, n = x
            if not ok or right < made or found < due:
                print("%s  precision %.3f recall %.3f  %s %s" % (
                    name, right / max(made, 1), found / max(due, 1), "" if ok else "WRONG", "" if ok else
                    "status %d, %s; want %s" % (status, text, t["names"])), flush=True)
            for key in ("all", t["net"], t["level"], t["data"], t["noise"], "clean" if not t["fault"] else "faulty"):
                s = sums[key]
                for i, v in enumerate((right, made, found, due)):
                    s[i] += v
                s[6 if t["fault"] else 4] += not ok if not t["fault"] else ok
                s[7 if t["fault"] else 5] += 1
    for key, s in sums.items():
        print("%-10s precision %.4f  recall %.4f  clean accused %d/%d  faults named %d/%d" % (
            key, s[0] / max(s[1], 1), s[2] / max(s[3], 1), *s[4:]))


if __name__ == "__main__":
    main()
