#!/usr/bin/env python3
"""Dumps of one training step of one transformer under parallel layouts, as msprobe writes them.

Usage: make.py OUT LAYOUT... [--task tensor|statistics] [--layers N]     needs python3-torch (gloo)

OUT/LAYOUT/step0/rankN. A layout is one, tpN, dpN, ppN, cpN or fsdpN, and may end in a fault after
a dash: tp2-lost (an all_reduce that does not happen), dp4-noavg (gradients summed, not averaged),
dp2-noreduce (not even summed), X-scale (rank N-1's second fc1 of its stage is 3 % off). "-noise"
adds a device's rounding, and NaN in buffers that are not yet filled. Real processes, real
collectives; what gloo of torch 1.13 lacks is made of all_gather.
"""
import argparse
import os
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

LAYERS, DIM, HEADS, VOCAB, BATCH, SEQ = 4, 16, 4, 32, 8, 8
recorder.MODEL = os.path.abspath(__file__)
recorder.OPS["Tensor"] = (torch.Tensor, "__add__ __mul__ __truediv__ view transpose reshape "
                          "masked_fill chunk div_ contiguous")
recorder.OPS["Torch"] = (torch, "matmul cat empty")
recorder.OPS["Distributed"] = (
    dist, "all_reduce all_gather_into_tensor reduce_scatter_tensor send recv")


def gather(out, x, group=None):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    out.copy_(torch.cat([p.reshape(-1) for p in parts]).view(out.shape))


def scatter(out, x, group=None):
    whole = x.clone()
    GLOO_REDUCE(whole)
    n = dist.get_world_size()
    out.copy_(whole.reshape(n, -1)[dist.get_rank()].view(out.shape))


def buffer(*shape):
    """What torch.empty may well hold."""
    x = torch.empty(*shape)
    return x.fill_(float("nan")) if GARBAGE else x


GARBAGE = False
GLOO_REDUCE = dist.all_reduce
dist.all_gather_into_tensor, dist.reduce_scatter_tensor = gather, scatter


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
    def forward(ctx, x, lost):
        x = x.clone()
        if not lost:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Gather(torch.autograd.Function):   # along the sequence (context parallel)
    @staticmethod
    def forward(ctx, x):
        n = dist.get_world_size()
        out = buffer((n,) + x.shape)
        dist.all_gather_into_tensor(out, x.contiguous())
        return torch.cat(list(out), dim=2)

    @staticmethod
    def backward(ctx, g):
        parts = torch.stack(g.chunk(dist.get_world_size(), dim=2))
        out = buffer(parts.shape[1:])
        dist.reduce_scatter_tensor(out, parts)
        return out


class Unshard(torch.autograd.Function):   # FSDP: a flat shard becomes a weight
    @staticmethod
    def forward(ctx, shard, shape):
        out = buffer(shape)
        dist.all_gather_into_tensor(out, shard)
        return out

    @staticmethod
    def backward(ctx, g):
        n = dist.get_world_size()
        out = buffer(g.numel() // n)
        dist.reduce_scatter_tensor(out, g.reshape(-1))
        return out / n, None


def weights():
    g = torch.Generator().manual_seed(3)

    def new(*shape):
        return torch.randn(shape, generator=g) * 0.3

    w = {"embed": new(VOCAB, DIM), "head": new(VOCAB, DIM)}
    for i in range(LAYERS):
        w |= {f"qkv{i}": new(3, DIM, DIM), f"o{i}": new(DIM, DIM), f"ob{i}": new(DIM),
              f"fc1{i}": new(4 * DIM, DIM), f"b1{i}": new(4 * DIM), f"fc2{i}": new(DIM, 4 * DIM),
              f"b2{i}": new(DIM), f"n1{i}": 1 + new(DIM), f"n2{i}": 1 + new(DIM)}
    return w


def shard(name, w, kind, n, r):
    if kind == "tp":
        if name.startswith("qkv"):
            return w.chunk(n, 1)[r]
        if name.startswith(("fc1", "b1")):
            return w.chunk(n, 0)[r]
        if name.startswith(("fc2", "o")) and not name.startswith("ob"):
            return w.chunk(n, 1)[r]
    if kind == "fsdp" and w.dim() > 1:
        return w.reshape(-1).chunk(n)[r]
    return w


class Model:
    def __init__(self, kind, n, r, fault):
        self.kind, self.n, self.r, self.fault = kind, n, r, fault
        whole = weights()
        self.shape = {k: v.shape for k, v in whole.items()}
        self.layers = range(LAYERS)
        if kind == "pp":
            per = LAYERS // n
            self.layers = range(per * r, per * r + per)
            whole = {k: v for k, v in whole.items()
                     if k[-1].isdigit() and int(k[-1]) in self.layers or
                     k == "embed" and r == 0 or k == "head" and r == n - 1}
        self.w = {k: shard(k, v, kind, n, r).clone().contiguous().requires_grad_()
                  for k, v in whole.items()}

    def get(self, k):
        w = self.w[k]
        return Unshard.apply(w, self.shape[k]) if self.kind == "fsdp" and len(self.shape[k]) > 1 \
            else w

    def layer(self, i, x):
        tp = self.kind == "tp"
        heads = HEADS // (self.n if tp else 1)
        a = F.layer_norm(x, (DIM,), self.get(f"n1{i}"))
        a = Copy.apply(a) if tp else a
        wide = F.linear(a, self.get(f"qkv{i}").reshape(-1, DIM))
        q, k, v = [t.view(t.shape[0], t.shape[1], heads, DIM // HEADS).transpose(1, 2)
                   for t in wide.chunk(3, -1)]
        if self.kind == "cp":
            k, v = Gather.apply(k), Gather.apply(v)
        s = torch.matmul(q, k.transpose(2, 3)) / 2.0
        at = torch.arange(q.shape[2]) + (self.r * q.shape[2] if self.kind == "cp" else 0)
        s = s.masked_fill(at[:, None] < torch.arange(k.shape[2])[None], -10000.0)
        p = F.softmax(s, -1)
        y = torch.matmul(p, v).transpose(1, 2)
        y = y.reshape(y.shape[0], y.shape[1], -1)
        y = F.linear(y, self.get(f"o{i}"))
        if tp:
            y = Reduce.apply(y, self.fault == "lost" and i == 1)
        x = x + (y + self.get(f"ob{i}"))
        a = F.layer_norm(x, (DIM,), self.get(f"n2{i}"))
        a = Copy.apply(a) if tp else a
        h = F.gelu(F.linear(a, self.get(f"fc1{i}"), self.get(f"b1{i}")))
        y = F.linear(h, self.get(f"fc2{i}"))
        y = Reduce.apply(y, False) if tp else y
        return x + (y + self.get(f"b2{i}"))


def step(net, tokens, labels):
    n, r, kind = net.n, net.r, net.kind
    if kind in ("dp", "fsdp"):
        tokens, labels = tokens.chunk(n)[r], labels.chunk(n)[r]
    if kind == "cp":
        tokens, labels = tokens.chunk(n, 1)[r], labels.chunk(n, 1)[r]
    if kind == "pp" and r > 0:
        x = buffer(BATCH, SEQ, DIM)
        dist.recv(x, r - 1)
        x = first = x.requires_grad_()
    else:
        x = F.embedding(tokens, net.get("embed"))
    for i in net.layers:
        x = net.layer(i, x)
    if kind == "pp" and r < n - 1:
        dist.send(x.detach(), r + 1)
        g = buffer(x.shape)
        dist.recv(g, r + 1)
        x.backward(g)
    else:
        out = F.linear(x, net.get("head"))
        loss = F.cross_entropy(out.view(-1, VOCAB), labels.reshape(-1))
        loss.backward()
    if kind == "pp" and r > 0:
        dist.send(first.grad, r - 1)
    if kind in ("dp", "cp"):
        for w in net.w.values():
            if net.fault != "noreduce":
                dist.all_reduce(w.grad)
            if net.fault != "noavg":
                w.grad.div_(n)


def rank_main(r, layout, task, out, store):
    torch.set_num_threads(1)
    base, *marks = layout.split("-")
    kind, n = base.rstrip("0123456789"), int(base.lstrip("abcdefghijklmnopqrstuvwxyz") or 1)
    fault = next((m for m in marks if m != "noise"), None)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=n)
    global GARBAGE
    GARBAGE = "noise" in marks
    g = torch.Generator().manual_seed(9)
    tokens, labels = (torch.randint(VOCAB, (BATCH, SEQ), generator=g) for _ in "xy")
    faults = {("Functional.linear", 2 if kind == "pp" else LAYERS + 2): lambda a, y: y * 1.03} \
        if fault == "scale" and r == n - 1 else None
    rec = Recorder(noise=70 + r if "noise" in marks else None, faults=faults)
    with rec.recording():
        step(Model(kind, n, r, fault), tokens, labels)
    folder = os.path.join(out, layout, "step0", f"rank{r}" if n > 1 or kind != "one" else "rank0")
    Msprobe(folder, task).write(rec.events)
    dist.barrier()


def main():
    global LAYERS
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("layouts", nargs="+")
    p.add_argument("--task", default="tensor")
    p.add_argument("--layers", type=int, default=LAYERS)
    a = p.parse_args()
    LAYERS = a.layers
    for layout in a.layouts:
        n = int(layout.split("-")[0].lstrip("abcdefghijklmnopqrstuvwxyz") or 1)
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(rank_main, (layout, a.task, a.out, os.path.join(d, "store")), n,
                               start_method="fork")


if __name__ == "__main__":
    main()
