#!/usr/bin/env python3
"""Dumps of two training steps on two ranks, of which one has more than the other: samples, tokens, heads.

Usage: uneven.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --uneven scores these. Networks: counts, lengths, heads, chunks, table,
scales, shapes, sketch, backlog, dealt, points, routed, chosen, ordered, shared. Clean are, beside what is not as
large: a table whose row for others' tokens is zeros (table), parts that are scaled each by its own maximum, which is
gathered, too (scales), columns that are gathered by rows and turned, or of one row (shapes), sums of products by what
each rank has of its own, which are no gradients (sketch), what one rank alone goes on with as it was, for it made
nothing (backlog), predictions that all ranks have, of which each has labels for some (dealt), points that each rank
has of its own in all steps (points), experts whose norms begin as ones (routed, chosen), parts of a sequence
(ordered), and heads that take from each other what positions, the same on all ranks, have turned (shared).
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import blind
import fresh
import recorder
from blind import gathered, unit
from command import of_networks
from fresh import OPS, Summed, ToSplit
from others import FromAll, Wide

recorder.MODEL = os.path.abspath(__file__)
OPS["Torch"] = (torch, OPS["Torch"][1] + " round")

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    "unjoined": ("counts", r"linear\.1\.(backward|forward)", "01"),
    "ownmean": ("counts", r"div|__mul__|cross_entropy|all_reduce|sum", "01"),
    "frozen": ("counts", r"step1:linear\.[01]\.forward", "1"),
    "begins": ("counts", r"linear\.0\.forward", "01"),
    "norm": ("lengths", r"layer_norm\.1\.(backward|forward)", "01"),
    "weights": ("lengths", r"mul_|all_reduce", "01"),
    "lostsum": ("heads", r"__add__\.1|linear\.(7|15)\.forward|layer_norm", "01"),
    "partnorm": ("chunks", r"layer_norm\.1\.(backward|forward)", "01"),
    "unzeroed": ("table", r"(embedding|all_reduce)\.0\.forward", "01"),
    "ownscale": ("scales", r"((max|__truediv__|round|all_gather_into_tensor)\.1|__mul__\.[23])\.forward", "01"),
    "rows": ("shapes", r"(all_gather\.\d|cat\.\d|reshape\.\d+)\.forward", "01"),
    "ownsketch": ("sketch", r"(matmul|all_reduce)\.\d+\.forward", "01"),
    "mixed": ("dealt", r"cross_entropy\.0\.forward", "01"),
    "lose": ("backlog", r"step1:(__mul__|__add__|__sub__)\.\d+\.forward", "01"),
    "places": ("ordered", r"embedding\.1\.forward", "01"),
}


def backward(loss):
    loss.backward()


class Counts(blind.Net):
    """Data parallel; the last rank has fewer samples, and losses are sums, divided by what all have."""
    D, B = 8, 6

    def build(self):
        self.w = {f"{k}{i}": self.new(*size) for i in range(3) for k, size in (("w", (self.D, self.D)), ("b", (self.D,)))}
        if self.fault == "begins" and self.r == 1:
            self.w["w0"] += 0.1 * self.new(self.D, self.D)

    def size(self, s):
        return self.B - 2 * self.r - (s == 1)

    def step(self, s):
        size = self.size(s)
        total = torch.tensor([float(size)])
        dist.all_reduce(total)
        x = self.data(s, size, self.D)
        for i in range(3):
            x = torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        loss = F.cross_entropy(x, self.ids(s + 50, self.D, size), reduction="sum")
        backward(loss / (size if self.fault == "ownmean" else total.item()))
        self.summed(k for k in self.w if not (self.fault == "unjoined" and k == "b1"))

    def update(self, s):
        if not (self.fault == "frozen" and self.r == 1 and s == 0):
            super().update(s)


class Lengths(blind.Net):
    """Data parallel with attention; sequences are not as long, and gradients of means are weighed by that."""
    D, T = 8, 7

    def build(self):
        self.w = {}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(3 * self.D, self.D),
                       f"o{i}": self.new(self.D, self.D)}

    def step(self, s):
        size = self.T - 3 * self.r
        total = torch.tensor([float(size)])
        dist.all_reduce(total)
        x = self.data(s, size, self.D)
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            q, k, v = F.linear(a, self.w[f"q{i}"]).chunk(3, -1)
            p = torch.matmul(q, k.transpose(0, 1)) * 0.35
            x = x + F.linear(torch.matmul(F.softmax(p, -1), v), self.w[f"o{i}"])
        backward(F.mse_loss(x, self.data(s + 50, size, self.D)))
        for w in self.w.values():
            w.grad.mul_(0.5 if self.fault == "weights" and w is self.w["o1"] else size / total.item())
        self.summed(k for k in self.w if not (self.fault == "norm" and k == "n1"))


class Heads(blind.Net):
    """Tensor parallel; of four heads the first rank has three."""
    D, T, A = 8, 6, 4

    def build(self):
        self.h = 3 - 2 * self.r
        mine = slice(0, 12) if self.r == 0 else slice(12, 16)
        self.w = {"in": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"{k}{i}": self.new(16, self.D)[mine].clone() for k in "qkv"}
            self.w |= {f"o{i}": self.new(self.D, 16)[:, mine].clone(), f"n{i}": 1 + self.new(self.D)}

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"])
        for i in range(2):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]).reshape(self.T, self.h, self.A).transpose(0, 1) for c in "qkv")
            p = F.softmax(torch.matmul(q, k.transpose(1, 2)) * 0.5, -1)
            y = F.linear(torch.matmul(p, v).transpose(0, 1).reshape(self.T, -1), self.w[f"o{i}"])
            x = x + (y if self.fault == "lostsum" and i == 1 else Summed.apply(y))
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))


class Chunks(blind.Net):
    """A sequence in parts that are not as long; keys and values are gathered, filled up."""
    D, T = 8, 9

    def build(self):
        self.w = {"in": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D)}

    def step(self, s):
        whole, want = (self.data(s + k, self.T, self.D, rank=0) for k in (0, 50))
        mine, short = (slice(0, 5), 0) if self.r == 0 else (slice(5, 9), 1)
        x = F.linear(whole[mine], self.w["in"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            kv = torch.cat([F.linear(a, self.w[f"kv{i}"]), torch.zeros(short, 2 * self.D)])
            k, v = FromAll.apply(kv)[:self.T].chunk(2, 1)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35, -1)
            x = x + torch.matmul(p, v)
        backward(F.mse_loss(x, want[mine], reduction="sum") * (1 / (self.T * self.D)))
        self.summed(k for k in self.w if not (self.fault == "partnorm" and k == "n1"))


class Table(blind.Net):
    """Tensor parallel, the vocabulary too; what other ranks have is looked up in a row of zeros."""
    D, T, V = 8, 6, 16

    def build(self):
        part = self.split(self.new(self.V, self.D), 0)
        last = self.new(1, self.D)
        self.w = {"embed": torch.cat([part, last if self.fault == "unzeroed" else 0 * last]),
                  "u": self.split(self.new(12, self.D), 0), "d": self.split(self.new(self.D, 12), 1)}

    def step(self, s):
        ids, size = self.ids(s, self.V, self.T, rank=0), self.V // self.n
        local = ids - self.r * size
        other = (local < 0) | (local >= size)
        x = Summed.apply(F.embedding(local.masked_fill(other, size), self.w["embed"]))
        a = ToSplit.apply(F.layer_norm(x, (self.D,)), False)
        x = x + Summed.apply(F.linear(F.gelu(F.linear(a, self.w["u"])), self.w["d"]))
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))

    def update(self, s):
        self.w["embed"].grad[-1] = 0
        super().update(s)


class Parts(torch.autograd.Function):
    """All ranks' rows as whole numbers: of one size (0), each with its own, which is gathered (1), or taken for all (2)."""

    @staticmethod
    def forward(ctx, x, how):
        top = torch.max(x.abs()).reshape(1)
        if how == 0:
            dist.all_reduce(top, op=dist.ReduceOp.MAX)
        size = top * (1 / 127)
        out = torch.zeros(len(x) * dist.get_world_size(), x.shape[1])
        dist.all_gather_into_tensor(out, torch.round(x / size))
        if how == 1:
            return torch.cat([p * z for p, z in zip(out.chunk(dist.get_world_size()), gathered(size))])
        return out * size

    @staticmethod
    def backward(ctx, g):
        return FromAll.backward(ctx, g), None


class Scales(blind.Float8):
    """Of the first layer's parts one maximum is taken, of the second's each rank's own."""

    def step(self, s):
        x, want = (self.data(s + k, self.T, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        x = F.linear(x, self.w["in"])
        for i in range(2):
            a = Parts.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), 2 * i if self.fault == "ownscale" else i)
            x = x + blind.ToAll.apply(F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"]))
        backward(F.mse_loss(F.linear(x, self.w["out"]), want) * (1 / self.n))
        self.summed(k for k in self.w if k[0] not in "ud")


class Side(torch.autograd.Function):
    """All ranks' columns, side by side: by a list of rows, turned; or as if they were rows."""

    @staticmethod
    def forward(ctx, x, rows):
        t, parts = len(x), gathered(x)
        return torch.cat(parts).reshape(t, -1) if rows else \
            torch.cat(parts).reshape(len(parts), t, -1).transpose(0, 1).reshape(t, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(dist.get_world_size(), 1)[dist.get_rank()].contiguous(), None


class Shapes(blind.Net):
    """Tensor parallel; columns are gathered for all tokens, for one, and along their axis."""
    D, T = 8, 6

    def build(self):
        self.w = {k: self.split(self.new(12, self.D), 0) for k in "abc"} | {"d": self.new(self.D, 12)}

    def step(self, s):
        x = self.data(s, self.T, self.D, rank=0)
        a = Side.apply(F.linear(x, self.w["a"]), self.fault == "rows")
        b = Side.apply(F.linear(x[:1], self.w["b"]), True)
        c = Wide.apply(F.linear(x, self.w["c"]), 1)
        x = F.linear(torch.tanh(a + b + c), self.w["d"])
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))


class Sketch(blind.Net):
    """Data parallel; products of data with what a rank draws are summed up, and gradients by what all draw alike."""
    D, B = 8, 6

    def build(self):
        self.w = {f"w{i}": self.new(self.D, self.D) for i in range(3)}

    def step(self, s):
        x = first = self.data(s, self.B, self.D)
        for i in range(3):
            x = torch.tanh(F.linear(x, self.w[f"w{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.B, self.D)))
        classes = torch.matmul(first.transpose(0, 1), self.data(s + 70, self.B, 3))
        dist.all_reduce(classes)
        for at, w in enumerate(self.w.values()):
            q = self.data(900 + 100 * s + at, self.D, 2, rank=None if self.fault == "ownsketch" else 0)
            q = torch.matmul(q, self.data(7, 2, 2, rank=0))
            p = torch.matmul(w.grad, q)
            dist.all_reduce(p)
            w.grad = torch.matmul(p, q.transpose(0, 1)) * (1 / self.n)


class Backlog(blind.Net):
    """Data parallel; a sum of what all ranks saw goes on from step to step, and one that each rank has of its own, which
    makes nothing of it on the last rank."""
    D, B = 8, 6

    def build(self):
        self.w = {f"w{i}": self.new(self.D, self.D) for i in range(2)}
        self.all, self.own = self.new(self.D), self.new(self.D)

    def step(self, s):
        x = self.data(s, self.B, self.D)
        own = self.own * 0.9
        if self.r < self.n - 1:
            self.own = own + torch.mean(x, 0) * 0.1
        mean = torch.mean(x, 0)
        dist.all_reduce(mean)
        kept = self.all * 0.9 + mean * 0.05
        x = x - self.all - own
        for i in range(2):
            x = torch.tanh(F.linear(x, self.w[f"w{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.B, self.D)))
        self.average(self.w)
        if not (self.fault == "lose" and self.r == 1):
            self.all = kept


class Dealt(blind.Net):
    """A sequence in parts; what is made of them is gathered, and each rank has labels of its own, where others have 0."""
    D, T, V = 8, 8, 9

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "n": 1 + self.new(self.D), "head": self.new(self.V, self.D)}

    def step(self, s):
        size = self.T // self.n
        mine = slice(self.r * size, self.r * size + size)
        x = F.layer_norm(F.linear(self.data(s, self.T, self.D, rank=0)[mine], self.w["in"]), (self.D,), self.w["n"])
        labels, own = self.ids(s + 50, self.V - 1, self.T, rank=0) + 1, torch.zeros(self.T, dtype=torch.int64)
        own[mine] = labels[mine]
        if self.fault == "mixed":
            own = labels.roll(self.r)
        out = FromAll.apply(F.linear(torch.tanh(x), self.w["head"]))
        backward(F.cross_entropy(out, own, ignore_index=0, reduction="sum") * (1 / self.T))
        self.summed(self.w)


class Points(blind.Net):
    """Data parallel; each rank has points of its own in all steps, not as many as the others, and new data."""
    D, B = 8, 7

    def build(self):
        self.w = {"at": self.new(self.D), "in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        self.at = self.data(3, self.B - 2 * self.r, 1)

    def step(self, s):
        x = self.data(s, self.B - 2 * self.r, self.D)
        x = torch.tanh(F.linear(x, self.w["in"]) + self.at * self.w["at"])
        loss = F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, *x.shape), reduction="sum")
        backward(loss * (1 / (self.D * (2 * self.B - 2))))
        self.summed(self.w)


class Routed(blind.Net):
    """Experts, one on each rank, with norms that begin as ones, are given the tokens that chose them: not as many each."""
    D, T, FROM = 8, 10, 7

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "n": torch.ones(self.D)} | \
            {f"l{i}": self.new(self.D, self.D) for i in range(4)}
        each = [{k: self.new(self.D, self.D) for k in "ud"} for _ in range(self.n)][self.r]
        self.w |= each | {"en": torch.ones(self.D), "eb": torch.zeros(self.D)}

    def step(self, s):
        x = F.layer_norm(F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"]), (self.D,), self.w["n"])
        mine = torch.arange(self.T)[:7] if self.r == 0 else torch.arange(self.T)[self.FROM:]
        a = F.layer_norm(ToSplit.apply(x, False)[mine], (self.D,), self.w["en"], self.w["eb"])
        y = F.linear(F.gelu(F.linear(a, self.w["u"])), self.w["d"])
        x = x + Summed.apply(torch.zeros(self.T, self.D).index_add(0, mine, y))
        for i in range(4):
            x = x + torch.tanh(F.linear(x, self.w[f"l{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))


class Chosen(Routed):
    """The same, of as many tokens each."""
    FROM = 3


class Ordered(blind.Zigzag):
    """Parts of a sequence in their order; positions are looked up."""

    def places(self, r):
        return [*range(r * self.S // self.n, (r + 1) * self.S // self.n)]

    def numbers(self, places):
        return torch.tensor(places) - (places[0] if self.fault == "places" else 0)


class Shared(blind.Net):
    """Tensor parallel; heads turn keys by positions, the same on all ranks, and take them from each other."""
    D, T, A = 8, 6, 4

    def build(self):
        self.w = {"in": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"{k}{i}": self.split(self.new(self.A * self.n, self.D), 0) for k in "qkv"}
            self.w |= {f"o{i}": self.split(self.new(self.D, self.A * self.n), 1), f"n{i}": 1 + self.new(self.D)}

    def other(self, x):
        """What the other rank's head has."""
        every = FromAll.apply(x.transpose(0, 1)).transpose(0, 1)
        return every.chunk(self.n, 1)[(self.r + 1) % self.n]

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"])
        at = torch.arange(self.T)[:, None] * torch.tensor([1.0, 0.3, 0.1, 0.03])
        future = torch.ones(self.T, self.T).triu(1).bool()
        for i in range(2):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]) for c in "qkv")
            k, v = self.other(k * torch.cos(at)), self.other(v)
            p = F.softmax((torch.matmul(q * torch.cos(at), k.transpose(0, 1)) * 0.5).masked_fill(future, -1e4), -1)
            x = x + Summed.apply(F.linear(torch.matmul(p, v), self.w[f"o{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))


NETS = {"counts": Counts, "lengths": Lengths, "heads": Heads, "chunks": Chunks, "table": Table, "scales": Scales,
        "shapes": Shapes, "sketch": Sketch, "backlog": Backlog, "dealt": Dealt, "points": Points, "routed": Routed, "chosen": Chosen,
        "ordered": Ordered, "shared": Shared}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, {})
