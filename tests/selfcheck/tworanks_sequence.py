"""Trainers on two ranks that split sequences, in the style of Megatron-LM: tensor and sequence parallel, context
parallel, a switch of experts in a sequence parallel region; and a norm's gradient that is not summed, a loss
scaled wrongly, a router that differs.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from scripts_tensor import RmsNorm

D, HEADS, VOCAB, TOKENS = 16, 4, 20, 8


def tokens(seed, batch, length=TOKENS + 1):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def state(model):
    """The weights, and the gradients of the last step."""
    out = {name: p.detach().clone() for name, p in model.named_parameters()}
    return out | {f"{name}.grad": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


class GatherFromSequence(torch.autograd.Function):
    """All ranks' parts of dim; backward the sum of the gradients, of which each keeps its part."""
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out, dim)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)          # gloo has no reduce_scatter
        return g.chunk(dist.get_world_size(), ctx.dim)[dist.get_rank()].contiguous(), None


class ReduceScatterToSequence(torch.autograd.Function):
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


def gather(x, n, dim=0):
    return GatherFromSequence.apply(x, dim) if n > 1 else x


def scatter(x, n):
    return ReduceScatterToSequence.apply(x) if n > 1 else x


def allreduce_sequence_parallel_grads(model):
    """What is whole on each rank but sees a part of the tokens, in one flat buffer."""
    grads = [p.grad for p in model.parameters() if getattr(p, "sequence_parallel", False)]
    flat = torch._utils._flatten_dense_tensors(grads)
    dist.all_reduce(flat)
    for g, synced in zip(grads, torch._utils._unflatten_dense_tensors(flat, grads)):
        g.copy_(synced)


def mark(module, attribute="sequence_parallel"):
    for p in module.parameters():
        setattr(p, attribute, True)
    return module


def split(linear, rank, n, dim=0):
    """A column (dim 0) or row (dim 1) parallel part of a linear."""
    linear.weight = nn.Parameter(linear.weight.detach().chunk(n, dim)[rank].clone())
    return linear


def attend(q, k, v, first=0):
    """Causal; q are the tokens from first on."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    hidden = torch.ones(q.shape[-2], k.shape[-2]).triu(1 + first).bool()
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


# --- spgpt: a layer of a transformer, tensor and sequence parallel; its norms see half of the tokens --------

class SpGpt(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n = n
        self.word, self.head = mark(nn.Embedding(VOCAB, D)), mark(nn.Linear(D, VOCAB, bias=False))
        called = "sequence_parallel_enabled" if fault == "normname" else "sequence_parallel"
        self.input_norm, self.mlp_norm = mark(nn.LayerNorm(D), called), mark(nn.LayerNorm(D), called)
        self.final_norm = nn.LayerNorm(D)
        if fault != "finalnorm":
            mark(self.final_norm)
        self.q, self.k, self.v = (split(nn.Linear(D, D, bias=False), rank, n) for _ in range(3))
        # Each rank has these whole, and applies them to its own heads.
        self.q_norm, self.k_norm = RmsNorm(D // HEADS), RmsNorm(D // HEADS)
        if fault != "qknorms":
            mark(self.q_norm), mark(self.k_norm)
        self.out = split(nn.Linear(D, D, bias=False), rank, n, 1)
        self.up = split(nn.Linear(D, 4 * D, bias=False), rank, n)
        self.down = split(nn.Linear(4 * D, D, bias=False), rank, n, 1)

    def heads(self, x):
        return x.view(*x.shape[:2], -1, D // HEADS).permute(1, 2, 0, 3)

    def forward(self, t):
        x = self.word(t)
        h = gather(self.input_norm(x), self.n)
        q, k, v = self.q_norm(self.heads(self.q(h))), self.k_norm(self.heads(self.k(h))), self.heads(self.v(h))
        h = attend(q, k, v).permute(2, 0, 1, 3).flatten(2)
        x = x + scatter(self.out(h), self.n)
        h = gather(self.mlp_norm(x), self.n)
        x = x + scatter(self.down(F.gelu(self.up(h))), self.n)
        return self.head(self.final_norm(x))


def train_spgpt(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = SpGpt(rank, n, fault)
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for s in range(3):
        t = tokens(100 * seed + s, 2).t()
        inputs, labels = t[:-1].chunk(n)[rank], t[1:].chunk(n)[rank]
        opt.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), reduction="sum") / t[1:].numel()
        loss.backward()
        if n > 1:
            allreduce_sequence_parallel_grads(model)
        opt.step()
    return state(model)


# --- cpgpt: context parallel; each rank has half of each sequence, and gathers keys and values --------------

class CpGpt(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.n, self.first = n, rank * TOKENS // n
        self.word, self.position = nn.Embedding(VOCAB, D), nn.Embedding(TOKENS, D)
        self.input_norm, self.mlp_norm, self.final_norm = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down, self.head = nn.Linear(D, 4 * D), nn.Linear(4 * D, D), nn.Linear(D, VOCAB)

    def forward(self, t):
        x = self.word(t) + self.position(torch.arange(self.first, self.first + t.shape[1]))
        h = self.input_norm(x)
        k, v = gather(self.k(h), self.n, 1), gather(self.v(h), self.n, 1)
        x = x + self.out(attend(self.q(h), k, v, self.first))
        x = x + self.down(F.gelu(self.up(self.mlp_norm(x))))
        return self.head(self.final_norm(x))


def loss_func(output, labels, loss_mask, n, fault):
    """The mean of what is not masked in the whole sequence, times the ranks whose gradients are averaged."""
    losses = F.cross_entropy(output.flatten(0, 1), labels.flatten(), reduction="none")
    num_tokens, cp_size = loss_mask.sum(), n
    if fault == "cplocal":
        cp_size = 1
    elif n > 1:
        dist.all_reduce(num_tokens)
    if fault == "cpsize":
        cp_size = 1
    return (losses * loss_mask.flatten()).sum() / num_tokens * cp_size


def train_cpgpt(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = CpGpt(rank, n)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for s in range(3):
        t = tokens(100 * seed + s, 3)
        # Prompts are masked, so that the first rank has fewer tokens that count.
        mask = (torch.arange(TOKENS) >= torch.tensor([[2], [3], [1]])).float()
        inputs, labels, loss_mask = (x.chunk(n, 1)[rank] for x in (t[:, :-1], t[:, 1:], mask))
        opt.zero_grad()
        loss_func(model(inputs), labels, loss_mask, n, fault).backward()
        for p in model.parameters():
            if n > 1:
                dist.all_reduce(p.grad)
                p.grad /= 1 if fault == "cpgrads" else n
        opt.step()
    return state(model)


# --- switch: sequence parallel, a router in front of two experts of which each rank has one -----------------

class SwitchMlp(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n = n
        self.inputs, self.head = mark(nn.Linear(D, D)), mark(nn.Linear(D, 5))
        self.norm, self.router = mark(nn.LayerNorm(D)), nn.Linear(D, 2)
        if fault != "switchrouter":
            mark(self.router)
        experts = [nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D)) for _ in range(2)]
        self.experts = nn.ModuleDict({str(i): experts[i] for i in ([rank] if n > 1 else [0, 1])})

    def forward(self, x):
        x = torch.tanh(self.inputs(x))
        h = self.norm(x)
        prob, index = self.router(h).softmax(-1).max(-1, keepdim=True)
        whole = gather(h, self.n)
        if self.n > 1:
            parts = [torch.empty_like(index) for _ in range(self.n)]
            dist.all_gather(parts, index)
            index = torch.cat(parts)
        y = sum(expert(whole) * (index == int(i)) for i, expert in self.experts.items())
        return self.head(x + prob * scatter(y, self.n))


def train_switch(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = SwitchMlp(rank, n, fault)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for s in range(3):
        g = torch.Generator().manual_seed(100 * seed + s)
        x, y = torch.randn(TOKENS, 3, D, generator=g), torch.randint(5, (TOKENS, 3), generator=g)
        opt.zero_grad()
        logits, labels = model(x.chunk(n)[rank]), y.chunk(n)[rank]
        (F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / y.numel()).backward()
        if n > 1:
            allreduce_sequence_parallel_grads(model)
        opt.step()
    return state(model)


PROGRAMS = {"spgpt": (2, train_spgpt), "cpgpt": (2, train_cpgpt), "switch": (2, train_switch)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # A norm's gradient: marked by another name than the one that is looked for:
    # https://github.com/NVIDIA-NeMo/Speech/pull/7184
    "normname": ("spgpt", r"layer_norm\.[01]\.|\.(input|mlp)_norm\.|flatten_dense|all_reduce\.4\.|adamw", "01"),
    # The last norm is not marked: https://github.com/NVIDIA/Megatron-LM/issues/1446
    "finalnorm": ("spgpt", r"layer_norm\.2\.|\.final_norm\.|flatten_dense|all_reduce\.4\.|adamw", "01"),
    # Norms of queries and keys, of which each rank has its heads:
    # https://github.com/NVIDIA-NeMo/RL/issues/3716
    "qknorms": ("spgpt", r"Tensor\.mul\.[13]\.|\.[qk]_norm\.|flatten_dense|all_reduce\.4\.|adamw", "01"),
    # A loss under context parallelism: the mean over the rank's own tokens:
    # https://github.com/PrimeIntellect-ai/prime-rl/pull/1960
    "cplocal": ("cpgpt", r"Tensor\.(sum\.0|div\.1|mul\.1)\.|all_reduce\.([2-9]|[12]\d)\.|div_|sgd", "01"),
    # Times the data parallel ranks alone, where gradients are averaged over those of both:
    # https://github.com/NovaSky-AI/SkyRL/pull/1420
    "cpsize": ("cpgpt", r"Tensor\.(div\.1|mul\.1)\.|all_reduce\.([3-9]|[12]\d)\.|div_|sgd", "01"),
    # Times the context parallel ranks, where gradients are divided by the data parallel ones alone:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpgrads": ("cpgpt", r"Tensor\.(div\.1|mul\.1)\.|all_reduce\.([3-9]|[12]\d)\.|div_|sgd", "01"),
    # A router that differs: it sees the rank's own tokens: https://github.com/NVIDIA/Megatron-LM/issues/599
    "switchrouter": ("switch", r"linear\.1\.|\.router\.|flatten_dense|all_reduce\.2\.|adam", "01"),
}
