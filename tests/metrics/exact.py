#!/usr/bin/env python3
"""Compares accmetric with exact arithmetic over random tensors.     needs python3-numpy

Usage: exact.py [PAIRS [SEED]]     10,000 pairs by default; BIN is the folder of the programs

Shapes up to six axes (some empty, some of one element), all dtypes of .npy, in C or Fortran order,
some cut out with steps, with NaN, infinities, zeros, -0, subnormal and largest numbers. Sums are
exact (math.fsum), so that only accmetric rounds. Ends with "N passed, N failed".
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

BIN = os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bin"))
FLOATS = [np.float16, np.float32, np.float64]
DTYPES = FLOATS * 3 + [np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
ROUND = 2048   # pairs at a time


def shape(r):
    n = int(r.integers(0, 7))
    s = [int(r.choice([0, 1, 1, 2, 3, 5, 7, 8, 16, 17, 33])) if r.random() < .9 else 65
         for _ in range(n)]
    if r.random() < .8:
        s = [x or 2 for x in s]
    while math.prod(x or 1 for x in s) > 20000:
        s[int(np.argmax(s))] = 2
    return tuple(s)


def fill(r, s, dtype):
    if dtype == np.bool_:
        return r.random(s) < .5
    if np.issubdtype(dtype, np.integer):
        i = np.iinfo(dtype)
        wide = min(i.max, 1 << int(r.integers(1, 63)))
        return r.integers(max(i.min, -wide), wide, s, dtype, endpoint=True)
    scale = np.exp(r.normal(0, 3))
    if dtype == np.float64 and r.random() < .4:
        scale *= 10.0 ** r.uniform(-315, 306)
    x = (r.normal(0, 1, s) * scale).astype(dtype)
    if r.random() < .4 and x.size:
        i = np.finfo(dtype)
        odd = [np.nan, np.inf, -np.inf, 0, -0.0, i.max, -i.max, i.tiny, i.tiny * i.eps]
        flat = np.atleast_1d(x).reshape(-1).copy()
        for at in r.integers(0, x.size, int(r.integers(1, 6))):
            flat[at] = dtype(odd[int(r.integers(len(odd)))])
        x = flat.reshape(s)
    return x


def near(r, a):
    """Another run of a: mostly a little off, sometimes equal, sometimes something else."""
    how = r.random()
    if how < .15:
        return a.copy()
    if how < .25 or a.dtype == np.bool_:
        return fill(r, a.shape, a.dtype.type)
    with np.errstate(all="ignore"):
        if np.issubdtype(a.dtype, np.integer):
            return np.where(r.random(a.shape) < .3, a ^ 1, a).astype(a.dtype)
        b = (a.astype(np.float64) * (1 + 10.0 ** r.uniform(-8, -1) * r.normal(0, 1, a.shape)))
        return b.astype(a.dtype if r.random() < .8 else FLOATS[int(r.integers(3))])


def laid(r, x):
    """The same values, otherwise in memory."""
    if x.ndim and r.random() < .3:
        x = np.asfortranarray(x)
    return x


def root(values):
    """The largest, and sum v^2 by its square, without overflow."""
    top = float(max((abs(v) for v in values), default=0.0))
    return (top, math.fsum((v / top) ** 2 for v in values)) if top > 0 else (0.0, 0.0)


def mean(values):
    """That, and that of the sizes, without overflow."""
    top, n = float(max(map(abs, values), default=0.0)) or 1.0, len(values) or 1
    return [top * (math.fsum(v) / n) for v in ([v / top for v in values], [abs(v) / top for v in values])]


def single(x):
    f = [v if isinstance(v, int) else float(v) for v in x.reshape(-1).tolist()]
    fin = [v for v in f if math.isfinite(v)]
    out = {"nan": sum(map(math.isnan, f)), "posinf": f.count(math.inf),
           "neginf": f.count(-math.inf), "zero": f.count(0.0)}
    if len(fin) == len(f):
        out |= {"min": float(min(f)), "max": float(max(f))}
        top, squares = root(f)
        out["mean"], out["size"] = mean(f)
        out["norm"] = top * math.sqrt(squares)
    return out


def pair(a, b):
    fa, fb = ([v if isinstance(v, int) else float(v) for v in x.reshape(-1).tolist()]
              for x in (a, b))
    used = [(x, y) for x, y in zip(fa, fb) if math.isfinite(x) and math.isfinite(y)]
    odd = sum(1 for x, y in zip(fa, fb)
              if not (math.isfinite(x) and math.isfinite(y)) and not (x == y or x != x and y != y))
    d = [x - y for x, y in used]
    n, (top, dd) = len(used), root(d)
    out = {"nonfinite": odd, "max_abs": top}
    (ta, aa), (tb, bb) = root([x for x, _ in used]), root([y for _, y in used])
    if not math.isinf(top):
        out |= {"euclid": top * math.sqrt(dd), "mean_abs": mean(d)[1], "rmse": top * math.sqrt(dd / max(n, 1))}
        if tb > 0:
            out["rel_l2"] = top / tb * math.sqrt(dd / bb)
    rel = [abs(e) / abs(y) for e, (_, y) in zip(d, used) if y != 0]
    if rel and all(map(math.isfinite, rel)):
        out["max_rel"], out["mean_rel"] = max(rel), math.fsum(rel) / len(rel)
    if ta > 0 and tb > 0:
        out["cosine"] = math.fsum(x / ta * (y / tb) for x, y in used) / math.sqrt(aa * bb)
    return out


def wrong(got, want):
    """Which values are further from exact arithmetic than include/acc/kernel.h lets them be."""
    bad = []
    for k, w in want.items():
        g = got.get(k)
        g = float(g) if isinstance(g, str) else g
        if k == "size":
            continue
        if g is None:
            bad.append(f"{k} is absent, {w!r} is right")
            continue
        # Sums within 136 u of the sum of magnitudes, and a few operations behind them; relative
        # errors of what fits f32 are formed in it.
        room = 0 if isinstance(w, int) or k in ("min", "max", "max_abs") else 150 * 2.0 ** -53
        room = 2.0 ** -21 if k in ("max_rel", "mean_rel") else room
        size = want["size"] if k == "mean" else 1.0 if k == "cosine" else abs(w)
        if not (g == w or abs(g - w) <= room * size + (room > 0) * 2.0 ** -1072):
            bad.append(f"{k} is {g!r}, not {w!r}")
    return bad


def one_round(r, count, tmp):
    cases = []
    for side in "ab":
        os.makedirs(os.path.join(tmp, side))
    for i in range(count):
        a = fill(r, shape(r), DTYPES[int(r.integers(len(DTYPES)))])
        b = near(r, a)
        for side, x in (("a", a), ("b", b)):
            np.save(os.path.join(tmp, side, f"t{i:05d}.npy"), laid(r, x))
        cases.append((np.asarray(a), np.asarray(b)))
    run = subprocess.run('accalign a b | accmetric | accfmt --json', shell=True, cwd=tmp,
                         stdout=subprocess.PIPE, check=True,
                         env=os.environ | {"PATH": BIN + ":" + os.environ["PATH"]})
    passed = failed = 0
    for line in run.stdout.splitlines():
        rec = json.loads(line)
        if rec.get("kind") != "pair" or "m.layout" in rec:
            continue
        i = int(rec["name"][1:6])
        a, b = cases[i]
        if a.size == 0:
            bad = [] if "m.skip" in rec else ["no element, and no m.skip"]
        else:
            bad = []
            for side, x in (("a", a), ("b", b)):
                got = {k[4:]: v for k, v in rec.items() if k.startswith(side + ".s.")}
                bad += [f"{side}: {t}" for t in wrong(got, single(x))]
            got = {k[2:]: v for k, v in rec.items() if k.startswith("m.")}
            bad += wrong(got, pair(a, b))
        passed, failed = passed + (not bad), failed + bool(bad)
        if bad and failed <= 20:
            print(f"{rec['name']}: {a.dtype} {b.dtype} {a.shape}: {'; '.join(bad)}")
    return passed, failed


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    total = [0, 0]
    for k in range(0, pairs, ROUND):
        r = np.random.default_rng([seed, k])
        with tempfile.TemporaryDirectory() as tmp:
            for i, n in enumerate(one_round(r, min(ROUND, pairs - k), tmp)):
                total[i] += n
        print(f"{total[0]} passed, {total[1]} failed so far", file=sys.stderr, flush=True)
    print(f"{total[0]} passed, {total[1]} failed")
    sys.exit(total[1] > 0 or total[0] == 0)


if __name__ == "__main__":
    main()
