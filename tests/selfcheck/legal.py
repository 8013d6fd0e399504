#!/usr/bin/env python3
"""Dumps of clean runs on two and four ranks: what begins alike on ranks, or is called otherwise on each, and is no bug.

Usage: legal.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --legal must accuse none. Networks: own, ones, biases, lora, heads,
never, losses, depth, norms, exits, choice, experts, loops, short, masks, line, seeded, turns, pupils, rowcol, sharp,
copies, chief, ends.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import blind
import recorder
from command import of_networks
from fresh import OPS, Summed, ToSplit

recorder.MODEL = os.path.abspath(__file__)
OPS["Distributed"] = (dist, OPS["Distributed"][1] + " reduce")


def backward(loss):
    loss.backward()


class Own(blind.Pipe):
    """Two stages, each of which draws its own weights."""

    def build(self):
        self.g = torch.Generator().manual_seed(self.seed + 100 * self.r)
        super().build()


class Ones(Own):
    """Norms of both stages begin as ones, as those of any framework do."""

    def build(self):
        super().build()
        self.w |= {k: torch.ones(self.D) for k in self.w if k[0] == "n"}


class Split(blind.Net):
    """Tensor parallel; all ranks have the same data."""
    D, T, FF = 8, 6, 12

    def step(self, s):
        x = self.data(s, self.T, self.D, rank=0)
        for i in range(2):
            x = self.layer(i, x)
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D, rank=0)))

    def mlp(self):
        self.w["out"] = self.new(self.D, self.D)
        for i in range(2):
            self.w |= {f"u{i}": self.split(self.new(self.FF, self.D), 0),
                       f"d{i}": self.split(self.new(self.D, self.FF), 1)}


class Biases(Split):
    """Parts of biases begin as zeros."""

    def build(self):
        self.mlp()
        for i in range(2):
            self.w |= {f"n{i}": torch.ones(self.D), f"m{i}": torch.zeros(self.D),
                       f"ub{i}": torch.zeros(self.FF // self.n), f"db{i}": torch.zeros(self.D)}

    def layer(self, i, x):
        a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"]), False)
        y = F.linear(F.gelu(F.linear(a, self.w[f"u{i}"], self.w[f"ub{i}"])), self.w[f"d{i}"])
        return x + (Summed.apply(y) + self.w[f"db{i}"])


class Lora(Split):
    """Parts of adapters' second factors begin as zeros; what they adapt stays."""

    def build(self):
        self.mlp()
        self.frozen = {k: self.w.pop(k) for k in list(self.w) if k[0] in "ud"}
        for i in range(2):
            self.w |= {f"a{i}": self.new(2, self.D), f"b{i}": torch.zeros(self.FF // self.n, 2)}

    def layer(self, i, x):
        a = F.layer_norm(x, (self.D,))
        low = ToSplit.apply(F.linear(a, self.w[f"a{i}"]), False)
        y = F.linear(ToSplit.apply(a, False), self.frozen[f"u{i}"]) + F.linear(low, self.w[f"b{i}"])
        return x + Summed.apply(F.linear(F.gelu(y), self.frozen[f"d{i}"]))


class Heads(Split):
    """Each head has a scale, which begins as one."""

    def build(self):
        self.w["out"] = self.new(self.D, self.D)
        for i in range(2):
            self.w |= {f"{k}{i}": self.split(self.new(2 * self.D, self.D), 0) for k in "qkv"}
            self.w |= {f"o{i}": self.split(self.new(self.D, 2 * self.D), 1), f"t{i}": torch.ones(2, 1, 1)}

    def layer(self, i, x):
        a = ToSplit.apply(F.layer_norm(x, (self.D,)), False)
        q, k, v = (F.linear(a, self.w[f"{c}{i}"]).reshape(self.T, 2, -1).transpose(0, 1) for c in "qkv")
        p = F.softmax(torch.matmul(q, k.transpose(1, 2)) * self.w[f"t{i}"], -1)
        return x + Summed.apply(F.linear(torch.matmul(p, v).transpose(0, 1).reshape(self.T, -1), self.w[f"o{i}"]))


class Depth(blind.Net):
    """Data parallel; each rank leaves out another layer in each step, whose gradient is then zero."""
    D, B = 8, 5

    def build(self):
        self.w = {k: self.new(self.D, self.D) for k in ("in", "l0", "l1", "l2", "out")}

    def loss(self, s):
        x = F.linear(self.data(s, self.B, self.D), self.w["in"])
        for i in range(3):
            if i != (s + self.r) % 3:
                x = x + torch.tanh(F.linear(x, self.w[f"l{i}"]))
        return F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.B, self.D))

    def step(self, s):
        backward(self.loss(s))
        for w in self.w.values():
            if w.grad is None:
                w.grad = torch.zeros_like(w.data)
            dist.all_reduce(w.grad)
            w.grad.div_(self.n)


class Never(Depth):
    """Data parallel; one rank never has data for a branch."""

    def build(self):
        self.w = {k: self.new(self.D, self.D) for k in ("in", "b0", "b1", "out")}

    def branch(self, s):
        y = self.data(s + 25, self.B, self.D)
        return F.linear(F.gelu(F.linear(y, self.w["b0"])), self.w["b1"])

    def loss(self, s):
        x = torch.tanh(F.linear(self.data(s, self.B, self.D), self.w["in"]))
        if self.r == 0:
            x = x + self.branch(s)
        return F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.B, self.D))


class Losses(Never):
    """Data parallel; in the first step one rank has no data for a second loss, which is computed last."""

    def loss(self, s):
        x = torch.tanh(F.linear(self.data(s, self.B, self.D), self.w["in"]))
        first = F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.B, self.D))
        if s == 0 and self.r == 1:
            return first
        return first + F.mse_loss(self.branch(s), self.data(s + 75, self.B, self.D))


class Norms(Depth):
    """The same, with norms that begin as ones and biases that begin as zeros."""

    def build(self):
        super().build()
        for k in list(self.w):
            self.w |= {f"n{k}": torch.ones(self.D), f"b{k}": torch.zeros(self.D)}

    def block(self, k, x):
        return F.linear(F.layer_norm(x, (self.D,), self.w[f"n{k}"]), self.w[k], self.w[f"b{k}"])

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        for i in range(3):
            if i != (s + self.r) % 3:
                x = x + torch.tanh(self.block(f"l{i}", x))
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))


class Exits(Norms):
    """Each rank leaves at another layer in each step; the last one is never left out."""

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        for i in range(1 + (s + self.r) % 3):
            x = x + torch.tanh(self.block(f"l{i}", x))
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))


class Choice(Norms):
    """In each step each rank takes one of four branches, which nobody had taken before."""

    def build(self):
        self.w = {f"l{i}": self.new(self.D, self.D) for i in range(4)}
        self.w |= {f"n{k}": 1 + self.new(self.D, by=0.1) for k in list(self.w)}
        self.w |= {f"b{k}": self.new(self.D) for k in list(self.w) if k[0] == "l"}

    def loss(self, s):
        mine = 0 if s == 0 else 1 + self.r
        return F.mse_loss(self.block(f"l{mine}", self.data(s, self.B, self.D)), self.data(s + 50, self.B, self.D))


class Experts(Norms):
    """Data parallel; an expert that no token of a rank goes to is not called there."""
    E = 3

    def build(self):
        self.w = {k: self.new(self.D, self.D) for k in ("in", "out", "e0", "e1", "e2")}
        for k in list(self.w):
            self.w |= {f"n{k}": torch.ones(self.D), f"b{k}": torch.zeros(self.D)}
        self.w["route"] = self.new(self.E, self.D)

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        share = F.softmax(F.linear(x, self.w["route"]), -1)
        for i in range(self.E):
            if i != (s + self.r) % 3:
                x = x + self.block(f"e{i}", x) * share[:, i:i + 1]
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))


class Loops(Norms):
    """One block, as often as each rank wants in each step; one rank computes it again for its gradients."""

    def again(self, x):
        return x + torch.tanh(self.block("l0", x))

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        for i in range(1 + (s + self.r) % 2):
            x = checkpoint(self.again, x) if self.r == 1 else self.again(x)
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))


class Short(Norms):
    """Gradients accumulate; in the first step one rank has a batch less, in each its last one is shorter."""

    def step(self, s):
        for m in range(3 - (s == 0 and self.r == 1)):
            size = self.B - 2 * (m == 1 and self.r == 1)
            x = torch.tanh(self.block("in", self.data(s + 10 * m, size, self.D)))
            x = F.dropout(x, 0.1, True) + self.block("l0", x)
            loss = F.mse_loss(self.block("out", x), self.data(s + 10 * m + 50, size, self.D), reduction="sum")
            backward(loss * (1 / (self.D * (5 * self.B - 4 + (s > 0) * self.B))))
        for w in self.w.values():
            if w.grad is None:
                w.grad = torch.zeros_like(w.data)
            dist.all_reduce(w.grad)


class Masks(Norms):
    """Data parallel; samples are as long in each step as before, on each rank otherwise."""

    def loss(self, s):
        there = torch.tensor([[float(i < 4 - 2 * self.r)] for i in range(self.B)])
        x = self.block("in", self.data(s, self.B, self.D)) * there
        x = x + torch.tanh(self.block("l0", x)) * there
        return F.mse_loss(self.block("out", x) * there, self.data(s + 50, self.B, self.D) * there)


class Line(blind.Net):
    """Four stages, which begin alike but for their layers' own numbers; those in the middle do the same op calls."""
    D, B, CHUNKS = 8, 5, 1

    def build(self):
        for i in range(2 * self.CHUNKS):
            own = self.data(900 + i, 2 * self.D, self.D)
            self.w |= {f"n{i}": torch.ones(self.D), f"b{i}": torch.zeros(self.D), f"l{i}": own[:self.D] * 0.3}

    def layers(self, c, x):
        for i in (2 * c, 2 * c + 1):
            x = x + F.gelu(F.linear(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.w[f"l{i}"], self.w[f"b{i}"]))
        return x

    def got(self, rank):
        x = torch.zeros(self.B, self.D)
        dist.recv(x, rank)
        return x

    def step(self, s):
        last = self.n * self.CHUNKS - 1
        kept = []
        for c in range(self.CHUNKS):
            at = c * self.n + self.r
            x = self.data(s, self.B, self.D, rank=0) if at == 0 else self.got((self.r - 1) % self.n)
            x.requires_grad_(at > 0)
            y = self.layers(c, x)
            kept.append((at, x, y))
            if at < last:
                dist.send(y.detach(), (self.r + 1) % self.n)
        for at, x, y in kept[::-1]:
            if at == last:
                backward(F.mse_loss(y, self.data(s + 50, self.B, self.D, rank=0)))
            else:
                y.backward(self.got((self.r + 1) % self.n))
            if at > 0:
                dist.send(x.grad, (self.r - 1) % self.n)


class Seeded(Line):
    """The same, of stages that begin with the same weights."""

    def build(self):
        for i in range(2 * self.CHUNKS):
            self.w |= {f"n{i}": torch.ones(self.D), f"b{i}": torch.zeros(self.D), f"l{i}": self.new(self.D, self.D)}


class Turns(Seeded):
    """The same, of two ranks, each of which has two stages that do not lie beside each other."""
    CHUNKS = 2


class Pupils(Norms):
    """Two networks of their own learn of the same data and of each other's outputs; norms begin as ones."""

    def build(self):
        super().build()
        self.w |= {k: self.data(900 + i, self.D, self.D) * 0.3 for i, k in enumerate(("in", "l0", "l1", "l2", "out"))}

    def step(self, s):
        x = self.block("in", self.data(s, self.B, self.D, rank=0))
        for i in range(3):
            x = x + torch.tanh(self.block(f"l{i}", x))
        y = self.block("out", x)
        other = blind.gathered(y.detach())[1 - self.r]
        backward(F.mse_loss(y, self.data(s + 50, self.B, self.D, rank=0)) + F.mse_loss(y, other))


class Rowcol(Split):
    """One line multiplies by rows and by columns of weights in turn; a part is as wide as what is whole."""

    def build(self):
        for i in range(2):
            self.w |= {f"r{i}": self.split(self.new(self.D, 2 * self.D), 1),
                       f"c{i}": self.split(self.new(2 * self.D, self.D), 0), f"n{i}": torch.ones(self.D)}
        self.w["out"] = self.split(self.new(self.D, 2 * self.D), 1)

    def step(self, s):
        x = self.data(s, self.T, 2 * self.D, rank=0).chunk(self.n, 1)[self.r]
        for k in ("r0", "c0", "r1", "c1", "out"):
            x = F.linear(ToSplit.apply(x, False) if k[0] == "c" else x, self.w[k])
            x = F.gelu(x if k[0] == "c" else Summed.apply(x))
            if k[0] == "r":
                x = F.layer_norm(x, (self.D,), self.w[f"n{k[1]}"])
        backward(F.mse_loss(x, self.data(s + 50, self.T, self.D, rank=0)))


class Sharp(Norms):
    """Each rank moves its weights to where its own loss is larger, and takes the gradient there."""

    def step(self, s):
        backward(self.loss(s))
        moves = {k: w.grad * 0.5 for k, w in self.w.items()}
        self.moved(moves, 1)
        backward(self.loss(s))
        self.moved(moves, -1)
        for w in self.w.values():
            dist.all_reduce(w.grad)
            w.grad.div_(self.n)

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        for i in range(3):
            x = x + torch.tanh(self.block(f"l{i}", x))
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))

    def moved(self, by, sign):
        for k, w in self.w.items():
            w.data = torch.add(w.data, by[k], alpha=sign)
            w.grad = None if sign > 0 else w.grad


class Chief(Norms):
    """The last of three ranks gets the sum of all gradients, clips it, does the step, and sends the weights."""

    def step(self, s):
        backward(self.loss(s))
        chief, names = self.n - 1, list(self.w)
        flat = torch.cat([self.w[k].grad.reshape(-1) for k in names])
        dist.reduce(flat, chief)
        flat = flat * (1 / self.n)
        if self.r == chief:
            flat = flat * torch.reciprocal(torch.norm(flat) + 1)
        new = torch.cat([self.w[k].detach().reshape(-1) for k in names]) - flat * self.rate
        dist.broadcast(new, chief)
        self.sent = new.split([self.w[k].numel() for k in names])

    def loss(self, s):
        x = self.block("in", self.data(s, self.B, self.D))
        for i in range(3):
            x = x + torch.tanh(self.block(f"l{i}", x))
        return F.mse_loss(self.block("out", x), self.data(s + 50, self.B, self.D))

    def update(self, s):
        for w, new in zip(self.w.values(), self.sent):
            w.copy_(new.reshape(w.shape))


class Ends(Chief):
    """All ranks do the step; the first two exchange something before, so that the last one has a call less."""

    def step(self, s):
        found = torch.ones(3) * self.r
        if self.r < 2:
            dist.all_reduce(found, group=self.some)
        backward(self.loss(s))
        for w in self.w.values():
            dist.all_reduce(w.grad)
            w.grad.div_(self.n)
        self.sent = [w.detach() - self.rate * w.grad for w in self.w.values()]

    def build(self):
        super().build()
        self.some = dist.new_group([0, 1])


class Copies(blind.Net):
    """Two copies of two stages, which begin with the same weights; the last one's head is the first one's table."""
    D, B, V = 8, 5, 12

    def build(self):
        self.stage, self.copy = self.r // 2, self.r % 2
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.dp, self.ends = groups[self.stage], groups[2 + self.copy]
        self.w = {"table": self.new(self.V, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": torch.ones(self.D), f"l{i}": self.new(self.D, self.D), f"b{i}": torch.zeros(self.D)}

    def layers(self, x):
        for i in range(2):
            x = x + F.gelu(F.linear(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.w[f"l{i}"], self.w[f"b{i}"]))
        return x

    def step(self, s):
        other = (self.r + 2) % 4
        got = torch.zeros(self.B, self.D)
        if self.stage == 0:
            y = self.layers(F.embedding(self.ids(s, self.V, self.B, rank=self.copy), self.w["table"]))
            dist.send(y.detach(), other)
            dist.recv(got, other)
            y.backward(got)
        else:
            dist.recv(got, other)
            got.requires_grad_()
            out = F.linear(self.layers(got), self.w["table"])
            backward(F.cross_entropy(out, self.ids(s + 50, self.V, self.B, rank=self.copy)))
            dist.send(got.grad, other)
        dist.all_reduce(self.w["table"].grad, group=self.ends)
        self.summed(self.w, self.dp)
        for w in self.w.values():
            w.grad.div_(2)


NETS = {"own": Own, "ones": Ones, "biases": Biases, "lora": Lora, "heads": Heads, "never": Never, "losses": Losses,
        "depth": Depth, "norms": Norms, "exits": Exits, "choice": Choice, "experts": Experts, "loops": Loops,
        "short": Short, "masks": Masks, "line": Line, "seeded": Seeded, "turns": Turns, "pupils": Pupils,
        "rowcol": Rowcol, "sharp": Sharp, "copies": Copies, "chief": Chief, "ends": Ends}
RANKS = {"line": 4, "seeded": 4, "copies": 4, "chief": 3, "ends": 3}


if __name__ == "__main__":
    of_networks({}, NETS, RANKS)
