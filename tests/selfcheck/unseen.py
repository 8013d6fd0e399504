#!/usr/bin/env python3
"""Dumps of runs on two and four ranks: networks and bugs that no rule was derived from.

Usage: unseen.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --unseen scores these. Networks: chain, context, cell, replicated,
four, stages, shards, tables.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import fresh
import others
import recorder
from command import of_networks
from fresh import Summed, ToSplit
from others import FromAll, Into, ToAll, Turn, Wide

recorder.MODEL = os.path.abspath(__file__)

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # Of sequence parallelism, biases behind the sum: https://github.com/EleutherAI/gpt-neox/pull/1259
    "outbias": ("chain", r"(__add__|layer_norm)\.\d+\.(backward|forward)", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/1446
    "lastnorm": ("chain", r"layer_norm\.\d+\.(backward|forward)", "01"),
    # https://github.com/NVIDIA-NeMo/Automodel/pull/1260
    "slice": ("chain", r"backward|chunk", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscale": ("context", r"cross_entropy|__mul__|div_|all_reduce", "01"),
    # One rank begins to count its steps again.
    "adam": ("cell", r"step1:(embedding|linear|all_reduce)", "01"),
    # One rank's weights do not decay.
    "decay": ("cell", r"step1:(embedding|linear|all_reduce)", "01"),
    # What is read before it has come: https://github.com/deepspeedai/DeepSpeed/pull/8184
    "async": ("cell", r"all_reduce\.\d+\.forward", "1"),
    # Each rank's router is its own: https://github.com/pytorch/torchtitan/issues/2387
    "routers": ("replicated", r"step0:(linear|softmax|all_reduce|__mul__)", "01"),
    # The gradient of the scores is of a rank's experts: https://github.com/huggingface/transformers/issues/48687
    "scores": ("replicated", r"backward", "01"),
    # https://github.com/NVIDIA/Megatron-LM/pull/5916
    "experts": ("four", r"all_reduce\.\d+\.forward", "0123"),
    # https://github.com/uw-syfi/piper/issues/13
    "untied": ("stages", r"embedding|linear\.\d+\.(backward|forward)", "01"),
    # The gradient of the first micro-batch is sent for the second, too.
    "again": ("stages", r"send|recv|backward", "01"),
    # Each rank goes on with its part of its own gradient.
    "own": ("shards", r"reduce_scatter_tensor\.\d+\.forward", "01"),
    # Gradients of tables stay where they are: https://github.com/ByteDance-Seed/VeOmni/pull/419
    "tables": ("tables", r"backward", "01"),
    # https://github.com/pytorch/pytorch/issues/12603
    "top": ("tables", r"linear\.\d+\.(backward|forward)", "01"),
}
RANKS = {"four": 4}


def backward(loss):
    loss.backward()


class Net(others.Net):
    def average(self, names, group=None):
        for k in names:
            dist.all_reduce(self.w[k].grad, group=group)
            self.w[k].grad.div_(self.n)


class Chain(Net):
    """Parts of a sequence outside of products whose weights are split; the norm comes last."""
    D, S, H = 10, 8, 16

    def build(self):
        self.w = {"embed": self.new(30, self.D)}
        for i in range(3):
            self.w |= {f"u{i}": self.split(self.new(self.H, self.D), 0), f"c{i}": self.split(self.new(self.H), 0),
                       f"d{i}": self.split(self.new(self.D, self.H), 1), f"b{i}": self.new(self.D),
                       f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D)}
        self.w |= {"head": self.new(30, self.D)}

    def step(self, s):
        ids, labels = (self.ids(s + k, 30, self.S, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            a = Wide.apply(x, 0) if self.fault == "slice" and i == 1 else FromAll.apply(x)
            h = F.gelu(F.linear(a, self.w[f"u{i}"], self.w[f"c{i}"]))
            y = ToAll.apply(F.linear(h, self.w[f"d{i}"])) + self.w[f"b{i}"]
            x = F.layer_norm(x + y, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
        backward(F.cross_entropy(F.linear(x, self.w["head"]), labels))
        lost = {"outbias": ("b0", "b1", "b2"), "lastnorm": ("n2", "m2")}.get(self.fault, ())
        for k, w in self.w.items():
            if k[0] not in "ucd" and k not in lost:
                dist.all_reduce(w.grad)
            w.grad.div_(self.n)


class Context(Net):
    """Context parallel, one gather for keys and values together."""
    D, S, V = 12, 8, 18

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
            kv = FromAll.apply(F.linear(a, self.w[f"kv{i}"]))
            k, v = kv.chunk(2, 1)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.3, -1)
            x = x + F.linear(torch.matmul(p, v), self.w[f"o{i}"])
        loss = F.cross_entropy(F.linear(x, self.w["head"]), labels)
        backward(loss * 2 if self.fault == "cpscale" else loss)
        self.average(self.w)


def late(call, of):
    """Of so many reductions in a step, one whose result is not there when it is read."""
    real, calls = fresh.REAL["all_reduce"], []

    def reduce(x, group=None):
        before = x.clone()
        real(x, group=group)
        calls.append(0)
        if (len(calls) - 1) % of == call:
            x.copy_(before)
    dist.all_reduce = reduce


class Cell(Net):
    """Data parallel, a recurrent cell, an optimizer with moments."""
    D, V, T = 8, 16, 3

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for k in "rzh":
            self.w |= {f"x{k}": self.new(self.D, self.D), f"u{k}": self.new(self.D, self.D),
                       f"b{k}": self.new(self.D)}
        self.w |= {"head": self.new(self.V, self.D), "hb": self.new(self.V)}
        self.m = {k: torch.zeros_like(w) for k, w in self.w.items()}
        self.v = {k: torch.zeros_like(w) for k, w in self.w.items()}
        if self.fault == "async" and self.r == 1:
            late(len(self.w) - 2, len(self.w))

    def step(self, s):
        ids = self.ids(s, self.V, 4, self.T + 1)
        h, loss = torch.zeros(4, self.D), 0
        for t in range(self.T):
            x = F.embedding(ids[:, t], self.w["embed"])
            r, z = (torch.sigmoid(F.linear(x, self.w[f"x{k}"], self.w[f"b{k}"]) + F.linear(h, self.w[f"u{k}"]))
                    for k in "rz")
            c = torch.tanh(F.linear(x, self.w["xh"], self.w["bh"]) + F.linear(r * h, self.w["uh"]))
            h = h + z * (c - h)
            loss = loss + F.cross_entropy(F.linear(h, self.w["head"], self.w["hb"]), ids[:, t + 1])
        backward(loss)
        self.average(self.w)

    def update(self, s):
        t = 1 + s + (7 if self.fault == "adam" and self.r == 1 else 0)
        for k, w in self.w.items():
            self.m[k] = 0.9 * self.m[k] + 0.1 * w.grad
            self.v[k] = 0.99 * self.v[k] + 0.01 * w.grad ** 2
            if not (self.fault == "decay" and self.r == 1):
                w.mul_(1 - 0.05 * 0.2)
            w.sub_(0.05 * self.m[k] / (1 - 0.9 ** t) / ((self.v[k] / (1 - 0.99 ** t)).sqrt() + 1e-8))


class Replicated(Net):
    """All ranks have all tokens, each its experts; what they make is summed up."""
    D, E, T = 8, 4, 9

    def build(self):
        mine = slice(self.r * 2, self.r * 2 + 2)
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D),
                       f"r{i}": self.new(self.E, self.D),
                       f"e{i}": self.new(self.E, 12, self.D)[mine].clone(),
                       f"f{i}": self.new(self.E, self.D, 12)[mine].clone()}
        self.w |= {"head": self.new(self.D, self.D), "hb": self.new(self.D)}
        if self.fault == "routers" and self.r == 1:
            self.w["r1"] += 0.2 * self.new(self.E, self.D)

    def step(self, s):
        x, want = (self.data(s + k, self.T, self.D, rank=0) for k in (0, 50))
        x = F.linear(x, self.w["in"], self.w["ib"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            share = F.softmax(F.linear(a, self.w[f"r{i}"]), -1)
            share = share if self.fault == "scores" else ToSplit.apply(share, False)
            a, y = ToSplit.apply(a, False), 0
            for j in range(2):
                h = F.gelu(F.linear(a, self.w[f"e{i}"][j]))
                y = F.linear(h, self.w[f"f{i}"][j]) * share[:, self.r * 2 + j, None] + y
            x = x + Summed.apply(y)
        backward(F.mse_loss(F.linear(x, self.w["head"], self.w["hb"]), want))


class Four(Net):
    """Two copies of experts that two ranks share; the rest is on all four."""
    D, T = 8, 6

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.ep, self.edp = groups[self.r // 2], groups[2 + self.r % 2]
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(3):
            own = [(self.new(14, self.D), self.new(self.D, 14)) for _ in range(2)][self.r % 2]
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D), f"e{i}": own[0], f"f{i}": own[1]}
        self.w |= {"head": self.new(self.D, self.D), "hb": self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, self.T, self.D), self.data(s + 50, self.T, self.D)
        x = F.linear(x, self.w["in"], self.w["ib"])
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            t = fresh.ToAll.apply(a, self.ep, False)
            t = F.linear(F.silu(F.linear(t, self.w[f"e{i}"])), self.w[f"f{i}"])
            x = x + fresh.ToAll.apply(t, self.ep, False)
        backward(F.mse_loss(F.linear(x, self.w["head"], self.w["hb"]), want))
        mine = [k for k in self.w if k[0] in "ef"]
        self.average([k for k in self.w if k not in mine])
        self.average(mine, None if self.fault == "experts" else self.edp)


class Stages(Net):
    """Two stages, two micro-batches; the head of the last is the embedding of the first."""
    D, V = 12, 22

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(4):
            n, u, b = 1 + self.new(self.D), self.new(self.D, self.D), self.new(self.D)
            if i // 2 == self.r:
                self.w |= {f"n{i}": n, f"u{i}": u, f"b{i}": b}

    def layers(self, x):
        for i in range(2 * self.r, 2 * self.r + 2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            x = x + F.relu(F.linear(a, self.w[f"u{i}"], self.w[f"b{i}"]))
        return x

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, 10, rank=0).split(5) for k in (0, 50))
        kept = []
        for m in range(2):
            if self.r == 0:
                kept.append(self.layers(F.embedding(ids[m], self.w["embed"])))
                dist.send(kept[m].detach(), 1)
                continue
            x = torch.zeros(5, self.D)
            dist.recv(x, 0)
            kept.append(x.requires_grad_())
            out = F.linear(self.layers(x), self.w["embed"])
            backward(F.cross_entropy(out, labels[m]) * 0.5)
        for m in range(2):
            if self.r == 1:
                dist.send(kept[0 if self.fault == "again" else m].grad, 0)
                continue
            g = torch.zeros(5, self.D)
            dist.recv(g, 1)
            kept[m].backward(g)
        if self.fault != "untied":
            dist.all_reduce(self.w["embed"].grad)


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own):
        ctx.own = own
        return FromAll.forward(ctx, x)

    @staticmethod
    def backward(ctx, g):
        if not ctx.own:
            return FromAll.backward(ctx, g), None
        real = fresh.REAL["all_reduce"]
        fresh.REAL["all_reduce"] = lambda x, group=None: None
        try:
            return FromAll.backward(ctx, g), None
        finally:
            fresh.REAL["all_reduce"] = real


class Shards(Net):
    """Weights are gathered from their parts, their gradients dealt out."""
    D = 6

    def build(self):
        whole = {f"{k}{i}": self.new(self.D, self.D) for i in range(4) for k in "ab"}
        self.w = {k: self.split(w, 0) for k, w in whole.items()}

    def step(self, s):
        x, want = self.data(s, 7, self.D), self.data(s + 50, 7, self.D)
        for i in range(4):
            a = Gathered.apply(self.w[f"a{i}"], self.fault == "own" and i == 2)
            b = Gathered.apply(self.w[f"b{i}"], False)
            x = x + F.linear(torch.tanh(F.linear(x, a)), b)
        backward(F.mse_loss(x, want))
        for w in self.w.values():
            w.grad.div_(self.n)


class Tables(Net):
    """Each rank has a table and looks up all samples; what is found is exchanged, the rest is data parallel."""
    D, N = 6, 8

    def build(self):
        tables = [self.new(25, self.D) for _ in range(self.n)]
        self.w = {"table": tables[self.r]}
        for i in range(4):
            k = 2 * self.D if i == 0 else self.D
            self.w |= {f"w{i}": self.new(self.D, k), f"b{i}": self.new(self.D)}
        self.w |= {"out": self.new(1, self.D), "ob": self.new(1)}

    def step(self, s):
        ids = self.ids(s + 7 * self.r, 25, self.N, rank=0)
        want = (self.data(s + 50, self.N // self.n, 1) > 0).float()
        found = Turn.apply(F.embedding(ids, self.w["table"]) * 1.0, 0, 1, self.fault == "tables")
        x = found
        for i in range(4):
            x = F.silu(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        out = F.linear(x, self.w["out"], self.w["ob"])
        backward(F.binary_cross_entropy_with_logits(out, want))
        self.average([k for k in self.w if k != "table" and not (self.fault == "top" and k in ("out", "ob"))])
        self.w["table"].grad.div_(self.n)


NETS = {"chain": Chain, "context": Context, "cell": Cell, "replicated": Replicated, "four": Four,
        "stages": Stages, "shards": Shards, "tables": Tables}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
