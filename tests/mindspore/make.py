#!/usr/bin/python3
"""Makes pairs of dumps of one network: PyTorch as msprobe records it, call by call, and MindSpore
as it dumps its kernels. Needs python3-torch.

    make.py FOLDER [--net gpt,llama,resnet,lstm] [--seeds N] [--faults N]
    make.py --fixture tests/data/crossed

A network is a program of *steps* (linear, layer_norm, ...). Either side runs it: Torch notes one
call a step, MindSpore the kernels that a step becomes at a level of compilation:

    O0    MatMul and BiasAdd in two dimensions, Reshape and Transpose around, kernels of its own
          for norms and functions
    O1    the same, norms, softmax and functions as primitives
    O2    products with their bias; the folders of an ACL dump

A case is FOLDER/NAME/{device,bench} and truth.json: of each record, the step and the tensor of the
program that it is ("the input of step 7 that is tensor 12"). Two records belong together if these
are the same, whatever the shape: the truth is by construction. A fault changes what one step of the
device computes; its names are those of the calls that make the step up."""
import argparse
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from make_mindspore import Tensor, flat, npy, sheet  # noqa: E402
from recorder import Event  # noqa: E402
import writers  # noqa: E402
from writers import Msprobe  # noqa: E402

F32, F64 = torch.float32, torch.float64
NAMES = {F32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.int64: "int64",
         torch.int32: "int32", torch.bool: "bool"}
T0 = 1733905446000000


def stats(t, ints_too=False, plain=writers.stats):
    """As an accelerator computes them: of 16 bits in 32, rounded once."""
    if t.dtype not in (torch.bfloat16, torch.float16) or t.numel() == 0:
        return plain(t, ints_too)
    return [torch.tensor(x).to(t.dtype).item() for x in plain(t.float(), ints_too)]


writers.stats = stats


class V:
    """A value of the program: t as this side has it; tensor: its number, None: of this side only."""

    def __init__(self, t, tensor=None):
        self.t, self.tensor = t, tensor


class Side:
    """dtype: what the model computes in; wide: each kernel in f64, rounded once. fault: (step,
    function of output and inputs, which kernel: last or product)."""

    def __init__(self, dtype=F32, wide=False, fault=None):
        self.dtype, self.wide, self.fault = dtype, wide, fault
        self.step, self.tensors, self.path = -1, 0, []
        self.truth, self.of_step, self.linears, self.hit = {}, {}, [], False
        self.whole = None   # the step that several steps are counted as

    # -- the program --

    def value(self, t):
        self.tensors += 1
        if t.is_floating_point():
            t = t.to(self.dtype)
        return V(t, self.tensors - 1)

    def begin(self, n=1):
        """The next step, and the numbers of what it makes."""
        self.step += 1
        self.tensors += n
        return list(range(self.tensors - n, self.tensors))

    def run(self, fn, *vs):
        """fn of values, in this side's arithmetic."""
        ts = [v.t if isinstance(v, V) else v for v in vs]
        wide = F64 if self.wide else F32
        ts = [t.to(wide) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in ts]
        y = fn(*ts)
        cast = [u.to(self.dtype) if u.is_floating_point() else u for u in
                (y if isinstance(y, tuple) else (y,))]
        return cast if isinstance(y, tuple) else cast[0]

    def broken(self, y, ins, last):
        """What comes out of a kernel, or what a fault makes of it."""
        if self.fault and self.fault[0] == self.step and self.fault[2] == last:
            wrong = self.fault[1](y.float(), ins).to(y.dtype)
            self.hit = not torch.equal(wrong, y)
            return wrong
        return y

    def note(self, key, io, pos, v):
        if v.tensor is not None:
            step = self.step if self.whole is None else self.whole
            self.truth["%s|%s|%s" % (key, io, pos)] = [step, v.tensor]
        self.of_step.setdefault(self.step, [])
        if key not in self.of_step[self.step]:
            self.of_step[self.step].append(key)

    # -- moves: PyTorch's are not recorded --

    def view(self, x, *shape):
        return self.move("Reshape", x, lambda t: t.reshape(shape))

    def swap(self, x, a, b):
        return self.move("Transpose", x, lambda t: t.transpose(a, b).contiguous(), turned=True)

    def last(self, x):
        """The last place of a sequence."""
        return self.move("StridedSlice", x, lambda t: t[:, -1].contiguous(), turned=True)

    def place(self, x, i):
        return self.move("StridedSlice", x, lambda t: t[:, i].contiguous(), turned=True)


class Torch(Side):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.events, self.calls = [], {}

    def move(self, kind, x, fn, turned=False):
        return V(fn(x.t), self.begin()[0])

    def split(self, x, n, dim=-1):
        ids = self.begin(n)
        return [V(t.contiguous(), i) for t, i in zip(x.t.chunk(n, dim), ids)]

    def cat(self, xs, dim=-1):
        return V(torch.cat([x.t for x in xs], dim), self.begin()[0])

    def stack(self, xs):
        return V(torch.stack([x.t for x in xs], 1), self.begin()[0])

    def neg(self, x):
        return V(-x.t, self.begin()[0])

    def call(self, op, fn, args, **kwargs):
        number = self.begin()[0]
        n = self.calls.get(op, 0)
        self.calls[op] = n + 1
        e = Event("api", op, n, "forward")
        e.args = [a.t if isinstance(a, V) else a for a in args]
        e.kwargs = {k: a.t if isinstance(a, V) else a for k, a in kwargs.items()}
        vs = [a for a in args if isinstance(a, V)]
        y = self.run(lambda *ts: fn(*ts), *vs)
        y = V(self.broken(y, vs, "last"), number)
        e.output, e.single = [y.t], True
        for i, a in enumerate(args):
            if isinstance(a, V):
                self.note(e.key(), "in", i, a)
        for k, a in kwargs.items():
            if isinstance(a, V):
                self.note(e.key(), "kw", k, a)
        self.note(e.key(), "out", 0, y)
        self.events.append(e)
        return y

    def linear(self, x, w, b):
        y = self.call("Functional.linear", lambda *t: F.linear(*t), [x, w, b])
        self.linears.append(self.step)
        return y

    def layer_norm(self, x, w, b):
        d = w.t.shape
        return self.call("Functional.layer_norm", lambda x, w, b: F.layer_norm(x, d, w, b),
                         [x, tuple(d), w, b, 1e-5])

    def rms_norm(self, x, w):
        """As models write it."""
        self.whole = self.step + 1
        two = self.call("Tensor.pow", lambda t: t * t, [x, 2])
        mean = self.call("Tensor.mean", lambda t: t.mean(-1, keepdim=True), [two, -1], keepdim=True)
        eps = self.call("Tensor.__add__", lambda t: t + 1e-5, [mean, 1e-5])
        r = self.call("Torch.rsqrt", torch.rsqrt, [eps])
        y = self.mul(w, self.mul(x, r))
        self.whole = None
        return y

    def gelu(self, x):
        return self.call("Functional.gelu", F.gelu, [x])

    def silu(self, x):
        return self.call("Functional.silu", F.silu, [x])

    def softmax(self, x):
        return self.call("Functional.softmax", lambda t: F.softmax(t, -1), [x], dim=-1)

    def matmul(self, x, y):
        return self.call("Torch.matmul", torch.matmul, [x, y])

    def add(self, x, y):
        return self.call("Tensor.__add__", torch.add, [x, y])

    def mul(self, x, y):
        return self.call("Tensor.__mul__", torch.mul, [x, y])

    def scale(self, x, by):
        return self.call("Tensor.__mul__", lambda t: t * by, [x, by])

    def relu(self, x):
        return self.call("Functional.relu", F.relu, [x])

    def tanh(self, x):
        return self.call("Torch.tanh", torch.tanh, [x])

    def sigmoid(self, x):
        return self.call("Torch.sigmoid", torch.sigmoid, [x])

    def cos(self, x):
        return self.call("Torch.cos", torch.cos, [x])

    def sin(self, x):
        return self.call("Torch.sin", torch.sin, [x])

    def dropout(self, x):
        return self.call("Functional.dropout", lambda t: t * 1, [x], p=0.0, training=True)

    def embedding(self, ids, w):
        return self.call("Functional.embedding", lambda i, w: F.embedding(i, w), [ids, w])

    def pick(self, table, ids):
        return self.call("Torch.index_select", lambda t, i: t[i], [table, V(ids.t, ids.tensor)])

    def conv(self, x, w, stride, pad):
        return self.call("Functional.conv2d", lambda x, w: F.conv2d(x, w, None, stride, pad),
                         [x, w, None, (stride, stride), (pad, pad)])

    def batch_norm(self, x, mean, var, w, b):
        return self.call("Functional.batch_norm",
                         lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), [x, mean, var, w, b])

    def max_pool(self, x):
        return self.call("Functional.max_pool2d", lambda t: F.max_pool2d(t, 2, 2), [x, 2, 2])

    def pool(self, x):
        return self.call("Functional.adaptive_avg_pool2d",
                         lambda t: F.adaptive_avg_pool2d(t, 1), [x, (1, 1)])

    def cross_entropy(self, x, ids):
        return self.call("Functional.cross_entropy", lambda t, i: F.cross_entropy(t, i), [x, ids])

    def write(self, folder, data):
        folder = os.path.join(folder, "step0", "rank0")
        Msprobe(folder, task=data, extra_info=False).write(self.events)


class MindSpore(Side):
    """level: O0, O1, O2."""

    def __init__(self, level="O0", **kw):
        super().__init__(**kw)
        self.level, self.ops, self.records, self.time = level, 0, [], T0
        self.order = []

    def kernel(self, typ, fn, ins, cell="", tensor=None, last=None, typed=None):
        """One kernel: values in, one value (or tuple) out; tensor: its number."""
        y = self.run(fn, *ins)
        ys = list(y) if isinstance(y, list) else [y]
        if last:
            ys[0] = self.broken(ys[0], ins, last)
        path = "/".join(self.path + ([cell] if cell else []))
        name = "Default/network-WithLossCell/_backbone-Net/%s/%s-op%d" % (path, typ, self.ops)
        self.ops += 1
        self.order.append(name)
        key = "%s.%s" % (typ, flat(name))
        tensors = tensor if isinstance(tensor, list) else [tensor] + [None] * (len(ys) - 1)
        outs = [V(t, i) for t, i in zip(ys, tensors)]
        for io, group in (("input", ins), ("output", outs)):
            for i, v in enumerate(group):
                a = v.t if isinstance(v, V) else torch.tensor(v)
                self.time += 7
                self.records.append(Tensor(typ, name, io, i, (a.float() if a.dtype == torch.bfloat16
                                                              else a).numpy(), NAMES[a.dtype], self.time))
                if isinstance(v, V):
                    self.note(key, "in" if io == "input" else "out", i, v)
        return outs[0] if len(outs) == 1 else outs

    def move(self, kind, x, fn, turned=False):
        return self.kernel(kind, fn, [x], tensor=self.begin()[0])

    def shape(self, x, *shape):
        """Inside a step: the same tensor in another shape."""
        return self.kernel("Reshape", lambda t: t.reshape(shape), [x], tensor=x.tensor)

    def split(self, x, n, dim=-1):
        ids = self.begin(n)
        return self.kernel("Split", lambda t: tuple(u.contiguous() for u in t.chunk(n, dim)), [x],
                           tensor=ids)

    def cat(self, xs, dim=-1):
        return self.kernel("Concat", lambda *t: torch.cat(t, dim), xs, tensor=self.begin()[0])

    def stack(self, xs):
        return self.kernel("Stack", lambda *t: torch.stack(t, 1), xs, tensor=self.begin()[0])

    def neg(self, x):
        return self.kernel("Neg", torch.neg, [x], tensor=self.begin()[0])

    def linear(self, x, w, b):
        y = self.begin()[0]
        self.linears.append(self.step)
        s = x.t.shape
        cell = "dense-Dense"
        flat2 = x if len(s) == 2 else self.shape(x, -1, s[-1])
        if self.level == "O2":
            v = self.kernel("MatMulV2", lambda x, w, b: x @ w.t() + b, [flat2, w, b], cell, y, "last")
        else:
            m = self.kernel("MatMul", lambda x, w: x @ w.t(), [flat2, w], cell, None, "product")
            v = self.kernel("BiasAdd", torch.add, [m, b], cell, y, "last")
        return v if len(s) == 2 else self.shape(v, *s[:-1], w.t.shape[0])

    def layer_norm(self, x, w, b):
        y = self.begin()[0]
        cell, k = "norm-LayerNorm", self.kernel
        if self.level != "O1":
            return k("LayerNorm" if self.level == "O0" else "LayerNormV3", lambda x, w, b: (
                F.layer_norm(x, w.shape, w, b), x.mean(-1, keepdim=True),
                x.var(-1, unbiased=False, keepdim=True)), [x, w, b], cell, y, "last")[0]
        m = k("ReduceMean", lambda t: t.mean(-1, keepdim=True), [x], cell)
        c = k("Sub", torch.sub, [x, m], cell)
        q = k("Square", torch.square, [c], cell)
        v = k("ReduceMean", lambda t: t.mean(-1, keepdim=True), [q], cell)
        e = k("Add", lambda t, e: t + e, [v, 1e-5], cell)
        r = k("Rsqrt", torch.rsqrt, [e], cell)
        n = k("Mul", torch.mul, [c, r], cell)
        g = k("Mul", torch.mul, [n, w], cell)
        return k("Add", torch.add, [g, b], cell, y, "last")

    def rms_norm(self, x, w):
        """The same steps as the other side's, unless there is a kernel for it."""
        ids = [self.begin()[0] for _ in range(6)]
        self.whole = self.step - 5
        v = self.rms_kernels(x, w, ids)
        self.whole = None
        return v

    def rms_kernels(self, x, w, ids):
        cell, k = "norm-RmsNorm", self.kernel
        if self.level != "O1":
            return k("RmsNorm", lambda x, w: (
                x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w,
                torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)), [x, w], cell,
                [ids[5], ids[3]], "last")[0]
        q = k("Square", torch.square, [x], cell, ids[0])
        m = k("ReduceMean", lambda t: t.mean(-1, keepdim=True), [q], cell, ids[1])
        e = k("Add", lambda t, e: t + e, [m, 1e-5], cell, ids[2])
        r = k("Rsqrt", torch.rsqrt, [e], cell, ids[3])
        n = k("Mul", torch.mul, [x, r], cell, ids[4])
        return k("Mul", torch.mul, [w, n], cell, ids[5])

    def gelu(self, x):
        y = self.begin()[0]
        cell, k = "act-GELU", self.kernel
        if self.level != "O1":
            return k("GeLU" if self.level == "O0" else "Gelu", F.gelu, [x], cell, y, "last")
        s = k("Mul", torch.mul, [x, 0.7071067811865476], cell)
        e = k("Erf", torch.erf, [s], cell)
        a = k("Add", torch.add, [e, 1.0], cell)
        h = k("Mul", torch.mul, [x, 0.5], cell)
        return k("Mul", torch.mul, [h, a], cell, y, "last")

    def silu(self, x):
        y = self.begin()[0]
        if self.level == "O0":
            return self.kernel("SiLU", F.silu, [x], "act-SiLU", y, "last")
        s = self.kernel("Sigmoid", torch.sigmoid, [x], "act-SiLU")
        return self.kernel("Mul", torch.mul, [x, s], "act-SiLU", y, "last")

    def softmax(self, x):
        y = self.begin()[0]
        k = self.kernel
        if self.level != "O1":
            return k("Softmax" if self.level == "O0" else "SoftmaxV2", lambda t: F.softmax(t, -1), [x],
                     "softmax-Softmax", y, "last")
        m = k("ReduceMax", lambda t: t.amax(-1, keepdim=True), [x])
        c = k("Sub", torch.sub, [x, m])
        e = k("Exp", torch.exp, [c])
        s = k("ReduceSum", lambda t: t.sum(-1, keepdim=True), [e])
        return k("RealDiv", torch.div, [e, s], tensor=y, last="last")

    def one(self, typ, fn, ins, cell=""):
        return self.kernel(typ, fn, ins, cell, self.begin()[0], "last")

    def matmul(self, x, y):
        return self.one("BatchMatMul", torch.matmul, [x, y])

    def add(self, x, y):
        return self.one("Add", torch.add, [x, y])

    def mul(self, x, y):
        return self.one("Mul", torch.mul, [x, y])

    def scale(self, x, by):
        return self.one("Mul", torch.mul, [x, by])

    def relu(self, x):
        return self.one("ReLU", F.relu, [x], "relu-ReLU")

    def tanh(self, x):
        return self.one("Tanh", torch.tanh, [x])

    def sigmoid(self, x):
        return self.one("Sigmoid", torch.sigmoid, [x])

    def cos(self, x):
        return self.one("Cos", torch.cos, [x])

    def sin(self, x):
        return self.one("Sin", torch.sin, [x])

    def dropout(self, x):
        y = self.begin()[0]
        if self.level == "O2":   # of probability 0, it is taken out
            return V(x.t, y)
        return self.kernel("Dropout", lambda t: (t * 1, torch.ones_like(t)), [x],
                           "dropout-Dropout", y, "last")[0]

    def embedding(self, ids, w):
        return self.one("Gather", lambda w, i, _: F.embedding(i, w), [w, ids, 0], "emb-Embedding")

    def pick(self, table, ids):
        return self.one("Gather", lambda t, i, _: t[i], [table, ids, 0])

    def conv(self, x, w, stride, pad):
        return self.one("Conv2D", lambda x, w: F.conv2d(x, w, None, stride, pad), [x, w], "conv-Conv2d")

    def batch_norm(self, x, mean, var, w, b):
        y = self.begin()[0]
        return self.kernel("BatchNorm", lambda x, w, b, m, v: (
            F.batch_norm(x, m, v, w, b), m * 1, v * 1), [x, w, b, mean, var], "bn-BatchNorm2d", y,
            "last")[0]

    def max_pool(self, x):
        return self.one("MaxPool", lambda t: F.max_pool2d(t, 2, 2), [x])

    def pool(self, x):
        return self.one("ReduceMean", lambda t: t.mean((2, 3), keepdim=True), [x])

    def cross_entropy(self, x, ids):
        y = self.begin()[0]
        if self.level == "O0":
            return self.kernel("SparseSoftmaxCrossEntropyWithLogits", lambda t, i: F.cross_entropy(t, i),
                               [x, ids], "loss-CrossEntropyLoss", y, "last")
        p = self.kernel("LogSoftmax", lambda t: F.log_softmax(t, -1), [x])
        return self.kernel("NLLLoss", lambda t, i: F.nll_loss(t, i), [p, ids], "", y, "last")

    def write(self, folder, data):
        cats = ["max", "min", "avg", "l2norm"] if data != "stat3" else ["max", "min", "l2norm"]
        d = "rank_0/Net/0/0" if self.level != "O2" else "0/20241211112233/0/Net/1/0"
        put = os.path.join(folder, d)
        os.makedirs(put)
        if data in ("tensor", "full"):
            for t in self.records:
                a = t.a.astype(np.float32) if t.dtype == "bfloat16" else t.a
                with open(os.path.join(put, t.stem() + ".npy"), "wb") as f:
                    f.write(npy(a))
        if data != "tensor":
            with open(os.path.join(put, "statistic.csv"), "wb") as f:
                f.write(sheet(self.records, cats, ","))
        if self.level != "O2":
            path = os.path.join(folder, "rank_0/execution_order")
            os.makedirs(path)
            with open(path + "/ms_execution_order_graph_0.csv", "w") as f:
                f.write("NodeExecutionOrder-FullNameWithScope\n" + "\n".join(self.order) + "\n")


# --- networks ---

class Weights:
    """fresh: as training begins: biases are 0 and scales 1."""

    def __init__(self, s, seed, fresh):
        self.s, self.fresh = s, fresh
        self.g = torch.Generator().manual_seed(seed)

    def randn(self, *shape):
        return torch.randn(*shape, generator=self.g)

    def ids(self, n, *shape):
        return self.s.value(torch.randint(n, shape, generator=self.g))

    def matrix(self, *shape):
        return self.s.value(self.randn(*shape) * (2.0 / shape[-1]) ** 0.5)

    def bias(self, n):
        r = self.randn(n) * 0.1
        return self.s.value(r * 0 if self.fresh else r)

    def gain(self, n):
        r = 1 + self.randn(n) * 0.1
        return self.s.value(r * 0 + 1 if self.fresh else r)

    def dense(self, i, o):
        return self.matrix(o, i), self.bias(o)


def attention(s, q, k, v, b, t, h, mask, drop=True):
    d = q.t.shape[-1]
    q, k, v = (s.swap(s.view(x, b, t, h, d // h), 1, 2) for x in (q, k, v))
    a = s.scale(s.matmul(q, s.swap(k, -1, -2)), (d // h) ** -0.5)
    a = s.softmax(s.add(a, mask))
    if drop:
        a = s.dropout(a)
    return s.view(s.swap(s.matmul(a, v), 1, 2), b, t, d)


def rotate(s, x, cos, sin):
    p, q = s.split(x, 2)
    return s.add(s.mul(x, cos), s.mul(s.cat([s.neg(q), p]), sin))


def gpt(s, seed, fresh, small):
    r = random.Random(seed)
    w = Weights(s, seed, fresh)
    b, t, h, n = 2, r.choice([7, 12]), 4, 1 if small else r.choice([2, 4])
    d, vocab = 16 if small else r.choice([32, 48]), 53
    ids, places, labels = w.ids(vocab, b, t), s.value(torch.arange(t)), w.ids(vocab, b * t)
    mask = s.value(torch.full((t, t), -1e4).triu(1))
    table = w.matrix(vocab, d)
    x = s.add(s.embedding(ids, table), s.embedding(places, w.matrix(32, d)))
    x = s.dropout(x)
    for i in range(n):
        s.path = ["layers-CellList", "%d-Block" % i]
        y = s.layer_norm(x, w.gain(d), w.bias(d))
        q, k, v = s.split(s.linear(y, *w.dense(d, 3 * d)), 3) if seed % 2 else \
            [s.linear(y, *w.dense(d, d)) for _ in range(3)]
        y = s.linear(attention(s, q, k, v, b, t, h, mask), *w.dense(d, d))
        x = s.add(x, s.dropout(y))
        y = s.layer_norm(x, w.gain(d), w.bias(d))
        y = s.linear(s.gelu(s.linear(y, *w.dense(d, 4 * d))), *w.dense(4 * d, d))
        x = s.add(x, s.dropout(y))
    s.path = []
    x = s.layer_norm(x, w.gain(d), w.bias(d))
    y = s.linear(x, *w.dense(d, vocab))
    return s.cross_entropy(s.view(y, b * t, vocab), labels)


def llama(s, seed, fresh, small):
    r = random.Random(seed)
    w = Weights(s, seed, fresh)
    b, t, h, n = 2, r.choice([7, 12]), 4, 1 if small else r.choice([2, 3])
    d, vocab = 16 if small else r.choice([32, 48]), 61
    e = d // h
    ids, places, labels = w.ids(vocab, b, t), s.value(torch.arange(t)), w.ids(vocab, b * t)
    mask = s.value(torch.full((t, t), -1e4).triu(1))
    angle = torch.outer(torch.arange(32).float(), 10000 ** (-torch.arange(0, e, 2).float() / e))
    angle = s.value(torch.cat([angle, angle], -1))
    cos, sin = s.pick(s.cos(angle), places), s.pick(s.sin(angle), places)
    x = s.embedding(ids, w.matrix(vocab, d))
    for i in range(n):
        s.path = ["layers-CellList", "%d-Block" % i]
        y = s.rms_norm(x, w.gain(d))
        q, k, v = [s.linear(y, *w.dense(d, d)) for _ in range(3)]
        q, k = (s.swap(s.view(a, b, t, h, e), 1, 2) for a in (q, k))
        q, k = rotate(s, q, cos, sin), rotate(s, k, cos, sin)
        v = s.swap(s.view(v, b, t, h, e), 1, 2)
        a = s.softmax(s.add(s.scale(s.matmul(q, s.swap(k, -1, -2)), e ** -0.5), mask))
        y = s.view(s.swap(s.matmul(a, v), 1, 2), b, t, d)
        x = s.add(x, s.linear(y, *w.dense(d, d)))
        y = s.rms_norm(x, w.gain(d))
        y = s.mul(s.silu(s.linear(y, *w.dense(d, 2 * d))), s.linear(y, *w.dense(d, 2 * d)))
        x = s.add(x, s.linear(y, *w.dense(2 * d, d)))
    s.path = []
    y = s.linear(s.rms_norm(x, w.gain(d)), *w.dense(d, vocab))
    return s.cross_entropy(s.view(y, b * t, vocab), labels)


def resnet(s, seed, fresh, small):
    r = random.Random(seed)
    w = Weights(s, seed, fresh)
    c, size, classes = 4 if small else r.choice([8, 12]), 16, 10

    def conv(x, i, o, k, stride):
        y = s.conv(x, s.value(w.randn(o, i, k, k) * (2 / (i * k * k)) ** 0.5), stride, k // 2)
        mean = s.value(w.randn(o) * (0 if fresh else 0.1))
        var = s.value(1 + w.randn(o).abs() * (0 if fresh else 0.3))
        return s.batch_norm(y, mean, var, w.gain(o), w.bias(o))
    x = s.relu(conv(s.value(w.randn(3, 3, size, size)), 3, c, 3, 1))
    x = s.max_pool(x)
    i = c
    for stage in range(2 if small else 3):
        for k in range(1 if small else 2):
            s.path = ["layer%d-SequentialCell" % stage, "%d-Block" % k]
            o, stride = c << stage, 2 if k == 0 and stage else 1
            y = conv(s.relu(conv(x, i, o, 3, stride)), o, o, 3, 1)
            if i != o or stride > 1:
                x = conv(x, i, o, 1, stride)
            x = s.relu(s.add(y, x))
            i = o
    s.path = []
    x = s.view(s.pool(x), 3, i)
    y = s.linear(s.relu(s.linear(x, *w.dense(i, 2 * i))), *w.dense(2 * i, classes))
    return s.cross_entropy(y, w.ids(classes, 3))


def lstm(s, seed, fresh, small):
    r = random.Random(seed)
    w = Weights(s, seed, fresh)
    b, t, n = 3, 2 if small else r.choice([6, 10]), 1 if small else 2
    d, vocab = 8 if small else r.choice([20, 32]), 47
    ids, labels = w.ids(vocab, b, t), w.ids(vocab, b * t)
    x = s.embedding(ids, w.matrix(vocab, d))
    for layer in range(n):
        s.path = ["cell%d-LSTMCell" % layer]
        wx, wh = w.dense(d, 4 * d), w.dense(d, 4 * d)
        hidden, c = s.value(torch.zeros(b, d)), s.value(torch.zeros(b, d))
        ys = []
        for i in range(t):
            gates = s.add(s.linear(s.place(x, i), *wx), s.linear(hidden, *wh))
            p, f, g, o = s.split(gates, 4)
            c = s.add(s.mul(s.sigmoid(f), c), s.mul(s.sigmoid(p), s.tanh(g)))
            hidden = s.mul(s.sigmoid(o), s.tanh(c))
            ys.append(hidden)
        x = s.dropout(s.stack(ys))
    s.path = []
    y = s.linear(x, *w.dense(d, vocab))
    return s.cross_entropy(s.view(y, b * t, vocab), labels)


NETS = {"gpt": gpt, "llama": llama, "resnet": resnet, "lstm": lstm}


# --- faults of a product: each plain in 16 bits, too ---

def scaled(y, ins):
    return y * 1.5


def column(y, ins):
    y = y.clone()
    y[..., ::4] = 0
    return y


def tile(y, ins):
    y = y.clone()
    f = y.reshape(-1)
    f[:max(f.numel() // 4, 1)] = 0
    return f.reshape(y.shape)


def shifted(y, ins):
    return torch.roll(y, 1, -1)


# The statistics of what is only moved do not change.
FAULTS = {"scaled": scaled, "column": column, "tile": tile, "shifted": shifted}


def side(kind, net, seed, fresh, small, **kw):
    s = Torch(**kw) if kind == "torch" else MindSpore(level=kind, **kw)
    NETS[net](s, seed, fresh, small)
    return s


def write(folder, device, bench, data, names, info):
    os.makedirs(folder)
    for name, s in (("device", device), ("bench", bench)):
        kind = data if isinstance(s, MindSpore) else "tensor" if data in ("tensor", "full") else "statistics"
        s.write(os.path.join(folder, name), kind)
    with open(os.path.join(folder, "truth.json"), "w") as f:
        json.dump({**info, "names": names, "device": device.truth, "bench": bench.truth}, f)


def case(folder, net, seed, level, torch_is, noise, data, fresh, fault=None, at=None, small=False):
    """torch_is: device or bench."""
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(noise, F32)
    kinds = {"device": "torch" if torch_is == "device" else level,
             "bench": "torch" if torch_is == "bench" else level}
    args = {"device": {"dtype": low, "wide": noise != "none"}, "bench": {}}
    kernel = "last"
    if fault and kinds["device"] in ("O0", "O1") and seed % 2:
        kernel = "product"
    bench = side(kinds["bench"], net, seed, fresh, small, **args["bench"])
    step = None
    while True:   # until the fault changes anything: a product with zeros may stay what it was
        if fault:
            step = bench.linears[at % len(bench.linears)]
            args["device"]["fault"] = (step, FAULTS[fault], kernel)
        device = side(kinds["device"], net, seed, fresh, small, **args["device"])
        if not fault or device.hit:
            break
        at += 1
    write(folder, device, bench, data, device.of_step[step] if fault else [], {
        "net": net, "level": level, "torch": torch_is, "noise": noise, "data": data, "fresh": fresh,
        "fault": fault, "kernel": kernel if fault else None})


def fixture(folder):
    """What tests/accdiff.bats compares: two small networks as PyTorch; the one with a fault in a
    linear layer, and as primitives; of the other, MindSpore wrote tensors alone."""
    bench = side("torch", "gpt", 1, False, True)
    bench.write(os.path.join(folder, "gpt"), "statistics")
    bad = side("O0", "gpt", 1, False, True, wide=True, fault=(bench.linears[2], scaled, "last"))
    bad.write(os.path.join(folder, "gpt_O0_fault"), "stat3")
    side("O1", "gpt", 1, False, True, wide=True).write(os.path.join(folder, "gpt_O1"), "stat3")
    side("torch", "lstm", 1, False, True).write(os.path.join(folder, "lstm"), "statistics")
    side("O0", "lstm", 1, False, True, wide=True).write(os.path.join(folder, "lstm_O0"), "tensor")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--fixture", action="store_true", help="make tests/data/crossed")
    p.add_argument("--net", default=",".join(NETS))
    p.add_argument("--level", default="O0,O1,O2")
    p.add_argument("--seeds", type=int, default=4)
    p.add_argument("--faults", type=int, default=2)
    p.add_argument("--first", type=int, default=0, help="the first seed")
    a = p.parse_args()
    if a.fixture:
        fixture(a.folder)
        return
    for net in a.net.split(","):
        for level in a.level.split(","):
            for seed in range(a.first, a.first + a.seeds):
                r = random.Random("%s %s %d" % (net, level, seed))
                torch_is = ("device", "bench")[seed % 2]
                noise = ("sum", "bf16", "none", "fp16")[seed // 2 % 4]
                data = r.choice(["full", "tensor", "statistics", "stat3"])
                fresh = r.random() < 0.4
                base = "%s-%s-%d-%s-%s-%s" % (net, level, seed, torch_is, noise, data)
                case(os.path.join(a.folder, base + "-clean"), net, seed, level, torch_is, noise, data,
                     fresh)
                for i in range(a.faults):
                    fault = r.choice(sorted(set(FAULTS) - {"shifted"} if data.startswith("stat")
                                            else FAULTS))
                    case(os.path.join(a.folder, "%s-f%d-%s" % (base, i, fault)), net, seed, level,
                         torch_is, noise, data, fresh, fault, r.randrange(100))


if __name__ == "__main__":
    main()
