#!/usr/bin/env python3
"""Dumps of one training step of one transformer under parallel layouts, as msprobe writes them.

Usage: make.py OUT LAYOUT... [--task tensor|statistics] [--layers N] [--seed N]     needs python3-torch

OUT/LAYOUT/step0/rankN. A layout is one, tpN, dpN, ppN, cpN, fsdpN, spN (tensor parallel, with the
norms' tokens split, too), mcN and smcN (tpN and spN by the kernels that join a product with its
communication), zeroN (gradients in one flat buffer, of which each rank has its part and updates its
part of the weights), moe (experts instead of every second layer's fc1 and fc2) or epN (these, an
equal part of them and of the batch on each rank); or several, such as tp2dp2pp2: neighbours are tp,
then ep, then dp, then pp. It may end in words behind dashes: m4 (the batch in four parts, one after
another, their gradients added up), v2 (each stage of pp is two that lie apart), bias (of a linear
itself, where the weight is not split by columns; else added to the sum), step (the weights are
updated, as by zeroN), vocab, pad and fill (tp: the vocabulary is split, or split and filled up, by zeros or by its last row), moe (all
experts on each rank), sbh (experts take the first token of all samples first), zig (of cp: each rank has one part of the tokens from the front and one from the
end), ul (of cp: each rank has all tokens of some heads in between), gqa and glu (two queries for each key and value, and units with gates, packed in one weight, of which
each rank of tp has its queries, keys and values, and its gates and units).

And in a fault: lost (an all_reduce that does not happen), noavg (gradients summed, not averaged),
noreduce (not even summed), scale (one product of rank N-1 is 3 % off), token (of ep, or moe: one is
sent to another expert), order (parts in another order, in one layer: cp's keys, fsdp's shards, the
weights of tp, ep's answers, zero's weights), mask (of rank N-1 in one layer: cp's masks as rank 0
does, others hide one more), group (an all_reduce among two ranks each), stale (rank N-1 has one
weight, or part of it, 5 % off; of pp: its inputs are those of other samples). "-noise" adds a
device's rounding, and NaN in buffers that are not yet filled; "-tf32" products of so few bits, too.
Real processes, real collectives (gloo); what gloo of torch 1.13 lacks is made of all_gather. A seed
draws the widths, the weights, the tokens and the noise.
"""
import argparse
import os
import random
import re
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))
import recorder  # noqa: E402
from recorder import Recorder  # noqa: E402
from writers import Msprobe  # noqa: E402

LAYERS, DIM, HEADS, VOCAB, BATCH, SEQ, EXPERTS = 4, 16, 4, 32, 8, 8, 4
SEED = 0
recorder.MODEL = os.path.abspath(__file__)
recorder.OPS["Tensor"] = (torch.Tensor, "__add__ __mul__ __truediv__ view transpose reshape "
                          "masked_fill chunk div_ contiguous split repeat_interleave")
recorder.OPS["Torch"] = (torch, "matmul cat empty max argsort index_select neg")
recorder.OPS["Distributed"] = (
    dist, "all_reduce all_gather_into_tensor reduce_scatter_tensor all_to_all_single send recv")


class Kernels:
    """Of torch_npu: a product and its communication in one call, along the first axis."""

    @staticmethod
    def npu_mm_all_reduce_base(x, w, hcom, **kwargs):
        return MmReduce.apply(x, w)

    @staticmethod
    def npu_mm_reduce_scatter_base(x, w, hcom, world_size, **kwargs):
        return MmScatter.apply(x, w)

    @staticmethod
    def npu_all_gather_base_mm(x, w, hcom, world_size, **kwargs):
        return GatherMm.apply(x, w)


recorder.OPS["NPU"] = (
    Kernels, "npu_mm_all_reduce_base npu_mm_reduce_scatter_base npu_all_gather_base_mm")
recorder.NOISY |= set(recorder.OPS["NPU"][1].split())


GROUP = None   # of the ranks that share a layer; None: all
EXPERT = None  # of those that share the experts of one


def size():
    return dist.get_world_size(GROUP)


def place():
    return dist.get_rank(GROUP)


def gather(out, x, group=None):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group or GROUP))]
    dist.all_gather(parts, x, group=group or GROUP)
    out.copy_(torch.cat([p.reshape(-1) for p in parts]).view(out.shape))


def scatter(out, x, group=None):
    whole = x.clone()
    GLOO_REDUCE(whole, group=group or GROUP)
    n, r = dist.get_world_size(group or GROUP), dist.get_rank(group or GROUP)
    out.copy_(whole.reshape(n, -1)[r].view(out.shape))


def exchange(out, x, output_split_sizes, input_split_sizes, group=None):
    n, r = dist.get_world_size(EXPERT), dist.get_rank(EXPERT)
    rows = torch.tensor(input_split_sizes)
    all_rows = [torch.empty_like(rows) for _ in range(n)]
    dist.all_gather(all_rows, rows, group=EXPERT)
    most = max(int(t.sum()) for t in all_rows)
    mine = torch.zeros((most,) + x.shape[1:])
    mine[:x.shape[0]] = x
    whole = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(whole, mine, group=EXPERT)
    parts = [w[:int(t.sum())].split(t.tolist())[r] for w, t in zip(whole, all_rows)]
    out.copy_(torch.cat(parts))


def buffer(*shape):
    """What torch.empty may well hold."""
    x = torch.empty(*shape)
    return x.fill_(float("nan")) if GARBAGE else x


def reduce(x, group=None):
    GLOO_REDUCE(x, group=group or GROUP)


def post(x, to):
    """A send that does not wait until it is received."""
    POSTED.append((x, dist.isend(x, to)))


GARBAGE, GLU = False, False
POSTED = []
GLOO_REDUCE = dist.all_reduce
dist.all_reduce, dist.send = reduce, post
dist.all_gather_into_tensor, dist.reduce_scatter_tensor = gather, scatter
dist.all_to_all_single = exchange


def gathered(x):
    """Along the first axis, by a call that is recorded."""
    out = buffer((size() * x.shape[0],) + x.shape[1:])
    dist.all_gather_into_tensor(out, x.contiguous())
    return out


def scattered(x):
    out = buffer((x.shape[0] // size(),) + x.shape[1:])
    dist.reduce_scatter_tensor(out, x.contiguous())
    return out


class MmReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x @ w
        GLOO_REDUCE(y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


class MmScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x @ w
        out = torch.empty(y.shape[0] // size(), y.shape[1])
        scatter(out, y)
        return out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        whole = torch.empty(x.shape[0], g.shape[1])
        gather(whole, g.contiguous())
        return whole @ w.t(), x.t() @ whole


class GatherMm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        whole = torch.empty(x.shape[0] * size(), x.shape[1])
        gather(whole, x.contiguous())
        ctx.save_for_backward(whole, w)
        return whole @ w

    @staticmethod
    def backward(ctx, g):
        whole, w = ctx.saved_tensors
        gx = g @ w.t()
        out = torch.empty(gx.shape[0] // size(), gx.shape[1])
        scatter(out, gx)
        return out, whole.t() @ g


class GatherTokens(torch.autograd.Function):   # Megatron's, of sequence parallelism
    @staticmethod
    def forward(ctx, x, alike):
        ctx.alike = alike
        return gathered(x)

    @staticmethod
    def backward(ctx, g):
        if ctx.alike:   # each rank has the whole gradient
            return g.chunk(size())[place()].contiguous(), None
        return scattered(g), None


class ScatterTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scattered(x)

    @staticmethod
    def backward(ctx, g):
        return gathered(g)


class Exchange(torch.autograd.Function):   # of tokens between the ranks of the experts
    @staticmethod
    def forward(ctx, x, got, sent):
        ctx.sizes = got, sent
        out = buffer((sum(got),) + x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), got, sent)
        return out

    @staticmethod
    def backward(ctx, g):
        got, sent = ctx.sizes
        out = buffer((sum(sent),) + g.shape[1:])
        dist.all_to_all_single(out, g.contiguous(), sent, got)
        return out, None, None


class Copy(torch.autograd.Function):   # Megatron's f: sums gradients up
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        dist.all_reduce(g)
        return g


class Reduce(torch.autograd.Function):   # Megatron's g
    @staticmethod
    def forward(ctx, x, lost, group=None):
        x = x.clone()
        if not lost:
            dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None, None


def in_turn(parts, zig):
    """Of 2 n parts: the n that the ranks have, one from the front and one from the end each."""
    return [torch.cat(p, 2) for p in zip(parts, parts[::-1])][:len(parts) // 2] if zig else list(parts)


class Gather(torch.autograd.Function):   # along the sequence (context parallel)
    @staticmethod
    def forward(ctx, x, zig):
        n, ctx.zig = size(), zig
        out = buffer((n,) + x.shape)
        dist.all_gather_into_tensor(out, x.contiguous())
        if zig:
            front, end = zip(*[p.chunk(2, 2) for p in out])
            return torch.cat(front + end[::-1], dim=2)
        return torch.cat(list(out), dim=2)

    @staticmethod
    def backward(ctx, g):
        parts = torch.stack(in_turn(g.chunk(size() * (1 + ctx.zig), dim=2), ctx.zig))
        out = buffer(parts.shape[1:])
        dist.reduce_scatter_tensor(out, parts)
        return out, None


class Turn(torch.autograd.Function):   # Ulysses: parts along one axis become parts along another
    @staticmethod
    def forward(ctx, x, split, join):
        n, ctx.axes = size(), (join, split)
        parts = torch.cat(x.chunk(n, split))
        out, rows = buffer(parts.shape), [x.shape[0]] * n
        dist.all_to_all_single(out, parts, rows, rows)
        return torch.cat(out.chunk(n), join)

    @staticmethod
    def backward(ctx, g):
        return Turn.apply(g, *ctx.axes), None, None


class Unshard(torch.autograd.Function):   # FSDP: a flat shard becomes a weight
    @staticmethod
    def forward(ctx, shard, shape, average, turned):
        ctx.average = average
        out = buffer(shape)
        dist.all_gather_into_tensor(out, shard)
        return out.roll(shape[0] // size(), 0) if turned else out

    @staticmethod
    def backward(ctx, g):
        n = size()
        out = buffer(g.numel() // n)
        dist.reduce_scatter_tensor(out, g.reshape(-1))
        return out / n if ctx.average else out, None, None, None


def weights():
    g = torch.Generator().manual_seed(3 + 100 * SEED)

    def new(*shape):
        return torch.randn(shape, generator=g) * 0.3

    w = {"embed": new(VOCAB, DIM), "head": new(VOCAB, DIM)}
    for i in range(LAYERS):
        w |= {f"qkv{i}": new(3, DIM, DIM), f"o{i}": new(DIM, DIM), f"ob{i}": new(DIM),
              f"fc1{i}": new(4 * DIM, DIM), f"b1{i}": new(4 * DIM), f"fc2{i}": new(DIM, 4 * DIM),
              f"b2{i}": new(DIM), f"n1{i}": 1 + new(DIM), f"n2{i}": 1 + new(DIM)}
        if i % 2:
            w |= {f"r{i}": new(EXPERTS, DIM)}
            w |= {f"e{k}{e}x{i}": new(*s) for e in range(EXPERTS)
                  for k, s in (("1", (2 * DIM, DIM)), ("2", (DIM, 2 * DIM)))}
    return w


def pack(w, gqa, glu):
    """Queries, keys and values, of which two queries share one, and gates and units in one weight each."""
    for k, v in w.items():
        if gqa and k.startswith("qkv"):
            w[k] = torch.cat([v[0], v[1, :DIM // 2], v[2, :DIM // 2]])
        if glu and k.startswith("fc2"):
            w[k] = v[:, :2 * DIM].contiguous()


def shard(name, w, kind, n, r, fault=None):
    if kind in ("tp", "sp", "mc", "smc"):
        if name == "o1" and fault == "order":
            r = (r + 1) % n
        if name.startswith("qkv") and w.dim() == 2:   # ranks may share keys and values
            kv = min(n, HEADS // 2)
            return torch.cat([p.chunk(m)[r * m // n] for p, m in zip(w.split((DIM, DIM // 2, DIM // 2)), (n, kv, kv))])
        if name.startswith(("fc1", "b1")) and GLU:
            return torch.cat([p.chunk(n)[r] for p in w.chunk(2)])
        if name.startswith("qkv"):
            return w.chunk(n, 1)[r]
        if name.startswith(("fc1", "b1")):
            return w.chunk(n, 0)[r]
        if name.startswith(("fc2", "o")) and not name.startswith("ob"):
            return w.chunk(n, 1)[r]
    if kind == "fsdp" and w.dim() > 1:
        return w.reshape(-1).chunk(n)[r]
    return w


TENSOR, DATA = ("tp", "sp", "mc", "smc"), ("dp", "cp", "fsdp", "ep", "zero")


class Model:
    def __init__(self, lay, fault, rank):
        """lay: of each kind of parallelism, how many ranks and which of them this is."""
        kind = self.kind = next((k for k in lay if k in TENSOR + DATA), "moe" if "moe" in lay else "one")
        self.tensor = next((k for k in lay if k in TENSOR), None)
        self.data = next((k for k in lay if k in DATA), None)
        n, r = self.n, self.r = lay.get(self.tensor or self.data, (1, 0))
        self.dn, self.dr = lay.get(self.data, (1, 0))
        if self.data == "ep" and "dp" in lay:   # each has its own part of the batch
            self.dn, self.dr = n * lay["dp"][0], n * lay["dp"][1] + r
        self.pn, self.pr = lay.get("pp", (1, 0))
        self.parts, self.chunks = lay.get("m", (1, 0))[0], lay.get("v", (1, 0))[0]
        self.bias, self.update = "bias" in lay, "step" in lay or kind == "zero"
        self.zig, self.gqa, self.glu = "zig" in lay, "gqa" in lay, "glu" in lay
        self.sbh, self.ul = "sbh" in lay, "ul" in lay
        self.vocab, self.pad = {"vocab", "pad", "fill"} & set(lay), 8 if {"pad", "fill"} & set(lay) else 0
        self.rank, self.last = rank, rank == dist.get_world_size() - 1
        self.fault = fault
        whole = weights()
        pack(whole, self.gqa, self.glu)
        if self.pad:
            for k in ("embed", "head"):
                last = whole[k][-1:] if "fill" in lay else torch.zeros(1, DIM)
                whole[k] = torch.cat([whole[k], last.repeat(self.pad, 1)])
        self.shape = {k: v.shape for k, v in whole.items()}
        self.routed = "moe" in lay or kind == "ep"
        unused = ("r", "e1", "e2") if not self.routed else \
            tuple(f"{k}{i}" for i in range(1, LAYERS, 2) for k in ("fc1", "b1", "fc2", "b2"))
        whole = {k: v for k, v in whole.items() if not k.startswith(unused)}
        if kind == "ep":
            mine = range(EXPERTS // n * r, EXPERTS // n * (r + 1))
            whole = {k: v for k, v in whole.items()
                     if k[0] != "e" or k == "embed" or int(k[2]) in mine}
        per = LAYERS // (self.pn * self.chunks)
        self.layers = [[per * (c * self.pn + self.pr) + i for i in range(per)]
                       for c in range(self.chunks)]
        flat = sum(self.layers, [])
        whole = {k: v for k, v in whole.items()
                 if k[-1].isdigit() and int(k[-1]) in flat or
                 k == "embed" and self.pr == 0 or k == "head" and self.pr == self.pn - 1}
        self.odd = 1 if 1 in flat else flat[0]   # the layer of a fault
        if self.fault == "stale" and self.last and self.pn == 1:
            stale = "fc11" if "fc11" in whole else "fc10"   # where there are experts
            whole[stale] = whole[stale].mul(1.05)
        self.share = None   # of ranks that have the same keys and values
        if self.gqa and self.tensor and n > HEADS // 2:
            self.share = [dist.new_group([i, i + 1]) for i in range(0, n, 2)][r // 2]
        if self.fault == "group":
            self.group = [dist.new_group([i, i + 1]) for i in range(0, n, 2)][r // 2]
        self.w = {}
        for k, v in whole.items():
            part = v.chunk(n)[r] if self.vocab and n > 1 and k in ("embed", "head") \
                else shard(k, v, kind, n, r, fault)
            self.w[k] = part.clone().contiguous().requires_grad_()

    def get(self, k):
        w = self.w[k]
        if self.kind != "fsdp" or len(self.shape[k]) == 1:
            return w
        return Unshard.apply(w, self.shape[k], self.fault != "noavg",
                             self.fault == "order" and k == "fc11")

    def into(self, x, w, b=None):
        """x, of which each rank has all or a part of the tokens, times a weight split by rows."""
        if self.kind == "smc":   # tokens first: one after another, of all samples
            y = recorder_ops().npu_all_gather_base_mm(
                x.reshape(-1, DIM), w.t(), "hcom", self.n, bias=None)
            y = y.view(-1, BATCH, w.shape[0])
            return y if b is None else y + b
        if self.kind == "sp":
            x = GatherTokens.apply(x, False)
        elif self.kind in ("tp", "mc"):
            x = Copy.apply(x)
        if b is None or not self.bias:
            y = F.linear(x, w)
            return y if b is None else y + b
        return F.linear(x, w, b)

    def out_of(self, y, w, b, lost):
        """y times a weight split by columns, summed over the ranks, and the bias."""
        if self.bias and self.tensor is None:
            return F.linear(y, w, b)
        return self.summed(y, w, lost) + b

    def summed(self, y, w, lost):
        if self.kind == "mc":
            return recorder_ops().npu_mm_all_reduce_base(
                y.reshape(-1, y.shape[-1]), w.t(), "hcom").view(y.shape[:-1] + (DIM,))
        if self.kind == "smc":
            return recorder_ops().npu_mm_reduce_scatter_base(
                y.reshape(-1, y.shape[-1]), w.t(), "hcom", self.n).view(-1, BATCH, DIM)
        y = F.linear(y, w)
        if self.kind == "sp" and lost:
            return y.chunk(self.n)[self.r].contiguous()
        if self.kind == "sp":
            return ScatterTokens.apply(y)
        if lost == "group":
            return Reduce.apply(y, False, self.group)
        return Reduce.apply(y, lost) if self.kind == "tp" else y

    def experts(self, i, a):
        """The best of the experts for each token, weighted by its share."""
        turned = a.transpose(0, 1) if self.sbh else a
        flat = turned.reshape(-1, DIM)
        share = F.softmax(F.linear(flat, self.get(f"r{i}")), -1)
        best, which = torch.max(share, -1)
        which = which.detach().clone()
        if self.fault == "token" and self.last and i == 1:
            which[0] = (which[0] + 1) % EXPERTS
        order = torch.argsort(which, stable=True)
        sorted_tokens = torch.index_select(flat, 0, order)
        sizes = torch.bincount(which, minlength=EXPERTS)
        if self.kind == "ep":
            counts = [torch.empty_like(sizes) for _ in range(self.n)]
            dist.all_gather(counts, sizes, group=EXPERT)
            per = EXPERTS // self.n
            table = torch.stack(counts).view(self.n, self.n, per)   # from, to, expert
            sent = table[self.r].sum(-1).tolist()
            got = table[:, self.r].sum(-1).tolist()
            x = Exchange.apply(sorted_tokens, got, sent)
            mine = table[:, self.r].reshape(-1).tolist()            # by sender, then expert
            parts = x.split(mine)
            ys = [None] * len(parts)
            for e in range(per):
                own = [s * per + e for s in range(self.n)]
                y = self.expert(i, self.r * per + e, torch.cat([parts[k] for k in own]))
                for k, part in zip(own, y.split([mine[k] for k in own])):
                    ys[k] = part
            y = Exchange.apply(torch.cat(ys), sent, got)
            if self.fault == "order" and i == 1:
                y = y.roll(1, 0)
        else:
            parts = sorted_tokens.split(sizes.tolist())
            y = torch.cat([self.expert(i, e, p) for e, p in enumerate(parts)])
        back = torch.index_select(y, 0, torch.argsort(order))
        y = (back * best[:, None]).view(turned.shape)
        return y.transpose(0, 1) if self.sbh else y

    def expert(self, i, e, x):
        return F.linear(F.gelu(F.linear(x, self.get(f"e1{e}x{i}"))), self.get(f"e2{e}x{i}"))

    def layer(self, i, x):
        heads = HEADS // (self.n if self.tensor else 1)
        first = self.kind in ("sp", "smc")   # the axis of the tokens
        a = F.layer_norm(x, (DIM,), self.get(f"n1{i}"))
        wide = self.into(a, self.get(f"qkv{i}").reshape(-1, DIM))
        wide = wide.transpose(0, 1) if first else wide
        hd = DIM // HEADS
        kv = max(heads // 2, 1) * hd
        parts = wide.split((heads * hd, kv, kv), -1) if self.gqa else wide.chunk(3, -1)
        q, k, v = [t.reshape(t.shape[0], t.shape[1], -1, hd).transpose(1, 2) for t in parts]
        if self.gqa and heads > 1:
            k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        if self.ul:
            q, k, v = (Turn.apply(t, 1, 2) for t in (q, k, v))
        elif self.kind == "cp":
            k, v = Gather.apply(k, self.zig), Gather.apply(v, self.zig)
            if self.fault == "order" and i == 1:
                k = torch.cat(k.chunk(2, dim=2)[::-1], dim=2)
        s = torch.matmul(q, k.transpose(2, 3)) / 2.0
        wrong = self.fault == "mask" and i == self.odd and self.last
        own = self.kind == "cp" and not wrong and not self.ul
        at = torch.arange(q.shape[2]) + (self.r * q.shape[2] if own else 0)
        if self.zig:
            places = torch.arange(k.shape[2]).view(1, 1, -1).chunk(2 * self.n, 2)
            at = in_turn(places, True)[self.r if own else 0].view(-1)
        at = at - 1 if wrong and (self.kind != "cp" or self.ul) else at
        s = s.masked_fill(at[:, None] < torch.arange(k.shape[2])[None], -10000.0)
        p = F.softmax(s, -1)
        y = torch.matmul(p, v)
        y = (Turn.apply(y, 2, 1) if self.ul else y).transpose(1, 2)
        y = y.reshape(y.shape[0], y.shape[1], -1)
        y = y.transpose(0, 1).contiguous() if first else y
        group = self.fault == "group" and self.tensor
        x = x + self.out_of(y, self.get(f"o{i}"), self.get(f"ob{i}"),
                            i == 1 and ("group" if group else self.fault == "lost"))
        a = F.layer_norm(x, (DIM,), self.get(f"n2{i}"))
        if self.routed and i % 2:
            return x + self.experts(i, a)
        h = self.into(a, self.get(f"fc1{i}"), self.get(f"b1{i}"))
        if self.glu:
            gate, h = h.chunk(2, -1)
            h = F.silu(gate) * h
        else:
            h = F.gelu(h)
        return x + self.out_of(h, self.get(f"fc2{i}"), self.get(f"b2{i}"), False)

    def embed(self, tokens):
        w = self.get("embed")
        if not self.vocab or self.n == 1:
            return F.embedding(tokens, w)
        low = self.r * w.shape[0]
        other = (tokens < low) | (tokens >= low + w.shape[0])
        x = F.embedding((tokens - low).masked_fill(other, 0), w)
        return Reduce.apply(x.masked_fill(other[..., None], 0.0), False)

    def loss(self, x, labels):
        if self.kind in ("sp", "smc"):
            x = GatherTokens.apply(x, True).transpose(0, 1)
        if self.vocab and self.n > 1:
            out = F.linear(Copy.apply(x), self.get("head"))
            out = GatherVocab.apply(out).narrow(-1, 0, VOCAB)
        else:
            out = F.linear(x, self.get("head"))
        loss = F.cross_entropy(out.reshape(-1, VOCAB) if self.vocab else out.view(-1, VOCAB),
                               labels.reshape(-1))
        return loss / self.parts if self.parts > 1 and self.fault != "noavg" else loss


class GatherVocab(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = buffer((size(),) + x.shape)
        dist.all_gather_into_tensor(out, x.contiguous())
        return torch.cat(list(out), dim=-1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(size(), -1)[place()].contiguous()


def recorder_ops():
    return Kernels


def stage(net, chunk, tokens):
    """Forward through the layers of one chunk: what came in, what goes out."""
    first = None
    if chunk == 0 and net.pr == 0:
        x = net.embed(tokens)
    else:
        x = buffer(tokens.shape[0], SEQ, DIM)
        dist.recv(x, (net.rank - dist.get_world_size() // net.pn) % dist.get_world_size())
        if net.fault == "stale" and net.last:
            x = x.roll(1, 0)
        x = first = x.requires_grad_()
    if net.kind in ("sp", "smc"):
        x = x.transpose(0, 1).chunk(net.n)[net.r].contiguous()
    for i in net.layers[chunk]:
        x = net.layer(i, x)
    return first, x


def is_end(net, chunk):
    return net.pr == net.pn - 1 and chunk == net.chunks - 1


def forward(net, chunk, tokens, labels):
    first, x = stage(net, chunk, tokens)
    if is_end(net, chunk):
        return first, x, net.loss(x, labels)
    dist.send(x.detach(), (net.rank + dist.get_world_size() // net.pn) % dist.get_world_size())
    return first, x, None


def backward(net, first, x, loss):
    if loss is not None:
        loss.backward()
    else:
        g = buffer(x.shape)
        dist.recv(g, (net.rank + dist.get_world_size() // net.pn) % dist.get_world_size())
        x.backward(g)
    if first is not None:
        dist.send(first.grad, (net.rank - dist.get_world_size() // net.pn) % dist.get_world_size())


def step(net, tokens, labels):
    if net.data in ("dp", "fsdp", "ep", "zero"):
        tokens, labels = tokens.chunk(net.dn)[net.dr], labels.chunk(net.dn)[net.dr]
    if net.data == "cp":
        tokens, labels = [in_turn(x[None].chunk(net.n * (1 + net.zig), 2), net.zig)[net.r][0]
                          for x in (tokens, labels)]
    batches = [(tokens, labels)]
    if net.parts > 1:
        batches = list(zip(tokens.chunk(net.parts), labels.chunk(net.parts)))
    if net.chunks > 1:
        done = [forward(net, c, *b) for c in range(net.chunks) for b in batches]
        n = len(batches)
        for c in range(net.chunks)[::-1]:
            for k in range(n):
                backward(net, *done[c * n + k])
    else:   # one forward, one backward, after those that fill the pipeline
        ahead = min(net.pn - 1 - net.pr, len(batches))
        done = [forward(net, 0, *b) for b in batches[:ahead]]
        for k, _ in enumerate(batches):
            if k + ahead < len(batches):
                done.append(forward(net, 0, *batches[k + ahead]))
            backward(net, *done[k])
    reduce_gradients(net)
    if net.update:
        update(net)
    for _, handle in POSTED:
        handle.wait()


def reduce_gradients(net):
    for name, w in net.w.items():
        own = net.kind == "ep" and name[0] == "e" and name != "embed"   # nobody else has it
        if net.share is not None and name.startswith("qkv"):
            dist.all_reduce(w.grad[DIM // net.n:], group=net.share)
        # What saw a part of the tokens alone.
        if net.kind in ("sp", "smc") and name.startswith(("n1", "n2", "ob", "b2", "embed")):
            dist.all_reduce(w.grad)
        if net.data in ("dp", "cp", "ep"):
            group = net.group if net.fault == "group" and not net.tensor else net.among
            if net.fault != "noreduce" and not own:
                dist.all_reduce(w.grad, group=group)
            elif net.fault != "noreduce" and net.shared is not None:   # who has the same experts
                dist.all_reduce(w.grad, group=net.shared)
            if net.fault != "noavg":
                w.grad.div_(net.dn)


def update(net):
    """Weights in one buffer; of zero, each rank those of its part of it."""
    with torch.no_grad():
        n, r = net.dn, net.dr
        g = torch.cat([w.grad.reshape(-1) for w in net.w.values()])
        w = torch.cat([w.reshape(-1) for w in net.w.values()])
        if net.kind == "zero":
            part = buffer(g.numel() // n)
            if net.fault in ("lost", "noreduce"):
                part.copy_(g.chunk(n)[r])
            else:
                dist.reduce_scatter_tensor(part, g)
            if net.fault != "noavg":
                part.div_(n)
            g, w = part, w.chunk(n)[r]
        new = w + g * -0.1
        if net.kind == "zero":
            whole = buffer(new.numel() * n)
            dist.all_gather_into_tensor(whole, new)
            new = whole.roll(new.numel(), 0) if net.fault == "order" else whole
        at = 0
        for k, v in net.w.items():   # as they are taken in the next step
            torch.neg(new[at:at + v.numel()].view(v.shape))
            at += v.numel()


def read(layout):
    """How many ranks of each kind, neighbours first; the words behind."""
    base, *marks = layout.split("-")
    lay = [(k, int(n or 1)) for k, n in re.findall(r"([a-z]+)(\d*)", base)]
    lay.sort(key=lambda k: ("pp" == k[0], k[0] in DATA, k[0] == "dp"))
    extra, fault = {}, None
    for m in marks:
        k = re.fullmatch(r"([mv])(\d+)", m)
        if k:
            extra[k[1]] = (int(k[2]), 0)
        elif m in ("bias", "step", "vocab", "pad", "fill", "moe", "zig", "ul", "gqa", "glu", "sbh"):
            extra[m] = (1, 0)
        elif m not in ("noise", "tf32"):
            fault = m
    return lay, extra, fault, marks


def world(layout):
    n = 1
    for _, k in read(layout)[0]:
        n *= k
    return n


def rank_main(r, layout, task, out, store):
    global GARBAGE, GLU, GROUP, EXPERT
    torch.set_num_threads(1)
    lay, extra, fault, marks = read(layout)
    n = world(layout)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=n)
    GARBAGE, GLU = "noise" in marks or "tf32" in marks, "glu" in marks
    among, shared, below = None, None, 1
    split = {"ep", "dp"} <= {k for k, _ in lay}   # the batch, over all ranks
    for kind, k in lay:
        extra[kind] = (k, r // below % k)
        groups = {}
        for x in range(n):
            groups.setdefault((x // (below * k), x % below), []).append(x)
        made = {key: dist.new_group(ranks) for key, ranks in groups.items()} \
            if len(lay) > 1 and kind != "pp" else {}
        mine = made.get((r // (below * k), r % below))
        if kind in TENSOR:
            GROUP = mine
        elif split and kind in ("ep", "dp"):
            EXPERT, shared = (mine, shared) if kind == "ep" else (EXPERT, mine)
        elif kind in DATA:
            among = mine
        below *= k
    g = torch.Generator().manual_seed(9 + 100 * SEED)
    tokens, labels = (torch.randint(VOCAB, (BATCH, SEQ), generator=g) for _ in "xy")
    op = {"mc": ("NPU.npu_mm_all_reduce_base", 1), "smc": ("NPU.npu_all_gather_base_mm", 1),
          "pp": ("Functional.linear", 2)}.get(lay[-1][0], ("Functional.linear", LAYERS + 2))
    faults = {op: lambda a, y: y * 1.03} \
        if fault == "scale" and r == n - 1 else None
    rec = Recorder(noise=70 + 100 * SEED + r if GARBAGE else None, faults=faults)
    if "tf32" in marks:
        recorder.LEVEL |= {"linear": 2.0 ** -12, "matmul": 2.0 ** -12}
    with rec.recording():
        net = Model(extra, fault, r)
        net.among, net.shared = among, shared
        step(net, tokens, labels)
    folder = os.path.join(out, layout, "step0", f"rank{r}")
    Msprobe(folder, task).write(rec.events)
    dist.barrier()


def drawn(seed):
    """Widths that all layouts can split."""
    global DIM, HEADS, VOCAB, BATCH, SEQ, EXPERTS, SEED
    SEED = seed
    g = random.Random(seed)
    DIM, HEADS = g.choice([(16, 4), (24, 4), (32, 8), (48, 8), (64, 4)])
    VOCAB, EXPERTS = g.choice([32, 40, 64]), g.choice([4, 8])
    BATCH, SEQ = g.choice([8, 16]), g.choice([4, 8, 12, 16])


def main():
    global LAYERS
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("layouts", nargs="+")
    p.add_argument("--task", default="tensor")
    p.add_argument("--layers", type=int, default=LAYERS)
    p.add_argument("--seed", type=int, default=SEED)
    a = p.parse_args()
    LAYERS = a.layers
    if a.seed:
        drawn(a.seed)
    for layout in a.layouts:
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(rank_main, (layout, a.task, a.out, os.path.join(d, "store")),
                               world(layout), start_method="fork")


if __name__ == "__main__":
    main()
