"""Programs whose ranks each have a part of a sequence: tensor and sequence parallel as ColossalAI has
it, a context split over the ranks; and what is reported of such.

Each train(rank, fault, seed, n) is a user's program; n = 1 is one process that has all.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

D, HEADS, VOCAB, LENGTH = 16, 4, 20, 8


def tokens(seed, batch=3):
    """Of a batch the words and the words that follow, sequence first."""
    t = torch.randint(VOCAB, (LENGTH + 1, batch), generator=torch.Generator().manual_seed(seed))
    return t[:-1], t[1:]


def state(model):
    out = {name: p.detach().clone() for name, p in model.named_parameters()}
    out.update((name + ".grad", p.grad.clone()) for name, p in model.named_parameters())
    return out


def gathered(x):
    x = x.contiguous()
    out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(out, x)
    return torch.cat(out)


def summed_part(x):
    """What reduce_scatter gives, which gloo has not."""
    x = x.contiguous().clone()
    dist.all_reduce(x)
    return x.chunk(dist.get_world_size())[dist.get_rank()].contiguous()


class Gather(torch.autograd.Function):
    """Of a split sequence the whole; backward, the rank's part of the sum."""
    @staticmethod
    def forward(ctx, x):
        return gathered(x)

    @staticmethod
    def backward(ctx, g):
        return summed_part(g)


class ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return summed_part(x)

    @staticmethod
    def backward(ctx, g):
        return gathered(g)


def attend(q, k, v, first=0):
    """Causal attention of heads, sequence first; the queries begin at token first."""
    q, k, v = (x.unflatten(-1, (-1, D // HEADS)).permute(1, 2, 0, 3) if x.dim() == 3 else x.permute(1, 2, 0, 3)
               for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) * (D // HEADS) ** -0.5
    later = torch.arange(k.shape[2]) > torch.arange(q.shape[2])[:, None] + first
    out = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
    return out.permute(2, 0, 1, 3).flatten(2)


# --- colossal: a layer as shardformer splits it, between its linears a part of the tokens -------------------

class Linear1D(nn.Module):
    """dim 0: columns, of the gathered tokens; dim 1: rows, whose sum is scattered."""
    def __init__(self, rank, n, inner, outer, dim):
        super().__init__()
        full = nn.Linear(inner, outer, bias=False)
        self.weight = nn.Parameter(full.weight.detach().chunk(n, dim)[rank].clone())
        self.scatter = dim == 1 and n > 1

    def forward(self, x):
        y = F.linear(x, self.weight)
        return ReduceScatter.apply(y) if self.scatter else y


class HeadNorm(nn.Module):
    """RMS norm of the queries or keys of a head, the same for all heads."""
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D // HEADS))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class BertLayer(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.gather = Gather.apply if n > 1 else lambda x: x
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q_norm, self.k_norm = HeadNorm(), HeadNorm()
        self.qkv = nn.ModuleList(Linear1D(rank, n, D, D, 0) for _ in range(3))
        self.out, self.up = Linear1D(rank, n, D, D, 1), Linear1D(rank, n, D, 3 * D, 0)
        self.down, self.gate = Linear1D(rank, n, 3 * D, D, 1), nn.Linear(D, 1, bias=False)

    def forward(self, x):
        h = self.gather(self.norm1(x))
        q, k, v = (f(h).unflatten(-1, (-1, D // HEADS)) for f in self.qkv)
        x = x + self.out(attend(self.q_norm(q), self.k_norm(k), v))
        h = self.norm2(x)
        return x + torch.sigmoid(self.gate(h)) * self.down(F.gelu(self.up(self.gather(h))))


class Bert(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.embed, self.layer = nn.Embedding(VOCAB, D), BertLayer(rank, n)
        self.final, self.head = nn.LayerNorm(D), nn.Linear(D, VOCAB)

    def forward(self, t):
        return self.head(self.final(self.layer(self.embed(t))))


def partial_parameters(model, fault):
    """Those whose gradient is of the rank's tokens or heads only."""
    missed = {"lnattr": ("layer.norm1", "layer.norm2"), "finalnorm": ("final",),
              "headnorm": ("layer.q_norm", "layer.k_norm"), "sharedgate": ("layer.gate",)}.get(fault, ())
    names = [n for n, m in model.named_modules() if isinstance(m, (nn.LayerNorm, HeadNorm, nn.Linear, nn.Embedding))]
    return [p for n in names if n not in missed for p in model.get_submodule(n).parameters()]


def train_colossal(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Bert(rank, n)
    partial = partial_parameters(model, fault)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        t, target = (x.chunk(n)[rank] for x in tokens(100 * seed + step))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(t).flatten(0, 1), target.flatten()) / n
        loss.backward()
        if n > 1:
            grads = [p.grad for p in partial]
            flat = _flatten_dense_tensors(grads)
            dist.all_reduce(flat)
            for grad, whole in zip(grads, _unflatten_dense_tensors(flat, grads)):
                grad.copy_(whole)
        optimizer.step()
    return state(model)


# --- context: each rank has half of the tokens and the keys and values of all ------------------------------

class ContextGpt(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.first, self.gather = rank * LENGTH // n, Gather.apply if n > 1 else lambda x: x
        self.wte, self.wpe = nn.Embedding(VOCAB, D), nn.Embedding(LENGTH, D)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.head = nn.Linear(D, VOCAB, bias=False)

    def forward(self, t):
        x = self.wte(t) + self.wpe(self.first + torch.arange(len(t)))[:, None]
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.proj(attend(q, self.gather(k), self.gather(v), self.first))
        return self.head(x + self.mlp(self.norm2(x)))


def train_context(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = ContextGpt(rank, n)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(3):
        t, labels = tokens(100 * seed + step)
        labels = labels.clone()
        labels[:3] = -100   # the prompt, which is of the first rank's tokens
        mine = labels.chunk(n)[rank]
        optimizer.zero_grad()
        count = ((labels if fault == "cpitems" else mine) != -100).sum().float()
        if n > 1 and fault != "cplocal":
            dist.all_reduce(count)
            count = count / n   # the gradients are averaged
        logits = model(t.chunk(n)[rank])
        loss = F.cross_entropy(logits.flatten(0, 1), mine.flatten(), ignore_index=-100, reduction="sum") / count
        loss.backward()
        for p in model.parameters():
            if n > 1:
                dist.all_reduce(p.grad)
                if fault != "cpsum":
                    p.grad /= n
        optimizer.step()
    return state(model)


PROGRAMS = {"colossal": (2, train_colossal), "context": (2, train_context)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}
# Each place to which one could rightly be sent: where the gradient is made or summed, the step that takes it, and where
# the parted weights are first read.
SUMMED = r"|flatten_dense_tensors\.0|all_reduce\.4\.|adamw"
SCALED = r"\bsum\.|\bdiv\.\d|div_\.|all_reduce\.([2-9]|1\d)\.|parameters_grad|sgd"

FAULTS = {
    # A norm's gradient not summed over TP.
    # The mark by which the norms are found has another name: https://github.com/NVIDIA-NeMo/Speech/pull/7184
    "lnattr": ("colossal", r"layer_norm\.[01]\.|\.norm[12]\." + SUMMED, "01"),
    # The last norm only: https://github.com/NVIDIA/Megatron-LM/issues/1446
    "finalnorm": ("colossal", r"layer_norm\.2\.|\.final\." + SUMMED, "01"),
    # Norms of queries and keys, of which a rank sees its heads: https://github.com/NVIDIA-NeMo/RL/issues/3716
    "headnorm": ("colossal", r"\bmul\.[13]\.|\.[qk]_norm\." + SUMMED, "01"),
    # A router that differs by rank.
    # The gate of a shared expert sees a part of the tokens: https://github.com/alibaba/Pai-Megatron-Patch/issues/397
    "sharedgate": ("colossal", r"linear\.4\.|\.gate\." + SUMMED, "01"),
    # Loss scaled wrongly under CP.
    # By the rank's own number of tokens: https://github.com/PrimeIntellect-ai/prime-rl/pull/2562
    "cplocal": ("context", r"\bne\.|float|cross_entropy|" + SCALED, "01"),
    # Scaled up by the ranks, though the gradients are summed: https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpsum": ("context", SCALED, "01"),
    # Tokens of the whole sequence counted on each rank: https://github.com/huggingface/transformers/issues/39648
    "cpitems": ("context", r"\bne\.|float|all_reduce\.0\.|" + SCALED, "01"),
}
