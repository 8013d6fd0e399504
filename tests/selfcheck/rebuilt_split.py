"""Layers whose weights or tokens are split over ranks, in the style of Megatron and of plain scripts, with what
trackers report: norms that are split by tokens, losses scaled for too few ranks.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model.
"""
import math

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from rebuilt_kit import HID, VOCAB, choose, kept, my_group, reduce_scatter


# --- mla: a layer as Megatron has it, tensor and sequence parallel, keys and values through a latent ----------

LATENT, ROPE, HEADS = 6, 4, 4


class SpGather(torch.autograd.Function):
    """All tokens; backward the sum of what the ranks have for mine, or mine of what all have alike."""
    @staticmethod
    def forward(ctx, x, summed):
        ctx.summed = summed
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        if not ctx.summed:
            return g.chunk(dist.get_world_size())[dist.get_rank()].contiguous(), None
        return reduce_scatter(g), None


class SpScatter(torch.autograd.Function):
    """The sum over the ranks, of which each keeps its tokens."""
    @staticmethod
    def forward(ctx, x):
        return reduce_scatter(x)

    @staticmethod
    def backward(ctx, g):
        parts = [torch.empty_like(g) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, g.contiguous())
        return torch.cat(parts)


class SplitLinear(nn.Module):
    """A rank's rows (dim 0) or columns (dim 1) of a linear layer without bias."""
    def __init__(self, d_in, d_out, dim, rank, n):
        super().__init__()
        self.weight = nn.Parameter(nn.Linear(d_in, d_out).weight.detach().chunk(n, dim)[rank].clone())

    def forward(self, x):
        return F.linear(x, self.weight)


class SpNorm(nn.LayerNorm):
    def __init__(self, d, fault):
        super().__init__(d)
        self.bias.sequence_parallel = True
        self.weight.sequence_parallel = fault != "normweight"


class LatentAttention(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault, self.dim = n, fault, HID // HEADS
        self.q_proj = SplitLinear(HID, HID + HEADS * ROPE, 0, rank, n)
        self.kv_down_proj = nn.Linear(HID, LATENT + ROPE, bias=False)
        self.kv_down_proj.weight.sequence_parallel = fault != "kvdown"
        self.kv_norm = SpNorm(LATENT, fault)
        self.kv_up_proj = SplitLinear(LATENT, 2 * HID, 0, rank, n)
        self.out_proj = SplitLinear(HID, HID, 1, rank, n)

    def gather(self, x, summed=True):
        return SpGather.apply(x, summed) if self.n > 1 else x

    def forward(self, x):
        latent, k_pos = self.kv_down_proj(x).split([LATENT, ROPE], -1)
        kv = self.kv_up_proj(self.gather(self.kv_norm(latent)))
        # One key of positions for all heads, of which each rank has some.
        k_pos = self.gather(k_pos, self.fault != "kpos")
        q = self.q_proj(self.gather(x))
        s, b, _ = q.shape
        heads = HEADS // self.n
        q = q.view(s, b, heads, -1).permute(1, 2, 0, 3)
        k, v = kv.view(s, b, heads, -1).permute(1, 2, 0, 3).chunk(2, -1)
        k = torch.cat([k, k_pos.permute(1, 0, 2)[:, None].expand(-1, heads, -1, -1)], -1)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.dim + ROPE)
        mask = torch.ones(s, s, dtype=torch.bool).triu(1)
        out = scores.masked_fill(mask, -1e4).softmax(-1) @ v
        out = self.out_proj(out.permute(2, 0, 1, 3).reshape(s, b, -1))
        return SpScatter.apply(out) if self.n > 1 else out


class MlaModel(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.word_embeddings, self.output_layer = nn.Embedding(VOCAB, HID), nn.Linear(HID, VOCAB, bias=False)
        for layer in (self.word_embeddings, self.output_layer):
            layer.weight.sequence_parallel = True
        self.input_norm, self.mlp_norm, self.final_norm = (SpNorm(HID, fault) for _ in range(3))
        self.attention = LatentAttention(rank, n, fault)
        self.fc1, self.fc2 = SplitLinear(HID, 2 * HID, 0, rank, n), SplitLinear(2 * HID, HID, 1, rank, n)

    def forward(self, tokens):
        x = self.word_embeddings(tokens)
        x = x + self.attention(self.input_norm(x))
        h = self.fc2(F.silu(self.fc1(self.attention.gather(self.mlp_norm(x)))))
        return self.output_layer(self.final_norm(x + (SpScatter.apply(h) if self.attention.n > 1 else h)))


def train_mla(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MlaModel(rank, n, fault)
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, SpNorm)):
            norm.weight.add_(0.1 * torch.randn_like(norm.weight))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    for step in range(2):
        tokens = choose(100 * seed + step, VOCAB, 9, 2)
        inputs, labels = (t.chunk(n)[rank] for t in (tokens[:-1], tokens[1:]))
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 16
        loss.backward()
        if n > 1:
            grads = [p.grad for p in model.parameters() if getattr(p, "sequence_parallel", False)]
            flat = _flatten_dense_tensors(grads)
            dist.all_reduce(flat)
            for grad, summed in zip(grads, _unflatten_dense_tensors(flat, grads)):
                grad.copy_(summed)
        optimizer.step()
    return kept(model)


# --- ulysses: a plain script; two data parallel groups of two that split the sequence, and the heads within -----

class UlyssesBlock(nn.Module):
    def __init__(self, sp_group, sp):
        super().__init__()
        self.sp_group, self.sp = sp_group, sp
        self.emb, self.pos = nn.Embedding(VOCAB, HID), nn.Parameter(0.3 * torch.randn(8, HID))
        self.ln1, self.ln2 = nn.LayerNorm(HID), nn.LayerNorm(HID)
        self.wqkv, self.wo = nn.Linear(HID, 3 * HID), nn.Linear(HID, HID)
        self.up, self.down, self.lm_head = nn.Linear(HID, 32), nn.Linear(32, HID), nn.Linear(HID, VOCAB)

    def swap(self, x, there):
        """(heads of all, my tokens) to (my heads, tokens of all), and back; tensors are (tokens, heads, ...)."""
        if self.sp == 1:
            return x
        split, joined = (1, 0) if there else (0, 1)
        x = torch.stack(x.chunk(self.sp, split)).contiguous()
        x = dist_fn.all_to_all_single(torch.empty_like(x), x, group=self.sp_group)
        return torch.cat(x.unbind(0), joined)

    def forward(self, ids, first):
        x = self.emb(ids) + self.pos[first:first + len(ids)]
        qkv = self.wqkv(self.ln1(x)).view(len(ids), HEADS, -1)
        q, k, v = self.swap(qkv, True).transpose(0, 1).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / (HID // HEADS) ** 0.5
        probs = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), float("-inf")).softmax(-1)
        x = x + self.wo(self.swap((probs @ v).transpose(0, 1), False).flatten(1))
        return self.lm_head(x + self.down(F.gelu(self.up(self.ln2(x)))))


def train_ulysses(rank, fault, seed, n=4):
    sp, dp = (2, 2) if n > 1 else (1, 1)
    sp_group = my_group(rank, [0, 1], [2, 3]) if n > 1 else None
    torch.manual_seed(seed + 5)
    model = UlyssesBlock(sp_group, sp)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    for step in range(2):
        optimizer.zero_grad()
        for seq in [rank // sp] if n > 1 else range(2):
            ids = choose(1000 * seed + 10 * step + seq, VOCAB, 9)
            labels = ids[1:].clone()
            labels[:2 + seq] = -100     # the prompt
            ids, labels = ids[:-1].chunk(sp)[rank % sp], labels.chunk(sp)[rank % sp]
            loss_sum = F.cross_entropy(model(ids, rank % sp * len(ids)), labels, reduction="sum")
            total = torch.tensor(11.0)      # of both sequences
            if n > 1:
                total = (labels != -100).sum().float()
                dist.all_reduce(total)
            loss = loss_sum / total * (dp if fault == "dpsize" else dp * sp)
            loss.backward()
        if n > 1:
            works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
            for work, p in zip(works, model.parameters()):
                work.wait()
                p.grad.div_(dp if fault == "cpscale" else dp * sp)
        optimizer.step()
        scheduler.step()
    return kept(model)


PROGRAMS = {"mla": (2, train_mla), "ulysses": (4, train_ulysses)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Of norms before and after split tokens only the bias is summed:
    # https://github.com/PaddlePaddle/PaddleFleetX/pull/671
    "normweight": ("mla", r"layer_norm\.\d+\.backward|_norm\.SpNorm|sgd", "01"),
    # The whole projection to the latent, which sees a part of the tokens:
    # https://github.com/PaddlePaddle/PaddleFleet/pull/2008
    "kvdown": ("mla", r"linear\.0\.backward|kv_down_proj|sgd", "01"),
    # The key of positions goes to heads of all ranks, and backward is a slice:
    # https://github.com/NVIDIA/Megatron-LM/issues/1699
    "kpos": ("mla", r"(expand|__getitem__)\.0\.backward|permute\.2\.backward|cat\.[13]\.|all_gather\.1\.|"
             r"chunk\.1\.|contiguous\.1[01]?\.|split\.0\.backward|linear\.0\.backward|kv_down_proj", "01"),
    # A mean over more ranks than the loss is scaled for: https://github.com/ByteDance-Seed/VeOmni/pull/338
    "dpsize": ("ulysses", r"mul\.0\.|div\.1\.|cross_entropy|all_reduce|div_", "0123"),
    # Scaled for the parts of a sequence, and not averaged over them:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscale": ("ulysses", r"mul\.0\.|div\.1\.|cross_entropy|all_reduce|div_", "0123"),
}
