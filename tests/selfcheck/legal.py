#!/usr/bin/env python3
"""Dumps of clean runs on two ranks: what begins alike on ranks, or is called otherwise on each, and is no bug.

Usage: legal.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --legal must accuse none. Networks: own, ones, biases, lora, heads,
never, losses, depth.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import blind
import recorder
from command import of_networks
from fresh import Summed, ToSplit

recorder.MODEL = os.path.abspath(__file__)


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


NETS = {"own": Own, "ones": Ones, "biases": Biases, "lora": Lora, "heads": Heads, "never": Never, "losses": Losses,
        "depth": Depth}


if __name__ == "__main__":
    of_networks({}, NETS, {})
