"""Programs that split layers and sequences: latent attention as Megatron has it, gradients summed by hooks as
Paddle has it, and adapters; and what is reported to go wrong in such.

With n = 1 a train(rank, fault, seed, n) is what one process does that has the whole model and batch.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as cf
import torch.nn as nn
import torch.nn.functional as F

from sixkinds_kit import GatherTokens, ScatterTokens, choose, draw, state

D, HEADS, HEAD, LATENT, VOCAB = 16, 4, 6, 8, 20


# --- mla: latent attention; tokens are split outside of the attention and the MLP ---------------------------

class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def shard(weight, rank, n, dim=0):
    return nn.Parameter(weight.detach().chunk(n, dim)[rank].clone())


class LatentAttention(nn.Module):
    """Queries, and keys and values from their latent, by heads that are split; both latents' maps are whole."""
    def __init__(self, rank, n):
        super().__init__()
        self.n = n
        self.kv_a_proj, self.kv_a_norm = nn.Linear(D, LATENT, bias=False), RMSNorm(LATENT)
        self.q_proj = shard(0.3 * torch.randn(HEADS * HEAD, D), rank, n)
        self.kv_b_proj = shard(0.3 * torch.randn(HEADS * 2 * HEAD, LATENT), rank, n)
        self.o_proj = shard(0.3 * torch.randn(D, HEADS * HEAD), rank, n, 1)

    def forward(self, x):
        gather, scatter = (lambda t: t, lambda t: t) if self.n == 1 else (
            GatherTokens.apply, ScatterTokens.apply)
        latent = gather(self.kv_a_norm(self.kv_a_proj(x)))
        q = F.linear(gather(x), self.q_proj)
        s, b, _ = q.shape
        q = q.view(s, b, -1, HEAD).permute(1, 2, 0, 3)
        k, v = F.linear(latent, self.kv_b_proj).view(s, b, -1, 2 * HEAD).permute(1, 2, 0, 3).chunk(2, -1)
        scores = q @ k.transpose(2, 3) / HEAD ** 0.5
        scores = scores.masked_fill(torch.ones(s, s).triu(1).bool(), float("-inf"))
        out = (scores.softmax(-1) @ v).permute(2, 0, 1, 3).reshape(s, b, -1)
        return scatter(F.linear(out, self.o_proj))


class MlaModel(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.embed, self.attn = nn.Embedding(VOCAB, D), LatentAttention(rank, n)
        self.input_norm, self.final_norm = RMSNorm(D), RMSNorm(D)
        self.lm_head = nn.Linear(D, VOCAB, bias=False)

    def forward(self, tokens):
        h = self.embed(tokens)
        return self.lm_head(self.final_norm(h + self.attn(self.input_norm(h))))


def allreduce_sequence_parallel_grads(model):
    """What is whole on each rank has seen the rank's tokens; one bucket for all of them."""
    params = [p for p in model.parameters() if getattr(p, "sequence_parallel", False)]
    bucket = torch.cat([p.grad.flatten() for p in params])
    dist.all_reduce(bucket)
    for p, g in zip(params, bucket.split([p.numel() for p in params])):
        p.grad.copy_(g.view_as(p))


def train_mla(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MlaModel(rank, n)
    for name, p in model.named_parameters():
        p.sequence_parallel = not name.startswith(("attn.q_proj", "attn.kv_b_proj", "attn.o_proj"))
    if fault == "kva":
        model.attn.kv_a_proj.weight.sequence_parallel = False
    opt = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    for step in range(2):
        text = choose(1000 * seed + step, VOCAB, 9, 2)
        tokens, labels = (t.chunk(n)[rank] for t in (text[:-1], text[1:]))
        opt.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), reduction="sum") / 16
        loss.backward()
        if n > 1:
            allreduce_sequence_parallel_grads(model)
        opt.step()
    return state(model)


# --- fleet: patches that are split; hooks of the weights sum their gradients within backward ----------------

class MixerBlock(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.rank, self.n = rank, n
        self.norm, full1, full2 = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(3 * D, D)
        self.w1, self.b1 = shard(full1.weight, rank, n), shard(full1.bias, rank, n)
        self.w2, self.b2 = shard(full2.weight, rank, n, 1), full2.bias

    def forward(self, x):
        h = self.norm(x)
        if self.n > 1:
            h = torch.cat(cf.all_gather(h))
        h = F.linear(F.silu(F.linear(h, self.w1, self.b1)), self.w2)
        if self.n > 1:
            h = cf.all_reduce(h).chunk(self.n)[self.rank]
        return x + h + self.b2


class PatchClassifier(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.patch = nn.Linear(12, D)
        self.blocks = nn.ModuleList(MixerBlock(rank, n) for _ in range(2))
        self.head = nn.Linear(D, 5)

    def forward(self, x):
        x = self.patch(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def mark_as_sequence_parallel_parameter(p, average=1):
    def all_reduce_hook(grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad / average if average > 1 else grad
    p.register_hook(all_reduce_hook)


def train_fleet(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = PatchClassifier(rank, n)
    for name, p in model.named_parameters():
        if n == 1 or name.split(".")[-1] in ("w1", "b1", "w2"):
            continue
        if fault == "normhook" and name.endswith("norm.weight"):
            continue
        mark_as_sequence_parallel_parameter(p, n if fault == "hookmean" and "norm" in name else 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    for step in range(3):
        x, y = draw(1000 * seed + step, 8, 3, 12), choose(1000 * seed + step, 5, 8, 3)
        opt.zero_grad()
        out = model(x.chunk(n)[rank])
        loss = F.cross_entropy(out.flatten(0, 1), y.chunk(n)[rank].flatten(), reduction="sum") / 24
        loss.backward()
        opt.step()
        sched.step()
    return state(model)


# --- adapter: low-rank factors of a frozen MLP, of which one of each pair is whole on all ranks -------------

class LoraMlp(nn.Module):
    def __init__(self, rank, n, r=4):
        super().__init__()
        self.rank, self.n = rank, n
        for name, shape, dim in (("fc1", (3 * D, D), 0), ("fc2", (D, 3 * D), 1)):
            self.register_buffer(name, shard(0.3 * torch.randn(shape), rank, n, dim).data)
        self.fc1_lora_A = nn.Parameter(0.3 * torch.randn(r, D))
        self.fc1_lora_B = shard(0.1 * torch.randn(3 * D, r), rank, n)
        self.fc2_lora_A = shard(0.3 * torch.randn(r, 3 * D), rank, n, 1)
        self.fc2_lora_B = nn.Parameter(0.1 * torch.randn(D, r))

    def gather(self, x):
        return torch.cat(cf.all_gather(x)) if self.n > 1 else x

    def reduce_scatter(self, x):
        return cf.all_reduce(x).chunk(self.n)[self.rank] if self.n > 1 else x

    def forward(self, x):
        h = F.linear(self.gather(x), self.fc1)
        h = F.gelu(h + F.linear(self.gather(F.linear(x, self.fc1_lora_A)), self.fc1_lora_B))
        out = self.reduce_scatter(F.linear(h, self.fc2))
        return x + out + F.linear(self.reduce_scatter(F.linear(h, self.fc2_lora_A)), self.fc2_lora_B)


def train_adapter(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(LoraMlp(rank, n), LoraMlp(rank, n))
    whole = [p for name, p in model.named_parameters()
             if name.endswith("fc1_lora_A") or (name.endswith("fc2_lora_B") and fault != "lorab")]
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(3):
        x, y = (draw(1000 * seed + 2 * step + i, 6, 2, D).chunk(n)[rank] for i in range(2))
        opt.zero_grad()
        ((model(x) - y) ** 2).sum().div(6 * 2 * D).backward()
        if n > 1:
            works = [dist.all_reduce(p.grad, async_op=True) for p in whole]
            for work in works:
                work.wait()
        opt.step()
    return state(model)


PROGRAMS = {"mla": (2, train_mla), "fleet": (2, train_fleet), "adapter": (2, train_adapter)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # (1) The latent's map, which sees a part of the tokens: https://github.com/PaddlePaddle/PaddleFleet/pull/2008
    "kva": ("mla", r"linear\.0\.backward|\.kv_a_proj\.|all_reduce\.3\.|adamw", "01"),
    # (1) A hook of the bias, none of the weight: https://github.com/PaddlePaddle/PaddleFleetX/pull/671
    "normhook": ("fleet", r"layer_norm\.[01]\.backward|\.norm\.|sgd", "01"),
    # (1) The mean of what should be summed: https://github.com/EleutherAI/gpt-neox/pull/1259
    "hookmean": ("fleet", r"div\.[1-4]\.|all_reduce\.([6-9]|1[0-2])\.|layer_norm\.[01]\.backward|\.norm\.|sgd", "01"),
    # (1) The whole factor behind a scattered sum: https://github.com/modelscope/mcore-bridge/pull/173
    "lorab": ("adapter", r"linear\.(5|11)\.backward|\.LoraMlp|adam\.", "01"),
}
