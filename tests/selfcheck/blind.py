#!/usr/bin/env python3
"""Dumps of runs on two and four ranks: networks and bugs by one who had not read how runs are judged.

Usage: blind.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --blind scores these. Networks: zigzag, lookup, branch, lowrank, rows,
spectral, muon, remat, gated, owners, float8, grid, pipe. What each bug is, and where it was reported, stands
beside it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import fresh
import held
import recorder
from command import of_networks
from fresh import OPS, Summed, ToSplit
from others import FromAll, Into, OutOf, ToAll, Wide

recorder.MODEL = os.path.abspath(__file__)
OPS["Torch"] = (torch, OPS["Torch"][1] + " round")
OPS["Tensor"] = (torch.Tensor, OPS["Tensor"][1] + " index_add_")

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # Labels are shifted after the sequence was dealt out, so that what ends a part has none or another part's:
    # https://github.com/NVIDIA-BioNeMo/bionemo-recipes/pull/1449
    "shift": ("zigzag", r"cross_entropy\.0\.(forward|backward)", "01"),
    # The mask is that of parts in a row, not that of what each rank has:
    # https://github.com/zhuzilin/ring-flash-attention/issues/54
    "causal": ("zigzag", r"(masked_fill|softmax)\.\d+\.forward", "01"),
    # Tokens of another rank's part of the vocabulary get the first row, and stay:
    # https://github.com/deepseek-ai/DeepSeek-V3/issues/298
    "unmasked": ("lookup", r"(embedding|all_reduce)\.0\.forward", "01"),
    # All ranks have the slopes of the first heads:
    # https://github.com/bigscience-workshop/Megatron-DeepSpeed/issues/227
    "slopes": ("lookup", r"(__mul__\.0|__add__\.[03]|softmax\.[01])\.forward", "01"),
    # What is not linear is done to parts of a sum: https://github.com/pytorch/pytorch/pull/165962
    "partial": ("lookup", r"(tanh\.1|all_reduce\.4)\.forward", "01"),
    # Columns of all ranks are gathered as if they were rows:
    # https://github.com/NVIDIA/TransformerEngine/pull/531
    "flatgather": ("lookup", r"(all_gather_into_tensor\.0|reshape\.8)\.forward", "01"),
    # A rank that had no use of a weight does not take the others' gradient:
    # https://github.com/pytorch/pytorch/pull/28883
    "unused": ("branch", r"step1:linear\.[34]\.forward", "01"),
    # Gradients are brought to few numbers by another matrix on each rank:
    # https://github.com/pytorch/pytorch/pull/48507
    "factors": ("lowrank", r"(matmul\.[036]|all_reduce\.[024])\.forward", "01"),
    # Rows of all ranks are cut at the count of one's own: https://github.com/pytorch/pytorch/pull/23917
    "owncount": ("rows", r"(cat\.[23]|index_add_\.0|all_gather\.[12])\.forward", "01"),
    # What the power iteration found is lost on one rank: https://github.com/pytorch/pytorch/pull/12671
    "vectors": ("spectral", r"step1:(matmul|sum|rsqrt|__mul__|__truediv__)\.\d+\.forward|linear\.[01]\.forward", "01"),
    # Each rank shuffles by a seed of its own, and some samples are dealt twice:
    # https://github.com/NVlabs/LongLive/issues/71
    "overlap": ("spectral", r"(linear|mse_loss)\.0\.forward", "01"),
    # One weight's update is made orthogonal by parts: https://github.com/mindspore-ai/hyper-parallel/issues/513
    "shardwise": ("muon", r"(matmul\.(9|1[0-7])|(sum|rsqrt)\.1|__mul__\.(1[1-9]|2[01]))\.forward", "01"),
    # What is computed again drops by the stream that each rank has of its own:
    # https://github.com/NVIDIA/Megatron-LM/pull/4828
    "tracker": ("remat", r"dropout\.[2-9]\.(forward|backward)", "01"),
    # Each rank draws which layer is left out: https://github.com/huggingface/transformers/pull/16717
    "layerdrop": ("remat", r"(layer_norm\.[01]|linear\.[1-4]|gelu\.[01]|all_reduce\.[01])\.forward", "01"),
    # Tokens that all ranks have are sent to the experts by each: https://github.com/deepspeedai/DeepSpeed/pull/2074
    "duplicates": ("gated", r"(all_to_all|all_reduce)\.\d+\.forward|einsum\.[2378]\.(forward|backward)", "01"),
    # What the owner's optimizer made of some weights is not sent: https://github.com/lodestone-rock/RamTorch/issues/13
    "kept": ("owners", r"step1:linear\.[012456]\.forward", "0123"),
    # Parts are gathered in 8 bits, but each rank scales by its own maximum:
    # https://github.com/NVIDIA/TransformerEngine/pull/74
    "amax": ("float8", r"((max|__truediv__|round|all_gather_into_tensor)\.1|__mul__\.[23])\.forward", "01"),
    # Parts of parts are put together in the order of ranks: https://github.com/pytorch/pytorch/issues/129206
    "strided": ("grid", r"(all_gather\.0|cat\.0|linear\.4)\.forward", "0123"),
    # The mask is made ready on the first stage alone: https://github.com/hpcaitech/ColossalAI/pull/430
    "rawmask": ("pipe", r"(softmax\.\d|__add__\.[1368])\.forward", "1"),
}
RANKS = {"owners": 4, "grid": 4}


def backward(loss):
    loss.backward()


def gathered(x, group=None):
    parts = [torch.zeros(x.shape, dtype=x.dtype) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x.contiguous(), group=group)
    return parts


class Net(held.Net):
    def summed(self, names, group=None):
        for k in names:
            dist.all_reduce(self.w[k].grad, group=group)

    def update(self, s):
        for w in self.w.values():
            if w.grad is not None:
                w.sub_(self.rate * w.grad)


class Zigzag(Net):
    """Context parallel: each rank has a part of the beginning and one of the end."""
    D, S, V = 8, 12, 16

    def build(self):
        self.w = {k: self.new(size, self.D) for k, size in (("embed", self.V), ("at", self.S), ("head", self.V))}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D), f"o{i}": self.new(self.D, self.D)}

    def places(self, r):
        c = self.S // (2 * self.n)
        last = 2 * self.n - 1 - r
        return [*range(r * c, r * c + c), *range(last * c, last * c + c)]

    def numbers(self, places):
        return torch.tensor(places)

    def future(self):
        mine, every = self.places(self.r), [p for r in range(self.n) for p in self.places(r)]
        if self.fault == "causal":
            mine, every = range(self.S)[self.r * len(mine):][:len(mine)], range(self.S)
        return torch.tensor([[k > q for k in every] for q in mine])

    def step(self, s):
        whole, mine, future = self.ids(s, self.V, self.S, rank=0), self.places(self.r), self.future()
        ids = whole[mine]
        labels = torch.tensor(whole.tolist()[1:] + [-100])[mine]
        if self.fault == "shift":
            labels = torch.tensor(ids.tolist()[1:] + [-100])
        x = F.embedding(ids, self.w["embed"]) + F.embedding(self.numbers(mine), self.w["at"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            k, v = FromAll.apply(F.linear(a, self.w[f"kv{i}"])).chunk(2, 1)
            p = torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35
            x = x + F.linear(torch.matmul(F.softmax(p.masked_fill(future, -1e4), -1), v), self.w[f"o{i}"])
        loss = F.cross_entropy(F.linear(x, self.w["head"]), labels, reduction="sum")
        backward(loss * (1 / (self.S - 1)))
        self.summed(self.w)


class Columns(torch.autograd.Function):
    """All ranks' columns, side by side."""

    @staticmethod
    def forward(ctx, x, flat):
        n, t = dist.get_world_size(), len(x)
        ctx.flat = flat
        out = torch.zeros(n * t, x.shape[1])
        dist.all_gather_into_tensor(out, x.contiguous())
        return out.reshape(t, -1) if flat else out.reshape(n, t, -1).transpose(0, 1).reshape(t, -1)

    @staticmethod
    def backward(ctx, g):
        n, r = dist.get_world_size(), dist.get_rank()
        return (g.reshape(n, len(g), -1)[r] if ctx.flat else g.chunk(n, 1)[r]).contiguous(), None


class Lookup(Net):
    """Tensor parallel, the vocabulary too; heads have slopes instead of positions."""
    D, T, V, HEADS, HD = 8, 6, 20, 4, 4

    def build(self):
        wide = self.HEADS * self.HD
        self.h = self.HEADS // self.n
        self.w = {"embed": self.split(self.new(self.V, self.D), 0)}
        for i in range(2):
            self.w |= {f"{k}{i}": self.split(self.new(wide, self.D), 0) for k in "qkvu"}
            self.w |= {f"{k}{i}": self.split(self.new(self.D, wide), 1) for k in "od"}
            self.w |= {f"{k}{i}": 1 + self.new(self.D) for k in "nm"}
        self.w |= {"nf": 1 + self.new(self.D), "head": self.split(self.new(self.V, self.D), 0)}

    def embedded(self, ids):
        part = self.V // self.n
        local = ids - self.r * part
        other = (local < 0) | (local >= part)
        x = F.embedding(local.masked_fill(other, 0), self.w["embed"])
        return Summed.apply(x if self.fault == "unmasked" else x.masked_fill(other[:, None], 0.0))

    def slopes(self):
        first = 0 if self.fault == "slopes" else self.r * self.h
        each = torch.tensor([2.0 ** -(2 * (first + k) + 1) for k in range(self.h)])
        return each[:, None, None] * torch.tensor([[float(k - q) for k in range(self.T)] for q in range(self.T)])

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=0) for k in (0, 50))
        x, slopes = self.embedded(ids), self.slopes()
        future = torch.ones(self.T, self.T).triu(1).bool()
        for i in range(2):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            q, k, v = (F.linear(a, self.w[f"{c}{i}"]).reshape(self.T, self.h, self.HD).transpose(0, 1) for c in "qkv")
            p = (torch.matmul(q, k.transpose(1, 2)) * 0.5 + slopes).masked_fill(future, -1e4)
            y = torch.matmul(F.softmax(p, -1), v).transpose(0, 1).reshape(self.T, -1)
            x = x + Summed.apply(F.linear(y, self.w[f"o{i}"]))
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"m{i}"]), False)
            y = F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"])
            early = self.fault == "partial" and i == 1
            x = x + (Summed.apply(torch.tanh(y)) if early else torch.tanh(Summed.apply(y)))
        a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w["nf"]), False)
        out = Columns.apply(F.linear(a, self.w["head"]), self.fault == "flatgather")
        backward(F.cross_entropy(out, labels))


class Branch(Net):
    """Data parallel; in the first step one rank has no data for a branch."""
    D, B = 8, 5

    def build(self):
        self.w = {k: self.new(self.D, self.D) for k in ("in", "a0", "a1", "b0", "b1", "out")}

    def step(self, s):
        x = torch.tanh(F.linear(self.data(s, self.B, self.D), self.w["in"]))
        x = x + F.linear(F.gelu(F.linear(x, self.w["a0"])), self.w["a1"])
        if not (s == 0 and self.r == 1):
            y = self.data(s + 25, self.B, self.D)
            x = x + F.linear(F.gelu(F.linear(y, self.w["b0"])), self.w["b1"])
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.B, self.D)))
        for w in self.w.values():
            g = torch.zeros_like(w.data) if w.grad is None else w.grad
            dist.all_reduce(g)
            g.div_(self.n)
            if not (self.fault == "unused" and w.grad is None):
                w.grad = g


class Lowrank(Net):
    """Data parallel, dropout; of matrices' gradients two vectors are exchanged, and each rank keeps what they lack."""
    D, B = 8, 6

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.lacks = {k: torch.zeros_like(w) for k, w in self.w.items() if w.dim() == 2}

    def step(self, s):
        torch.manual_seed(50 * self.seed + 10 * s + self.r)
        x = self.data(s, self.B, self.D)
        for i in range(3):
            x = F.dropout(torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"])), 0.1, True)
        backward(F.mse_loss(x, self.data(s + 50, self.B, self.D)))
        for at, k in enumerate(self.lacks):
            self.compressed(k, self.data(900 + 100 * s + at, self.D, 1, rank=None if self.fault == "factors" else 0))
        self.average([k for k in self.w if k not in self.lacks])

    def compressed(self, k, q):
        m = self.w[k].grad + self.lacks[k]
        p = torch.matmul(m, q)
        dist.all_reduce(p)
        p = p * torch.rsqrt(torch.sum(p * p))
        q = torch.matmul(m.transpose(0, 1), p)
        dist.all_reduce(q)
        q.div_(self.n)
        self.w[k].grad = torch.matmul(p, q.transpose(0, 1))
        self.lacks[k] = m - self.w[k].grad


class Rows(Net):
    """Data parallel, a shorter batch on one rank; of the table's gradient the rows of its batch are exchanged."""
    D, V, T = 6, 14, 9

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d), "w": self.new(d, d), "b": self.new(d), "out": self.new(5, d)}

    def step(self, s):
        size = self.T - 4 * self.r
        g = torch.Generator().manual_seed(1000 * self.seed + 10 * s + self.r)
        ids = torch.randperm(self.V, generator=g)[:size]
        total = torch.tensor([float(size)])
        dist.all_reduce(total)
        x = torch.tanh(F.linear(F.embedding(ids, self.w["table"]), self.w["w"], self.w["b"]))
        loss = F.cross_entropy(F.linear(x, self.w["out"]), self.ids(s + 50, 5, size), reduction="sum")
        backward(loss * (1 / total.item()))
        self.summed(["w", "b", "out"])
        self.exchanged(ids.sort()[0])

    def exchanged(self, ids):
        values, size = self.w["table"].grad[ids], len(ids)
        counts = gathered(torch.tensor([size]))
        more = max(c.item() for c in counts) - size
        ids = gathered(torch.cat([ids, torch.zeros(more, dtype=torch.int64)]))
        values = gathered(torch.cat([values, torch.zeros(more, self.D)]))
        cuts = [size if self.fault == "owncount" else c.item() for c in counts]
        ids = torch.cat([x[:c] for x, c in zip(ids, cuts)])
        values = torch.cat([x[:c] for x, c in zip(values, cuts)])
        self.w["table"].grad = torch.zeros(self.V, self.D).index_add_(0, ids, values)


def unit(x):
    return x * torch.rsqrt(torch.sum(x * x))


class Spectral(Net):
    """Data parallel; weights are divided by their largest singular value, which is followed from step to step."""
    D, ALL = 8, 16

    def build(self):
        self.w["out"] = self.new(3, self.D)
        for i in range(2):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.u = [unit(self.new(self.D)) for _ in range(2)]
        self.samples, self.wants = self.data(0, self.ALL, self.D, rank=0), self.data(50, self.ALL, 3, rank=0)

    def normal(self, i):
        w = self.w[f"w{i}"]
        v = unit(torch.matmul(w.detach().transpose(0, 1), self.u[i]))
        u = unit(torch.matmul(w.detach(), v))
        if not (self.fault == "vectors" and self.r == 1):
            self.u[i] = u
        return w / torch.sum(u * torch.matmul(w, v))

    def step(self, s):
        seed = 90 * self.seed + s + (1000 * self.r if self.fault == "overlap" else 0)
        mine = torch.randperm(self.ALL, generator=torch.Generator().manual_seed(seed))[self.r::self.n]
        x = self.samples[mine]
        for i in range(2):
            x = torch.tanh(F.linear(x, self.normal(i), self.w[f"b{i}"]))
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.wants[mine]))
        self.average(self.w)


class Muon(Net):
    """Each rank has rows of the weights; updates are made orthogonal, of whole weights."""
    D, B = 8, 6

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.split(self.new(self.D, self.D), 0), f"b{i}": self.new(self.D)}
        self.m = [torch.zeros(self.D // self.n, self.D) for _ in range(3)]

    def orthogonal(self, x):
        x = unit(x)
        for _ in range(3):
            a = torch.matmul(x, x.transpose(0, 1))
            a = a * -4.775 + torch.matmul(a, a) * 2.0315
            x = x * 3.4445 + torch.matmul(a, x)
        return x

    def step(self, s):
        x = self.data(s, self.B, self.D)
        for i in range(3):
            x = torch.tanh(F.linear(x, FromAll.apply(self.w[f"w{i}"]), self.w[f"b{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.B, self.D)))
        self.average([f"b{i}" for i in range(3)])
        for i, m in enumerate(self.m):
            m.mul_(0.9).add_(self.w[f"w{i}"].grad.div_(self.n))
            if self.fault == "shardwise" and i == 1:
                self.w[f"w{i}"].grad = self.orthogonal(m)
                continue
            whole = torch.zeros(self.D, self.D)
            dist.all_gather_into_tensor(whole, m)
            self.w[f"w{i}"].grad = self.orthogonal(whole).chunk(self.n)[self.r].contiguous()


class Remat(Net):
    """Tensor parallel with dropout; layers are computed again for their gradients, and one is left out."""
    D, T, FF = 8, 6, 12

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.split(self.new(self.FF, self.D), 0),
                       f"d{i}": self.split(self.new(self.D, self.FF), 1)}

    def layer(self, x, i):
        a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
        y = Summed.apply(F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"]))
        return x + F.dropout(y, 0.2, True)

    def step(self, s):
        skip = (self.ids(s, 3, 1, rank=0).item() + (self.r if self.fault == "layerdrop" else 0)) % 3
        torch.manual_seed(50 * self.seed + s)
        x = F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"])
        for i in range(3):
            if i != skip:
                x = checkpoint(self.layer, x, i, preserve_rng_state=self.fault != "tracker")
        torch.manual_seed(900 * self.seed + 10 * s + self.r)   # the stream of what is split
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D, rank=0)))


class Half(torch.autograd.Function):
    """A rank's part of rows that all have."""

    @staticmethod
    def forward(ctx, x):
        return x.chunk(dist.get_world_size())[dist.get_rank()].contiguous()

    @staticmethod
    def backward(ctx, g):
        return torch.cat(gathered(g))


class Gated(Net):
    """Experts on ranks that all have the same tokens: each sends its part of them, to one expert each."""
    D, T, E = 8, 8, 4

    def build(self):
        mine = slice(self.r * 2, self.r * 2 + 2)
        self.w = {"in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D, by=1.0),
                       f"e{i}": self.new(self.E, self.D, 10)[mine].clone(),
                       f"f{i}": self.new(self.E, 10, self.D)[mine].clone()}

    def routed(self, i, x):
        n, c = self.n, len(x)
        share, which = torch.topk(F.softmax(F.linear(x, self.w[f"r{i}"]), -1), 1, -1)
        to = F.one_hot(which[:, 0], self.E)
        slot = F.one_hot(((to.cumsum(0) - 1) * to).sum(1), c)
        send = torch.einsum("te,tc->ect", to.float(), slot.float())
        y = fresh.ToAll.apply(torch.einsum("ect,td->ecd", send, x), None, False)
        y = y.reshape(n, 2, c, self.D).transpose(0, 1).reshape(2, n * c, self.D)
        y = F.gelu(torch.einsum("ecd,edh->ech", y, self.w[f"e{i}"]))
        y = torch.einsum("ech,ehd->ecd", y, self.w[f"f{i}"])
        y = y.reshape(2, n, c, self.D).transpose(0, 1).reshape(self.E, c, self.D)
        return torch.einsum("ect,ecd->td", send, fresh.ToAll.apply(y, None, False)) * share

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            x = x + (self.routed(i, a) if self.fault == "duplicates" else Wide.apply(self.routed(i, Half.apply(a)), 0))
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D, rank=0)))
        self.summed(["r0", "r1"])


class Owners(Net):
    """Data parallel, gradients accumulate, one batch is shorter; each weight has an owner, who has its momentum."""
    D, B = 8, 4

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.w["out"] = self.new(3, self.D)
        self.owner = {k: at % self.n for at, k in enumerate(self.w)}
        self.m = {k: torch.zeros_like(w) for k, w in self.w.items() if self.owner[k] == self.r}

    def step(self, s):
        for m in range(2):
            size = self.B - 2 * (m == 1 and self.r == self.n - 1)
            x = self.data(s + 10 * m, size, self.D)
            for i in range(3):
                x = x + torch.tanh(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
            loss = F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 10 * m + 50, size, 3), reduction="sum")
            backward(loss * (1 / (3 * (2 * self.B * self.n - 2))))
        self.summed(self.w)
        for k, m in self.m.items():
            m.mul_(0.9).add_(self.w[k].grad)
            self.w[k].data.sub_(m * self.rate)
        for k, w in self.w.items():
            if not (self.fault == "kept" and k[0] == "w"):
                dist.broadcast(w.data, self.owner[k])

    def update(self, s):
        """Done in the step."""


class Cast(torch.autograd.Function):
    """All ranks' rows, which are sent as whole numbers of the same size."""

    @staticmethod
    def forward(ctx, x, own):
        top = torch.max(x.abs()).reshape(1)
        if not own:
            dist.all_reduce(top, op=dist.ReduceOp.MAX)
        size = top * (1 / 127)
        out = torch.zeros(len(x) * dist.get_world_size(), x.shape[1])
        dist.all_gather_into_tensor(out, torch.round(x / size))
        return out * size

    @staticmethod
    def backward(ctx, g):
        return FromAll.backward(ctx, g), None


class Float8(Net):
    """Tensor and sequence parallel; what is gathered has few bits."""
    D, T, FF = 8, 8, 12

    def build(self):
        self.w = {"in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.split(self.new(self.FF, self.D), 0),
                       f"d{i}": self.split(self.new(self.D, self.FF), 1)}

    def step(self, s):
        x, want = (self.data(s + k, self.T, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        x = F.linear(x, self.w["in"])
        for i in range(2):
            a = Cast.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.fault == "amax" and i == 1)
            x = x + ToAll.apply(F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"]))
        backward(F.mse_loss(F.linear(x, self.w["out"]), want) * (1 / self.n))
        self.summed(k for k in self.w if k[0] not in "ud")


class Full(torch.autograd.Function):
    """A weight of which each rank has a part, all of it. order: whose part is where."""

    @staticmethod
    def forward(ctx, x, order, group):
        ctx.order, ctx.group = order, group
        parts = gathered(x, None if len(order) == dist.get_world_size() else group)
        return torch.cat([parts[at] for at in order])

    @staticmethod
    def backward(ctx, g):
        parts = [p for _, p in sorted(zip(ctx.order, g.chunk(len(ctx.order))))]
        if len(parts) == dist.get_world_size():
            parts = parts[dist.get_rank() % 2::2]
        out = torch.zeros_like(parts[0])
        dist.reduce_scatter_tensor(out, torch.cat(parts), group=ctx.group)
        return out, None, None


class Grid(Net):
    """Two copies by two parts; a table's parts are dealt out once more, and all of it is the head, too."""
    D, T, V, FF = 8, 6, 16, 12

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.copy, self.at = divmod(self.r, 2)
        self.tp, self.dp = groups[self.copy], groups[2 + self.at]
        part = self.split(self.new(self.V, self.D), 0, 2, self.at)
        self.w = {"table": self.split(part, 0, 2, self.copy)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.split(self.new(self.FF, self.D), 0, 2, self.at),
                       f"d{i}": self.split(self.new(self.D, self.FF), 1, 2, self.at)}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=self.copy) for k in (0, 50))
        whole = Full.apply(self.w["table"], [0, 1, 2, 3] if self.fault == "strided" else [0, 2, 1, 3], self.dp)
        local = ids - self.at * 8
        other = (local < 0) | (local >= 8)
        x = F.embedding(local.masked_fill(other, 0), Full.apply(self.w["table"], [0, 1], self.dp))
        x = OutOf.apply(x.masked_fill(other[:, None], 0.0), self.tp)
        for i in range(2):
            a = Into.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.tp)
            x = x + OutOf.apply(F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"]), self.tp)
        backward(F.cross_entropy(F.linear(x, whole), labels))
        self.summed([k for k in self.w if k != "table"], self.dp)
        for w in self.w.values():
            w.grad.div_(2)


class Pipe(Net):
    """Two stages, the second with more layers and the loss; both know which tokens are none."""
    D, B, S, V = 8, 3, 6, 14

    def build(self):
        for i in ((0,), (1, 2))[self.r]:
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(3 * self.D, self.D),
                       f"o{i}": self.new(self.D, self.D)}
        self.w |= {"embed": self.new(self.V, self.D)} if self.r == 0 else {"head": self.new(self.V, self.D)}

    def layer(self, i, x, mask):
        q, k, v = F.linear(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.w[f"q{i}"]).chunk(3, -1)
        p = torch.matmul(q, k.transpose(1, 2)) * 0.35 + mask
        return x + F.linear(torch.matmul(F.softmax(p, -1), v), self.w[f"o{i}"])

    def batch(self, s, m):
        ids, labels = (self.ids(s + 10 * m + k, self.V, self.B, self.S, rank=0) for k in (0, 50))
        size = self.ids(s + 10 * m + 5, 3, self.B, 1, rank=0) + 4
        there = (torch.arange(self.S) < size).float()
        labels[there == 0] = -100
        mask = there[:, None, :]
        return ids, labels, mask if self.fault == "rawmask" and self.r == 1 else mask * 1e4 - 1e4

    def first(self, s):
        outs = []
        for m in range(2):
            ids, _, mask = self.batch(s, m)
            outs.append(self.layer(0, F.embedding(ids, self.w["embed"]), mask))
            dist.send(outs[m].detach(), 1)
        for x in outs:
            g = torch.zeros(self.B, self.S, self.D)
            dist.recv(g, 1)
            x.backward(g)

    def last(self, s):
        ins = []
        for m in range(2):
            ins.append(torch.zeros(self.B, self.S, self.D))
            dist.recv(ins[m], 0)
        for m, x in enumerate(ins):
            x.requires_grad_()
            _, labels, mask = self.batch(s, m)
            out = F.linear(self.layer(2, self.layer(1, x, mask), mask), self.w["head"])
            backward(F.cross_entropy(out.reshape(-1, self.V), labels.view(-1)) * 0.5)
            dist.send(x.grad, 0)

    def step(self, s):
        (self.last if self.r else self.first)(s)


NETS = {"zigzag": Zigzag, "lookup": Lookup, "branch": Branch, "lowrank": Lowrank, "rows": Rows, "spectral": Spectral,
        "muon": Muon, "remat": Remat, "gated": Gated, "owners": Owners, "float8": Float8, "grid": Grid, "pipe": Pipe}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
