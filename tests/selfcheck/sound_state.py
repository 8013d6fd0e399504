"""Networks of sound.py whose weights, or what the optimizer has of them, are not the same on all ranks at all times."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from sound_net import AVG, Net, take


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Zero1(Net):
    """All weights in one vector, with zeros at its end; each rank has a part's moments, and all get what is new."""
    RANKS, D, B, INSIDE, STEPS = 3, 7, 4, True, 3

    def build(self):
        self.model = nn.Sequential(nn.Linear(self.D, 11), nn.LayerNorm(11), nn.ReLU(), nn.Linear(11, 5))
        self.of(self.model)
        count = sum(w.numel() for w in self.w.values())
        self.rest = -count % self.n
        self.size = (count + self.rest) // self.n
        self.m, self.v = torch.zeros(self.size), torch.zeros(self.size)

    def flat_of(self, xs):
        return F.pad(torch.cat([x.reshape(-1) for x in xs]), (0, self.rest))

    def dealt(self, flat):
        at = 0
        for k, w in self.w.items():
            yield k, flat[at:at + w.numel()].view(w.shape)
            at += w.numel()

    def step(self, s):
        x, labels = self.data(s, self.B, self.D), self.ids(s + 50, 5, self.B)
        backward(self, F.cross_entropy(self.model(x), labels))
        self.part = torch.zeros(self.size)
        dist.reduce_scatter_tensor(self.part, self.flat_of([w.grad for w in self.w.values()]), op=AVG)

    def graded(self):
        return dict(self.dealt(torch.cat(take(self.part))))

    def update(self, s):
        squares = torch.dot(self.part, self.part)
        dist.all_reduce(squares)
        self.part *= torch.clamp(0.5 / (torch.sqrt(squares) + 1e-6), max=1.0)
        self.m.mul_(0.9).add_(self.part, alpha=0.1)
        self.v.mul_(0.99).addcmul_(self.part, self.part, value=0.01)
        flat = self.flat_of(self.w.values())
        mine = flat.chunk(self.n)[self.r].clone()
        root = torch.sqrt(self.v / (1 - 0.99 ** (s + 1))) + 1e-8
        mine.sub_(self.m / (1 - 0.9 ** (s + 1)) / root * 0.02)
        dist.all_gather_into_tensor(flat, mine)
        for k, x in self.dealt(flat):
            self.w[k].copy_(x)


class Zero2(Net):
    """Each layer's gradients go to its owner, which does the step and sends the weights."""
    RANKS, D, B, L, INSIDE = 3, 6, 4, 4, True

    def build(self):
        for i in range(self.L):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.mine = {}

    def step(self, s):
        x = self.data(s, self.B, self.D)
        for i in range(self.L):
            x = torch.addmm(self.w[f"b{i}"], torch.tanh(x) if i else x, self.w[f"w{i}"]) + 0.5 * x
        backward(self, F.cosine_similarity(x, self.data(s + 50, self.B, self.D)).mean() * -1.0)
        for i in reversed(range(self.L)):
            flat = torch.cat([self.w[f"{k}{i}"].grad.flatten() for k in "wb"])
            dist.reduce(flat, i % self.n)
            if i % self.n == self.r:
                self.mine[i] = flat / self.n
            self.w[f"w{i}"].grad = self.w[f"b{i}"].grad = None

    def parts(self, flat):
        return flat[:self.D ** 2].view(self.D, self.D), flat[self.D ** 2:]

    def graded(self):
        out = {}
        for i in range(self.L):
            flat = self.mine[i] if i in self.mine else torch.zeros(self.D * (self.D + 1))
            dist.broadcast(flat, i % self.n)
            out[f"w{i}"], out[f"b{i}"] = self.parts(flat)
        return out

    def update(self, s):
        for i in range(self.L):
            flat = torch.cat([self.w[f"{k}{i}"].flatten() for k in "wb"])
            if i in self.mine:
                m = self.moments.setdefault(i, torch.zeros(flat.shape))
                m.mul_(0.9).add_(self.mine[i])
                flat.sub_(self.rate * m)
            dist.broadcast(flat, i % self.n)
            for k, x in zip("wb", self.parts(flat)):
                self.w[f"{k}{i}"].copy_(x)


class Unit(torch.autograd.Function):
    """A layer's weights of all ranks' parts; gradients are summed or averaged, and dealt out."""

    @staticmethod
    def forward(ctx, part, group, op, others):
        ctx.how = group, op, others
        out = torch.zeros(len(part) * dist.get_world_size(group))
        dist.all_gather_into_tensor(out, part, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        group, op, others = ctx.how
        out = torch.zeros(len(g) // dist.get_world_size(group))
        dist.reduce_scatter_tensor(out, g.contiguous(), op=op, group=group)
        if others is not None:
            dist.all_reduce(out, group=others)
            out.div_(dist.get_world_size())
        return out, None, None, None


class Zero3(Net):
    """Each rank has a part of each layer, with zeros behind the last; layers are gathered for the way there, and again
    for the way back."""
    D, T, H, L, STEPS, OP = 6, 5, 2, 3, 3, AVG

    def groups(self):
        self.shards, self.others = None, None

    def build(self):
        self.groups()
        d = self.D
        self.shapes = [(d,), (3 * d, d), (d, d), (d,), (9, d), (9,), (d, 9)]
        count = sum(torch.Size(x).numel() for x in self.shapes)
        n, r = dist.get_world_size(self.shards), dist.get_rank(self.shards)
        for i in range(self.L):
            whole = torch.cat([(self.new(*x) + (x == (d,))).view(-1) for x in self.shapes])
            self.w[f"u{i}"] = F.pad(whole, (0, -count % n)).chunk(n)[r].clone()

    def layer(self, x, part):
        whole, at, ws = Unit.apply(part, self.shards, self.OP, self.others), 0, []
        for size in self.shapes:
            ws.append(whole[at:at + torch.Size(size).numel()].view(size))
            at += ws[-1].numel()
        n, qkv, o, m, u, b, d = ws
        q, k, v = F.linear(F.layer_norm(x, (self.D,), n), qkv).chunk(3, -1)
        q, k, v = (y.reshape(self.T, self.H, -1) for y in (q, k, v))
        p = torch.einsum("ihd,jhd->hij", q, k) * 0.6
        p = F.softmax(p.masked_fill(torch.ones(self.T, self.T).triu(1).bool(), float("-inf")), -1)
        x = x + F.linear(torch.einsum("hij,jhd->ihd", p, v).reshape(self.T, -1), o)
        return x + F.linear(F.relu(F.linear(F.layer_norm(x, (self.D,), m), u, b)), d)

    def step(self, s):
        x = self.data(s, self.T, self.D).requires_grad_()
        for i in range(self.L):
            x = checkpoint(self.layer, x, self.w[f"u{i}"])
        backward(self, F.mse_loss(x, self.data(s + 50, self.T, self.D)))

    def update(self, s):
        self.adam(s)


class Hybrid(Zero3):
    """The same in two nodes, which have the same parts; in a node parts are summed, then over the nodes."""
    RANKS, STEPS, OP = 4, 2, dist.ReduceOp.SUM

    def groups(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.shards, self.others = pairs[self.r // 2], pairs[2 + self.r % 2]


class Local(Net):
    """Each rank goes on alone with momentum; after two steps weights are averaged."""
    RANKS, D, B, STEPS, INSIDE, CHECKED = 3, 6, 4, 4, True, ()

    def build(self):
        self.model = self.of(nn.Sequential(nn.Linear(self.D, 9), nn.Sigmoid(), nn.Linear(9, 9), nn.ELU(),
                                           nn.Linear(9, 4)))

    def step(self, s):
        backward(self, F.cross_entropy(self.model(self.data(s, self.B, self.D)), self.ids(s + 50, 4, self.B)))

    def update(self, s):
        self.momentum(by=0.8)
        if s % 2:
            for w in self.w.values():
                dist.all_reduce(w)
                w.div_(self.n)


class Outer(Local):
    """The same; what all ranks have moved since the last time is averaged, and is an outer optimizer's gradient."""

    def build(self):
        super().build()
        self.start = {k: w.detach().clone() for k, w in self.w.items()}
        self.outer = {k: torch.zeros(w.shape) for k, w in self.w.items()}

    def update(self, s):
        self.adam(s)
        if s % 2:
            moved = torch.cat([(self.start[k] - w).view(-1) for k, w in self.w.items()])
            dist.all_reduce(moved, op=AVG)
            at = 0
            for k, w in self.w.items():
                g = moved[at:at + w.numel()].view(w.shape)
                at += w.numel()
                self.outer[k].mul_(0.9).add_(g)
                self.start[k].sub_(0.7 * (g + 0.9 * self.outer[k]))
                w.copy_(self.start[k])


class Server(Net):
    """Rank 0 has no samples: it takes each worker's gradients, does the step, and sends the weights to all."""
    RANKS, D, B, INSIDE, STEPS, SHARE = 3, 6, 4, True, 3, 0.5

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}
        self.sum = None

    def run(self, s):
        x = self.data(s, self.B, self.D)
        for i in range(3):
            x = x + torch.tanh(torch.matmul(x, self.w[f"w{i}"]) + self.w[f"b{i}"])
        backward(self, F.smooth_l1_loss(x, self.data(s + 50, self.B, self.D)))
        return torch.cat([w.grad.view(-1) for w in self.w.values()])

    def step(self, s):
        if self.r:
            dist.send(self.run(s), 0)
            return
        got = torch.zeros(sum(w.numel() for w in self.w.values()))
        self.sum = torch.zeros(got.shape)
        for r in (1, 2):
            dist.recv(got, r)
            self.sum.add_(got)
        self.sum.div_(2)

    def graded(self):
        return {} if self.r else self.dealt(self.sum)

    def dealt(self, flat):
        sizes = [w.numel() for w in self.w.values()]
        return {k: x.view(w.shape) for (k, w), x in zip(self.w.items(), torch.split(flat, sizes))}

    def update(self, s):
        if self.r == 0:
            for k, g in self.dealt(self.sum).items():
                self.w[k].sub_(self.rate * g)
        for w in self.w.values():
            dist.broadcast(w, 0)


class Stale(Server):
    """No worker waits for the other: each gets the weights as they are when its own gradients are in, so that the
    first has older ones."""
    PART, STEPS, CHECKED = True, 4, ()

    def step(self, s):
        self.grad = self.run(s) if self.r else None

    def update(self, s):
        flat = torch.cat([w.view(-1) for w in self.w.values()])
        if self.r:
            dist.send(self.grad, 0)
            dist.recv(flat, 0)
        else:
            got = torch.zeros(flat.shape)
            for r in (1, 2):
                dist.recv(got, r)
                flat.sub_(got, alpha=self.rate)
                dist.send(flat, r)
        for k, x in self.dealt(flat).items():
            self.w[k].copy_(x)


class Round(Net):
    """No rank has all others' weights: each averages its own with what the one before it in a ring sends."""
    RANKS, D, B, STEPS, INSIDE, PART, CHECKED = 3, 5, 4, 3, True, True, ()

    def build(self):
        self.w = {"a": self.new(self.D, self.D), "b": self.new(self.D), "c": self.new(2, self.D)}

    def step(self, s):
        h = F.hardtanh(F.linear(self.data(s, self.B, self.D), self.w["a"], self.w["b"]))
        backward(self, F.binary_cross_entropy_with_logits(F.linear(h, self.w["c"]),
                                                          self.ids(s + 50, 2, self.B, 2).float()))

    def update(self, s):
        super().update(s)
        mine = torch.cat([w.view(-1) for w in self.w.values()])
        got, after, before = torch.zeros(mine.shape), (self.r + 1) % self.n, (self.r - 1) % self.n
        if self.r == 0:
            dist.send(mine, after)
            dist.recv(got, before)
        else:
            dist.recv(got, before)
            dist.send(mine, after)
        mean, at = (mine + got) * 0.5, 0
        for w in self.w.values():
            w.copy_(mean[at:at + w.numel()].view(w.shape))
            at += w.numel()


class Remote(Net):
    """Tables of rare words, two on each rank, of which each gets the rows that all ranks ask for; the rest is there
    on all ranks. Words that nobody asks for have no gradient."""
    D, B, V, TABLES = 4, 5, (9, 3, 20, 6), 4

    def build(self):
        self.per = self.TABLES // self.n
        tables = [self.new(v, self.D) for v in self.V]
        for i in range(self.per):
            self.w[f"t{self.r * self.per + i}"] = tables[self.r * self.per + i]
        pairs = 5 * 4 // 2
        self.w |= {"x": self.new(self.D, 3), "xb": self.new(self.D), "u": self.new(7, pairs + self.D),
                   "ub": self.new(7), "o": self.new(1, 7)}

    def step(self, s):
        ids = torch.stack([self.ids(s + 3 * i, v, self.B) for i, v in enumerate(self.V)])
        asked = [torch.zeros(self.per, self.B, dtype=torch.long) for _ in range(self.n)]
        dist.all_to_all(asked, list(ids.split(self.per)))
        rows = torch.stack([torch.stack([F.embedding(a[i], self.w[f"t{self.r * self.per + i}"])
                                         for i in range(self.per)]) for a in asked])
        rows = Return.apply(rows).reshape(self.TABLES, self.B, self.D)
        x = F.relu(F.linear(self.data(s + 40, self.B, 3), self.w["x"], self.w["xb"]))
        every = torch.cat([x[None], rows]).permute(1, 0, 2)
        with_all = every @ every.transpose(1, 2)
        a, b = torch.ones(5, 5).triu(1).nonzero(as_tuple=True)
        h = F.relu(F.linear(torch.cat([x, with_all[:, a, b]], 1), self.w["u"], self.w["ub"]))
        clicks = self.ids(s + 50, 2, self.B).to(h.dtype)
        backward(self, F.binary_cross_entropy_with_logits(F.linear(h, self.w["o"])[:, 0], clicks))
        self.bucket([k for k in self.w if k[0] != "t"])
        for k in self.w:
            if k[0] == "t":
                self.w[k].grad.mul_(1 / self.n)


class Return(torch.autograd.Function):
    """The i-th row goes to rank i."""

    @staticmethod
    def forward(ctx, x):
        outs = [torch.zeros(x[0].shape) for _ in x]
        dist.all_to_all(outs, list(x.contiguous().unbind(0)))
        return torch.stack(outs)

    @staticmethod
    def backward(ctx, g):
        return Return.forward(ctx, g)


NETS = {"zero1": Zero1, "zero2": Zero2, "zero3": Zero3, "hybrid": Hybrid, "local": Local, "outer": Outer,
        "paramserver": Server, "stale": Stale, "round": Round, "remote": Remote}
