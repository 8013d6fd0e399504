#!/usr/bin/env python3
"""Dumps of runs on two to four ranks: networks and bugs that came after the rules that are judged by them.

Usage: held.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --held scores these. Networks: latent, pairs, halo, grouped, chunks,
hybrid, policy, denoise, adapters, scan. The bugs are of kinds that users of PyTorch, Megatron-LM, DeepSpeed,
NeMo and torchtitan reported; what each is stands beside it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import others
import recorder
import unseen
from command import of_networks
from fresh import OPS, Summed, ToSplit
from others import FromAll, ToAll, Wide

recorder.MODEL = os.path.abspath(__file__)
OPS["Functional"] = (F, OPS["Functional"][1] + " group_norm")

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # A part of the keys is one for the heads of all ranks; its gradient stays with each.
    "sharedkey": ("latent", r"(matmul|split|linear)\.\d+\.(backward|forward)", "01"),
    # The loss goes by chunks, and the gradient of one is taken for whole.
    "chunk": ("latent", r"linear\.\d+\.backward|chunk|layer_norm.*backward", "01"),
    # What is added to a gate is drawn anew on each rank.
    "jitter": ("latent", r"(__add__|sigmoid|__mul__)\.\d+\.forward", "01"),
    # Which column belongs to a row: that of rank 0 on all ranks.
    "targets": ("pairs", r"cross_entropy\.\d+\.forward", "01"),
    # A gather that autograd does not know, with the rank's own rows put in their place.
    "nograd": ("pairs", r"all_gather|cat|backward", "01"),
    # The temperature is not joined.
    "temp": ("pairs", r"(exp|__mul__)\.\d+\.(backward|forward)", "01"),
    # The neighbour's other edge.
    "wrap": ("halo", r"all_gather|cat|conv2d", "012"),
    # Gradients of edges do not go back to their owner.
    "haloback": ("halo", r"backward|all_gather", "012"),
    # Heads of keys that two ranks hold: gradients are not summed, averaged, summed with those of another head.
    "kvpair": ("grouped", r"linear\.\d+\.(backward|forward)", "0123"),
    "kvmean": ("grouped", r"div_|all_reduce", "0123"),
    "kvall": ("grouped", r"all_reduce\.\d+\.forward", "0123"),
    # The head of the last stage begins as another embedding.
    "tiedinit": ("chunks", r"step0:(embedding|linear|all_reduce)", "01"),
    # A buffer that nobody filled is sent back.
    "zerograd": ("chunks", r"send|recv|backward", "01"),
    # Of accumulated gradients the last is joined over the copies, and the others are added then.
    "lastonly": ("hybrid", r"all_reduce|__add__|reduce_scatter", "0123"),
    # What is whole on all ranks is divided by half of them.
    "under": ("hybrid", r"div_", "0123"),
    # What is whole on all ranks is joined among half of them.
    "normgroup": ("hybrid", r"all_reduce|layer_norm", "0123"),
    # Rewards: the mean over all ranks, but each rank's own deviation.
    "whiten": ("policy", r"sum|sqrt|__truediv__|all_reduce", "01"),
    # The old policy was not loaded on one rank.
    "oldpolicy": ("policy", r"step0:linear\.\d+\.forward", "1"),
    # A buffer that is in no checkpoint stays as it was allocated on one rank.
    "freqs": ("denoise", r"(__mul__|cos|sin)\.\d+\.forward", "1"),
    # No sampler deals the data out.
    "samedata": ("denoise", r"step0:(sigmoid|conv2d|__mul__|cat|all_reduce|div_)", "01"),
    # The last bucket is never full.
    "flush": ("denoise", r"(conv2d|group_norm|linear)\.\d+\.(backward|forward)", "01"),
    # An adapter's factor that sees a part of the sequence.
    "lorab": ("adapters", r"linear\.\d+\.(backward|forward)", "01"),
    # An adapter's output that is whole goes into the sum.
    "loratwice": ("adapters", r"(reduce_scatter_tensor|__add__|linear)\.\d+\.forward", "01"),
    # The state that came is not used.
    "state": ("scan", r"recv|__mul__\.\d+\.forward", "1"),
    # The gradient of the state does not go back.
    "stategrad": ("scan", r"send|recv|backward", "01"),
}
RANKS = {"halo": 3, "grouped": 4, "hybrid": 4}


def backward(loss):
    loss.backward()


class Net(unseen.Net):
    def noise(self, s, *shape, own):
        g = torch.Generator().manual_seed(31 * self.seed + 5 * s + (1000 * self.r if own else 0))
        return torch.randn(shape, generator=g)


class Latent(Net):
    """Tensor parallel: keys and values come of few numbers, a part of the keys is one for all heads."""
    D, T, HEADS, A, B, L, V = 12, 8, 2, 4, 2, 6, 20

    def build(self):
        h, w = self.HEADS, self.HEADS * self.n
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"down{i}": self.new(self.L + self.B, self.D),
                       f"ln{i}": 1 + self.new(self.L),
                       f"up{i}": self.split(self.new(w * 2 * self.A, self.L), 0),
                       f"q{i}": self.split(self.new(w * (self.A + self.B), self.D), 0),
                       f"o{i}": self.split(self.new(self.D, w * self.A), 1),
                       f"m{i}": 1 + self.new(self.D), f"gate{i}": self.new(self.D, self.D),
                       f"u{i}": self.split(self.new(16, self.D), 0),
                       f"d{i}": self.split(self.new(self.D, 16), 1)}
        self.w |= {"nf": 1 + self.new(self.D), "head": self.split(self.new(self.V, self.D), 0)}
        self.h = h

    def heads(self, x):
        return x.reshape(self.T, self.h, -1).transpose(0, 1)

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=0) for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            lat, key = F.linear(a, self.w[f"down{i}"]).split([self.L, self.B], -1)
            lat = ToSplit.apply(F.layer_norm(lat, (self.L,), self.w[f"ln{i}"]), False)
            key = key if self.fault == "sharedkey" else ToSplit.apply(key, False)
            k, v = self.heads(F.linear(lat, self.w[f"up{i}"])).split([self.A, self.A], -1)
            q, r = self.heads(F.linear(ToSplit.apply(a, False), self.w[f"q{i}"])).split([self.A, self.B], -1)
            p = torch.matmul(q, k.transpose(1, 2)) + torch.matmul(r, key.transpose(0, 1))
            y = torch.matmul(F.softmax(p * 0.4, -1), v).transpose(0, 1).reshape(self.T, -1)
            x = x + Summed.apply(F.linear(y, self.w[f"o{i}"]))
            a = F.layer_norm(x, (self.D,), self.w[f"m{i}"])
            g = F.linear(a, self.w[f"gate{i}"]) + self.noise(s, self.T, self.D, own=self.fault == "jitter" and i == 1)
            h = F.gelu(F.linear(ToSplit.apply(a, False), self.w[f"u{i}"]))
            x = x + Summed.apply(F.linear(h, self.w[f"d{i}"])) * torch.sigmoid(g)
        loss = 0
        for c, part in enumerate(F.layer_norm(x, (self.D,), self.w["nf"]).chunk(2, 0)):
            part = ToSplit.apply(part, self.fault == "chunk" and c == 1)
            out = Wide.apply(F.linear(part, self.w["head"]), 1)
            loss = loss + F.cross_entropy(out, labels.chunk(2)[c]) * 0.5
        backward(loss)


class Pairs(Net):
    """Data parallel: two towers, each rank's rows against the columns of all ranks."""
    D, B, V = 10, 5, 30

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            for k in "it":
                self.w |= {f"{k}{i}": self.new(self.D, self.D), f"{k}b{i}": self.new(self.D)}
        self.w |= {"temp": 0.5 + self.new(1)}

    def tower(self, k, x):
        for i in range(3):
            x = x + torch.tanh(F.linear(x, self.w[f"{k}{i}"], self.w[f"{k}b{i}"]))
        return F.layer_norm(x, (self.D,)) * 0.5

    def wide(self, x):
        if self.fault != "nograd":
            return FromAll.apply(x)
        parts = list(FromAll.forward(None, x.detach()).chunk(self.n))
        parts[self.r] = x
        return torch.cat(parts)

    def step(self, s):
        i = self.tower("i", self.data(s, self.B, self.D))
        t = self.tower("t", torch.mean(F.embedding(self.ids(s, self.V, self.B, 4), self.w["embed"]), 1))
        at = torch.arange(self.B) + (0 if self.fault == "targets" else self.B * self.r)
        temp = torch.exp(self.w["temp"])
        loss = F.cross_entropy(torch.matmul(i, self.wide(t).transpose(0, 1)) * temp, at) + \
            F.cross_entropy(torch.matmul(t, self.wide(i).transpose(0, 1)) * temp, at)
        backward(loss * 0.5)
        self.average([k for k in self.w if not (self.fault == "temp" and k == "temp")])


class Edges(torch.autograd.Function):
    """A rank's rows between the neighbours' edges, zeros where there is no neighbour."""

    @staticmethod
    def exchanged(top, low):
        r, n = dist.get_rank(), dist.get_world_size()
        mine = torch.cat([top, low], 2)
        parts = [torch.zeros_like(mine) for _ in range(n)]
        dist.all_gather(parts, mine)
        return parts[r - 1] if r > 0 else None, parts[r + 1] if r < n - 1 else None

    @staticmethod
    def forward(ctx, x, turned, lost):
        ctx.lost = lost
        above, below = Edges.exchanged(x[:, :, :1], x[:, :, -1:])
        zero = torch.zeros_like(x[:, :, :1])
        above = zero if above is None else above[:, :, :1] if turned else above[:, :, 1:]
        below = zero if below is None else below[:, :, 1:] if turned else below[:, :, :1]
        return torch.cat([above, x, below], 2)

    @staticmethod
    def backward(ctx, g):
        above, below = Edges.exchanged(g[:, :, :1], g[:, :, -1:])
        g = g[:, :, 1:-1].clone()
        if above is not None and not ctx.lost:
            g[:, :, :1] += above[:, :, 1:]
        if below is not None and not ctx.lost:
            g[:, :, -1:] += below[:, :, :1]
        return g, None, None


class Halo(Net):
    """Images by rows on three ranks; convolutions see a row of each neighbour."""
    C = 5

    def build(self):
        for i, k in enumerate((3, self.C, self.C)):
            self.w |= {f"c{i}": self.new(self.C, k, 3, 3), f"b{i}": self.new(self.C)}
        self.w |= {"out": self.new(2, self.C, 1, 1)}

    def step(self, s):
        x = self.data(s, 2, 3, 9, 6, rank=0).chunk(self.n, 2)[self.r].contiguous()
        want = self.data(s + 50, 2, 2, 9, 6, rank=0).chunk(self.n, 2)[self.r].contiguous()
        for i in range(3):
            y = Edges.apply(x, self.fault == "wrap" and i == 1, self.fault == "haloback" and i == 1)
            y = F.relu(F.conv2d(y, self.w[f"c{i}"], self.w[f"b{i}"], padding=(0, 1)))
            x = x + y if i else y
        backward(F.mse_loss(F.conv2d(x, self.w["out"]), want))
        self.average(self.w)


class Grouped(Net):
    """Tensor parallel on four ranks, two heads of keys and values, each on two ranks."""
    D, T, HD, V = 8, 7, 4, 16

    def build(self):
        self.pair = [dist.new_group(p) for p in ([0, 1], [2, 3])][self.r // 2]
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.split(self.new(self.HD * self.n, self.D), 0),
                       f"kv{i}": self.split(self.new(4 * self.HD, self.D), 0, 2, self.r // 2),
                       f"o{i}": self.split(self.new(self.D, self.HD * self.n), 1)}
        self.w |= {"head": self.new(self.V, self.D)}

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=0) for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            a = ToSplit.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), False)
            k, v = F.linear(a, self.w[f"kv{i}"]).chunk(2, 1)
            p = F.softmax(torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.5, -1)
            x = x + Summed.apply(F.linear(torch.matmul(p, v), self.w[f"o{i}"]))
        backward(F.cross_entropy(F.linear(x, self.w["head"]), labels))
        for i in range(3):
            g = self.w[f"kv{i}"].grad
            if self.fault != "kvpair":
                dist.all_reduce(g, group=None if self.fault == "kvall" else self.pair)
            if self.fault == "kvmean":
                g.div_(2)


class Chunks(Net):
    """Two ranks, each of which has two of the four parts of a pipeline; two micro-batches, tied weights."""
    D, V = 10, 18

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(8):
            w = {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
            if i // 2 % 2 == self.r:
                self.w |= w
        if self.fault == "tiedinit" and self.r == 1:
            self.w["embed"] = self.new(self.V, self.D)

    def part(self, c, x):
        for i in (2 * c, 2 * c + 1):
            x = x + F.silu(F.linear(x, self.w[f"w{i}"], self.w[f"b{i}"]))
        return x

    def received(self):
        x = torch.zeros(5, self.D)
        dist.recv(x, 1 - self.r)
        return x.requires_grad_()

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, 10, rank=0).split(5) for k in (0, 50))
        ins, outs = [], []
        for m in range(2):
            for c in (0, 2) if self.r == 0 else (1, 3):
                x = F.embedding(ids[m], self.w["embed"]) if c == 0 else self.received()
                ins.append(x)
                outs.append(self.part(c, x))
                if c < 3:
                    dist.send(outs[-1].detach(), 1 - self.r)
        for m in range(2):
            for k in (1, 0):
                x, y = ins[2 * m + k], outs[2 * m + k]
                if self.r == 1 and k == 1:
                    backward(F.cross_entropy(F.linear(y, self.w["embed"]), labels[m]) * 0.5)
                else:
                    y.backward(self.received().detach())
                if self.r == 1 or k == 1:
                    empty = self.fault == "zerograd" and m == 1 and self.r == 1 and k == 1
                    dist.send(torch.zeros_like(x) if empty else x.grad, 1 - self.r)
        dist.all_reduce(self.w["embed"].grad)


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape, group):
        ctx.group = group
        out = torch.zeros(shape)
        dist.all_gather_into_tensor(out, shard, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(g.numel() // 2)
        dist.reduce_scatter_tensor(out, g.reshape(-1), group=ctx.group)
        return out, None, None


class Hybrid(Net):
    """Two nodes, each with a half of the weights on either rank, norms on all; two micro-batches."""
    D = 8

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.shards, self.copies = groups[self.r // 2], groups[2 + self.r % 2]
        for i in range(4):
            u, n = self.new(self.D, self.D), 1 + self.new(self.D)
            self.w |= {f"u{i}": u.reshape(-1).chunk(2)[self.r % 2].clone(), f"n{i}": n}

    def step(self, s):
        first = {}
        for m in range(2):
            x, want = (self.data(s + 10 * m + k, 5, self.D) for k in (0, 5))
            for i in range(4):
                u = Whole.apply(self.w[f"u{i}"], (self.D, self.D), self.shards)
                x = x + F.gelu(F.linear(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), u))
            backward(F.mse_loss(x, want) * 0.5)
            if self.fault == "lastonly" and m == 0:
                first = {k: w.grad for k, w in self.w.items() if k[0] == "u"}
                for k in first:
                    self.w[k].grad = None
        for k, w in self.w.items():
            if k[0] == "u":
                dist.all_reduce(w.grad, group=self.copies)
                if k in first:
                    w.grad = w.grad + first[k]
                w.grad.div_(4)
                continue
            dist.all_reduce(w.grad, group=self.shards if self.fault == "normgroup" else None)
            w.grad.div_(2 if self.fault in ("under", "normgroup") else 4)


class Policy(Net):
    """Data parallel: a policy beside an old one, rewards by their mean and deviation over all ranks."""
    D, A, T = 8, 6, 9

    def build(self):
        old = {}
        for i in range(3):
            old |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        old |= {"out": self.new(self.A, self.D)}
        self.w = {k: w + 0.3 * self.new(*w.shape) for k, w in old.items()}
        self.old = old
        if self.fault == "oldpolicy" and self.r == 1:
            self.old = {k: self.new(*w.shape) for k, w in old.items()}

    def chosen(self, w, x, which):
        for i in range(3):
            x = x + torch.tanh(F.linear(x, w[f"w{i}"], w[f"b{i}"]))
        p = F.softmax(F.linear(x, w["out"]), -1)
        return torch.log(torch.gather(p, 1, which).reshape(-1))

    def step(self, s):
        x, which = self.data(s, self.T, self.D), self.ids(s, self.A, self.T, 1)
        reward = self.data(s + 50, self.T) * (1 + self.r) + 0.3
        mean = torch.sum(reward)
        dist.all_reduce(mean)
        off = reward - mean / (self.n * self.T)
        square = torch.sum(off * off)
        if self.fault != "whiten":
            dist.all_reduce(square)
        gain = off / torch.sqrt(square / (self.T * (1 if self.fault == "whiten" else self.n)))
        with torch.no_grad():
            before = self.chosen(self.old, x, which)
        ratio = torch.exp(self.chosen(self.w, x, which) - before)
        backward(torch.mean(ratio * gain) * -1)
        self.average(self.w)


class Denoise(Net):
    """Data parallel: images with noise, the time by its waves; gradients in buckets."""
    C = 6

    def build(self):
        self.freqs = torch.tensor([1.0, 0.3, 0.1])
        if self.fault == "freqs" and self.r == 1:
            self.freqs = self.freqs * torch.tensor([0.7, 2.0, 5.0])
        for i, k in enumerate((3, self.C, self.C)):
            self.w |= {f"c{i}": self.new(self.C, k, 3, 3), f"t{i}": self.new(self.C, 6), f"g{i}": 1 + self.new(self.C)}
        self.w |= {"out": self.new(3, self.C, 3, 3)}

    def step(self, s):
        who = 0 if self.fault == "samedata" else self.r
        x, noise = (self.data(s + k, 4, 3, 6, 6, rank=who) for k in (0, 50))
        t = torch.sigmoid(self.data(s + 70, 4, 1, rank=who))
        at = t * 10 * self.freqs
        time = torch.cat([torch.cos(at), torch.sin(at)], 1)
        x = x + noise * t.reshape(4, 1, 1, 1)
        for i in range(3):
            y = F.conv2d(x, self.w[f"c{i}"], padding=1) + F.linear(time, self.w[f"t{i}"]).reshape(4, self.C, 1, 1)
            y = F.silu(F.group_norm(y, 2, self.w[f"g{i}"]))
            x = x + y if i else y
        backward(F.mse_loss(F.conv2d(x, self.w["out"], padding=1), noise))
        names = list(self.w)[::-1]
        for bucket in (names[:3], names[3:7], names[7:]):
            if self.fault == "flush" and bucket == names[7:]:
                continue
            flat = torch.cat([self.w[k].grad.reshape(-1) for k in bucket])
            dist.all_reduce(flat)
            flat.div_(self.n)
            for k, g in zip(bucket, flat.split([self.w[k].numel() for k in bucket])):
                self.w[k].grad.copy_(g.view(self.w[k].shape))


class Adapters(Net):
    """Parts of a sequence between products whose weights are split and stay; what is trained is beside them."""
    D, S, H, R = 10, 8, 16, 3

    def build(self):
        self.frozen = []
        for i in range(3):
            self.frozen.append((self.split(self.new(self.H, self.D), 0), self.split(self.new(self.D, self.H), 1)))
            self.w |= {f"n{i}": 1 + self.new(self.D), f"ua{i}": self.new(self.R, self.D),
                       f"ub{i}": self.split(self.new(self.H, self.R), 0),
                       f"da{i}": self.split(self.new(self.R, self.H), 1), f"db{i}": self.new(self.D, self.R)}

    def step(self, s):
        x, want = (self.data(s + k, self.S, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        for i, (up, down) in enumerate(self.frozen):
            a = FromAll.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]))
            h = F.gelu(F.linear(a, up) + F.linear(F.linear(a, self.w[f"ua{i}"]), self.w[f"ub{i}"]))
            small = F.linear(h, self.w[f"da{i}"])
            if self.fault == "loratwice":
                x = x + ToAll.apply(F.linear(h, down) + F.linear(Summed.apply(small), self.w[f"db{i}"]))
            else:
                x = x + ToAll.apply(F.linear(h, down)) + F.linear(ToAll.apply(small), self.w[f"db{i}"])
        backward(F.mse_loss(x, want))
        for k, w in self.w.items():
            if k[:2] not in ("ub", "da") and not (self.fault == "lorab" and k[:2] == "db"):
                dist.all_reduce(w.grad)
            w.grad.div_(self.n)


class Onward(torch.autograd.Function):
    """The state behind the last element goes to the next rank."""

    @staticmethod
    def forward(ctx, y, state, lost):
        ctx.lost, ctx.shape = lost, state.shape
        dist.send(state.contiguous(), dist.get_rank() + 1)
        return y.view_as(y)

    @staticmethod
    def backward(ctx, g):
        back = torch.zeros(ctx.shape)
        if not ctx.lost:
            dist.recv(back, dist.get_rank() + 1)
        return g, back, None


class Came(torch.autograd.Function):
    @staticmethod
    def forward(ctx, state, lost):
        ctx.lost = lost
        state = state.clone()
        dist.recv(state, dist.get_rank() - 1)
        return state

    @staticmethod
    def backward(ctx, g):
        if not ctx.lost:
            dist.send(g.contiguous(), dist.get_rank() - 1)
        return g, None


class Scan(Net):
    """Context parallel: a state runs through the sequence, from one rank to the next."""
    D, B, T, V = 7, 3, 4, 14

    def build(self):
        self.w = {"embed": self.new(self.V, self.D)}
        for i in range(3):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"i{i}": self.new(self.D, self.D),
                       f"f{i}": 1 + self.new(self.D), f"o{i}": self.new(self.D, self.D)}
        self.w |= {"head": self.new(self.V, self.D)}

    def scanned(self, i, x, lost):
        state, keep = torch.zeros(self.B, self.D, requires_grad=True), torch.sigmoid(self.w[f"f{i}"])
        if self.r > 0:
            came = Came.apply(state, lost)
            state = state if self.fault == "state" and i == 1 else came
        outs = []
        for t in F.linear(x, self.w[f"i{i}"]).chunk(self.T, 1):
            state = state * keep + t.reshape(self.B, self.D)
            outs.append(state)
        y = torch.stack(outs, 1)
        return Onward.apply(y, state, lost) if self.r < self.n - 1 else y

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.B, self.n * self.T, rank=0).chunk(self.n, 1)[self.r]
                       for k in (0, 50))
        x = F.embedding(ids, self.w["embed"])
        for i in range(3):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            y = self.scanned(i, a, self.fault == "stategrad" and i == 1 or self.fault == "state" and i == 1)
            x = x + F.linear(y, self.w[f"o{i}"])
        out = F.linear(x, self.w["head"])
        backward(F.cross_entropy(out.reshape(-1, self.V), labels.reshape(-1)))
        self.average(self.w)


NETS = {"latent": Latent, "pairs": Pairs, "halo": Halo, "grouped": Grouped, "chunks": Chunks, "hybrid": Hybrid,
        "policy": Policy, "denoise": Denoise, "adapters": Adapters, "scan": Scan}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
