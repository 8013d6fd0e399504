"""Recurrent networks by torch.nn against cells by hand; a small network whose batch comes in parts."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from parts import given, own
from planes import cross_entropy, relu
from rows import norm

RNN_BUGS = ["gates", "forget", "tanh", "bias", "lengths", "state"]
ACCUM_BUGS = ["divide", "eps", "ddof", "double"]


def rnn(c):
    c.kind, c.d, c.h = c.r.choice(["lstm", "gru"]), c.r.choice([6, 10]), c.r.choice([8, 12])
    if c.bug in ("forget", "tanh"):
        c.kind = "lstm"
    c.n, c.t, c.depth, c.vocab = 3, c.r.choice([4, 6]), c.r.choice([1, 2]), 20
    gates = 4 if c.kind == "lstm" else 3
    c.w = {}
    for i in range(c.depth):
        k = c.d if i == 0 else c.h
        c.w[f"ih{i}"], c.w[f"hh{i}"] = c.rand(f"ih{i}", gates * c.h, k, scale=1 / math.sqrt(k)), c.rand(f"hh{i}", gates * c.h, c.h, scale=1 / math.sqrt(c.h))
        c.w[f"bi{i}"], c.w[f"bh{i}"] = c.rand(f"bi{i}", gates * c.h, scale=0.2), c.rand(f"bh{i}", gates * c.h, scale=0.2)
    c.w["emb"], c.w["out"], c.w["outb"] = c.rand("emb", c.vocab, c.d), c.rand("out", 5, c.h, scale=0.5), c.rand("outb", 5, scale=0.1)
    c.ids, c.y = c.ints("ids", c.vocab, c.n, c.t), c.ints("y", 5, c.n)
    c.lengths = torch.tensor([c.t, c.t - 1, c.t - 2])
    return RNN, PortedRNN


class RNN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = given(nn.Embedding(c.vocab, c.d), c.w["emb"])
        self.rnn = (nn.LSTM if c.kind == "lstm" else nn.GRU)(c.d, c.h, c.depth, batch_first=True)
        for i in range(c.depth):
            for ours, theirs in (("ih", "weight_ih"), ("hh", "weight_hh"), ("bi", "bias_ih"), ("bh", "bias_hh")):
                getattr(self.rnn, f"{theirs}_l{i}").data = c.w[f"{ours}{i}"].clone()
        self.out = given(nn.Linear(c.h, 5), c.w["out"], c.w["outb"])

    def step(self):
        c = self.c
        x = self.embed(c.ids)
        y, _ = pad_packed_sequence(self.rnn(pack_padded_sequence(x, c.lengths, batch_first=True))[0], batch_first=True)
        x = y.sum(1) / c.lengths[:, None]
        F.cross_entropy(self.out(x.to(y.dtype)).float(), c.y).backward()


class PortedRNN(nn.Module):
    """Tokens first, cells by hand; states of what has ended are kept as they are."""
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict({k: own(v) for k, v in c.w.items()})
        if c.pick("gates", "torch", "keras") == "keras":    # the kernels transposed, LSTM's gates i, f, o, g
            for i in range(c.depth):
                for n in ("ih", "hh"):
                    self.p[f"{n}{i}"] = own(c.w[f"{n}{i}"].t().contiguous())

    def lstm(self, x, h, s, i):
        c, p = self.c, self.p
        keras = c.pick("gates") == "keras"
        if keras:
            z = torch.cat([x, h], -1) @ torch.cat([p[f"ih{i}"], p[f"hh{i}"]], 0) + (p[f"bi{i}"] + p[f"bh{i}"])
        else:
            z = F.linear(x, p[f"ih{i}"], p[f"bi{i}"]) + F.linear(h, p[f"hh{i}"], p[f"bh{i}"])
        with c.at("gates", "forget", "tanh"):
            a, f, g, o = z.chunk(4, -1)
            if c.has("gates"):
                f, g = g, f
            if c.has("forget"):
                f = f + 1.0
            s = torch.sigmoid(f) * s + torch.sigmoid(a) * torch.tanh(g)
            return torch.sigmoid(o) * (s if c.has("tanh") else torch.tanh(s)), s

    def gru(self, x, h, s, i):
        c, p = self.c, self.p
        if c.pick("gates") == "keras":
            a, b = x @ p[f"ih{i}"] + p[f"bi{i}"], h @ p[f"hh{i}"] + p[f"bh{i}"]
        else:
            a, b = F.linear(x, p[f"ih{i}"], p[f"bi{i}"]), F.linear(h, p[f"hh{i}"], p[f"bh{i}"])
        with c.at("gates", "bias"):
            (ar, az, an), (br, bz, bn) = a.chunk(3, -1), b.chunk(3, -1)
            r, z = torch.sigmoid(ar + br), torch.sigmoid(az + bz)
            if c.has("gates"):
                r, z = z, r
            n = torch.tanh(an + r * bn)
            return (1 - z) * n + z * h, s

    def step(self):
        c, p = self.c, self.p
        xs = p["emb"][c.ids.t()]
        if c.pick("reverse", "list", "stack") == "list":
            xs = xs.unbind(0)
        with c.at("lengths"):
            live = torch.arange(c.t)[:, None] < (c.lengths.clamp(max=c.t - 1) if c.has("lengths") else c.lengths)[None]
        for i in range(c.depth):
            with c.at("state"):
                h = torch.full((c.n, c.h), 0.5 if c.has("state") and i == 0 else 0.0, dtype=p["out"].dtype)
            s, ys = torch.zeros(c.n, c.h, dtype=p["out"].dtype), []
            for t in range(c.t):
                with c.at("state") if i == t == 0 else c.at("none"):
                    h, s = (self.lstm if c.kind == "lstm" else self.gru)(xs[t], h, s, i)
                ys.append(h)
            xs = ys
        with c.at("bias" if c.kind == "lstm" else "none", "lengths"):
            y = torch.stack(list(xs)) * live[:, :, None].to(p["out"].dtype)
            if c.has("bias") and c.kind == "lstm":    # the mean over all, not over what there is
                y = y.mean(0)
            else:
                y = y.sum(0) / live.sum(0)[:, None].to(y.dtype)
        cross_entropy(c, (y @ p["out"].t() + p["outb"]).float(), c.y).backward()


def accum(c):
    c.n, c.d, c.h = c.r.choice([4, 6]), c.r.choice([8, 12]), c.r.choice([16, 24])
    c.x, c.y = c.rand("x", c.n, c.d), c.ints("y", 4, c.n)
    c.w = {"a": c.rand("a", c.h, c.d, scale=1 / math.sqrt(c.d)), "ab": c.rand("ab", c.h, scale=0.1), "g": c.rand("g", c.h, scale=0.1, around=1),
           "b": c.rand("b", c.h, scale=0.1), "m": c.rand("m", c.h, c.h, scale=1 / math.sqrt(c.h)), "mb": c.rand("mb", c.h, scale=0.1),
           "o": c.rand("o", 4, c.h, scale=1 / math.sqrt(c.h)), "ob": c.rand("ob", 4, scale=0.1)}
    return Whole, InParts


class Whole(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, w = c, c.w
        self.net = nn.Sequential(given(nn.Linear(c.d, c.h), w["a"], w["ab"]), given(nn.LayerNorm(c.h), w["g"], w["b"]), nn.ReLU(),
                                 given(nn.Linear(c.h, c.h), w["m"], w["mb"]), nn.Tanh(), given(nn.Linear(c.h, 4), w["o"], w["ob"]))
        self.x = own(c.x).requires_grad_(False)

    def step(self):
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        opt.zero_grad()
        F.cross_entropy(self.net(self.x).float(), self.c.y).backward()
        opt.step()


class InParts(nn.Module):
    """The batch in two parts, whose gradients add up."""
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict({k: own(v) for k, v in c.w.items()})
        self.batch = own(c.x).requires_grad_(False)

    def step(self):
        c, p = self.c, self.p
        parts = c.pick("parts", 2, 1)
        for x, y in zip(self.batch.chunk(parts), c.y.chunk(parts)):
            h = relu(c, norm(c, F.linear(x, p["a"], p["ab"]), p["g"], p["b"], 1e-5, True))
            with c.at("double"):
                m = F.linear(h, p["m"], p["mb"])
                h = torch.tanh(m + p["mb"]) if c.has("double") else torch.tanh(m)
            with c.at("divide"):
                loss = cross_entropy(c, F.linear(h, p["o"], p["ob"]).float(), y)
                if not c.has("divide") or parts == 1:
                    loss = loss / parts
            loss.backward()
        with torch.no_grad():
            for v in self.parameters():
                if v.grad is not None:
                    v -= 0.1 * v.grad
