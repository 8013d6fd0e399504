"""Networks of kinds.py whose layers or sequences are split between ranks, and their bugs, each with a report
of it."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, Deal, Fetch, Gather, Join, Net, Same, Sum

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/NVIDIA/Megatron-LM/issues/1446 "the main_grad of parameters in final_layernorm are
    # different on different TP ranks"
    "finalnorm": ("sequence", r"Tensor.__mul__.16.backward", "01"),
    # https://github.com/EleutherAI/gpt-neox/pull/1259 "sum in the LayerNorm gradient in the sequence
    # dimension instead of average"
    "rowbias": ("sequence", r"all_reduce.7\.|Tensor.__add__.(3|6|9|12).backward", "01"),
    # https://github.com/NVIDIA/TransformerEngine/issues/435 "we need all-reduce norm weight gradients": here
    # of norms of queries and keys, which each rank applies to its heads
    "qknorm": ("vit", r"layer_norm.[12].backward", "0123"),
    # https://github.com/EleutherAI/gpt-neox/pull/1257 gradients of norms summed "across the TP group as well
    # as the DP group": here where the sequence is not split, so that they are whole already
    "normstoo": ("vit", r"all_reduce.[6-9]\.|layer_norm.[03].backward", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/issues/443 "additional allreduce necessary" for what each rank has
    # a part of the gradient of: here of a temperature of each head
    "headscale": ("ulysses", r"Tensor.(__getitem__.(8|15)|__mul__.[02]).backward", "01"),
    # https://github.com/unslothai/unsloth-zoo/pull/1023 "compute a separate mean for each microbatch, after
    # which" these are averaged
    "microcount": ("ulysses", r"Tensor.(__truediv__.[01]\.|__mul__.[25].forward)", "01"),
    # https://github.com/PrimeIntellect-ai/prime-rl/pull/2562 "ranks with fewer loss tokens implicitly
    # upweight their per-token gradient contribution"
    "localcount": ("ring", r"Tensor.(sum.0|__mul__.5|__truediv__.2)\.", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/906 "wrong loss scaling when context parallel is on"
    "cpaverage": ("context", r"all_reduce.2\.|Tensor.__truediv__.0\.", "0123"),
}


def part(w, axis, group=None):
    return w.chunk(dist.get_world_size(group), axis)[dist.get_rank(group)].clone()


def square(net):
    """Of four ranks: the group of this rank's row and of its column."""
    groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
    return groups[net.r // 2], groups[2 + net.r % 2]


def rms(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def attend(q, k, v, past=None):
    """past: of how many keys the first query sees the last; None sees all."""
    scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if past is not None:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(past)
        scores = scores.masked_fill(hidden, -math.inf)
    return torch.matmul(F.softmax(scores, -1), v)


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Sequence(Net):
    """A decoder of two layers with split heads and split sequence between; the vocabulary of the head is
    split."""
    T, B, D, V = 6, 2, 8, 12

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "pos": self.new(self.T, d)}
        for i in range(2):
            self.w |= {f"n1.{i}": 1 + self.new(d), f"ob.{i}": self.new(d), f"n2.{i}": 1 + self.new(d),
                       f"db.{i}": self.new(d)}
            for k in "qkv":
                self.w[f"{k}.{i}"] = part(self.new(d, d, by=0.5), 0)
            self.w |= {f"o.{i}": part(self.new(d, d), 1), f"up.{i}": part(self.new(2 * d, d), 0),
                       f"down.{i}": part(self.new(d, 2 * d), 1)}
        self.w |= {"nf": 1 + self.new(d), "out": part(self.new(self.V, d, by=0.5), 0)}

    def layer(self, x, i):
        w = {k[:-2]: v for k, v in self.w.items() if k.endswith(f".{i}")}
        h = Fetch.apply(rms(x, w["n1"]))
        q, k, v = (F.linear(h, w[k]).permute(1, 0, 2) for k in "qkv")
        x = x + Deal.apply(F.linear(attend(q, k, v, 1).permute(1, 0, 2), w["o"])) + w["ob"]
        h = F.gelu(F.linear(Fetch.apply(rms(x, w["n2"])), w["up"]))
        return x + Deal.apply(F.linear(h, w["down"])) + w["db"]

    def step(self, s):
        ids = self.ids(s, self.V, self.B, self.T + 1, rank=0)
        mine = torch.arange(self.T).chunk(2)[self.r]
        x = F.embedding(ids[:, mine], self.w["table"]).transpose(0, 1) + self.w["pos"][mine][:, None]
        for i in range(2):
            x = self.layer(x, i)
        out = Join.apply(F.linear(Fetch.apply(rms(x, self.w["nf"])), self.w["out"]), -1)
        goal = ids[:, 1:].transpose(0, 1).reshape(-1)
        backward(self, F.cross_entropy(out.reshape(-1, self.V), goal, label_smoothing=0.1))
        names = [k for k in self.w if k[:2] in ("ta", "po", "n1", "n2", "nf", "ob", "db")]
        if self.fault == "finalnorm":
            names.remove("nf")
        biases = [k for k in names if k[:2] in ("ob", "db")]
        self.each(names=[k for k in names if k not in biases])
        self.bucket(biases, AVG if self.fault == "rowbias" else dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s)


class Vit(Net):
    """Patches of images; heads with norms of queries and keys and hidden units are split in pairs, and two
    pairs have other images."""
    RANKS, B, T, D = 4, 3, 4, 16

    def build(self):
        self.tp, self.dp = square(self)
        d = self.D
        self.w = {"patch": self.new(d, 12), "pb": self.new(d), "pos": self.new(self.T, d),
                  "n1": 1 + self.new(d),
                  "b1": self.new(d), "qn": 1 + self.new(4), "kn": 1 + self.new(4), "ob": self.new(d),
                  "n2": 1 + self.new(d), "b2": self.new(d), "db": self.new(d), "head": self.new(5, d, by=0.5)}
        for k in "qkv":
            self.w[k] = part(self.new(d, d, by=0.5), 0, self.tp)
        self.w |= {"o": part(self.new(d, d), 1, self.tp), "up": part(self.new(2 * d, d), 0, self.tp),
                   "down": part(self.new(d, 2 * d), 1, self.tp)}

    def step(self, s):
        w, own = self.w, self.r // 2
        x = F.linear(self.data(s, self.B, self.T, 12, rank=own), w["patch"], w["pb"]) + w["pos"]
        h = Same.apply(F.layer_norm(x, (self.D,), w["n1"], w["b1"]), self.tp)
        q, k, v = (F.linear(h, w[k]).reshape(self.B, self.T, 2, 4).permute(0, 2, 1, 3) for k in "qkv")
        a = attend(F.layer_norm(q, (4,), w["qn"]), F.layer_norm(k, (4,), w["kn"]), v)
        a = a.permute(0, 2, 1, 3).reshape(self.B, self.T, self.D // 2)
        x = x + Sum.apply(F.linear(a, w["o"]), self.tp) + w["ob"]
        h = Same.apply(F.layer_norm(x, (self.D,), w["n2"], w["b2"]), self.tp)
        x = x + Sum.apply(F.linear(F.gelu(F.linear(h, w["up"])), w["down"]), self.tp) + w["db"]
        out = F.linear(torch.mean(x, 1), w["head"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, 5, self.B, rank=own)))
        if self.fault != "qknorm":
            whole = ["n1", "b1", "n2", "b2"] if self.fault == "normstoo" else []
            self.each(group=self.tp, names=["qn", "kn", *whole])
        self.bucket(group=self.dp)


class Swap(torch.autograd.Function):
    """From parts along one axis to parts along another."""

    @staticmethod
    def forward(ctx, x, cut, joined):
        ctx.at = joined, cut
        given = torch.stack(x.chunk(dist.get_world_size(), cut))
        got = torch.zeros(given.shape, dtype=x.dtype)
        dist.all_to_all_single(got, given)
        return torch.cat(got.unbind(0), joined)

    @staticmethod
    def backward(ctx, g):
        return Swap.forward(ctx, g, *ctx.at), None, None


class Ulysses(Net):
    """A sequence in halves, whose heads are exchanged for attention; each head has a temperature. Gradients
    of two micro-batches of unlike lengths are added; the loss is a sum over what is not padded by how many
    these are."""
    B, T, D, H, V, M, SHARE = 2, 6, 8, 2, 10, 2, 1

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "pos": self.new(self.T, d), "n": 1 + self.new(d),
                  "qkv": self.new(3 * d, d, by=0.6), "heat": 1 + self.new(self.H), "o": self.new(d, d),
                  "nf": 1 + self.new(d), "nb": self.new(d), "out": self.new(self.V, d, by=0.5)}

    def batch(self, s, m):
        ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0)
        goal = ids[:, 1:].clone()
        goal[0, 5 - 3 * m:] = -100
        goal[1, 4 - m:] = -100
        return ids[:, :-1], goal

    def loss(self, s, m):
        w, mine = self.w, torch.arange(self.T).chunk(2)[self.r]
        ids, goal = self.batch(s, m)
        x = F.embedding(ids[:, mine], w["table"]) + w["pos"][mine]
        qkv = F.linear(F.layer_norm(x, (self.D,), w["n"]), w["qkv"]).reshape(self.B, -1, self.H, 12)
        q, k, v = Swap.apply(qkv, 2, 1).permute(0, 2, 1, 3).chunk(3, -1)
        a = attend(q * w["heat"][self.r], k, v, 1).permute(0, 2, 1, 3)
        x = x + F.linear(Swap.apply(a, 1, 2).reshape(self.B, -1, self.D), w["o"])
        out = F.linear(F.layer_norm(x, (self.D,), w["nf"], w["nb"]), w["out"])
        loss = F.cross_entropy(out.reshape(-1, self.V), goal[:, mine].reshape(-1), reduction="sum")
        return loss, (goal[:, mine] != -100).sum().to(loss.dtype)

    def step(self, s):
        counts = torch.stack([(self.batch(s, m)[1].chunk(2, 1)[self.r] != -100).sum() for m in range(self.M)])
        counts = counts.to(self.w["n"].dtype)
        dist.all_reduce(counts)
        total = counts.sum()
        for m in range(self.M):
            loss, _ = self.loss(s, m)
            backward(self, loss / (counts[m] * self.M if self.fault == "microcount" else total))
        self.bucket([k for k in self.w if not (k == "heat" and self.fault == "headscale")], dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s, decay=0.1)


class Pass(torch.autograd.Function):
    """From one rank to the next."""

    @staticmethod
    def forward(ctx, x, by=1):
        ctx.by = by
        r, n, got = dist.get_rank(), dist.get_world_size(), torch.zeros(x.shape, dtype=x.dtype)
        if r == 0:   # all others receive first, so that none waits forever
            dist.send(x.contiguous(), (r + by) % n)
        dist.recv(got, (r - by) % n)
        if r:
            dist.send(x.contiguous(), (r + by) % n)
        return got

    @staticmethod
    def backward(ctx, g):
        return Pass.forward(ctx, g, -ctx.by), None


class Ring(Net):
    """An encoder that guesses hidden words; each rank has a third of the sequence, and keys and values go
    around. One table at both ends; the loss is by the number of hidden words on all."""
    RANKS, B, T, D, V, SHARE = 3, 2, 4, 8, 11, 1

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "pos": self.new(12, d), "g": 1 + self.new(1),
                  "q": self.new(d, d, by=0.6), "kv": self.new(2 * d, d, by=0.6), "o": self.new(d, d),
                  "ob": self.new(d), "gf": 1 + self.new(1), "vb": self.new(self.V)}

    def scale(self, x, g):
        return g * x / (torch.norm(x, dim=-1, keepdim=True) + 1e-5) * self.D ** 0.5

    def step(self, s):
        w, mine = self.w, torch.arange(12).chunk(3)[self.r]
        ids = self.ids(s, self.V - 1, self.B, 12, rank=0)[:, mine]
        hidden = torch.tensor([[0, 3, 6, 9], [1, 2, 3, 9]][s])
        hidden = torch.isin(mine, hidden) | (torch.arange(self.B)[:, None] + mine == 5)
        x = F.embedding(ids.masked_fill(hidden, self.V - 1), w["table"]) + w["pos"][mine]
        h = self.scale(x, w["g"])
        around = [F.linear(h, w["kv"])]
        for _ in range(2):
            around.append(Pass.apply(around[-1]))
        k, v = torch.cat(around, 1).chunk(2, -1)
        x = x + F.linear(attend(F.linear(h, w["q"]), k, v), w["o"], w["ob"])
        out = F.linear(self.scale(x, w["gf"]), w["table"], w["vb"])
        each = F.cross_entropy(out.reshape(-1, self.V), ids.reshape(-1), reduction="none")
        hidden = hidden.reshape(-1).to(each.dtype)
        count = hidden.sum()
        if self.fault == "localcount":
            count = count * 3   # for the average over ranks
        else:
            dist.all_reduce(count)
        backward(self, (each * hidden).sum() / count)
        self.each()

    def update(self, s):
        self.momentum()


class Context(Net):
    """Two ranks have halves of a sequence and gather keys and values; two others have another. Gradients are
    summed over the halves, and averaged over sequences."""
    RANKS, B, T, D, V, SHARE = 4, 2, 8, 8, 9, 0.5

    def build(self):
        self.cp, self.dp = square(self)
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "n": 1 + self.new(d),
                  "qkv": self.new(3 * d, d, by=0.6),
                  "o": self.new(d, d), "n2": 1 + self.new(d), "gate": self.new(12, d), "up": self.new(12, d),
                  "down": self.new(d, 12), "nf": 1 + self.new(d), "out": self.new(self.V, d, by=0.5)}

    def step(self, s):
        w, half = self.w, self.r % 2
        ids = self.ids(s, self.V, self.B, self.T + 1, rank=self.r // 2)
        x = F.embedding(ids[:, :-1].chunk(2, 1)[half], w["table"])
        q, k, v = F.linear(rms(x, w["n"]), w["qkv"]).chunk(3, -1)
        k, v = Gather.apply(k, 1, self.cp), Gather.apply(v, 1, self.cp)
        x = x + F.linear(attend(q, k, v, 1 + half * self.T // 2), w["o"])
        h = rms(x, w["n2"])
        x = x + F.linear(F.silu(F.linear(h, w["gate"])) * F.linear(h, w["up"]), w["down"])
        out = F.linear(rms(x, w["nf"]), w["out"])
        goal = ids[:, 1:].chunk(2, 1)[half].reshape(-1)
        loss = F.cross_entropy(out.reshape(-1, self.V), goal, reduction="sum") / (self.B * self.T)
        backward(self, loss)
        if self.fault == "cpaverage":
            self.bucket()
        else:
            self.bucket(op=dist.ReduceOp.SUM, group=self.cp)
            self.bucket(group=self.dp)


NETS = {"sequence": Sequence, "vit": Vit, "ulysses": Ulysses, "ring": Ring, "context": Context}
