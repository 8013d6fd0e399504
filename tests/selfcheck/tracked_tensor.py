"""Networks of tracked.py whose ranks share out weights or a sequence, and their bugs, each with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import Deal, Fetch, Gather, Net, Same, Sum

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/NVIDIA/Megatron-LM/issues/1446 "the main_grad of parameters in final_layernorm are different
    # on different TP ranks before optimizer.step()"
    "finalnorm": ("mega",
                  r"layer_norm.8\.|Tensor.(mul_.([6-9]|1[01])|add_.[4-7]|addc(mul|div)_.[23]|sqrt_.[23])\.", "01"),
    # https://github.com/NVIDIA-NeMo/RL/issues/3716 "train step misses the TP grad all-reduce for replicated params
    # (qk-layernorm / SP layernorms)"
    "qknorm": ("mega",
               r"layer_norm.[1256]\.|Tensor.(mul_.(2[1-6]|5[4-9])|add_.(1[4-7]|3[6-9])|addc(mul|div)_.([78]|1[89]))\.",
               "01"),
    # https://github.com/huggingface/text-generation-inference/issues/1036 "bias will be multi-added along tp_size"
    "rowbias": ("mega", r"linear.[15]\.|reduce_scatter_tensor.[13]\.", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/737 "mean_log_probs is computed as a local mean ... can cause the
    # loss to be different on different tensor parallel ranks"
    "smooth": ("mega", r"Tensor.(sum.1|__mul__.3|__sub__.4|mean.0)\.", "01"),
    # https://github.com/PaddlePaddle/PaddleFleetX/pull/1005 "Different input partition in Dropout should use different
    # random seed if sequence_parallel is True"
    "samemask": ("mega", "dropout", "01"),
    # https://github.com/modelscope/mcore-bridge/pull/173 "only receives the gradient of its own TP rank's sequence
    # shard, and that gradient is never summed over the TP group"
    "adapter": ("lora",
                r"linear.(3|5|11|13)\.|Tensor.(mul_.([3-8]|1[5-9]|20)|add_.([2-5]|1[0-3])|addc(mul|div)_.[1256])\.",
                "01"),
    # https://github.com/bigcode-project/Megatron-LM/pull/37 "Fix the kv gradient computation in tensor-parallel. Add a
    # reduction in the kv output grads"
    "kvgrad": ("mqa", r"linear.[16]\.", "0123"),
    # https://github.com/huggingface/transformers/pull/47811 "Process group holding the n_rep ranks that own the same
    # (replicated) KV head"
    "kvgroup": ("mqa", r"all_reduce.[45]\.|linear.[16].forward", "0123"),
    # https://github.com/bigscience-workshop/Megatron-DeepSpeed/pull/276 "I was able to reproduce the discrepancy in
    # torch_rng_state accross tp ranks"
    "tpdrop": ("mqa", r"dropout.[13]\.", "0123"),
    # https://github.com/NVIDIA-NeMo/Speech/pull/6178 and https://github.com/NVIDIA/Megatron-LM/issues/560: rotary
    # angles of a part of the sequence; "I think it needs to have sin and cos values corresponding to each rank"
    "ropezero": ("context",
                 "Torch.(outer|cos|sin)|Tensor.(type_as.[0-7]|__mul__.([2-9]|1[5-9]|2[0-2])).forward", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/906 "the loss scaling with cp_size, but grad_data scaling with the
    # world_size": one of the two divisions is too many
    "cpscale": ("context", r"Tensor.(div_|__truediv__.2\.)|all_reduce.3\.", "01"),
    # https://github.com/Qihoo360/360-LLaMA-Factory/issues/72 "the loss not being normalized over the correct global
    # number of tokens across SP ranks"
    "owncount": ("context", r"cross_entropy|Tensor.(div_|__truediv__.2\.)|all_reduce.2\.", "01"),
    # https://github.com/zhuzilin/ring-flash-attention/issues/54 "attention mask we must chunk properly": the mask of
    # parts in order, where each rank has one part of the begin and one of the end
    "zigmask": ("context", "masked_fill|softmax|__gt__", "01"),
}


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Smoothed(torch.autograd.Function):
    """Cross entropy of smoothed labels, one for each word, of logits of which each rank has those of its part of the
    vocabulary."""

    @staticmethod
    def forward(ctx, x, labels, by, own):
        size = x.shape[-1]
        words = size if own else size * dist.get_world_size()
        top = x.max(-1)[0]
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        x = x - top.unsqueeze(-1)
        first = dist.get_rank() * size
        other = (labels < first) | (labels >= first + size)
        at = (labels - first).masked_fill(other, 0)
        mine = torch.gather(x, -1, at.unsqueeze(-1)).squeeze(-1).masked_fill(other, 0.0)
        dist.all_reduce(mine)
        e = x.exp()
        total = e.sum(-1)
        dist.all_reduce(total)
        every = x.sum(-1)
        if not own:
            dist.all_reduce(every)
        ctx.save_for_backward(e / total.unsqueeze(-1), at, other)
        ctx.by, ctx.words = by, words
        return total.log() - mine * (1 - by) - every * (by / words)

    @staticmethod
    def backward(ctx, g):
        p, at, other = ctx.saved_tensors
        one = F.one_hot(at, p.shape[-1]).type_as(p) * (~other).unsqueeze(-1)
        return (p - one * (1 - ctx.by) - ctx.by / ctx.words) * g.unsqueeze(-1), None, None, None


class Mega(Net):
    """Tensor and sequence parallel, words first; heads have norms of queries and keys, which all ranks share; drops by
    each rank's own stream; labels are smoothed; AdamW."""
    D, T, B, V, FF, HEADS, HD, SMOOTH, INSIDE = 8, 6, 2, 14, 12, 4, 4, 0.1, True

    def build(self):
        d = self.D
        self.w = {"table": self.split(self.new(self.V, d), 0), "head": self.split(self.new(self.V, d), 0),
                  "nf": 1 + self.new(d), "nfb": self.new(d)}
        for i in range(2):
            qkv = [self.split(self.new(self.HEADS * self.HD, d), 0) for _ in "qkv"]
            self.w |= {f"n{i}": 1 + self.new(d), f"m{i}": 1 + self.new(d), f"qkv{i}": torch.cat(qkv),
                       f"qn{i}": 1 + self.new(self.HD), f"kn{i}": 1 + self.new(self.HD),
                       f"o{i}": self.split(self.new(d, self.HEADS * self.HD), 1), f"ob{i}": self.new(d),
                       f"u{i}": self.split(self.new(self.FF, d), 0), f"ub{i}": self.split(self.new(self.FF), 0),
                       f"d{i}": self.split(self.new(d, self.FF), 1), f"db{i}": self.new(d)}

    def fixed(self, k):
        return self.w[k]

    def norm(self, x, k):
        return F.layer_norm(x, (x.shape[-1],), self.fixed(k))

    def looked(self, ids):
        size = len(self.fixed("table"))
        other = (ids < self.r * size) | (ids >= (self.r + 1) * size)
        x = F.embedding((ids - self.r * size).masked_fill(other, 0), self.fixed("table"))
        return Deal.apply(x.masked_fill(other.unsqueeze(-1), 0.0))

    def attended(self, i, a):
        q, k, v = F.linear(Fetch.apply(a), self.fixed(f"qkv{i}")).chunk(3, -1)
        q, k, v = (x.reshape(self.T, self.B, -1, self.HD) for x in (q, k, v))
        q, k = self.norm(q, f"qn{i}"), self.norm(k, f"kn{i}")
        p = torch.einsum("qbhd,kbhd->bhqk", q, k) * self.HD ** -0.5
        p = torch.softmax(p + torch.full((self.T, self.T), float("-inf")).triu(1), -1)
        return torch.einsum("bhqk,kbhd->qbhd", p, v).reshape(self.T, self.B, -1)

    def row(self, i, k, x):
        """The part of a sequence of a layer whose inputs are shared out."""
        if self.fault == "rowbias" and k == "o":
            return Deal.apply(F.linear(x, self.fixed(f"{k}{i}"), self.fixed(f"{k}b{i}")))
        return Deal.apply(F.linear(x, self.fixed(f"{k}{i}"))) + self.fixed(f"{k}b{i}")

    def fed(self, i, a):
        return F.silu(F.linear(Fetch.apply(a), self.fixed(f"u{i}"), self.fixed(f"ub{i}")))

    def logits(self, s):
        torch.manual_seed(1000 * self.seed + 10 * s + (0 if self.fault == "samemask" else self.r))
        x = F.dropout(self.looked(self.ids(s, self.V, self.T, self.B, rank=0)), 0.1)
        for i in range(2):
            x = x + F.dropout(self.row(i, "o", self.attended(i, self.norm(x, f"n{i}"))), 0.1)
            x = x + F.dropout(self.row(i, "d", self.fed(i, self.norm(x, f"m{i}"))), 0.1)
        a = F.layer_norm(x, (self.D,), self.fixed("nf"), self.fixed("nfb"))
        return F.linear(Fetch.apply(a), self.fixed("head"))

    def summed(self):
        left = {"finalnorm": ("nf", "nfb"), "qknorm": ("qn0", "qn1", "kn0", "kn1")}.get(self.fault, ())
        return [k for k in self.w if k[0] in "nm" or k[:2] in ("qn", "kn", "ob", "db") if k not in left]

    def step(self, s):
        labels = self.ids(s + 50, self.V, self.T, self.B, rank=0)
        backward(self, Smoothed.apply(self.logits(s), labels, self.SMOOTH, self.fault == "smooth").mean())
        if self.summed():
            self.bucket(self.summed(), op=dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s, [k for k in self.w if self.w[k].grad is not None], decay=0.01)


class Lora(Mega):
    """The same, of which two thin weights beside each of two layers learn; the rest is as it was."""
    RANK = 2

    def build(self):
        super().build()
        self.base, self.w = self.w, {}
        for i in range(2):
            self.w |= {f"oa{i}": self.split(self.new(self.RANK, self.HEADS * self.HD), 1),
                       f"ob{i}": self.new(self.D, self.RANK), f"ua{i}": self.new(self.RANK, self.D),
                       f"ub{i}": self.split(self.new(self.FF, self.RANK), 0)}

    def fixed(self, k):
        return self.base[k].detach()

    def row(self, i, k, x):
        y = Deal.apply(F.linear(x, self.fixed(f"{k}{i}"))) + self.fixed(f"{k}b{i}")
        if k == "d":
            return y
        return y + 0.5 * F.linear(Deal.apply(F.linear(x, self.w[f"oa{i}"])), self.w[f"ob{i}"])

    def fed(self, i, a):
        y = F.linear(Fetch.apply(a), self.fixed(f"u{i}"), self.fixed(f"ub{i}"))
        return F.silu(y + 0.5 * F.linear(Fetch.apply(F.linear(a, self.w[f"ua{i}"])), self.w[f"ub{i}"]))

    def summed(self):
        return [] if self.fault == "adapter" else ["ob0", "ob1", "ua0", "ua1"]


class Mqa(Net):
    """Four ranks with a head each, and two heads of keys, each on two ranks, which sum its gradient; attention drops by
    the rank's own stream, all else by that of all; momentum."""
    RANKS, D, T, B, V, HD = 4, 8, 5, 2, 9, 4

    def build(self):
        d, hd = self.D, self.HD
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.same = pairs[2 + self.r % 2 if self.fault == "kvgroup" else self.r // 2]
        self.w = {"embed": self.new(self.V, d), "at": self.new(self.T, d), "head": self.new(self.V, d)}
        for i in range(2):
            kv = self.new(2, 2 * hd, d)
            self.w |= {f"n{i}": 1 + self.new(d), f"nb{i}": self.new(d), f"q{i}": self.split(self.new(4 * hd, d), 0),
                       f"kv{i}": kv[self.r // 2].clone(), f"o{i}": self.split(self.new(d, 4 * hd), 1),
                       f"u{i}": self.split(self.new(16, d), 0), f"d{i}": self.split(self.new(d, 16), 1)}

    def dropped(self, x, stream, own=False):
        torch.manual_seed(10000 * self.seed + 10 * stream + (1000 * (self.r + 1) if own else 0))
        return F.dropout(x, 0.2)

    def step(self, s):
        ids = self.ids(s, self.V, self.B, self.T + 1, rank=0)
        x = F.embedding(ids[:, :-1], self.w["embed"]) + self.w["at"]
        for i in range(2):
            a = Same.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"nb{i}"]))
            q = F.linear(a, self.w[f"q{i}"])
            k, v = F.linear(a, self.w[f"kv{i}"]).chunk(2, -1)
            p = torch.matmul(q, k.transpose(1, 2)) / self.HD ** 0.5
            p = p.masked_fill(torch.ones(self.T, self.T).triu(1).bool(), float("-inf"))
            y = torch.matmul(self.dropped(F.softmax(p, -1), 4 * s + i, own=True), v)
            y = F.linear(y, self.w[f"o{i}"]) + F.linear(F.relu(F.linear(a, self.w[f"u{i}"])), self.w[f"d{i}"])
            x = x + self.dropped(Sum.apply(y), 4 * s + 2 + i, own=self.fault == "tpdrop")
        backward(self, F.cross_entropy(F.linear(x, self.w["head"]).reshape(-1, self.V), ids[:, 1:].reshape(-1)))
        if self.fault != "kvgrad":
            self.each(group=self.same, names=["kv0", "kv1"])

    def update(self, s):
        self.momentum()


class Context(Net):
    """Parts of a sequence, of which each rank has one of the begin and one of the end; keys are gathered; angles for
    positions; the loss is of the words that all ranks have, of which some have no label."""
    D, T, H, V, B, SHARE, INSIDE = 8, 8, 2, 11, 2, 1, True

    def build(self):
        self.w = {"embed": self.new(self.V, self.D), "head": self.new(self.V, self.D), "nf": 1 + self.new(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": 1 + self.new(self.D),
                       f"qkv{i}": self.new(3 * self.D, self.D), f"o{i}": self.new(self.D, self.D),
                       f"g{i}": self.new(10, self.D), f"u{i}": self.new(10, self.D), f"d{i}": self.new(self.D, 10)}

    def positions(self, r):
        parts = torch.arange(self.T).chunk(2 * self.n)
        return torch.cat([parts[r], parts[2 * self.n - 1 - r]])

    def norm(self, x, k):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w[k]

    def turned(self, x, at):
        half = x.shape[-1] // 2
        angle = torch.outer(at.type_as(x), 0.1 ** torch.arange(half).type_as(x)).unsqueeze(1)
        cos, sin = torch.cos(angle), torch.sin(angle)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attended(self, i, x, at):
        t, hd = x.shape[1], self.D // self.H
        q, k, v = F.linear(x, self.w[f"qkv{i}"]).view(self.B, t, 3, self.H, hd).unbind(2)
        angle = torch.arange(t) if self.fault == "ropezero" else at
        q, k = self.turned(q, angle), self.turned(k, angle)
        kv = Gather.apply(torch.stack([k, v]), 2)
        where = torch.cat([self.positions(r) for r in range(self.n)])
        if self.fault == "zigmask":
            at, where = torch.arange(self.r * t, (self.r + 1) * t), torch.arange(self.T)
        p = torch.einsum("bqhd,bkhd->bhqk", q, kv[0]) / hd ** 0.5
        p = p.masked_fill(where.unsqueeze(0) > at.unsqueeze(1), float("-inf"))
        return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(p, -1), kv[1]).reshape(self.B, t, self.D)

    def step(self, s):
        whole, at = self.ids(s, self.V, self.B, self.T + 1, rank=0), self.positions(self.r)
        labels = whole[:, 1:].clone()
        labels[0, :3] = labels[1, :1] = -100   # words of a question, of which the first rank has more
        labels = labels[:, at]
        x = F.embedding(whole[:, at], self.w["embed"])
        for i in range(2):
            x = x + F.linear(self.attended(i, self.norm(x, f"n{i}"), at), self.w[f"o{i}"])
            a = self.norm(x, f"m{i}")
            x = x + F.linear(F.silu(F.linear(a, self.w[f"g{i}"])) * F.linear(a, self.w[f"u{i}"]), self.w[f"d{i}"])
        out = F.linear(self.norm(x, "nf"), self.w["head"]).reshape(-1, self.V)
        count = torch.tensor(float((labels != -100).numpy().sum()))
        if self.fault != "owncount":
            dist.all_reduce(count)
        loss = F.cross_entropy(out, labels.reshape(-1), ignore_index=-100, reduction="sum") / count
        backward(self, loss)
        self.bucket(op=dist.ReduceOp.SUM)
        if self.fault in ("cpscale", "owncount"):
            for w in self.w.values():
                w.grad.div_(self.n)

    def update(self, s):
        self.adam(s)


NETS = {"mega": Mega, "lora": Lora, "mqa": Mqa, "context": Context}
