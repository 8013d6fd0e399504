#!/usr/bin/env python3
"""Dumps of runs on two to four ranks: networks and bugs that were written when joined.py had taught.

Usage: after.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --after scores these. Networks: axial, syncbn, codebook, clip, power,
weighted, sizes, shares; half of them to see whether what is unusual, and right, is accused.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import held
import recorder
from command import of_networks

recorder.MODEL = os.path.abspath(__file__)

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # Keys of one layer are gathered along the other axis of the grid.
    "axisk": ("axial", r"all_gather|cat|matmul|linear", "0123"),
    # The gradient of what is gathered stays with each rank, in one layer.
    "axisback": ("axial", r"backward|reduce_scatter|all_gather", "0123"),
    # The variance is of the rank's own batch.
    "bnvar": ("syncbn", r"mean|sum|rsqrt|__mul__|__add__", "01"),
    # The running mean is of the rank's own batch.
    "bnrun": ("syncbn", r"step1:(__sub__|__mul__|__add__)", "01"),
    # How often codes are chosen is counted on each rank.
    "codes": ("codebook", r"__mul__|matmul|sum|__add__|all_reduce", "01"),
    # Labels are those of each rank's rows, where all rows are in their order on all ranks.
    "openoff": ("clip", r"cross_entropy", "01"),
    # One factor of a gradient of low rank is not joined.
    "psgdq": ("power", r"linear|matmul|all_reduce|backward|__add__|__sub__", "01"),
    # Unlike batches are weighed alike, and by one rank less.
    "weigh": ("weighted", r"mul_|all_reduce|div_", "012"),
    # The shares of the experts are of the rank's own words, in one layer.
    "auxlocal": ("shares", r"mean|__mul__|sum|softmax", "01"),
    # A micro-batch is lost on one rank.
    "microdrop": ("sizes", r"__add__|all_reduce|backward", "01"),
}
RANKS = {"axial": 4, "weighted": 3}


def backward(loss):
    loss.backward()


class Net(held.Net):
    pass


class GatherOver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, lost):
        ctx.group, ctx.lost = group, lost
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        if not ctx.lost:
            dist.all_reduce(g, group=ctx.group)
        return g.chunk(dist.get_world_size(ctx.group))[dist.get_rank(ctx.group)].contiguous(), None, None


class Axial(Net):
    """A grid of parts: layers attend along rows of ranks, then columns, then rows again."""
    D, T = 8, 5

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.axes = [groups[self.r // 2], groups[2 + self.r % 2]]
        for i in range(5):
            self.w |= {f"n{i}": 1 + self.new(self.D)} | {f"{k}{i}": self.new(self.D, self.D) for k in "qkvo"}

    def step(self, s):
        x, want = (self.data(s + k, 4 * self.T, self.D, rank=0).chunk(4)[self.r] for k in (0, 50))
        for i in range(5):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            g = self.axes[(i // 2) % 2]
            gk = self.axes[1 - (i // 2) % 2] if self.fault == "axisk" and i == 1 else g
            k = GatherOver.apply(F.linear(a, self.w[f"k{i}"]), gk, self.fault == "axisback" and i == 2)
            v = GatherOver.apply(F.linear(a, self.w[f"v{i}"]), g, False)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35, -1)
            x = x + F.linear(torch.matmul(p, v), self.w[f"o{i}"])
        backward(F.mse_loss(x, want))
        self.average(self.w)


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x.div_(dist.get_world_size())

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g.div_(dist.get_world_size())


class Syncbn(Net):
    """Data parallel, a norm over the batch of all ranks by hand, with running averages."""
    D, B = 8, 6

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"g{i}": 1 + self.new(self.D), f"b{i}": self.new(self.D)}
        self.run = [[0.1 * self.new(self.D), 1 + 0.1 * self.new(self.D)] for _ in range(3)]

    def step(self, s):
        x, want = self.data(s, self.B, self.D), self.data(s + 50, self.B, self.D)
        aux = 0
        for i in range(3):
            y = F.linear(x, self.w[f"w{i}"])
            m = torch.mean(y, 0)
            m = Mean.apply(m)
            c = y - m
            v = torch.mean(c * c, 0)
            if not (self.fault == "bnvar" and i == 1):
                v = Mean.apply(v)
            with torch.no_grad():
                mm = torch.mean(y, 0) if self.fault == "bnrun" and i == 1 else m
                self.run[i] = [self.run[i][0] * 0.9 + mm * 0.1, self.run[i][1] * 0.9 + v * 0.1]
                aux = aux + torch.sum(c * self.run[i][0])
            x = x + torch.tanh(c * torch.rsqrt(v + 1e-3) * self.w[f"g{i}"] + self.w[f"b{i}"])
        backward(F.mse_loss(x, want))
        self.average(self.w)


class Codebook(Net):
    """Data parallel: codes are the averages of what chose them, over all ranks."""
    D, B, K = 8, 12, 6

    def build(self):
        for i in range(4):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.code, self.size = self.new(self.K, self.D), torch.ones(self.K) + 0.1 * self.new(self.K).abs()
        self.total = self.code * self.size[:, None]

    def step(self, s):
        x, want = self.data(s, self.B, self.D), self.data(s + 50, self.B, self.D)
        for i in range(2):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        with torch.no_grad():
            code = self.total * torch.reciprocal(self.size)[:, None]
            one = F.one_hot(torch.topk(torch.matmul(x, code.transpose(0, 1)), 1, -1)[1][:, 0], self.K).float()
            n, t = torch.sum(one, 0), torch.matmul(one.transpose(0, 1), x)
            if self.fault != "codes":
                dist.all_reduce(n)
            dist.all_reduce(t)
            self.size = self.size * 0.9 + n * 0.1
            self.total = self.total * 0.9 + t * 0.1
            q = torch.matmul(one, code)
        x = x + (q - x.detach())
        for i in range(2, 4):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        backward(F.mse_loss(x, want))
        self.average(self.w)


class Clip(Net):
    """Data parallel, features gathered without a gradient, own rows put in; the whole loss on each rank."""
    D, B = 8, 5

    def build(self):
        for i in range(3):
            for k in "it":
                self.w |= {f"{k}{i}": self.new(self.D, self.D), f"{k}b{i}": self.new(self.D)}

    def tower(self, k, x):
        for i in range(3):
            x = x + torch.tanh(F.linear(x, self.w[f"{k}{i}"], self.w[f"{k}b{i}"]))
        return x * 0.3

    def all(self, x):
        parts = [torch.zeros_like(x) for _ in range(self.n)]
        dist.all_gather(parts, x.detach())
        parts[self.r] = x
        return torch.cat(parts)

    def step(self, s):
        i, t = (self.all(self.tower(k, self.data(s + n, self.B, self.D))) for k, n in (("i", 0), ("t", 50)))
        at = torch.arange(self.B * self.n)
        if self.fault == "openoff":
            at = (at + self.B * self.r) % (self.B * self.n)
        logits = torch.matmul(i, t.transpose(0, 1))
        backward((F.cross_entropy(logits, at) + F.cross_entropy(logits.transpose(0, 1), at)) * 0.5)
        self.average(self.w)


class Power(Net):
    """Data parallel with gradients of low rank, and what they lack kept for the next step."""
    D = 8

    def build(self):
        for i in range(8):
            self.w |= {f"w{i}": self.new(self.D, self.D)}
        self.q = {k: self.new(self.D, 2) for k in self.w}
        self.err = {k: torch.zeros(self.D, self.D) for k in self.w}

    def step(self, s):
        x, want = self.data(s, 6, self.D), self.data(s + 50, 6, self.D)
        for i in range(8):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"]))
        backward(F.mse_loss(x, want))
        with torch.no_grad():
            for k, w in self.w.items():
                m = w.grad + self.err[k]
                p = torch.matmul(m, self.q[k])
                dist.all_reduce(p)
                p.div_(self.n)
                p = torch.linalg.qr(p)[0]
                q = torch.matmul(m.transpose(0, 1), p)
                if not (self.fault == "psgdq" and k == "w3"):
                    dist.all_reduce(q)
                    q.div_(self.n)
                self.q[k] = q
                w.grad = torch.matmul(p, q.transpose(0, 1))
                self.err[k] = m - w.grad


class Weighted(Net):
    """Data parallel, batches of other sizes: each rank's gradients are weighed by its share."""
    D = 8

    def build(self):
        for i in range(5):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        n = 4 + 2 * self.r
        x, want = self.data(s, n, self.D), self.data(s + 50, n, self.D)
        for i in range(5):
            x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        backward(F.mse_loss(x, want))
        total = sum(4 + 2 * i for i in range(self.n))
        for w in self.w.values():
            w.grad.mul_(n / total if self.fault != "weigh" else 1 / (self.n - 1))
            dist.all_reduce(w.grad)


class Sizes(Net):
    """Data parallel, micro-batches weighed by their sizes, added up, joined once."""
    D = 8

    def build(self):
        for i in range(5):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        total = None
        for m in range(3):
            n = 3 + m
            x, want = self.data(s + 7 * m, n, self.D), self.data(s + 50 + 7 * m, n, self.D)
            for i in range(5):
                x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
            backward(F.mse_loss(x, want) * (n / 12))
            own = {k: w.grad for k, w in self.w.items()}
            for w in self.w.values():
                w.grad = None
            if total is None:
                total = own
            elif not (self.fault == "microdrop" and m == 1 and self.r == 1):
                total = {k: total[k] + own[k] for k in own}
        for k, w in self.w.items():
            w.grad = total[k]
        self.average(self.w)


class Shares(Net):
    """Data parallel with a loss that balances experts by the shares of all ranks."""
    D, E, B = 8, 4, 12

    def build(self):
        for i in range(3):
            self.w |= {f"r{i}": self.new(self.E, self.D), f"a{i}": self.new(self.E, self.D, 6),
                       f"n{i}": 1 + self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, self.B, self.D), self.data(s + 50, self.B, self.D)
        aux = 0
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            p = F.softmax(F.linear(a, self.w[f"r{i}"]), -1)
            one = F.one_hot(torch.topk(p.detach(), 1, -1)[1][:, 0], self.E).float()
            f = torch.mean(one, 0)
            if not (self.fault == "auxlocal" and i == 1):
                dist.all_reduce(f)
                f.div_(self.n)
            aux = aux + torch.sum(torch.mean(p, 0) * f) * 0.1
            y = torch.einsum("bd,edh->ebh", a, self.w[f"a{i}"])
            y = torch.einsum("ebh,edh->ebd", F.gelu(y), self.w[f"a{i}"])
            x = x + torch.einsum("be,ebd->bd", one * p, y)
        backward(F.mse_loss(x, want) + aux)
        self.average(self.w)


NETS = {"axial": Axial, "syncbn": Syncbn, "codebook": Codebook, "clip": Clip, "power": Power, "weighted": Weighted,
        "sizes": Sizes, "shares": Shares}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
