#!/usr/bin/python3
"""Pairs of curves for the tests of acccurve, and what numpy says of them:
python3 tests/data/make_curve_pairs.py writes tests/data/curve_pairs/ again.

expected.json holds, for some streams, figures computed here from the same numbers by other
means: the t distribution by Simpson's rule instead of a continued fraction."""
import gzip
import json
import math
import os

import msgpack
import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "curve_pairs")
os.makedirs(here, exist_ok=True)
rng = np.random.default_rng(20261121)
streams = {}


def stream(name, curves, extra=()):
    """curves: (tag, steps, device, bench, options); NaN-free None in a list: that side has no point"""
    records = []
    for tag, steps, a, b, *o in curves:
        o = o[0] if o else {}
        for i, step in enumerate(steps):
            r = {}
            for p, v in (("a.", a[i]), ("b.", b[i])):
                if v is None:
                    continue
                r[p + "kind"] = "scalar"
                r[p + "tag"] = tag
                r[p + "step"] = int(step)
                r[p + "value"] = float(v)
                if o.get("res"):
                    r[p + "res"] = o["res"]
                r[p + "class"] = o.get("class", "metric")
                r[p + "run"] = "npu" if p == "a." else "gpu"
            r["how"] = "name" if "a.kind" in r and "b.kind" in r else "only-a" if "a.kind" in r else "only-b"
            records.append(["pair", r])
    records += [list(x) for x in extra]
    data = msgpack.packb(["acc", {"v": 1, "minor": 0, "log": ["made by hand"]}])
    for r in records:
        data += msgpack.packb(r)
    data += msgpack.packb(["end", {"n": len(records), "st": 0}])
    with open(os.path.join(here, name + ".acc"), "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))
    streams[name] = curves


def ar(n, phi, sd):
    x = np.empty(n)
    v = rng.standard_normal()
    for i in range(n):
        x[i] = v
        v = phi * v + math.sqrt(1 - phi * phi) * rng.standard_normal()
    return sd * x


def printed(x, digits):
    return [round(float(v), digits) for v in x]


N = 200
S = list(range(1, N + 1))
loss = 2 + 2 * np.exp(-np.arange(N) / 60) + ar(N, 0.3, 0.02)
lr = printed(1e-4 * np.minimum(1, np.arange(1, N + 1) / 20), 9)
norm = 1.5 + ar(N, 0.5, 0.1)
quiet = ar(N, 0.5, 0.004)
quiet[0] = quiet[1] = 0
P4, P3 = {"res": 5e-5}, {"res": 5e-4}
LR = ("learning_rate", S, lr, lr, {"res": 5e-10})
NORM = ("grad_norm", S, printed(norm * (1 + ar(N, 0, 0.01)), 3), printed(norm, 3), P3)


def losses(d, digits=4):
    return ("loss", S, printed(loss + d, digits), printed(loss, digits), {"res": 0.5 * 10.0 ** -digits})


ramp = np.arange(1, N + 1) / N
late = np.where(np.arange(N) >= 49, 0.2, 0)
stream("noise", [losses(quiet), LR, NORM])
stream("offset", [losses(0.02 + quiet), LR, NORM])
stream("trend", [losses(0.03 * ramp + quiet), LR, NORM])
stream("forward", [losses(0.04 + quiet), LR, NORM])
stream("optimizer", [losses(np.where(np.arange(N) >= 1, 0.1, 0)), LR, NORM])
stream("later", [losses(late + quiet), LR, NORM])
spike = quiet.copy()
spike[76] = 1.5
stream("spike", [losses(spike), LR, NORM])
bad_norm = printed(norm * 1.05, 3)
stream("backward", [losses(late + quiet), LR, ("grad_norm", S, bad_norm, NORM[3], P3)])
stream("norm", [losses(quiet), LR, ("grad_norm", S, printed(norm * 1.2, 3), NORM[3], P3)])
weights = ["layers.%d.%s.weight" % (i, w) for i in range(6) for w in ("qkv", "mlp")]
local = []
for i, w in enumerate(weights):
    b = 0.01 * (i + 1) * (1 + np.arange(3) / 10)
    a = b * {4: 1.4, 7: 1.1}.get(i, 1.001)
    local.append(("local_norm/" + w, [1, 2, 3], printed(a, 6), printed(b, 6), {"res": 5e-7}))
stream("local", [losses(late + quiet), LR, NORM] + local)
other_lr = [v if i < 19 else round(v * 0.9, 9) for i, v in enumerate(lr)]
stream("schedule", [losses(late + quiet), ("learning_rate", S, other_lr, lr, {"res": 5e-10}), NORM])
stream("shift", [losses(quiet), ("learning_rate", S, lr[1:] + [lr[-1]], lr, {"res": 5e-10}), NORM])
nan = losses(quiet)
nan[2][29] = nan[2][30] = math.nan
inf = list(NORM[2])
inf[28] = math.inf
stream("overflow", [nan, LR, ("grad_norm", S, inf, NORM[3], P3)])
both = losses(quiet)
both[2][29] = both[3][29] = math.nan
both[2][30] = both[3][30] = -math.inf
stream("nan-both", [both, LR, NORM])
zero = [0.0] * N
small = printed(loss + rng.standard_normal(N) * 0.0008, 4)
stream("lr0", [("loss", S, small, printed(loss, 4), P4), ("learning_rate", S, zero, zero),
               ("grad_norm", S, printed(norm + rng.standard_normal(N) * 0.03, 3), NORM[3], P3)])
far = list(small)
far[41] += 0.5
stream("lr0-step", [("loss", S, far, printed(loss, 4), P4), ("learning_rate", S, zero, zero)])
stream("lr0-loss", [losses(rng.standard_normal(N) * 0.003), ("learning_rate", S, zero, zero)])
stream("lr0-norm", [("loss", S, small, printed(loss, 4), P4), ("learning_rate", S, zero, zero),
                    ("grad_norm", S, printed(norm + rng.standard_normal(N) * 0.1, 3), NORM[3], P3)])
stream("constant", [losses(quiet), LR, ("grad_norm", S, zero, NORM[3], P3)])
stream("times", [losses(quiet), ("elapsed", S, printed(100 + ar(N, 0, 9), 1), [50.0] * N, {"class": "time"}),
                 ("memory", S, [5] * N, [9] * N, {"class": "count"}),
                 ("only_there", S, [None] * N, [9] * N, {"class": "count"}), ("num_zeros", S, [1.0] * N, [2.0] * N)])
every = losses(quiet)
stream("intervals", [("loss", S, [v if s % 10 == 0 else None for s, v in zip(S, every[2])],
                      [v if s < 150 else None for s, v in zip(S, every[3])], P4),
                     ("eval_ppl", [200], [8.0], [None]), ("z_loss", [200], [None], [1.0])])
left_out = list(every[2])
left_out[11] = left_out[12] = None
stream("left-out", [("loss", S, left_out, every[3], P4), LR])
stream("coarse", [losses(quiet, 3), LR])
stream("short", [("loss", S[:8], printed(loss[:8] + quiet[:8], 4), printed(loss[:8], 4), P4)])
stream("late-start", [("loss", [s * 100 for s in S], printed(loss + 0.1, 4), printed(loss, 4), P4)])
stream("one", [("loss", [1], [2.0], [2.0], P4)])
stream("no-step", [losses(quiet)], [("pair", {"a.kind": "scalar", "a.tag": "loss", "a.value": 1.0})])
stream("unjoined", [("loss", [1, 2], [1.0, 1.0], [None, None]), ("lm", [1, 2], [None, None], [1.0, 1.0])])
stream("empty", [])
# The bench again: its spread is 0.01; the device differs as much, or three times as much.
stream("spread", [losses(ar(N, 0.8, 0.01)), NORM])
stream("spread-too", [losses(0.01 + ar(N, 0.8, 0.01))])
stream("inside", [losses(0.03 * np.sin(np.arange(N)) * (np.arange(N) == 150) + ar(N, 0.8, 0.01)), LR, NORM])
stream("outside", [losses(ar(N, 0.8, 0.03)), LR, NORM])
# Inside in every respect but one: off centre; a tenth of the steps far out.
stream("off-centre", [losses(0.008 + ar(N, 0, 0.001))])
stream("peaks", [losses(0.3 * quiet + np.where(np.arange(N) % 10 == 5, 0.05, 0) * np.where(np.arange(N) % 20 == 5, 1, -1))])
# A spike of both, of which one is a little larger; a difference that begins with the second step; a first
# value that is not of the first step.
hill = np.where(np.arange(N) == 76, 1.4, 0)
stream("hill", [("loss", S, printed(loss + 1.05 * hill + quiet, 4), printed(loss + hill, 4), P4)])
rest = 0.03 + quiet
rest[0] = 0.0008
stream("from-second", [losses(rest)])
stream("evaluated", [losses(quiet), ("eval_loss", [100, 200, 300, 400], [3.025, 3.0, 3.0, 3.0], [3.0] * 4, P4)])
again = [("pair", {"a.kind": "scalar", "b.kind": "scalar", "a.tag": "loss", "b.tag": "loss", "a.step": 7,
                   "b.step": 7, "a.value": 1.0, "b.value": 1.0, "a.run": "npu", "b.run": "gpu"}),
         ("pair", {"a.kind": "scalar", "a.tag": "loss", "a.step": 9, "a.value": 5.0, "a.run": "npu"})]
stream("again", [losses(quiet)], again)
two = [("pair", {"a.kind": "scalar", "b.kind": "scalar", "a.tag": "loss", "b.tag": "loss", "a.step": 201,
                 "b.step": 201, "a.value": 1.0, "b.value": 1.0, "a.run": "second", "b.run": "gpu"})]
stream("two-runs", [losses(quiet)], two)


def gradient(w, a, b):
    r = {"name": w}
    for p, v in (("a.", a), ("b.", b)):
        r.update({p + "kind": "tensor", p + "name": w, p + "op": w, p + "pass": "grad", p + "io": "grad",
                  p + "step": 0, p + "pos": "weight", p + "s.norm": v})
    return ("pair", r)


forward = gradient("fc1", 1.0, 2.0)
forward[1]["a.pass"] = forward[1]["b.pass"] = "forward"
held = gradient("fc1", 3.0, 3.0)
held[1].update({"a.src": "00000000", "a.seq": 0})
stream("gradients", [losses(late + quiet)], [("source", {"id": "00000000"}), held,
                                             gradient("fc2", 2.2, 2.0), forward,
                                             ("data", {"src": "00000000", "side": "a", "seq": 0, "off": 0, "data": b"x"})])


def points(name, run, values):
    """One side alone, as accdump-read writes it: (step, value) in the order of the log."""
    data = msgpack.packb(["acc", {"v": 1, "minor": 0, "log": ["made by hand"]}])
    data += msgpack.packb(["source", {"id": "0000000" + run, "root": "/", "format": "log"}])
    for i, (step, v) in enumerate(values):
        data += msgpack.packb(["scalar", {"tag": "loss", "step": step, "value": v, "res": 5e-5, "class": "metric",
                                          "run": run, "src": "0000000" + run, "seq": i}])
    data += msgpack.packb(["end", {"n": len(values) + 1, "st": 0}])
    with open(os.path.join(here, name + ".acc"), "wb") as f:
        f.write(data)


# The device starts again from step 2 after step 4; the bench, which wrote step 5 first, from step 3.
points("restart-device", "1", [(1, 4.0), (2, 9.0), (3, 9.0), (4, 9.0), (2, 3.5), (3, 3.0), (4, 2.5), (5, 2.0)])
points("restart-bench", "2", [(5, 8.0), (1, 4.0), (2, 3.5), (3, 8.0), (3, 3.0), (4, 2.5), (5, 2.0), (6, 1.5)])


# --- inputs for the fuzz target: records without a head, the values few but odd ---
corpus = os.path.join(here, "..", "..", "fuzz", "corpus", "curve")
os.makedirs(corpus, exist_ok=True)


def seed(name, curves, noise=()):
    data = b""
    for mark, list_of in (({}, curves), ({"noise": 1}, noise)):
        for tag, a, b in list_of:
            for i, (x, y) in enumerate(zip(a, b)):
                r = {"a.kind": "scalar", "b.kind": "scalar", "a.tag": tag, "b.tag": tag, "a.step": i + 1, "b.step": i + 1,
                     "a.value": x, "b.value": y, "a.res": 5e-5, "a.class": "metric"}
                data += msgpack.packb(["pair", dict(r, **mark)])
    with open(os.path.join(corpus, name), "wb") as f:
        f.write(data)


odd = [1.0, math.nan, math.inf, -math.inf, 0.0, 1e308, -1e308, 5e-324]
seed("odd", [("loss", odd, odd[::-1]), ("grad_norm", odd, [0.0] * 8), ("local_norm/w", odd[:3], [1.0] * 3)])
seed("long", [("loss", printed(2 + quiet[:40], 3), [2.0] * 40), ("learning_rate", [0.0] * 12, [0.0] * 12)],
     [("loss", [2.0, 2.1, 2.2, 1.9], [2.0] * 4)])
seed("late", [("loss", [2.0] * 12 + [3.0] * 12, [2.0] * 24), ("learning_rate", lr[1:6], lr[:5])])



# --- and for that of pictures: measured pairs, their names hostile ---
plots = os.path.join(here, "..", "..", "fuzz", "corpus", "plot")
os.makedirs(plots, exist_ok=True)


def ops(name, rows):
    data = msgpack.packb(["source", {"id": "00000000", "root": "/nowhere", "host": "h", "format": "npy"}])
    for i, (key, io, v, bad) in enumerate(rows):
        r = {"name": key + "." + io, "a.kind": "tensor", "b.kind": "tensor", "a.key": key, "a.io": io, "a.step": i // 4,
             "a.pass": "forward", "m.mode": "tensor", "m.one_minus_cosine": v, "m.rel_l2": v, "m.ulp_hist": [i, 0, 3]}
        data += msgpack.packb(["pair", dict(r, bad=bad) if bad else r])
    data += msgpack.packb(["finding", {"what": "culprit", "name": rows[-1][0], "step": (len(rows) - 1) // 4, "text": "'x"}])
    with open(os.path.join(plots, name), "wb") as f:
        f.write(data)


ops("ops", [("F.a.0", "in", 0.0, None), ("F.a.0", "out", 1e-7, None), ("F.%s'`x`.1", "out", 1e300, "error"),
            ("\n\x7f\u2028\"@!", "out", math.inf, "warning"), ("F.b.2", "out", 5e-324, "error"), ("F.b.2", "grad", math.nan, None)])
ops("many", [("F.c.%d" % i, "out", 10.0 ** -(i % 9), None) for i in range(60)])
with open(os.path.join(plots, "points"), "wb") as f:
    for i, v in enumerate(odd * 3):
        f.write(msgpack.packb(["scalar", {"tag": "loss", "step": i * 2 ** 58 - 2 ** 63, "value": v, "run": "r'\x01"}]))
with open(os.path.join(plots, "odd"), "wb") as f, open(os.path.join(corpus, "odd"), "rb") as g:
    f.write(g.read())

# --- what the figures must be ---


def student_p(t, df):
    """Two-sided: Simpson's rule over u = arctan(x / sqrt(df)), where the density is cos(u)^(df - 1)."""
    if math.isinf(t):
        return 0.0
    u = np.linspace(0, math.pi / 2, 200001)
    f = np.cos(u) ** (df - 1)
    w = np.ones_like(u)
    w[1:-1:2], w[2:-1:2] = 4, 2
    total = (w * f).sum()
    u0 = math.atan(abs(t) / math.sqrt(df))
    v = np.linspace(u0, math.pi / 2, 200001)
    tail = (w * np.cos(v) ** (df - 1)).sum() * (math.pi / 2 - u0) / (math.pi / 2)
    return tail / total


def drift(d):
    n = len(d)
    if n < 10:
        return None, None, "unknown"
    cut = lambda x, q: np.array([x[g * len(x) // q:(g + 1) * len(x) // q].mean() for g in range(q)])
    m = cut(d, min(n, 64))
    t = np.arange(len(m))
    left = m - np.polyval(np.polyfit(t, m, 1), t)
    phi = 0.0
    if left.any():
        phi = (len(m) * (left[1:] @ left[:-1]) / (left @ left) + 2) / (len(m) - 4)
        phi = min(max(phi, 0), 0.98)
    q = 16 if n >= 32 else 8
    g = cut(m[1:] - phi * m[:-1], q)
    h = g[q // 2:] - g[:q // 2]

    def p(x):
        return 1.0 if x.mean() == 0 else student_p(x.mean() / (x.std(ddof=1) / math.sqrt(len(x))), len(x) - 1)

    eff = len(m) * (1 - phi) / (1 + phi)
    kind = "trend" if p(h) < 0.02 else "offset" if p(g) < 0.02 else "none"
    return p(g), p(h), "unknown" if eff < (6 if n >= 64 else 10) else kind


def figures(steps, a, b, res):
    """Of curves that both sides have in full."""
    s, a, b = np.array(steps, float), np.array(a, float), np.array(b, float)
    out = {"n": len(s), "begin": int(s[0]), "end": int(s[-1])}
    kinds = ~(np.isfinite(a) & np.isfinite(b)) & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    ok = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        apart = kinds | (ok & (np.abs(a - b) > 2 * res * (1 + 1e-6) + 1e-15 * np.abs(b)))
    out["apart"], out["nonfinite"] = int(apart.sum()), int(kinds.sum())
    out["first"] = int(s[apart][0]) if apart.any() else None
    for side, v in (("a", a), ("b", b)):
        out[side + ".nan"] = int(s[~np.isfinite(v)][0]) if not np.isfinite(v).all() else None
    s, a, b = s[ok], a[ok], b[ok]
    d = a - b
    rel = np.where(d == 0, 0, np.abs(d) / np.where(b == 0, np.maximum(np.abs(a), 1e-300), np.abs(b)))
    n, tail = len(s), max(len(s) // 10, 1)
    out.update(max_abs=np.abs(d).max(), max_rel=rel.max(), mean_abs=np.abs(d).mean(), mean_rel=rel.mean(),
               late_abs=np.abs(d[n // 2:]).max(), begin_abs=abs(d[0]), begin_rel=rel[0],
               most_rel=np.sort(rel)[n - 1 - min(max(n // 100, 1), 50)], final=d[-tail:].mean(),
               offset=d.mean(), offset_rel=d.mean() / np.abs(b).mean(), slope=np.polyfit(s, d, 1)[0],
               final_rel=d[-tail:].sum() / np.abs(b[-tail:]).sum(), at=int(s[np.abs(d).argmax()]))
    sign = np.sign(d)[d != 0]
    out["signs"] = int((sign[1:] != sign[:-1]).sum())
    out["offset_p"], out["trend_p"], out["drift"] = drift(d)
    return {k: (float(v) if isinstance(v, np.floating) else v) for k, v in out.items()}


expected = {}
for name in ("noise", "offset", "trend", "forward", "later", "spike", "overflow", "nan-both", "backward", "lr0", "short"):
    for tag, steps, a, b, *o in streams[name]:
        if tag == "loss" or (tag == "grad_norm" and name in ("noise", "backward", "lr0", "overflow")):
            expected.setdefault(name, {})[tag] = figures(steps, a, b, o[0]["res"])
with open(os.path.join(here, "expected.json"), "w") as f:
    json.dump(expected, f, indent=1)
    f.write("\n")
