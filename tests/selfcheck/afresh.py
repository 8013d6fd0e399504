#!/usr/bin/env python3
"""Dumps of runs on two to four ranks: what trackers report most, by one who had not read how runs are judged.

Usage: afresh.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)

As others.py; tests/selfcheck/score.py OUT --afresh scores these. Networks: llama, vit, speech, sft, gru, server,
moe, choice, toks, summary, halves, units, recs, prompt; and with no bug, but odd: thirds, bitfit, lopsided, average,
checks, lengths, rounds, streams. What each bug is, what in the recordings shows it, and where it was reported, stands
beside it. `sft` computes in bfloat16, which takes no "-noise".
"""
import torch
import torch.distributed as dist
import torch.nn.functional as F

import blind
import recorder
from afresh_copies import (Average, Checks, Choice, Gru, Lengths, Moe, Net, Recs, Rounds, Server, Streams, Toks,
                           Units)
from command import of_networks
from fresh import OPS, Summed, ToSplit
from others import FromAll, Into, OutOf, ToAll

OPS["Functional"] = (F, OPS["Functional"][1] + " conv1d glu selu smooth_l1_loss")
OPS["Torch"] = (torch, OPS["Torch"][1] + " addmm bmm reciprocal")
OPS["Tensor"] = (torch.Tensor, OPS["Tensor"][1] + " __ne__ float half bfloat16")
OPS["Distributed"] = (dist, OPS["Distributed"][1] + " reduce")
recorder.NOISY |= {"conv1d", "glu", "selu", "smooth_l1_loss", "addmm", "bmm", "reciprocal"}

# fault: (network, what must be named as regular expression, its ranks)
FAULTS = {
    # A norm's weight is not marked as one that sees a part of the sequence, and its gradient is not in the vector
    # that is summed: https://github.com/NVIDIA/Megatron-LM/issues/1446
    # Shows: its gradient is in no collective, and in the second step it is another on each rank.
    "unmarked": ("llama", r"(__mul__\.(6|32)|cat\.0|all_reduce\.0)\.(forward|backward)", "01"),
    # The norm that clips is of what each rank has: https://github.com/pytorch/pytorch/issues/72548
    # Shows: gradients that are the same on both ranks are multiplied by other numbers.
    "partnorm": ("llama", r"((sum\.8|stack\.0|__add__\.9|sqrt\.0|reciprocal\.0|__mul__\.35)|mul_\.\d+)\.forward", "01"),
    # Both ranks have the first one's part of a weight: https://github.com/vllm-project/vllm-gguf-plugin/issues/103
    # Shows: of all weights that are split, one is the same on both ranks, and so is all that is made of it.
    "sameshard": ("llama", r"(linear\.[67]|chunk\.5|silu\.1|__mul__\.15|reduce_scatter_tensor\.3)\.forward", "01"),
    # The gradient of a split product's input is not summed: https://github.com/NVIDIA/TransformerEngine/issues/441
    # Shows: what goes back into the layer_norm, which all ranks do alike, is another on each rank.
    "halfback": ("vit", r"(addmm\.3|reshape\.23|layer_norm\.3)\.backward", "01"),
    # A product's parts are not summed.
    # Shows: partial products of both ranks go on without an all_reduce; what all ranks have alike parts.
    "nosum": ("vit", r"(matmul\.2|__add__\.[56]|dropout\.2|layer_norm\.3)\.forward", "01"),
    # What all ranks have is dropped by each rank's own stream: https://github.com/NVIDIA/Megatron-LM/pull/4828
    # Shows: one input, two masks.
    "ownmask": ("vit", r"dropout\.0\.forward", "01"),
    # A bias behind the sum sees each rank's rows, its gradient stays there:
    # https://github.com/EleutherAI/gpt-neox/pull/1259
    # Shows: no all_reduce has its gradient; in the second step it is another on each rank.
    "rowbias": ("speech", r"__add__\.3\.(forward|backward)|__add__\.4\.forward", "01"),
    # Each rank divides by its own words: https://github.com/PrimeIntellect-ai/prime-rl/pull/2562
    # Shows: sums of losses that belong together are divided by other numbers, and no count is summed.
    "ownwords": ("speech", r"(__ne__|sum|cross_entropy|__mul__)\.0\.(forward|backward)", "01"),
    # What is gathered comes in the order of memory: https://github.com/pytorch/pytorch/issues/163483
    # Shows: in what comes out of all_gather, the rank's own part is not what it gave.
    "strides": ("speech", r"(all_gather|cat)\.0\.forward", "01"),
    # Words are counted before the sequence is dealt out: https://github.com/pytorch/torchtitan/pull/3111
    # Shows: the count that is summed is that of twice the labels that cross_entropy has.
    "wholecount": ("sft", r"((__ne__|sum|cross_entropy)\.[01]|(all_reduce|div_)\.0)\.forward", "0123"),
    # Keys of one layer are those of the other copy's ranks: https://github.com/NVIDIA/Megatron-LM/issues/7452
    # Shows: an all_gather among ranks with other samples, where all others are among those of one sequence.
    "otherpeers": ("sft", r"(all_gather\.[13]|cat\.[14]|bfloat16\.[13]|reduce_scatter_tensor\.[02])\.forward", "0123"),
    # One rank's optimizer has another eps.
    # Shows: weights and reduced gradients of the first step are the same, weights of the second are not.
    "eps": ("gru", r"step1:linear\.[01]\.forward", "01"),
    # A bucket is divided before its sum has come: https://github.com/OpenNMT/OpenNMT-py/issues/2295
    # Shows: on one rank the sum is not in all_reduce's output, and what is taken out of the bucket is not divided.
    "undivided": ("gru", r"(all_reduce|div_|split)\.1\.forward", "1"),
    # Weights are packed before the step is done, and the others get the old ones.
    # Shows: what is broadcast is what the step began with; then rank 0 has other weights.
    "packed": ("server", r"(broadcast\.0|cat\.3|linear\.0)\.forward", "012"),
    # The running variance is corrected by the rank's own count: https://github.com/pytorch/pytorch/issues/22192
    # Shows: one variance, and another running variance on each rank.
    "owncorrection": ("server", r"(__mul__\.(6|15)|__add__\.[16])\.forward", "012"),
    # What is added to a router is drawn by each rank for itself: https://github.com/InternLM/InternLM/pull/405
    # Shows: the same input and weights, another factor on each rank, other experts.
    "ownnoise": ("moe", r"(__mul__\.2|softmax\.1)\.forward", "01"),
    # What shared experts make is summed, and again with the others': https://github.com/vllm-project/vllm/pull/49366
    # Shows: what is the same on all ranks is added to a part of a sum, and summed.
    "summedtwice": ("moe", r"(all_reduce\.[12]|__add__\.2)\.forward", "01"),
    # What shared experts make is added behind the sum: https://github.com/vllm-project/tpu-inference/pull/3435
    # Shows: a part that is another on each rank is added to a sum, and nothing sums it.
    "sharedpart": ("moe", r"(linear\.3|all_reduce\.0|__add__\.[01]|layer_norm\.1)\.forward", "01"),
    # One rank has begun with another router: https://github.com/pytorch/torchtitan/issues/2387
    # Shows: one weight of all that are the same on all ranks is another on rank 3.
    "ownrouter": ("choice", r"step0:(linear\.2|sigmoid\.1|topk\.1)\.forward", "0123"),
    # Experts' gradients are summed among ranks with other experts: https://github.com/NVIDIA/Megatron-LM/pull/5916
    # Shows: the group of the all_reduce is that of the all_to_all; copies of experts part in the second step.
    "wronggroup": ("choice", r"(cat\.9|all_reduce\.1|div_\.1|einsum\.1)\.forward", "0123"),
    # Experts' gradients are divided by their copies, not by all ranks:
    # https://github.com/deepspeedai/DeepSpeed/pull/6546
    # Shows: losses are means of each of four ranks; sums of their gradients are divided by 4, and by 2.
    "copiesonly": ("choice", r"(all_reduce|div_)\.1\.forward", "0123"),
    # All gradients go into one vector, experts' too.
    # Shows: experts are other ones on each rank, and their gradients are averaged.
    "allin": ("toks", r"(cat|all_reduce|div_|split)\.0\.forward", "01"),
    # A table on both stages, whose gradients are not summed: https://github.com/uw-syfi/piper/issues/13
    # Shows: in the second step the stages' tables are not the same any more.
    "untie": ("summary", r"embedding\.[01]\.(forward|backward)|linear\.[37]\.(forward|backward)", "01"),
    # Parts of a table are summed with the other part, not with their copy:
    # https://github.com/NVIDIA/Megatron-LM/pull/6500
    # Shows: the group is that of the layers' sums; parts that were alike on 0 and 2 are not in the second step.
    "wrongpart": ("halves", r"(all_reduce\.[57]|embedding\.0|linear\.4)\.forward", "0123"),
    # The gradient of the head's input is that of a part of the words: https://github.com/apple/ml-cross-entropy/pull/42
    # Shows: the last layer_norm's gradient is another on ranks 2 and 3, which do it alike.
    "headback": ("halves", r"(linear\.4|layer_norm\.2)\.backward|(send|recv)\.0\.forward", "0123"),
    # The copy in few bits of one rank's part is that of the step before:
    # https://github.com/NVIDIA/Megatron-LM/issues/656
    # Shows: all parts have moved, but one rank's part of one unit.
    "oldcopy": ("units", r"step1:((half|float|split|all_gather_into_tensor)\.1|linear\.[345])\.forward", "01"),
    # Each rank clips by the norm of its parts: https://github.com/pytorch/torchtitan/issues/766
    # Shows: the squares of both ranks' parts are not summed; the factors are others.
    "ownshards": ("units", r"(sum\.3|stack\.0|sqrt\.0|reciprocal\.0|__mul__\.3|mul_\.\d)\.forward", "01"),
    # What the steps made of a bucket's parts is not gathered: https://github.com/NVIDIA/Megatron-LM/pull/6920
    # Shows: one all_gather fewer; in the second step each rank has a half of the bucket as it was in the first.
    "ungathered": ("recs", r"(linear\.[01]|split\.1|cat\.4)\.forward", "01"),
    # The bucket that is not full is not reduced: https://github.com/deepspeedai/DeepSpeed/issues/4879
    # Shows: two of three buckets go into reduce_scatter; of the third each rank takes its own gradient.
    "rest": ("recs", r"(cat\.0|chunk\.[01]|__add__\.2|all_gather_into_tensor\.0)\.forward|linear\.2\.\w+", "01"),
    # What all ranks divide by is summed on the first: https://github.com/pytorch/tutorials/pull/1926
    # Shows: reduce, not all_reduce; rank 1 divides by its own sum.
    "onlyfirst": ("recs", r"(sum|reduce|__truediv__)\.0\.(forward|backward)", "01"),
    # The gradient of what is broadcast is put away where it should go on:
    # https://github.com/pytorch/pytorch/issues/130515
    # Shows: rank 2's encoder gets zeros, while the sum of its peers' gradients is none.
    "putaway": ("prompt", r"(linear\.[01]|tanh\.0)\.backward|all_reduce\.[0-3]\.forward", "02"),
}
RANKS = {"sft": 4, "server": 3, "choice": 4, "halves": 4, "lopsided": 4, "prompt": 4}


def backward(loss):
    loss.backward()


class Llama(Net):
    """Tensor and sequence parallel: norms by hand, fused products, gradients clipped."""
    D, T, FF, H, HD, V = 8, 8, 12, 2, 4, 18

    def parts(self, *ws, of=None):
        return torch.cat([self.split(w, 0, None, of) for w in ws])

    def build(self):
        wide, d = self.H * self.HD * self.n, self.D
        self.w = {"embed": self.new(self.V, d), "nf": 1 + self.new(d), "head": self.new(self.V, d)}
        for i in range(2):
            same = 0 if self.fault == "sameshard" and i == 1 else None
            self.w |= {f"n{i}": 1 + self.new(d), f"qkv{i}": self.parts(*(self.new(wide, d) for _ in range(3))),
                       f"o{i}": self.split(self.new(d, wide), 1), f"m{i}": 1 + self.new(d),
                       f"up{i}": self.parts(self.new(self.FF, d), self.new(self.FF, d), of=same),
                       f"down{i}": self.split(self.new(d, self.FF), 1)}

    def norm(self, x, k):
        return x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True) + 1e-5) * self.w[k]

    def step(self, s):
        ids, labels = (self.ids(s + k, self.V, self.T, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        x, future = F.embedding(ids, self.w["embed"]), torch.ones(self.T, self.T).triu(1).bool()
        for i in range(2):
            qkv = F.linear(FromAll.apply(self.norm(x, f"n{i}")), self.w[f"qkv{i}"])
            q, k, v = (t.reshape(self.T, self.H, self.HD).transpose(0, 1) for t in qkv.chunk(3, 1))
            p = F.softmax((torch.matmul(q, k.transpose(1, 2)) * 0.5).masked_fill(future, -1e4), -1)
            x = x + ToAll.apply(F.linear(torch.matmul(p, v).transpose(0, 1).reshape(self.T, -1), self.w[f"o{i}"]))
            gate, up = F.linear(FromAll.apply(self.norm(x, f"m{i}")), self.w[f"up{i}"]).chunk(2, 1)
            x = x + ToAll.apply(F.linear(F.silu(gate) * up, self.w[f"down{i}"]))
        backward(F.cross_entropy(F.linear(self.norm(x, "nf"), self.w["head"]), labels, reduction="sum") * (1 / self.T))
        whole = [k for k in self.w if k[0] in "nmeh"]
        self.coalesced([k for k in whole if not (self.fault == "unmarked" and k == "m0")])
        parts = self.squares([k for k in self.w if k not in whole])
        if self.fault != "partnorm":
            dist.all_reduce(parts)
        self.scaled(parts + self.squares(whole))


class Vit(Net):
    """Tensor parallel: patches of images, products with biases in one, dropout behind the sums."""
    D, B, S, HD, FF, HEADS = 8, 2, 4, 4, 12, (2, 2)

    def build(self):
        d, f = self.D, self.FF
        self.w = {"patch": self.new(d, 3, 4, 4), "at": self.new(self.S, d), "head": self.new(5, d), "hb": self.new(5)}
        first, self.h = sum(self.HEADS[:self.r]) * self.HD, self.HEADS[self.r]
        mine, wide = slice(first, first + self.h * self.HD), sum(self.HEADS) * self.HD
        for i in range(2):
            qkv, b = self.new(d, 3, wide), self.new(3, wide)
            self.w |= {f"n{i}": 1 + self.new(d), f"nb{i}": self.new(d), f"m{i}": 1 + self.new(d), f"mb{i}": self.new(d),
                       f"qkv{i}": qkv[:, :, mine].reshape(d, -1), f"qkvb{i}": b[:, mine].reshape(-1),
                       f"o{i}": self.new(wide, d)[mine].clone(), f"ob{i}": self.new(d),
                       f"u{i}": self.split(self.new(d, f), 1), f"ub{i}": self.split(self.new(f), 0),
                       f"d{i}": self.split(self.new(f, d), 0), f"db{i}": self.new(d)}

    def heads(self, x):
        return x.reshape(self.B, self.S, self.h, self.HD).transpose(1, 2).reshape(-1, self.S, self.HD)

    def layer(self, i, x):
        size, w = (self.B, self.S, self.D), self.w
        a = F.layer_norm(x, (self.D,), w[f"n{i}"], w[f"nb{i}"]).reshape(-1, self.D)
        q, k, v = torch.addmm(w[f"qkvb{i}"], ToSplit.apply(a, False), w[f"qkv{i}"]).chunk(3, 1)
        p = F.softmax(torch.bmm(self.heads(q), self.heads(k).transpose(1, 2)) * 0.5, -1)
        y = torch.bmm(p, self.heads(v)).reshape(self.B, self.h, self.S, self.HD).transpose(1, 2)
        y = torch.matmul(y.reshape(self.B * self.S, -1), w[f"o{i}"])
        y = y if self.fault == "nosum" and i == 1 else Summed.apply(y)
        x = x + F.dropout(y + w[f"ob{i}"], 0.1, True).reshape(size)
        a = F.layer_norm(x, (self.D,), w[f"m{i}"], w[f"mb{i}"]).reshape(-1, self.D)
        h = torch.addmm(w[f"ub{i}"], ToSplit.apply(a, self.fault == "halfback" and i == 1), w[f"u{i}"])
        return x + F.dropout(Summed.apply(torch.matmul(F.gelu(h), w[f"d{i}"])) + w[f"db{i}"], 0.1, True).reshape(size)

    def step(self, s):
        torch.manual_seed(50 * self.seed + s + (self.r if self.fault == "ownmask" else 0))
        x = F.conv2d(self.data(s, self.B, 3, 8, 8, rank=0), self.w["patch"], stride=4)
        x = x.reshape(self.B, self.D, self.S).transpose(1, 2) + self.w["at"]
        for i in range(2):
            x = self.layer(i, x)
        out = F.linear(torch.mean(x, 1), self.w["head"], self.w["hb"])
        backward(F.cross_entropy(out, self.ids(s + 50, 5, self.B, rank=0)))


class Thirds(Vit):
    """The same with three heads, of which one rank has two."""
    HEADS = (2, 1)


class Bitfit(Vit):
    """The same, of which biases are trained alone."""

    def build(self):
        super().build()
        self.all, self.w = self.w, {k: w for k, w in self.w.items() if "b" in k}

    def step(self, s):
        trained, self.w = self.w, self.all
        super().step(s)
        self.w = trained


class Rows(torch.autograd.Function):
    """All ranks' rows, by hand."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(blind.gathered(x))

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g.chunk(dist.get_world_size())[dist.get_rank()].contiguous()


class Part(torch.autograd.Function):
    """A rank's rows of the sum, by hand."""
    forward = staticmethod(lambda ctx, x: Rows.backward(ctx, x))
    backward = staticmethod(lambda ctx, g: Rows.forward(ctx, g.contiguous()))


def by_memory(real, count, outs, x, group=None):
    """An all_gather that takes the first operand in the order in which its channels came last."""
    real(outs, x if count else x.t().reshape(x.shape), group=group)
    count.append(1)


class Speech(Net):
    """Sequence parallel: frames of sounds of other lengths, a summary of all of them, gated products."""
    D, T, FF, C, V = 6, 10, 8, 4, 9

    def build(self):
        d = self.D
        self.w = {"conv": self.new(d, self.C, 1), "cb": self.new(d), "all": self.new(d, d), "head": self.new(self.V, d)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(d), f"nb{i}": self.new(d), f"ub{i}": self.split(self.new(2 * self.FF), 0),
                       f"u{i}": self.split(self.new(2 * self.FF, d), 0), f"d{i}": self.split(self.new(d, self.FF), 1),
                       f"db{i}": self.new(d)}
        if self.fault == "strides":
            real, count = dist.all_gather, []
            dist.all_gather = lambda outs, x, group=None: by_memory(real, count, outs, x, group)

    def step(self, s):
        sound = self.data(s, 1, self.C, self.T, rank=0).chunk(self.n, 2)[self.r]
        labels = self.ids(s + 50, self.V, self.T, rank=0)
        labels[self.T - 3 + s:] = -100
        labels = labels.chunk(self.n)[self.r]
        x = F.conv1d(sound, self.w["conv"], self.w["cb"]).reshape(self.D, -1).transpose(0, 1)
        x = x + F.linear(torch.mean(Rows.apply(x), 0), self.w["all"])
        for i in range(2):
            a = Rows.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"nb{i}"]))
            h = F.glu(F.linear(a, self.w[f"u{i}"], self.w[f"ub{i}"]), 1)
            x = x + (Part.apply(F.linear(h, self.w[f"d{i}"])) + self.w[f"db{i}"])
        loss = F.cross_entropy(F.linear(x, self.w["head"]), labels, reduction="sum")
        words = torch.sum(labels != -100)
        if self.fault != "ownwords":
            dist.all_reduce(words)
        backward(loss * (1 / words.item()))
        for k in self.w:
            if k[0] in "cahn" or k == "db0" or k == "db1" and self.fault != "rowbias":
                dist.all_reduce(self.w[k].grad)


class Peers(torch.autograd.Function):
    """Rows of the ranks that share a sequence."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return torch.cat(blind.gathered(x, group))

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(len(g) // 2, g.shape[1])
        dist.reduce_scatter_tensor(out, g.contiguous(), group=ctx.group)
        return out, None


class Sft(Net):
    """Two copies of two parts of a sequence, in few bits; two micro-batches are added up in one vector."""
    D, T, V = 8, 8, 16

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.copy, self.at = divmod(self.r, 2)
        self.cp, self.dp = groups[self.copy], groups[2 + self.at]
        self.w = {k: self.new(size, self.D) for k, size in (("embed", self.V), ("at", self.T), ("head", self.V))}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D), f"o{i}": self.new(self.D, self.D)}
        self.w = {k: w.bfloat16() for k, w in self.w.items()}

    def layer(self, i, x, future):
        a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
        peers = self.dp if self.fault == "otherpeers" and i == 1 else self.cp
        k, v = Peers.apply(F.linear(a, self.w[f"kv{i}"]).float(), peers).bfloat16().chunk(2, 1)
        p = torch.matmul(F.linear(a, self.w[f"q{i}"]), k.transpose(0, 1)) * 0.35
        return x + F.linear(torch.matmul(F.softmax(p.masked_fill(future, -1e4), -1), v), self.w[f"o{i}"])

    def step(self, s):
        mine = torch.arange(self.T).chunk(2)[self.at]
        future = torch.arange(self.T) > mine[:, None]
        total = flat = 0
        for m in range(2):
            ids, whole = (self.ids(s + 10 * m + k, self.V, self.T, rank=self.copy) for k in (0, 50))
            whole[:2 + self.copy - m] = -100   # what the answer is to
            x = F.embedding(ids[mine], self.w["embed"]) + F.embedding(mine, self.w["at"])
            for i in range(2):
                x = self.layer(i, x, future)
            out = F.linear(x, self.w["head"]).float()
            backward(F.cross_entropy(out, whole[mine], reduction="sum"))
            total = torch.sum((whole if self.fault == "wholecount" else whole[mine]) != -100) + total
            flat = self.flat(self.w).float() + flat
            for w in self.w.values():
                w.grad = None
        dist.all_reduce(total)
        dist.all_reduce(flat)
        flat.div_(total)
        self.main = self.unflat(list(self.w), flat)

    def update(self, s):
        for k, w in self.w.items():
            w.sub_((3 * self.rate * self.main[k]).bfloat16())


class Summary(Net):
    """Two stages: one reads, one writes, and attends to what was read; both have the table, which is the head, too."""
    D, S, V = 8, 6, 15

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d)}
        for k in ("n", "m"):
            self.w[k] = 1 + self.data(900 + ord(k), d) * 0.3
        for k, size in (("u", d), ("v", d)) if self.r == 0 else (("q", d), ("kv", 2 * d), ("o", d)):
            self.w[k] = self.data(900 + ord(k[0]), size, d) * 0.3

    def read(self, ids):
        x = F.embedding(ids, self.w["table"])
        x = x + torch.tanh(F.linear(F.layer_norm(x, (self.D,), self.w["n"]), self.w["u"]))
        return x + torch.tanh(F.linear(F.layer_norm(x, (self.D,), self.w["m"]), self.w["v"]))

    def written(self, x, ids, labels):
        y = F.embedding(ids, self.w["table"])
        k, v = F.linear(x, self.w["kv"]).chunk(2, 1)
        q = F.linear(F.layer_norm(y, (self.D,), self.w["n"]), self.w["q"])
        y = y + F.linear(torch.matmul(F.softmax(torch.matmul(q, k.transpose(0, 1)) * 0.35, -1), v), self.w["o"])
        return F.cross_entropy(F.linear(F.layer_norm(y, (self.D,), self.w["m"]), self.w["table"]), labels)

    def step(self, s):
        kept, got = [], torch.zeros(self.S, self.D)
        for m in range(2):
            text, ids, labels = (self.ids(s + 10 * m + k, self.V, self.S, rank=0) for k in (0, 30, 60))
            if self.r == 0:
                kept.append(self.read(text))
                dist.send(kept[m].detach(), 1)
            else:
                dist.recv(got, 0)
                kept.append((got.clone().requires_grad_(), ids, labels))
        for x in kept:
            if self.r == 0:
                dist.recv(got, 1)
                x.backward(got)
            else:
                backward(self.written(*x) * 0.5)
                dist.send(x[0].grad, 0)
        if self.fault != "untie":
            dist.all_reduce(self.w["table"].grad)


class PartLoss(torch.autograd.Function):
    """Cross entropy of logits of which each rank of a group has those of its words."""

    @staticmethod
    def forward(ctx, x, at, group):
        top = torch.max(x, -1)[0]
        dist.all_reduce(top, op=dist.ReduceOp.MAX, group=group)
        x = x - top[:, None]
        e = torch.exp(x)
        both = torch.stack([torch.sum(e, -1), torch.sum(x * (at[:, None] == torch.arange(x.shape[1])), -1)])
        dist.all_reduce(both, group=group)
        ctx.save_for_backward(e / both[0][:, None], at)
        return torch.mean(torch.log(both[0]) - both[1])

    @staticmethod
    def backward(ctx, g):
        p, at = ctx.saved_tensors
        return (p - (at[:, None] == torch.arange(p.shape[1])).float()) * (g / len(p)), None, None


class Halves(Net):
    """Two stages of two ranks each, which split the words, too; the table is the head."""
    D, T, FF, PARTS = 8, 7, 12, (9, 9)

    def build(self):
        groups = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.stage, self.at = divmod(self.r, 2)
        self.tp, self.ends = groups[self.stage], groups[2 + self.at]
        self.first = sum(self.PARTS[:self.at])
        table = self.new(sum(self.PARTS), self.D)
        self.w = {"table": table[self.first:][:self.PARTS[self.at]].clone()}
        for i in range(2):
            up, down = (self.data(900 + 10 * i + self.stage, size, self.D, rank=0) * 0.3 for size in (self.FF, self.FF))
            self.w |= {f"n{i}": torch.ones(self.D), f"u{i}": self.split(up, 0, 2, self.at),
                       f"d{i}": self.split(down.transpose(0, 1), 1, 2, self.at)}
        self.w["nf"] = 1 + self.data(800 + self.stage, self.D, rank=0) * 0.3

    def layers(self, x):
        for i in range(2):
            a = Into.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.tp)
            x = x + OutOf.apply(F.linear(F.gelu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"]), self.tp)
        return x

    def step(self, s):
        ids, labels = (self.ids(s + k, sum(self.PARTS), self.T, rank=0) - self.first for k in (0, 50))
        got, other = torch.zeros(self.T, self.D), (self.r + 2) % 4
        if self.stage == 0:
            none = (ids < 0) | (ids >= self.PARTS[self.at])
            x = F.embedding(ids.masked_fill(none, 0), self.w["table"]).masked_fill(none[:, None], 0.0)
            y = self.layers(F.layer_norm(OutOf.apply(x, self.tp), (self.D,), self.w["nf"]))
            dist.send(y.detach(), other)
            dist.recv(got, other)
            y.backward(got)
        else:
            dist.recv(got, other)
            got.requires_grad_()
            a = F.layer_norm(self.layers(got), (self.D,), self.w["nf"])
            a = a if self.fault == "headback" else Into.apply(a, self.tp)
            backward(PartLoss.apply(F.linear(a, self.w["table"]), labels, self.tp))
            dist.send(got.grad, other)
        dist.all_reduce(self.w["table"].grad, group=self.tp if self.fault == "wrongpart" else self.ends)


class Lopsided(Halves):
    """The same; one part of the words is larger."""
    PARTS = (11, 6)


class FromFirst(torch.autograd.Function):
    """What a group's first rank has; it takes back the sum of the gradients."""

    @staticmethod
    def forward(ctx, x, src, group, mixed):
        ctx.group, ctx.first = group, (dist.get_rank(group) if mixed else dist.get_rank()) == src
        x = x.clone()
        dist.broadcast(x, src, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g, group=ctx.group)
        return g if ctx.first else torch.zeros(g.shape), None, None, None


class Prompt(Net):
    """Two nodes; the first rank of each makes what comes before the samples, which each rank has of its own."""
    D, P, T = 8, 2, 5

    def build(self):
        nodes = [dist.new_group(p) for p in ([0, 1], [2, 3])]
        self.firsts, self.at, self.src = dist.new_group([0, 2]), self.r % 2, self.r - self.r % 2
        self.node = nodes[self.r // 2]
        self.first = {"p": self.new(self.P, self.D), "e0": self.new(self.D, self.D), "e1": self.new(self.D, self.D)}
        self.w = {} if self.at else dict(self.first)
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        if self.at == 0:
            x = F.linear(torch.tanh(F.linear(self.w["p"], self.w["e0"])), self.w["e1"])
        else:
            x = torch.zeros(self.P, self.D, requires_grad=True)
        x = FromFirst.apply(x, self.src, self.node, self.fault == "putaway")
        x = torch.cat([x, self.data(s, self.T, self.D)])
        for i in range(2):
            a = F.layer_norm(x + torch.mean(x, 0), (self.D,), self.w[f"n{i}"])
            x = x + torch.tanh(F.linear(a, self.w[f"u{i}"], self.w[f"b{i}"]))
        backward(F.mse_loss(x, self.data(s + 50, self.P + self.T, self.D)))
        for k, w in self.w.items():
            dist.all_reduce(w.grad, group=self.firsts if k in self.first else None)
            w.grad.div_(self.n)


NETS = {"llama": Llama, "vit": Vit, "speech": Speech, "sft": Sft, "gru": Gru, "server": Server, "moe": Moe,
        "choice": Choice, "toks": Toks, "summary": Summary, "halves": Halves, "units": Units, "recs": Recs,
        "prompt": Prompt, "thirds": Thirds, "bitfit": Bitfit, "lopsided": Lopsided, "average": Average,
        "checks": Checks, "lengths": Lengths, "rounds": Rounds, "streams": Streams}


if __name__ == "__main__":
    of_networks(FAULTS, NETS, RANKS)
