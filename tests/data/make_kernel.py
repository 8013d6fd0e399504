#!/usr/bin/python3
"""Writes kernel.txt, the expected sums of tests/unit/t_kernel.c, by other means than the C code:
numpy's conversions, exact rational sums (Fraction, fsum), searches in sorted lists of all values.

A case is a line "case NAME TA TB N SEED AND OR ALT XA SCALE RTOL ATOL [POKES]" and its expected values.
Component i of b is (splitmix64(SEED + i) & AND | OR) ^ (i odd ? ALT : 0), cut to the component's
size; of a, where the dtypes are equal, the same ^ (splitmix64(SEED + i + 2^32) & XA), else
splitmix64(SEED + i + 2^32) masked likewise with XA, an index of masks(). POKES, "side:index:hex", are
written over them.
"""
import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np

M64 = (1 << 64) - 1
SIZE = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "u64": 8, "i32": 4, "u32": 4, "i16": 2, "u16": 2}
FLOATS = ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0", "hif8"]
EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "f8e4m3": 0.125, "f8e5m2": 0.25,
       "f8e4m3fnuz": 0.125, "f8e5m2fnuz": 0.25, "f8e8m0": 1.0, "hif8": 0.125}
BIG = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0, "bf16": 3.3895313892515355e38,
       "f8e4m3": 448.0, "f8e5m2": 57344.0, "f8e4m3fnuz": 240.0, "f8e5m2fnuz": 57344.0, "f8e8m0": 2.0**127,
       "hif8": 32768.0}
PART = {"c32": "f16", "c64": "f32", "c128": "f64"}


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def minifloat(x, eb, mb, bias, fnuz=False, inf=False, fn=False):
    s, e, m = x >> 7, (x >> mb) & ((1 << eb) - 1), x & ((1 << mb) - 1)
    if fnuz and x == 0x80:
        return math.nan
    if inf and e == (1 << eb) - 1:
        return math.nan if m else (-math.inf if s else math.inf)
    if fn and (x & 0x7F) == 0x7F:
        return math.nan
    v = m / (1 << mb) * 2.0 ** (1 - bias) if e == 0 else (1 + m / (1 << mb)) * 2.0 ** (e - bias)
    return math.copysign(v, -1.0 if s else 1.0)


def hif8(x):
    """By walking the bits as text, as the format's description does."""
    sign, rest = (-1.0 if x & 0x80 else 1.0), f"{x & 0x7f:07b}"
    if x == 0x80:
        return math.nan
    if rest == "1101111":
        return sign * math.inf
    for dot, width in (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)):
        if rest.startswith(dot):
            break
    else:
        k = int(rest[4:], 2)
        return sign * (0.0 if k == 0 else 2.0 ** (k - 23))
    field, mant = rest[len(dot):len(dot) + width], rest[len(dot) + width:]
    exp = 0
    if width > 0:
        exp = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1)
    return sign * (1 + int(mant, 2) / 2.0 ** len(mant)) * 2.0**exp


def decode(t, x):
    if t in ("f64", "f32", "f16"):
        u = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16}[t]
        f = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[t]
        return float(np.array([x], dtype=u).view(f)[0])
    if t == "bf16":
        return float(np.array([x << 16], dtype=np.uint32).view(np.float32)[0])
    if t == "f8e4m3":
        return minifloat(x, 4, 3, 7, fn=True)
    if t == "f8e5m2":
        return minifloat(x, 5, 2, 15, inf=True)
    if t == "f8e4m3fnuz":
        return minifloat(x, 4, 3, 8, fnuz=True)
    if t == "f8e5m2fnuz":
        return minifloat(x, 5, 2, 16, fnuz=True)
    if t == "f8e8m0":
        return math.nan if x == 255 else 2.0 ** (x - 127)
    if t == "hif8":
        return hif8(x)
    if t == "bool":
        return int(x != 0)
    bits = int(t[1:])
    return x - (1 << bits) if t[0] == "i" and x >> (bits - 1) else x


def is_float(t):
    return t in FLOATS


_lists = {}


def magnitudes(t):
    if t not in _lists:
        bits = 8 * SIZE.get(t, 1)
        vals = {decode(t, x) for x in range(1 << bits)}
        _lists[t] = sorted({v for v in vals if math.isfinite(v) and math.copysign(1, v) > 0})
    return _lists[t]


def ordinal(t, v):
    """How many numbers of dtype t from 0 to |v| rounded to t."""
    v = abs(v)
    if t == "f64":
        return int(np.array([float(v)]).view(np.uint64)[0])
    if t == "f32":
        with np.errstate(over="ignore"):
            return int(np.array([float(v)]).astype(np.float32).view(np.uint32)[0])
    lst = magnitudes(t)
    i = bisect_left(lst, v)
    if i < len(lst) and lst[i] == v:
        return i
    if i == 0:
        return 0
    if i == len(lst):
        step = Fraction(lst[-1]) - Fraction(lst[-2])
        edge = Fraction(lst[-1]) + step / 2
        return i if Fraction(v) > edge or (Fraction(v) == edge and (i - 1) % 2 == 1) else i - 1
    lo, hi = Fraction(v) - Fraction(lst[i - 1]), Fraction(lst[i]) - Fraction(v)
    return i if hi < lo or (hi == lo and i % 2 == 0) else i - 1


def coarser(a, b):
    if not is_float(a):
        return b if is_float(b) else None
    if not is_float(b) or EPS[a] > EPS[b]:
        return a
    if EPS[a] < EPS[b]:
        return b
    return b if BIG[b] < BIG[a] else a


def exact(terms):
    """The sum, and the sum of magnitudes, of floats or Fractions."""
    if all(isinstance(t, (float, int)) and abs(t) < 2**53 or isinstance(t, float) for t in terms):
        try:
            return math.fsum(terms), math.fsum(abs(t) for t in terms)
        except OverflowError:
            return sum(terms), math.inf
    s, m = sum(map(Fraction, terms)), sum(abs(Fraction(t)) for t in terms)
    try:
        return float(s), float(m)
    except OverflowError:
        return (math.inf if s > 0 else -math.inf), math.inf


def square(v):
    return Fraction(v) * Fraction(v)


def put(out, key, *v):
    out.append(key + " " + " ".join(float(x).hex() if isinstance(x, float) else str(x) for x in v))


def one(out, side, t, vals):
    fin = [v for v in vals if math.isfinite(v)]
    put(out, side + "n", len(vals), sum(1 for v in vals if v != v), sum(1 for v in vals if v == math.inf),
        sum(1 for v in vals if v == -math.inf), sum(1 for v in fin if v == 0),
        sum(1 for v in fin if is_float(t) and abs(v) == BIG[t]))
    put(out, side + "range", float(min(fin, default=math.inf)) + 0.0, float(max(fin, default=-math.inf)) + 0.0)
    dbl = [float(v) for v in fin]
    put(out, side + "sum", *exact(dbl))
    put(out, side + "sumsq", *exact([square(v) for v in dbl]))


def modulus(x, y):
    return math.inf if math.isinf(x) or math.isinf(y) else abs(complex(x, y))


def two(out, ta, tb, A, B, scale, rtol, atol, complex_numbers):
    f32 = not complex_numbers and all(is_float(t) and t != "f64" for t in (ta, tb))
    T = np.float32 if f32 else np.float64
    ct = coarser(ta, tb)
    if complex_numbers:
        return two_complex(out, ct, A, B, scale, rtol, atol)
    n = len(A)
    used = [i for i in range(n) if math.isfinite(A[i]) and math.isfinite(B[i])]
    inside = set(used)
    same_kind = {i for i in range(n) if i not in inside and (A[i] == B[i] or (A[i] != A[i] and B[i] != B[i]))}
    diff = [i for i in range(n) if i not in inside and i not in same_kind]
    fl = {i: (float(A[i]), float(B[i])) for i in used}
    d = {i: float(A[i] - B[i]) if ct is None else fl[i][0] - fl[i][1] for i in used}
    put(out, "used", len(used), len(diff), sum(1 for i in diff if not (math.isinf(A[i]) and math.isinf(B[i]))))
    put(out, "dot", *exact([Fraction(x) * Fraction(y) for x, y in fl.values()]))
    put(out, "aa", *exact([square(x) for x, _ in fl.values()]))
    put(out, "bb", *exact([square(y) for _, y in fl.values()]))
    put(out, "absd", *exact([abs(Fraction(A[i]) - Fraction(B[i])) for i in used]))
    put(out, "dd", *exact([square(Fraction(A[i]) - Fraction(B[i])) for i in used]))

    def best(vals):
        m = max(vals.values(), default=0.0)
        return (float(m), min(i for i in vals if vals[i] == m)) if m > 0 else (0.0, 0)

    put(out, "maxd", *best({i: abs(d[i]) for i in used}))
    with np.errstate(all="ignore"):
        ad, ab = {}, {}
        for i in used:
            ad[i] = abs(T(fl[i][0]) - T(fl[i][1])) if f32 else abs(d[i])
            ab[i] = abs(T(fl[i][1]))
        r = {i: T(ad[i]) / ab[i] for i in used if ab[i] != 0}
        s = T(scale)
        e = {i: T(0) if ad[i] == 0 else T(ad[i]) / (ab[i] + s) for i in used}
        over = f32 and (scale == 0 or any(v >= 2.0**125 for v in r.values()) or any(v >= 2.0**62 for v in e.values())
                        or 0 < max(e.values(), default=0) < 2.0**-60)
        if over:  # cases for this have one block
            r = {i: abs(d[i]) / abs(fl[i][1]) for i in r}
            e = {i: abs(d[i]) / (abs(fl[i][1]) + scale) if d[i] != 0 else 0.0 for i in used}
        bz = [i for i in used if fl[i][1] == 0 and fl[i][0] != 0]
        lim = np.float32 if f32 and not over else np.float64
        put(out, "nrel", len(r), len(bz))
        put(out, "rel", *exact([float(v) for v in r.values()]))
        put(out, "maxr", *best(r))
        both0 = sum(1 for i in used if fl[i] == (0, 0) or (fl[i][0] == 0 and fl[i][1] == 0))
        put(out, "lt", both0 + sum(1 for v in r.values() if v < lim(0.001)),
            both0 + sum(1 for v in r.values() if v < lim(0.005)))
        if over:
            bad = sum(1 for i in used if not abs(d[i]) <= atol + rtol * abs(fl[i][1]))
        else:
            bad = sum(1 for i in used if not T(ad[i]) <= T(atol) + T(rtol) * ab[i])
        put(out, "outside", bad + len(diff))
        put(out, "ee", *exact([square(float(v)) for v in e.values()]))
        put(out, "maxe", *best(e))
    u, same = {}, len(same_kind)
    for i in used:
        if ct is None:
            u[i] = abs(int(A[i]) - int(B[i]))
            same += A[i] == B[i]
        else:
            oa, ob = ordinal(ct, fl[i][0]), ordinal(ct, fl[i][1])
            sa, sb = math.copysign(1, fl[i][0]), math.copysign(1, fl[i][1])
            u[i] = abs(oa - ob) if sa == sb else oa + ob
            same += oa == ob and sa == sb
        u[i] = min(u[i], M64)
    top = max(u.values(), default=0)
    put(out, "ulp", same, top, min((i for i in used if u[i] == top), default=0) if top else 0)
    bins = [0] * 65
    for v in u.values():
        bins[v.bit_length()] += 1
    put(out, "bins", *(f"{k}:{v}" for k, v in enumerate(bins) if v))



def two_complex(out, ct, A, B, scale, rtol, atol):
    """By moduli; the farther component's units in the last place."""
    n = len(A) // 2
    used = [i for i in range(n) if all(math.isfinite(v) for v in (*A[2 * i:2 * i + 2], *B[2 * i:2 * i + 2]))]
    inside = set(used)
    alike = {c for c in range(2 * n) if A[c] == B[c] or (A[c] != A[c] and B[c] != B[c])}
    same_kind = [i for i in range(n) if i not in inside and {2 * i, 2 * i + 1} <= alike]
    diff = [i for i in range(n) if i not in inside and not {2 * i, 2 * i + 1} <= alike]
    unsigned = [i for i in diff if any(c not in alike and not (math.isinf(A[c]) and math.isinf(B[c]))
                                       for c in (2 * i, 2 * i + 1))]
    put(out, "used", len(used), len(diff), len(unsigned))
    parts = [c for i in used for c in (2 * i, 2 * i + 1)]
    put(out, "dot", *exact([Fraction(A[c]) * Fraction(B[c]) for c in parts]))
    put(out, "aa", *exact([square(A[c]) for c in parts]))
    put(out, "bb", *exact([square(B[c]) for c in parts]))
    d = {i: modulus(A[2 * i] - B[2 * i], A[2 * i + 1] - B[2 * i + 1]) for i in used}
    b = {i: modulus(B[2 * i], B[2 * i + 1]) for i in used}
    put(out, "absd", *exact([d[i] for i in used]))
    put(out, "dd", *exact([square(Fraction(A[c]) - Fraction(B[c])) for c in parts]))

    def best(vals):
        m = max(vals.values(), default=0.0)
        return (float(m), min(i for i in vals if vals[i] == m)) if m > 0 else (0.0, 0)

    put(out, "maxd", *best(d))
    r = {i: d[i] / b[i] for i in used if b[i] != 0}
    e = {i: d[i] / (b[i] + scale) if d[i] != 0 else 0.0 for i in used}
    put(out, "nrel", len(r), sum(1 for i in used if b[i] == 0 and d[i] != 0))
    put(out, "rel", *exact(list(r.values())))
    put(out, "maxr", *best(r))
    both0 = sum(1 for i in used if b[i] == 0 and d[i] == 0)
    put(out, "lt", both0 + sum(1 for v in r.values() if v < 0.001), both0 + sum(1 for v in r.values() if v < 0.005))
    put(out, "outside", sum(1 for i in used if not d[i] <= atol + rtol * b[i]) + len(diff))
    put(out, "ee", *exact([square(v) for v in e.values()]))
    put(out, "maxe", *best(e))
    u, same = {}, len(same_kind)
    for i in used:
        far, equal = 0, True
        for c in (2 * i, 2 * i + 1):
            oa, ob = ordinal(ct, A[c]), ordinal(ct, B[c])
            alike_sign = math.copysign(1, A[c]) == math.copysign(1, B[c])
            far = max(far, min(abs(oa - ob) if alike_sign else oa + ob, M64))
            equal &= oa == ob and alike_sign
        u[i] = far
        same += equal
    top = max(u.values(), default=0)
    put(out, "ulp", same, top, min((i for i in used if u[i] == top), default=0) if top else 0)
    bins = [0] * 65
    for v in u.values():
        bins[v.bit_length()] += 1
    put(out, "bins", *(f"{k}:{v}" for k, v in enumerate(bins) if v))


def case(f, name, ta, tb, n, seed, mb, ma=None, alt=0, xa=0, scale=0.5, rtol=1e-3, atol=1e-5, pokes=()):
    pa, pb = PART.get(ta, ta), PART.get(tb, tb)
    za, zb = ta in PART, tb in PART
    na, nb = n * (2 if za else 1), n * (2 if zb else 1)
    cuta, cutb = (1 << 8 * SIZE.get(pa, 1)) - 1, (1 << 8 * SIZE.get(pb, 1)) - 1
    rb = [((mix(seed + i) & mb[0] | mb[1]) ^ (alt if i & 1 else 0)) & cutb for i in range(nb)]
    if ma is None:
        ra = [rb[i] ^ (mix(seed + i + (1 << 32)) & xa & cuta) for i in range(na)]
        ma = (0, 0)
    else:
        ra = [(mix(seed + i + (1 << 32)) & ma[0] | ma[1]) & cuta for i in range(na)]
    for p in pokes:
        side, at, hexa = p.split(":")
        (ra if side == "a" else rb)[int(at)] = int(hexa, 16)
    A, B = [decode(pa, x) for x in ra], [decode(pb, x) for x in rb]
    out = []

    def mods(v):
        return [math.inf if math.isinf(v[i]) or math.isinf(v[i + 1]) else abs(complex(v[i], v[i + 1]))
                for i in range(0, len(v), 2)]

    one(out, "a.", ta, mods(A) if za else A)
    one(out, "b.", tb, mods(B) if zb else B)
    if za and not zb:
        B = [x for v in B for x in (v, 0.0)]
    if zb and not za:
        A = [x for v in A for x in (v, 0.0)]
    two(out, pa, pb, A, B, scale, rtol, atol, za or zb)
    f.write(f"case {name} {ta} {tb} {n} {seed} {mb[0]:x} {mb[1]:x} {alt:x} {xa:x} {ma[0]:x} {ma[1]:x} "
            f"{float(scale).hex()} {float(rtol).hex()} {float(atol).hex()} {len(pokes)} {' '.join(pokes)}\n")
    f.write("\n".join(out) + "\n")


def main():
    any64, any32, any16 = (M64, 0), (0xFFFFFFFF, 0), (0xFFFF, 0)
    unit32 = (0x807FFFFF, 0x3F800000)  # +-[1, 2)
    with open("tests/data/kernel.txt", "w") as f:
        case(f, "random_bits", "f32", "f32", 5000, 1, any32, xa=0xFFFFFFFF)
        case(f, "noise", "f32", "f32", 5003, 2, unit32, xa=0xF)
        case(f, "three_chunks", "f32", "f32", 140001, 3, (0x83FFFFFF, 0x38000000), xa=0xFFF)
        case(f, "large_offset", "f32", "f32", 4096, 4, (0xFF, 0x49742400), xa=0x3)
        case(f, "mixed_1e-30_1e30", "f32", "f32", 4099, 5, (0xBFFFFFFF, 0x0D000000), xa=0x7F)
        case(f, "denormals", "f32", "f32", 3000, 6, (0x807FFFFF, 0), xa=0xFF, scale=2.0**-140)
        case(f, "alternating", "f32", "f32", 2048, 7, (0, 0x40490FDB), alt=0x80000000, xa=1)
        case(f, "all_nan", "f32", "f32", 100, 8, (0x803FFFFF, 0x7FC00000), xa=0x3FFFFF)
        case(f, "one_inf", "f32", "f32", 4096, 9, unit32, xa=0xF, pokes=["a:3000:7f800000"])
        case(f, "kinds", "f32", "f32", 64, 10, unit32, xa=0x3, pokes=[
            "a:1:7f800000", "b:1:7f800000", "a:2:7f800000", "b:2:ff800000", "a:3:7fc00000", "b:3:7f800000",
            "a:4:7fc00001", "b:4:ffc00000", "a:5:ff800000", "b:5:00000000", "a:6:7f7fffff", "b:7:ff7fffff",
            "a:8:80000000", "b:8:00000000", "a:9:3f800000", "b:9:00000000", "a:10:00000001", "b:10:80000000",
            "a:11:00000000", "b:11:3f800000", "b:12:ff7fffff"], scale=1e-3)
        case(f, "ratio_beyond_f32", "f32", "f32", 100, 11, unit32, xa=0xF,
             pokes=["a:7:7e000000", "b:7:00000001", "a:8:7f000000", "b:8:ff000000"])
        case(f, "scale_0", "f32", "f32", 40, 12, unit32, xa=0xF, scale=0.0, pokes=["a:3:00000000", "b:3:80000000"])
        case(f, "zeros", "f32", "f32", 100, 13, (0, 0), xa=0)
        case(f, "zero_bench", "f32", "f32", 100, 13, (0, 0), xa=0x3F800000, scale=1.0)
        case(f, "same", "f32", "f32", 5001, 14, unit32, xa=0, pokes=["a:9:7fc00000", "b:9:7fc00000"])
        case(f, "empty", "f32", "f32", 0, 15, unit32)
        case(f, "single", "f32", "f32", 1, 15, unit32, xa=0xFF)
        case(f, "f16_bits", "f16", "f16", 3000, 20, any16, xa=0xFFFF)
        case(f, "f16_noise", "f16", "f16", 3001, 21, (0xBFFF, 0), xa=0x7)
        case(f, "bf16_bits", "bf16", "bf16", 3000, 22, any16, xa=0xFFFF)
        case(f, "bf16_noise", "bf16", "bf16", 3001, 23, (0x81FF, 0x3E00), xa=0x7)
        case(f, "f32_bf16", "f32", "bf16", 3001, 24, (0x81FF, 0x3E00), ma=(0x81FFFFFF, 0x3E000000))
        case(f, "f16_f32", "f16", "f32", 3001, 25, (0x87FFFFFF, 0x38000000), ma=(0xBFFF, 0))
        case(f, "f16_f32_beyond", "f16", "f32", 500, 26, (0x807FFFFF, 0x47000000), ma=(0x83FF, 0x7800))
        case(f, "f16_bf16", "f16", "bf16", 500, 27, (0x81FF, 0x3E00), ma=(0x83FF, 0x3C00))
        # Whole blocks: only those are compared as codes. First where f32 cannot hold the differences.
        case(f, "bf16_wide", "bf16", "bf16", 4096, 100, (0x8FFF, 0x3000), ma=(0x8FFF, 0x3000))
        case(f, "f16_wide", "f16", "f16", 4096, 101, (0xFBFF, 0), ma=(0xFBFF, 0))
        case(f, "bf16_blocks", "bf16", "bf16", 6144, 102, (0x81FF, 0x3E00), xa=0x1,
             pokes=["a:5000:8000", "b:5000:0000", "a:5001:3c01", "b:5001:0000", "a:6000:ff7f"])
        case(f, "f16_blocks", "f16", "f16", 6144, 103, (0xBFFF, 0), xa=0x1,
             pokes=["a:3000:7c00", "b:3000:7e00", "a:3001:7c00", "b:3001:7c00", "b:6143:7bff"])
        case(f, "bf16_positive", "bf16", "bf16", 2048, 104, (0x01FF, 0x3E00), xa=0x3)
        case(f, "bf16_negative", "bf16", "bf16", 2112, 105, (0x81FF, 0xBE00), xa=0x3)
        case(f, "f16_relu", "f16", "f16", 2048, 106, (0x3FFF, 0), xa=0x1,
             pokes=["a:7:0000", "b:7:8000", "b:8:0000", "a:9:0000", "b:9:0000"])
        case(f, "f16_denormals", "f16", "f16", 2048, 107, (0x83FF, 0), xa=0x1, scale=2.0**-16)
        case(f, "bf16_denormals", "bf16", "bf16", 2048, 108, (0x807F, 0), xa=0x1, scale=2.0**-120)
        for i, t in enumerate(FLOATS[4:]):
            case(f, t, t, t, 600, 30 + i, (0xFF, 0), xa=0xFF)
            case(f, t + "_noise", t, t, 64, 40 + i, (0xBF, 0), xa=0x1)
            case(f, t + "_blocks", t, t, 6144, 110 + i, (0xBF, 0), xa=0x1,
                 pokes=["a:7:0", "b:7:1", "b:3000:7f", "a:3001:80", "b:3001:0", "a:6143:7e"])
            case(f, t + "_far", t, t, 2048, 120 + i, (0xBF, 0), xa=0x3F)
            case(f, "f32_" + t, "f32", t, 300, 50 + i, (0xFF, 0), ma=(0x87FFFFFF, 0x3C000000))
        case(f, "e5m2_bf16_big", "bf16", "f8e5m2", 300, 60, (0xFF, 0), ma=(0x83FF, 0x4700))
        case(f, "e4m3_e4m3fnuz", "f8e4m3", "f8e4m3fnuz", 300, 61, (0xFF, 0), ma=(0xFF, 0))
        case(f, "f64_bits", "f64", "f64", 2500, 70, (0xBFFFFFFFFFFFFFFF, 0x0), xa=0xFF)
        case(f, "f64_noise", "f64", "f64", 2500, 71, (0x800FFFFFFFFFFFFF, 0x3FF0000000000000), xa=0xFFFFF)
        case(f, "f64_f32", "f64", "f32", 2500, 72, unit32, ma=(0x800FFFFFFFFFFFFF, 0x3FF0000000000000))
        case(f, "f64_bf16", "f64", "bf16", 500, 73, (0x80FF, 0x3F00), ma=(0x801FFFFFFFFFFFFF, 0x3FE0000000000000))
        case(f, "f64_hif8", "f64", "hif8", 500, 74, (0xFF, 0), ma=(0x801FFFFFFFFFFFFF, 0x3FE0000000000000))
        case(f, "i64_bits", "i64", "i64", 500, 80, any64, xa=M64)
        case(f, "i64_near", "i64", "i64", 500, 81, (M64 >> 2, 1 << 62), xa=7)
        case(f, "u64_bits", "u64", "u64", 500, 82, any64, xa=M64)
        case(f, "i64_u64", "i64", "u64", 500, 83, any64, ma=any64)
        case(f, "i32", "i32", "i32", 500, 84, any64, xa=0xFF)
        case(f, "u32", "u32", "u32", 500, 85, any64, xa=0xFF)
        case(f, "i16", "i16", "i16", 500, 86, any64, xa=0xF)
        case(f, "u16_i16", "u16", "i16", 500, 87, any64, ma=any64)
        case(f, "i8", "i8", "i8", 2100, 88, any64, xa=0x3)
        case(f, "u8", "u8", "u8", 500, 89, any64, xa=0x3)
        case(f, "bool", "bool", "bool", 500, 90, (1, 0), xa=1)
        case(f, "i32_f32", "i32", "f32", 500, 91, (0x83FFFFFF, 0x4B000000), ma=(0xFFFFFF, 0x800000))
        case(f, "i64_f16", "i64", "f16", 500, 92, (0x7BFF, 0), ma=(0x1FFFF, 0))
        case(f, "c64", "c64", "c64", 2500, 95, unit32, xa=0xFF)
        case(f, "c64_bits", "c64", "c64", 300, 96, any32, xa=0xF)
        case(f, "c64_same", "c64", "c64", 300, 96, any32, xa=0)
        case(f, "c32", "c32", "c32", 500, 97, (0xBFFF, 0), xa=0xF)
        case(f, "c128", "c128", "c128", 500, 98, (0x801FFFFFFFFFFFFF, 0x3FE0000000000000), xa=0xFF)
        case(f, "c64_f32", "c64", "f32", 2100, 99, unit32, ma=(0x807FFFFF, 0x3F800000))
        case(f, "f32_c64", "f32", "c64", 2100, 99, unit32, ma=(0x807FFFFF, 0x3F800000))
        f.write("end\n")
    # Every code of the small formats, as the bits of the double.
    with open("tests/data/dtypes.bin", "wb") as f:
        for t in FLOATS[4:]:
            f.write(np.array([decode(t, x) for x in range(256)]).astype("<f8").tobytes())


if __name__ == "__main__":
    main()
