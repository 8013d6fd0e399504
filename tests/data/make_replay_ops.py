#!/usr/bin/env python3
"""More op calls for the audit, as make_replay.py makes them: writing by indices, sorting, tensors
made from numbers, patterns, distances, lists of tensors and optimizers.

    tests/data/make_replay_ops.py tests/data/replay_ops
"""
import os
import sys

import torch
import torch.nn.functional as F

from make_replay import Calls, bf16, c64, c128, f16, f32, f64, inf, is_tensor, nan, rand

ids = torch.tensor


class Ranked(Calls):
    """Indices stay right: the gradient is that of the elements they name."""
    def tensor(self, key, op, call, pas, io, pos, t):
        bad = self.bad
        self.bad = bad and not (pas == "forward" and io == "out" and pos == 1)
        super().tensor(key, op, call, pas, io, pos, t)
        self.bad = bad


def scatters(s):
    x, src = rand(4, 5), rand(3, 4)
    idx = ids([[0, 1, 2, 0], [2, 0, 0, 1], [1, 2, 3, 3]])
    once = ids([[0, 1, 2, 3], [2, 0, 4, 1], [1, 2, 3, 0]])
    for t in (f64, bf16):
        s.do("Tensor.scatter", torch.scatter, x.to(t), 1, once, src.to(t))
        s.do("Tensor.scatter_add", torch.scatter_add, x.to(t), 0, idx, src.to(t))
    s.do("Tensor.scatter_", torch.scatter, x, 1, idx, 2.5)
    s.do("Torch.scatter", torch.scatter, x, 0, idx, src, reduce="add", grad=False)
    for how in "sum prod mean amax amin".split():
        s.do("Tensor.scatter_reduce", torch.scatter_reduce, x, 0, idx, src, how, grad=False)
        s.do("Tensor.scatter_reduce", torch.scatter_reduce, x, 0, idx, src, reduce=how,
             include_self=False, grad=False)
    at, rows = ids([3, 0, 3]), rand(3, 5)
    s.do("Tensor.index_add", torch.index_add, x, 0, at, rows, alpha=0.5)
    s.do("Tensor.index_add_", torch.index_add, x, 1, at, rand(4, 3))
    s.do("Tensor.index_copy", torch.index_copy, x, 0, ids([2, 0, 1]), rows)
    s.do("Tensor.index_fill_", torch.index_fill, x, 1, at, -1.5)
    s.do("Tensor.masked_scatter", torch.masked_scatter, x, x > 0, rand(20))
    s.do("Torch.masked_select", torch.masked_select, x, rand(4, 1) > -0.5)
    s.do("Tensor.index_put", torch.index_put, x, (ids([0, 3]), ids([1, 4])), rand(2))
    s.do("Tensor.index_put_", torch.index_put, x, (ids([0, 3, 0]),), rand(3, 5), True)
    s.do("Tensor.put_", lambda a, i, v, acc: a.put(i, v, acc), x, ids([1, 7, 1]), rand(3), True)
    s.do("Torch.take_along_dim", torch.take_along_dim, x, ids([[1, 0, 3, 2, 1]]), 0)

    def set_item(a, k, v):
        a = a.clone()
        a[k] = v
        return a
    for k, v in ((1, rand(5)), ((slice(1, 3), slice(None, None, 2)), rand(2, 3)),
                 ((slice(None), -1), 4.0), ((Ellipsis, ids([0, 2])), rand(4, 2)),
                 ((rand(4) > 0,), rand(5)), (rand(4, 5) > 0, 0.0)):
        s.do("Tensor.__setitem__", set_item, x, k, v)
    s.do("NPU.npu_scatter_nd_update", lambda a, i, v: a.index_put((i[:, 0], i[:, 1]), v),
         rand(3, 4, 2), ids([[0, 1], [2, 3]]), rand(2, 2))
    s.do("Torch.scatter", torch.scatter, x, 1, idx[:0], src, grad=False, off=False)
    s.do("Torch.scatter", torch.scatter, x, 1, idx, src, grad=False)
    s.do("Torch.scatter_add", torch.scatter_add, ids([nan, inf, 1.0]), 0, ids([1, 2]),
         ids([1.0, inf]), grad=False, off=False)


def orders(s):
    for t in (f64, f32, bf16):
        x = rand(3, 7, dtype=t)
        s.do("Torch.sort", torch.sort, x)
        s.do("Tensor.topk", torch.topk, x, 3)
    x = rand(3, 6, 4)
    s.do("Torch.sort", torch.sort, x, 1, True)
    s.do("Torch.argsort", torch.argsort, x, 1, grad=False)
    s.do("Torch.topk", torch.topk, x, 2, 1, False, False)
    s.do("Torch.msort", torch.msort, x, grad=False)
    s.do("Torch.kthvalue", torch.kthvalue, x, 2, 1, True)
    s.do("Torch.median", torch.median, x, 1)
    s.do("Torch.median", torch.median, x, grad=False)
    s.do("Torch.cummax", torch.cummax, x, 1)
    s.do("Torch.cummin", torch.cummin, x, dim=2)
    s.do("Torch.searchsorted", torch.searchsorted, rand(5).sort()[0], rand(3, 2), grad=False)
    s.do("Torch.searchsorted", torch.searchsorted, ids([[1, 2, 2, 3], [0, 1, 5, 9]]),
         ids([[2, 4], [1, 9]]), right=True)
    s.do("Torch.bucketize", torch.bucketize, x, rand(4).sort()[0], grad=False)
    s.do("Torch.bincount", torch.bincount, ids([3, 1, 1, 0]), minlength=6, grad=False)
    s.do("Torch.bincount", torch.bincount, ids([3, 1, 1, 0]), rand(4), grad=False)
    for t in (f64, f32, bf16):   # of equal values one is taken, or all share its gradient
        tied = torch.tensor([[2.0, 5, 5, 1], [3, 3, 0, 3], [1, 2, 1, 4]], dtype=t)
        s.do("Torch.max", torch.max, tied, 1)
        s.do("Tensor.min", torch.min, tied, 1, True)
        s.do("Torch.amax", torch.amax, tied, 1, off=False)
        s.do("Tensor.max", torch.max, tied, off=False)
    s.do("Torch.unique", torch.unique, ids([3, 1, 2, 1, 3]), return_inverse=True, grad=False,
         return_counts=True)
    s.do("Tensor.nonzero", torch.nonzero, ids([[0, 1], [2, 0]]), grad=False)
    s.do("Torch.where", torch.where, ids([[0, 1], [2, 0]]) > 0, grad=False)
    ties = ids([2.0, 1.0, 2.0, nan, 1.0], dtype=f64)
    s.do("Torch.sort", torch.sort, ties, descending=True, grad=False, off=False)
    s.do("Torch.topk", torch.topk, ties, 4, grad=False, off=False)
    s.do("Torch.median", torch.median, ties, grad=False, off=False)
    s.do("Torch.sort", torch.sort, rand(0, 3), grad=False, off=False)


def makers(s):
    for a in ((5,), (2, 7), (1, 8, 3), (0.5, 2.0, 0.25)):
        s.do("Torch.arange", torch.arange, *a, grad=False)
    s.do("Torch.arange", lambda start, end: torch.arange(start, end), start=1, end=4, grad=False)
    s.do("Torch.linspace", torch.linspace, -1.0, 2.0, 7, grad=False)
    s.do("Torch.zeros", lambda *n: torch.zeros(*n), 2, 3, grad=False, off=False)
    s.do("Torch.ones", torch.ones, (2, 3), grad=False)
    s.do("Torch.full", torch.full, (2, 2), 0.1, grad=False)
    s.do("Torch.full_like", torch.full_like, rand(2, 2), 3.5, grad=False)
    s.do("Torch.zeros_like", torch.zeros_like, rand(2, 2), grad=False, off=False)
    s.do("Tensor.new_zeros", lambda x, n: x.new_zeros(n), rand(2), (3, 2), grad=False, off=False)
    s.do("Tensor.fill_", lambda x, v: torch.full_like(x, v), rand(3), 2.5, grad=False)
    s.do("Tensor.zero_", torch.zeros_like, rand(3), grad=False, off=False)
    s.do("Tensor.copy_", lambda x, y: y.expand_as(x).to(x.dtype), rand(3, 2), rand(2), grad=False)
    s.do("Torch.eye", torch.eye, 3, 4, grad=False)
    s.do("Torch.tril_indices", torch.tril_indices, 3, 4, -1, grad=False)
    s.do("Torch.triu_indices", torch.triu_indices, 3, 3, grad=False)
    s.do("Functional.one_hot", F.one_hot, ids([[0, 2], [1, 1]]), grad=False)
    s.do("Functional.one_hot", F.one_hot, ids([0, 2]), 4, grad=False)
    s.do("Torch.meshgrid", lambda *x, **k: torch.meshgrid(*x, **k), rand(2), rand(3),
         indexing="xy", grad=False)
    s.do("Torch.meshgrid", lambda *x: torch.meshgrid(*x, indexing="ij"), ids([1, 2]),
         ids([3, 4, 5]), ids([6, 7]), grad=False)
    s.do("Torch.zeros", torch.zeros, 0, grad=False, off=False)


def patterns(s):
    x = rand(1, 2, 6, 5)
    s.do("Functional.unfold", F.unfold, x, (3, 2), 1, 1, 2)
    s.do("Functional.unfold", F.unfold, x, 2, dilation=2)
    s.do("Functional.fold", F.fold, rand(1, 8, 20), (5, 6), 2)
    s.do("Functional.fold", F.fold, rand(12, 9), (5, 5), kernel_size=2, stride=2, padding=1)
    s.do("Tensor.unfold", lambda a, *k: a.unfold(*k), x, 2, 3, 2)
    s.do("Functional.pixel_shuffle", F.pixel_shuffle, rand(1, 4, 2, 3), 2)
    s.do("Functional.pixel_unshuffle", F.pixel_unshuffle, rand(2, 2, 4, 6), 2)
    s.do("Functional.channel_shuffle", F.channel_shuffle, rand(2, 6, 2, 2), 3, grad=False)
    s.do("NPU.npu_confusion_transpose", lambda a, p, n, first: a.permute(*p).reshape(n), x,
         (0, 2, 1, 3), (1, 6, 10), True)
    s.do("NPU.npu_confusion_transpose", lambda a, p, n, first: a.view(n).permute(*p),
         rand(1, 6, 8), (0, 2, 1, 3), (1, 6, 2, 4), False)
    s.do("Torch.diagonal", torch.diagonal, x, 1, 2, 3)
    s.do("Torch.diag", torch.diag, rand(4), -1)
    s.do("Torch.diag", torch.diag, rand(4, 3))
    s.do("Torch.diag_embed", torch.diag_embed, rand(2, 3), 1)
    s.do("Torch.repeat_interleave", torch.repeat_interleave, x, 2, 1)
    s.do("Torch.repeat_interleave", torch.repeat_interleave, rand(3, 2), ids([1, 0, 2]), dim=0)
    s.do("Torch.movedim", torch.movedim, x, (0, 1), (2, 0))


def distances(s):
    for t in (f64, f32, bf16):
        s.do("Functional.cosine_similarity", F.cosine_similarity, rand(3, 6, dtype=t),
             rand(3, 6, dtype=t))
        s.do("Functional.normalize", F.normalize, rand(3, 6, dtype=t))
        s.do("Torch.cdist", torch.cdist, rand(2, 3, 4, dtype=t), rand(2, 5, 4, dtype=t))
    s.do("Functional.normalize", F.normalize, rand(2, 3, 4), p=1.0, dim=-1)
    s.do("Functional.cosine_similarity", F.cosine_similarity, rand(2, 3, 4), rand(1, 3, 4), -1)
    s.do("Torch.cdist", torch.cdist, rand(3, 4), rand(2, 4), 1.0)
    s.do("Torch.cdist", torch.cdist, rand(27, 2), rand(3, 2), grad=False)
    s.do("Functional.pairwise_distance", F.pairwise_distance, rand(3, 4), rand(3, 4))
    s.do("Functional.pairwise_distance", F.pairwise_distance, rand(3, 4), rand(4), 1.0, 1e-6, True)
    s.do("Torch.dist", torch.dist, rand(3, 4), rand(3, 4))


def margins(s):
    """Losses of margins, distances and likelihoods."""
    def signs(*shape):
        return torch.randint(2, shape) * 2.0 - 1

    def fixed(f, at):
        """Whose argument `at` has no gradient."""
        return lambda *a, **k: f(*(x.detach() if i == at else x for i, x in enumerate(a)), **k)
    for t in (f64, f32, bf16):
        x, y, z = (rand(6, 5, dtype=t) for _ in range(3))
        for how in ("mean", "sum", "none"):
            s.do("Functional.margin_ranking_loss", fixed(F.margin_ranking_loss, 2), x, y, signs(6, 5).to(t), 0.3,
                 reduction=how)
            s.do("Functional.hinge_embedding_loss", fixed(F.hinge_embedding_loss, 1), x, signs(6, 5).to(t),
                 reduction=how)
            s.do("Functional.soft_margin_loss", fixed(F.soft_margin_loss, 1), x, signs(6, 5).to(t), reduction=how)
            s.do("Functional.poisson_nll_loss", fixed(F.poisson_nll_loss, 1), x, 3 * torch.rand(6, 5).to(t),
                 reduction=how)
            s.do("Functional.gaussian_nll_loss", F.gaussian_nll_loss, x, y,
                 (z * z + 0.1).detach(), reduction=how)
            s.do("Functional.triplet_margin_loss", F.triplet_margin_loss, x, y, z, reduction=how)
            s.do("Functional.cosine_embedding_loss", fixed(F.cosine_embedding_loss, 2), x, y, signs(6).to(t), 0.1,
                 reduction=how)
            s.do("Functional.multi_margin_loss", F.multi_margin_loss, x, torch.randint(5, (6,)),
                 reduction=how)
            s.do("Functional.multilabel_soft_margin_loss", fixed(F.multilabel_soft_margin_loss, 1), x,
                 torch.randint(2, (6, 5)).to(t), reduction=how)
    x, y, z = (rand(2, 3, 4) for _ in range(3))
    s.do("Functional.triplet_margin_loss", F.triplet_margin_loss, x, y, z, 0.5, 1.0, swap=True)
    s.do("Functional.triplet_margin_loss", F.triplet_margin_loss, x, y, z, 2.0, 3.0, 1e-3)
    s.do("Functional.poisson_nll_loss", fixed(F.poisson_nll_loss, 1), rand(4, 5) ** 2 + 0.2, 3 * torch.rand(4, 5),
         False, True)
    s.do("Functional.gaussian_nll_loss", F.gaussian_nll_loss, rand(4, 5), rand(4, 5),
         (rand(4, 1) ** 2 + 0.1), full=True)
    s.do("Functional.gaussian_nll_loss", F.gaussian_nll_loss, rand(4, 5), rand(4, 5), rand(4) ** 2 + 0.1)
    s.do("Functional.multi_margin_loss", F.multi_margin_loss, rand(4, 5), torch.randint(5, (4,)), 2, 0.7,
         rand(5) ** 2, grad=False)
    s.do("Functional.multilabel_soft_margin_loss", fixed(F.multilabel_soft_margin_loss, 1), rand(4, 5),
         torch.randint(2, (4, 5)).double(), rand(5) ** 2)


def hidden(s):
    """Scores of minus infinity, as masks leave them."""
    for t in (f64, f32, bf16):
        x = rand(2, 5, 5, dtype=t).masked_fill(torch.ones(5, 5).triu(3) > 0, -inf)
        for fn in (F.softmax, F.softmax, torch.logsumexp):
            s.do(f"Torch.{fn.__name__}", fn, x, -1)
        s.do("Torch.log_softmax", F.log_softmax, x, -1, off=False)
    s.do("Torch.logsumexp", torch.logsumexp, x, -1)
    s.do("Torch.logsumexp", torch.logsumexp, x, -1)


def lists(s):
    x, y = [rand(2, 3), rand(4)], [rand(2, 3), rand(4)]
    s.do("Torch._foreach_add", torch._foreach_add, x, y, alpha=0.5, grad=False)
    s.do("Torch._foreach_mul_", torch._foreach_mul, x, 0.25, grad=False)
    s.do("Torch._foreach_div", torch._foreach_div, x, (2.0, 3.0), grad=False)
    s.do("Torch._foreach_addcdiv_", torch._foreach_addcdiv, x, y, y, -0.1, grad=False)
    s.do("Torch._foreach_norm", torch._foreach_norm, x, grad=False)
    s.do("Torch._foreach_sqrt", torch._foreach_sqrt, [a.abs() for a in x], grad=False)

    # clip_grad_norm_, as torch does it
    norms = torch._foreach_norm([a.float() for a in x], 2.0)
    s.do("Torch.stack", torch.stack, norms, grad=False)
    s.do("Torch.norm", torch.norm, torch.stack(norms), 2.0, grad=False)
    total = torch.norm(torch.stack(norms), 2.0)
    s.do("Tensor.__add__", torch.add, total, 1e-6, grad=False)
    s.do("Tensor.__rdiv__", lambda a, b: b / a, total + 1e-6, 1.0, grad=False)
    s.do("Torch.clamp", torch.clamp, 1.0 / (total + 1e-6), max=1.0, grad=False)
    s.do("Tensor.mul_", torch.mul, x[0].float(), (1.0 / (total + 1e-6)).clamp(max=1.0), grad=False)

    def clipped(most):
        def run(g, *a):
            p = [torch.nn.Parameter(torch.zeros_like(v)) for v in g]
            for q, v in zip(p, g):
                q.grad = v.clone()
            torch.nn.utils.clip_grad_norm_(p, most)
            return [q.grad for q in p]
        return run
    s.do("Functional.clip_by_norm", clipped(1.5), [10 * a for a in x], 1.5, grad=False)
    s.do("Functional.clip_by_norm", clipped(90.0), x, 90.0, grad=False)
    s.do("Functional.clip_by_global_norm", lambda g, m: [v * (m / torch.cat(
         [a.flatten() for a in g]).norm().clamp(min=m)) for v in g], x, 0.5, grad=False)
    s.do("Functional.clip_by_value", torch.clamp, x[0], -0.5, 0.25, grad=False)


def step(kind, p, g, n, **kw):
    """A step of an optimizer after n - 1 others: parameters and states before and after."""
    q = [torch.nn.Parameter(v.clone()) for v in p]
    o = kind(q, **kw)
    past = [[rand(*v.shape, dtype=v.dtype) for v in p] for _ in range(n - 1)] + [g]
    for i, grads in enumerate(past):
        if i == n - 1:
            before = [{k: v.clone() if isinstance(v, torch.Tensor) else v
                       for k, v in o.state[v].items()} for v in q]
            old = [v.detach().clone() for v in q]
        for v, w in zip(q, grads):
            v.grad = w.clone()
        o.step()
    return old, before, [v.detach() for v in q], [o.state[v] for v in q]


def optimizers(s):
    p, g = [rand(2, 3), rand(4)], [rand(2, 3), rand(4)]

    def adam(name, kind, n, fused=False, **kw):
        old, was, new, now = step(kind, p, g, n, **kw)
        top = [w["max_exp_avg_sq"] for w in was] if kw.get("amsgrad") else []
        b1, b2 = kw.pop("betas", (0.9, 0.999))
        args = dict(dict(lr=1e-3, weight_decay=0.01 if kind is torch.optim.AdamW else 0.0,
                         eps=1e-8, amsgrad=False, maximize=False), beta1=b1, beta2=b2, **{})
        args.update(kw)
        out = new
        if fused:
            out = new + g + [w["exp_avg"] for w in now] + [w["exp_avg_sq"] for w in now]
            out += [w["max_exp_avg_sq"] for w in now] if top else []
        s.do(name, lambda *a, **k: out, old, g, [w["exp_avg"] for w in was],
             [w["exp_avg_sq"] for w in was], top,
             [torch.as_tensor(float(n if fused else n - 1)) for _ in p], grad=False, **args)

    for n in (2, 7):
        adam("Aten._fused_adam_.default", torch.optim.Adam, n, True, lr=0.01, weight_decay=0.1)
        adam("Aten._fused_adamw_.default", torch.optim.AdamW, n, True, lr=0.01)
    adam("Functional.adamw", torch.optim.AdamW, 3, amsgrad=True, weight_decay=0.2)
    adam("Functional.adam", torch.optim.Adam, 4, betas=(0.8, 0.95), maximize=True)

    def sgd(n, **kw):
        old, was, new, now = step(torch.optim.SGD, p, g, n, **kw)
        buf = [w.get("momentum_buffer") for w in was]
        args = dict(weight_decay=0.0, momentum=0.0, dampening=0.0, nesterov=False, maximize=False)
        args.update(kw)
        s.do("Functional.sgd", lambda *a, **k: new, old, g, buf if n > 1 and buf[0] is not None
             else [None, None], grad=False, **args)

    sgd(1, lr=0.1)
    sgd(1, lr=0.1, momentum=0.9, dampening=0.5)
    sgd(3, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01)
    sgd(3, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)

    # npu_apply_adam_w takes the powers of the step before; npu_apply_adam those of this one, and
    # its eps stands beside the root of v that is not corrected
    def npu(name, n, out_of, dtype=f64, **kw):
        old, was, new, now = step(torch.optim.AdamW, p[:1], g[:1], n, lr=0.01, weight_decay=0.1)
        s.do(name, *out_of(old[0], was[0], new[0], now[0], n), grad=False)

    npu("NPU.npu_apply_adam_w", 3, lambda a, w, b, v, n: (
        lambda *x: (b, v["exp_avg"], v["exp_avg_sq"]), 0.9 ** (n - 1), 0.999 ** (n - 1), 0.01, 0.1,
        0.9, 0.999, 1e-8, g[0], None, False, False, [a, w["exp_avg"], w["exp_avg_sq"]]))
    old, was, new, now = step(torch.optim.Adam, p[:1], g[:1], 4, lr=0.01, eps=0.0)
    w, v = was[0], now[0]
    for name in ("NPU.npu_apply_adam", "Primitive.opt.Adam"):
        state = [old[0], w["exp_avg"], w["exp_avg_sq"]]
        numbers = (0.9 ** 4, 0.999 ** 4, 0.01, 0.9, 0.999, 0.0, g[0])
        args = state + list(numbers) if "Primitive" in name else \
            list(numbers) + [False, False, state]
        s.do(name, lambda *a: (new[0], v["exp_avg"], v["exp_avg_sq"]), *args, grad=False)
    m = 0.9 * w["exp_avg"] + 0.1 * g[0]
    u = 0.999 * w["exp_avg_sq"] + 0.001 * g[0] ** 2
    s.do("Primitive.opt.AdamWeightDecay", lambda *a: (
        p[0] - 0.01 * (m / (u.sqrt() + 1e-6) + 0.05 * p[0]), m, u), p[0], w["exp_avg"],
        w["exp_avg_sq"], 0.01, 0.9, 0.999, 1e-6, 0.05, g[0], grad=False)
    old, was, new, now = step(torch.optim.SGD, p[:1], g[:1], 3, lr=0.1, momentum=0.9)
    s.do("Primitive.opt.ApplyMomentum", lambda *a: new[0], old[0], was[0]["momentum_buffer"], 0.1,
         g[0], 0.9, grad=False)
    for n, kw in ((2, dict(lr=0.1)), (3, dict(lr=0.05, lr_decay=0.3, weight_decay=0.1, eps=1e-3))):
        old, was, new, now = step(torch.optim.Adagrad, p, g, n, **kw)
        args = dict(dict(weight_decay=0.0, lr_decay=0.0, eps=1e-10, maximize=False), **kw)
        s.do("Functional.adagrad", lambda *a, **k: new + g + [w["sum"] for w in now], old, g,
             [w["sum"] for w in was], [w["step"] for w in was], grad=False, **args)
    for kw in (dict(lr=0.01), dict(lr=0.02, alpha=0.9, weight_decay=0.1)):
        old, was, new, now = step(torch.optim.RMSprop, p, g, 3, **kw)
        args = dict(dict(alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False), **kw)
        lists = [[w[k] for w in was if k in w] for k in ("square_avg", "grad_avg", "momentum_buffer", "step")]
        s.do("Functional.rmsprop", lambda *a, **k: new + g + [w["square_avg"] for w in now], old, g, *lists, grad=False, **args)
    for kw in (dict(lr=0.01), dict(lr=0.02, weight_decay=0.1, maximize=True)):
        old, was, new, now = step(torch.optim.Adamax, p, g, 3, **kw)
        args = dict(dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, maximize=False), **kw)
        lists = [[w[k] for w in was] for k in ("exp_avg", "exp_inf", "step")]
        s.do("Functional.adamax", lambda *a, **k: new + g + [w[k] for k in ("exp_avg", "exp_inf") for w in now], old, g, *lists, grad=False, **args)

    def rates(name, of, states, n, given, **kw):
        old, was, new, now = step(of, p, g, n, **kw)
        lists = [[w[k] for w in was] for k in (*states, *(["mu_product"] if name == "nadam" else []), "step")]
        s.do("Functional." + name, lambda *a, **k: new + g + [w[k] for k in states for w in now], old, g, *lists, grad=False,
             **dict(dict(weight_decay=0.0, maximize=False, **given), **kw))

    beta, avgs = dict(beta1=0.9, beta2=0.999, eps=1e-8), ("exp_avg", "exp_avg_sq")
    rates("nadam", torch.optim.NAdam, avgs, 3, dict(beta, momentum_decay=4e-3), lr=0.01)
    rates("nadam", torch.optim.NAdam, avgs, 2, dict(beta, momentum_decay=4e-3), lr=0.02, weight_decay=0.1, decoupled_weight_decay=True)
    rates("radam", torch.optim.RAdam, avgs, 2, beta, lr=0.01, weight_decay=0.1)
    rates("radam", torch.optim.RAdam, avgs, 9, beta, lr=0.01, maximize=True)
    rates("adadelta", torch.optim.Adadelta, ("square_avg", "acc_delta"), 3, dict(rho=0.9, eps=1e-6), lr=1.0, weight_decay=0.1)


def rarer(s):
    x, y = rand(3, 4), rand(3, 4)
    s.do("Functional.threshold", F.threshold, x, 0.2, -1.0)
    s.do("Functional.hardshrink", F.hardshrink, x)
    s.do("Functional.softshrink", F.softshrink, x, 0.3)
    s.do("Functional.tanhshrink", F.tanhshrink, 3 * x)
    s.do("Torch.logit", torch.logit, torch.sigmoid(x), 1e-2)
    for name in "sinc deg2rad rad2deg".split():
        s.do(f"Torch.{name}", getattr(torch, name), x)
    s.do("Torch.lgamma", torch.lgamma, x.abs() + 0.5)
    s.do("Functional.prelu", F.prelu, x, rand(4))
    s.do("Functional.prelu", F.prelu, x, ids([0.25], dtype=f64))
    for name in "fmax fmin logaddexp logaddexp2 copysign".split():
        s.do(f"Torch.{name}", getattr(torch, name), x, y, grad=name != "copysign")
    s.do("Torch.xlogy", torch.xlogy, x, y.abs() + 0.1)
    s.do("Torch.float_power", torch.float_power, x.abs(), 2.5)
    s.do("Torch.clamp_min", torch.clamp_min, x, 0.1)
    s.do("Torch.clamp_max", torch.clamp_max, x, y, grad=False)
    s.do("Torch.heaviside", torch.heaviside, ids([-1.0, 0.0, 2.0]), ids([0.5]), grad=False)
    s.do("Torch.ldexp", torch.ldexp, x, ids([1, 2, 3, -1]), grad=False)
    s.do("Torch.gcd", torch.gcd, ids([12, -9, 0]), ids([18, 6, 5]), grad=False)
    s.do("Torch.lcm", torch.lcm, ids([12, -9, 0]), ids([18, 6, 5]), grad=False)
    s.do("Torch.bitwise_not", torch.bitwise_not, ids([5, -1, 0]), grad=False)
    odd = ids([nan, inf, -inf, 1.0])
    s.do("Torch.nan_to_num", torch.nan_to_num, odd, grad=False, off=False)
    s.do("Torch.nan_to_num", torch.nan_to_num, odd, 0.5, posinf=2.0, grad=False, off=False)
    s.do("Torch.isposinf", torch.isposinf, odd, grad=False, off=False)
    s.do("Torch.fmax", torch.fmax, odd, ids([1.0, nan, 2.0, nan]), grad=False, off=False)
    s.do("Torch.clamp_min", torch.clamp_min, odd, 0.0, grad=False, off=False)


def rms(x, g, eps):
    r = torch.rsqrt((x * x).mean(-1, True) + eps)
    return x * r * g, r


def fused(s):
    def add_rms(a, b, g, epsilon):
        return (*rms(a + b, g, epsilon), a + b)

    def layer(x, g, b, eps):
        m, v = x.mean(-1, True), x.var(-1, unbiased=False, keepdim=True)
        r = torch.rsqrt(v + eps)
        return (x - m) * r * g + b, m, r
    x, y, g, b = rand(2, 3, 8), rand(2, 3, 8), rand(8), rand(8)
    for t in (f64, bf16):
        s.do("NPU.npu_add_rms_norm", add_rms, x.to(t), y.to(t), g.to(t), 1e-5)
    s.do("NPU.npu_add_layer_norm", lambda a, c, g, b, e, more: (*layer(a + c, g, b, e), a + c), x, y,
         g, b, 1e-5, True)
    s.do("NPU.npu_deep_norm", lambda x, gx, b, g, alpha, e: (lambda o: (o[1], o[2], o[0]))(
         layer(alpha * x + gx, g, b, e)), x, y, b, g, 0.5, 1e-6)
    s.do("NPU.npu_layer_norm_eval", F.layer_norm, x, (8,), g, b, 1e-5)
    s.do("Aten.native_group_norm.default", lambda x, w, b, n, c, k, g, e: torch.native_group_norm(
         x, w, b, n, c, k, g, e)[0], rand(2, 6, 5), rand(6), rand(6), 2, 6, 5, 3, 1e-5)
    s.do("NPU.npu_group_norm_silu", lambda x, w, b, n, eps: F.silu(F.group_norm(x, n, w, b, eps)),
         rand(2, 6, 5), rand(6), rand(6), 3, 1e-5)

    def geglu(t, dim=-1, approximate=1):
        a, c = t.chunk(2, dim)
        h = F.gelu(c, approximate="tanh" if approximate else "none")
        return a * h, h
    s.do("NPU.npu_geglu", geglu, x)
    s.do("NPU.npu_geglu", geglu, x, dim=2, approximate=0)
    s.do("NPU.npu_softmax_cross_entropy_with_logits", lambda x, t: -(t * F.log_softmax(x, -1)).sum(-1),
         rand(4, 5), torch.softmax(rand(4, 5), -1))
    s.do("NPU.npu_moe_gating_top_k_softmax", lambda x, f, k: (*torch.softmax(x, -1).topk(k),
         torch.arange(x.shape[0] * k).view(k, -1).t()), rand(4, 6), None, 2, grad=False, off=False)
    gx, gw = rand(6, 3), rand(3, 3, 4)

    def grouped(x, w, group_list, **k):
        x, w = x[0], w[0]
        ends = [0] + list(group_list)
        return torch.cat([x[a:b] @ w[i] for i, (a, b) in enumerate(zip(ends, ends[1:]))])
    s.do("NPU.npu_grouped_matmul", grouped, [gx], [gw], group_list=[2, 3, 6], split_item=3,
         group_type=0)
    s.do("NPU.npu_grouped_matmul", lambda x, w, group_list, **k: grouped(x, w, group_list.cumsum(0)
         .tolist()), [gx], [gw], group_list=ids([0, 4, 2]), group_list_type=1, group_type=0)
    s.do("NPU.npu_grouped_matmul", lambda x, w, b: [p @ q + c for p, q, c in zip(x, w, b)],
         [rand(2, 3), rand(4, 5)], [rand(3, 4), rand(5, 2)], [rand(4), rand(2)])
    tokens, choice = rand(4, 3), ids([[0, 2], [1, 0], [2, 1], [0, 1]])
    order = choice.flatten().argsort(stable=True)
    s.do("NPU.npu_moe_token_permute", lambda t, i: (t[order // 2], order.argsort()), tokens, choice)
    s.do("NPU.npu_moe_token_unpermute", lambda t, i, p: (t[i].view(4, 2, 3) * p[..., None]).sum(1),
         rand(8, 3), order.argsort(), rand(4, 2))
    s.do("NPU.npu_moe_token_unpermute", lambda t, i: t[i], rand(8, 3), order.argsort())


def primitives(s):
    """MindSpore's, whose attributes are not recorded."""
    a, b = rand(3, 4), rand(4, 5)
    for x, y, f in ((a, b, lambda x, y: x @ y), (a, b.t(), lambda x, y: x @ y.t()),
                    (a.t(), b, lambda x, y: x.t() @ y), (rand(4, 4), rand(4, 4),
                     lambda x, y: x @ y.t()), (rand(4, 4), rand(4, 4), lambda x, y: x.t() @ y)):
        s.do("Primitive.fc.MatMul", f, x.contiguous(), y.contiguous())
    s.do("Primitive.attn.BatchMatMul", lambda x, y: x @ y.transpose(-1, -2), rand(2, 2, 3, 3),
         rand(2, 2, 3, 3))
    x = rand(2, 3, 4)
    s.do("Primitive.fc.BiasAdd", lambda x, b: x + b, a, rand(4))
    s.do("Primitive.conv.BiasAdd", lambda x, b: x + b[:, None], x, rand(3))
    s.do("Primitive.norm.LayerNorm", lambda x, g, b: (F.layer_norm(x, (4,), g, b, 1e-12),
         x.detach().mean(-1, True), x.detach().var(-1, unbiased=False, keepdim=True)), x, rand(4),
         rand(4))
    s.do("Primitive.norm.RmsNorm", lambda x, g: (lambda y: (y[0], y[1].detach()))(
         rms(x, g, 1e-5)), 0.01 * x, rand(4))
    s.do("Primitive.m.ReduceSum", lambda x, d: x.sum(d), x, (0, 2))
    s.do("Primitive.m.ReduceMean", lambda x, d: x.mean(d, True), x, 1)
    s.do("Primitive.m.ReduceMax", lambda x, d: x.amax(d), x, (1,))
    s.do("Primitive.m.Transpose", lambda x, p: x.permute(*p), x, (2, 0, 1))
    s.do("Primitive.m.Tile", lambda x, n: x.repeat(*n), a, (2, 1))
    s.do("Primitive.m.Concat", lambda l: torch.cat(l, 1), [a, rand(3, 2)])
    s.do("Primitive.m.Gather", lambda x, i, d: x[:, i], x, ids([[0, 2], [1, 1]]), 1)
    s.do("Primitive.m.GatherD", torch.gather, a, 1, ids([[0, 1], [2, 3], [1, 0]]))
    s.do("Functional.gather_nd", lambda x, i: x[i[:, 0], i[:, 1]], x, ids([[0, 2], [1, 1]]))
    s.do("Primitive.m.StridedSlice", lambda x, b, e, k: x[:, 1:3, ::2], x, (0, 1, 0), (2, 3, 4),
         (1, 1, 2), off=False)
    s.do("Aten.slice.Tensor", lambda x, d, a, b, k: x[:, :, 1::2], x, 2, 1, 9223372036854775807, 2)
    s.do("Primitive.m.OneHot", lambda i, n, on, off: F.one_hot(i, n) * (on - off) + off,
         ids([0, 2]), 3, 1.0, 0.0, grad=False)
    s.do("Primitive.m.Cast", lambda x, d: x.to(d), x, f32, grad=False)
    s.do("Primitive.loss.SoftmaxCrossEntropyWithLogits", lambda x, t: (
         -(t * F.log_softmax(x, -1)).sum(-1), torch.softmax(x, -1) - t), rand(4, 5),
         torch.softmax(rand(4, 5), -1), grad=False)


def unaudited(s):
    """What must not be called wrong: inputs recorded after a call that works in place; modules
    whose numbers are not the usual ones."""
    class After(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, fn, x):
            ctx.save_for_backward(x)
            ctx.fn = fn
            return y.clone()

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach().requires_grad_(True)
            with torch.enable_grad():
                return torch.autograd.grad(ctx.fn(x), x, g)[0], None, None

    def after(op, fn, x, *args, **kwargs):
        y = fn(x, *args).detach()
        s.do(op, lambda y, *a, **k: After.apply(y, lambda x: fn(x, *args), x), y, *args, off=False,
             **kwargs)
    x = rand(3, 4)
    after("Tensor.add_", torch.add, x, 1.5)
    after("Tensor.__imul__", torch.mul, x, 3.0)
    after("Functional.silu", F.silu, x, inplace=True)
    after("Aten.div_.Tensor", torch.div, x, 2.0)
    after("Module.act.LeakyReLU", lambda x: F.leaky_relu(x, 0.3), x)
    s.do("Module.act.Softmax", lambda x: torch.softmax(x, 0), x, off=False)
    s.do("Module.act.LeakyReLU", lambda x: F.leaky_relu(x, 0.3), x, off=False)
    p, g = [rand(2, 3)], [rand(2, 3)]
    s.do("Torch._foreach_add_", lambda a, b: a, p, g, grad=False, off=False)
    # recorded before the call, and right or wrong
    for _ in range(3):
        s.do("Tensor.mul_", torch.mul, x, 3.0, grad=False)


def faults(s):
    """Calls that went wrong in ways that can be named; what is recorded is what `but` gives."""
    def wrong(op, but, *args, **kwargs):
        s.do(op, but, *args, grad=False, off=False, **kwargs)
    x, y, q = rand(6, 6, dtype=f32), rand(3, 4, dtype=f32), rand(1, 2, 5, 4, dtype=f32)
    wrong("Torch.clamp", lambda x, a, b: x.clamp(a, 0.75), x, -0.5, 0.5)
    wrong("Functional.hardtanh", lambda x, a, b: x.clamp(-0.25, 0.75), x, -0.5, 0.5)
    wrong("Tensor.__getitem__", lambda x, k: x[:, 2:5], x, (slice(None), slice(1, 4)))
    wrong("Tensor.__getitem__", lambda x, k: x[2], x, 3)
    wrong("Tensor.narrow", lambda x, d, a, n: x.narrow(d, a - 1, n), x, 1, 2, 3)
    wrong("Torch.softmax", lambda x, d: x.softmax(0), x, -1)
    wrong("Torch.sum", lambda x, d: x.sum(1), x, 0)
    wrong("Torch.sum", lambda x, d: x.mean(0), x, 0)
    wrong("Tensor.mean", lambda x, d: x.sum(d), x, 0)
    wrong("Functional.mse_loss", lambda a, b: F.mse_loss(a, b, reduction="sum"), y, 2 * y)
    wrong("Tensor.__mul__", lambda x, k: x * 1, x, 0.125)
    wrong("Tensor.__truediv__", lambda x, k: x * k, x, 8.0)

    def attention(scale, diagonal):
        def run(q, k, v, m=None, p=0.0, is_causal=False):
            w = (q @ k.transpose(-1, -2)) * scale
            if diagonal is not None:
                w = w.masked_fill(torch.ones(5, 5).triu(diagonal + 1) > 0, -inf)
            return w.softmax(-1) @ v
        return run
    sdpa = "Functional.scaled_dot_product_attention"
    k, v = rand(1, 2, 5, 4, dtype=f32), rand(1, 2, 5, 4, dtype=f32)
    wrong(sdpa, attention(1.0, None), q, k, v)
    wrong(sdpa, attention(0.25, None), q, k, v)
    wrong(sdpa, attention(2.0, None), q, k, v)
    wrong(sdpa, attention(0.5, 1), q, k, v, None, 0.0, True)
    wrong(sdpa, attention(0.5, None), q, k, v, None, 0.0, True)
    drop = (torch.rand(20, 20) > 0.3).double()
    wrong("Functional.dropout", lambda x, p, t: x * drop, rand(20, 20, dtype=f32), 0.3, True)
    t = ids([0, 3, 2])
    wrong("Functional.cross_entropy", lambda x, t, label_smoothing: F.cross_entropy(x, t), y, t,
          label_smoothing=0.1)
    wrong("Functional.cross_entropy", lambda x, t, w: F.cross_entropy(x, t), y, t,
          rand(4, dtype=f32).abs())
    w, b = rand(4, dtype=f32), rand(4, dtype=f32)

    def batch_norm(x, m, v, w, b, training, momentum, eps):
        d = x - x.mean((0, 2), True)
        return d * torch.rsqrt(x.var((0, 2), keepdim=True) + eps) * w[:, None] + b[:, None]
    wrong("Functional.batch_norm", batch_norm, rand(3, 4, 5, dtype=f32), None, None, w, b, True,
          0.1, 1e-5)
    wrong("Functional.layer_norm", lambda x, n, w, b: F.layer_norm(x, n, None, b), y, (4,), w, b)
    wrong("Torch.var", lambda x, d, unbiased: x.var(d, unbiased=True), x, 1, unbiased=False)

    def adam(name, kind, n, **kw):
        """A step of kind with kw, recorded as one with these arguments."""
        p, g = [rand(3, 4, dtype=f32)], [rand(3, 4, dtype=f32)]
        old, was, new, now = step(kind, p, g, n, **kw)
        args = dict(lr=0.01, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
                    beta1=0.9, beta2=0.999)
        s.do(name, lambda *a, **k: new, old, g, [w["exp_avg"] for w in was],
             [w["exp_avg_sq"] for w in was], [], [torch.as_tensor(float(n - 1))],
             grad=False, off=False, **args)
    kw = dict(lr=0.01, weight_decay=0.1)
    adam("Functional.adamw", torch.optim.Adam, 3, **kw)
    adam("Functional.adam", torch.optim.AdamW, 3, **kw)
    adam("Functional.adamw", torch.optim.AdamW, 3, lr=0.01, weight_decay=0.0)
    p, m, u, g = (rand(3, 4, dtype=f32) for _ in range(4))
    m1, u1 = 0.9 * m + 0.1 * g, 0.999 * u * u + 0.001 * g * g
    s.do("Functional.adam", lambda *a, **k: [p - 0.01 * m1 / (u1.sqrt() + 1e-8)], [p], [g], [m],
         [u * u], [], [torch.as_tensor(1.0)], grad=False, off=False, lr=0.01, beta1=0.9,
         beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)


def arranged(s):
    x, y = rand(2, 3), rand(2, 3)
    s.do("Torch.hstack", torch.hstack, [x, y])
    s.do("Torch.hstack", torch.hstack, [rand(2), rand(3)])
    s.do("Torch.vstack", torch.vstack, [x, rand(3)])
    s.do("Torch.dstack", torch.dstack, [x, y])
    s.do("Torch.column_stack", torch.column_stack, [rand(2), x])
    s.do("Torch.fliplr", torch.fliplr, x)
    s.do("Torch.flipud", torch.flipud, x)
    for k in (1, 2, -1):
        s.do("Torch.rot90", torch.rot90, rand(2, 3, 2), k, (0, 2))
    s.do("Torch.broadcast_tensors", lambda t: torch.broadcast_tensors(*t), [rand(3), rand(2, 1)])
    s.do("Torch.diff", torch.diff, rand(3, 4, 2), 1, 1)
    s.do("Torch.diff", torch.diff, ids([3, 5, 4]), grad=False)
    s.do("Torch.slice_scatter", torch.slice_scatter, rand(5, 3), rand(2, 3), 0, 1, 5, 2)
    s.do("Torch.select_scatter", torch.select_scatter, rand(3, 4), rand(3), 1, -1)
    s.do("Torch.std_mean", torch.std_mean, rand(3, 4), 1)
    s.do("Torch.var_mean", torch.var_mean, rand(3, 4), 0, unbiased=False, keepdim=True)
    s.do("Torch.aminmax", torch.aminmax, rand(3, 4), dim=1, grad=False)
    s.do("Torch.nansum", torch.nansum, ids([[nan, 1.5], [2.5, 3.0]]), 0, grad=False)
    s.do("Functional.softmin", F.softmin, rand(3, 4), 1)
    s.do("Torch.logcumsumexp", torch.logcumsumexp, rand(3, 4), 1)
    s.do("Torch.cross", torch.cross, rand(4, 3), rand(4, 3), 1)
    s.do("Torch.addr", torch.addr, rand(3), rand(2), rand(3), beta=0.5, alpha=2.0)
    s.do("Torch.inner", torch.inner, rand(3, 4), rand(3, 4))
    s.do("Torch.vdot", torch.vdot, rand(4), rand(4))
    s.do("Aten.embedding.default", lambda w, i: F.embedding(i, w), rand(4, 3), ids([2, 0, 2]))
    s.do("Aten.index.Tensor", lambda x, i: x[:, i[1]], rand(3, 4), [None, ids([2, 0])])
    s.do("Aten.index_put.default", lambda x, i, v: torch.index_put(x, (
         ids([[0], [1], [2]]), i[1]), v), rand(3, 4), [None, ids([2, 0])], rand(3, 2))
    s.do("Module.loss.MSELoss", F.mse_loss, x, y, off=False)
    s.do("Torch.hstack", torch.hstack, [rand(0), rand(2)], grad=False, off=False)


def derivatives(s):
    """Of ATen's own backward operators; autograd knows what they give."""
    def back(fn):
        def run(g, x, *a):
            x = x.detach().requires_grad_(True)
            return torch.autograd.grad(fn(x, *a), x, g)[0]
        return run

    def of_output(fn):
        return lambda g, y, *a: back(fn[0])(g, fn[1](y), *a)
    for t in (f64, f32):
        g, x = rand(3, 4, dtype=t), rand(3, 4, dtype=t)
        for name, fn, *more in (("threshold", F.threshold, 0.0, 0.0), ("gelu", F.gelu),
                                ("silu", F.silu), ("leaky_relu", F.leaky_relu, 0.2)):
            args = more[:1]
            s.do(f"Aten.{name}_backward.default", lambda g, x, *a, fn=fn, more=more: back(fn)(
                 g, x, *more), g, x, *args, grad=False)
        s.do("Aten.tanh_backward.default", of_output((torch.tanh, torch.atanh)), g, x.tanh(),
             grad=False)
        s.do("Aten.sigmoid_backward.default", of_output((torch.sigmoid, torch.logit)), g,
             x.sigmoid(), grad=False)
        s.do("Aten._softmax_backward_data.default", lambda g, y, d, dt: back(torch.softmax)(
             g, y.log(), d), g, x.softmax(1), 1, t, grad=False)
        s.do("Aten._log_softmax_backward_data.default", lambda g, y, d, dt: back(
             torch.log_softmax)(g, y, d), g, x.log_softmax(0), 0, t, grad=False)
    s.do("Aten.gelu_backward.default", lambda g, x, approximate: back(
         lambda x: F.gelu(x, approximate="tanh"))(g, x), g, x, approximate="tanh", grad=False)
    s.do("Aten.embedding_dense_backward.default", lambda g, i, n, p, f: back(
         lambda w: F.embedding(i, w, p))(g, torch.zeros(n, 2, dtype=f64)), rand(2, 3, 2),
         ids([[0, 2, 2], [3, 1, 0]]), 5, 1, False, grad=False)
    s.do("Aten.slice_backward.default", lambda g, n, d, a, b, k: back(
         lambda x: x[:, 1:4:2])(g, torch.zeros(n, dtype=f64)), rand(2, 2), [2, 5], 1, 1, 4, 2,
         grad=False)
    s.do("Aten.select_backward.default", lambda g, n, d, i: back(
         lambda x: x.select(0, -1))(g, torch.zeros(n, dtype=f64)), rand(5), [2, 5], 0, -1,
         grad=False)


def positions(s):
    """As recorders note them that leave keywords out."""
    x = rand(2, 3, 4)
    s.do("Torch.cat", lambda l: torch.cat(l, 2), [x, rand(2, 3, 1)])
    s.do("Torch.chunk", lambda a, n: a.chunk(n, -1), x, 2)
    s.do("Tensor.split", lambda a, n: a.split(n, 1), x, 2)
    s.do("Tensor.mean", lambda a, d: a.mean(d, True), x, -1)
    s.do("Torch.sum", lambda a: a.sum((0, 2), True), x)


def remaining(s):
    """What no other family calls: each evaluated operator has a call."""
    x, y = rand(3, 4), rand(3, 4)
    i, j = ids([5, 12, 7, 3]), ids([3, 10, 1, 2])
    s.do("Tensor.__rpow__", lambda a, b: b ** a, x, 2.5)
    s.do("Torch.minimum", torch.minimum, x, y)
    s.do("Torch.fmod", torch.fmod, x, 0.7)
    s.do("Torch.atan2", torch.atan2, x, y)
    s.do("Torch.hypot", torch.hypot, x, y)
    s.do("Torch.addcdiv", torch.addcdiv, x, y, rand(3, 4).abs() + 1, value=0.5)
    for name in ("logical_or", "logical_xor"):
        s.do(f"Torch.{name}", getattr(torch, name), x > 0, y > 0, grad=False)
    for name in ("__or__", "__xor__", "__lshift__", "__rshift__", "__rand__"):
        s.do(f"Tensor.{name}", lambda a, b, n=name: getattr(a, n)(b), i, j, grad=False)
    s.do("Torch.exp2", torch.exp2, x)
    for name in ("frac", "round", "logical_not", "isneginf", "isnan", "isinf", "isfinite",
                 "signbit", "positive"):
        s.do(f"Torch.{name}", getattr(torch, name), ids([1.5, -inf, nan, -0.25, 0.0, -2.75])
             if name.startswith("is") else x, grad=False)
    s.do("Torch.tensor_split", torch.tensor_split, rand(7, 2), 3)
    s.do("Torch.min", torch.min, x, 1)
    s.do("Torch.argmin", torch.argmin, x, 1, grad=False)
    s.do("Torch.all", torch.all, x > -1, 1, grad=False)
    s.do("Torch.count_nonzero", torch.count_nonzero, ids([[0, 2], [3, 1]]), 0, grad=False)
    s.do("Functional.adaptive_max_pool1d", F.adaptive_max_pool1d, rand(2, 3, 7), 3)
    s.do("Functional.adaptive_avg_pool3d", F.adaptive_avg_pool3d, rand(1, 2, 5, 4, 3), 2)
    s.do("Functional.adaptive_max_pool3d", F.adaptive_max_pool3d, rand(1, 2, 5, 4, 3), 2)
    s.do("Functional.rms_norm", lambda x, n, w, eps: rms(x, w, eps)[0], x, (4,), rand(4), 1e-5)
    s.do("Aten.native_batch_norm.default", torch.native_batch_norm, rand(4, 3, 5), rand(3),
         rand(3), rand(3), rand(3).abs(), False, 0.1, 1e-5, grad=False)
    s.do("Aten.convolution.default", torch.convolution, rand(2, 4, 5, 5), rand(6, 2, 3, 3), rand(6),
         [2, 1], [1, 0], [1, 1], False, [0, 0], 2)
    s.do("Mint.tensor_scatter_elements", lambda x, i, u, d: x.scatter(d, i, u), x,
         ids([[0, 2], [1, 3]]), rand(2, 2), 1)
    s.do("Tensor.index_reduce", torch.index_reduce, x, 0, ids([2, 0, 2]), rand(3, 4), "prod",
         grad=False)
    s.do("Primitive.m.TensorScatterAdd", lambda x, i, u: x.index_put((i[:, 0], i[:, 1]), u, True),
         x, ids([[0, 1], [2, 3], [0, 1]]), rand(3))
    s.do("Torch.ones_like", torch.ones_like, x, grad=False, off=False)
    s.do("Tensor.new_ones", lambda x, n: x.new_ones(n), x, (2, 3), grad=False, off=False)
    s.do("Tensor.new_full", lambda x, n, v: x.new_full(n, v), x, (2, 3), 1.25, grad=False)
    s.do("Aten.scalar_tensor.default", lambda v: torch.scalar_tensor(v), 2.5, grad=False)

    def attention(q, k, v, **_):
        return torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v
    q, k, v = (rand(1, 2, 5, 4) for _ in range(3))
    s.do("Mint.flash_attention_score", attention, q, k, v, head_num=2, input_layout="BNSD",
         scalar_value=0.5)
    s.do("Functional.flash_attn_func", lambda *a: attention(*(t.transpose(1, 2) for t in a))
         .transpose(1, 2), *(t.transpose(1, 2).contiguous() for t in (q, k, v)))

    def rotate(x, c, s):
        a, b = x.chunk(2, -1)
        return x * c + torch.cat((-b, a), -1) * s
    s.do("NPU.npu_apply_rotary_pos_emb", lambda q, k, c, s: (rotate(q, c, s), rotate(k, c, s)),
         rand(2, 3, 2, 4), rand(2, 3, 1, 4), rand(2, 3, 1, 4), rand(2, 3, 1, 4))
    s.do("Torch.max", torch.max, x, y)
    s.do("Torch.max", lambda a, other: torch.max(a, other), x, other=rand(4))
    s.do("Torch.min", torch.min, x, torch.tensor(0.25, dtype=f64), grad=False)
    s.do("Torch.min", torch.min, i, j, grad=False)
    table, words = rand(7, 3), ids([[1, 6, 0], [2, 2, 5]])
    s.do("Functional.embedding_bag", F.embedding_bag, words, table)
    for mode in ("sum", "mean", "max"):
        s.do("Functional.embedding_bag", F.embedding_bag, ids([3, 1, 4, 1, 0, 6, 2]), table,
             ids([0, 3, 3, 5]), mode=mode)
        s.do("Functional.embedding_bag", F.embedding_bag, words, table, mode=mode, padding_idx=2)
    s.do("Functional.embedding_bag", F.embedding_bag, words.flatten(), table, ids([0, 2, 6]),
         mode="sum", per_sample_weights=rand(6), include_last_offset=True)
    speech, text = rand(9, 3, 5).log_softmax(-1), ids([[1, 2, 2, 4], [3, 3, 1, 1], [2, 1, 0, 0]])
    for how in ("mean", "sum", "none"):
        s.do("Functional.ctc_loss", F.ctc_loss, speech, text, ids([9, 7, 5]), ids([4, 3, 2]),
             reduction=how, grad=False)
    s.do("Functional.ctc_loss", F.ctc_loss, speech, ids([1, 2, 3, 3, 2, 1]), (9, 8, 2), (2, 3, 1),
         4, "sum", grad=False)
    s.do("Functional.ctc_loss", F.ctc_loss, speech, text, (9, 4, 4), (4, 4, 1), reduction="none",
         zero_infinity=True, grad=False)
    s.do("Functional.ctc_loss", F.ctc_loss, speech, text, (9, 4, 0), (4, 4, 0), reduction="none",
         grad=False, off=False)
    s.do("Functional.ctc_loss", F.ctc_loss, speech[:, 0], text[0, :3], (9,), (3,), grad=False)
    s.do("Functional.bilinear", F.bilinear, rand(2, 3, 4), rand(2, 3, 5), rand(6, 4, 5), rand(6))
    s.do("Functional.bilinear", F.bilinear, rand(3, 2, dtype=f32), rand(3, 2, dtype=f32),
         rand(2, 2, 2, dtype=f32))
    for size in (1, 2, 5):
        s.do("Functional.local_response_norm", F.local_response_norm, 3 * rand(2, 4, 3), size)
    s.do("Functional.local_response_norm", F.local_response_norm, 9 * rand(2, 3, 2, 2, dtype=f32),
         3, alpha=0.5, beta=0.6, k=2.0)
    keep = (rand(12, 12) > -0.5).double()
    for _ in range(3):
        s.do("Functional.dropout", lambda x, p, training: x * keep / (1 - p), rand(12, 12), 0.3,
             True)


def heads(s):
    """Attention with its projections."""
    def attend(*args, **kwargs):
        y, w = F.multi_head_attention_forward(*args, **kwargs)
        return y if w is None else (y, w)

    def call(q, k, v, n, **more):
        e = q.shape[-1]
        given = dict(w=rand(3 * e, e, dtype=q.dtype), b=rand(3 * e, dtype=q.dtype), bk=None, bv=None,
                     zero=False, p=0.0, training=True)
        given.update(more)
        rest = {key: given.pop(key) for key in list(given) if key not in (
            "w", "b", "bk", "bv", "zero", "p", "training")}
        s.do("Functional.multi_head_attention_forward", attend, q, k, v, e, n, given["w"],
             given["b"], given["bk"], given["bv"], given["zero"], given["p"],
             rand(e, e, dtype=q.dtype), rand(e, dtype=q.dtype), training=given["training"],
             grad=not any(is_tensor(t) and t.is_floating_point() and "mask" in name
                          for name, t in rest.items()), **rest)

    for t in (f64, f32, bf16, f16):
        x = rand(5, 2, 8, dtype=t)
        call(x, x, x, 2, need_weights=False)
        call(rand(3, 2, 8, dtype=t), x, rand(5, 2, 8, dtype=t), 4)
    q, k = rand(3, 2, 6), rand(4, 2, 6)
    hidden = ids([[False, False, True, False], [False, False, False, True]])
    late = torch.ones(3, 4).triu(2).bool()
    call(q, k, k, 3, key_padding_mask=hidden)
    call(q, k, k, 3, attn_mask=late, need_weights=False)
    call(q, k, k, 3, attn_mask=rand(3, 4), average_attn_weights=False)
    call(q, k, k, 3, attn_mask=late.double() * -1e4, key_padding_mask=hidden)
    call(q, k, k, 2, attn_mask=rand(4, 3, 4), training=False, p=0.5)
    call(q, k, k, 2, bk=rand(1, 1, 6), bv=rand(1, 1, 6), attn_mask=late, key_padding_mask=hidden)
    call(q, k, k, 2, zero=True, b=None)
    call(rand(3, 6), rand(4, 6), rand(4, 6), 1, attn_mask=rand(3, 4))
    call(q, rand(4, 2, 5), rand(4, 2, 7), 2, w=None, use_separate_proj_weight=True,
         q_proj_weight=rand(6, 6), k_proj_weight=rand(6, 5), v_proj_weight=rand(6, 7))


def recurrent(s):
    """Recurrent layers as torch.nn calls them, single steps, and the loss that often follows."""
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

    def weights(gates, sizes, h, t, biases=True, p=0):
        out = []
        for n in sizes:
            out += [rand(gates * h, n, dtype=t) / 2, rand(gates * h, p or h, dtype=t) / 2]
            out += [rand(gates * h, dtype=t) for _ in range(2 if biases else 0)]
            out += [rand(p, h, dtype=t)] if p else []
        return tuple(out)

    def layer(op, layers=1, both=False, first=False, biases=True, p=0, t=f64, n=2, grad=True):
        h, dirs, x = 3, 1 + both, rand(n, 5, 4, dtype=t) if first else rand(5, n, 4, dtype=t)
        sizes = ([4] * dirs + [(p or h) * dirs] * dirs * (layers - 1))
        hx = rand(layers * dirs, n, p or h, dtype=t)
        if op == "lstm":
            hx = (hx, rand(layers * dirs, n, h, dtype=t))
        s.do("VF." + op, getattr(torch, op), x, hx, weights(gates[op], sizes, h, t, biases, p),
             biases, layers, 0.0, True, both, first, grad=grad)

    for op in gates:
        layer(op)
        layer(op, 2, True, True)
        layer(op, 3, biases=False, t=f32)
        layer(op, 2, True, t=bf16)
        bs = ids([3, 3, 2, 1, 1])
        hx = rand(2, 3, 3)
        s.do("VF." + op, getattr(torch, op), rand(10, 4), bs,
             (hx, rand(2, 3, 3)) if op == "lstm" else hx, weights(gates[op], [4, 4], 3, f64),
             True, 1, 0.3, True, True, grad=False)
    layer("lstm", 2, True, p=2, grad=False)
    for op, k in (("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
        for t in (f64, f32):
            h = rand(2, 3, dtype=t)
            w = weights(k, [4], 3, t)
            s.do("VF." + op, getattr(torch, op), rand(2, 4, dtype=t),
                 (h, rand(2, 3, dtype=t)) if k == 4 else h, *w)
            s.do("VF." + op, getattr(torch, op), rand(2, 4, dtype=t),
                 (h, rand(2, 3, dtype=t)) if k == 4 else h, *w[:2])
    speech, text = rand(9, 3, 5).log_softmax(-1), ids([[1, 2, 2, 4], [3, 3, 1, 1], [2, 1, 0, 0]])
    for how in ("mean", "sum", "none"):
        s.do("Functional.ctc_loss", F.ctc_loss, speech, text, ids([9, 7, 5]), ids([4, 3, 2]),
             reduction=how)
    s.do("Functional.ctc_loss", F.ctc_loss, speech, ids([1, 2, 3, 3, 2, 1]), (9, 8, 2), (2, 3, 1),
         4, "sum")
    s.do("Functional.ctc_loss", F.ctc_loss, speech, text, (9, 4, 4), (4, 4, 1), reduction="none",
         zero_infinity=True)


def rounds(s):
    """What a device may round on the way, and what it may not."""
    def short(x):
        return x.to(bf16).double()

    def do(op, fn, *args, wrong=False):
        s.do(op, fn, *args, grad=False, off=False)
        s.rec[-1][1]["x-wrong"] = wrong

    # As autocast does: factors and what is added are cast first; or nothing is.
    for k in (1, 1.01):
        x, w, b = rand(6, 16, dtype=bf16), rand(8, 16, dtype=f32), rand(8, dtype=f32)
        do("Functional.linear", lambda x, w, b: k * F.linear(x, short(w), short(b)), x, w, b,
           wrong=k != 1)
        do("Functional.linear", lambda x, w, b: F.linear(x, w, b), x, w, b)
        do("Torch.matmul", lambda x, w: x @ short(w), x, rand(16, 8, dtype=f32))
    # A bias in f32 alone is no sign of it.
    do("Functional.linear", F.linear, x, rand(8, 16, dtype=bf16), 100 + b)
    # A factor that no element shows, and one that is a number that was rounded.
    for k in (1, 1, 1, 1.001, 1):
        do("Torch.matmul", lambda x, y: k * (x @ y), rand(64, 48, dtype=bf16),
           rand(48, 64, dtype=bf16), wrong=k != 1)
        do("Tensor.__add__", torch.add, rand(64, 64, dtype=bf16), rand(64, 64, dtype=bf16))
    do("Tensor.__mul__", lambda x, k: x * short(torch.tensor(k)), rand(64, 64, dtype=bf16), 0.3)
    do("Tensor.__mul__", torch.mul, rand(64, 64, dtype=bf16), rand(1, dtype=bf16))


def steps(s):
    """A device that rounds every step to bf16."""
    def short(x):
        return x.to(bf16).double()
    for _ in range(4):
        s.do("Functional.silu", lambda x: x / short(1 + short(torch.exp(-x))),
             3 * rand(40, 12, dtype=bf16), grad=False)
    # Wrong is wrong there, too, where a right one may be off by some roundings.
    for _ in range(2):
        s.do("Functional.cosine_similarity", F.cosine_similarity, rand(12, 6, dtype=bf16),
             rand(12, 6, dtype=bf16), grad=False)
        s.do("Tensor.__mul__", lambda x, k: x * k, rand(40, 12, dtype=bf16), 0.3, grad=False)
    for _ in range(3):   # what is added is far smaller than its factors
        g = 0.01 * rand(6, 8, dtype=f32)
        s.do("Tensor.addcmul_", torch.addcmul, torch.zeros(6, 8), g, g, value=1e-3, grad=False)


def saturated(s):
    """Where little is left of numbers that were rounded, by torch's own formulas in the dtype; in f64, finer than any
    difference shows."""
    def own(f):
        return lambda x, *args, **kwargs: f(x.float(), *args, **kwargs).double()
    near = 0.7 ** torch.arange(1.0, 25)
    near = torch.cat([1 - near, near - 1])
    for name in "asin acos atanh".split():
        s.do(f"Torch.{name}", own(getattr(torch, name)), near, off=False)
    s.do("Torch.acosh", own(torch.acosh), 1 + 0.7 ** torch.arange(-9.0, 17), off=False)
    for gate in (12.0, -12.0, 0.0):
        s.do("Functional.glu", own(F.glu), torch.cat([100 * rand(4, 6, dtype=f32), gate + rand(4, 6, dtype=f32)], 1))
    sure, best = torch.zeros(4, 6), ids([0, 2, 5, 3])
    sure[torch.arange(4), best] = 25 + rand(4, dtype=f32)
    sure = F.log_softmax(sure, 1)   # the largest of each row is nearly 0
    for x in (sure, sure + rand(4, 1, dtype=f32), rand(4, 6, dtype=f32)):
        s.do("Functional.log_softmax", own(F.log_softmax), x, dim=-1)
        s.do("Functional.cross_entropy", own(F.cross_entropy), x, best, off=False)
        s.do("Functional.cross_entropy", own(F.cross_entropy), x, best, reduction="none", off=False)
        s.do("Torch.logsumexp", own(torch.logsumexp), x, dim=-1, off=False)
    for x in (20 + rand(12, dtype=f32), -20 + rand(12, dtype=f32), rand(12, dtype=f32)):
        s.do("Functional.binary_cross_entropy_with_logits",
             lambda x, y: F.binary_cross_entropy_with_logits(x.float(), y.float()).double(), x, (x > 0).float(),
             off=False)
    x = torch.cat([2.0 ** -torch.arange(4.0, 14), rand(10, dtype=f64), 8 * rand(10, dtype=f64)]).double()
    for name in "tanh sigmoid expm1 erf atan sinh".split():
        s.do(f"Torch.{name}", getattr(torch, name), x, off=name != "tanh")
    s.do("Torch.log1p", torch.log1p, -torch.sigmoid(x))
    s.do("Torch.prod", torch.prod, x[10:20].view(2, 5), 1)
    s.do("Functional.log_softmax", F.log_softmax, x.view(3, 10), dim=-1)
    s.do("Torch.logsumexp", torch.logsumexp, F.log_softmax(x.view(3, 10), -1), dim=-1)

    class Off(torch.autograd.Function):
        """A gradient that is off by a thousandth."""
        @staticmethod
        def forward(ctx, y):
            return y.view_as(y)

        @staticmethod
        def backward(ctx, g):
            return 1.001 * g
    for op, f, *args in (("Torch.atanh", torch.atanh, near), ("Torch.acosh", torch.acosh, 2 - near[:12]),
                         ("Functional.cross_entropy", F.cross_entropy, rand(4, 6, dtype=f32), best),
                         ("Torch.tanh", torch.tanh, x[:10])):
        s.do(op, lambda x, *args: Off.apply(f(x, *args)), *args, off=False)
        for kind, r in s.rec[-2:]:
            if kind == "tensor":
                r["x-wrong"] = True


def left_out(s):
    """As ptdbg notes them, which leaves keywords out."""
    s.rec[0][1]["format"] = "ptdbg"
    x = rand(4, 4)
    s.do("Torch.triu", lambda a: a.triu(1), x, off=False)
    s.do("Functional.gelu", lambda a: F.gelu(a, approximate="tanh"), x, off=False)
    s.do("Functional.gelu", F.gelu, x, off=False)
    s.do("Functional.layer_norm", lambda x, n, w, b, e: F.layer_norm(x, n, w, b, 1e-2), x, [4],
         rand(4), rand(4), 1e-5, grad=False, off=False)


def modules(s):
    """As transformers names them."""
    def rms(plus):
        return lambda x, weight: x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * (plus + weight)
    x = rand(3, 8) * 2
    for name, f in (("GELUTanh", lambda x: F.gelu(x, approximate="tanh")), ("GELUActivation", F.gelu), ("SiLUActivation", F.silu),
                    ("MishActivation", F.mish)):
        s.do("Module.mlp.act_fn." + name, f, x)
    s.do("Module.mlp.act_fn.GELU", lambda x: F.gelu(x, approximate="tanh"), x, off=False)
    for name, plus in (("LlamaRMSNorm", 0), ("Gemma2RMSNorm", 1), ("MixtralRMSNorm", 0), ("OtherRMSNorm", 1)):
        s.do("Module.norm." + name, rms(plus), x, weight=rand(8) * 0.2 + 0.6, grad=False)


def contractions(s):
    for t in (f32, bf16):
        s.do("Torch.tensordot", torch.tensordot, rand(3, 4, 5).to(t), rand(4, 5, 2).to(t), 2)
        s.do("Torch.kron", torch.kron, rand(2, 3).to(t), rand(3, 2).to(t))
        s.do("Torch.einsum", torch.einsum, "ij,jk,k->i", rand(3, 4).to(t), rand(4, 5).to(t), rand(5).to(t))
        for n in (1, 2, 3):
            s.do(f"Functional.lp_pool{n}d", getattr(F, f"lp_pool{n}d"), rand(2, *[5] * n).to(t), 2.0, 2)
    s.do("Torch.linalg.multi_dot", torch.linalg.multi_dot, [rand(3, 4), rand(4, 2), rand(2)])
    s.do("Torch.einsum", torch.einsum, "ij->j", rand(3, 4))
    s.do("Functional.grid_sample", F.grid_sample, rand(1, 2, 5, 6), torch.tanh(rand(1, 3, 4, 2)), align_corners=False)
    s.do("Functional.pad", F.pad, rand(2, 3, 5), [2, 1], mode="circular")
    s.do("Torch.special.digamma", torch.special.digamma, rand(4, 5))
    s.do("Torch.special.erfinv", torch.special.erfinv, torch.tanh(rand(4, 5)))
    s.do("Torch.special.entr", torch.special.entr, rand(4, 5).abs())
    s.do("Torch.special.i0", torch.special.i0, rand(4, 5))
    s.do("Torch.angle", torch.angle, rand(4, 5), grad=False)
    s.do("Torch.trapezoid", torch.trapezoid, rand(4, 5), dx=0.5)
    s.do("Torch.cumulative_trapezoid", torch.cumulative_trapezoid, rand(4, 5))
    s.do("Torch.trace", torch.trace, rand(4, 5))
    for t in (f32, bf16):
        for n in (0, 1, 3):
            s.do("Torch.polygamma", torch.polygamma, n, rand(4, 5).abs().add(0.1).to(t))
        s.do("Torch.cov", torch.cov, rand(3, 9).to(t))
        s.do("Torch.vander", torch.vander, rand(5).to(t), 4, grad=False)
    s.do("Torch.cov", torch.cov, rand(9), correction=0)
    s.do("Torch.vander", torch.vander, rand(4), increasing=True, grad=False)
    s.do("Torch.tile", torch.tile, rand(2, 3), [2])
    s.do("Torch.median", torch.median, rand(3, 5))
    s.do("Torch.msort", torch.msort, rand(4, 3))


def counted(s):
    """Small matrices, histograms, quantiles, the next number."""
    for t in (f32, f64):
        s.do("Torch.linalg.inv", torch.linalg.inv, rand(2, 4, 4).to(t))
        s.do("Torch.inverse", torch.inverse, rand(3, 3).to(t))
        s.do("Torch.logdet", torch.logdet, (rand(4, 4) * 0.2 + 2 * torch.eye(4)).to(t))
        s.do("Torch.det", torch.det, rand(2, 3, 3).to(t))
        s.do("Torch.quantile", torch.quantile, rand(4, 9).to(t), 0.3, dim=-1)
        s.do("Torch.quantile", torch.quantile, rand(4, 9).to(t), 0.7, dim=0, keepdim=True, interpolation="nearest")
        s.do("Torch.quantile", torch.quantile, rand(5).to(t), 0.5, interpolation="midpoint")
        s.do("Torch.histc", torch.histc, rand(300).to(t), 10, -3, 3, grad=False)
        s.do("Torch.histc", torch.histc, rand(300).to(t), bins=7, grad=False)
        s.do("Torch.igamma", torch.igamma, rand(4, 5).abs().add(0.1).to(t), rand(4, 5).abs().mul(3).to(t), grad=False)
    x = torch.cat([rand(9), ids([0.0, 1.0, -1.0, inf, -inf, nan])]).to(f64)  # these streams are rounded once
    s.do("Torch.nextafter", torch.nextafter, x, x.flip(0), grad=False)


def spectra(s):
    """Complex numbers: transforms of real ones, and absolute values."""
    for t in (f32, f64):
        s.do("Torch.fft.rfft", torch.fft.rfft, rand(3, 16).to(t))
        s.do("Torch.fft.rfft", torch.fft.rfft, rand(2, 7, 3).to(t), dim=1, norm="ortho")
        s.do("Torch.fft.rfft", torch.fft.rfft, rand(4, 12).to(t), 9, -1, "forward")
        s.do("Torch.fft.rfft", torch.fft.rfft, rand(4, 5).to(t), n=8)
        s.do("Torch.abs", torch.abs, torch.complex(rand(4, 9), rand(4, 9)).to(c64 if t == f32 else c128))
        s.do("Tensor.abs", torch.abs, torch.complex(rand(3), rand(3)).mul(1e25).to(c64 if t == f32 else c128))


def lacking(s):
    """Sums without their last terms, variances in one pass."""
    def wrong(op, but, *args, **kwargs):
        s.do(op, but, *args, grad=False, off=False, **kwargs)
    x, y = rand(6, 40, dtype=f32), rand(40, 5, dtype=f32)
    wrong("Torch.matmul", lambda x, y: x[:, :-3] @ y[:-3], x, y)
    wrong("Torch.sum", lambda x, d: x[:, :-2].sum(d), x, -1)
    wrong("Torch.mean", lambda x, d: x[:, :-4].sum(d) / 40, x, -1)

    def one_pass(x, d):
        x = x.float()
        m = x.mean(d)
        return ((x * x).mean(d) - m * m).double()
    wrong("Torch.var", lambda x, d, correction: one_pass(x, d), (x + 100).float(), -1, correction=0)
    wrong("Torch.std", lambda x, d, correction: one_pass(x, d).sqrt(), (x + 100).float(), -1, correction=0)
    wrong("Torch.var", lambda x, d, correction: x.var(d, unbiased=False) * 1.001, (x + 2).float(), -1, correction=0)


def edges(s):
    """Bounds that meet, rounded quotients, NaN among what is sorted, the smallest numbers: all right."""
    z = torch.zeros(3, 4)
    for t in (f32, f64):
        s.do("Torch.clamp", torch.clamp, z.to(t), z.to(t), z.to(t), off=False)
        s.do("Torch.div", torch.div, rand(9, 7).to(t) * 1e7, rand(9, 7).to(t), rounding_mode="trunc", off=False)
        s.do("Torch.bucketize", torch.bucketize, ids([nan, inf, 3e38, 0.0]).to(t), ids([-1.0, 0.0, 3e38, inf, nan]).to(t),
             right=True, grad=False, off=False)
    tiny = lambda: rand(5, 6).to(f64) * 1e-308
    s.do("Torch.lerp", torch.lerp, tiny(), tiny(), 0.3, off=False)
    s.do("Torch.pow", torch.pow, tiny().abs() * 0.1, tiny(), off=False)


FAMILIES = [scatters, orders, makers, patterns, distances, margins, hidden, lists, optimizers, rarer,
            fused, primitives, arranged, derivatives, positions, remaining, heads, recurrent, rounds,
            steps, saturated, modules, left_out, contractions, counted, spectra, lacking, edges, unaudited, faults]

if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for family in FAMILIES:
        torch.manual_seed(1)
        stream = Ranked() if family in (orders, fused) else Calls()
        family(stream)
        stream.write(os.path.join(out, family.__name__ + ".acc.gz"))
