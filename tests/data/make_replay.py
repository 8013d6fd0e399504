#!/usr/bin/env python3
"""Op calls for the audit, with the outputs and gradients that torch computes, a stream for each
family of operators:

    tests/data/make_replay.py tests/data/replay

What is recorded in f32 and below is computed in f64 and rounded once. As in make_replay_fused.py,
an element of each output and gradient of every third call is off, and its record says x-wrong.
"""
import os
import sys

import torch
import torch.nn.functional as F

from make_replay_fused import DT, Stream, rand

f64, f32, bf16, f16 = torch.float64, torch.float32, torch.bfloat16, torch.float16
c64, c128 = torch.complex64, torch.complex128
DT.update({f16: "f16", c64: "c64", c128: "c128"})
nan, inf = float("nan"), float("inf")


def is_tensor(x):
    return isinstance(x, torch.Tensor)


def flat(x):
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in flat(v)]
    return [x] if is_tensor(x) else []


def wide(x):
    if isinstance(x, (list, tuple)):
        return type(x)(wide(v) for v in x)
    if is_tensor(x) and x.is_complex():
        return x.detach().to(c128)
    return x.detach().double() if is_tensor(x) and x.is_floating_point() else x


def smooth(t):
    return t.is_floating_point() or t.is_complex()


def narrowed(t, to):
    """A result of f64 for inputs of this dtype."""
    if to is None or t.dtype not in (f64, c128):
        return t
    to = {c64: f32, c128: f64}.get(to, to)
    return t.to({f32: c64, f64: c128}[to] if t.is_complex() else to)


class Calls(Stream):
    def tensor(self, key, op, call, pas, io, pos, t):
        if self.bad and io == "out" and t.dtype == torch.bool:
            t = t ^ (torch.arange(t.numel()) == 0).view(t.shape)
            self.bad = False
            super().tensor(key, op, call, pas, io, pos, t)
            self.rec[-1][1]["x-wrong"] = self.bad = True
        else:
            super().tensor(key, op, call, pas, io, pos, t)

    def item(self, key, op, call, io, pos, v):
        if is_tensor(v):
            self.tensor(key, op, call, "forward", io, pos, v)
        elif isinstance(v, slice):
            self.plain(key, op, call, io, pos, "slice",
                       "[%s]" % ", ".join("null" if k is None else str(k)
                                          for k in (v.start, v.stop, v.step)))
        elif v is Ellipsis:
            self.plain(key, op, call, io, pos, "ellipsis", "...")
        elif isinstance(v, torch.dtype):
            self.plain(key, op, call, io, pos, "torch.dtype", str(v))
        elif isinstance(v, (list, tuple)):
            for i, x in enumerate(v):
                self.item(key, op, call, io, f"{pos}.{i}", x)
        else:
            self.arg(key, op, call, io, pos, v)

    def plain(self, key, op, call, io, pos, kind, value):
        self.rec.append(["arg", {
            "name": f"{key}.{io}.{pos}", "src": "00000001", "seq": len(self.rec), "key": key,
            "op": op, "call": call, "pass": "forward", "io": io, "pos": str(pos), "type": kind,
            "value": value}])

    def do(self, op, fn, *args, grad=True, off=True, **kwargs):
        """Records op(*args, **kwargs), which fn computes; off: may be made wrong."""
        call = self.calls[op] = self.calls.get(op, -1) + 1
        key = f"{op}.{call}.forward"
        self.bad = False
        self.runs += off
        for i, a in enumerate(args):
            self.item(key, op, call, "in", i, a)
        for k, v in kwargs.items():
            self.item(key, op, call, "kw", k, v)
        given = flat(list(args)) + flat(list(kwargs.values()))
        narrow = [t.dtype for t in given if smooth(t)]
        to = narrow[0] if narrow else None
        a64, k64 = wide(args), {k: wide(v) for k, v in kwargs.items()}
        leaves = flat(list(a64)) + flat(list(k64.values()))
        for t in leaves:
            if smooth(t) and grad:
                t.requires_grad_(True)
        out = fn(*a64, **k64)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        self.bad = off and self.runs % 3 == 2
        for i, o in enumerate(outs):
            self.tensor(key, op, call, "forward", "out", i, narrowed(o, to))
        wanted = [t for t in leaves if t.requires_grad]
        used = [o for o in outs if o.requires_grad]
        if not wanted or not used:
            return
        gout = [narrowed(torch.randn(o.shape, dtype=o.dtype), to) for o in used]
        grads = torch.autograd.grad(used, wanted, [wide(g) for g in gout], allow_unused=True)
        key = f"{op}.{call}.backward"
        bad, self.bad = self.bad, False
        for i, g in enumerate(gout):
            self.tensor(key, op, call, "backward", "in", i, g)
        self.bad = bad
        grads = dict(zip([id(t) for t in wanted], grads))
        for i, t in enumerate(leaves):
            g = grads.get(id(t))
            if g is not None:
                self.tensor(key, op, call, "backward", "out", i, g.to(given[i].dtype))
            else:
                self.plain(key, op, call, "out", i, "None", None)
                self.rec[-1][1]["pass"] = "backward"


def arithmetic(s):
    for t in (f64, f32, bf16, f16):
        x, y = rand(3, 4, 5, dtype=t), rand(4, 1, dtype=t)
        s.do("Tensor.__add__", torch.add, x, y)
        s.do("Tensor.__sub__", torch.sub, x, y)
        s.do("Tensor.__mul__", torch.mul, x, y)
        s.do("Tensor.__truediv__", torch.div, x, y)
    x, y = rand(3, 4), rand(3, 4)
    s.do("Torch.add", torch.add, x, y, alpha=2.5)
    s.do("Tensor.__rsub__", lambda a, b: b - a, x, 2)
    s.do("Tensor.__rtruediv__", lambda a, b: b / a, x, 2.5)
    s.do("Torch.pow", torch.pow, x.abs(), 1.7)
    s.do("Torch.pow", torch.pow, 3.0, x)
    s.do("Tensor.__pow__", torch.pow, x, 3)
    s.do("Torch.maximum", torch.maximum, x, y)
    s.do("Torch.remainder", torch.remainder, x, 0.7, grad=False)
    s.do("Tensor.__floordiv__", torch.floor_divide, torch.tensor([7, -7, 9]), 2, grad=False)
    s.do("Torch.where", torch.where, x > 0, x, y)
    s.do("Torch.lerp", torch.lerp, x, y, 0.3)
    s.do("Torch.addcmul", torch.addcmul, x, y, rand(1, 4), value=0.5)
    s.do("Torch.clamp", torch.clamp, x, -0.5, 0.5)
    s.do("Torch.clamp", torch.clamp, x, max=0.25)
    for name in "eq ne lt le gt ge".split():
        s.do(f"Tensor.{name}", getattr(torch, name), x, y, grad=False)
    s.do("Torch.logical_and", torch.logical_and, x > 0, y > 0, grad=False)
    s.do("Tensor.__and__", torch.bitwise_and, torch.tensor([5, 6]), torch.tensor([3, 4]), grad=False)
    # NaN and infinities, and no elements at all
    odd = torch.tensor([nan, inf, -inf, 0.0, 1.0], dtype=f64)
    s.do("Tensor.__add__", torch.add, odd, torch.flip(odd, [0]), grad=False, off=False)
    s.do("Tensor.__mul__", torch.mul, odd, 0.0, grad=False, off=False)
    s.do("Tensor.__add__", torch.add, rand(0, 3), rand(3), grad=False, off=False)


def functions(s):
    x = rand(4, 6)
    for name in ("exp expm1 sin cos tan sinh cosh tanh atan asinh erf erfc sigmoid abs neg square "
                 "reciprocal sign floor ceil trunc").split():
        smooth = name not in ("sign", "floor", "ceil", "trunc")
        s.do(f"Torch.{name}", getattr(torch, name), x, grad=smooth)
    for name in "sqrt rsqrt log log2 log10 log1p acosh".split():
        s.do(f"Torch.{name}", getattr(torch, name), x.abs() + 1.25)
    for name in "asin acos atanh".split():
        s.do(f"Torch.{name}", getattr(torch, name), 0.5 * torch.tanh(x))
    for name in ("relu relu6 leaky_relu elu selu celu silu mish hardswish hardsigmoid hardtanh "
                 "softplus softsign logsigmoid gelu").split():
        s.do(f"Functional.{name}", getattr(F, name), 2 * x)
    s.do("Functional.gelu", F.gelu, 2 * x, approximate="tanh")
    s.do("Functional.leaky_relu", F.leaky_relu, x, 0.2)
    s.do("Functional.elu", F.elu, x, 1.5)
    s.do("Functional.softplus", F.softplus, x, 2, 3)
    s.do("Functional.glu", F.glu, x, -1)
    s.do("NPU.npu_swiglu", lambda t, dim: F.silu(t.chunk(2, dim)[0]) * t.chunk(2, dim)[1], x, -1)
    s.do("NPU.npu_fast_gelu", lambda t: t * torch.sigmoid(1.702 * t), x)
    for t in (f32, bf16, f16):
        y = rand(5, 7, dtype=t)
        for name in "gelu silu relu".split():
            s.do(f"Functional.{name}", getattr(F, name), y)
        s.do("Torch.tanh", torch.tanh, y)
    odd = torch.tensor([nan, inf, -inf, 0.0], dtype=f64)
    s.do("Functional.gelu", F.gelu, odd[3:], grad=False, off=False)
    s.do("Functional.relu", F.relu, odd, grad=False, off=False)
    s.do("Torch.exp", torch.exp, odd, grad=False, off=False)
    s.do("Torch.exp", torch.exp, rand(0), grad=False, off=False)


def products(s):
    for t in (f64, f32, bf16, f16):
        s.do("Functional.linear", F.linear, rand(2, 5, 8, dtype=t), rand(6, 8, dtype=t),
             rand(6, dtype=t))
        s.do("Torch.matmul", torch.matmul, rand(2, 1, 4, 8, dtype=t), rand(3, 8, 5, dtype=t))
    s.do("Functional.linear", F.linear, rand(8), rand(6, 8), None)
    s.do("Torch.matmul", torch.matmul, rand(8), rand(3, 8, 5))
    s.do("Torch.matmul", torch.matmul, rand(4, 8), rand(8))
    s.do("Torch.matmul", torch.matmul, rand(8), rand(8))
    s.do("Tensor.__rmatmul__", lambda a, b: b @ a, rand(8, 3), rand(4, 8))
    s.do("Torch.bmm", torch.bmm, rand(2, 3, 4), rand(2, 4, 5))
    s.do("Torch.mm", torch.mm, rand(3, 4), rand(4, 5))
    s.do("Torch.addmm", torch.addmm, rand(5), rand(3, 4), rand(4, 5), beta=0.5, alpha=2.0)
    s.do("Torch.baddbmm", torch.baddbmm, rand(2, 3, 5), rand(2, 3, 4), rand(2, 4, 5))
    s.do("Torch.outer", torch.outer, rand(3), rand(4))
    for eq, a, b in (("i,j->ij", (3,), (4,)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
                     ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,jk", (3, 4), (4, 5)),
                     ("abc,cd->dab", (2, 3, 4), (4, 5)), ("ij,kj->", (3, 4), (2, 4))):
        s.do("Torch.einsum", torch.einsum, eq, rand(*a), rand(*b))
    s.do("Torch.matmul", torch.matmul, rand(0, 4), rand(4, 5), grad=False, off=False)
    s.do("Torch.matmul", torch.matmul, rand(2, 0), rand(0, 3), grad=False, off=False)


def conv(s):
    for t in (f64, f32, bf16):
        s.do("Functional.conv2d", F.conv2d, rand(2, 4, 7, 6, dtype=t), rand(6, 4, 3, 3, dtype=t),
             rand(6, dtype=t), (2, 1), (1, 1), (1, 1), 1)
    x, w = rand(2, 4, 7, 6), rand(6, 2, 3, 2)
    s.do("Functional.conv2d", F.conv2d, x, w, rand(6), (1, 2), (2, 1), (2, 1), 2)
    s.do("Functional.conv2d", F.conv2d, x, rand(6, 4, 3, 3), None, padding="same")
    s.do("Functional.conv1d", F.conv1d, rand(2, 3, 9), rand(4, 3, 3), None, 2, 1)
    s.do("Functional.conv3d", F.conv3d, rand(1, 2, 4, 5, 4), rand(3, 2, 2, 3, 2), rand(3))
    s.do("Functional.conv_transpose2d", F.conv_transpose2d, rand(2, 4, 5, 4), rand(4, 3, 3, 3),
         rand(6), (2, 1), (1, 0), (1, 0), 2)
    s.do("Functional.conv_transpose1d", F.conv_transpose1d, rand(2, 3, 5), rand(3, 4, 3), None, 2, 1)


def norms(s):
    for t in (f64, f32, bf16):
        s.do("Functional.layer_norm", F.layer_norm, rand(2, 5, 8, dtype=t) + 1, (8,),
             rand(8, dtype=t), rand(8, dtype=t), 1e-5)
        s.do("NPU.npu_rms_norm", lambda x, g, epsilon: x * torch.rsqrt((x * x).mean(-1, True)
             + epsilon) * g, rand(2, 5, 8, dtype=t), rand(8, dtype=t), epsilon=1e-6)
        s.do("Functional.batch_norm", F.batch_norm, rand(3, 4, 5, dtype=t), None, None,
             weight=rand(4, dtype=t), bias=rand(4, dtype=t), training=True, eps=1e-5)
    s.do("Functional.layer_norm", F.layer_norm, rand(3, 4, 5), (4, 5), None, None)
    s.do("Functional.batch_norm", lambda x, m, v, *a: F.batch_norm(x, m.detach(),
         v.detach(), *a), rand(3, 4, 5, 2), rand(4), rand(4).abs(), rand(4), rand(4), False, 0.1,
         1e-3)
    s.do("Functional.group_norm", F.group_norm, rand(2, 6, 5), 3, rand(6), rand(6), 1e-5)
    s.do("Functional.instance_norm", F.instance_norm, rand(2, 3, 4, 5))


def softmaxes(s):
    for t in (f64, f32, bf16):
        s.do("Torch.log_softmax", torch.log_softmax, 20 * rand(3, 6, dtype=t), -1)   # of one, nearly all
        s.do("Torch.logsumexp", torch.logsumexp, 20 * rand(3, 6, dtype=t), -1)
        for name in "softmax log_softmax".split():
            s.do(f"Functional.{name}", getattr(F, name), 3 * rand(2, 4, 5, dtype=t), dim=-1)
    s.do("Torch.softmax", torch.softmax, rand(3, 4, 5), 1)
    s.do("Torch.logsumexp", torch.logsumexp, rand(3, 4, 5), dim=1)
    s.do("NPU.npu_scaled_masked_softmax", lambda x, m, scale, fixed: torch.softmax(
        (x * scale).masked_fill(m, -10000.0), -1), rand(2, 2, 3, 4), rand(1, 1, 3, 4) > 0.8, 0.5,
        False)
    s.do("Torch.softmax", torch.softmax, torch.tensor([[nan, 1.0], [inf, 0.0], [-inf, -inf]],
         dtype=f64), -1, grad=False, off=False)


def reductions(s):
    x = rand(3, 4, 5)
    for t in (f64, f32, bf16):
        s.do("Torch.sum", torch.sum, rand(3, 4, 5, dtype=t), dim=1)
        s.do("Tensor.mean", torch.mean, rand(3, 4, 5, dtype=t), -1, keepdim=True)
    s.do("Torch.sum", torch.sum, x)
    s.do("Torch.sum", torch.sum, x, (0, 2), True)
    s.do("Torch.prod", torch.prod, x, 1, grad=False)
    s.do("Torch.amax", torch.amax, x, (1, 2))
    s.do("Torch.amin", torch.amin, x, 0)
    s.do("Torch.max", torch.max, x, 1)
    s.do("Torch.argmax", torch.argmax, x, 1, grad=False)
    s.do("Torch.any", torch.any, x > 1, 1, grad=False)
    s.do("Torch.norm", torch.norm, x, 2, 1)
    s.do("Torch.norm", torch.norm, x)
    s.do("Torch.var", torch.var, x, 1, unbiased=False)
    s.do("Torch.std", torch.std, x, 2)
    s.do("Torch.cumsum", torch.cumsum, x, 1)
    s.do("Torch.cumprod", torch.cumprod, x, 2)
    s.do("Torch.sum", torch.sum, rand(0, 3), 0, grad=False, off=False)
    s.do("Torch.max", torch.max, torch.tensor([1.0, nan, 2.0], dtype=f64), 0, grad=False, off=False)


def movement(s):
    for t in (f64, bf16):
        x = rand(2, 3, 4, dtype=t)
        s.do("Tensor.view", lambda a, *n: a.view(*n), x, 6, -1)
        s.do("Tensor.transpose", torch.transpose, x, 0, -1)
        s.do("Tensor.permute", lambda a, *n: a.permute(*n), x, 2, 0, 1)
        s.do("Tensor.chunk", torch.chunk, x, 2, dim=-1)
        s.do("Tensor.split", torch.split, x, 3, dim=2)
        s.do("Torch.cat", torch.cat, [x, 2 * x, x], dim=1)
    s.do("Tensor.split", torch.split, x.double(), (1, 3), 2)
    s.do("Tensor.t", torch.t, rand(3, 4))
    s.do("Tensor.contiguous", lambda a: a, x)
    s.do("Tensor.unsqueeze", torch.unsqueeze, x, 1)
    s.do("Torch.flatten", torch.flatten, x, 1)
    s.do("Tensor.expand", lambda a, *n: a.expand(*n), rand(3, 1), 2, 3, 4)
    s.do("Tensor.narrow", torch.narrow, x, 2, 1, 2)
    s.do("Tensor.select", torch.select, x, 1, 2)
    s.do("Tensor.unbind", torch.unbind, x, 1)
    s.do("Torch.stack", torch.stack, [rand(2, 3), rand(2, 3)], 1)
    s.do("Torch.flip", torch.flip, x, (0, 2))
    s.do("Torch.roll", torch.roll, x, (1, -2), (0, 2))
    s.do("Torch.roll", torch.roll, x, 3)
    s.do("Tensor.repeat", lambda a, *n: a.repeat(*n), rand(2, 3), 2, 1, 3)
    s.do("Functional.pad", F.pad, x, (1, 2, 0, -1), "constant", 1.5)
    s.do("Torch.triu", torch.triu, rand(2, 4, 5), diagonal=1)
    s.do("Torch.tril", torch.tril, rand(4, 4), -1)
    s.do("Tensor.to", lambda a, d: a.to(d), rand(5), f64)
    s.do("Tensor.view", lambda a, *n: a.view(*n), rand(0, 3), 3, 0, grad=False, off=False)


def indices(s):
    x, ids = rand(5, 4, 3), torch.tensor([[0, 2, 2], [4, 1, 0]])
    s.do("Functional.embedding", F.embedding, ids, rand(5, 6))
    s.do("Functional.embedding", F.embedding, ids, rand(5, 6), 2)
    s.do("Functional.embedding", F.embedding, ids, rand(5, 6, dtype=bf16))
    s.do("Torch.index_select", torch.index_select, x, 1, torch.tensor([3, 0, 3]))
    s.do("Torch.gather", torch.gather, rand(2, 4), 1, ids.clamp(max=3))
    s.do("Torch.take", torch.take, x, ids)
    s.do("Tensor.masked_fill", lambda a, m, v: a.masked_fill(m, v), x, rand(4, 3) > 0, -1e4)
    for i in (1, -1, (1, 2), (slice(None), slice(1, None, 2)), (Ellipsis, slice(None, -1)),
              (None, 2), (slice(0, 3), None, Ellipsis, 1), (slice(None), ids[0]),
              (ids[:, :2], slice(None), ids[:, :2].clamp(max=2)), (ids[0], ids[1].clamp(max=3)),
              (rand(5) > 0,), (slice(None), torch.tensor([True, False, True, True]), slice(0, 2))):
        s.do("Tensor.__getitem__", lambda a, k: a[k], x, i)
    s.do("Tensor.__getitem__", lambda a, k: a[k], x, ids)


def losses(s):
    for t in (f64, f32):
        x, y = 2 * rand(6, 5, dtype=t), torch.tensor([0, 4, 2, -100, 1, 1])
        s.do("Functional.cross_entropy", F.cross_entropy, x, y)
        s.do("Functional.nll_loss", F.nll_loss, F.log_softmax(x, -1), y)
        s.do("Functional.mse_loss", F.mse_loss, x, rand(6, 5, dtype=t))
        s.do("Functional.binary_cross_entropy", lambda x, y: F.binary_cross_entropy(x, y.detach()),
             torch.sigmoid(5 * rand(6, 5, dtype=t)), (rand(6, 5) > 0).to(t))   # near to 0 and 1
    s.do("Functional.cross_entropy", lambda x, y, w, **k: F.cross_entropy(
         x, y, w.detach(), **k), x.double(), y, rand(5).abs(), reduction="sum",
         label_smoothing=0.1)
    s.do("Functional.cross_entropy", F.cross_entropy, rand(2, 5, 3), torch.tensor(
        [[0, 1, 2], [4, 3, 2]]), reduction="none")
    a, b, p = rand(4, 3), rand(4, 3), torch.sigmoid(rand(4, 3))
    s.do("Functional.mse_loss", F.mse_loss, a, b, reduction="sum")
    s.do("Functional.l1_loss", F.l1_loss, a, b)
    s.do("Functional.smooth_l1_loss", F.smooth_l1_loss, a, b, beta=0.5)
    s.do("Functional.huber_loss", F.huber_loss, a, b)
    s.do("Functional.binary_cross_entropy", lambda x, y:
         F.binary_cross_entropy(x, y.detach()), p, torch.sigmoid(b))
    s.do("Functional.binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, a,
         torch.sigmoid(b))
    s.do("Functional.kl_div", F.kl_div, F.log_softmax(a, -1), F.softmax(b, -1),
         reduction="batchmean")


def other_form(s):
    """All calls of an operator in another form than their arguments say."""
    for n in range(5):
        s.do("Functional.gelu", lambda x: F.gelu(x) * 0 + F.gelu(x, approximate="tanh"),
             rand(4, 6 + n, dtype=f32), grad=False, off=False)


def causes(s):
    """Calls that went wrong in ways that can be named; what is recorded is what `but` gives."""
    def wrong(op, fn, but, *args, **kwargs):
        s.do(op, lambda *a, **k: fn(*a, **k) * 0 + but(*a, **k), *args, grad=False, off=False,
             **kwargs)

    def hit(y, at):
        y = y.clone()
        y[at] += 3
        return y

    x, w, b = rand(4, 6, dtype=f32), rand(6, 6, dtype=f32), rand(6, dtype=f32)
    wrong("Functional.linear", F.linear, lambda x, w, b: F.linear(x, w), x, w, b)
    wrong("Functional.linear", F.linear, lambda x, w, b: F.linear(x, w.t(), b), x, w, b)
    wrong("Functional.gelu", F.gelu, lambda x: F.gelu(x, approximate="tanh"), x)
    wrong("Functional.layer_norm", F.layer_norm, lambda x, n, w, b, eps: F.layer_norm(x, n, w, b,
          1e-6), x * 1e-2, (6,), b, b, 1e-5)
    wrong("Tensor.mean", lambda x, d: x.mean(d), lambda x, d: x.sum(d), x, 0)
    wrong("Torch.triu", torch.triu, lambda x, diagonal: torch.triu(x, diagonal + 1), w, diagonal=1)
    wrong("Tensor.masked_fill", lambda x, m, v: x.masked_fill(m, v), lambda x, m, v: x.masked_fill(
          torch.triu(m, 2), v), w, torch.triu(torch.ones(6, 6), 1) > 0, 7.0)
    wrong("Torch.matmul", torch.matmul, lambda x, y: (x.bfloat16() @ y.bfloat16()).double(), x, w)
    wrong("Torch.matmul", torch.matmul, lambda x, y: hit(x @ y, 2), x, w)
    wrong("Torch.matmul", torch.matmul, lambda x, y: hit(x @ y, (slice(None), 1)), x, w)
    wrong("Torch.exp", torch.exp, lambda x: hit(x.exp(), (1, 1)), x)
    wrong("Torch.mul", torch.mul, lambda x, y: (x * y).clamp(-65504, 65504),
          torch.tensor([300.0, 2.0, 1.0], dtype=f16), torch.tensor([300.0, 5.0, 3.0], dtype=f16))

    class Zero(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x @ y

        @staticmethod
        def backward(ctx, g):
            return g.new_zeros(4, 6), g.new_zeros(6, 6)
    s.do("Torch.mm", Zero.apply, x, w, off=False)


def written(s):
    """As devices compute what is written: exp(x) - 1 and log(1 + exp(x)) in f32, near 0."""
    x = torch.cat([rand(40, dtype=f32) * 1e-3, rand(40, dtype=f32), -20 * rand(8, dtype=f32).abs()])

    def less(x, a=1.0):
        return (x.float().div(a).exp() - 1).mul(a).double()
    one = torch.tensor(1.0)
    for a in (1.0, 1.5):
        s.do("Functional.elu", lambda x, a: torch.where(x > 0, x, less(x) * a), x, a, grad=False, off=False)
        s.do("Functional.celu", lambda x, a: torch.where(x > 0, x, less(x, a)), x, a, grad=False, off=False)
    s.do("Functional.selu", lambda x: 1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * less(x)), x,
         grad=False, off=False)
    s.do("Torch.expm1", less, x, grad=False, off=False)
    s.do("Torch.log1p", lambda x: (one + x.float()).log().double(), x.abs(), grad=False, off=False)
    s.do("Functional.softplus", lambda x: (one + x.float().exp()).log().double(), x, grad=False, off=False)
    s.do("Functional.logsigmoid", lambda x: -(one + (-x).float().exp()).log().double(), x.clamp(min=-8),
         grad=False, off=False)
    # One rounding to bf16 of few elements, the worst that there is: half a step, just above a power of 2.
    up, down = torch.tensor([1.0], dtype=bf16), torch.tensor([2 ** -8 - 2 ** -16], dtype=bf16)
    s.do("Tensor.__add__", torch.add, up, down, grad=False, off=False)
    # And what is wrong, beside.
    for k in range(3):
        s.do("Functional.elu", lambda x, a: F.elu(x, a) + (x == x[60]) * 1e-3, x + k, 1.0, grad=False,
             off=False)
        s.rec[-1][1]["x-wrong"] = True


def few_bits(bits, down=False):
    """One product alone, forward and backward, of operands that have lost bits."""
    def cut(t):
        t, rest = t.float().contiguous(), 23 - bits
        i = t.view(torch.int32) + (0 if down else 1 << rest - 1)
        return (i & -(1 << rest)).view(f32).double()

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b):
            ctx.save_for_backward(x, w)
            return cut(x) @ cut(w).t() + b

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return cut(g) @ cut(w), cut(g).t() @ cut(x), g.sum(0)

    def family(s):
        s.do("Functional.linear", Product.apply, rand(12, 20, dtype=f32), rand(16, 20, dtype=f32),
             rand(16, dtype=f32), off=False)
    return family


def turned(s):
    """The gradient of a square weight as who hooks nodes has it, of the turned one; and kernels that round a product
    before they add its bias; numbers near the largest."""
    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w.t()

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g @ w, (g.t() @ x).t()

    for n in (4, 8, 16):
        s.do("Functional.linear", Linear.apply, rand(12, n, dtype=f32), rand(n, n, dtype=f32))
    for t in (bf16, f16):       # torch's own kernel, of an operand that lies the other way
        x = F.relu(rand(2, 16, 12, dtype=t)).transpose(1, 2)
        s.do("Functional.linear", lambda x, w, b, t=t: F.linear(x.to(t), w.to(t), b.to(t)).double(), x, rand(24, 16, dtype=t) / 4, rand(24, dtype=t), off=False, grad=False)
    s.do("Functional.linear", F.linear, rand(12, 8, dtype=f64), rand(8, 8, dtype=f64), off=False)
    # The gradient is asked of steps, none of which may lead beyond the largest number.
    s.do("Tensor.sub", torch.sub, 1.7e308 * torch.sign(rand(9, dtype=f64)), 0.1, off=False)


def named(name, f):
    f.__name__ = name
    return f


FORMS = [named("tf32", few_bits(10)), named("tf32_down", few_bits(10, True)),
         named("hf32", few_bits(11)), named("bf16_operands", few_bits(7))]
FAMILIES = [arithmetic, functions, products, conv, norms, softmaxes, reductions, movement, indices,
            losses, causes, other_form, written, turned] + FORMS

if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for family in FAMILIES:
        torch.manual_seed(1)
        stream = Calls()
        family(stream)
        stream.write(os.path.join(out, family.__name__ + ".acc.gz"))
