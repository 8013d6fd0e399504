"""Small trainers: transformers of whose sequences each rank has a part, and what public trackers report to go wrong
with their labels, losses, noise and gradients.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from trainers_kit import causal, ids, my_groups, rand, state


# --- titan: context parallel, keys and values gathered, rotary positions ------------------------------------

class GatherSequence(torch.autograd.Function):
    """The whole sequence of what each rank has a part of; gloo has no reduce_scatter for the way back."""
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size(), 1)[dist.get_rank()].contiguous()


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, first):
    """Rotary embedding of (batch, tokens, d) whose first token is at first."""
    half = x.shape[-1] // 2
    angle = torch.arange(first, first + x.shape[1])[:, None] * 10.0 ** -torch.arange(half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class TitanLayer(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.attention_norm, self.ffn_norm, self.n = RMSNorm(d), RMSNorm(d), n
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w1, self.w3 = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.w2 = nn.Linear(2 * d, d, bias=False)

    def forward(self, x, first):
        h = self.attention_norm(x)
        q, k, v = rotate(self.wq(h), first), rotate(self.wk(h), first), self.wv(h)
        if self.n > 1:
            k, v = GatherSequence.apply(k), GatherSequence.apply(v)
        x = x + self.wo(causal(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, first) @ v)
        h = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Titan(nn.Module):
    def __init__(self, n, vocab=16, d=8):
        super().__init__()
        self.tok_embeddings, self.norm = nn.Embedding(vocab, d), RMSNorm(d)
        self.layers = nn.ModuleList(TitanLayer(d, n) for _ in range(2))
        self.output = nn.Linear(d, vocab, bias=False)

    def forward(self, tokens, first):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, first)
        return self.output(self.norm(h))


def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Titan(n)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    for step in range(2):
        tokens = ids(200 * seed + step, 16, 2, 8)
        if fault == "cpshift":
            tokens = tokens.chunk(n, 1)[rank]
            labels = F.pad(tokens[:, 1:], (0, 1), value=-100)
        else:
            labels = F.pad(tokens[:, 1:], (0, 1), value=-100).chunk(n, 1)[rank]
            tokens = tokens.chunk(n, 1)[rank]
        logits = model(tokens, rank * tokens.shape[1])
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        valid = (labels != -100).sum().float()
        if n > 1:
            dist.all_reduce(valid)
        # Times the ranks, as gradients are averaged over them.
        (loss * n / valid).backward()
        for p in model.parameters() if n > 1 else ():
            if fault != "cpscale":
                p.grad.div_(n)
            dist.all_reduce(p.grad)
        opt.step()
        opt.zero_grad()
    return state(model)


# --- dit: a diffusion transformer, two data parallel groups of two ranks that share a sequence (Ulysses) -----

class SwapHeadsAndTokens(torch.autograd.Function):
    """Of (tokens, heads, d): from a part of the tokens and all heads to all tokens and a part of the heads, or back."""
    @staticmethod
    def forward(ctx, x, group, to_heads):
        ctx.group, ctx.to_heads = group, to_heads
        send = torch.stack(x.chunk(2, 1 if to_heads else 0)).contiguous()
        got = torch.empty_like(send)
        dist.all_to_all_single(got, send, group=group)
        return torch.cat(list(got), 0 if to_heads else 1)

    @staticmethod
    def backward(ctx, grad):
        return SwapHeadsAndTokens.apply(grad, ctx.group, not ctx.to_heads), None, None


class DitBlock(nn.Module):
    def __init__(self, d, heads, group):
        super().__init__()
        self.heads, self.group = heads, group
        self.norm, self.qkv, self.proj = nn.LayerNorm(d, elementwise_affine=False), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.modulate = nn.Linear(d, 2 * d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, c):
        shift, scale = self.modulate(F.silu(c)).chunk(2)
        q, k, v = self.qkv(self.norm(x) * (1 + scale) + shift).view(len(x), 3 * self.heads, -1).chunk(3, 1)
        if self.group is not None:
            q, k, v = (SwapHeadsAndTokens.apply(z, self.group, True) for z in (q, k, v))
        q, k, v = (z.transpose(0, 1) for z in (q, k, v))
        y = ((q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(0, 1).contiguous()
        if self.group is not None:
            y = SwapHeadsAndTokens.apply(y, self.group, False)
        x = x + self.proj(y.reshape(x.shape))
        return x + self.mlp(x)


class Dit(nn.Module):
    def __init__(self, group, d=8):
        super().__init__()
        self.patch, self.time, self.final = nn.Linear(4, d), nn.Linear(1, d), nn.Linear(d, 4)
        self.blocks = nn.ModuleList(DitBlock(d, 2, group) for _ in range(2))

    def forward(self, x, t):
        c, h = self.time(t), self.patch(x)
        for block in self.blocks:
            h = block(h, c)
        return self.final(h)


def train_dit(rank, fault, seed, n=4):
    sp_group, dp_group = my_groups(rank) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = Dit(sp_group)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    dp_size, sp_size = (2, 2) if n > 1 else (1, 1)
    for step in range(2):
        loss, count = 0, torch.zeros(())
        for video in [rank // sp_size] if n > 1 else [0, 1]:
            latent, frames = rand(1000 * seed + 2 * step + video, 6, 4), [6, 4][video]
            # Each rank draws, and has what the first of those draws that share its video.
            drawn = rand(3000 * seed + 10 * step + (rank if n > 1 else 2 * video), 25)
            if n > 1 and fault != "spnoise":
                dist.broadcast(drawn, rank // sp_size * sp_size, group=sp_group)
            noise, t = drawn[:24].view(6, 4), drawn[24:].sigmoid()
            mask = (torch.arange(6) < frames).float()       # the rest is padding
            x, target, mask = (z.chunk(sp_size)[rank % sp_size] for z in ((1 - t) * latent + t * noise,
                                                                          noise - latent, mask))
            loss = loss + ((model(x, t) - target).square().mean(-1) * mask).sum()
            count = count + mask.sum()
        if n > 1:
            dist.all_reduce(count)
        # Times the ranks, as gradients are averaged over them.
        loss = loss / count * (dp_size if fault == "spfactor" else dp_size * sp_size)
        opt.zero_grad()
        loss.backward()
        for p in model.parameters() if n > 1 else ():
            dist.all_reduce(p.grad, group=dp_group if fault == "spdponly" else None)
            p.grad /= dist.get_world_size(dp_group if fault == "spdponly" else None)
        opt.step()
    return state(model)


PROGRAMS = {"titan": (2, train_titan), "dit": (4, train_dit)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Labels shifted after the sequence is split: the last token of a part has none:
    # https://github.com/huggingface/transformers/pull/36607
    "cpshift": ("titan", r"pad\.|cross_entropy|flatten|chunk|__getitem__\.0|ne\.\d|sum\.|all_reduce\.0\.", "01"),
    # The loss times the context parallel size, gradients divided by the data parallel size alone:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscale": ("titan", r"mul\.32\.|div\.2\.|cross_entropy|all_reduce|sgd|parameters_grad", "01"),
    # Gradients averaged over the data parallel group, not over those that share a sequence:
    # https://github.com/ByteDance-Seed/VeOmni/pull/1115
    "spdponly": ("dit", r"all_reduce|div_|sgd|parameters_grad", "0123"),
    # Ranks that share a sequence draw noise and time each for itself:
    # https://github.com/NVIDIA-NeMo/Automodel/pull/3157
    "spnoise": ("dit", r"sigmoid|mul\.[01]\.|__getitem__|view\.0|add\.0|sub\.0|rsub|linear\.[01]\.forward|all_to_all|"
                r"chunk", "0123"),
    # The loss times the data parallel size, gradients averaged over that and the sequence parallel one:
    # https://github.com/ByteDance-Seed/VeOmni/pull/338
    "spfactor": ("dit", r"mul\.5\.|div\.2\.|all_reduce|sum\.0|div_|parameters_grad", "0123"),
}
