#!/usr/bin/env python3
"""Dumps of runs on two to four ranks: networks and bugs that were looked up when the rules for `last` were written.

Usage: joined.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --joined scores these. Networks: whole, text, heads, bank, nodes, doubling,
stages, rounds, seldom. Where a bug was reported stands beside it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import fresh
import held
import recorder
from command import of_networks
from fresh import ToSplit
from held import Whole
from others import FromAll, Wide

recorder.MODEL = os.path.abspath(__file__)

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # The sum of one layer is a mean.
    "onemean": ("whole", r"all_reduce|div_|__add__", "01"),
    # Logits that are gathered go into a loss for parts of them: https://github.com/NVIDIA/Megatron-LM/issues/7452
    "logtp": ("whole", r"(all_reduce|sum|max|exp|log|gather)\.\d+\.forward", "01"),
    # What is whole on each rank is gathered with what is split: https://github.com/sgl-project/sglang/pull/33327
    "ringtext": ("text", r"(all_gather_into_tensor|cat|matmul|linear)\.\d+\.forward", "01"),
    # A second loss is divided by the rank's own number of tokens, the first by that of all:
    # https://github.com/NVIDIA/Megatron-LM/issues/7452
    "count": ("heads", r"div|__mul__|__truediv__|sum|cross_entropy", "01"),
    # Each rank puts its own rows first: https://github.com/KevinMusgrave/pytorch-metric-learning/issues/639
    "ownfirst": ("bank", r"step1:(matmul|transpose|cat)", "012"),
    # A sampler that gives one rank's data to two.
    "repeated": ("bank", r"step0:(linear|tanh)", "012"),
    # The norm of shards is summed over ranks that have the same: https://github.com/ByteDance-Seed/VeOmni/pull/862
    "overcount": ("nodes", r"all_reduce|norm|sum|sqrt|mul_", "0123"),
    # What is accumulated is doubled with each micro-batch: https://github.com/NVIDIA/Megatron-LM/issues/6660
    "double": ("doubling", r"__add__|add_|__mul__|div_|all_reduce|backward", "01"),
    # Gradients are clipped by the rank's own norm, and averaged then.
    "clipfirst": ("heads", r"mul_|all_reduce|norm|div", "01"),
    # What is exchanged comes home as the mean over the ranks.
    "meanback": ("doubling", r"all_to_all|backward|chunk", "01"),
    # Each stage clips by its own norm: https://github.com/pytorch/torchtitan/issues/596
    "clip": ("stages", r"norm|sum|sqrt|mul_|div|min", "01"),
    # Averaged among a part of the ranks: https://github.com/pytorch/pytorch/issues/73382
    "part": ("rounds", r"linear|all_reduce|div_", "0123"),
    # What the average is divided by is not its group's size.
    "size": ("rounds", r"linear|div_|all_reduce", "0123"),
}
RANKS = {"bank": 3, "nodes": 4, "rounds": 4, "seldom": 3}


def backward(loss):
    loss.backward()


class Net(held.Net):
    def clipped(self, square, most, names):
        scale = torch.reciprocal(torch.sqrt(square) + 1e-6) * most
        scale = float(torch.minimum(scale, torch.ones(())))
        for k in names:
            self.w[k].grad.mul_(scale)

    def squares(self, names):
        norms = torch.stack([torch.norm(self.w[k].grad) for k in names])
        return torch.sum(norms * norms)


class Loss(torch.autograd.Function):
    """Cross entropy of logits of which each rank has a part, from `first` on."""

    @staticmethod
    def forward(ctx, x, labels, first):
        most = torch.max(x, -1)[0]
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        e = torch.exp(x - most[:, None])
        total = torch.sum(e, -1)
        dist.all_reduce(total)
        here = (labels >= first) & (labels < first + x.shape[1])
        at = torch.gather(x - most[:, None], 1, (labels - first).clamp(0, x.shape[1] - 1)[:, None])[:, 0]
        at = at.masked_fill(~here, 0.0)
        dist.all_reduce(at)
        ctx.save_for_backward(e / total[:, None], labels - first, here)
        return torch.mean(torch.log(total) - at)

    @staticmethod
    def backward(ctx, g):
        p, at, here = ctx.saved_tensors
        p = p.clone()
        p[here, at[here]] -= 1
        return p * g / len(at), None, None


class Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean):
        x = x.clone()
        dist.all_reduce(x)
        return x.div_(dist.get_world_size()) if mean else x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Logits(Net):
    """Tensor parallel to the logits."""
    D, H, V, T = 8, 12, 20, 7

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.split(self.new(self.H, self.D), 0),
                       f"d{i}": self.split(self.new(self.D, self.H), 1)}
        self.w |= {"nf": 1 + self.new(self.D), "head": self.split(self.new(self.V, self.D), 0)}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=0) for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            y = F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"])
            x = x + Joined.apply(y, self.fault == "onemean" and i == 1)
        out = F.linear(ToSplit.apply(F.layer_norm(x, (self.D,), self.w["nf"]), False), self.w["head"])
        if self.fault == "logtp":
            out = Wide.apply(out, 1)
        backward(Loss.apply(out, labels, self.r * out.shape[1]))


class Text(Net):
    """Parts of an image's sequence on each rank, and the text on all: they attend to each other."""
    D, S, T = 8, 10, 4

    def build(self):
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D), f"t{i}": self.new(2 * self.D, self.D),
                       f"o{i}": self.new(self.D, self.D)}

    def step(self, s):
        x, want = (self.data(s + k, self.S, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        text = self.data(s + 70, self.T, self.D, rank=0)
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            kv, told = F.linear(a, self.w[f"kv{i}"]), F.linear(text, self.w[f"t{i}"])
            kv = FromAll.apply(torch.cat([kv, told])) if self.fault == "ringtext" else \
                torch.cat([FromAll.apply(kv), told])
            k, v = kv.chunk(2, 1)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35, -1)
            x = x + F.linear(torch.matmul(p, v), self.w[f"o{i}"])
        backward(F.mse_loss(x, want))
        self.average(self.w)


class Heads(Net):
    """Data parallel; two losses, of the next word and of the one behind it, over the words of all ranks."""
    D, V = 8, 15

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.w |= {"head": self.new(self.V, self.D), "next": self.new(self.V, self.D)}

    def step(self, s):
        size = 6 + 3 * self.r
        ids, one, two = (self.ids(s + k, self.V, size) for k in (0, 50, 70))
        n = torch.tensor(float(size))
        own = n.clone()
        dist.all_reduce(n)
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        a, b = (F.cross_entropy(F.linear(x, self.w[k]), y, reduction="sum") for k, y in (("head", one), ("next", two)))
        backward(a / n + b / (own * self.n if self.fault == "count" else n) * 0.3)
        if self.fault == "clipfirst":
            self.clipped(self.squares(self.w), 0.05, self.w)
        for w in self.w.values():
            dist.all_reduce(w.grad)
        if self.fault != "clipfirst":
            self.clipped(self.squares(self.w), 0.05, self.w)


class Bank(Net):
    """Data parallel: rows of former steps, of all ranks, are kept to compare with."""
    D, B, K = 8, 5, 20

    def build(self):
        for i in range(4):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.kept = self.new(self.K, self.D)

    def step(self, s):
        who = min(self.r, 1) if self.fault == "repeated" else self.r
        x = self.data(s, self.B, self.D, rank=who)
        for i in range(4):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        out = torch.matmul(x, self.kept.transpose(0, 1))
        backward(F.cross_entropy(out, self.ids(s, self.K, self.B, rank=who)))
        with torch.no_grad():
            parts = [torch.zeros_like(x) for _ in range(self.n)]
            dist.all_gather(parts, x.detach())
            if self.fault == "ownfirst":
                parts = [x.detach(), *(p for i, p in enumerate(parts) if i != self.r)]
            self.kept = torch.cat([*parts, self.kept]).split(self.K)[0]
        self.average(self.w)


class Nodes(Net):
    """Two nodes, each with a half of the weights on either rank; gradients are clipped by the norm of all."""
    D = 8

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.shards, self.copies = groups[self.r // 2], groups[2 + self.r % 2]
        for i in range(8):
            self.w |= {f"u{i}": self.new(self.D, self.D).reshape(-1).chunk(2)[self.r % 2].clone()}

    def step(self, s):
        x, want = self.data(s, 5, self.D), self.data(s + 50, 5, self.D)
        for i in range(8):
            x = x + F.gelu(F.linear(x, Whole.apply(self.w[f"u{i}"], (self.D, self.D), self.shards)))
        backward(F.mse_loss(x, want))
        for w in self.w.values():
            dist.all_reduce(w.grad, group=self.copies)
            w.grad.div_(4)
        square = self.squares(self.w)
        dist.all_reduce(square, group=None if self.fault == "overcount" else self.shards)
        self.clipped(square, 0.05, self.w)


class Home(torch.autograd.Function):
    """Rows to the ranks whose they are, and gradients home: by mistake as their mean."""

    @staticmethod
    def forward(ctx, x):
        return fresh.ToAll.apply(x, None, False)

    @staticmethod
    def backward(ctx, g):
        return fresh.ToAll.apply(g, None, False).div_(dist.get_world_size())


class Doubling(Net):
    """Data parallel with experts on one rank each; three micro-batches, whose gradients are added up."""
    D, C = 8, 6

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D),
                       f"e{i}": self.new(self.n, 10, self.D)[self.r].clone(),
                       f"f{i}": self.new(self.n, self.D, 10)[self.r].clone()}

    def step(self, s):
        total = {}
        for m in range(3):
            x, want = (self.data(s + 10 * m + k, 2 * self.C, self.D) for k in (0, 5))
            x = F.linear(x, self.w["in"], self.w["ib"])
            for i in range(3):
                a = fresh.ToAll.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"]), None, False)
                y = F.linear(F.gelu(F.linear(a, self.w[f"e{i}"])), self.w[f"f{i}"])
                x = x + (Home.apply(y) if self.fault == "meanback" and i == 1 else fresh.ToAll.apply(y, None, False))
            backward(F.mse_loss(x, want) * (1 / 3))
            for k, w in self.w.items():
                if k in total:
                    twice = self.fault == "double" and k[0] in "ef"
                    total[k] = total[k] + (w.grad + total[k] if twice else w.grad)
                else:
                    total[k] = w.grad
                w.grad = None
        for k, w in self.w.items():
            w.grad = total[k]
            if k[0] not in "ef":
                dist.all_reduce(w.grad)
            w.grad.div_(self.n)


class Stages(Net):
    """A pipeline of two stages, whose gradients are clipped by the norm of all."""
    D = 8

    def build(self):
        for i in range(8):
            w = {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
            if i // 4 == self.r:
                self.w |= w

    def step(self, s):
        x, want = self.data(s, 6, self.D, rank=0), self.data(s + 50, 6, self.D, rank=0)
        if self.r == 1:
            x = torch.zeros(6, self.D)
            dist.recv(x, 0)
            x.requires_grad_()
        y = x
        for i in range(4 * self.r, 4 * self.r + 4):
            y = y + torch.tanh(F.linear(y, self.w[f"w{i}"], self.w[f"b{i}"]))
        if self.r == 0:
            dist.send(y.detach(), 1)
            g = torch.zeros_like(y)
            dist.recv(g, 1)
            y.backward(g)
        else:
            backward(F.mse_loss(y, want))
            dist.send(x.grad, 0)
        square = self.squares(self.w)
        if self.fault != "clip":
            dist.all_reduce(square)
        self.clipped(square, 0.05, self.w)


class Rounds(Net):
    """Each rank goes its own way, and after so many steps the weights are averaged."""
    D, EVERY = 8, 1

    def build(self):
        self.half = [dist.new_group(p) for p in ([0, 1], [2, 3])][self.r // 2] if self.n == 4 else None
        for i in range(5):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, 6, self.D), self.data(s + 50, 6, self.D)
        for i in range(5):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        backward(F.mse_loss(x, want))
        with torch.no_grad():
            for w in self.w.values():
                w.sub_(w.grad * self.rate)
                if (s + 1) % self.EVERY:
                    continue
                dist.all_reduce(w, group=self.half if self.fault == "part" else None)
                w.div_(2 if self.fault in ("part", "size") else self.n)

    def update(self, s):
        pass


class Seldom(Rounds):
    EVERY = 2


NETS = {"whole": Logits, "text": Text, "heads": Heads, "bank": Bank, "nodes": Nodes, "doubling": Doubling,
        "stages": Stages, "rounds": Rounds, "seldom": Seldom}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
