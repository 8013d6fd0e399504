#!/usr/bin/env python3
"""Dumps of runs on two and four ranks: networks and bugs of neither make.py nor fresh.py.

Usage: others.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

tests/selfcheck/score.py OUT --others scores these. A case is a network (mqa, ulysses, accum, syncbn, ppdp,
gather, flat, tpdp, seqdrop), then "-noise", and the name of a fault. What each fault is, and where it was
reported, stands beside it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import fresh
import recorder
from command import of_networks
from fresh import OPS, Summed, ToSplit

recorder.MODEL = os.path.abspath(__file__)
OPS["Functional"] = (F, OPS["Functional"][1] + " dropout relu")
OPS["Torch"] = (torch, OPS["Torch"][1] + " cos sin topk norm sqrt zeros_like")
OPS["Tensor"] = (torch.Tensor, OPS["Tensor"][1] + " __neg__ sub_")
recorder.NOISY |= {"norm"}

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # Heads of queries are split, their one head of keys and values is on each rank:
    # https://github.com/bigcode-project/Megatron-LM/issues/11
    "kv": ("mqa", r"linear\.\d+\.(backward|forward)", "01"),
    # A norm of queries, of the heads of a rank: https://github.com/NVIDIA-NeMo/RL/issues/3716
    "qknorm": ("mqa", r"layer_norm\.\d+\.(backward|forward)", "01"),
    # The sum goes into a copy: https://github.com/NovaSky-AI/SkyRL/pull/1886
    "unused": ("mqa", r"all_reduce|backward", "01"),
    # What is whole is summed up: https://github.com/modelscope/mcore-bridge/pull/101
    "amplified": ("mqa", r"all_reduce", "01"),
    # Positions begin at 0 on each rank: https://github.com/vllm-project/speculators/pull/871
    "rope": ("ulysses", r"cos|sin|__mul__|__add__", "01"),
    # Gradients are used before they are exchanged: https://github.com/ByteDance-Seed/VeOmni/pull/419
    "back": ("ulysses", r"backward", "01"),
    # The mean of parts of a sum: https://github.com/ByteDance-Seed/VeOmni/pull/1120
    "half": ("ulysses", r"div_|all_reduce", "01"),
    # Gradients but of the last micro-batch are lost: https://github.com/allenai/open-instruct/pull/1498
    "last": ("accum", r"all_reduce|backward", "01"),
    # Summed up after each micro-batch, with what is summed up already:
    # https://github.com/deepspeedai/DeepSpeed/pull/1264
    "again": ("accum", r"all_reduce", "01"),
    # Summed up before the last micro-batch: https://github.com/karpathy/build-nanogpt/pull/30
    "leftover": ("accum", r"all_reduce|backward", "01"),
    # The mean of means, of batches that are not as large: https://github.com/PaddlePaddle/Paddle/issues/32464
    "means": ("syncbn", r"mean|all_reduce|div_", "01"),
    # https://github.com/pytorch/pytorch/pull/36382
    "bnback": ("syncbn", r"mean|sum|__mul__|__sub__|backward", "01"),
    # Joined over the stages when half of it is joined over the data:
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiedpart": ("ppdp", r"all_reduce|embedding\.0|linear\.\d+\.(backward|forward)", "0123"),
    # The buffer of the micro-batch before: https://github.com/NVIDIA/Megatron-LM/pull/5271
    "buffer": ("ppdp", r"recv|linear", "23"),
    # A gather that autograd does not know: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "detach": ("gather", r"all_gather|softmax|linear\.\d+\.(backward|forward)|backward", "01"),
    # The bias that balances experts counts the tokens of its own rank:
    # https://github.com/NVIDIA/Megatron-LM/issues/7452
    "balance": ("gather", r"step1:(__add__|linear|topk)", "01"),
    # One rank's weights begin one element later: https://github.com/NVIDIA/Megatron-LM/pull/6500
    "offset": ("flat", r"split|reshape|linear|layer_norm", "01"),
    # Each rank clips by the norm of its own shards:
    # https://github.com/facebookresearch/fairscale/pull/167
    "clippart": ("flat", r"mul_|norm", "01"),
    # The norm counts what is whole on each rank: https://github.com/NVIDIA-NeMo/RL/pull/3788
    "clipdup": ("tpdp", r"all_reduce|norm|sum|stack", "0123"),
    # Each rank of a group reads its own data: https://github.com/NVIDIA/Megatron-LM/pull/206
    "tpdata": ("tpdp", r"step0:(linear|layer_norm|all_reduce|__add__)", "0123"),
    # https://github.com/PaddlePaddle/PaddleFleetX/pull/1005
    "samemask": ("seqdrop", r"dropout", "01"),
}
RANKS = {"ppdp": 4, "tpdp": 4}


def backward(loss):
    loss.backward()


class Net(fresh.Net):
    def split(self, w, axis, n=None, r=None):
        return w.chunk(n or self.n, axis)[self.r if r is None else r].clone().contiguous()


class SumLost(torch.autograd.Function):
    """As ToSplit, but what is summed up is a copy."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        dist.all_reduce(g.clone())
        return g


class Wide(torch.autograd.Function):
    """Each rank's part along an axis; what follows is the same on all ranks."""

    @staticmethod
    def forward(ctx, x, axis):
        ctx.axis = axis
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, axis)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(dist.get_world_size(), ctx.axis)[dist.get_rank()].contiguous(), None


class Mqa(Net):
    """Tensor parallel, one head of keys and values for all; the head's outputs are gathered."""
    D, HEADS, HD, V = 12, 3, 4, 20

    def build(self):
        d, w = self.D, self.HEADS * self.HD * self.n
        self.w = {"embed": self.new(self.V, d)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(d), f"m{i}": self.new(d),
                       f"q{i}": self.split(self.new(w, d), 0), f"kv{i}": self.new(2 * self.HD, d),
                       f"qn{i}": 1 + self.new(self.HD), f"o{i}": self.split(self.new(d, w), 1)}
        self.w |= {"nf": 1 + self.new(d), "mf": self.new(d), "head": self.split(self.new(self.V, d), 0)}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, 2, 7, rank=0) for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(2):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"]), False)
            q = F.linear(a, self.w[f"q{i}"]).reshape(2, 7, self.HEADS, self.HD)
            q = F.layer_norm(q, (self.HD,), self.w[f"qn{i}"]).transpose(1, 2)
            k, v = F.linear(a, self.w[f"kv{i}"]).reshape(2, 1, 7, 2 * self.HD).chunk(2, 3)
            p = F.softmax(torch.matmul(q, k.transpose(2, 3)) * self.HD ** -0.5, -1)
            y = torch.matmul(p, v).transpose(1, 2).reshape(2, 7, -1)
            x = x + Summed.apply(F.linear(y, self.w[f"o{i}"]))
        a = F.layer_norm(x, (self.D,), self.w["nf"], self.w["mf"])
        a = SumLost.apply(a) if self.fault == "unused" else ToSplit.apply(a, False)
        out = Wide.apply(F.linear(a, self.w["head"]), 2)
        backward(F.cross_entropy(out.reshape(14, self.V), labels.reshape(-1)))
        for k in self.w:
            lost = k.startswith({"kv": "kv", "qknorm": "qn"}.get(self.fault, "-"))
            if k[:2] in ("kv", "qn") and not lost or self.fault == "amplified" and k[0] in "nm":
                dist.all_reduce(self.w[k].grad)


class Turn(torch.autograd.Function):
    """Parts of axis `cut` to the ranks, those that come joined along `join`."""

    @staticmethod
    def of(x, cut, join, really=True):
        ins = [p.contiguous() for p in x.chunk(dist.get_world_size(), cut)]
        outs = [torch.zeros_like(p) for p in ins]
        if really:
            dist.all_to_all(outs, ins)
        return torch.cat(outs if really else ins, join)

    @staticmethod
    def forward(ctx, x, cut, join, lost):
        ctx.how = join, cut, not lost
        return Turn.of(x, cut, join)

    @staticmethod
    def backward(ctx, g):
        return Turn.of(g, *ctx.how), None, None, None


class Ulysses(Net):
    """Parts of a sequence; for attention, of its heads. The loss is of the whole sequence, on each rank."""
    D, B, S, HEADS, HD = 8, 2, 10, 4, 4

    def build(self):
        for i in range(2):
            self.w |= {f"{k}{i}": self.new(self.HEADS * self.HD, self.D) for k in "qkv"}
            self.w |= {f"n{i}": 1 + self.new(self.D), f"o{i}": self.new(self.D, self.HEADS * self.HD),
                       f"u{i}": self.new(16, self.D), f"d{i}": self.new(self.D, 16)}
        self.w |= {"head": self.new(self.D, self.D)}

    def turned(self, x, at):
        a, b = x.chunk(2, 3)
        c, s = torch.cos(at), torch.sin(at)
        return torch.cat([a * c - b * s, a * s + b * c], 3)

    def step(self, s):
        x, want = (self.data(s + k, self.B, self.S, self.D, rank=0) for k in (0, 50))
        x = x.chunk(self.n, 1)[self.r]
        mine = self.S // self.n
        at = torch.arange(mine) + (0 if self.fault == "rope" else self.r * mine)
        at = at[:, None, None] * torch.tensor([1.0, 0.1])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]).reshape(self.B, mine, self.HEADS, self.HD) for c in "qkv")
            q, k, v = (Turn.apply(t, 2, 1, False).transpose(1, 2)
                       for t in (self.turned(q, at), self.turned(k, at), v))
            p = F.softmax(torch.matmul(q, k.transpose(2, 3)) * self.HD ** -0.5, -1)
            y = Turn.apply(torch.matmul(p, v).transpose(1, 2), 1, 2, self.fault == "back" and i == 1)
            x = x + F.linear(y.reshape(self.B, mine, -1), self.w[f"o{i}"])
            x = x + F.linear(F.silu(F.linear(x, self.w[f"u{i}"])), self.w[f"d{i}"])
        out = Wide.apply(F.linear(x, self.w["head"]), 1)
        backward(F.mse_loss(out, want))
        for w in self.w.values():
            dist.all_reduce(w.grad)
            if self.fault == "half":
                w.grad.div_(self.n)


class Accum(Net):
    """Data parallel, three micro-batches; bags of words."""
    D, V = 10, 30

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(4):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.w |= {"out": self.new(5, self.D), "ob": self.new(5)}

    def total(self):
        for w in self.w.values():
            dist.all_reduce(w.grad)

    def step(self, s):
        for m in range(3):
            ids, labels = self.ids(s + 10 * m, self.V, 4, 6), self.ids(s + 10 * m + 5, 5, 4)
            x = torch.mean(F.embedding(ids, self.w["embed"]), 1)
            for i in range(4):
                x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
            backward(F.cross_entropy(F.linear(x, self.w["out"], self.w["ob"]), labels))
            if self.fault == "last" and m < 2:
                for w in self.w.values():
                    w.grad = None
            if m == (1 if self.fault == "leftover" else 2) or self.fault == "again":
                self.total()
        for w in self.w.values():
            w.grad.div_(3 * self.n)


class Normed(torch.autograd.Function):
    """Batch norm over all ranks' samples."""

    @staticmethod
    def forward(ctx, x, w, b, fault):
        n = torch.tensor([float(len(x))])
        if fault == "means":
            both = torch.cat([torch.mean(x, 0), torch.mean(x * x, 0)])
            dist.all_reduce(both)
            both.div_(dist.get_world_size())
            mean, square = both.chunk(2)
        else:
            both = torch.cat([torch.sum(x, 0), torch.sum(x * x, 0), n])
            dist.all_reduce(both)
            n = both[-1:]
            mean, square = (both[:-1] / n).chunk(2)
        inv = torch.rsqrt(square - mean * mean + 1e-3)
        y = (x - mean) * inv
        ctx.save_for_backward(y, w, inv, n)
        ctx.fault = fault
        return y * w + b

    @staticmethod
    def backward(ctx, g):
        y, w, inv, n = ctx.saved_tensors
        both = torch.cat([torch.sum(g, 0), torch.sum(g * y, 0)])
        gb, gw = both.clone().chunk(2)
        if ctx.fault != "bnback":
            dist.all_reduce(both)
        a, b = (both / n).chunk(2)
        return (g - a - y * b) * (w * inv), gw.contiguous(), gb.contiguous(), None


class Syncbn(Net):
    """Data parallel; ranks have six and four samples. The loss is divided by all of them."""
    D = 8

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"g{i}": 1 + self.new(self.D),
                       f"b{i}": self.new(self.D)}
        self.w |= {"head": self.new(4, self.D), "hb": self.new(4)}

    def step(self, s):
        n = 6 - 2 * self.r
        x, want = self.data(s, n, self.D), self.data(s + 50, n, 4)
        for i in range(3):
            y = F.linear(x, self.w[f"w{i}"])
            x = x + F.relu(Normed.apply(y, self.w[f"g{i}"], self.w[f"b{i}"], self.fault))
        out = F.linear(x, self.w["head"], self.w["hb"])
        backward(F.mse_loss(out, want, reduction="sum") * (1 / 40))
        for w in self.w.values():
            dist.all_reduce(w.grad)


class Ppdp(Net):
    """Two stages of two ranks each; the head is the embedding. Two micro-batches."""
    D, V = 10, 24

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.stage, self.at = divmod(self.r, 2)
        self.dp, self.pp = groups[self.stage], groups[2 + self.at]
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(6):
            w, b, g = self.new(self.D, self.D), self.new(self.D), 1 + self.new(self.D)
            if i // 3 == self.stage:
                self.w |= {f"w{i}": w, f"b{i}": b, f"g{i}": g}

    def layers(self, x):
        for i in range(3 * self.stage, 3 * self.stage + 3):
            a = F.layer_norm(x, (self.D,), self.w[f"g{i}"])
            x = x + F.gelu(F.linear(a, self.w[f"w{i}"], self.w[f"b{i}"]))
        return x

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, 8, rank=self.at).split(4) for k in (0, 50))
        kept, grads = [], []
        for m in range(2):
            if self.stage == 0:
                x = self.layers(F.embedding(ids[m], self.w["embed"]))
                dist.send(x.detach(), self.r + 2)
                kept.append(x)
                continue
            x = torch.zeros(4, self.D)
            dist.recv(x, self.r - 2)
            kept.append(x)
            x = kept[0].clone() if self.fault == "buffer" else x
            x.requires_grad_()
            out = F.linear(self.layers(x), self.w["embed"])
            backward(F.cross_entropy(out, labels[m]) * 0.5)
            grads.append(x.grad)
        for x in kept if self.stage == 0 else []:
            g = torch.zeros(4, self.D)
            dist.recv(g, self.r + 2)
            x.backward(g)
        for g in grads:
            dist.send(g, self.r - 2)
        for k, w in self.w.items():
            whole = w.grad.clone()
            dist.all_reduce(whole, group=self.dp)
            whole.div_(2)
            if k != "embed" or self.fault != "tiedpart" or self.at != self.stage:
                w.grad = whole
        dist.all_reduce(self.w["embed"].grad, group=self.pp)

    def update(self, s):
        super().update(s)
        if self.fault == "tiedpart":   # each rank's part of the weights is handed round
            fresh.REAL["broadcast"](self.w["embed"], self.stage * 2 + 1 - self.stage, group=self.dp)


class FromAll(torch.autograd.Function):
    """Rows of all ranks; gradients are summed up, and each rank gets its rows'."""

    @staticmethod
    def forward(ctx, x):
        out = torch.zeros(len(x) * dist.get_world_size(), x.shape[1])
        dist.all_gather_into_tensor(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(len(g) // dist.get_world_size(), g.shape[1])
        dist.reduce_scatter_tensor(out, g.contiguous())
        return out


class ToAll(torch.autograd.Function):
    """Sums of all ranks, of which each gets its rows."""

    @staticmethod
    def forward(ctx, x):
        return FromAll.backward(ctx, x)

    @staticmethod
    def backward(ctx, g):
        return FromAll.forward(ctx, g)


class Gather(Net):
    """Experts, two on each rank, see the tokens of all ranks; a bias balances them."""
    D, E, T = 8, 4, 10

    def build(self):
        mine = slice(self.r * 2, self.r * 2 + 2)
        self.bias = torch.zeros(self.E)
        self.w = {"in": self.new(self.D, self.D), "ib": self.new(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D),
                       f"e{i}": self.new(self.E, 12, self.D)[mine].clone(),
                       f"f{i}": self.new(self.E, self.D, 12)[mine].clone()}
        self.w |= {"head": self.new(self.D, self.D), "hb": self.new(self.D)}

    def step(self, s):
        x, want = self.data(s, self.T, self.D), self.data(s + 50, self.T, self.D)
        x = F.linear(x, self.w["in"], self.w["ib"])
        counts = 0
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            share = F.softmax(F.linear(a, self.w[f"r{i}"]), -1)
            chosen = torch.topk(share.detach() + self.bias, 2, -1)[1]
            mask = torch.zeros(self.T, self.E).scatter_(1, chosen, 1.0)
            counts = counts + torch.sum(mask, 0)
            share = share * mask
            if self.fault == "detach":
                all_shares = FromAll.forward(None, share.detach())
            else:
                all_shares = FromAll.apply(share)
            y, t = FromAll.apply(a), 0
            for j in range(2):
                h = F.gelu(F.linear(y, self.w[f"e{i}"][j]))
                h = F.linear(h, self.w[f"f{i}"][j])
                t = h * all_shares[:, self.r * 2 + j, None] + t
            x = x + ToAll.apply(t)
        backward(F.mse_loss(F.linear(x, self.w["head"], self.w["hb"]), want))
        if self.fault != "balance":
            dist.all_reduce(counts)
        self.bias = self.bias + 0.05 * (counts.mean() - counts).sign()
        for k, w in self.w.items():
            if w.grad is None:
                w.grad = torch.zeros_like(w)
            if k[0] not in "ef":
                dist.all_reduce(w.grad)
            w.grad.div_(self.n)


class Flat(Net):
    """Weights are one vector, of which each rank has a part; gradients are clipped."""
    D = 7

    def build(self):
        whole = {}
        for i in range(4):
            whole |= {f"n{i}": 1 + self.new(self.D), f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.shape = {k: w.shape for k, w in whole.items()}
        flat = torch.cat([w.reshape(-1) for w in whole.values()])
        self.pad = -flat.numel() % self.n + self.n
        self.w = {"flat": torch.cat([flat, torch.zeros(self.pad)]).chunk(self.n)[self.r].clone()}

    def step(self, s):
        x, want = self.data(s, 5, self.D), self.data(s + 50, 5, self.D)
        whole = torch.zeros(self.w["flat"].numel() * self.n)
        with torch.no_grad():
            dist.all_gather_into_tensor(whole, self.w["flat"].detach())
        sizes, at = [v.numel() for v in self.shape.values()], int(self.fault == "offset" and self.r == 1)
        parts = whole[at:at + sum(sizes)].split(sizes)
        w = {k: p.reshape(self.shape[k]).clone().requires_grad_() for k, p in zip(self.shape, parts)}
        for i in range(4):
            a = F.layer_norm(x, (self.D,), w[f"n{i}"])
            x = x + torch.tanh(F.linear(a, w[f"w{i}"], w[f"b{i}"]))
        backward(F.mse_loss(x, want))
        flat = torch.cat([v.grad.reshape(-1) for v in w.values()] + [torch.zeros(self.pad)])
        mine = torch.zeros(flat.numel() // self.n)
        dist.reduce_scatter_tensor(mine, flat)
        mine.div_(self.n)
        norm = torch.norm(mine)
        square = norm * norm
        if self.fault != "clippart":
            dist.all_reduce(square)
        self.w["flat"].grad = mine.mul_(min(1.0, 0.2 / square.sqrt().item()))


class Tpdp(Net):
    """Tensor and data parallel; gradients are clipped by the norm of all of them."""
    D, H = 8, 24

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.dpr, self.tpr = divmod(self.r, 2)
        self.tp, self.dp = groups[self.dpr], groups[2 + self.tpr]
        self.w = {"in": self.new(self.D, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D),
                       f"up{i}": self.split(self.new(self.H, self.D), 0, 2, self.tpr),
                       f"dn{i}": self.split(self.new(self.D, self.H), 1, 2, self.tpr),
                       f"ob{i}": self.new(self.D)}
        self.w |= {"head": self.new(self.D, self.D)}

    def step(self, s):
        reads = self.r if self.fault == "tpdata" else self.dpr
        x, want = (self.data(s + k, 6, self.D, rank=reads) for k in (0, 50))
        x = F.linear(x, self.w["in"])
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            h = F.gelu(F.linear(Into.apply(a, self.tp), self.w[f"up{i}"]))
            x = x + (OutOf.apply(F.linear(h, self.w[f"dn{i}"]), self.tp) + self.w[f"ob{i}"])
        backward(F.mse_loss(F.linear(x, self.w["head"]), want))
        squares = []
        for k, w in self.w.items():
            dist.all_reduce(w.grad, group=self.dp)
            w.grad.div_(2)
            if k[:2] in ("up", "dn") or self.tpr == 0 or self.fault == "clipdup":
                norm = torch.norm(w.grad)
                squares.append(norm * norm)
        square = torch.sum(torch.stack(squares))
        dist.all_reduce(square, group=self.tp)
        scale = min(1.0, 0.3 / square.sqrt().item())
        for w in self.w.values():
            w.grad.mul_(scale)


class Into(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class OutOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Seqdrop(Net):
    """Parts of a sequence between products whose weights are split; dropout."""
    D, S, H = 8, 12, 20

    def build(self):
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": self.new(self.D),
                       f"up{i}": self.split(self.new(self.H, self.D), 0),
                       f"dn{i}": self.split(self.new(self.D, self.H), 1)}
        self.w |= {"head": self.new(self.D, self.D)}

    def step(self, s):
        x, want = (self.data(s + k, self.S, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        torch.manual_seed(100 * self.seed + 10 * s + (0 if self.fault == "samemask" else self.r))
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"m{i}"])
            h = F.relu(F.linear(FromAll.apply(a), self.w[f"up{i}"]))
            x = x + F.dropout(ToAll.apply(F.linear(h, self.w[f"dn{i}"])), 0.25, True)
        backward(F.mse_loss(F.linear(x, self.w["head"]), want))
        for k, w in self.w.items():
            if k[:2] not in ("up", "dn"):
                dist.all_reduce(w.grad)
            w.grad.div_(self.n)


NETS = {"mqa": Mqa, "ulysses": Ulysses, "accum": Accum, "syncbn": Syncbn, "ppdp": Ppdp, "gather": Gather,
        "flat": Flat, "tpdp": Tpdp, "seqdrop": Seqdrop}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
