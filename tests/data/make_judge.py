#!/usr/bin/python3
"""Measured streams for the tests of accfirstbad: python3 tests/data/make_judge.py writes
tests/data/judge/*.acc again. What each of them means stands in tests/accfirstbad.bats."""
import math
import os
import zlib

import msgpack
import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge")
os.makedirs(here, exist_ok=True)
INF, NAN = float("inf"), float("nan")
STACK = ["File /opt/site-packages/torch/nn/functional.py, line 9, in gelu, \n return _gelu(x)",
         "File /home/me/model.py, line 41, in forward, \n h = F.gelu(self.fc1(x))",
         "File /home/me/train.py, line 3, in <module>, \n step()"]


def h(text):
    return "%016x" % (zlib.crc32(text.encode()) * 0x100000001 | 1)


class Stream:
    def __init__(self, stack=False, rank=None, task="tensor"):
        self.r, self.seq, self.rank = [], 0, rank
        self.stack = "00000000000000aa" if stack else None
        self.r.append(("source", {"id": "0000000%d" % (rank or 0), "root": "/dump", "task": task}))
        if stack:
            self.r.append(("stack", {"id": "00000000000000bb", "frames": ["File /x/other.py, line 1, in f, \n g()"]}))
            package = "/opt/site-packages/transformers/models/llama/modeling_llama.py"   # a model that lives in one
            frames = [f.replace("/home/me/model.py", package) for f in STACK] if stack == "package" else STACK
            self.r.append(("stack", {"id": self.stack, "frames": frames}))

    def side(self, p, key, io, pos, kind, more):
        op, call, pas = key.rsplit(".", 2)
        suffix = {"in": "input", "out": "output", "kw": "kwargs", "param": "parameters"}[io]
        f = {p + "kind": kind, p + "name": "%s.%s.%s" % (key, suffix, pos), p + "key": key, p + "op": op,
             p + "call": int(call), p + "pass": pas, p + "io": io, p + "pos": pos, p + "step": 0,
             p + "seq": self.seq, p + "src": "0000000%d" % (self.rank or 0)}
        if self.rank is not None:
            f[p + "rank"] = self.rank
        if self.stack:
            f[p + "stack"] = self.stack
        f.update({p + k: v for k, v in more.items()})
        return f

    def put(self, key, io, pos, a, b, kind, m):
        f = {}
        for p, side in (("a.", a), ("b.", b)):
            if side is not None:
                f.update(self.side(p, side.pop("key", key), io, pos, kind, side))
        name = f.get("a.name", f.get("b.name"))
        f = dict({"name": name, "how": "name" if a is not None and b is not None else "only-" + ("b" if a is None else "a")}, **f)
        f.update(m)
        self.r.append(("pair", f))
        self.seq += 1

    def tensor(self, key, io, pos, value, e=0.0, dtype="f32", shape=(2, 4), emax=None, sides="ab", other=None, **m):
        """value: what the bench holds; the device holds the same where e is 0."""
        a = {"dtype": dtype, "shape": list(shape), "s.hash": h(value if e == 0 else other or value + "~%g" % e)}
        b = {"dtype": dtype, "shape": list(shape), "s.hash": h(value), "s.norm": 8 ** .5}
        for k in [k for k in m if k[:2] in ("a_", "b_")]:
            (a if k[0] == "a" else b)[k[2:].replace("__", ".")] = m.pop(k)
        meas = {"m.mode": "tensor", "m.err_rms": float(e), "m.err_max": float(emax if emax is not None else 3 * e),
                "m.rmse": float(e), "m.max_abs": float(3 * e), "m.max_rel": float(3 * e), "m.same": 1.0 if e == 0 else 0.0,
                "m.nonfinite": 0}
        meas.update({k.replace("__", "."): v for k, v in m.items()})
        if len(sides) < 2:
            meas = {}
        self.put(key, io, pos, a if "a" in sides else None, b if "b" in sides else None, "tensor", meas)

    def arg(self, key, pos, a, b):
        self.put(key, "in", pos, {"type": type(a).__name__, "value": a}, {"type": type(b).__name__, "value": b}, "arg",
                 {"m.mode": "value", "m.equal": a == b})

    def op(self, key, ins, outs):
        """ins, outs: (value, e) or (value, e, options)"""
        for io, l in (("in", ins), ("out", outs)):
            for i, t in enumerate(l):
                self.tensor(key, io, str(i), t[0], t[1], **(t[2] if len(t) > 2 else {}))

    def write(self, name, status=0, extra=(), end=True):
        self.r.extend(extra)
        with open(os.path.join(here, name + ".acc"), "wb") as f:
            f.write(msgpack.packb(["acc", {"v": 1, "minor": 0, "log": ["made by hand"]}]))
            for kind, fields in self.r:
                f.write(msgpack.packb([kind, fields]))
            if end:
                f.write(msgpack.packb(["end", {"n": len(self.r), "st": status}]))


L, G, A = "Functional.linear.%d.forward", "Functional.gelu.%d.forward", "Tensor.__add__.%d.forward"


def net(s, noise=1e-7, gelu=None, linears=3, dtype="f32", weight=None, **out):
    """x -> linear -> gelu -> linear -> gelu ...; gelu: the error of the second gelu."""
    x, e = "x", 0.0
    for i in range(linears):
        w = weight if weight is not None and i == 1 else 0.0
        s.op(L % i, [(x, e, {"dtype": dtype}), ("w%d" % i, w, {"dtype": dtype})],
             [("l%d" % i, max(e, noise, w), {"dtype": dtype})])
        e = max(e, noise, w)
        g = gelu if gelu is not None and i == 1 else e
        s.op(G % i, [("l%d" % i, e, {"dtype": dtype})], [("g%d" % i, g, dict(out if i == 1 else {}, dtype=dtype))])
        x, e = "g%d" % i, max(e, g)
    return s


net(Stream()).write("clean")
net(Stream(stack=True), gelu=1e-3, m__worst=[1, 3]).write("culprit")
net(Stream(stack="package"), gelu=1e-3, m__worst=[1, 3]).write("culprit-package")
net(Stream(), gelu=3e-4).write("noise")  # of a second run of the bench
net(Stream(), gelu=1e-5, noise=5e-8).write("noise-little")
net(Stream(), gelu=6e-5, noise=2e-8).write("noise-less")
net(Stream(), gelu=1e-3).write("no-end", end=False)
net(Stream(), gelu=1e-7).write("trouble-before", status=2)
net(Stream(), gelu=INF, m__nonfinite=4, dtype="f16", a_s__sat=4, b_s__posinf=4, b_s__nan=0).write("saturated")
net(Stream(), gelu=INF, m__nonfinite=4, a_s__nan=4, b_s__nan=0).write("nan")
net(Stream(), gelu=1e-7, m__nonfinite=0, a_s__nan=4, b_s__nan=4).write("nan-on-both")
net(Stream(), weight=0.01, dtype="bf16", noise=1e-3).write("weight")
net(Stream(), noise=1e-3, dtype="bf16").write("bf16")
net(Stream(), noise=8e-5, linears=4).write("tf32")

# A gradient that is 0 in exact arithmetic: small where it is made, beside what was summed up; of
# itself all noise. carried: as far off as it was made; changed: a hundred times further.
for name, rmse in (("carried", 1e-6), ("changed", 1e-4)):
    s = net(Stream())
    s.op("Functional.linear.2.backward", [("dy", 1e-7)], [("db", 1e-6, {"m__rmse": 1e-6, "shape": (4,)})])
    s.tensor("Tensor.mul_.0.forward", "in", "0", "db", 0.5, shape=(4,), other="db, cast", m__rmse=rmse, b_s__norm=2e-6)
    s.tensor("Tensor.mul_.0.forward", "out", "0", "u", 0.5, shape=(4,), m__rmse=rmse, b_s__norm=2e-6)
    s.write(name)

s = Stream()  # one product alone is as rough
net(s)
s.op("Torch.matmul.0.forward", [("g2", 1e-7), ("k", 0)], [("mm", 8e-5)])
s.write("not-tf32")

s = Stream()  # a device that multiplies in TF32, as its audit says
audit = {"a_audit__ok": True, "a_audit__err": 1200.0, "a_audit__limit": 7000.0, "a_audit__err_max": 4000.0,
         "a_audit__limit_max": 35000.0, "a_audit__form": "tf32"}
s.op(L % 0, [("x", 0), ("w", 0)], [("l", 3e-5, audit)])
s.write("multiplies")

s = Stream()  # as convolutions do by default where products do not
net(s)
s.op("Functional.conv2d.0.forward", [("g2", 1e-7), ("k", 0)],
     [("c", 2.3e-4, {**audit, "m__err_max": 1.6e-3, "b_audit__ok": True, "b_audit__err": 0.6, "b_audit__limit": 8.0,
                     "b_audit__err_max": 3.0, "b_audit__limit_max": 32.0})])
s.write("multiplies-alone")

for name, p, e in (("dropout", 0.1, 0.3), ("argument-without-effect", 0.1, 1e-7)):
    s = Stream()
    net(s, linears=2)
    key = "Functional.dropout.0.forward"
    s.tensor(key, "in", "0", "g1", 1e-7)
    s.arg(key, "1", p, p)
    s.arg(key, "2", True, False)
    s.tensor(key, "out", "0", "d", e)
    s.write(name)

s = Stream()  # the output of linear.0, overwritten in place by mul_.0, is gelu.0's input
s.op(L % 0, [("x", 0), ("w", 0)], [("l", 1e-7)])
s.op("Tensor.mul_.0.forward", [("l", 1e-7)], [("m", 2e-7, {"other": "m~device"})])
s.op(G % 0, [("l", 0.5, {"other": "m~device"})], [("g", 0.5)])
s.write("overwritten")

s = Stream()  # gelu.1 was given another tensor than the one it was given on the bench
net(s, linears=2)
s.op(A % 0, [("l0", 0.7, {"other": "g1~1e-07"})], [("a", 0.7)])
s.write("wrong-tensor")

for name, off in (("device-only", 0.5), ("device-only-barely", 1.9e-5)):
    s = Stream()  # only the device has npu_gelu: what comes from it is bad, or hardly
    s.op(L % 0, [("x", 0), ("w", 0)], [("l", 1e-7)])
    s.tensor("NPU.npu_gelu.0.forward", "in", "0", "l", 1e-7, sides="a")
    s.tensor("NPU.npu_gelu.0.forward", "out", "0", f"g~{off}", 0, sides="a")
    s.tensor(G % 0, "in", "0", "l", 0, sides="b")
    s.tensor(G % 0, "out", "0", "g", 0, sides="b")
    s.op(L % 1, [("g", off), ("w1", 0)], [("l1", off)])
    s.write(name)

for name, ein in (("choice", 1e-7), ("choice-of-equals", 0)):
    s = Stream()  # a token is chosen otherwise
    s.op("Torch.topk.0.forward", [("x", ein)],
         [("v", ein), ("i", 0.1, {"dtype": "i64", "m__same": 0.9, "m__max_abs": 3.0})])
    s.write(name)

# By rank, other places than on the bench: of other values; of equal numbers, where no values show that
# they are equal; of noisy ones, of eight and of many; by statistics. What follows is none: tokens that
# went another way, and how many.
T0 = T = "Torch.topk.0.forward"
AM = "Torch.argmax.0.forward"
flip = {"dtype": "i64", "m__same": 0.9, "m__max_abs": 3.0}
s = Stream()
s.op(T, [("x", 1e-7)], [("v", 0.1), ("i", 0.1, flip)])
s.write("tie-values")
for name, e, n, same in (("tie-argmax-equal", 0, 8, 0.75), ("tie-argmax", 1e-7, 8, 0.75),
                         ("tie-argmax-most", 1e-7, 1000, 0.75)):
    s = Stream()
    s.op(AM, [("x", e)], [("i", 0.5, dict(flip, m__same=same, shape=(n,)))])
    s.write(name)
s = Stream()
s.op(T, [("x", 1e-7)], [("v", 1e-7), ("i", 0.1, flip)])
s.op("Torch.index_select.0.forward", [("h", 1e-7), ("i", 0.1, flip)], [("t", 0.7)])
s.op("Torch.eq.0.forward", [("i", 0.1, flip)], [("c", 0.1, dict(flip, dtype="bool"))])
short = {"note": "shape", "a_shape": [3, 4], "m__err_rms": None, "m__nonfinite": None}
s.op("Torch.masked_select.0.forward", [("h", 1e-7), ("c", 0.1, dict(flip, dtype="bool"))], [("u", 1e-7, short)])
s.op(L % 0, [("u", 1e-7, short), ("w", 0)], [("l", 1e-7, short)])
s.op("Functional.linear.0.backward", [("dl", 1e-7, short)], [("du", 1e-7, short), ("dw", 0.5)])
s.write("tie-follows")

s = Stream()  # what stands at such a place was taken without a record, and goes on
s.op(T, [("x", 1e-7)], [("v", 1e-7), ("i", 0.1, flip)])
s.op("Tensor.mul.0.forward", [("routed", 0.7), ("w", 0)], [("u", 0.7)])
s.write("tie-routed")

# Another shape from what has the same; of another argument.
for name, p in (("shape", -1), ("shape-argument", 0)):
    s = Stream()
    s.tensor("Torch.sum.0.forward", "in", "0", "x", 0)
    s.arg("Torch.sum.0.forward", "dim", p, -1)
    s.tensor("Torch.sum.0.forward", "out", "0", "y", 1e-7, **short)
    s.write(name)

# Weights in 16 bits on the device, in a dump most of which is of f32: those differ by their rounding.
s = Stream()
for i in range(8):
    s.op(L % i, [("x%d" % i, 0 if i == 0 else 1e-7), ("w%d" % i, 7.5e-4, {"a_dtype": "bf16"})],
         [("x%d" % (i + 1), 7.5e-4)])
    for k in range(4):
        s.op(G % (4 * i + k), [("x%d" % (i + 1), 7.5e-4)], [("x%d" % (i + 1), 7.5e-4)])
s.write("weights-rounded")

# The gradient of a step inside an operator, as one of two recorders gives it.
s = Stream()
s.op("Torch.matmul.0.forward", [("x", 0), ("w", 0)], [("y", 1e-7)])
s.op("Torch.matmul.0.backward", [("dy", 0)], [("dx", 1e-7, short), ("dw", 1e-7)])
s.write("shape-gradient")

# Scores that the device hides by -65504 and the bench by -Inf: masked; where the softmax shows it; where
# something else than a softmax takes them; where more than the low end is odd; by statistics; where no
# call made the mask.
M, SM = "Tensor.masked_fill.0.forward", "Torch.softmax.0.forward"
hide = {"m__nonfinite": 3, "m__rel_l2": 1e-7, "m__rmse": 1e-7, "m__max_abs": 3e-7, "a_s__min": -65504.0,
        "a_s__max": 1.0, "b_s__min": -INF, "b_s__max": 1.0, "a_s__nan": 0, "b_s__nan": 0, "b_s__neginf": 3}
for name, more, soft, call in (("masked", {}, 1e-7, SM), ("masked-shown", {}, 1e-2, SM),
                               ("masked-taken", {}, 2e-7, "Torch.exp.0.forward"),
                               ("masked-nan", {"a_s__nan": 1}, 2e-7, SM),
                               ("masked-high", {"a_s__min": -9.0}, 2e-7, SM)):
    s = Stream()
    m = ("m", INF, dict(hide, **more))
    s.op(M, [("x", 1e-7)], [m])
    s.arg(M, "2", -65504.0, -INF)
    s.op(call, [m], [("p", soft)])
    s.write(name)
s = Stream()
mask = ("mask", INF, dict(hide, m__nonfinite=3, m__rel_l2=0.0, m__max_abs=0.0))
s.op(A % 0, [("x", 1e-7), mask], [("m", INF, hide)])
s.op(SM, [("m", INF, hide)], [("p", 1e-7)])
s.write("masked-given")

# What is hidden so in a part that the device computes again, alone; and where it hid nothing so before.
# In bf16 -65504 is -65536.
for name, first, low in (("masked-again", hide, {"dtype": "f16", "a_s__sat": 3}),
                         ("masked-again-bf16", hide, {"dtype": "bf16", "a_s__min": -65536.0}),
                         ("masked-alone", {"m__max_abs": 1e-7}, {"dtype": "f16", "a_s__sat": 3})):
    s = Stream()
    m = ("m", INF if first is hide else 1e-7, first)
    s.op(M, [("x", 1e-7)], [m])
    s.op(SM, [m], [("p", 1e-7)])
    key = "Tensor.masked_fill.1.forward"
    s.tensor(key, "in", "0", "x1", 1e-7, sides="a")
    s.tensor(key, "out", "0", "m1", 1e-7, sides="a", a_audit__ok=False, a_audit__err=INF, a_audit__limit=0.5,
             a_audit__err_max=INF, a_audit__limit_max=0.5, **low)
    s.write(name)

# A gradient that is zero in exact arithmetic, made by nobody; and one that is small.
for name, size in (("rest", 1e-8), ("rest-large", 1e-4)):
    s = Stream()
    s.op("Functional.linear.0.backward", [("dy", 1e-7)], [("dx", 1e-7)])
    s.op("Torch.topk.0.backward", [("dt", 0.9, {"b_s__norm": size * 8 ** .5, "m__rmse": size})], [("dp", 0.9)])
    s.write(name)
# The same where it is taken on the way to the optimizer.
for name, size in (("rest-norm", 1e-8), ("rest-norm-large", 1e-4)):
    s = Stream()
    s.op("Functional.linear.0.backward", [("dy", 1e-7)], [("dx", 1e-7)])
    s.op("Torch.norm.0.forward", [("dt", 0.9, {"b_s__norm": size * 8 ** .5, "m__rmse": size})], [("n", 0.9)])
    s.write(name)

# A cast to f16 leaves half of its smallest number: no error of its own, but one of what follows.
for name, e in (("tiny", 0.1), ("tiny-exact", 0)):
    s = Stream()
    s.op(L % 0, [("x", 0), ("w", 0)],
         [("y", e, {"a_dtype": "f16", "m__rmse": 1e-8, "m__max_abs": 2.9e-8, "b_s__norm": 1e-7 * 8 ** .5})])
    s.op("Tensor.mul.0.forward", [("y", e), ("k", 0)], [("z", 0.1)])
    s.write(name)

# Weights: another one once places fell otherwise, by more than a fault of one; those behind the offsets
# of an embedding_bag and behind the values of an attention.
for name, e in (("tie-weight", 0.8), ("tie-weight-near", 0.1)):
    s = Stream()
    s.op(T0, [("x", 1e-7)], [("v", 1e-7), ("i", 0.1, {"dtype": "i64", "m__same": 0.9, "m__max_abs": 3.0})])
    for i in range(3):   # most weights are equal
        s.op(L % i, [("h", 1e-7), ("w%d" % i, e * (i == 2))], [("l%d" % i, max(1e-7, e * (i == 2)))])
    s.write(name)
for name, key, pos in (("weight-bag", "Functional.embedding_bag.0.forward", "1"),
                       ("weight-heads", "Functional.multi_head_attention_forward.0.forward", "5"),
                       ("weight-heads-value", "Functional.multi_head_attention_forward.0.forward", "2")):
    s = Stream()
    s.op(L % 0, [("x", 0), ("v", 0)], [("y", 1e-7)])
    s.tensor(key, "in", "0", "y", 1e-7)
    s.tensor(key, "in", pos, "w", 5e-6)
    s.tensor(key, "out", "0", "z", 5e-6)
    s.write(name)

# Both sides are right for what they were given, and what they make differs: an argument that one side alone
# gives is another, stands elsewhere on the other side, or is the default.
for name, a, b in (("arg-device", {"approximate": "tanh"}, {}), ("arg-bench", {}, {"approximate": "tanh"}),
                   ("arg-elsewhere", {"dim": -1}, {"1": -1}), ("arg-default", {"dtype": None}, {"inplace": False})):
    key, right = "Functional.gelu.0.forward", {"audit__ok": True, "audit__err": 0.5, "audit__limit": 40.0,
                                               "audit__err_max": 2.0, "audit__limit_max": 200.0}
    s = Stream()
    s.tensor(key, "in", "0", "x", 1e-8)
    for k, v in a.items():
        s.put(key, "kw", k, {"type": type(v).__name__, "value": v}, None, "arg", {})
    for k, v in b.items():
        s.put(key, "in" if k.isdigit() else "kw", k, None, {"type": type(v).__name__, "value": v}, "arg", {})
    s.tensor(key, "out", "0", "y", 3e-4, **{p + k: v for p in ("a_", "b_") for k, v in right.items()})
    s.write(name)

# The sizes of a view, of tensors of the same shape and of others.
for name, note in (("view-size", None), ("view-other", "shape")):
    s, more = Stream(), {"note": note} if note else {}
    s.tensor("Tensor.view.0.forward", "in", "0", "x", 1e-8, **more)
    s.arg("Tensor.view.0.forward", "1", 8, 2)
    s.tensor("Tensor.view.0.forward", "out", "0", "y", 1e-8, **more)
    s.tensor("Tensor.view.0.forward", "out", "1", "z", 0.5, **more)
    s.write(name)

# What is hidden: bools on the device, minus infinities on the bench; behind it something that is right.
for name, dtype in (("mask-form", "bool"), ("mask-wrong", "f32")):
    s = Stream()
    for io in ("in", "out"):
        s.tensor("Tensor.triu.0.forward", io, "0", io, INF, dtype=dtype, b_dtype="f32", m__nonfinite=6, m__max_abs=INF,
                 b_s__neginf=6, b_s__nan=0, a_s__neginf=0, a_s__nan=0)
    net(s).write(name)

# An f32 operator that both sides computed in 16 bits on the way, as the audit says of both: the device is
# nearer to what its inputs give than the bench, further, or the audit does not know what the bench did; or it is nearer, but
# one element stands out of what is between the two.
for name, err, told, most in (("way-both", 5e3, True, 6e-2), ("way-further", 5e4, True, 6e-2), ("way-one", 5e3, False, 6e-2),
                              ("way-element", 5e3, True, 0.4)):
    s = Stream()
    cause = "computed in 16 bits on the way (of its terms, its sums or its input)"
    a = {"a_audit__ok": False, "a_audit__err": err, "a_audit__limit": 40.0, "a_audit__err_max": 3 * err,
         "a_audit__limit_max": 200.0, "a_audit__cause": cause, "b_audit__ok": False, "b_audit__err": 1e4,
         "b_audit__limit": 40.0, "b_audit__err_max": 3e4, "b_audit__limit_max": 200.0}
    s.op("Functional.bilinear.0.forward", [("x", 1e-8), ("w", 0)],
         [("y", 2e-2, dict(a, emax=most, **({"b_audit__cause": cause} if told else {})))])
    s.write(name)

# Nine products and more that an audit finds far within their limits, and one that it does not; two such.
for name, n in (("usual", 10), ("usual-few", 2)):
    s = Stream()
    for i in range(n + 1):
        a = {"a_audit__ok": i < n, "a_audit__err": 4.0 if i < n else 80.0, "a_audit__limit": 40.0,
             "a_audit__err_max": 9.0, "a_audit__limit_max": 200.0, "b_audit__ok": True, "b_audit__err": 4.0,
             "b_audit__limit": 40.0, "b_audit__err_max": 9.0, "b_audit__limit_max": 200.0}
        s.op(L % i, [("x%d" % i, 1e-7), ("w", 0)], [("y%d" % i, 1e-7, a)])
    s.write(name)

# A counter of a device that computes a part again: one integer, where the pairing is a guess.
for name, more in (("counter", {"sure": 0.7}), ("counter-sure", {})):
    s = Stream()
    one = {"dtype": "i64", "shape": []}
    s.op("Tensor.add_.0.forward", [("0", 0, one)], [("1", 0, one)])
    s.op("Tensor.add_.1.forward", [("1", 0.5, dict(one, m__same=0.0, m__max_abs=1.0, **more))],
         [("2", 0.5, dict(one, m__same=0.0, m__max_abs=1.0, **more))])
    s.write(name)

# What the audit says of three calls of an operator: one cause in all of them, in two, or two causes.
for name, of in (("setting", "ttt"), ("setting-some", "tt."), ("setting-other", "tte")):
    s = Stream()
    for i, c in enumerate(of):
        a = {"a_audit__ok": c == ".", "a_audit__err": 0.5 if c == "." else 900.0, "a_audit__limit": 40.0,
             "a_audit__err_max": 2.0, "a_audit__limit_max": 200.0, "b_audit__ok": True, "b_audit__err": 0.5,
             "b_audit__limit": 40.0, "b_audit__err_max": 2.0, "b_audit__limit_max": 200.0}
        if c != ".":
            a["a_audit__cause"] = "the tanh form of gelu in place of erf" if c == "t" else "a factor"
        s.op(G % i, [("x%d" % i, 0)], [("y%d" % i, 1e-7 if c == "." else 2e-4, a)])
    s.write(name)

# f32 among bf16, each step rounded to bf16: an audit finds the device's own error, within that; the sides
# are further apart, for what came in.
for name, err, cause in (("steps-own", 1.2e4, {}), ("steps-far", 2e5, {}),
                         ("steps-eps", 1.2e4, {"a_audit__cause": "as if eps were 0.001"})):
    s = net(Stream(), noise=1e-3, dtype="bf16")
    a = {"a_audit__ok": False, "a_audit__err": err, "a_audit__limit": 1000.0, "a_audit__err_max": 4 * err,
         "a_audit__limit_max": 5000.0, "b_audit__ok": True, "b_audit__err": 0.5, "b_audit__limit": 40.0,
         "b_audit__err_max": 2.0, "b_audit__limit_max": 200.0}
    s.op("Functional.softmax.0.forward", [("g2", 1e-3, {"dtype": "bf16"})],
         [("p", 1e-2, dict(a, m__max_abs=1e-3, **cause))])
    s.write(name)

s = net(Stream(), gelu=1e-3)  # one fault, and 30 op calls behind it that add error
for i in range(30):
    s.op(A % i, [("in%d" % i, 0), ("other%d" % i, 0)], [("out%d" % i, 1e-3)])
s.write("flood")

# The slope of silu is 1.1: an absolute error grows no further, whatever it is relative to.
for name, most in (("slope", 3.2e-2), ("steeper", 0.12)):
    s = Stream()
    s.op("Functional.layer_norm.0.forward", [("x", 0)], [("h", 5e-7, {"m__max_abs": 3e-2, "b_s__max": 1.0, "b_s__min": 0.0})])
    s.op("Functional.silu.0.forward", [("h", 5e-7, {"m__max_abs": 3e-2, "b_s__max": 1.0, "b_s__min": 0.0})],
         [("y", 5e-7, {"m__max_abs": most, "b_s__max": 1.0, "b_s__min": 0.0})])
    s.write(name)

# A product of which one element is all error beside a flipped sign in another.
for name, e, more in (("factor", 2e-6, {"m__max_abs": 1e-6, "m__max_rel": 900.0}),
                      ("factor-sign", 0.7, {"m__max_abs": 2.0, "m__max_rel": 2.0})):
    s = Stream()
    s.op("Functional.layer_norm.0.forward", [("x", 0)], [("h", 1e-7, {"m__max_rel": 1e3, "b_s__max": 1.0, "b_s__min": -1.0})])
    s.op("Tensor.__mul__.0.forward", [("h", 1e-7, {"m__max_rel": 1e3, "b_s__max": 1.0, "b_s__min": -1.0}), ("k", 0)],
         [("y", e, more)])
    s.write(name)

# Running means of a side that computes again: training makes nothing of them, evaluation does.
for name, e in (("state", 2e-7), ("state-used", 0.1)):
    s = Stream()
    s.op("Functional.batch_norm.0.forward", [("x", 1e-7), ("mean", 0.2), ("var", 0.1)], [("y", e)])
    s.write(name)

s = Stream()  # the gradient of a bias that is zero in exact arithmetic
net(s)
s.op("Functional.linear.0.backward", [("dy", 1e-7, {"shape": (64, 4)})],
     [("dx", 2e-7), ("db", 900.0, {"shape": (4,), "m__rmse": 1e-7, "m__max_abs": 2e-7})])
s.write("zero-gradient")

s = Stream()  # the same, and the incoming gradient has equal bits
net(s)
s.op("Functional.linear.0.backward", [("dy", 0)],
     [("dx", 2e-7), ("db", 900.0, {"shape": (4,), "m__rmse": 1e-9, "m__max_abs": 2e-9})])
s.write("zero-gradient-exact")

s = Stream()  # a module, and the gradients of its parameters, hand on what ops made
net(s)
s.op("Functional.linear.0.backward", [("dy", 1e-7)],
     [("dx", 2e-7), ("db", 900.0, {"shape": (4,), "m__rmse": 1e-7, "m__max_abs": 2e-7, "other": "db~d"})])
s.tensor("Module.fc.Linear.0.backward", "out", "0", "db", 900.0, other="db~d")
s.tensor("Module.fc.Linear.0.grad", "out", "bias", "db", 900.0, other="db~d")
s.tensor("Module.fc.Linear.1.grad", "out", "bias", "hidden", 900.0, shape=(4,))
s.write("handed-on")

s = Stream()  # an f32 op in a network of bf16
net(s, noise=1e-3, dtype="bf16")
s.op("Torch.exp.0.forward", [("x32", 0)], [("y32", 1e-4)])
s.write("f32-in-bf16")
# What an optimizer is to change, behind gradients in 16 bits: nobody made it, and the network's weights are equal.
for name, off in (("stepped", 0.02), ("stepped-little", 3e-3)):
    s = net(Stream(), dtype="bf16", noise=1e-3)
    s.op("Functional.linear.2.backward", [("g", 2e-3, {"dtype": "bf16"})], [("gx", 5e-3, {"dtype": "bf16"})])
    for at, (value, e) in {"0.0": ("m0", 0.0), "0.1": ("m1", off), "1.0": ("g0", 5e-3), "1.1": ("g1", 5e-3)}.items():
        s.tensor("Functional.adam.0.forward", "in", at, value, e)
    s.write(name)

s = Stream()  # a small part of what was moved looks worse than the whole
s.op(L % 0, [("x", 0), ("w", 0)], [("l", 1e-7)])
s.op("Tensor.__getitem__.0.forward", [("l", 1e-7)], [("part", 1e-4, {"m__max_abs": 1e-7})])
s.op("Tensor.__mul__.0.forward", [("l", 1e-7, {"m__max_rel": 0.1}), ("c", 0)], [("p", 1e-4, {"m__max_rel": 0.1})])
s.op("Tensor.__sub__.0.forward", [("l", 1e-7), ("c", 0)], [("d", 1e-4, {"m__max_abs": 3e-7})])
s.write("light")

for name, e in (("handed-through", 4e-6), ("not-handed-through", 1.2e-5)):
    s = Stream()  # the bench's gradient passes an addition unchanged
    net(s)
    s.op("Tensor.__add__.0.backward", [("dy", 4e-6)], [("dy", e), ("dy", 4e-6)])
    s.write(name)

# The norm of one number is that number, or not, where that is negative: who takes it takes none of the norm.
for name, other in (("norm-of-one", "g~0.9"), ("norm-of-one-other", "f~0.9")):
    s = Stream()
    net(s)
    s.op("Torch.norm.0.forward", [("g", 0.9, {"shape": (1,)})], [("g", 1e-7, {"shape": ()})])
    s.op("Tensor.mul_.0.forward", [("g", 0.9, {"shape": (1,), "other": other}), ("c", 0)], [("s", 0.9, {"shape": (1,)})])
    s.write(name)

for name, pos in (("out-given", "out"), ("out-other", "input2")):
    s = Stream()  # what stood in the tensor that an operator fills, on the device before, on the bench after it
    net(s, noise=1e-5, linears=4)
    s.op("Torch.div.0.forward", [("g3", 1e-5)], [])
    s.tensor("Torch.div.0.forward", "kw", pos, "q", 0.9)
    s.tensor("Torch.div.0.forward", "out", "0", "q", 1e-5)
    s.write(name)

Z = {"shape": (1,), "b_s__min": 0.0, "b_s__max": 0.0, "b_s__norm": 0.0}
for name, e in (("zeros", 1e-9), ("zeros-not", 0.3)):
    s = Stream()  # a gradient that is zero on the bench, and so is something else before it
    net(s)
    s.op("Functional.linear.0.backward", [("dy", 1e-7)], [("dx", 2e-7), ("nothing", 0, Z)])
    s.op("Tensor.add.0.forward", [("nothing", 9e6, dict(Z, m__rmse=e, m__max_abs=e))],
         [("sum", 9e6, dict(Z, m__rmse=e, m__max_abs=e))])
    s.write(name)

# An addition cannot make more of its inputs' errors; what other ranks hold, or a factor, may.
for name, key in (("added", A % 0), ("added-scaled", "Torch.add.0.forward"), ("gathered", "Distributed.all_gather.0.forward")):
    s = Stream()
    net(s, noise=8e-5, linears=4)
    s.tensor(key, "in", "0", "g3", 8e-5)
    if name == "added-scaled":
        s.put(key, "kw", "alpha", {"type": "int", "value": 2}, {"type": "int", "value": 2}, "arg", {"m.mode": "value", "m.equal": True})
    s.tensor(key, "out", "0", "sum", 3e-4)
    s.write(name)

# In bf16, equal inputs leave one rounding at the end; inputs that differ, one element alone, may show more.
# The output is n times 1.0 on the bench, and in `off` places the next number of bf16 on the device: there
# |a - b| / (|b| + median |b|) is 2^-7 / 2.
for name, e, shape, off in (("one-rounding", 0, (2, 4), 8), ("one-rounding-noise", 1e-5, (2, 4), 8),
                            ("one-rounding-here-and-there", 0, (2, 4), 2), ("one-rounding-one", 0, (1,), 1)):
    s = Stream()
    net(s, dtype="bf16", noise=1e-3)
    rms = 2 ** -8 * (off / math.prod(shape)) ** .5
    s.op("Functional.layer_norm.0.forward", [("h", e, {"dtype": "bf16"})],
         [("n", rms, {"dtype": "bf16", "shape": shape, "emax": 2 ** -8})])
    s.write(name)
net(Stream(), noise=1.2e-3, linears=4).write("rougher-than-tf32")

s = Stream()  # the bench's attention is one call: it takes k where the device's matmul takes k^T
s.put("Torch.matmul.0.forward", "in", "1", {"dtype": "f32", "shape": [4, 4], "s.hash": h("kt")},
      {"dtype": "f32", "shape": [4, 4], "s.hash": h("k"), "key": "NPU.npu_fusion_attention.0.forward"}, "tensor",
      {"how": "fused", "sure": 0.6, "m.mode": "tensor", "m.err_rms": 0.7, "m.err_max": 2.0, "m.nonfinite": 0})
s.put("Torch.matmul.1.forward", "out", "0", {"dtype": "f32", "shape": [4, 4], "s.hash": h("o")},
      {"dtype": "f32", "shape": [4, 4], "s.hash": h("o"), "key": "NPU.npu_fusion_attention.0.forward"}, "tensor",
      {"how": "fused", "sure": 0.6, "m.mode": "tensor", "m.err_rms": 0.0, "m.err_max": 0.0, "m.nonfinite": 0})
s.write("fused")

# A weight of f32 beside tensors of bf16 has no rounding of theirs; nor has what the first op call is given
# more than a cast; of other tensors nobody knows.
low = {"dtype": "bf16"}
for name, w, x in (("weight-own", 2e-3, 0), ("weight-cast", 0, 2e-3), ("batch", 0, 5e-2)):
    s = Stream()
    s.op(L % 0, [("x", x, low), ("w", w)], [("y", max(w, x), low)])
    for i in (1, 2):
        s.op(L % i, [("y", max(w, x), low), ("w%d" % i, 0)], [("y%d" % i, max(w, x), low)])
    s.write(name)
s = Stream()
s.op(L % 0, [("x", 1e-3, low), ("w", 0)], [("y", 1e-3, low)])
s.op(L % 1, [("other", 5e-2, low), ("w1", 0)], [("y1", 5e-2, low)])
s.write("batch-later")

# a + alpha b: the error of b counts alpha times.
for name, alpha in (("alpha", -0.001), ("alpha-one", -1.0)):
    s = net(Stream(), noise=8e-5, linears=4)
    key = "Tensor.add_.0.forward"
    s.tensor(key, "in", "0", "p", 0, b_s__max=1.0, b_s__min=0.0)
    s.tensor(key, "in", "1", "g", 8e-5, m__max_abs=8e-5, b_s__max=1.0, b_s__min=0.0)
    s.put(key, "kw", "alpha", {"type": "float", "value": alpha}, {"type": "float", "value": alpha}, "arg",
          {"m.mode": "value", "m.equal": True})
    s.tensor(key, "out", "0", "q", 4e-5, m__max_abs=6e-5, b_s__max=1.0, b_s__min=0.0)
    s.write(name)

# What only adds rounds once, and the audit's limit needs no margin for more.
for name, key, err in (("once-twice", "Tensor.__add__.0.forward", 3.6), ("once-cast", "Tensor.__add__.0.forward", 2.1),
                       ("often-twice", "Functional.mish.0.forward", 3.6),
                       ("often-told", "Functional.gelu.0.forward", 3.6)):
    s = Stream()
    s.op(key, [("x", 2e-3, low), ("y", 2e-3, low)],
         [("z", 4e-3, dict(low, a_audit__ok=False, a_audit__err=err, a_audit__limit=1.6, a_audit__err_max=err,
                           a_audit__limit_max=4.0, b_audit__ok=True, b_audit__err=0.5, b_audit__limit=1.6,
                           b_audit__err_max=1.0, b_audit__limit_max=4.0))])
    s.write(name)

# Near the limit that has room for the roughest kernels, and the bench is not: how far the sides are apart decides.
for name, bench in (("rough-alone", 0.3), ("rough-both", 20.0)):
    s = Stream()
    s.op("Torch.exp.0.forward", [("x", 0.0, {})],
         [("z", 3.5e-6, dict(a_audit__ok=True, a_audit__err=36.0, a_audit__limit=40.0, a_audit__err_max=80.0,
                           a_audit__limit_max=200.0, b_audit__ok=True, b_audit__err=bench, b_audit__limit=40.0,
                           b_audit__err_max=1.0, b_audit__limit_max=200.0))])
    s.write(name)

# Attention that the bench computes in parts; its inputs agree, and what the device made of them is right
# for these. As far off as other numbers are, they stood in other places; else they explain it.
for name, e in (("fused-otherwise", 1.4), ("fused-right", 0.4)):
    s = Stream()
    for i in range(3):
        s.tensor("NPU.npu_fusion_attention.0.forward", "in", str(i), "qkv%d" % i, 1e-5, how="fused", sure=0.5)
    s.tensor("NPU.npu_fusion_attention.0.forward", "out", "0", "o", e, how="fused", sure=0.5, a_audit__ok=True,
             a_audit__err=5.0, a_audit__limit=40.0, a_audit__err_max=20.0, a_audit__limit_max=200.0)
    s.write(name)

s = Stream()  # a single element is wrong
net(s, gelu=1e-6, emax=1e-3)
s.write("element")

s = Stream()  # an input that was not compared may have been that bad; a fused one is not the maker's
net(s)
s.tensor("Functional.silu.0.forward", "in", "0", "?", sides="a")
s.tensor("Functional.silu.0.forward", "out", "0", "s", 1e-5)
s.tensor("NPU.npu_swiglu.0.forward", "in", "0", "g0", 5e-6, other="elsewhere", how="fused", sure=0.5)
s.write("unseen")

s = Stream()  # uninitialised, and filled
s.op("Torch.empty.0.forward", [], [("e", 5.0)])
s.op("Tensor.fill_.0.forward", [("e", 5.0)], [("f", 0)])
s.write("empty")

# A backward call that is wrong, one that only carries what its forward saved.
s = Stream(stack=True)
net(s, gelu=1e-3)
s.op("Functional.gelu.1.backward", [("dg", 1e-7)], [("dl", 1e-3)])
s.stack = "00000000000000bb"
s.op("Functional.gelu.0.backward", [("dl2", 1e-7)], [("dl0", 0.4)])
s.write("backward-later")


def stats(name, values, dtype="f32", key=G):
    s = Stream(task="statistics")
    for i, (a, b) in enumerate(values):
        for io, k, (x, y) in (("in", "i", ((1.0, -1.0, 0.25, 2.0),) * 2), ("out", "o", (a, b))):
            f = {}
            for p, v in (("a.", x), ("b.", y)):
                f.update(s.side(p, key % i, io, "0", "tensor", dict(
                    {"dtype": dtype, "shape": [2, 4], "type": "torch.Tensor"},
                    **{"stat." + n: w for n, w in zip(("max", "min", "mean", "norm"), v)})))
            s.r.append(("pair", dict({"name": f["a.name"], "how": "name", "m.mode": "statistics"}, **f)))
            s.seq += 1
    s.write(name)


stats("stat-clean", [((3.0, -3.0, 0.0, 6.0), (3.0, -3.0, 1e-9, 6.000001))])
stats("stat-bf16", [((3.0, -3.0, 0.0, 6.09), (3.0, -3.0, 0.001, 6.0))], dtype="bf16")
stats("stat-culprit", [((3.0, -3.0, 0.0, 6.0), (3.0, -3.0, 0.0, 6.0)), ((3.0, -3.0, 0.0, 6.0), (3.0, -3.0, 0.0, 6.06))])


def stat_input(name, dtype, x, y):
    """gelu.1 is given something else (x) than gelu.0 made, and makes y."""
    s = Stream(task="statistics")
    for key, io, a, b in ((G % 0, "in", 2.0, 2.0), (G % 0, "out", 6.0, 6.0), (G % 1, "in", x, 6.0), (G % 1, "out", y, 6.0)):
        m = [{"dtype": dtype, "shape": [2, 4], "type": "torch.Tensor", "stat.max": v / 2, "stat.min": -v, "stat.mean": 0.1, "stat.norm": v}
             for v in (a, b)]
        s.put(key, io, "0", m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


def stat_bias(name, device):
    """linear's backward: the gradient that comes in, and that of the bias, which is zero in exact
    arithmetic: the sum of 64 terms of size 1, with a rounding of 1e-7 each."""
    s = Stream(task="statistics")
    for io, pos, shape, a, b in (("in", "0", [64, 8], 22.6, 22.6), ("out", "2", [8], device, 1e-7)):
        n = math.prod(shape)
        m = [{"dtype": "f32", "shape": shape, "type": "torch.Tensor", "stat.max": v / n ** .5, "stat.min": -v / n ** .5,
              "stat.mean": 0.0, "stat.norm": v} for v in (a, b)]
        s.put("Functional.linear.0.backward", io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


stat_bias("stat-bias", 3e-6)
stat_bias("stat-bias-wrong", 3.0)


def stat_flip(name, given, off):
    """batch_norm's backward: an incoming gradient of 4096 elements of 0.05 and of 0.3 at most, of which
    one may be there or not, and that of a bias, which sums up 512 of them."""
    s = Stream(task="statistics")
    for io, pos, shape, b, a in (("in", "0", [8, 8, 64], (0.3, -0.3, 0.0, 3.2), (0.3, -0.3, 0.0, 3.2 * (1 + given))),
                                 ("out", "4", [8], (1.3, -1.3, 0.1, 3.0), (1.3 - off, -1.3, 0.1, 3.0))):
        m = [dict({"dtype": "f16", "shape": shape, "type": "torch.Tensor"},
                  **{"stat." + n: w for n, w in zip(("max", "min", "mean", "norm"), v)}) for v in (a, b)]
        s.put("Functional.batch_norm.0.backward", io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


def stat_kink(name, kinks, off):
    """A linear layer's weight gradient that is off by so much in one element; kinks: of relus behind it,
    which were given errors of 1e-6."""
    s = Stream(task="statistics")
    e = 1e-6

    def put(key, io, pos, shape, top, more):
        top *= 1.0123456   # of more than six digits
        m = [{"dtype": "f32", "shape": shape, "type": "torch.Tensor", "stat.max": top * (1 + x), "stat.min": -top,
              "stat.mean": 0.0, "stat.norm": 0.25 * top * math.prod(shape) ** .5} for x in (more, 0)]
        s.put(key, io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
    put("Functional.linear.9.forward", "in", "0", [32, 8], 3.25, 0)
    put("Functional.linear.9.forward", "in", "1", [8, 8], 0.25, 0)
    put("Functional.linear.9.forward", "out", "0", [32, 8], 2.25, e)
    for i in range(kinks):
        put("Functional.relu.%d.forward" % i, "in", "0", [32, 8], 3.0 + i, e)
        put("Functional.relu.%d.forward" % i, "out", "0", [32, 8], 4.5 + i, e)
    for i in range(kinks)[::-1]:
        put("Functional.relu.%d.backward" % i, "in", "0", [32, 8], 0.3 + 0.1 * i, e)
        put("Functional.relu.%d.backward" % i, "out", "0", [32, 8], 0.3 + 0.1 * i, e)
    put("Functional.linear.9.backward", "in", "0", [32, 8], 0.3, e)
    put("Functional.linear.9.backward", "out", "1", [8, 8], 2.0, off)
    s.write(name)


# 2 root e: 0.002 behind one relu, 0.004 behind four.
for name, kinks, off in (("stat-kink", 1, 0.0018), ("stat-kink-none", 0, 0.0018), ("stat-kink-more", 1, 0.0036),
                         ("stat-kinks", 4, 0.0036)):
    stat_kink(name, kinks, off)
# A mean and a norm as they are rounded to bf16, and a max, which is an element.
for name, v in (("stat-rounded", (3.0, -3.0, 1.0, 6.135)), ("stat-rounded-max", (3.116, -3.0, 1.0, 6.0))):
    stats(name, [((3.0, -3.0, 1.0, 6.0), (3.0, -3.0, 1.0, 6.0)), (v, (3.0, -3.0, 1.0, 6.0))], "bf16")
stat_flip("stat-flip", 1e-3, 0.25)
stat_flip("stat-flip-none", 1e-5, 0.25)
stat_flip("stat-flip-more", 1e-3, 0.6)
# Weights that were cast to f16: their norm is off by 1 %, as torch sums up 2048 squares in f16; a
# max that is off by 1 % is no such rounding.
for name, top, norm in (("stat-norm-f16", 3.0, 44.5), ("stat-norm-f16-max", 3.03, 44.5)):
    s = Stream(task="statistics")
    side = {"shape": [2048], "type": "torch.Tensor", "stat.min": -3.0, "stat.mean": 0.0}
    for i, (t, v) in enumerate(((3.0, 45.0), (3.0, 45.0), (top, norm))):
        s.put("Functional.linear.%d.forward" % i, "in", "1", dict(side, dtype="f16", **{"stat.max": t, "stat.norm": v}),
              dict(side, dtype="f32", **{"stat.max": 3.0, "stat.norm": 45.0}), "tensor", {"m.mode": "statistics"})
    s.write(name)
stat_input("stat-input", "f32", 9.0, 9.0)
# 0.5 %: 10 roundings to f16 (2^-11 at most), 1.3 to bf16 (2^-8).
stat_input("stat-input-f16", "f16", 6.03, 6.0)
stat_input("stat-input-bf16", "bf16", 6.03, 6.0)
stats("stat-inf", [((INF, -3.0, 0.0, 6.0), (3.0, -3.0, 0.0, 6.0))])
stats("stat-norm-inf", [((3.0, -3.0, 0.0, INF), (3.0, -3.0, 0.0, 6.0))])

s = Stream(task="md5")
for i, (ein, eout) in enumerate(((True, True), (True, False), (False, False))):
    for io, eq in (("in", ein), ("out", eout)):
        a = {"dtype": "f32", "shape": [2], "stat.crc32": "0000000%d" % i}
        b = {"dtype": "f32", "shape": [2], "stat.crc32": "0000000%d" % (i if eq else 9)}
        s.put(G % i, io, "0", a, b, "tensor", {"m.mode": "md5", "m.equal": eq})
s.put(G % 3, "out", "0", {"dtype": "f32", "shape": [2], "stat.crc32": "00000000"}, None, "tensor", {"m.mode": "md5"})
s.write("md5")

for rank, e, skip in ((0, 1e-2, 9), (1, 1e-3, 0)):
    s = Stream(rank=rank)
    s.seq = skip
    net(s, gelu=e)
    s.write("rank%d" % rank)

s = Stream()  # without an op call: files
for name, e in (("a.npy", 0), ("b.npy", 0.1), ("c.npy", 0.5)):
    f = {"name": name}
    for p in ("a.", "b."):
        f.update({p + "kind": "tensor", p + "name": name, p + "dtype": "f32", p + "shape": [4], p + "seq": s.seq})
    f.update({"how": "name", "m.err_rms": float(e), "m.err_max": float(e), "m.nonfinite": 0, "m.mode": "tensor"})
    s.r.append(("pair", f))
    s.seq += 1
s.write("files")

s = Stream(stack=True)  # nothing wrong, but one-sided, another shape, another dtype, not measured, incomplete
net(s)
s.tensor("Torch.relu.0.forward", "out", "0", "r", sides="a")
s.tensor("Torch.tanh.0.forward", "out", "0", "t", sides="b")
s.put(A % 0, "in", "0", {"dtype": "f32", "shape": [2, 4]}, {"dtype": "f32", "shape": [4, 4]}, "tensor",
      {"note": "shape", "m.skip": "shapes differ"})
s.tensor(A % 0, "out", "0", "a", 1e-7, note="dtype,requires_grad")
s.put(A % 1, "in", "0", {"dtype": "f32", "shape": [2]}, {"dtype": "f32", "shape": [2]}, "tensor", {"m.skip": "no payload"})
s.put(A % 1, "in", "1", {"dtype": "f32", "shape": [2], "err": "file is missing"}, {"dtype": "f32", "shape": [2]}, "tensor", {})
s.write("doubtful", extra=[("finding", {"what": "unmatched", "text": "step 7 has no partner"})])

s = Stream()
s.put(A % 0, "out", "0", {"dtype": "f32", "shape": [2]}, {"dtype": "f32", "shape": [2]}, "tensor", {})
s.write("unmeasured")
Stream().write("nothing")
net(Stream(), gelu=1e-3).write("unknown-kinds", extra=[("x-mine", {"name": "kept"}), ("novel", {"k": 1})])


# --- one dump alone ---

def one(s, key, io, pos, **more):
    f = s.side("", key, io, pos, "tensor", dict({"dtype": "f16", "shape": [2]}, **more))
    kind = "arg" if "value" in f else "tensor"
    f.pop("kind")
    s.r.append((kind, f))
    s.seq += 1


def overflow(name, nan=0, rank=None, late=0):
    s = Stream(stack=True, rank=rank)
    s.seq = late
    one(s, "Tensor.masked_fill.0.forward", "in", "0", **{"s.nan": 0, "s.posinf": 0, "s.neginf": 0})
    one(s, "Tensor.masked_fill.0.forward", "in", "1", type="float", value=-INF)
    one(s, "Tensor.masked_fill.0.forward", "out", "0", **{"s.nan": 0, "s.posinf": 0, "s.neginf": 4})
    one(s, "Functional.softmax.0.forward", "in", "0", **{"s.nan": 0, "s.posinf": 0, "s.neginf": 4})
    one(s, "Functional.softmax.0.forward", "out", "0", **{"s.nan": nan, "s.posinf": 0, "s.neginf": 0})
    if nan is None:
        s.r.pop()
    one(s, "Torch.empty.0.forward", "out", "0", **{"s.nan": 3, "s.posinf": 0, "s.neginf": 0})
    if name != "overflow-none":
        one(s, "Tensor.__mul__.0.forward", "in", "0", **{"stat.max": 400.0, "stat.min": -1.0})
        one(s, "Tensor.__mul__.0.forward", "out", "0", **{"stat.max": INF, "stat.min": -1.0})
    s.write(name)


overflow("overflow-none")
for name, errors in (("alone-barely", (60.0, 79.0)), ("alone-clearly", (60.0, 81.0))):  # of at most 40, and 200 of one
    s = Stream()
    for i, err in enumerate(errors):
        one(s, L % i, "in", "0", dtype="f32")
        one(s, L % i, "out", "0", dtype="f32", **{"audit.ok": False, "audit.err": err, "audit.limit": 40.0,
                                                  "audit.err_max": 3 * err, "audit.limit_max": 200.0})
    s.write(name)
fine = {"s.nan": 0, "s.posinf": 0, "s.neginf": 0, "s.sat": 0}
for name in ("overflow-asked-for", "overflow-cast", "overflow-saturated", "overflow-full-mask"):
    s = Stream()
    if name == "overflow-asked-for":  # the recorder did not keep the number
        one(s, "Tensor.masked_fill.0.forward", "in", "0", **fine)
        one(s, "Tensor.masked_fill.0.forward", "in", "1", **dict(fine, dtype="bool"))
        one(s, "Tensor.masked_fill.0.forward", "out", "0", **dict(fine, **{"s.neginf": 4}))
        one(s, "Torch.full.0.forward", "out", "0", **{"stat.max": -INF, "stat.min": -INF})
    if name == "overflow-cast":
        one(s, "Tensor.to.0.forward", "in", "0", **dict(fine, dtype="f32"))
        one(s, "Tensor.to.0.forward", "out", "0", **dict(fine, **{"s.posinf": 1}))
    if name == "overflow-saturated":
        one(s, "Tensor.__mul__.0.forward", "in", "0", **fine)
        one(s, "Tensor.__mul__.0.forward", "out", "0", **dict(fine, **{"s.sat": 3}))
        one(s, "Functional.gelu.0.forward", "in", "0", **dict(fine, **{"s.sat": 3}))
        one(s, "Functional.gelu.0.forward", "out", "0", **dict(fine, **{"s.sat": 3}))
    if name == "overflow-full-mask":  # masks of finfo(float16).min
        one(s, "Torch.mul.0.forward", "in", "0", **fine)
        one(s, "Torch.mul.0.forward", "in", "1", type="float", value=-65504.0)
        one(s, "Torch.mul.0.forward", "out", "0", **{"stat.max": 0.0, "stat.min": -65504.0})
        one(s, "Tensor.__add__.0.forward", "in", "0", **{"stat.max": 0.0, "stat.min": -65504.0})
        one(s, "Tensor.__add__.0.forward", "in", "1", **{"stat.max": 2.0, "stat.min": -1.0})
        one(s, "Tensor.__add__.0.forward", "out", "0", **{"stat.max": 2.0, "stat.min": -65504.0})
    s.write(name)
overflow("overflow")
overflow("overflow-nan", nan=2)
overflow("overflow-rank0", rank=0, late=50)
overflow("overflow-rank1", nan=1, rank=1)
s = Stream()
one(s, "Functional.linear.0.forward", "in", "0", **{"stat.max": 1.0, "stat.min": -1.0})
one(s, "Functional.linear.0.forward", "in", "1", **{"stat.max": NAN, "stat.min": NAN})
one(s, "Functional.linear.0.forward", "out", "0", **{"stat.max": NAN, "stat.min": NAN})
s.write("overflow-weight")
s = Stream()   # what memory held that nobody had set
one(s, "Tensor.fill_.0.forward", "in", "0", **{"stat.max": NAN, "stat.min": NAN})
one(s, "Tensor.fill_.0.forward", "in", "1", type="float", value=1.0)
one(s, "Tensor.fill_.0.forward", "out", "0", **{"stat.max": 1.0, "stat.min": 1.0})
s.write("overflow-unset")
for name, filled in (("overflow-filled", 1.0), ("overflow-passed", NAN)):   # what broadcast finds, and what it leaves
    s = Stream()
    one(s, "Distributed.broadcast.0.forward", "in", "0", **{"stat.max": NAN, "stat.min": NAN})
    one(s, "Distributed.broadcast.0.forward", "out", "0", **{"stat.max": filled, "stat.min": -filled})
    s.write(name)
for name in ("overflow-moved", "overflow-used"):   # what nobody had set, and who computes with it
    s = Stream()
    for io in ("in", "out"):
        one(s, "Tensor.view.0.forward", io, "0", **{"stat.max": NAN, "stat.min": NAN})
    for io in ("in", "out") if name == "overflow-used" else ():
        one(s, "Tensor.mul.0.forward", io, "0", **{"stat.max": NAN, "stat.min": NAN})
    s.write(name)


# --- msprobe's rules: rows as accmetric --preset msprobe leaves them ---

def row(s, key, io, pos, m, a=(), b=(), kind="tensor"):
    base = {"tensor": {"type": "torch.Tensor", "dtype": "f32", "dtype.raw": "torch.float32", "shape": [2], "requires_grad": True,
                       "stat.max": 1.0, "stat.min": 0.0}, "arg": {"type": "int", "value": 1}}[kind]
    s.put(key, io, pos, dict(base, **dict(a)), None if b is None else dict(base, **dict(b)), kind, m)


def ratios(s, key, rin, rout, cin=1.0, cout=1.0):
    row(s, key, "in", "0", {"m.mode": "tensor", "m.thousandth": rin, "m.cosine": cin})
    row(s, key, "in", "1", {"m.mode": "tensor", "m.thousandth": "unsupported", "m.cosine": "unsupported"})
    row(s, key, "out", "0", {"m.mode": "tensor", "m.thousandth": 1.0, "m.cosine": 1.0})
    row(s, key, "out", "1", {"m.mode": "tensor", "m.thousandth": rout, "m.cosine": cout})


s = Stream()
t = {"m.mode": "tensor"}
ratios(s, "Torch.a.0.forward", 0.95, 0.05)            # one thousandth
ratios(s, "Torch.a.1.forward", 0.95, 0.3)             # below the 0.6 of the message, above the real 0.1
ratios(s, "Torch.a.2.forward", 0.85, 0.05)            # the input is no better than 0.9
ratios(s, "Torch.a.3.forward", 1.0, 0.05, 0.99, 0.8)  # and the cosine
ratios(s, "Torch.empty.0.forward", 0.95, 0.05)        # no rule
ratios(s, "Distributed.all_to_all_single.0.forward", 0.95, 0.05)  # no rule of inputs and outputs
row(s, "Torch.b.0.forward", "in", "0", t, {"stat.max": INF})
row(s, "Torch.b.0.forward", "in", "1", t, {"stat.max": INF}, {"stat.min": NAN})
row(s, "Torch.b.0.forward", "in", "2", t, {"requires_grad": False})
row(s, "Torch.b.0.forward", "in", "3", t, {"dtype.raw": "torch.float16"})
row(s, "Torch.b.0.forward", "in", "4", t, {"shape": [1, 2]})
row(s, "Torch.b.0.forward", "in", "5", t, {"value": 2}, kind="arg")
row(s, "Torch.b.0.forward", "in", "6", t, {"requires_grad": False, "shape": [3], "stat.min": NAN})
row(s, "Torch.b.0.forward", "in", "7", t, {"stat.max": NAN}, None)
row(s, "Torch.b.0.forward", "out", "0", t, {}, None)
s.write("msprobe-tensor")

s = Stream(task="statistics")


def norms(key, nin, nout):
    for io, l in (("in", nin), ("out", nout)):
        for i, v in enumerate(l):
            row(s, key, io, str(i), {"m.mode": "statistics", "m.norm_relerr": v})


norms("Torch.a.0.forward", ["0", "5.0%"], ["0", "60.0%"])  # relative; growth on the first output
norms("Torch.a.1.forward", ["20.0%"], ["60.0%"])           # nothing
norms("Torch.a.2.forward", ["inf"], ["inf"])               # an inf input does not count, an inf output does
norms("Torch.a.3.forward", ["0"], ["Nan", "9.0%"])         # nothing: 0 -> 0.09
norms("Torch.a.4.forward", ["0.001%"], ["0.02%"])          # growth
s.write("msprobe-stat")

# The right numbers in the wrong places: a fault in what comes out, a convention in a weight and
# between shapes or operators.
M = {"m__layout": "a.permute(1,0)"}
for name, where, more in (("misplaced", "out", {}), ("misplaced-weight", "in", {"shape": (4, 4)}),
                          ("misplaced-shape", "out", {"note": "shape"})):
    s = Stream()
    s.op(L % 0, [("x", 0.0), ("w", 1e-8, dict(M, **more) if where == "in" else {})], [("l", 1e-7)])
    s.op(G % 0, [("l", 1e-7)], [("g", 1e-7, dict(M, **more) if where == "out" else {})])
    s.op(A % 0, [("g", 1e-7)], [("y", 1e-7)])
    s.write(name)

# The same where noise is large, and where absolute errors are small.
low = {"dtype": "bf16"}
LN = "Functional.layer_norm.%d.forward"
for name, key in (("noise", LN % 3), ("kink", "Functional.relu.0.backward"), ("small", "Tensor.contiguous.0.forward")):
    s = Stream()
    e = 0.0
    for i, grown in enumerate((0.004, 0.05, 0.4)):
        s.op(LN % i, [("g%d" % i, e, low)], [("g%d" % (i + 1), grown, low)])
        e = grown
    s.op(key, [("g3", e, low)], [("y", 0.4, dict(M, **low))])
    s.write("misplaced-" + name)

# Ranks that communicate: rank 1 goes wrong late by its own order, but before rank 0 receives it.
AR, SEND, RECV = "Distributed.all_reduce.%d.forward", "Distributed.send.0.forward", "Distributed.recv.0.forward"
for rank in 0, 1:
    s = Stream(rank=rank)
    if rank == 1:
        net(s, gelu=1e-3)
    s.op(AR % 0, [("part%d" % rank, 1e-3 if rank == 1 else 1e-7)], [("all", 1e-3)])
    s.op(G % 7, [("all", 1e-3)], [("gall", 1e-3)])
    s.write("collective%d" % rank)
for rank in 0, 1:
    s = Stream(rank=rank)
    if rank == 0:
        net(s, gelu=1e-3)
        s.tensor(SEND, "in", "0", "act", 1e-3)
        s.arg(SEND, "1", 1, 1)
    else:
        s.arg(RECV, "1", 0, 0)
        s.tensor(RECV, "out", "0", "act", 1e-3)
        s.op(L % 9, [("act", 1e-3), ("w9", 0.0)], [("z", 1e-3)])
    s.write("stage%d" % rank)
for rank in range(3):  # the same op is at fault on all
    net(Stream(rank=rank), gelu=1e-3).write("same%d" % rank)

# Cases of the field.
s = Stream(stack=True)  # other random numbers in the same mode
net(s)
s.op("Functional.dropout.0.forward", [("g2", 1e-7)], [("d", 0.5)])
s.write("dropout-seed")
s = Stream(stack=True)  # a table that the CPU computed
net(s)
s.op("Torch.einsum.0.forward", [("t", 0.0), ("inv_freq", 1e-3)], [("e", 1e-3)])
s.write("constant")
GET, PERM = "Tensor.__getitem__.%d.backward", "Tensor.permute.%d.backward"
for task in "tensor", "statistics":  # an all-zero gradient; what takes it comes much later
    s = Stream(task=task)
    zero = {"s__norm": 0.0, "s__min": 0.0, "s__max": 0.0}
    if task == "tensor":
        net(s)
        s.op("Functional.linear.9.backward", [("gy", 1e-7)], [("gx", 1e-7)])
        for key, io, v in ((GET % 490, "in", "gx"), (GET % 490, "out", "gq"), ("Functional.softmax.3.backward", "in", "gx"),
                           ("Functional.softmax.3.backward", "out", "gs"), (PERM % 0, "in", "gq"), (PERM % 0, "out", "gp")):
            bad = v in ("gq", "gp")
            s.tensor(key, io, "0", v, 1.0 if bad else 1e-7, other="zeros", a_s__norm=0.0 if bad else 2.8, b_s__norm=2.8)
    else:
        for key, io, v in ((GET % 490, "in", 1.0), (GET % 490, "out", 2.0), ("Functional.softmax.3.backward", "in", 1.0),
                           ("Functional.softmax.3.backward", "out", 3.0), (PERM % 0, "in", 2.0), (PERM % 0, "out", 2.5)):
            bad = v in (2.0, 2.5)
            st = lambda x: {"dtype": "f32", "shape": [2, 4], "stat.max": x, "stat.min": -x, "stat.mean": x / 4, "stat.norm": 2 * x}
            s.put(key, io, "0", st(0.0 if bad else v * (1 + 1e-8)), st(v), "tensor", {"m.mode": "statistics"})
    s.write("all-zero" + ("-stat" if task == "statistics" else ""))


def sums(s, key, io, pos, value, equal):  # checksums only
    side = lambda t: {"dtype": "f32", "shape": [2, 4], "stat.crc32": "%08x" % (zlib.crc32(t.encode()))}
    s.put(key, io, pos, side(value if equal else value + "~"), side(value), "tensor", {"m.mode": "md5", "m.equal": equal})


for name, noise, bad in (("mixed", 1e-7, 1e-3), ("mixed-noise", 1e-7, None), ("mixed-equal", 0.0, None)):
    s = Stream()
    s.tensor(L % 0, "in", "0", "x", 0.0)
    s.tensor(L % 0, "out", "0", "l0", noise)
    sums(s, "Torch.tanh.0.forward", "in", "0", "l0", noise == 0)
    sums(s, "Torch.tanh.0.forward", "out", "0", "t0", False)
    if noise:
        s.tensor(G % 0, "in", "0", "t0", noise)
        s.tensor(G % 0, "out", "0", "g0", bad or noise)
    s.write(name)


# A factor beneath the rounding of single elements: of n numbers, the device's are 1 + slope times the
# bench's, and a rest of an rms of 1.5 u of bf16. So much as these may leave of it, or come in with it.
def common(name, given, own, n, rest=3e-3):
    s = Stream()
    for i in range(4):
        x, y = ("x", "h") if i == 3 else ("x%d" % i, "h%d" % i)
        for io, value, k in (("in", x, given if i == 3 else 0.0), ("out", y, own if i == 3 else 0.0)):
            norm = n ** .5
            off = (k * k + rest * rest) ** .5
            s.tensor("Tensor.abs.%d.forward" % i, io, "0", value, off / 2, dtype="bf16", shape=(n,), emax=2 * off,
                     m__rmse=off, m__max_abs=3 * off, a_s__norm=norm * ((1 + k) ** 2 + rest * rest) ** .5,
                     b_s__norm=norm, b_s__max=2.0, b_s__min=-2.0)
    s.write(name)


common("common-factor", 0.0, 0.01, 4096)
common("common-factor-given", 0.01, 0.01, 4096)
common("common-factor-few", 0.0, 0.01, 36)
common("common-factor-none", 0.0, 0.002, 4096)


# A gradient that the optimizer takes is the sum of two that cancel but for 2 % of an element: in its own
# unit it is as far off as they are.
def cancelled(name, off):
    s = Stream()
    for i in range(2):
        s.tensor("Functional.linear.%d.backward" % i, "in", "0", "g%d" % i, 1e-3, dtype="bf16", shape=(9, 8))
        s.tensor("Functional.linear.%d.backward" % i, "out", "2", "b%d" % i, 1e-3, dtype="bf16",
                 shape=(8,), b_s__norm=8 ** .5)
    s.tensor("Tensor.mul_.0.forward", "in", "0", "sum", off / 2e-2, shape=(8,), b_s__norm=2e-2 * 8 ** .5,
             m__rmse=off, m__max_abs=2 * off)
    s.write(name)


cancelled("gradients-cancel", 4e-3)
cancelled("gradients-cancel-wrong", 0.2)


def multiplied(name, off, other=None):
    """By statistics, one f32 product whose largest element is off by so much, of it and the rms together; other:
    of another product after it."""
    s = Stream(task="statistics")
    for i, e in enumerate([off] if other is None else [off, other]):
        for io, pos, shape, top, more in (("in", "0", [32, 8], 3.0, 0), ("in", "1", [16, 8], 0.3, 0), ("out", "0", [32, 16], 2.0 + i, e)):
            top *= 1.0123456
            m = [{"dtype": "f32", "shape": shape, "type": "torch.Tensor", "stat.max": top * (1 + 1.3 * x), "stat.min": -top,
                  "stat.mean": 0.0, "stat.norm": 0.3 * top * math.prod(shape) ** .5} for x in (more, 0)]
            s.put("Functional.linear.%d.forward" % i, io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


multiplied("products-one", 5e-4)
multiplied("products-one-rough", 8e-3)
multiplied("products-one-beside", 5e-4, 2e-7)


# --- statistics of one side alone; numpy has what an operator gives ---

def four(x):
    x = np.asarray(x, dtype=np.float64)
    if x.ndim == 0:
        return dict.fromkeys(("stat.max", "stat.min", "stat.mean", "stat.norm"), float(x))
    return {"stat.max": float(x.max()), "stat.min": float(x.min()), "stat.mean": float(x.mean()),
            "stat.norm": float(np.sqrt((x * x).sum()))}


def bf16(x):
    x = np.ascontiguousarray(x, dtype=np.float32)
    i = x.view(np.uint32).astype(np.uint64)
    return ((i + 0x7fff + (i >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32).astype(np.float64)


def own(name, key, fn, inputs, wrong, bench=None, dtype="f32", args=()):
    """A call whose inputs differ by 3 % of their size, elements of either sign; the device gives fn of its own, or
    that as wrong has it. args: numbers, (io, position, value)."""
    rng = np.random.default_rng(5)
    device = [x * (1 + 0.03 * rng.standard_normal(x.shape)) if x.ndim else x * 1.03 for x in inputs]
    kept = bf16 if dtype == "bf16" else lambda x: x
    device, inputs = [kept(x) for x in device], [kept(x) for x in inputs]
    for title, change in ((name, lambda y: y), (name + "-wrong", wrong)):
        s = Stream(task="statistics")
        # Before it, what nobody is blamed for shows how far the sides are apart.
        for k, io, pos, a, b in [("Torch.empty.0.forward", "out", str(i), a, b) for i, (a, b) in enumerate(zip(device, inputs))] + \
                [(key, "in", str(i), a, b) for i, (a, b) in enumerate(zip(device, inputs))] + \
                [(key, "out", "0", kept(change(fn(*device))), kept((bench or fn)(*inputs)))]:
            m = [dict({"dtype": dtype, "shape": list(np.shape(x)), "type": "torch.Tensor"}, **four(x)) for x in (a, b)]
            s.put(k, io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
        for io, pos, value in args:
            s.put(key, io, pos, *[{"type": "float", "value": value} for _ in "ab"], "arg", {"m.mode": "value", "m.equal": True})
        s.write("stat-own-" + title)
        if bench:
            break


rng = np.random.default_rng(4)
X, Y, P = rng.standard_normal((24, 16)) + 0.3, rng.standard_normal((24, 16)), rng.random((24, 16)) + 0.5


def one_element(y):
    y = y.copy()
    y.flat[int(np.abs(y).argmax())] *= 0.7
    return y


own("t", "Tensor.t.0.forward", lambda x: x.T, [X], one_element)
own("mean", "Torch.mean.0.forward", lambda x: x.mean(1), [X], lambda y: y * 1.01)
own("add", "Tensor.__add__.0.forward", lambda x, y: x + y, [X, Y], lambda y: y + 0.01)
own("neg-sub", "Tensor.__sub__.0.backward", lambda x: -x, [X], one_element)
own("root", "Torch.sqrt.0.forward", np.sqrt, [P], lambda y: y * 1.01)
own("inverse", "Torch.reciprocal.0.forward", lambda x: 1 / x, [np.asarray(0.8)], lambda y: y * 1.01)
own("times", "Tensor.__mul__.0.forward", lambda x: x * -0.125, [X], lambda y: y * 1.01)
own("by", "Tensor.__truediv__.0.forward", lambda x, y: x / y, [X, np.asarray(3.0)], lambda y: y * 1.01)
own("sum", "Torch.sum.0.backward", lambda g: np.repeat(g[:, None], 8, 1), [X[:, 0]], one_element)
own("norm", "Torch.norm.0.forward", lambda x: np.sqrt((x * x).sum()), [X], lambda y: y * 1.01)
own("softmax", "Torch.softmax.0.forward", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), [X], lambda y: y * 0.99)
own("bench", "Torch.mean.0.forward", lambda x: x.mean(1) * 1.01, [X], lambda y: y)
own("bias", "Functional.linear.0.backward", lambda g: g.sum(0), [X + 0.2], lambda y: y / 2, dtype="bf16")


def other_rows(name, value):
    """Rows that a router sent elsewhere: of other shapes nothing is compared, but what is finite sums up to what is."""
    s = Stream(task="statistics")
    for io, x, y in (("in", X[:9], X[:10]), ("out", X[:9].sum(0), X[:10].sum(0))):
        m = [dict({"dtype": "bf16", "shape": list(v.shape), "type": "torch.Tensor"}, **four(v)) for v in (x, y)]
        if io == "out" and value is not None:
            m[0].update({"stat.max": value, "stat.mean": value, "stat.norm": value})
        s.put("Functional.linear.0.backward", io, "0", m[0], m[1], "tensor",
              {"m.mode": "statistics"} if io == "out" else {"note": "shape"})
    s.write(name)


other_rows("stat-rows", None)
other_rows("stat-rows-inf", INF)


def normed(name, rows):
    """batch_norm's gradient over so many values of each of 16 channels, off by 3 %."""
    s = Stream(task="statistics")
    net(s)
    for io, x, off in (("in", X[:rows], 1.000001), ("out", Y[:rows], 1.03)):
        m = [dict({"dtype": "f32", "shape": list(v.shape), "type": "torch.Tensor"}, **four(v)) for v in (x * off, x)]
        s.put("Functional.batch_norm.0.backward", io, "0", m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


normed("stat-norm-two", 2)
normed("stat-norm-many", 24)


def noted(name, key, *tensors):
    """A call as torch computed it on both sides. tensors: io, position, shape, dtypes, and max, min, mean, norm of
    the device and of the bench."""
    s = Stream(task="statistics")
    first = tensors[0]
    if key.endswith("backward"):   # what comes in was made, off as it is
        tensors = (("out", "9") + first[2:],) + tensors
    for io, pos, shape, dtypes, *sides in tensors:
        m = [dict({"dtype": t, "shape": shape, "type": "torch.Tensor"},
                  **dict(zip(("stat.max", "stat.min", "stat.mean", "stat.norm"), v))) for t, v in zip(dtypes, sides)]
        s.put("Torch.empty.0.backward" if pos == "9" else key, io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


for name, more in (("", 0), ("-wrong", 4e-3)):
    # Of angles up to 8 the mean shows 4e-6 less than its digits do; of sines it is much.
    noted("stat-angle" + name, "Tensor.sin.0.forward",
          ("in", "0", [9, 4], ("f32", "f32"), (8.0, 0.0, 2.0200042724609375, 20.20001983642578),
           (8.0, 0.0, 2.0199999809265137, 20.20001983642578)),
          ("out", "0", [9, 4], ("f32", "f32"),
           (0.9893582463264465, -0.9589242935180664, 0.10571954399347305 + more, 3.0186119079589844),
           (0.9893582463264465, -0.9589242935180664, 0.10571526228137161, 3.0186092853546143)))
    # A column of f16: the rounding of its weights is the same in all rows, and the mean holds it.
    noted("stat-column" + name, "Functional.linear.7.forward",
          ("in", "0", [40, 16], ("f16", "f32"), (0.576171875, -0.5517578125, -0.04949951171875, 8.5234375),
           (0.576261579990387, -0.5518123507499695, -0.04949026554822922, 8.550568580627441)),
          ("in", "1", [1, 16], ("f16", "f32"), (0.6787109375, -0.4033203125, -0.02447509765625, 1.1923828125),
           (0.6789061427116394, -0.40341565012931824, -0.02445754036307335, 1.1922380924224854)),
          ("in", "2", [1], ("f16", "f32"), (-0.11761474609375,) * 3 + (0.11761474609375,),
           (-0.11759379506111145,) * 3 + (0.11759379506111145,)),
          ("out", "0", [40, 1], ("f16", "f32"),
           (0.154296875, -0.1142578125, 0.0467529296875 + 2 * more, 0.53173828125),
           (0.15426528453826904, -0.1143033429980278, 0.04647209122776985, 0.53067547082901)))
    # A sum of terms that cancel: most of these are far smaller than the largest, whose error is known.
    noted("stat-broadcast" + name, "Tensor.__sub__.2.backward",
          ("in", "0", [2, 9, 2, 6], ("f32", "f32"),
           (0.00034548129769973457, -0.0006219276692718267, -2.5614470544610413e-08, 0.0013543760869652033),
           (0.00034532774589024484, -0.0006218504859134555, -1.2637260127235095e-09, 0.0013540340587496758)),
          ("out", "1", [2, 9, 2, 1], ("f32", "f32"),
           (3.589149855542928e-06 + more / 20, -1.9726103346329182e-06, 1.5368736683285533e-07, 5.719989985664142e-06),
           (3.198038029950112e-07, -2.024244167841971e-07, 7.576446137136372e-09, 5.07241963987326e-07)))


def mean_off(name, by):
    """layer_norm in bf16 of equal inputs: of 4096 elements of size 1, each off by a rounding, the mean is off by so
    much."""
    s = Stream(task="statistics")
    for io, top, off in (("in", 3.0, 0), ("out", 4.0, by)):
        m = [{"dtype": "bf16", "shape": [64, 64], "type": "torch.Tensor", "stat.max": top, "stat.min": -top, "stat.mean": x,
              "stat.norm": 64.0} for x in (off, 0)]
        s.put("Functional.layer_norm.0.forward", io, "0", m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


mean_off("stat-mean", 3e-4)
mean_off("stat-mean-wrong", 0.01)

own("alpha", "Tensor.add_.0.forward", lambda x, y: x - 0.01 * y, [X, Y], lambda y: y + 0.01, args=[("kw", "alpha", -0.01)])
own("number", "Tensor.__add__.0.forward", lambda x: x + 1.0, [X], lambda y: y * 1.01, args=[("in", "1", 1.0)])
own("once", "Tensor.__mul__.0.forward", lambda x: x * 0.125, [X], lambda y: y * 1.012, dtype="bf16", args=[("in", "1", 0.125)])
own("single", "Torch.mean.0.forward", lambda x: x.mean(), [P], lambda y: y * 1.03, dtype="bf16")
own("relu", "Functional.relu.0.backward", lambda g: np.where(Y > 0, g, 0), [X], lambda y: y * 1.3)


def summed_low(name, dtype):
    """The gradient of what was copied is summed up in the dtype of what came in, and then cast: the terms cancel."""
    g = bf16(X - X.mean())
    s = Stream(task="statistics")
    for io, x, t in (("in", [g, g], dtype), ("out", [bf16(g[:12] + g[12:]), g[:12] + g[12:]], "f32")):
        m = [dict({"dtype": t, "shape": list(y.shape), "type": "torch.Tensor"}, **four(y)) for y in x]
        s.put("Tensor.__add__.0.backward", io, "0", m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


summed_low("stat-sum-low", "bf16")
summed_low("stat-sum-low-f32", "f32")


def chosen(name, ranks, value=1.0):
    """How often each of three was chosen, of 18; the device chose once otherwise. value: what a choice counts as."""
    s = Stream(task="statistics")
    key = "Torch.topk.0.forward" if ranks else "Torch.tanh.0.forward"

    def put(k, io, pos, dtype, a, b):
        m = [dict({"dtype": dtype, "shape": list(np.shape(x)), "type": "torch.Tensor"}, **four(x)) for x in (a, b)]
        s.put(k, io, pos, m[0], m[1], "tensor", {"m.mode": "statistics"})

    put(key, "in", "0", "f32", X[:18, :3] * 1.000001, X[:18, :3])
    put(key, "out", "0", "f32", X[:18, :2] * 1.000001, X[:18, :2])
    if ranks:
        put(key, "out", "1", "i64", np.repeat([[0, 1], [1, 2]], 9, 0), np.repeat([[0, 1], [1, 2]], 9, 0))
    which = [np.repeat([0, 1, 2], n) for n in ([6, 7, 5], [6, 6, 6])]
    one = [value * (w[:, None] == np.arange(3)) for w in which]
    put("Tensor.mean.0.forward", "in", "0", "f32", one[0], one[1])
    put("Tensor.mean.0.forward", "out", "0", "f32", one[0].mean(0), one[1].mean(0))
    s.write(name)


chosen("stat-chosen", True)
chosen("stat-chosen-not", False)
chosen("stat-chosen-values", True, 0.5)


def made_back(name, maker):
    """An input whose maker is another call on either side, after a gradient that is off by 4e-6."""
    s = Stream(task="tensor")
    net(s)
    s.op("Functional.linear.9.backward", [("gy", 4e-6)], [("gx", 4e-6)])
    for key, sides in ((maker % 4, "a"), (maker % 6, "b")):
        s.tensor(key, "out", "0", "gw", 1e-4, sides=sides, shape=(7, 9))
    s.tensor("Tensor.add.0.forward", "in", "0", "gw", 1e-4, shape=(7, 9))
    s.write(name)


made_back("made-back", "Functional.batch_norm.%d.backward")
made_back("made-forward", "Functional.batch_norm.%d.forward")


def tiny_mean(name, off):
    """A bias of numbers near the smallest of f16: of each element a cast leaves half a step at most, and of their mean
    another half."""
    s = Stream(task="statistics")
    for i, (top, more) in enumerate(((0.25, 0.0), (0.35, 0.0), (0.3, 0.0), (2e-6, off))):
        m = [dict({"dtype": t, "shape": [16], "type": "torch.Tensor", "stat.max": top, "stat.min": -top, "stat.mean": x,
                   "stat.norm": 3 * top}) for t, x in (("f16", more), ("f32", 0.0))]
        s.put("Functional.linear.%d.forward" % i, "in", "2", m[0], m[1], "tensor", {"m.mode": "statistics"})
    s.write(name)


tiny_mean("tiny-mean", 1.9 * 2 ** -25)
tiny_mean("tiny-mean-more", 3 * 2 ** -25)


def joined(name, off, fold=True):
    """Ranks as one: gradients by their elements; their concatenation, of whose parts nobody knows, by statistics."""
    s = Stream()
    for i in range(4):
        s.op("Functional.linear.%d.backward" % (3 - i), [("g%d" % i, 2e-7)],
             [("gx%d" % i, 3e-7, {"emax": 1.5e-5, "shape": (8, 8)}), ("gw%d" % i, 3e-7, {"shape": (8, 8)})])
    stat = {"s.max": 3.0, "s.min": -3.0, "s.mean": 0.01, "s.norm": 8.0}
    for i in range(2):
        s.put("Torch.cat.0.forward", "in", "0.%d" % i, {"dtype": "f32"}, {"dtype": "f32", "shape": [32]}, "tensor", {})
    a = dict(stat, **{"dtype": "f32", "shape": [64], "s.norm": 8.0 * (1 + off)})
    s.put("Torch.cat.0.forward", "out", "0", a, dict(stat, dtype="f32", shape=[64]), "tensor", {"m.mode": "statistics"})
    if fold:
        for kind, f in s.r:
            if kind == "pair":
                f["a.fold"] = "Unknown()" if f["a.io"] == "in" and "cat" in f["name"] else "Shard(0)"
    s.write(name)


joined("joined", 2e-5)
joined("joined-more", 1e-2)
joined("joined-alone", 2e-5, False)


def strayed(name, off):
    """Ranks as one: what was chosen is compared by its extremes alone, and by its elements where it is taken."""
    s = Stream()
    low = {"dtype": "bf16", "shape": (32, 16)}
    for i in range(4):
        s.op("Functional.linear.%d.forward" % i, [("x%d" % i, 0, low), ("w%d" % i, 0, low)], [("y%d" % i, off, low)])
    s.tensor("Torch.max.0.forward", "in", "0", "y3", off, **low)
    ends = {"dtype": "i64", "shape": [32], "s.max": 15.0, "s.min": 0.0}
    s.put("Torch.max.0.forward", "out", "1", dict(ends), dict(ends), "tensor", {"m.mode": "statistics"})
    s.tensor("Torch.argsort.0.forward", "in", "0", "which", 0.07, dtype="i64", shape=(32,), same=31 / 32)
    for kind, f in s.r:
        if kind == "pair":
            f["a.fold"] = "Shard(0)"
    s.write(name)


strayed("strayed", 2e-3)
strayed("strayed-not", 1e-7)
