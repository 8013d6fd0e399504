"""Makes metric.tsv, the test vectors of the metrics: small tensors as hex, and what each metric
of them is, by exact fractions, decimals of 60 digits, or numpy in float64.

    /usr/bin/python3 tests/data/make_metric.py    # Debian 12: python3-numpy, libxxhash0

Lines, fields separated by tabs:
    tensor NAME DTYPE SHAPE HEX           then: s.KEY VALUE
    pair NAME DA DB SHAPE HEXA HEXB RTOL ATOL SCALE    then: m.KEY VALUE
    stats NAME A*4 B*4                    then: m.KEY VALUE    ("-": not recorded)
    value NAME EQUAL                      then: m.equal VALUE
A key with "!" before it has a wrong value on purpose: a comparison that accepts it is broken.
"""
import ctypes
import math
import os
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np

getcontext().prec = 60
out = open(os.path.join(os.path.dirname(__file__), "metric.tsv"), "w")
xxh = ctypes.CDLL("libxxhash.so.0")
xxh.XXH3_64bits.restype = ctypes.c_uint64
xxh.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

NP = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "u8": "u1",
      "bool": "?"}
BIGGEST = {"f64": np.finfo("f8").max, "f32": float(np.finfo("f4").max), "f16": 65504.0,
           "bf16": float.fromhex("0x1.fep127")}


def encode(dtype, values):
    """bytes, and the values as they then are, as float64"""
    if dtype == "bf16":
        bits = np.array(values, "<f4").view("<u4")
        bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
        bits = np.where(np.isnan(np.array(values, "f4")), 0x7fc0, bits).astype("<u2")
        return bits.tobytes(), (bits.astype("<u4") << 16).view("<f4").astype("f8")
    a = np.array(values).astype(NP[dtype])
    return a.tobytes(), a.astype("f8")


def text(v):
    if isinstance(v, (list, tuple)):
        return ",".join(map(str, v))
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (int, np.integer, str)):
        return str(v)
    return repr(float(v))


def put(*fields):
    out.write("\t".join(map(text, fields)) + "\n")


def dec(f):
    return Decimal(f.numerator) / Decimal(f.denominator)


def exact(values):
    return [Fraction(float(v)) for v in values]


def root(f):
    return float(dec(f).sqrt())


def tensor(name, dtype, shape, values):
    raw, x = encode(dtype, values)
    put("tensor", name, dtype, shape, raw.hex())
    fin = x[np.isfinite(x)]
    nan, pos, neg = np.isnan(x).sum(), (x == np.inf).sum(), (x == -np.inf).sum()
    if len(x):
        put("s.min", x.min())
        put("s.max", x.max())
        if nan or pos or neg:
            with np.errstate(all="ignore"):
                put("s.mean", x.sum() / len(x))
                put("s.norm", math.inf if not nan else math.nan)
        else:
            put("s.mean", float(dec(sum(exact(x), Fraction()) / len(x))))
            put("s.norm", root(sum((v * v for v in exact(x)), Fraction())))
    put("s.nan", nan)
    put("s.posinf", pos)
    put("s.neginf", neg)
    put("s.zero", (x == 0).sum())
    put("s.sat", (np.abs(fin) == BIGGEST.get(dtype, -1)).sum())
    h = b"".join(struct.pack("<Q", xxh.XXH3_64bits(raw[i:i + n], len(raw[i:i + n])))
                 for n in [65536 * max(1, len(raw) // max(1, len(x)))]
                 for i in range(0, len(raw), n))
    put("s.hash", "%016x" % xxh.XXH3_64bits(h, len(h)))


def order(dtype, raw):
    """floats as integers that count in units of the last place; integers as they are"""
    if dtype not in BIGGEST:
        return [int(v) for v in np.frombuffer(raw, NP[dtype])]
    size = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}[dtype]
    res = []
    for i in range(0, len(raw), size):
        u = int.from_bytes(raw[i:i + size], "little")
        top = 1 << (8 * size - 1)
        res.append(-(u - top) if u & top else u)
    return res


def pair(name, da, db, shape, va, vb, rtol=1e-3, atol=1e-5, skip=()):
    ra, a = encode(da, va)
    rb, b = encode(db, vb)
    n = len(a)
    with np.errstate(all="ignore"):
        kind = ((np.isnan(a) != np.isnan(b)) | ((a == np.inf) != (b == np.inf)) |
                ((a == -np.inf) != (b == -np.inf)))
        used = np.isfinite(a) & np.isfinite(b)
    nonzero = sorted(abs(b[np.isfinite(b) & (b != 0)]))
    scale = nonzero[(len(nonzero) - 1) // 2] if nonzero else 0.0
    put("pair", name, da, db, shape, ra.hex(), rb.hex(), rtol, atol, scale)
    fa, fb = exact(a[used]), exact(b[used])
    k = len(fa)
    d = [x - y for x, y in zip(fa, fb)]
    z = Fraction()
    aa, bb = sum((x * x for x in fa), z), sum((x * x for x in fb), z)
    dd, dot = sum((x * x for x in d), z), sum((x * y for x, y in zip(fa, fb)), z)
    if aa and bb:
        cos = dec(dot) / (dec(aa).sqrt() * dec(bb).sqrt())
    else:
        cos = Decimal(0 if aa or bb else 1)
    res = {"m.cosine": float(cos), "m.one_minus_cosine": float(1 - cos)}
    res["m.euclid"] = root(dd)
    res["m.rel_l2"] = root(dd / bb) if bb else math.inf if dd else 0.0
    res["m.rmse"] = root(dd / k) if k else 0.0
    if not dd:
        res["m.snr"] = math.inf
    else:
        res["m.snr"] = float(10 * (dec(bb) / dec(dd)).log10()) if bb else -math.inf
    ad = [abs(x) for x in d]
    res["m.mean_abs"] = float(dec(sum(ad, z) / k)) if k else 0.0
    res["m.max_abs"] = float(max(ad, default=z))
    if dd:
        at = int(np.flatnonzero(used)[ad.index(max(ad))])
        res["m.worst"] = [int(i) for i in np.unravel_index(at, shape)]
    rel = [x / abs(y) for x, y in zip(ad, fb) if y]
    res["m.max_rel"] = float(dec(max(rel, default=z)))
    res["m.mean_rel"] = float(dec(sum(rel, z) / len(rel))) if rel else 0.0
    for key, limit in (("m.thousandth", Fraction(0.001)), ("m.five_thousandths", Fraction(0.005))):
        res[key] = sum(x < limit * abs(y) or x == 0 for x, y in zip(ad, fb)) / k if k else 1.0
    res["m.b_zero"] = sum(y == 0 and x != 0 for x, y in zip(fa, fb))
    coarse = da if len(ra) <= len(rb) else db
    ca, cb = encode(coarse, a)[0], encode(coarse, b)[0]
    if da == db:
        ca, cb = ra, rb
    oa, ob = order(coarse, ca), order(coarse, cb)
    u = [abs(oa[i] - ob[i]) for i in range(n) if used[i]]
    res["m.ulp_max"] = max(u, default=0)
    hist = [0] * 65
    for v in u:
        hist[v.bit_length()] += 1
    while hist and hist[-1] == 0:
        hist.pop()
    res["m.ulp_hist"] = hist
    width = len(ca) // n
    bits = [ca[i * width:(i + 1) * width] == cb[i * width:(i + 1) * width] for i in range(n)]
    inside = sum(x <= Fraction(atol) + Fraction(rtol) * abs(y) for x, y in zip(ad, fb))
    agree = int((~used & ~kind).sum())
    res["m.outside"] = (n - inside - agree) / n
    res["m.rtol"], res["m.atol"] = rtol, atol
    res["m.same"] = (sum(x and y for x, y in zip(bits, used)) + agree) / n
    res["m.nonfinite"] = int(kind.sum())
    s = Fraction(float(scale))
    e = [x / (abs(y) + s) if x else z for x, y in zip(ad, fb)] if s else [z] * k
    res["m.err_rms"] = math.inf if kind.any() else root(sum((x * x for x in e), z) / k) if k else 0.0
    res["m.err_max"] = math.inf if kind.any() else float(dec(max(e, default=z)))
    res["m.diff1"] = res["m.rel_l2"]
    res["m.diff2"] = root(sum(((x - sum(d, z) / k) ** 2 for x in d), z) / k) if k else 0.0
    acu(res, a, b, da == db == "bool", all(v == 1 for v in shape))
    if shape and shape[-1] > 1 and {da[0], db[0]} <= set("fb") and "bool" not in (da, db):
        logits(res, a.reshape(-1, shape[-1]), b.reshape(-1, shape[-1]))
    for key, v in res.items():
        if key not in skip:
            put(key, v)


def logits(res, a, b):
    """Of rows of scores, those without NaN and infinities that are no masks of both sides"""
    rows, same, shared, kl = 0, [], 0.0, 0.0
    for x, y in zip(a.astype("f8"), b.astype("f8")):
        hidden = (x == -np.inf) & (y == -np.inf)
        same.append(None)
        if hidden.all() or not (np.isfinite(x) & np.isfinite(y) | hidden).all():
            continue
        best = [[i for i in np.argsort(-v, kind="stable") if not hidden[i]][:5] for v in (x, y)]
        p, q = ([math.exp(e - max(v)) for e in v] for v in (x[~hidden].tolist(), y[~hidden].tolist()))
        p, q = ([e / math.fsum(v) for e in v] for v in (p, q))
        rows += 1
        same[-1] = best[0][0] == best[1][0]
        shared += len(set(best[0]) & set(best[1])) / len(best[0])
        kl += math.fsum(f * math.log(f / e) for e, f in zip(p, q) if f > 0 and e > 0)
    if rows:
        res["m.logits.top1"] = same.count(True) / rows
        res["m.logits.top5"] = shared / rows
        res["m.logits.kl"] = kl / rows
    if False in same:
        res["m.logits.first"] = same.index(False)


def acu(res, a, b, boolean, scalar):
    """msaccucmp's: elements in float32, sums here in float64"""
    x, y = a.astype("f4"), b.astype("f4")
    eps = 2.220446e-16
    with np.errstate(all="ignore"):
        x8, y8, d = x.astype("f8"), y.astype("f8"), (x - y).astype("f8")
        nx, ny = np.sqrt((x8 * x8).sum()), np.sqrt((y8 * y8).sum())
        if scalar or (nx <= eps and ny <= eps):
            cos = 1.0
        elif nx ** .5 <= eps or ny ** .5 <= eps:
            cos = math.nan
        else:
            cos = min((x8 / nx * (y8 / ny)).sum(), 1.0)
            cos = math.nan if np.isnan((x8 / nx * (y8 / ny)).sum()) else cos
        res["m.acu.cosine"] = cos
        res["m.acu.rel_euclid"] = 0.0 if ny <= eps else np.sqrt((d * d).sum() / (y8 * y8).sum())
        if boolean:
            return
        rel = np.where(np.abs(y) > np.float32(eps), np.abs(x / y - np.float32(1)), 0).astype("f8")
        res["m.acu.max_abs"] = np.abs(d).max()
        res["m.acu.sum_rel"] = rel.sum()
        dist = []
        for v in (x, y):
            r = v.max() - v.min()
            p = (v - v.min()) / r if r != 0 else v
            p = np.maximum(p, np.finfo("f4").eps).astype("f8")
            dist.append(p / p.sum())
        res["m.acu.kld"] = (dist[0] * np.log(dist[0] / dist[1])).sum()
        v = [x8.mean(), x8.std(), y8.mean(), y8.std()]
        v = [0.0 if abs(q) < 0.001 else q for q in v]
        if np.isfinite(v).all():
            res["m.acu.std"] = "(%.3f;%.3f),(%.3f;%.3f)" % tuple(v)
        res["m.acu.mean_abs"] = np.abs(d).mean()
        res["m.acu.rmse"] = np.sqrt((d * d).mean())
        res["m.acu.max_rel"] = rel.max()
        res["m.acu.mean_rel"] = rel.mean()


def stats(name, a, b):
    put("stats", name, *["-" if v is None else v for v in a + b])
    for key, x, y in zip(("max", "min", "mean", "norm"), a, b):
        if x is None or y is None:
            continue
        same = x == y or (math.isnan(x) and math.isnan(y))
        finite = math.isfinite(x) and math.isfinite(y)
        put(f"m.{key}_diff", 0.0 if same else x - y)
        put(f"m.{key}_relerr", 0.0 if same else abs(x - y) / abs(y) if finite and y else math.inf)


rng = np.random.default_rng(7)
g = rng.standard_normal
inf, nan = math.inf, math.nan
b60 = g(60)

tensor("plain", "f32", [5, 12], b60)
tensor("special", "f32", [6], [1.5, nan, inf, -inf, 0.0, -0.0])
tensor("both infinities", "f64", [3], [inf, -inf, 1.0])
tensor("one infinity", "f16", [4], [-inf, 2.0, 65504.0, -65504.0])
tensor("bf16", "bf16", [7], [1.0, 2.5, -3.0, BIGGEST["bf16"], 0.0, 1e-40, 0.125])
tensor("integers", "i64", [4], [-5, 0, 7, 123456789])
tensor("flags", "bool", [3], [True, False, True])
tensor("zero-dimensional", "f64", [], [-0.1])
tensor("empty", "f32", [0, 3], [])

pair("noise 1e-6", "f32", "f32", [5, 12], b60 * (1 + 1e-6 * g(60)), b60)
pair("noise 1e-9", "f64", "f64", [60], b60 * (1 + 1e-9 * g(60)), b60, 1e-7, 1e-7)
pair("noise 1e-2", "f16", "f16", [6, 10], b60 * (1 + 1e-2 * g(60)), b60, skip=("m.acu.kld",))
pair("bf16", "bf16", "bf16", [3, 20], b60 * (1 + 1e-2 * g(60)), b60)
pair("scaled by 1.001", "f64", "f64", [60], b60 * 1.001, b60)
pair("unrelated", "f32", "f32", [2, 2, 15], g(60), b60)
pair("opposite", "f32", "f32", [60], -b60, b60)
pair("equal", "f32", "f32", [60], b60, b60)
pair("dtypes differ", "f16", "f32", [60], b60, b60)
pair("zero and zero", "f32", "f32", [4], [0, 0, -0.0, 0], [0, -0.0, 0, 0])
pair("a is zero", "f32", "f32", [4], [0, 0, 0, 0], [1, 0, 2, -3])
pair("b is zero", "f32", "f32", [4], [1, 0, 2, -3], [0, 0, 0, 0], skip=("m.err_rms", "m.err_max"))
pair("some of b is zero", "f32", "f32", [5], [1, 1e-3, 0, 4, 5], [0, 0, 0, 4, 5.1])
pair("NaN and Inf alike", "f32", "f32", [6], [nan, inf, -inf, 1, 2, 3], [nan, inf, -inf, 1, 2, 3.5])
pair("+Inf against -Inf", "f32", "f32", [4], [inf, 1, 2, 3], [-inf, 1, 2, 3])
pair("NaN on one side", "f32", "f32", [4], [nan, 1, 2, 3], [1, 1, 2, 3])
pair("Inf against finite", "f16", "f16", [4], [inf, 1, 2, 3], [65504, 1, 2, 3])
pair("all NaN", "f32", "f32", [2], [nan, nan], [nan, nan])
pair("integers", "i64", "i64", [5], [1, 2, 3, -4, 1000], [1, 2, 4, -4, 2000], 0.0, 0.0)
pair("bytes", "u8", "u8", [4], [0, 255, 7, 8], [255, 0, 7, 9])
pair("flags", "bool", "bool", [4], [True, False, True, True], [True, True, False, True])
pair("zero-dimensional", "f32", "f32", [], [3.5], [3.25])
pair("large against a mask", "f32", "f32", [2, 3], [-1e4, 0.1, 0.2, -1e4, 0.31, 0.4],
     [-1e4, 0.1, 0.2, -1e4, 0.3, 0.4])

stats("all four", [1.0, -1.0, 0.25, 3.0], [1.5, -1.0, 0.0, 2.5])
stats("some", [nan, None, inf, -0.0], [nan, 1.0, 1.0, 0.0])
stats("not finite", [inf, nan, -inf, inf], [inf, 1.0, inf, 2.0])

pair("apart by much, and by little more", "f64", "f64", [7], [1e6 + v for v in (1, 1 + 2**-20, 1 - 2**-20,
     1, 1 + 2**-19, 1, 1)], [0.0] * 7, skip=("m.err_rms", "m.err_max"))

# What the error is and where is known by how it was made; the scale s is told to the metric.
ints = (np.arange(512) * 37 % 61 + 2.0).reshape(16, 32)


def where(name, a, b, **want):
    put("pair", name, "f32", "f32", list(b.shape), encode("f32", a.ravel())[0].hex(),
        encode("f32", b.ravel())[0].hex(), 1e-3, 1e-5, 30.0)
    for key, value in want.items():
        put("m.where" + ("." + key if key != "text" else ""), value)


a = ints.copy()
a[:, 1::5] *= 1.03125
where("every 5th column", a, ints, text="every 5th column from 1 on, times 1.031", axis=[1],
      set="1::5", share=1.0, of=7 / 32, how="scale", by=1.03125)
where("columns moved", np.roll(ints, 2, 1), ints, text="everywhere, shifted by 2 along axis 1",
      how="shift", by=2.0, along=1)
a = ints.copy()
a[3, 8:16] = np.nan
where("a part of a row", a, ints, text="row 3, columns 8 to 15 (number 1 of blocks of 8), NaN",
      axis=[0, 1], set="3;8:16", share=1.0, of=8 / 512, how="nan")

put("value", "the same", True)
put("m.equal", True)
put("value", "another", False)
put("m.equal", False)

where("control of places", a, ints, how="nan")
put("!m.where.set", "3;8:15")
put("!m.where.axis", [1, 0])
put("value", "control", False)
put("!m.equal", True)
put("pair", "control", "f32", "f32", [2], encode("f32", [1, 2])[0].hex(),
    encode("f32", [1, 2.5])[0].hex(), 0.0, 0.0, 1.0)
put("!m.max_abs", 0.5000001)
put("!m.worst", [0])
put("!m.same", 1.0)
put("!m.nonfinite", 1)
out.close()
