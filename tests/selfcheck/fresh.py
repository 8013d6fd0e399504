#!/usr/bin/env python3
"""Dumps of runs on two and four ranks: other networks and bugs, written before any rule that names them.

Usage: fresh.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As make.py, whose FAULTS taught; tests/selfcheck/score.py OUT --fresh scores these. A case is a
network (conv, vocab, moe, edp, zero, pipe, ring, lstm, hsdp), then "-noise", and the name of a fault.
What each fault is, and where it was reported, stands beside it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

from command import of_networks   # which finds the recorder, too
import recorder
from recorder import OPS

recorder.MODEL = os.path.abspath(__file__)
OPS["Functional"] = (F, "conv2d batch_norm relu adaptive_avg_pool2d linear embedding layer_norm silu "
                     "gelu softmax cross_entropy mse_loss")
OPS["Torch"] = (torch, "cat matmul einsum mean sum rsqrt exp log tanh sigmoid max gather stack")
OPS["Tensor"] = (torch.Tensor, "__add__ __mul__ __sub__ __truediv__ reshape transpose masked_fill "
                 "chunk split div_ mul_ add_")
OPS["Distributed"] = (dist, "all_reduce all_gather broadcast send recv all_to_all "
                      "all_gather_into_tensor reduce_scatter_tensor")
recorder.NOISY |= set("conv2d batch_norm silu mean sum rsqrt exp log tanh sigmoid mse_loss".split())

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # A parameter that was put in place after the gradients' hooks were:
    # https://github.com/pytorch/pytorch/issues/12603
    "late": ("conv", r"linear\.0\.(backward|forward)", "01"),
    # One rank evaluates, and stays so.
    "eval": ("conv", r"batch_norm\.\d+\.forward", "01"),
    # Each rank's scheduler watches its own loss: https://github.com/lucidrains/DALLE-pytorch/issues/268
    "rate": ("conv", r"step1:(conv2d|batch_norm|linear|broadcast)", "01"),
    # Weights of norms are reduced with the norm, and again: https://github.com/sony/nnabla/pull/1120
    "again": ("conv", r"all_reduce|div_", "01"),
    # The loss over a part of the vocabulary:
    # https://github.com/bigscience-workshop/Megatron-DeepSpeed/issues/394
    "sumexp": ("vocab", r"(log|sum|exp)\.\d+\.forward", "01"),
    # The bias is added on every rank, and then summed:
    # https://github.com/huggingface/text-generation-inference/issues/1036
    "rowbias": ("vocab", r"linear\.\d+\.forward|all_reduce", "01"),
    # Smoothing of labels over a part of the vocabulary:
    # https://github.com/NVIDIA/Megatron-LM/issues/7452
    "smooth": ("vocab", r"(mean|__mul__|__sub__|__add__)\.\d+\.forward", "01"),
    # Norms' weights part, for the gradient of a split product's input is not summed:
    # https://github.com/NVIDIA/TransformerEngine/issues/441
    "dgrad": ("vocab", r"backward", "01"),
    # https://github.com/pytorch/torchtitan/issues/2387
    "gate": ("moe", r"linear\.1\.(backward|forward)", "01"),
    # What comes back from the experts is put together by other ids:
    # https://github.com/vllm-project/vllm/pull/52639
    "combine": ("moe", r"all_to_all\.1|einsum", "01"),
    # https://github.com/NVIDIA/Megatron-LM/pull/5956
    "escale": ("moe", r"einsum\.\d+\.backward|div_", "01"),
    # Of experts and data parallelism, over the wrong group: https://github.com/NVIDIA/Megatron-LM/pull/5916
    "egroup": ("edp", r"all_reduce", "0123"),
    # One rank's part is gathered before its step is done.
    "early": ("zero", r"all_gather_into_tensor\.0\.forward|linear\.\d+\.forward", "01"),
    # Gradients lie in another order on one rank: https://github.com/deepspeedai/DeepSpeed/issues/2343
    "order": ("zero", r"cat\.0\.forward|reduce_scatter_tensor\.0", "01"),
    # Summed, not averaged: https://github.com/deepspeedai/DeepSpeed/issues/7773
    "summed": ("zero", r"reduce_scatter_tensor|mul|div", "01"),
    # Outputs of one micro-batch, labels of another: https://github.com/deepspeedai/DeepSpeed/issues/5729
    "labels": ("pipe", r"mse_loss", "1"),
    # What is received is taken for that of another micro-batch:
    # https://github.com/NVIDIA/Megatron-LM/pull/5271
    "crossed": ("pipe", r"recv|tanh|linear", "0"),
    # Gradients of keys and values are those of the rank's own queries alone:
    # https://github.com/huggingface/diffusers/issues/14265
    "kvgrad": ("ring", r"backward", "01"),
    # Each rank draws weights of its own: https://github.com/antoyang/TubeDETR/issues/15
    "init": ("lstm", r"step0:(embedding|linear|all_reduce)", "01"),
    # One rank found no overflow, and scales otherwise: https://github.com/pytorch/pytorch/pull/115710
    "scaler": ("lstm", r"mul|cross_entropy", "01"),
    # Shards are reduced over those that hold other shards.
    "rgroup": ("hsdp", r"all_reduce", "0123"),
    # Weights do not reach the second node: https://github.com/pytorch/pytorch/pull/108331
    "node": ("hsdp", r"step0:(all_gather|linear|all_reduce)", "0123"),
    # No reduction between the nodes: https://github.com/verl-project/verl/issues/7493
    "nosync": ("hsdp", r"reduce_scatter|backward|div|linear", "0123"),
}
RANKS = {"edp": 4, "hsdp": 4}
REAL = {k: getattr(dist, k) for k in ("all_reduce", "all_gather", "broadcast")}


def all_to_all(outs, ins, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    mine, parts = torch.stack(ins), [torch.empty_like(torch.stack(ins)) for _ in range(n)]
    REAL["all_gather"](parts, mine, group=group)
    for i in range(n):
        outs[i].copy_(parts[i][r])


def gather_flat(out, x, group=None):
    parts = list(out.reshape(dist.get_world_size(group), -1).unbind(0))
    got = [torch.empty_like(p) for p in parts]
    REAL["all_gather"](got, x.reshape(-1), group=group)
    out.copy_(torch._C._VariableFunctions.stack(got).view(out.shape))


def scatter_flat(out, x, group=None):
    whole = x.clone()
    REAL["all_reduce"](whole, group=group)
    out.copy_(whole.view(dist.get_world_size(group), -1)[dist.get_rank(group)].view(out.shape))


dist.all_to_all, dist.all_gather_into_tensor = all_to_all, gather_flat
dist.reduce_scatter_tensor = scatter_flat


class Net:
    """Weights self.w; step(s) ends with gradients, as reduced, in them; update(s) is the optimizer."""

    def __init__(self, fault, seed):
        self.fault, self.r, self.n = fault, dist.get_rank(), dist.get_world_size()
        self.seed, self.rate = seed, 0.1
        self.g = torch.Generator().manual_seed(seed)
        self.w = {}
        self.build()
        for w in self.w.values():
            w.requires_grad_()

    def new(self, *shape, by=0.3):
        return torch.randn(shape, generator=self.g) * by

    def data(self, s, *shape, rank=None):
        g = torch.Generator().manual_seed(10000 * self.seed + 100 * s + (self.r if rank is None else rank))
        return torch.randn(shape, generator=g)

    def ids(self, s, most, *shape, rank=None):
        g = torch.Generator().manual_seed(7 + 10000 * self.seed + 100 * s +
                                          (self.r if rank is None else rank))
        return torch.randint(most, shape, generator=g)

    def reduce(self, names, group=None, n=None):
        for k in names:
            dist.all_reduce(self.w[k].grad, group=group)
            self.w[k].grad.div_(n or self.n)

    def update(self, s):
        for w in self.w.values():
            w.sub_(self.rate * w.grad)


def backward(loss, seed=None):
    if seed is not None:
        loss = loss * seed
    loss.backward()


class Conv(Net):
    """Data parallel, buckets of gradients, buffers handed round."""

    def build(self):
        c = 6
        for i, k in enumerate((3, c, c)):
            self.w |= {f"c{i}": self.new(c, k, 3, 3), f"g{i}": 1 + self.new(c), f"b{i}": self.new(c)}
        self.w |= {"fc": self.new(10, c), "fb": self.new(10)}
        self.buf = [[torch.zeros(c), torch.ones(c)] for _ in range(3)]
        self.m = {k: torch.zeros_like(w) for k, w in self.w.items()}
        if self.fault == "rate" and self.r == 1:
            self.rate = 0.01

    def step(self, s):
        for pair in self.buf:
            for b in pair:
                dist.broadcast(b, 0)
        x, labels = self.data(s, 4, 3, 8, 8), self.ids(s, 10, 4)
        training = not (self.fault == "eval" and self.r == 1)
        for i in range(3):
            y = F.conv2d(x, self.w[f"c{i}"], padding=1)
            y = F.relu(F.batch_norm(y, *self.buf[i], self.w[f"g{i}"], self.w[f"b{i}"], training, 0.1))
            x = x + y if i else y
        out = F.linear(F.adaptive_avg_pool2d(x, 1).reshape(4, -1), self.w["fc"], self.w["fb"])
        backward(F.cross_entropy(out, labels))
        if self.fault == "again":
            for i in range(3):
                dist.all_reduce(self.w[f"g{i}"].grad)
                dist.all_reduce(self.w[f"b{i}"].grad)
        names = [k for k in self.w if not (self.fault == "late" and k in ("fc", "fb"))]
        for bucket in (names[len(names) // 2:], names[:len(names) // 2]):
            flat = torch.cat([self.w[k].grad.reshape(-1) for k in bucket])
            flat.div_(self.n)
            dist.all_reduce(flat)
            for k, g in zip(bucket, flat.split([self.w[k].numel() for k in bucket])):
                self.w[k].grad.copy_(g.view(self.w[k].shape))

    def update(self, s):
        for k, w in self.w.items():
            self.m[k].mul_(0.9).add_(w.grad)
            w.sub_(self.rate * self.m[k])


class ToSplit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lost):
        ctx.lost = lost
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        if not ctx.lost:
            dist.all_reduce(g)
        return g, None


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class VocabLoss(torch.autograd.Function):
    """Cross entropy with smoothed labels, of logits split by the vocabulary."""

    @staticmethod
    def forward(ctx, x, labels, first, fault):
        most = torch.max(x, -1)[0]
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        x = x - most[:, None]
        e = torch.exp(x)
        total = torch.sum(e, -1)
        if fault != "sumexp":
            dist.all_reduce(total)
        here = (labels >= first) & (labels < first + x.shape[1])
        at = torch.gather(x, 1, (labels - first).clamp(0, x.shape[1] - 1)[:, None])[:, 0]
        at = at.masked_fill(~here, 0.0)
        dist.all_reduce(at)
        n = x.shape[1] * dist.get_world_size()
        mean = torch.mean(x, -1)
        if fault != "smooth":
            dist.all_reduce(mean)
            mean.div_(dist.get_world_size())
        ctx.save_for_backward(e / total[:, None], labels - first, here)
        ctx.size = n
        return torch.mean(torch.log(total) - at * 0.9 - mean * 0.1)

    @staticmethod
    def backward(ctx, g):
        p, at, here = ctx.saved_tensors
        p = p - 0.1 / ctx.size
        p[here, at[here]] -= 0.9
        return p * g / len(at), None, None, None


class Vocab(Net):
    """Tensor parallel to the last: embedding and loss are split by the vocabulary."""
    DIM, HID, VOC = 12, 24, 32

    def build(self):
        d, h, v = self.DIM, self.HID, self.VOC
        self.w = {"embed": self.split(self.new(v, d), 0)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(d), f"gate{i}": self.split(self.new(h, d), 0),
                       f"up{i}": self.split(self.new(h, d), 0),
                       f"down{i}": self.split(self.new(d, h), 1), f"bias{i}": self.new(d)}
        self.w |= {"n": 1 + self.new(d), "head": self.split(self.new(v, d), 0)}

    def split(self, w, axis):
        return w.chunk(self.n, axis)[self.r].clone().contiguous()

    @staticmethod
    def norm(x, w):
        return x * torch.rsqrt(torch.mean(x * x, -1, True) + 1e-5) * w

    def step(self, s):
        ids, labels = (self.ids(s + k, self.VOC, 20, rank=0) for k in (0, 50))
        per, first = self.VOC // self.n, self.VOC // self.n * self.r
        here = (ids >= first) & (ids < first + per)
        x = F.embedding((ids - first).clamp(0, per - 1), self.w["embed"])
        x = Summed.apply(x.masked_fill(~here[:, None], 0.0))
        for i in range(3):
            a = ToSplit.apply(self.norm(x, self.w[f"n{i}"]), self.fault == "dgrad" and i == 1)
            h = F.silu(F.linear(a, self.w[f"gate{i}"])) * F.linear(a, self.w[f"up{i}"])
            bias = self.w[f"bias{i}"]
            if self.fault == "rowbias":
                x = x + Summed.apply(F.linear(h, self.w[f"down{i}"], bias))
            else:
                x = x + (Summed.apply(F.linear(h, self.w[f"down{i}"])) + bias)
        out = F.linear(ToSplit.apply(self.norm(x, self.w["n"]), False), self.w["head"])
        backward(VocabLoss.apply(out, labels, first, self.fault))


class ToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, turned):
        ctx.group, ctx.turned = group, turned
        parts = [p.contiguous() for p in x.chunk(dist.get_world_size(group))]
        parts = parts[::-1] if turned else parts
        outs = [torch.zeros_like(p) for p in parts]
        dist.all_to_all(outs, parts, group=group)
        return torch.cat(outs)

    @staticmethod
    def backward(ctx, g):
        return ToAll.apply(g, ctx.group, ctx.turned), None, None


class Moe(Net):
    """Experts with a fixed capacity, by products with one-hot tensors; four ranks: each expert twice."""
    DIM, EXPERTS, CAP, TOKENS = 8, 4, 6, 12

    def build(self):
        d, e = self.DIM, self.EXPERTS
        self.ep = self.dp = None
        self.me = self.r % 2
        if self.n == 4:
            pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
            self.ep, self.dp = pairs[self.r // 2], pairs[2 + self.r % 2]
        mine = slice(self.me * 2, self.me * 2 + 2)
        self.w = {"in": self.new(d, d), "gate": self.new(e, d), "ib": self.new(d)}
        for k in "12":
            self.w |= {f"n{k}": 1 + self.new(d), f"m{k}": self.new(d)}
        self.w |= {"e1": self.new(e, d, 16)[mine].clone(), "e2": self.new(e, 16, d)[mine].clone(),
                   "out": self.new(d, d), "ob": self.new(d)}

    def step(self, s):
        x, want = self.data(s, self.TOKENS, self.DIM), self.data(s + 50, self.TOKENS, self.DIM)
        x = F.linear(x, self.w["in"], self.w["ib"])
        a = F.layer_norm(x, (self.DIM,), self.w["n1"], self.w["m1"])
        share = F.softmax(F.linear(a, self.w["gate"]), -1)
        best, which = torch.max(share, -1)
        one = F.one_hot(which, self.EXPERTS)
        at = (one.cumsum(0) - 1) * one
        send = one[..., None] * F.one_hot(at.clamp(0, self.CAP - 1), self.CAP) * (at < self.CAP)[..., None]
        send = send.float()
        y = torch.einsum("tec,td->ecd", send, a)
        y = ToAll.apply(y, self.ep, False)
        y = y.reshape(2, 2, self.CAP, self.DIM).transpose(0, 1).reshape(2, 2 * self.CAP, self.DIM)
        y = torch.einsum("ech,ehd->ecd", F.gelu(torch.einsum("ecd,edh->ech", y, self.w["e1"])), self.w["e2"])
        y = y.reshape(2, 2, self.CAP, self.DIM).transpose(0, 1).reshape(4, self.CAP, self.DIM)
        y = ToAll.apply(y, self.ep, self.fault == "combine")
        x = x + torch.einsum("tec,ecd->td", send, y) * best[:, None]
        x = F.layer_norm(x, (self.DIM,), self.w["n2"], self.w["m2"])
        backward(F.mse_loss(F.linear(x, self.w["out"], self.w["ob"]), want))
        shared = [k for k in self.w if k not in ("e1", "e2")]
        self.reduce([k for k in shared if not (self.fault == "gate" and k == "gate")])
        for k in ("e1", "e2"):
            if self.dp is not None:
                dist.all_reduce(self.w[k].grad, group=self.ep if self.fault == "egroup" else self.dp)
            if self.fault != "escale":
                self.w[k].grad.div_(self.n)


class Zero(Net):
    """The optimizer's state is split: a mixer of tokens and channels."""
    T, C = 6, 8

    def build(self):
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.C), f"t{i}": self.new(self.T, self.T),
                       f"a{i}": self.new(2 * self.C, self.C), f"ab{i}": self.new(2 * self.C),
                       f"z{i}": self.new(self.C, 2 * self.C), f"zb{i}": self.new(self.C)}
        self.w |= {"h1": self.new(self.C, self.C), "h2": self.new(self.C, self.C)}
        size = sum(w.numel() for w in self.w.values())
        self.pad = -size % self.n
        self.m = self.v = None

    def step(self, s):
        x, want = self.data(s, 3, self.T, self.C), self.data(s + 50, 3, self.T, self.C)
        for i in range(2):
            a = F.layer_norm(x, (self.C,), self.w[f"n{i}"])
            x = x + F.linear(a.transpose(1, 2), self.w[f"t{i}"]).transpose(1, 2)
            h = F.gelu(F.linear(x, self.w[f"a{i}"], self.w[f"ab{i}"]))
            x = x + F.linear(h, self.w[f"z{i}"], self.w[f"zb{i}"])
        backward(F.mse_loss(F.linear(F.linear(x, self.w["h1"]), self.w["h2"]), want))
        names = list(self.w)
        if self.fault == "order" and self.r == 1:
            names[-2:] = names[:-3:-1]
        flat = torch.cat([self.w[k].grad.reshape(-1) for k in names] + [torch.zeros(self.pad)])
        mine = torch.empty(flat.numel() // self.n)
        dist.reduce_scatter_tensor(mine, flat)
        if self.fault != "summed":
            mine.div_(self.n)
        with torch.no_grad():
            self.adam(mine, s)

    def adam(self, g, s):
        if s == 0:
            whole = torch._C._VariableFunctions.cat([w.reshape(-1) for w in self.w.values()] +
                                                    [torch.zeros(self.pad)])
            self.mine = whole.view(self.n, -1)[self.r].clone()
            self.m, self.v = torch.zeros_like(g), torch.zeros_like(g)
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.99 * self.v + 0.01 * g * g
        old = self.mine
        self.mine = old - 0.05 * (self.m / (1 - 0.9 ** (s + 1))) / (
            (self.v / (1 - 0.99 ** (s + 1))).sqrt() + 1e-8)
        whole = torch.empty(g.numel() * self.n)
        dist.all_gather_into_tensor(whole, old if self.fault == "early" and self.r == 1 else self.mine)
        self.whole = whole

    def update(self, s):
        at = 0
        for w in self.w.values():
            w.copy_(self.whole[at:at + w.numel()].view(w.shape))
            at += w.numel()


class Pipe(Net):
    """Two stages, four micro-batches, first all forward."""
    D, MICRO = 10, 4

    def build(self):
        self.w = {f"{k}{i}{self.r}": v for i in range(3)
                  for k, v in (("w", self.new(self.D, self.D)), ("b", self.new(self.D)))}
        g = torch.Generator().manual_seed(self.seed + 77 * self.r)   # each stage its own
        for w in self.w.values():
            w.add_(0.3 * torch.randn(w.shape, generator=g))

    def stage(self, x):
        for i in range(3):
            x = torch.tanh(F.linear(x, self.w[f"w{i}{self.r}"], self.w[f"b{i}{self.r}"]))
        return x

    def step(self, s):
        data = self.data(s, 4 * self.MICRO, self.D, rank=0).split(4)
        want = self.data(s, 4 * self.MICRO, self.D, rank=1).split(4)
        ins, outs = [], []
        for m in range(self.MICRO):
            x = data[m]
            if self.r == 1:
                x = torch.zeros(4, self.D)
                dist.recv(x, 0)
                x = x.requires_grad_()
            ins.append(x)
            outs.append(self.stage(x))
            if self.r == 0:
                dist.send(outs[m].detach(), 1)
        if self.r == 1:
            for m in range(self.MICRO):
                of = (m + 1) % self.MICRO if self.fault == "labels" else m
                backward(F.mse_loss(outs[m], want[of]), 1 / self.MICRO)
                dist.send(ins[m].grad, 0)
            return
        grads = [torch.zeros(4, self.D) for _ in outs]
        for g in grads:
            dist.recv(g, 1)
        for y, g in zip(outs, grads[::-1] if self.fault == "crossed" else grads):
            y.backward(g)


class Around(torch.autograd.Function):
    """All ranks' keys or values, one behind the other."""
    @staticmethod
    def forward(ctx, x, lost):
        ctx.lost = lost
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        if not ctx.lost:
            dist.all_reduce(g)
        return g.chunk(dist.get_world_size(), 1)[dist.get_rank()].contiguous(), None


class Ring(Net):
    """Context parallel: each rank has a part of the sequence."""
    D, B, S = 8, 3, 10

    def build(self):
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D)}
            self.w |= {f"{k}{i}": self.new(self.D, self.D) for k in "qkvo"}
        self.w |= {"head": self.new(self.D, self.D)}

    def step(self, s):
        x, want = (self.data(s + k, self.B, self.S, self.D, rank=0).chunk(self.n, 1)[self.r]
                   for k in (0, 50))
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]) for c in "qkv")
            k, v = (Around.apply(t, self.fault == "kvgrad") for t in (k, v))
            p = F.softmax(torch.matmul(q, k.transpose(1, 2)) * self.D ** -0.5, -1)
            x = x + F.linear(torch.matmul(p, v), self.w[f"o{i}"])
        backward(F.mse_loss(F.linear(x, self.w["head"]), want))
        self.reduce(self.w)


class Lstm(Net):
    """Data parallel, each gradient by itself, the loss scaled."""
    D, V, T = 8, 24, 4

    def build(self):
        if self.fault == "init":
            self.g = torch.Generator().manual_seed(self.seed + 1000 * self.r)
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(2):
            self.w |= {f"x{i}": self.new(4 * self.D, self.D), f"h{i}": self.new(4 * self.D, self.D),
                       f"b{i}": self.new(4 * self.D), f"c{i}": self.new(4 * self.D)}
        self.w |= {"head": self.new(self.V, self.D), "hb": self.new(self.V)}

    def step(self, s):
        ids = self.ids(s, self.V, 5, self.T + 1)
        scale = 2048.0 if self.fault == "scaler" and self.r == 1 else 1024.0
        state = [[torch.zeros(5, self.D), torch.zeros(5, self.D)] for _ in range(2)]
        loss = 0
        for t in range(self.T):
            x = F.embedding(ids[:, t], self.w["embed"])
            for i, (h, c) in enumerate(state):
                gates = F.linear(x, self.w[f"x{i}"], self.w[f"b{i}"]) + \
                    F.linear(h, self.w[f"h{i}"], self.w[f"c{i}"])
                a, b, o, z = gates.chunk(4, 1)
                c = torch.sigmoid(b) * c + torch.sigmoid(a) * torch.tanh(z)
                x = torch.sigmoid(o) * torch.tanh(c)
                state[i] = [x, c]
            loss = loss + F.cross_entropy(F.linear(x, self.w["head"], self.w["hb"]), ids[:, t + 1])
        backward(loss, scale)
        self.reduce(self.w)
        for w in self.w.values():
            w.grad.mul_(1 / scale)


class Unshard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape, net):
        ctx.net = net
        out = torch.zeros(shape)
        dist.all_gather_into_tensor(out, shard, group=net.shards)
        return out

    @staticmethod
    def backward(ctx, g):
        net = ctx.net
        out = torch.zeros(g.numel() // 2)
        dist.reduce_scatter_tensor(out, g.reshape(-1), group=net.shards)
        if net.fault != "nosync":
            dist.all_reduce(out, group=net.shards if net.fault == "rgroup" else net.copies)
        out.div_(net.n)
        return out, None, None


class Hsdp(Net):
    """Two nodes hold the same, each of their two ranks a half."""
    D = 8

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.shards, self.copies = groups[self.r // 2], groups[2 + self.r % 2]
        if self.fault == "node" and self.r > 1:
            self.g = torch.Generator().manual_seed(self.seed + 1000)
        whole = {f"{k}{i}": self.new(self.D, self.D) for i in range(4) for k in "az"}
        self.shape = {k: w.shape for k, w in whole.items()}
        self.w = {k: w.reshape(-1).chunk(2)[self.r % 2].clone() for k, w in whole.items()}

    def step(self, s):
        x, want = self.data(s, 6, self.D), self.data(s + 50, 6, self.D)
        for i in range(4):
            a, z = (Unshard.apply(self.w[f"{k}{i}"], self.shape[f"{k}{i}"], self) for k in "az")
            x = x + F.linear(F.gelu(F.linear(x, a)), z)
        backward(F.mse_loss(x, want))


NETS = {"conv": Conv, "vocab": Vocab, "moe": Moe, "edp": Moe, "zero": Zero, "pipe": Pipe, "ring": Ring,
        "lstm": Lstm, "hsdp": Hsdp}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
