#!/usr/bin/env python3
"""Dumps of two training steps on two ranks, as msprobe writes them, with what goes wrong between ranks.

Usage: make.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

OUT/CASE/stepS/rankR. A case is a layout of tests/parallel/make.py (dp2, tp2, sp2, cp2, pp2, ep2,
fsdp2, or drop2: tp2 with dropout), then "-noise" (a device's rounding), "-bf16", and the name of a
fault of FAULTS. `make.py --faults` lists them, with the
layout that they need and what must be named: OP RANK, a pattern and a rank or *.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "parallel"))
import make  # noqa: E402
from make import BATCH, DIM, SEQ, VOCAB  # noqa: E402
import recorder  # noqa: E402
from recorder import OPS  # noqa: E402
from command import command_line, recorded  # noqa: E402

OPS["Distributed"] = (dist, OPS["Distributed"][1] + " all_gather broadcast")
OPS["Tensor"] = (torch.Tensor, OPS["Tensor"][1] + " mul_")

# fault: (layout, what must be named as regular expression, its ranks)
FAULTS = {
    # Of sequence parallelism each rank sees a part of the tokens: gradients of norms must be summed.
    "norms": ("sp2", r"layer_norm\.\d+\.(backward|forward)", "01"),
    "onenorm": ("sp2", r"layer_norm\.\d+\.(backward|forward)", "01"),
    "lost": ("tp2", r"__add__\.7|linear\.5\.forward", "01"),
    "onlyhere": ("tp2", r"all_reduce\.1\.forward", "1"),
    "dropout": ("drop2", r"dropout\.0\.forward", "01"),
    "skip": ("dp2", r"step1:(embedding|layer_norm|reshape|linear)", "1"),
    "unwrapped": ("dp2", r"backward", "01"),
    "param": ("dp2", r"layer_norm\.3\.(backward|forward)", "01"),
    "tokens": ("dp2", r"div_\.\d+\.forward", "01"),
    "twice": ("dp2", r"div_\.\d+\.forward|all_reduce", "01"),
    "clip": ("dp2", r"mul_\.\d+\.forward", "01"),
    "weight": ("dp2", r"linear\.3\.forward", "1"),
    "broadcast": ("dp2", r"broadcast\.\d+\.forward", "1"),
    "partial": ("dp2", r"all_reduce\.5\.forward", "01"),
    "loss": ("cp2", r"cross_entropy|all_reduce|div_", "01"),
    "parts": ("cp2", r"all_gather_into_tensor\.2\.forward", "01"),
    "stale": ("fsdp2", r"step1:all_gather_into_tensor\.\d+\.forward", "0"),
    "scatter": ("fsdp2", r"reduce_scatter_tensor\.1\.forward", "1"),
    "micro": ("pp2", r"recv\.0\.forward", "1"),
    "tied": ("pp2", r"embedding\.0|linear\.4\.(backward|forward)", "01"),
    "router": ("ep2", r"linear\.6\.forward", "1"),
    "experts": ("ep2", r"all_reduce\.\d+\.forward", "01"),
    "tokensent": ("ep2", r"all_to_all_single\.0\.forward", "01"),
}
RATE = 0.1


def spoil(name, call, change, only=None):
    """A function of torch.distributed whose call of this number, on one rank, does something else."""
    real, state = getattr(dist, name), {"n": 0}

    def wrapped(*args, **kwargs):
        n = state["n"]
        state["n"] += 1
        mine = n == call and (only is None or dist.get_rank() == only)
        return change(real, *args, **kwargs) if mine else real(*args, **kwargs)
    setattr(dist, name, wrapped)


class Noise16(torch.autograd.Function):
    """The rounding of another order of summation, of 16 bits."""

    @staticmethod
    def of(rng, x):
        size = 2 ** -9 if x.dtype == torch.bfloat16 else 1e-7
        return (x.float() * (1 + size * torch.randn(x.shape, generator=rng))).to(x.dtype)

    @staticmethod
    def forward(ctx, rng, x, level):
        ctx.rng = rng
        return Noise16.of(rng, x)

    @staticmethod
    def backward(ctx, g):
        return None, Noise16.of(ctx.rng, g), None


def reduce_wide(real):
    """gloo has no bfloat16."""
    def call(x, *args, **kwargs):
        if x.dtype != torch.bfloat16:
            return real(x, *args, **kwargs)
        y = x.float()
        real(y, *args, **kwargs)
        x.copy_(y)
    return call


def gather_wide(real):
    def call(parts, x, *args, **kwargs):
        if x.dtype != torch.bfloat16:
            return real(parts, x, *args, **kwargs)
        wide = [p.float() for p in parts]
        real(wide, x.float(), *args, **kwargs)
        for p, w in zip(parts, wide):
            p.copy_(w)
    return call


class Net(make.Model):
    def __init__(self, kind, fault, seed, dtype):
        rank = dist.get_rank()
        super().__init__({"tp" if kind == "drop" else kind: (2, rank)},
                         "lost" if fault == "lost" else None, rank)
        self.r = rank   # of a pipeline, too
        self.drop, self.what, self.seed = kind == "drop", fault, seed
        g = torch.Generator().manual_seed(seed)
        for w in self.w.values():   # another network for each seed, the same on all ranks
            w.data.mul_(1 + 0.2 * torch.rand((), generator=g))
        self.w = {k: v.detach().to(dtype).requires_grad_() for k, v in self.w.items()}
        if kind == "pp":   # tied: the last stage's head is the first one's embedding
            own = "embed" if self.r == 0 else "head"
            w = make.weights()["embed"].to(dtype) * (1 + 0.01 * seed)
            self.w[own] = w.clone().requires_grad_()
        if self.r == 1 and fault in ("weight", "router"):
            w = self.w["fc20" if fault == "weight" else "r1"]
            w.data.add_(0.1 * torch.randn(w.shape, generator=g).to(dtype))

    def summed(self, y, w, lost):
        y = super().summed(y, w, lost)
        return F.dropout(y, 0.1, True) if self.drop else y


def whole_group(net, kind, name):
    """Is its gradient summed over the ranks?"""
    if kind == "fsdp":   # what is not in the flat shards
        return len(net.shape[name]) == 1
    if kind == "sp":
        return name.startswith(("n1", "n2", "ob", "b2", "embed"))
    return kind in ("dp", "cp") or kind == "ep" and (name[0] != "e" or name == "embed")


def gradients(net, kind, fault, seen):
    r = net.r
    own = torch.stack([w.grad.float().norm() for w in net.w.values()]).norm().item()
    for name, w in net.w.items():
        if kind == "pp" and name in ("embed", "head") and fault != "tied":
            dist.all_reduce(w.grad)
        wrong = kind == "ep" and fault == "experts" and name[0] == "e" and name != "embed"
        if wrong:   # the experts of rank 0 with those of rank 1
            theirs = [n for n in net.w if n[0] == "e" and n != "embed"]
            wrong = theirs.index(name) >= 0
        if not (whole_group(net, kind, name) or wrong) or fault == "unwrapped":
            continue
        if fault == "norms" and name[:2] in ("n1", "n2") or fault == "onenorm" and name == "n11" \
                or fault == "param" and name == "n21":
            continue
        dist.all_reduce(w.grad)
        if kind in ("dp", "cp", "ep", "fsdp"):
            w.grad.div_(float(seen) if fault == "tokens" else 2)
        if fault == "twice":
            w.grad.div_(2)
    if fault == "clip":
        for w in net.w.values():
            w.grad.mul_(0.5 + 0.1 * own / (1 + own) + 0.05 * r)


def step(net, kind, fault, tokens, labels):
    n, r = 2, net.r
    kind = "tp" if kind == "drop" else kind
    if kind in ("dp", "fsdp", "ep"):
        tokens, labels = tokens.chunk(n)[r], labels.chunk(n)[r]
    if kind == "cp":
        tokens, labels = tokens.chunk(n, 1)[r], labels.chunk(n, 1)[r]
    if fault == "tokens":
        labels = labels.clone()
        labels.view(-1)[:3 * (r + 1)] = -100
    seen = (labels >= 0).sum().item()
    if kind == "pp" and r > 0:
        x = make.buffer(BATCH, SEQ, DIM).to(net.w["head"].dtype)
        dist.recv(x, r - 1)
        x = first = x.requires_grad_()
    else:
        x = F.embedding(tokens, net.get("embed"))
    if kind == "sp":
        x = x.transpose(0, 1).chunk(n)[r].contiguous()
    for i in sum(net.layers, []):
        x = net.layer(i, x)
    if kind == "pp" and r == 0:
        dist.send(x.detach(), 1)
        g = make.buffer(x.shape).to(x.dtype)
        dist.recv(g, 1)
        x.backward(g)
    else:
        if kind == "sp":
            x = make.GatherTokens.apply(x, True).transpose(0, 1)
        out = F.linear(x, net.get("head")).float()
        red = "sum" if fault == "tokens" else "mean"
        loss = F.cross_entropy(out.view(-1, VOCAB), labels.reshape(-1), reduction=red)
        if fault == "loss":   # as if gradients were summed over the ranks of the context, not averaged
            loss = loss * 2
        loss.backward()
    if kind == "pp" and r > 0:
        dist.send(first.grad, 0)
    gradients(net, kind, fault, seen)


def lose(real, x, *args, **kwargs):
    y = x.clone()
    real(y, *args, **kwargs)


def own_only(real, x, *args, **kwargs):
    """Of a group of one."""
    real(x.clone(), *args, **kwargs)


def swap_parts(real, out, x, *args, **kwargs):
    real(out, x, *args, **kwargs)
    out.copy_(torch.cat(out.reshape(-1).chunk(2)[::-1]).view(out.shape))


def swap_rows(real, out, x, *args, **kwargs):
    real(out, x, *args, **kwargs)
    out.copy_(out.flip(0))


def stale_gather():
    real, old = dist.all_gather_into_tensor, {}

    def call(out, x, *args, **kwargs):
        real(out, x, *args, **kwargs)
        k = (len(old.get("n", [])), tuple(x.shape))
        old.setdefault("n", []).append(0)
        half = out.reshape(-1).shape[0] // 2
        if k[0] == old.get("again", -1) and dist.get_rank() == 0:
            out.reshape(-1)[half:].copy_(old["first"])
        if k[0] == 1:
            old["first"] = out.reshape(-1)[half:].clone()
    dist.all_gather_into_tensor = call
    return old


def drop_operand(real, out, x, *args, **kwargs):
    x = x.clone() if dist.get_rank() == 1 else torch.zeros_like(x)
    keep = out.clone()
    real(out, x, *args, **kwargs)
    return keep


def rank_main(r, case, task, out, store, seed):
    torch.set_num_threads(1)
    layout, *marks = case.split("-")
    kind = layout.rstrip("0123456789")
    fault = next((m for m in marks if m in FAULTS), None)
    dtype = torch.bfloat16 if "bf16" in marks else torch.float32
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=2)
    make.LAYERS = 2
    make.GARBAGE = "noise" in marks
    dist.all_reduce = make.GLOO_REDUCE = reduce_wide(make.GLOO_REDUCE)
    dist.all_gather = gather_wide(dist.all_gather)
    dist.broadcast = reduce_wide(dist.broadcast)
    if dtype == torch.bfloat16:
        recorder.Noise, wide = Noise16, make.buffer
        make.buffer = lambda *shape: wide(*shape).to(dtype)
    net = Net(kind, fault, seed, dtype)
    old = stale_gather() if fault == "stale" else None
    for s in range(2):
        saved = {n: getattr(dist, n) for n in OPS["Distributed"][1].split()}
        g = torch.Generator().manual_seed(1000 * seed + s)
        tokens, labels = (torch.randint(VOCAB, (BATCH, SEQ), generator=g) for _ in "xy")
        if fault == "onlyhere":
            spoil("all_reduce", 1, lose, only=1)
        if fault == "partial":
            spoil("all_reduce", 5, own_only)
        if fault == "parts":
            spoil("all_gather_into_tensor", 2, swap_parts)
        if fault == "scatter":
            spoil("reduce_scatter_tensor", 1, lambda real, o, x: (real(o, x), o.sub_(
                x.reshape(2, -1)[1].view(o.shape)))[0], only=1)
        if fault == "tokensent":
            spoil("all_to_all_single", 0, swap_rows)
        if fault == "micro" and r == 1:
            spoil("recv", 0, lambda real, x, src: (real(x, src), x.copy_(x.roll(1, 0)))[0])
        if fault == "broadcast" and r == 1 and s == 0:
            spoil("broadcast", 2, lambda real, x, src: real(x.clone(), src))
        if fault == "stale":
            old["n"], old["again"] = [], 1 if s == 1 else -1
        torch.manual_seed(50 * seed + s + (100 * r if fault == "dropout" else 0))
        with recorded(os.path.join(out, case), s, r, task, 70 + r + 10 * seed if "noise" in marks else None):
            if s == 0 and kind == "dp":   # as DistributedDataParallel does
                with torch.no_grad():
                    if fault == "broadcast" and r == 1:
                        for w in net.w.values():
                            w.mul_(1.01)
                    for w in [] if fault == "weight" else net.w.values():
                        dist.broadcast(w.data, 0)
            step(net, kind, fault, tokens, labels)
        for n, f in saved.items():
            setattr(dist, n, f)
        with torch.no_grad():
            for w in net.w.values():
                if not (fault == "skip" and r == 1 and s == 0):
                    w.sub_(RATE * w.grad)
                w.grad = None
    dist.barrier()


if __name__ == "__main__":
    command_line(FAULTS, rank_main)
