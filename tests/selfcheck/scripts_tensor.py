"""Programs that split their layers as Megatron has it: column and row parallel, embeddings and losses over
parts of the vocabulary, sequence parallel regions, tensor and data parallel together; and what is reported to
go wrong in such.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the
whole model, without the collectives and with torch's own cross entropy.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from scripts_data import D, adamw, choose, draw, state

HEADS, VOCAB = 4, 24


class Copy(torch.autograd.Function):
    """Into a parallel region: nothing forward, the sum of the gradients backward."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class Reduce(torch.autograd.Function):
    """Out of a parallel region."""
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class GatherTokens(torch.autograd.Function):
    """All tokens of a sequence that is split over the ranks; gloo has no reduce_scatter for the way back."""
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault = fault
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        if ctx.fault != "gatherslice":
            dist.all_reduce(g)
        return g.chunk(dist.get_world_size())[dist.get_rank()], None


class ScatterTokens(torch.autograd.Function):
    """The sum of all ranks, of which each keeps its tokens."""
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x.chunk(dist.get_world_size())[dist.get_rank()].contiguous()

    @staticmethod
    def backward(ctx, g):
        out = [torch.empty_like(g) for _ in range(dist.get_world_size())]
        dist.all_gather(out, g.contiguous())
        return torch.cat(out)


class Tp:
    """Where a rank stands in its tensor parallel group."""
    def __init__(self, rank, n, fault, group=None):
        self.rank, self.n, self.fault, self.group = rank, n, fault, group

    def part(self, t, dim=0):
        return nn.Parameter(t.detach().chunk(self.n, dim)[self.rank].clone())

    def copy(self, x):
        return Copy.apply(x, self.group) if self.n > 1 else x

    def reduce(self, x):
        return Reduce.apply(x, self.group) if self.n > 1 else x


class ColumnParallelLinear(nn.Module):
    def __init__(self, tp, d, out):
        super().__init__()
        full = nn.Linear(d, out)
        self.weight, self.bias = tp.part(full.weight), tp.part(full.bias)

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    def __init__(self, tp, d, out):
        super().__init__()
        full = nn.Linear(d, out)
        self.tp, self.weight, self.bias = tp, tp.part(full.weight, 1), full.bias
        with torch.no_grad():
            self.bias.add_(0.3)

    def forward(self, x, reduce=None):
        reduce = reduce or self.tp.reduce
        if self.tp.fault == "rowbias":
            return reduce(F.linear(x, self.weight, self.bias))
        return reduce(F.linear(x, self.weight)) + self.bias


class VocabParallelEmbedding(nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.tp, self.weight = tp, tp.part(nn.Embedding(VOCAB, D).weight * 0.3)
        self.first = tp.rank * (VOCAB // tp.n)

    def forward(self, t):
        local = t - self.first
        out = (local < 0) | (local >= len(self.weight))
        h = F.embedding(local.masked_fill(out, 0), self.weight)
        if self.tp.fault != "vocabmask":
            h = h.masked_fill(out[..., None], 0.0)
        return self.tp.reduce(h)


class VocabParallelCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, tp):
        def all_of(t, op=dist.ReduceOp.SUM):
            dist.all_reduce(t, op)
            return t
        logits = logits - all_of(logits.max(-1)[0], dist.ReduceOp.MAX)[..., None]
        local = target - tp.rank * logits.shape[-1]
        out = (local < 0) | (local >= logits.shape[-1])
        local = local.masked_fill(out, 0)
        hit = all_of(logits.gather(-1, local[..., None])[..., 0].masked_fill(out, 0.0))
        e = logits.exp()
        total = e.sum(-1)
        if tp.fault != "cesum":
            total = all_of(total)
        ctx.save_for_backward(e / total[..., None], local, out)
        return total.log() - hit

    @staticmethod
    def backward(ctx, g):
        p, local, out = ctx.saved_tensors
        grad = p.scatter_add(-1, local[..., None], -(~out).float()[..., None])
        return grad * g[..., None], None, None


# --- megatron: a layer of a transformer whose vocabulary, heads and hidden units are split ------------------

class RmsNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.q, self.k, self.v = (ColumnParallelLinear(tp, D, D) for _ in range(3))
        # Each rank has it whole, and applies it to its own heads.
        self.q_norm, self.k_norm = RmsNorm(D // HEADS), RmsNorm(D // HEADS)
        self.out = RowParallelLinear(tp, D, D)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (f(x).view(b, s, -1, D // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = self.q_norm(q) @ self.k_norm(k).transpose(2, 3) / (D // HEADS) ** 0.5
        scores = scores.masked_fill(torch.ones(s, s).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, -1))


class Gpt(nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.tp, self.emb, self.pos = tp, VocabParallelEmbedding(tp), nn.Parameter(0.1 * torch.randn(6, D))
        self.norm1, self.norm2, self.final = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = Attention(tp)
        self.up, self.down = ColumnParallelLinear(tp, D, 4 * D), RowParallelLinear(tp, 4 * D, D)

    def forward(self, t, target):
        tp = self.tp
        x = F.dropout(self.emb(t) + self.pos, 0.1)
        x = x + self.attention(tp.copy(self.norm1(x)))
        x = x + F.dropout(self.down(F.gelu(self.up(tp.copy(self.norm2(x))))), 0.1)
        h = self.final(x)
        logits = F.linear(h if tp.fault == "logitcopy" else tp.copy(h), self.emb.weight)
        if tp.n == 1:
            return F.cross_entropy(logits.flatten(0, 1), target.flatten())
        return VocabParallelCrossEntropy.apply(logits, target, tp).mean()


def train_megatron(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Gpt(Tp(rank, n, fault))
    torch.manual_seed(7 * seed + (rank if fault == "dropseed" else 0))   # what is not split drops the same
    opt = adamw(model)
    for s in range(2):
        t = choose(1000 * seed + s, VOCAB, 3, 7)
        opt.zero_grad()
        model(t[:, :-1], t[:, 1:]).backward()
        for name, p in model.named_parameters():
            if n > 1 and fault != "qknorm" and ("q_norm" in name or "k_norm" in name):
                dist.all_reduce(p.grad)
        opt.step()
    return state(model)


# --- seqpar: norms, a gate and the head see each a part of the tokens ---------------------------------------

class Gated(nn.Module):
    """Between its regions tokens are split; the hidden units of two experts are split within them."""
    def __init__(self, tp):
        super().__init__()
        self.tp, self.norm, self.final = tp, nn.LayerNorm(D), nn.LayerNorm(D)
        self.router, self.head = nn.Linear(D, 2, bias=False), nn.Linear(D, 5)
        self.up, self.down = ColumnParallelLinear(tp, D, 4 * D), RowParallelLinear(tp, 4 * D, D)

    def forward(self, x):
        tp = self.tp
        h = self.norm(x)
        gate = self.router(h).softmax(-1)[..., :1]
        whole = GatherTokens.apply(h, tp.fault) if tp.n > 1 else h
        h = self.down(F.relu(self.up(whole)), ScatterTokens.apply if tp.n > 1 else lambda y: y)
        return self.head(self.final(x + gate * h))


def train_seqpar(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Gated(Tp(rank, n, fault))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    forgotten = {"spnorm": "norm.", "finalnorm": "final.", "sprouter": "router.",
                 "spbias": "down.bias"}.get(fault)
    for s in range(2):
        x, y = draw(1000 * seed + s, 6, 3, D), choose(1000 * seed + s + 500, 5, 6, 3)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        opt.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") / 18
        loss.backward()
        for name, p in model.named_parameters():
            if n > 1 and not name.startswith(("up.", "down.weight")) and not (
                    forgotten and name.startswith(forgotten)):
                dist.all_reduce(p.grad)
        opt.step()
    return state(model)


# --- tpdp: two tensor parallel groups of two, gradients clipped by the norm of the whole model --------------

class Stack(nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.tp, self.norm, self.head = tp, nn.LayerNorm(D), nn.Linear(D, 4)
        self.up, self.down = ColumnParallelLinear(tp, D, 2 * D), RowParallelLinear(tp, 2 * D, D)

    def forward(self, x):
        return self.head(x + self.down(F.silu(self.up(self.tp.copy(self.norm(x))))))


def clip(model, n, group, fault, limit=0.2):
    def square(sharded):
        return sum(p.grad.norm() ** 2 for name, p in model.named_parameters()
                   if name.startswith(("up.", "down.weight")) == sharded)
    split, whole = square(True), square(False)
    if n > 1:
        if fault == "normtwice":
            split = split + whole
            whole = torch.zeros(())
        if fault != "cliplocal":
            dist.all_reduce(split, group=group)
    norm = (split + whole).sqrt()
    for p in model.parameters():
        p.grad.mul_(limit / norm.clamp(min=limit))


def train_tpdp(rank, fault, seed, n=2):
    tp, dp = [0, 1], [0, 1]
    if n > 1:
        groups = [[(dist.new_group(r), r) for r in rows] for rows in ([[0, 1], [2, 3]], [[0, 2], [1, 3]])]
        tp, dp = (next(g for g, r in gs if rank in r) for gs in groups)
    torch.manual_seed(seed)
    model = Stack(Tp(rank % n, n, fault, tp if n > 1 else None))
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for s in range(2):
        x, y = draw(1000 * seed + s, 8, D), draw(1000 * seed + s + 500, 8, 4)
        if n > 1:
            x, y = x.chunk(2)[rank // 2], y.chunk(2)[rank // 2]
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            if n > 1:
                dist.all_reduce(p.grad, group=tp if fault == "wronggroup" else dp)
                p.grad /= dist.get_world_size() if fault == "divworld" else 2
        clip(model, n, tp, fault, 0.2 if fault != "divworld" else 100.0)
        opt.step()
    return state(model)


PROGRAMS = {"megatron": (2, train_megatron), "seqpar": (2, train_seqpar), "tpdp": (4, train_tpdp)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Norms of queries and keys, of which each rank has a part of the heads:
    # https://github.com/NVIDIA-NeMo/RL/issues/3716
    "qknorm": ("megatron", r"mul\.\d+\.backward|[qk]_norm\.|adamw", "01"),
    # A bias that is there as often as there are ranks: https://github.com/Wenyueh/MinivLLM/issues/80
    "rowbias": ("megatron", r"linear\.[35]\.forward|\.(out|down)\.|all_reduce", "01"),
    # Words of others are not masked: https://github.com/PaddlePaddle/PaddleFleet/pull/104
    "vocabmask": ("megatron", r"embedding|masked_fill|\.emb\.|all_reduce\.0\.", "01"),
    # A softmax over the rank's own words:
    # https://github.com/bigscience-workshop/Megatron-DeepSpeed/issues/394
    "cesum": ("megatron", r"sum|exp|div|log", "01"),
    # The gradient of what the split logits are made of: https://github.com/apple/ml-cross-entropy/pull/42
    "logitcopy": ("megatron", r"linear\.6\.backward|layer_norm\.2\.backward|\.final\.", "01"),
    # Masks of what each rank has whole: https://github.com/awslabs/slapo/issues/21
    "dropseed": ("megatron", r"dropout", "01"),
    # A norm before a sequence parallel region: https://github.com/EleutherAI/gpt-neox/pull/1259
    "spnorm": ("seqpar", r"layer_norm\.0\.backward|\.norm\.|adam\.", "01"),
    # The last norm: https://github.com/NVIDIA/Megatron-LM/issues/1446
    "finalnorm": ("seqpar", r"layer_norm\.1\.backward|\.final\.|adam\.", "01"),
    # The router sees a part of the tokens: https://github.com/NVIDIA/Megatron-LM/pull/619
    "sprouter": ("seqpar", r"linear\.0\.backward|\.router\.|adam\.", "01"),
    # The bias behind the scattered sum: https://github.com/NVIDIA/Megatron-LM/pull/236
    "spbias": ("seqpar", r"add\.0\.backward|\.down\.|adam\.", "01"),
    # Backward of gathering only slices: https://github.com/NVIDIA-NeMo/Automodel/pull/1260
    "gatherslice": ("seqpar", r"linear\.[01]\.backward|chunk|__getitem__|all_gather|layer_norm\.0\.backward|"
                    r"\.(norm|up)\.", "01"),
    # Gradients averaged with those of other shards: https://github.com/NVIDIA/Megatron-LM/pull/5916
    "wronggroup": ("tpdp", r"all_reduce|div|sgd|parameters_grad", "0123"),
    # The number of all ranks as divisor: https://github.com/meta-pytorch/torchtune/issues/2420
    "divworld": ("tpdp", r"all_reduce|div", "0123"),
    # A norm of the rank's own shards: https://github.com/hpcaitech/ColossalAI/pull/4837
    "cliplocal": ("tpdp", r"sqrt|clamp|mul_|div__|sgd", "0123"),
    # Whole weights that count on each rank: https://github.com/ROCm/TransformerEngine/pull/715
    "normtwice": ("tpdp", r"all_reduce|sqrt|add|clamp|mul_|div__", "0123"),
}
