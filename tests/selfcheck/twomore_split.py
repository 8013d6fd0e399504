"""Two ranks that share layers: a block in torchtitan's style with tensor and sequence parallelism, and a GPT-2 whose
heads, hidden units and words somebody split over two cards by hand.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has all of it.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from scripts_tensor import RmsNorm

D, HEAD, VOCAB, SEQ = 16, 4, 24, 8


def tokens(seed, *shape):
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def state(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items()}


def attend(q, k, v):
    """Causal attention over batch, heads, sequence, channels."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v


def all_gather(x):
    out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(out, x.contiguous())
    return out


def own(x, dim=0):
    return x.chunk(dist.get_world_size(), dim)[dist.get_rank()].contiguous()


class GatherTokens(torch.autograd.Function):
    """All tokens for layers of which a rank has a part; gloo has no reduce_scatter for the way back."""
    @staticmethod
    def forward(ctx, x):
        return torch.cat(all_gather(x))

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return own(g)


class ScatterTokens(torch.autograd.Function):
    """The sum over the ranks, of which each keeps its tokens."""
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return own(x)

    @staticmethod
    def backward(ctx, g):
        return torch.cat(all_gather(g))


class GatherLogits(torch.autograd.Function):
    """The logits of all words, of which all ranks take the same loss."""
    @staticmethod
    def forward(ctx, x):
        return torch.cat(all_gather(x), -1)

    @staticmethod
    def backward(ctx, g):
        return own(g, -1)


class Copy(torch.autograd.Function):
    """Into split layers: nothing forward, the sum of the gradients backward."""
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault = fault
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        total = g.contiguous()
        dist.all_reduce(total)
        return (g if ctx.fault == "headcopy" else total), None


class Reduce(torch.autograd.Function):
    """Out of split layers: the sum forward, nothing backward."""
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Column(nn.Module):
    """A rank's outputs of a linear layer."""
    def __init__(self, rank, n, d, out, bias=False):
        super().__init__()
        full = nn.Linear(d, out, bias)
        self.weight = nn.Parameter(full.weight.detach().chunk(n)[rank].clone())
        self.bias = nn.Parameter(full.bias.detach().chunk(n)[rank].clone()) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Row(nn.Module):
    """A rank's inputs of a linear layer; who calls it sums over the ranks."""
    def __init__(self, rank, n, d, out):
        super().__init__()
        self.weight = nn.Parameter(nn.Linear(d, out, False).weight.detach().chunk(n, 1)[rank].clone())

    def forward(self, x):
        return F.linear(x, self.weight)


class Words(nn.Module):
    """A rank's words; the others' are 0."""
    def __init__(self, rank, n):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(VOCAB, D).normal_(std=0.3).chunk(n)[rank].clone())
        self.first = rank * VOCAB // n

    def forward(self, ids):
        ids = ids - self.first
        others = (ids < 0) | (ids >= len(self.weight))
        return F.embedding(ids.masked_fill(others, 0), self.weight).masked_fill(others[..., None], 0.0)


# --- titan: a Llama block; between its layers each rank has its tokens of the sequence -----------------------

class Llama(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.n, self.tok_embeddings = n, Words(rank, n)
        self.attention_norm, self.ffn_norm, self.norm = RmsNorm(D), RmsNorm(D), RmsNorm(D)
        self.wq, self.wk, self.wv = (Column(rank, n, D, D) for _ in range(3))
        self.q_norm, self.k_norm, self.wo = RmsNorm(HEAD), RmsNorm(HEAD), Row(rank, n, D, D)
        self.w1, self.w3, self.w2 = Column(rank, n, D, 32), Column(rank, n, D, 32), Row(rank, n, 32, D)
        self.output = Column(rank, n, D, VOCAB)

    def attention(self, x):
        s, b, _ = x.shape
        q, k, v = (w(x).view(s, b, -1, HEAD).permute(1, 2, 0, 3) for w in (self.wq, self.wk, self.wv))
        return self.wo(attend(self.q_norm(q), self.k_norm(k), v).permute(2, 0, 1, 3).reshape(s, b, -1))

    def forward(self, ids):
        gather, scatter, logits = [lambda x: x] * 3 if self.n == 1 else (
            GatherTokens.apply, ScatterTokens.apply, GatherLogits.apply)
        h = scatter(self.tok_embeddings(ids))
        h = h + scatter(self.attention(gather(self.attention_norm(h))))
        x = gather(self.ffn_norm(h))
        h = h + scatter(self.w2(F.silu(self.w1(x)) * self.w3(x)))
        return logits(self.output(gather(self.norm(h))))


def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Llama(rank, n)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    # Norms see some of the tokens or of the heads.
    partial = ["attention_norm.weight", "ffn_norm.weight"]
    partial += [] if fault == "finalnorm" else ["norm.weight"]
    partial += [] if fault == "qknorm" else ["q_norm.weight", "k_norm.weight"]
    for step in range(2):
        ids = tokens(1000 * seed + step, SEQ + 1, 3)
        optimizer.zero_grad()
        F.cross_entropy(model(ids[:-1]).flatten(0, 1), ids[1:].flatten()).backward()
        for name in partial if n > 1 else []:
            dist.all_reduce(model.get_parameter(name).grad)
        optimizer.step()
    return state(model)


# --- gpttwo: GPT-2 on two cards, of which each has half of the heads, hidden units and words -----------------

class Gpt2(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault = n, fault
        self.wte, self.wpe = Words(rank, n), nn.Parameter(0.1 * torch.randn(SEQ, D))
        self.ln_1, self.ln_2, self.ln_f = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        # A bias of all keys would change nothing but for rounding, which AdamW would make steps of.
        self.q, self.k, self.v = (Column(rank, n, D, D, bias) for bias in (True, False, True))
        self.c_proj, self.c_fc, self.mlp_proj = Row(rank, n, D, D), Column(rank, n, D, 32, True), Row(rank, n, 32, D)

    def copy(self, x):
        return Copy.apply(x, self.fault) if self.n > 1 else x

    def reduce(self, x):
        return Reduce.apply(x) if self.n > 1 else x

    def forward(self, ids):
        b, s = ids.shape
        x = self.reduce(self.wte(ids)) + self.wpe
        h = self.copy(self.ln_1(x))
        q, k, v = (w(h).view(b, s, -1, HEAD).transpose(1, 2) for w in (self.q, self.k, self.v))
        x = x + self.reduce(self.c_proj(attend(q, k, v).transpose(1, 2).reshape(b, s, -1)))
        x = x + self.reduce(self.mlp_proj(F.gelu(self.c_fc(self.copy(self.ln_2(x))))))
        # The head wants the sequence first.
        h = self.copy(self.ln_f(x)).transpose(0, 1).contiguous()
        logits = F.linear(h, self.wte.weight)
        return GatherLogits.apply(logits) if self.n > 1 else logits


def train_gpttwo(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Gpt2(rank, n, fault)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(2):
        ids = tokens(1000 * seed + step, 3, SEQ + 1)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].t().flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return state(model)


PROGRAMS = {"titan": (2, train_titan), "gpttwo": (2, train_gpttwo)}
WHOLE = {name: lambda seed, train=train: train(0, None, seed, 1) for name, (_, train) in PROGRAMS.items()}

FAULTS = {
    # The last norm, under sequence parallelism: https://github.com/NVIDIA/Megatron-LM/issues/1446
    "finalnorm": ("titan", r"mul\.10\.|\.norm\.RmsNorm|adamw", "01"),
    # Norms of queries and keys that are whole, of which each rank normalizes its heads:
    # https://github.com/NVIDIA-NeMo/Automodel/pull/3822
    "qknorm": ("titan", r"mul\.[35]\.|\.[qk]_norm\.|adamw", "01"),
    # The gradient of what is transposed before the split head is summed in a copy, and not returned:
    # https://github.com/NovaSky-AI/SkyRL/pull/1886
    "headcopy": ("gpttwo", r"linear\.6\.backward|contiguous\.(0\.backward|3\.forward)|transpose\.5\.backward|"
                           r"all_reduce\.3\.|layer_norm\.2\.|\.ln_f\.|adamw", "01"),
}
