#!/usr/bin/env python3
"""Dumps of runs on two to four ranks: networks and bugs that measure what the rules do on what taught none of them.

Usage: last.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --last scores these. Networks: ring, square, teacher, states, thirds,
capacity.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import fresh
import held
import recorder
from command import of_networks
from fresh import Summed, ToSplit

recorder.MODEL = os.path.abspath(__file__)

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # What is passed on is the rank's own block again, not the one that came.
    "stalekv": ("ring", r"send|recv|cat|matmul", "012"),
    # The block that comes last is not used: the rank's own stands twice.
    "skipblock": ("ring", r"recv|cat|matmul", "2"),
    # The gradient of one rank's block does not come home.
    "dkvhome": ("ring", r"backward|send|recv", "012"),
    # Gradients are joined among those that share a sequence, not with the other copy.
    "spgroup": ("square", r"all_reduce|(linear|layer_norm)\.\d+\.(backward|forward)", "0123"),
    # Values are exchanged with the ranks that have other data.
    "wrongpeers": ("square", r"all_to_all|cat|matmul", "0123"),
    # The average of weights that teaches is not kept up on one rank.
    "ema": ("teacher", r"step1:linear\.\d+\.forward", "01"),
    # The center of the teacher's outputs is that of the rank's own.
    "center": ("teacher", r"__sub__|mean|softmax", "01"),
    # The sum of squares of channels that are split is not joined in one layer.
    "gatednorm": ("states", r"sum|rsqrt|__mul__", "01"),
    # What all channels share is made of a weight whose gradient stays with each rank.
    "sharedbc": ("states", r"linear\.\d+\.backward|linear\.\d+\.forward", "01"),
    # One rank takes its weights out of the buffer one element later.
    "shifted": ("thirds", r"split|reshape|linear|layer_norm", "012"),
    # Divided by what is one rank less.
    "fewer": ("thirds", r"div_", "012"),
    # One rank's parts go to the other's experts.
    "turned": ("capacity", r"all_to_all|einsum|linear", "01"),
}
RANKS = {"ring": 3, "square": 4, "thirds": 3}


def backward(loss):
    loss.backward()


class Net(held.Net):
    pass


class Around(torch.autograd.Function):
    """All ranks' rows, which go round; their gradients go home."""

    @staticmethod
    def passed(x, buffer):
        r, n = dist.get_rank(), dist.get_world_size()
        if r == 0:
            dist.send(x, 1)
            dist.recv(buffer, n - 1)
        else:
            dist.recv(buffer, r - 1)
            dist.send(x, (r + 1) % n)
        return buffer

    @staticmethod
    def forward(ctx, x, fault):
        r, n = dist.get_rank(), dist.get_world_size()
        ctx.fault = fault
        x = x.contiguous()
        blocks, now = {r: x}, x
        for hop in range(1, n):
            now = Around.passed(x if fault == "stalekv" and r == 1 else now, torch.zeros_like(x))
            blocks[(r - hop) % n] = now
        if fault == "skipblock" and r == 2:
            blocks[(r + 1) % n] = x
        return torch.cat([blocks[i] for i in range(n)])

    @staticmethod
    def backward(ctx, g):
        r, n = dist.get_rank(), dist.get_world_size()
        parts = [p.contiguous() for p in g.chunk(n)]
        total = parts[r]
        for hop in range(1, n):
            now = Around.sent(parts, hop)
            if not (ctx.fault == "dkvhome" and r == 0 and hop == 1):
                total = total + now
        return total, None

    @staticmethod
    def sent(parts, hop):
        """Each part to its owner, `hop` ranks away."""
        r, n = dist.get_rank(), dist.get_world_size()
        to, of, buffer = (r - hop) % n, (r + hop) % n, torch.zeros_like(parts[0])
        if r < to:
            dist.send(parts[to], to)
            dist.recv(buffer, of)
        else:
            dist.recv(buffer, of)
            dist.send(parts[to], to)
        return buffer


class Ring(Net):
    """Context parallel on three ranks: keys and values go round."""
    D, S, V = 8, 12, 18

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D), f"o{i}": self.new(self.D, self.D)}
        self.w |= {"head": self.new(self.V, self.D)}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.S, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            k, v = Around.apply(F.linear(a, self.w[f"kv{i}"]), self.fault if i == 1 else None).chunk(2, 1)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35, -1)
            x = x + F.linear(torch.matmul(p, v), self.w[f"o{i}"])
        backward(F.cross_entropy(F.linear(x, self.w["head"]), labels))
        self.average(self.w)


class Swap(torch.autograd.Function):
    """Parts of axis `cut` to the ranks of a group, those that come joined along `join`."""

    @staticmethod
    def of(x, cut, join, group):
        ins = [p.contiguous() for p in x.chunk(dist.get_world_size(group), cut)]
        outs = [torch.zeros_like(p) for p in ins]
        dist.all_to_all(outs, ins, group=group)
        return torch.cat(outs, join)

    @staticmethod
    def forward(ctx, x, cut, join, group):
        ctx.how = join, cut, group
        return Swap.of(x, cut, join, group)

    @staticmethod
    def backward(ctx, g):
        return Swap.of(g, *ctx.how), None, None, None


class Square(Net):
    """Two copies, each of two ranks that have parts of a sequence, and for attention parts of the heads."""
    D, B, S, HEADS, HD = 8, 2, 8, 2, 4

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.copy, self.at = divmod(self.r, 2)
        self.sp, self.dp = groups[self.copy], groups[2 + self.at]
        for i in range(2):
            self.w |= {f"{k}{i}": self.new(self.HEADS * self.HD, self.D) for k in "qkv"}
            self.w |= {f"n{i}": 1 + self.new(self.D), f"o{i}": self.new(self.D, self.HEADS * self.HD)}
        self.w |= {"head": self.new(self.D, self.D), "hb": self.new(self.D)}

    def step(self, s):
        x, want = (self.data(s + k, self.B, self.S, self.D, rank=self.copy).chunk(2, 1)[self.at] for k in (0, 50))
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]).reshape(self.B, self.S // 2, self.HEADS, self.HD)
                       for c in "qkv")
            other = self.dp if self.fault == "wrongpeers" and i == 1 else self.sp
            q, k, v = (Swap.apply(t, 2, 1, g).transpose(1, 2)
                       for t, g in ((q, self.sp), (k, self.sp), (v, other)))
            p = F.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.5, -1)
            y = Swap.apply(torch.matmul(p, v).transpose(1, 2), 1, 2, self.sp)
            x = x + F.linear(y.reshape(self.B, self.S // 2, -1), self.w[f"o{i}"])
        backward(F.mse_loss(F.linear(x, self.w["head"], self.w["hb"]), want))
        for w in self.w.values():
            dist.all_reduce(w.grad, group=self.sp if self.fault == "spgroup" else None)
            w.grad.div_(2 if self.fault == "spgroup" else self.n)


class Teacher(Net):
    """Data parallel: a network learns from the average of its own weights, whose outputs are centered."""
    D, B, K = 8, 6, 7

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.w |= {"out": self.new(self.K, self.D)}
        self.old = {k: w.clone() for k, w in self.w.items()}
        self.center = 0.1 * self.new(self.K)

    def through(self, w, x):
        for i in range(3):
            x = x + torch.tanh(F.linear(x, w[f"w{i}"], w[f"b{i}"]))
        return F.linear(x, w["out"])

    def step(self, s):
        x, y = self.data(s, self.B, self.D), self.data(s + 50, self.B, self.D) * 0.1
        with torch.no_grad():
            told = self.through(self.old, x + y)
            want = F.softmax((told - self.center) * 2.0, -1)
            mean = torch.mean(told, 0)
            if self.fault != "center":
                dist.all_reduce(mean)
                mean.div_(self.n)
            self.center = self.center * 0.9 + mean * 0.1
        p = torch.log(F.softmax(self.through(self.w, x), -1))
        backward(torch.mean(torch.sum(want * p, -1)) * -1)
        self.average(self.w)

    def update(self, s):
        super().update(s)
        for k, w in self.w.items():
            if not (self.fault == "ema" and self.r == 1):
                self.old[k] = 0.9 * self.old[k] + 0.1 * w.detach()


class States(Net):
    """Tensor parallel: channels are split, what they are driven by is shared, their norm is over all of them."""
    D, C, N, T = 8, 12, 3, 6

    def build(self):
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"x{i}": self.split(self.new(self.C, self.D), 0),
                       f"z{i}": self.split(self.new(self.C, self.D), 0), f"bc{i}": self.new(2 * self.N, self.D),
                       f"g{i}": self.split(1 + self.new(self.C), 0), f"o{i}": self.split(self.new(self.D, self.C), 1)}
        self.w |= {"head": self.new(5, self.D)}

    def step(self, s):
        x, labels = self.data(s, self.T, self.D, rank=0), self.ids(s, 5, self.T, rank=0)
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            whole = F.linear(a, self.w[f"bc{i}"])
            if not (self.fault == "sharedbc" and i == 1):
                whole = ToSplit.apply(whole, False)
            b, c = whole.chunk(2, 1)
            a = ToSplit.apply(a, False)
            u, z = F.linear(a, self.w[f"x{i}"]), F.linear(a, self.w[f"z{i}"])
            near = torch.matmul(c, b.transpose(0, 1)) * torch.tril(torch.ones(self.T, self.T))
            y = torch.matmul(near, u) * F.silu(z)
            square = torch.sum(y * y, -1, True)
            if not (self.fault == "gatednorm" and i == 1):
                square = ToSplit.apply(Summed.apply(square), False)
            else:
                square = square * 2
            y = y * torch.rsqrt(square * (1 / self.C) + 1e-3) * self.w[f"g{i}"]
            x = x + Summed.apply(F.linear(y, self.w[f"o{i}"]))
        backward(F.cross_entropy(F.linear(x, self.w["head"]), labels))


class Thirds(Net):
    """Weights and gradients in one buffer each, of which each of three ranks has a third."""
    D = 7

    def build(self):
        whole = {}
        for i in range(3):
            whole |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D), f"n{i}": 1 + self.new(self.D)}
        self.shape = {k: w.shape for k, w in whole.items()}
        flat = torch.cat([w.reshape(-1) for w in whole.values()])
        self.pad = -flat.numel() % self.n + self.n
        self.w = {"flat": torch.cat([flat, torch.zeros(self.pad)]).chunk(self.n)[self.r].clone()}

    def step(self, s):
        x, want = self.data(s, 5, self.D), self.data(s + 50, 5, self.D)
        whole = torch.zeros(self.w["flat"].numel() * self.n)
        with torch.no_grad():
            dist.all_gather_into_tensor(whole, self.w["flat"].detach())
        sizes = [v.numel() for v in self.shape.values()]
        at = int(self.fault == "shifted" and self.r == 2)
        parts = whole[at:at + sum(sizes)].split(sizes)
        w = {k: p.reshape(self.shape[k]).clone().requires_grad_() for k, p in zip(self.shape, parts)}
        for i in range(3):
            a = F.layer_norm(x, (self.D,), w[f"n{i}"])
            x = x + F.gelu(F.linear(a, w[f"w{i}"], w[f"b{i}"]))
        backward(F.mse_loss(x, want))
        flat = torch.cat([v.grad.reshape(-1) for v in w.values()] + [torch.zeros(self.pad)])
        mine = torch.zeros(flat.numel() // self.n)
        dist.reduce_scatter_tensor(mine, flat)
        mine.div_(self.n - 1 if self.fault == "fewer" else self.n)
        self.w["flat"].grad = mine


class Capacity(Net):
    """Experts, two on each rank, that take as many tokens of each rank; what follows is data parallel."""
    D, E, C = 8, 4, 3

    def build(self):
        mine = slice(self.r * 2, self.r * 2 + 2)
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D), f"r{i}": self.new(self.E, self.D),
                       f"e{i}": self.new(self.E, self.D, 10)[mine].clone(),
                       f"f{i}": self.new(self.E, 10, self.D)[mine].clone()}
        self.w |= {"out": self.new(self.D, self.D), "ob": self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, 9, self.D), self.data(s + 50, 9, self.D)
        x = F.linear(x, self.w["in"], self.w["ib"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            share = F.softmax(F.linear(a, self.w[f"r{i}"]), -1)
            which = torch.topk(share.detach().transpose(0, 1), self.C, -1)[1]
            send = F.one_hot(which, 9).float()
            y = torch.einsum("ect,td->ecd", send, a)
            turned = self.fault == "turned" and i == 1 and self.r == 1
            y = fresh.ToAll.apply(y, None, turned)
            y = y.reshape(2, 2, self.C, self.D).transpose(0, 1).reshape(2, 2 * self.C, self.D)
            y = torch.einsum("ech,ehd->ecd", F.gelu(torch.einsum("ecd,edh->ech", y, self.w[f"e{i}"])), self.w[f"f{i}"])
            y = y.reshape(2, 2, self.C, self.D).transpose(0, 1).reshape(4, self.C, self.D)
            y = fresh.ToAll.apply(y, None, False)
            x = x + torch.einsum("ect,ecd->td", send * share.transpose(0, 1)[:, None, :], y)
        backward(F.mse_loss(F.linear(x, self.w["out"], self.w["ob"]), want))
        mine = [k for k in self.w if k[0] in "ef"]
        self.average([k for k in self.w if k not in mine])
        for k in mine:
            self.w[k].grad.div_(self.n)


NETS = {"ring": Ring, "square": Square, "teacher": Teacher, "states": States, "thirds": Thirds, "capacity": Capacity}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
