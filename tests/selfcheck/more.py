#!/usr/bin/env python3
"""Dumps of runs on two and three ranks: networks and bugs of none of the others.

Usage: more.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --more scores these. Networks: mixer, lora, gan, tokens, three,
sorted, layers, bert, image.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import others
import recorder
from command import of_networks
from fresh import OPS, Summed, ToSplit
from others import FromAll, Turn, Wide

recorder.MODEL = os.path.abspath(__file__)
OPS["Functional"] = (F, OPS["Functional"][1] + " group_norm softplus binary_cross_entropy_with_logits "
                     "max_pool2d")
recorder.NOISY |= {"group_norm", "softplus", "binary_cross_entropy_with_logits"}

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # A norm behind heads that are split: https://github.com/NVIDIA/Megatron-LM/issues/7452
    "outnorm": ("mixer", r"(__mul__|layer_norm|rsqrt)\.\d+\.(backward|forward)", "01"),
    # As "rowbias" of fresh.py, by an addition.
    "addbias": ("mixer", r"__add__\.\d+\.forward|all_reduce", "01"),
    # Adapters begin otherwise on each rank: https://github.com/antoyang/TubeDETR/issues/15
    "adapter": ("lora", r"step0:(linear|all_reduce)", "01"),
    # Averaged twice, by the reduction and by hand: https://github.com/deepspeedai/DeepSpeed/issues/7773
    "loradiv": ("lora", r"div_|all_reduce", "01"),
    # Of two networks one is not joined.
    "critic": ("gan", r"linear\.\d+\.(backward|forward)", "01"),
    # Each rank divides by its own tokens: https://github.com/PrimeIntellect-ai/prime-rl/pull/2562
    "count": ("tokens", r"div_|__truediv__|__mul__|cross_entropy|mul_", "01"),
    # As "kvgrad" of fresh.py: https://github.com/NVIDIA-NeMo/Automodel/pull/1260
    "gathered": ("tokens", r"backward|chunk", "01"),
    # Gradients of two micro-batches are taken for each other: https://github.com/NVIDIA/Megatron-LM/pull/5271
    "swapped": ("three", r"recv|backward", "01"),
    # What is sent is that of the micro-batch before.
    "repeated": ("three", r"send|recv|linear|tanh", "012"),
    # https://github.com/pytorch/torchtitan/issues/2387
    "router": ("sorted", r"linear\.\d+\.(backward|forward)", "01"),
    # Gradients of tokens do not go back: https://github.com/ByteDance-Seed/VeOmni/pull/419
    "goback": ("sorted", r"backward", "01"),
    # One layer is gathered before its step: https://github.com/NVIDIA/Megatron-LM/issues/656
    "prefetch": ("layers", r"step1:(all_gather_into_tensor|linear)", "01"),
    # https://github.com/facebookresearch/fairscale/pull/167
    "ownclip": ("layers", r"mul_|norm", "01"),
    # https://github.com/allenai/open-instruct/pull/1498
    "onlyfirst": ("bert", r"all_reduce|backward", "01"),
    # One rank finds an overflow that is none: https://github.com/pytorch/pytorch/pull/115710
    "skips": ("bert", r"step1:(embedding|linear|layer_norm)", "01"),
    # https://github.com/pytorch/pytorch/issues/12603
    "groupnorm": ("image", r"group_norm\.\d+\.(backward|forward)", "01"),
}
RANKS = {"three": 3}


def backward(loss):
    loss.backward()


class Net(others.Net):
    def average(self, names):
        for k in names:
            dist.all_reduce(self.w[k].grad)
            self.w[k].grad.div_(self.n)


class Mixer(Net):
    """Tensor parallel: gated heads, each with a norm that all share."""
    D, H, HD = 10, 3, 5

    def build(self):
        h = self.H * self.HD * self.n
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"v{i}": self.split(self.new(h, self.D), 0),
                       f"z{i}": self.split(self.new(h, self.D), 0), f"g{i}": 1 + self.new(self.HD),
                       f"o{i}": self.split(self.new(self.D, h), 1), f"b{i}": self.new(self.D)}
        self.w |= {"head": self.new(4, self.D)}

    def step(self, s):
        x, labels = self.data(s, 9, self.D, rank=0), self.ids(s, 4, 9, rank=0)
        for i in range(3):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            v = F.linear(a, self.w[f"v{i}"]).reshape(9, self.H, self.HD)
            v = v * torch.rsqrt(torch.mean(v * v, -1, True) + 1e-5) * self.w[f"g{i}"]
            y = F.linear(v.reshape(9, -1) * F.silu(F.linear(a, self.w[f"z{i}"])), self.w[f"o{i}"])
            y = Summed.apply(y + self.w[f"b{i}"]) if self.fault == "addbias" else \
                Summed.apply(y) + self.w[f"b{i}"]
            x = x + y
        backward(F.cross_entropy(F.linear(x, self.w["head"]), labels))
        for i in range(3):
            if self.fault != "outnorm":
                dist.all_reduce(self.w[f"g{i}"].grad)


class Lora(Net):
    """Data parallel; weights stay, what is trained is beside them."""
    D, R = 12, 3

    def build(self):
        self.frozen = [self.new(self.D, self.D) for _ in range(5)]
        if self.fault == "adapter":
            self.g = torch.Generator().manual_seed(self.seed + 500 * self.r)
        for i in range(5):
            self.w |= {f"a{i}": self.new(self.R, self.D), f"b{i}": self.new(self.D, self.R)}

    def step(self, s):
        x, want = self.data(s, 7, self.D), self.data(s + 50, 7, self.D)
        for i in range(5):
            y = F.linear(x, self.frozen[i]) + F.linear(F.linear(x, self.w[f"a{i}"]), self.w[f"b{i}"]) * 0.5
            x = x + torch.tanh(y)
        backward(F.mse_loss(x, want))
        self.average(self.w)
        if self.fault == "loradiv":
            for w in self.w.values():
                w.grad.div_(self.n)


class Gan(Net):
    """Data parallel; the critic's gradients of the generator's turn are of no use."""
    D = 6

    def build(self):
        for k in "gc":
            for i in range(4):
                self.w |= {f"{k}{i}": self.new(self.D, self.D), f"{k}b{i}": self.new(self.D)}
        self.w |= {"cout": self.new(1, self.D)}

    def through(self, k, x):
        for i in range(4):
            x = x + F.silu(F.linear(x, self.w[f"{k}{i}"], self.w[f"{k}b{i}"]))
        return x

    def step(self, s):
        real, noise = self.data(s, 5, self.D), self.data(s + 50, 5, self.D)
        made = self.through("g", noise)
        out = F.linear(self.through("c", torch.cat([real, made.detach()])), self.w["cout"])
        backward(F.binary_cross_entropy_with_logits(out, torch.ones(10, 1) * (torch.arange(10)[:, None] < 5)))
        if self.fault != "critic":
            self.average([k for k in self.w if k[0] == "c"])
        kept = {k: w.grad for k, w in self.w.items() if k[0] == "c"}
        for k in kept:
            self.w[k].grad = None
        backward(F.softplus(F.linear(self.through("c", made), self.w["cout"])).mean() * -1)
        self.average([k for k in self.w if k[0] == "g"])
        for k, g in kept.items():
            self.w[k].grad = g


class Tokens(Net):
    """Context parallel, keys and values gathered; the loss is a sum, divided by all tokens that count."""
    D, S, V = 8, 10, 16

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D)}
            self.w |= {f"{k}{i}": self.new(self.D, self.D) for k in "qkvo"}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.S, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        labels = labels.clone()
        labels[:1 + 2 * self.r] = -100
        x = F.embedding(ids, self.w["embed"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]) for c in "qkv")
            wide = Wide.apply if self.fault == "gathered" and i == 1 else lambda t, _: FromAll.apply(t)
            k, v = wide(k, 0), wide(v, 0)
            x = x + F.linear(torch.matmul(F.softmax(torch.matmul(q, k.transpose(0, 1)) * 0.3, -1), v),
                             self.w[f"o{i}"])
        loss = F.cross_entropy(F.linear(x, self.w["embed"]), labels, reduction="sum")
        count = (labels >= 0).sum().float()
        if self.fault != "count":
            dist.all_reduce(count)
        backward(loss)
        for w in self.w.values():
            dist.all_reduce(w.grad)
            w.grad.div_(count)


class Three(Net):
    """Three stages, three micro-batches, first all forward."""
    D, MICRO = 9, 3

    def build(self):
        for i in range(9):
            w, b = self.new(self.D, self.D), self.new(self.D)
            if i // 3 == self.r:
                self.w |= {f"w{i}": w, f"b{i}": b}

    def step(self, s):
        data, want = (self.data(s + k, 4 * self.MICRO, self.D, rank=0).split(4) for k in (0, 50))
        ins, outs, grads = [], [], []
        for m in range(self.MICRO):
            x = data[m]
            if self.r > 0:
                x = torch.zeros(4, self.D)
                dist.recv(x, self.r - 1)
                x.requires_grad_()
            ins.append(x)
            for i in range(3 * self.r, 3 * self.r + 3):
                x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
            outs.append(x)
            if self.r < 2:
                again = self.fault == "repeated" and self.r == 1 and m == 2
                dist.send(outs[m - 1 if again else m].detach(), self.r + 1)
        for m in range(self.MICRO):
            if self.r == 2:
                backward(F.mse_loss(outs[m], want[m]) * (1 / self.MICRO))
            else:
                g = torch.zeros(4, self.D)
                dist.recv(g, self.r + 1)
                grads.append(g)
        if self.fault == "swapped" and self.r == 0:
            grads[1:] = grads[:0:-1]
        for y, g in zip(outs, grads):
            y.backward(g)
        for x in ins if self.r > 0 else []:
            dist.send(x.grad, self.r - 1)


class Sorted(Net):
    """Experts: each rank sends half of its tokens to each, chosen by the router's order."""
    D, T = 8, 8

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D), f"r{i}": self.new(1, self.D)}
            own = [(self.new(14, self.D), self.new(self.D, 14)) for _ in range(self.n)][self.r]
            self.w |= {f"e{i}": own[0], f"f{i}": own[1]}
        self.w |= {"head": self.new(self.D, self.D), "hb": self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, self.T, self.D), self.data(s + 50, self.T, self.D)
        x = F.linear(x, self.w["in"], self.w["ib"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            score = torch.sigmoid(F.linear(a, self.w[f"r{i}"]))
            to = torch.argsort(score.detach()[:, 0])
            t = Turn.apply(a[to] * 1.0, 0, 0, self.fault == "goback")
            t = F.linear(F.gelu(F.linear(t, self.w[f"e{i}"])), self.w[f"f{i}"])
            t = Turn.apply(t, 0, 0, False)
            x = x + t[torch.argsort(to)] * score
        backward(F.mse_loss(F.linear(x, self.w["head"], self.w["hb"]), want))
        self.average([k for k in self.w if k[0] not in "ef" and not (self.fault == "router" and k[0] == "r")])
        for i in range(2):
            for k in "ef":
                self.w[f"{k}{i}"].grad.div_(self.n)


class Layers(Net):
    """Each layer is gathered from its parts when it comes; gradients are clipped."""
    D = 8

    def build(self):
        whole = {f"{k}{i}": self.new(self.D, self.D) for i in range(5) for k in "uv"}
        self.w = {k: w.reshape(-1).chunk(self.n)[self.r].clone() for k, w in whole.items()}
        self.old = {}

    def step(self, s):
        x, want = self.data(s, 6, self.D), self.data(s + 50, 6, self.D)
        for i in range(5):
            u, v = (self.whole(k, f"{k}{i}", s) for k in "uv")
            x = x + F.linear(F.gelu(F.linear(x, u)), v)
        backward(F.mse_loss(x, want))
        self.old = {k: w.detach().clone() for k, w in self.w.items()}
        for w in self.w.values():
            w.grad.div_(self.n)
        norms = torch.stack([torch.norm(w.grad) for w in self.w.values()])
        square = torch.sum(norms * norms)
        if self.fault != "ownclip":
            dist.all_reduce(square)
        scale = min(1.0, 0.5 / square.sqrt().item())
        for w in self.w.values():
            w.grad.mul_(scale)

    def whole(self, kind, name, s):
        w = self.w[name]
        if self.fault == "prefetch" and s == 1 and self.r == 1 and name == "u2":
            w = w + (self.old[name] - w).detach()
        return FromAll.apply(w.view(-1, self.D))


class Bert(Net):
    """Data parallel, two micro-batches, the head is the embedding."""
    D, V, S = 8, 20, 5

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D),
                       f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        for m in range(2):
            ids, labels = (self.ids(s + 10 * m + k, self.V, 3, self.S) for k in (0, 50))
            x = F.embedding(ids, self.w["embed"])
            for i in range(3):
                a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
                x = x + F.gelu(F.linear(a, self.w[f"w{i}"], self.w[f"b{i}"]))
            backward(F.cross_entropy(F.linear(x, self.w["embed"]).reshape(-1, self.V), labels.reshape(-1)))
            if self.fault == "onlyfirst" and m == 0:
                self.average(self.w)
        if self.fault != "onlyfirst":
            self.average(self.w)

    def update(self, s):
        if not (self.fault == "skips" and self.r == 1):
            super().update(s)


class Image(Net):
    """Data parallel, norms of groups of channels."""
    C = 8

    def build(self):
        for i, k in enumerate((3, self.C, self.C)):
            self.w |= {f"c{i}": self.new(self.C, k, 3, 3), f"g{i}": 1 + self.new(self.C),
                       f"h{i}": self.new(self.C)}
        self.w |= {"fc": self.new(5, self.C), "fb": self.new(5)}

    def step(self, s):
        x, labels = self.data(s, 3, 3, 8, 8), self.ids(s, 5, 3)
        for i in range(3):
            x = F.conv2d(x, self.w[f"c{i}"], padding=1)
            x = F.silu(F.group_norm(x, 2, self.w[f"g{i}"], self.w[f"h{i}"]))
        out = F.linear(F.adaptive_avg_pool2d(x, 1).reshape(3, -1), self.w["fc"], self.w["fb"])
        backward(F.cross_entropy(out, labels))
        self.average([k for k in self.w if not (self.fault == "groupnorm" and k[0] in "gh")])


NETS = {"mixer": Mixer, "lora": Lora, "gan": Gan, "tokens": Tokens, "three": Three, "sorted": Sorted,
        "layers": Layers, "bert": Bert, "image": Image}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
