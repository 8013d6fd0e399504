"""Networks of afresh.py that are copies on all ranks, but for their experts or for who does the step."""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

import blind
import fresh
import recorder
from fresh import Summed, ToSplit
from others import FromAll, ToAll


def reduce(x, dst, op=None, group=None):
    """As other backends do: what is not the destination's stays as it was."""
    whole = x.clone()
    fresh.REAL["all_reduce"](whole, group=group)
    if dist.get_rank() == dst:
        x.copy_(whole)


dist.reduce = reduce


def backward(loss):
    loss.backward()


class Net(blind.Net):
    def __init__(self, fault, seed):
        recorder.MODEL = os.path.abspath(sys.modules[type(self).__module__].__file__)
        super().__init__(fault, seed)

    def flat(self, names):
        return torch.cat([self.w[k].grad.reshape(-1) for k in names])

    def unflat(self, names, flat):
        return {k: x.reshape(self.w[k].shape)
                for k, x in zip(names, flat.split([self.w[k].numel() for k in names]))}

    def coalesced(self, names, group=None, by=1):
        flat = self.flat(names)
        dist.all_reduce(flat, group=group)
        if by > 1:
            flat.div_(by)
        for k, g in self.unflat(names, flat).items():
            self.w[k].grad = g

    def squares(self, names):
        return torch.sum(torch.stack([torch.sum(self.w[k].grad * self.w[k].grad) for k in names]))

    def scaled(self, squares):
        by = torch.reciprocal(torch.sqrt(squares)) * 0.5
        for w in self.w.values():
            w.grad.mul_(by)


class Gru(Net):
    """Data parallel, double precision: a cell with gates, gradients in buckets, an optimizer with moments."""
    D, B, T = 6, 4, 3

    def build(self):
        for k, size in (("i", 3), ("h", 3), ("o", 1)):
            self.w |= {f"w{k}": self.new(size * self.D, self.D).double(), f"b{k}": self.new(size * self.D).double()}
        self.m, self.v = ({k: torch.zeros_like(w) for k, w in self.w.items()} for _ in range(2))
        self.eps, self.late = 0.03 if self.fault == "eps" and self.r == 1 else 1e-8, []
        if self.fault == "undivided" and self.r == 1:
            dist.all_reduce = self.started

    def started(self, x, op=None, group=None):
        self.late.append(x.clone())
        fresh.REAL["all_reduce"](self.late[-1])
        if len(self.late) % 2:
            x.copy_(self.late[-1])

    def cell(self, x, h):
        i, r, n = F.linear(x, self.w["wi"], self.w["bi"]).chunk(3, 1)
        j, s, m = F.linear(h, self.w["wh"], self.w["bh"]).chunk(3, 1)
        z = torch.sigmoid(i + j)
        n = torch.tanh(n + torch.sigmoid(r + s) * m)
        return n + z * (h - n)

    def run(self, s):
        h = torch.zeros(self.B, self.D).double()
        for t in range(self.T):
            h = self.cell(self.data(s + 5 * t, self.B, self.D).double(), h)
        return F.linear(h, self.w["wo"], self.w["bo"])

    def loss(self, s):
        return F.smooth_l1_loss(self.run(s), self.data(s + 50, self.B, self.D).double())

    def reduced(self):
        names = list(self.w)
        for at, bucket in enumerate((names[3:], names[:3])):
            flat = self.flat(bucket)
            dist.all_reduce(flat)
            flat.div_(self.n)
            if at == 1 and self.late:
                flat.copy_(self.late[-1])   # here it comes
            for k, g in self.unflat(bucket, flat).items():
                self.w[k].grad = g

    def step(self, s):
        backward(self.loss(s))
        self.reduced()

    def update(self, s):
        for k, w in self.w.items():
            self.m[k].mul_(0.9).add_(w.grad, alpha=0.1)
            self.v[k].mul_(0.99).addcmul_(w.grad, w.grad, value=0.01)
            m, v = self.m[k] / (1 - 0.9 ** (s + 1)), self.v[k] / (1 - 0.99 ** (s + 1))
            w.sub_(0.05 * m / (v.sqrt() + self.eps))


class Average(Gru):
    """The same; one rank keeps an average of its weights, and looks at norms."""

    def build(self):
        super().build()
        self.kept = {k: w.clone() for k, w in self.w.items()}

    def step(self, s):
        super().step(s)
        if self.r == 0:
            for k, w in self.w.items():
                self.kept[k] = self.kept[k] * 0.9 + w.detach() * 0.1
                torch.norm(w.grad)


class Checks(Gru):
    """The same; one rank looks first how it does on samples that the others do not have."""

    def step(self, s):
        if self.r == 1:
            with torch.no_grad():
                F.smooth_l1_loss(self.run(s + 70), self.data(s + 77, self.B, self.D).double())
        super().step(s)


class Lengths(Gru):
    """The same; batches and sequences are longer on one rank, and each element counts as much."""

    def build(self):
        super().build()
        self.B, self.T = 4 - self.r, 3 - self.r

    def loss(self, s):
        want = self.data(s + 50, self.B, self.D).double()
        return F.smooth_l1_loss(self.run(s), want, reduction="sum") * (2 / (7 * self.D))


class Rounds(Gru):
    """The same; one rank has more micro-batches, each of which counts as much."""

    def step(self, s):
        for m in range(2 + self.r):
            backward(self.loss(s + 10 * m) * 0.4)
        self.reduced()


class Streams(Gru):
    """The same; each rank drops by a stream of its own, and puts noise on its samples."""

    def cell(self, x, h):
        return super().cell(x + torch.randn(x.shape, generator=self.own).double() * 0.1, F.dropout(h, 0.2, True))

    def step(self, s):
        torch.manual_seed(100 * self.seed + 10 * s + self.r)
        self.own = torch.Generator().manual_seed(77 * self.seed + 10 * s + self.r)
        super().step(s)


class Total(torch.autograd.Function):
    """The sum of all ranks, of which each has use."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return Total.forward(ctx, g)


class Server(Net):
    """Data parallel, batches of other sizes, norms over all of them; one rank does the step and sends the weights."""
    D, OUT = 6, 3

    def build(self):
        for i in range(2):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"g{i}": 1 + self.new(self.D), f"b{i}": self.new(self.D)}
        self.w["out"] = self.new(self.OUT, self.D)
        self.run = [[torch.zeros(self.D), torch.ones(self.D)] for _ in range(2)]
        self.moved = 0

    def norm(self, i, x, count):
        both = Total.apply(torch.cat([torch.sum(x, 0), torch.sum(x * x, 0)]))
        mean, square = (both * (1 / count)).chunk(2)
        var = square - mean * mean
        n = len(x) if self.fault == "owncorrection" else count
        self.run[i][0] = self.run[i][0] * 0.9 + mean.detach() * 0.1
        self.run[i][1] = self.run[i][1] * 0.9 + var.detach() * (0.1 * n / (n - 1))
        return (x - mean) * torch.rsqrt(var + 1e-3) * self.w[f"g{i}"] + self.w[f"b{i}"]

    def step(self, s):
        size = 6 - 2 * self.r
        x, want, count = self.data(s, size, self.D), self.data(s + 50, size, self.OUT), 6 + 4 + 2
        for i in range(2):
            x = x + torch.tanh(self.norm(i, F.linear(x, self.w[f"w{i}"]), count))
        loss = F.mse_loss(F.linear(x, self.w["out"]), want, reduction="sum")
        backward(loss * (1 / (count * self.OUT)))
        names = list(self.w)
        flat = self.flat(names)
        dist.reduce(flat, 0)
        old = torch.cat([self.w[k].detach().reshape(-1) for k in names])
        if self.r == 0:
            self.moved = flat + self.moved * 0.9
            new = old - self.moved * self.rate
        sent = new.clone() if self.r == 0 and self.fault != "packed" else old
        dist.broadcast(sent, 0)
        self.new_weights = self.unflat(names, new if self.r == 0 else sent)

    def update(self, s):
        for k, w in self.w.items():
            w.copy_(self.new_weights[k])


class Swap(torch.autograd.Function):
    """Parts of the first axis to the ranks of a group."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        outs = [torch.zeros(p.shape) for p in x.chunk(2)]
        dist.all_to_all(outs, [p.contiguous() for p in x.chunk(2)], group=group)
        return torch.cat(outs)

    @staticmethod
    def backward(ctx, g):
        return Swap.forward(ctx, g, ctx.group), None


class Choice(Net):
    """Two copies of experts that two ranks share; each takes the tokens that it likes, the same number of all ranks."""
    D, T, E, H, C = 8, 6, 4, 6, 2

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.ep, self.copies = groups[self.r // 2], groups[2 + self.r % 2]
        self.w = {"in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D, by=1.0),
                       f"e{i}": self.split(self.new(self.E, self.D, self.H), 0, 2, self.r % 2),
                       f"f{i}": self.split(self.new(self.E, self.H, self.D), 0, 2, self.r % 2)}
        other = self.new(self.E, self.D)
        if self.fault == "ownrouter" and self.r == 3:
            self.w["r1"] = other

    def layer(self, i, a):
        score = torch.sigmoid(F.linear(a, self.w[f"r{i}"]))
        likes, which = torch.topk(score.transpose(0, 1), self.C, 1)
        pick = F.one_hot(which, self.T).float()
        x = Swap.apply(torch.einsum("ect,td->ecd", pick, a), self.ep)
        x = x.reshape(2, 2, self.C, self.D).transpose(0, 1).reshape(2, 2 * self.C, self.D)
        x = torch.einsum("ech,ehd->ecd", F.gelu(torch.einsum("ecd,edh->ech", x, self.w[f"e{i}"])), self.w[f"f{i}"])
        x = x.reshape(2, 2, self.C, self.D).transpose(0, 1).reshape(self.E, self.C, self.D)
        return torch.einsum("ect,ecd,ec->td", pick, Swap.apply(x, self.ep), likes)

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D), self.w["in"])
        for i in range(2):
            x = x + self.layer(i, F.layer_norm(x, (self.D,), self.w[f"n{i}"]))
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D)))
        self.coalesced([k for k in self.w if k[0] not in "ef"], None, 4)
        self.coalesced([k for k in self.w if k[0] in "ef"], self.ep if self.fault == "wronggroup" else self.copies,
                       2 if self.fault == "copiesonly" else 4)


class Toks(Net):
    """Experts see the tokens of all ranks, gathered; the rest is data parallel."""
    D, T, E, H = 8, 5, 4, 6

    def build(self):
        self.w = {"mix": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D, by=1.0),
                       f"e{i}": self.split(self.new(self.E, self.D, self.H), 0),
                       f"f{i}": self.split(self.new(self.E, self.H, self.D), 0)}

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D), self.w["mix"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            share, which = torch.topk(F.softmax(F.linear(a, self.w[f"r{i}"]), -1), 1, -1)
            gates = FromAll.apply(F.one_hot(which[:, 0], self.E).float() * share).chunk(self.n, 1)[self.r]
            h = F.relu(torch.einsum("td,edh->teh", FromAll.apply(a), self.w[f"e{i}"]))
            y = torch.einsum("teh,ehd->ted", h, self.w[f"f{i}"])
            x = x + ToAll.apply(torch.einsum("ted,te->td", y, gates))
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D)))
        experts = [] if self.fault == "allin" else [k for k in self.w if k[0] in "ef"]
        self.coalesced([k for k in self.w if k not in experts], None, self.n)
        for k in experts:
            self.w[k].grad.div_(self.n)


class Dense(torch.autograd.Function):
    """Of a gradient with other strides than its input, torch 1.13's gelu on a CPU makes numbers of no meaning."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.contiguous()


class Moe(Net):
    """All ranks have the same tokens, and two of the experts each; one more is split over them."""
    D, T, E, H = 8, 7, 4, 6

    def build(self):
        mine = slice(2 * self.r, 2 * self.r + 2)
        self.w = {"in": self.new(self.D, self.D), "out": self.new(self.D, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D, by=1.0),
                       f"e{i}": self.new(self.E, self.D, self.H)[mine].clone(),
                       f"f{i}": self.new(self.E, self.H, self.D)[mine].clone(),
                       f"u{i}": self.split(self.new(8, self.D), 0), f"d{i}": self.split(self.new(self.D, 8), 1)}

    def layer(self, i, s, a):
        noise = self.data(s + 10 + i, self.T, self.E, rank=None if self.fault == "ownnoise" and i == 1 else 0)
        share = F.softmax(F.linear(a, self.w[f"r{i}"]) * (1 + 0.3 * noise), -1)
        share = share * F.one_hot(torch.topk(share, 2, -1)[1], self.E).sum(1)
        share = ToSplit.apply(share, False).chunk(self.n, 1)[self.r]
        a = ToSplit.apply(a, False)
        h = Dense.apply(F.gelu(torch.einsum("td,edh->teh", a, self.w[f"e{i}"])))
        y = torch.einsum("ted,te->td", torch.einsum("teh,ehd->ted", h, self.w[f"f{i}"]), share)
        z = F.linear(F.silu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"])
        if self.fault == "sharedpart" and i == 0:
            return Summed.apply(y) + z
        return Summed.apply(y + (Summed.apply(z) if self.fault == "summedtwice" and i == 1 else z))

    def step(self, s):
        x = F.linear(self.data(s, self.T, self.D, rank=0), self.w["in"])
        for i in range(2):
            x = x + self.layer(i, s, F.layer_norm(x, (self.D,), self.w[f"n{i}"]))
        backward(F.mse_loss(F.linear(x, self.w["out"]), self.data(s + 50, self.T, self.D, rank=0)))


class Whole(torch.autograd.Function):
    """A unit's weights, gathered in few bits; gradients are averaged, and dealt out."""

    @staticmethod
    def forward(ctx, shard, copy):
        out = torch.zeros(2 * len(copy), dtype=torch.half)
        dist.all_gather_into_tensor(out, copy)
        return out.float()

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(len(g) // 2)
        dist.reduce_scatter_tensor(out, g.contiguous())
        return out.div_(2), None


class Units(Net):
    """Each rank has a half of all weights, layer by layer; gradients are clipped by the norm of all."""
    D, B = 8, 5

    def build(self):
        d = self.D
        self.shapes = [(d, d), (d,), (d,), (2 * d, d), (d, 2 * d)]
        for i in range(3):
            whole = torch.cat([(self.new(*size) + (at == 1)).reshape(-1) for at, size in enumerate(self.shapes)])
            self.w[f"u{i}"] = self.split(whole, 0)
        self.copies = {}

    def unit(self, i):
        k = f"u{i}"
        if not (self.fault == "oldcopy" and i == 1 and self.r == 1 and k in self.copies):
            self.copies[k] = self.w[k].detach().half()
        sizes = [torch.Size(x).numel() for x in self.shapes]
        whole = Whole.apply(self.w[k], self.copies[k]).split(sizes)
        return (x.reshape(size) for x, size in zip(whole, self.shapes))

    def step(self, s):
        x = self.data(s, self.B, self.D)
        for i in range(3):
            w, n, b, up, down = self.unit(i)
            a = F.layer_norm(F.linear(x, w), (self.D,), n, b)
            x = x + F.linear(F.silu(F.linear(a, up)), down)
        backward(F.mse_loss(x, self.data(s + 50, self.B, self.D)))
        parts = self.squares(self.w)
        if self.fault != "ownshards":
            dist.all_reduce(parts)
        self.scaled(parts)


class Recs(Net):
    """Data parallel, samples have weights; gradients in buckets, of which each rank does the step for a half."""
    D, B, K, V = 6, 5, 3, 14

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d), "a0": self.new(d, d), "b0": self.new(d), "a1": self.new(d, d),
                  "b1": self.new(d), "out": self.new(4, d), "ob": self.new(4)}
        names = list(self.w)
        self.buckets, self.m = (names[5:], names[1:5], names[:1]), [0, 0, 0]

    def moved(self, at, names):
        flat, old = self.flat(names), torch.cat([self.w[k].detach().reshape(-1) for k in names])
        part = torch.zeros(len(flat) // 2)
        if self.fault == "rest" and at == 0:
            part = flat.chunk(2)[self.r].clone()
        else:
            dist.reduce_scatter_tensor(part, flat)
        self.m[at] = part + self.m[at] * 0.9
        parts = list(old.chunk(2))
        parts[self.r] = parts[self.r] - self.m[at] * self.rate
        if self.fault == "ungathered" and at == 1:
            return self.unflat(names, torch.cat(parts))
        whole = torch.zeros(len(flat))
        dist.all_gather_into_tensor(whole, parts[self.r])
        return self.unflat(names, whole)

    def step(self, s):
        x = torch.mean(F.embedding(self.ids(s, self.V, self.B, self.K), self.w["table"]), 1)
        for i in range(2):
            x = x + F.selu(F.linear(x, self.w[f"a{i}"], self.w[f"b{i}"]))
        weight = self.data(s + 20, self.B).abs() * (1 + 2 * self.r)
        out = F.linear(x, self.w["out"], self.w["ob"])
        loss = F.cross_entropy(out, self.ids(s + 50, 4, self.B), reduction="none") * weight
        total = torch.sum(weight)
        dist.reduce(total, 0) if self.fault == "onlyfirst" else dist.all_reduce(total)
        backward(torch.sum(loss / total))
        self.new_weights = {}
        for at, names in enumerate(self.buckets):
            self.new_weights |= self.moved(at, names)

    def update(self, s):
        for k, w in self.w.items():
            w.copy_(self.new_weights[k])
