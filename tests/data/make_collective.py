#!/usr/bin/env python3
"""Communication of three ranks, and replicas, for the audit: what numpy makes of their operands.

    tests/data/make_collective.py tests/data/collective

sums.acc.gz: each function of torch.distributed that accaudit recomputes, in several dtypes, right. Of
each case there is another one that is wrong on one rank: of its record, x-wrong says what must be said
of it. Sums are added up as a ring does it, each addition rounded to the dtype.
statistics.acc.gz: the same with larger tensors, of which statistics alone are recorded, as numpy has
them, a mean and a norm rounded to the dtype. pairs.acc.gz: groups that were not all recorded.
"""
import gzip
import os
import sys

import msgpack
import numpy as np

RANKS = 3
TIMES, OFFSET = 1, 0   # of sizes; of numbers
rng = np.random.default_rng(5)


def bf16(x):
    """To nearest, ties to even, as float32."""
    u = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((u + 0x7fff + (u >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


ROUND = {"f32": np.float32, "bf16": bf16, "f16": np.float16, "i64": np.int64}


def statistics(dtype, x):
    """As a recorder has them: in f32, and rounded to the dtype; of integers the first two."""
    if x.size == 0:
        return {}
    ends = {"stat.max": float(x.max()), "stat.min": float(x.min())}
    if dtype == "i64":
        return ends
    y = x.astype(np.float32)
    return {**ends, "stat.mean": float(ROUND[dtype](y.mean(keepdims=True)).item()),
            "stat.norm": float(ROUND[dtype](np.sqrt((y * y).sum(keepdims=True))).item())}


class Stream:
    def __init__(self, stats=False):
        self.stats = stats
        self.rec, self.data, self.calls = [["source", {"id": "1", "root": "/", "format": "acc"}]], [], {}

    def put(self, kind, r, key, op, call, io, pos, **fields):
        self.rec.append([kind, {"name": f"{key}.{io}.{pos}", "src": "1", "seq": len(self.rec),
                                "step": 0, "rank": r, "key": key, "op": op, "call": call,
                                "pass": "forward", "io": io, "pos": str(pos), **fields}])

    def value(self, r, key, op, call, io, pos, v, wrong=None):
        dtype, x = v if isinstance(v, tuple) else (None, v)
        if dtype is None and isinstance(x, list) and x and isinstance(x[0], tuple):
            for i, y in enumerate(x):
                self.value(r, key, op, call, io, f"{pos}.{i}", y, wrong and wrong[i])
        elif dtype is not None:
            raw = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) \
                if dtype == "bf16" else x.astype(ROUND[dtype])
            extra = {} if wrong is None else {"x-wrong": wrong}
            if self.stats:
                extra |= statistics(dtype, np.asarray(x))
            else:
                self.data.append((len(self.rec), raw.tobytes()))
            self.put("tensor", r, key, op, call, io, pos, dtype=dtype, shape=list(x.shape), **extra)
        elif isinstance(x, list) and pos == "group":
            self.put("arg", r, key, op, call, "kw", pos, type="torch.ProcessGroup", value=x)
        elif isinstance(x, list):
            for i, y in enumerate(x):
                self.put("arg", r, key, op, call, io, f"{pos}.{i}", type="int", value=y)
        elif pos == "op":
            self.put("arg", r, key, op, call, "kw", pos, type="torch.distributed.ReduceOp",
                     value=f"RedOpType.{x}")
        else:
            self.put("arg", r, key, op, call, io, pos, type=type(x).__name__, value=x)

    def call(self, r, name, args, kwargs, after, wrong=None):
        """after: the arguments as they are afterwards, those that are not None."""
        op = f"Distributed.{name}"
        call = self.calls[op, r] = self.calls.get((op, r), -1) + 1
        key = f"{op}.{call}.forward"
        for i, a in enumerate(args):
            self.value(r, key, op, call, "in", i, a)
        for k, v in kwargs.items():
            self.value(r, key, op, call, "kw", k, v)
        for i, a in enumerate(after):
            if a is not None:
                self.value(r, key, op, call, "out", i, a, wrong if i == 0 else None)

    def write(self, path):
        body = self.rec + [["data", {"src": "1", "seq": s, "off": 0, "data": d}] for s, d in self.data]
        with gzip.GzipFile(path, "wb", mtime=0) as f:
            for r in [["acc", {"v": 1, "minor": 0, "log": []}]] + body + [["end", {"n": len(body), "st": 0}]]:
                f.write(msgpack.packb(r))


def rand(dtype, *shape):
    shape = (shape[0] * TIMES,) + shape[1:]
    x = rng.integers(-9, 9, shape) if dtype == "i64" else OFFSET + rng.standard_normal(shape)
    return ROUND[dtype](x)


def ring(dtype, xs, op):
    """Rank by rank."""
    y = xs[0]
    for x in xs[1:]:
        y = np.maximum(y, x) if op == "MAX" else np.minimum(y, x) if op == "MIN" else \
            ROUND[dtype](y.astype(np.float64) + x.astype(np.float64)) if dtype != "i64" else y + x
    return ROUND[dtype](y.astype(np.float64) / len(xs)) if op == "AVG" else y


def chosen(xs, op):
    """What shows that rank 1 has its own operand."""
    if op == "MAX":
        right = xs[1].max() == max(x.max() for x in xs) and xs[1].min() >= max(x.min() for x in xs)
    else:
        right = xs[1].min() == min(x.min() for x in xs) and xs[1].max() <= min(x.max() for x in xs)
    return None if right else "is not the largest" if op == "MAX" else "is not the least"


def reductions(s, dtype, op):
    n, kw = RANKS, {"op": op, "group": [0, 1, 2]}
    xs = [rand(dtype, 5, 7) for _ in range(n)]
    y = ring(dtype, xs, op)
    for kind in (None, "own", "without", "third" if s.stats else "fourfold"):
        if kind is not None and dtype == "i64":
            continue
        if kind not in (None, "own") and op != "SUM":
            continue
        for r in range(n):
            z, wrong = y, None
            if kind is not None and r == 1:
                z = {"own": xs[1], "without": ring(dtype, xs[:2], "SUM"), "fourfold": ROUND[dtype](y * 4),
                     "third": ROUND[dtype](y / 3)}[kind]
                wrong = {"own": "own operand: nothing was reduced here",
                         "without": "its mean" if s.stats and dtype == "bf16" else
                         "lacks the operand of rank 2",
                         "third": "the mean, not the sum: divided by 3" if dtype != "bf16" else "its mean",
                         "fourfold": "is 4 times what the operands give"}[kind]
                if s.stats and op in ("MAX", "MIN"):
                    wrong = chosen(xs, op)
            s.call(r, "all_reduce", [(dtype, xs[r])], kw, [(dtype, z)], wrong)
    for as_list in (False, True):
        xs = [rand(dtype, 3 * n, 2) for _ in range(n)]
        y = ring(dtype, xs, op)
        for r in range(n):
            empty = (dtype, np.zeros((3, 2)))
            given = [(dtype, p) for p in np.split(xs[r], n)] if as_list else (dtype, xs[r])
            at = (r + 1) % n if dtype == "f32" and op == "SUM" and r == 2 else r
            wrong = None if at == r else "is not what the operands of its group give"
            if s.stats and not as_list and dtype == "f32" and op == "SUM":   # of all together
                wrong = "not what the operands of its group give, by the mean"
            s.call(r, "reduce_scatter" if as_list else "reduce_scatter_tensor", [empty, given], kw,
                   [(dtype, np.split(y, n)[at]), None], wrong)


def copies(s, dtype):
    n = RANKS
    xs = [rand(dtype, 2, 3) for _ in range(n)]
    ends = s.stats and dtype == "i64"   # which are the same of all
    for bad in (False, True):
        order = [1, 0, 2] if bad else [0, 1, 2]
        wrong = "has, where the part of rank 0 belongs, that of rank 1" if bad else None
        for r in range(n):
            z = [xs[i] for i in (order if r == 0 else [0, 1, 2])]
            hole = (dtype, np.zeros((2 * n, 3)))
            s.call(r, "all_gather_into_tensor", [hole, (dtype, xs[r])], {},
                   [(dtype, np.concatenate(z)), (dtype, xs[r])], wrong if r == 0 and not s.stats else None)
            parts = [(dtype, p) for p in z]
            swapped = [wrong, "has, where the part of rank 1 belongs, that of rank 0", None]
            s.call(r, "all_gather", [[(dtype, np.zeros((2, 3)))] * n, (dtype, xs[r])], {},
                   [parts, (dtype, xs[r])], swapped if bad and r == 0 and not ends else None)
        for r in range(n):
            z = xs[r] if bad and r == 2 else xs[1]
            s.call(r, "broadcast", [(dtype, xs[r]), 1], {}, [(dtype, z), 1],
                   None if not bad or r != 2 or ends else "what this rank had before" if s.stats else
                   "has, where the part of rank 1 belongs, that of rank 2")
    rows = TIMES * np.array([[1, 2, 0], [3, 1, 1], [0, 2, 2]])     # from, to
    xs = [rand(dtype, sum(k), 3) for k in rows]
    parts = [np.split(x, np.cumsum(k)[:-1]) for x, k in zip(xs, rows)]
    for r in range(n):
        got = [int(rows[j][r]) for j in range(n)]
        y = np.concatenate([parts[j][r] for j in range(n)])
        s.call(r, "all_to_all_single", [(dtype, np.zeros(y.shape)), (dtype, xs[r]), got, rows[r].tolist()], {},
               [(dtype, y), (dtype, xs[r])])
    xs = [rand(dtype, 4) for _ in range(3)]
    s.call(0, "send", [(dtype, xs[0]), 2], {}, [])
    s.call(0, "send", [(dtype, xs[1]), 2], {}, [])
    s.call(2, "recv", [(dtype, np.zeros(4)), 0], {}, [(dtype, xs[0]), 0])
    s.call(2, "recv", [(dtype, np.zeros(4)), 0], {}, [(dtype, xs[0]), 0],
           None if ends else "holds a stale part of rank 0: what that rank gave to"
           f" Distributed.send.{s.calls['Distributed.send', 0] - 1}.forward")


def cancelling(s, dtype):
    """Parts whose means, each rounded, are nearly nothing together."""
    xs = [rand(dtype, 5, 7) for _ in range(RANKS - 1)]
    xs = [ROUND[dtype](x - OFFSET) for x in xs] + [ROUND[dtype](OFFSET - sum(xs) / len(xs))]
    for r in range(RANKS):
        s.call(r, "all_gather_into_tensor", [(dtype, np.zeros((RANKS * len(xs[0]), 7))), (dtype, xs[r])], {},
               [(dtype, np.concatenate(xs)), (dtype, xs[r])])


def write(path, stats):
    s = Stream(stats)
    for dtype in ("f32", "bf16", "f16", "i64"):
        for op in ("SUM", "AVG", "MAX", "MIN"):
            if op != "AVG" or dtype != "i64":
                reductions(s, dtype, op)
        copies(s, dtype)
    for dtype in ("bf16", "f16") if stats else ():
        for _ in range(4):
            cancelling(s, dtype)
    s.rec.sort(key=lambda r: r[1].get("rank", -1))
    s.write(path)


def pairs(path):
    """Sums over two of four ranks each, of which some were recorded without their group."""
    s = Stream(True)
    for i in range(8):
        for pair in ([0, 1], [2, 3]):
            xs = [rand("f32", 5, 7) for _ in pair]
            for r, x in zip(pair, xs):
                s.call(r, "all_reduce", [("f32", x)], {"group": pair} if i < 6 else {}, [("f32", sum(xs))])
    s.rec.sort(key=lambda r: r[1].get("rank", -1))
    s.write(path)


def main():
    global rng, TIMES, OFFSET
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    write(os.path.join(out, "sums.acc.gz"), False)
    rng, TIMES, OFFSET = np.random.default_rng(6), 40, 1
    write(os.path.join(out, "statistics.acc.gz"), True)
    pairs(os.path.join(out, "pairs.acc.gz"))


if __name__ == "__main__":
    main()
