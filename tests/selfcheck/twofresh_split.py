"""Programs that split what one sequence needs over two ranks, tensor parallel ones, one with sequence parallel regions;
and what trackers report of their norms and their gates.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the
whole model and the whole sequence, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from scripts_tensor import RmsNorm
from tworanks_sequence import state

D, HEADS, VOCAB, SEQ, BATCH = 16, 4, 20, 8, 3


def draw(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def words(seed, *shape, high=VOCAB):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def total(t):
    t = t.contiguous().clone()
    dist.all_reduce(t)
    return t


def gathered(t, dim=0):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t.contiguous())
    return torch.cat(parts, dim)


def mine(t, dim=0):
    return t.chunk(dist.get_world_size(), dim)[dist.get_rank()].contiguous()


def mapping(forward, backward):
    """An autograd.Function of one tensor, as Megatron has them in mappings.py."""
    return type("Mapping", (torch.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: forward(x)),
        "backward": staticmethod(lambda ctx, g: backward(g))}).apply


copy_to_region = mapping(lambda x: x.view_as(x), total)
reduce_from_region = mapping(total, lambda g: g)
# gloo has no reduce_scatter: the sum, of which each rank keeps its part
scatter_to_sequence = mapping(mine, gathered)
gather_from_sequence = mapping(gathered, lambda g: mine(total(g)))
gather_before_head = mapping(gathered, mine)
reduce_scatter_to_sequence = mapping(lambda x: mine(total(x)), gathered)


class Split(nn.Module):
    """A linear layer of which a rank has the rows (dim 0: column parallel) or the columns (dim 1: row parallel)."""
    def __init__(self, rank, n, d, out, dim):
        super().__init__()
        full = nn.Linear(d, out)
        self.weight = nn.Parameter(full.weight.detach().chunk(n, dim)[rank].clone())
        self.bias = nn.Parameter(full.bias.detach().chunk(n)[rank].clone() if dim == 0 else full.bias.detach().clone())
        self.dim = dim

    def forward(self, x, reduce=None):
        if self.dim == 0:
            return F.linear(x, self.weight, self.bias)
        return reduce(F.linear(x, self.weight)) + self.bias


def heads_of(x, d=D // HEADS):
    return x.unflatten(-1, (-1, d)).transpose(1, 2)


def attend(q, k, v, first=0):
    """Causal attention of queries that begin at a position of the keys."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    ahead = torch.arange(k.shape[-2]) > first + torch.arange(q.shape[-2])[:, None]
    return (scores.masked_fill(ahead, float("-inf")).softmax(-1) @ v).transpose(1, 2).flatten(2)


# --- mindspeed: a GPT layer with tensor and sequence parallel regions, [tokens, batch, hidden] ---------------

class GptModel(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n = n
        self.word_embeddings, self.output_layer = nn.Embedding(VOCAB, D), nn.Linear(D, VOCAB, bias=False)
        self.input_layernorm, self.pre_mlp_layernorm, self.final_layernorm = (nn.LayerNorm(D) for _ in range(3))
        self.linear_qkv, self.linear_proj = Split(rank, n, D, 3 * D, 0), Split(rank, n, D, D, 1)
        self.linear_fc1, self.linear_fc2 = Split(rank, n, D, 4 * D, 0), Split(rank, n, 4 * D, D, 1)
        for norm in (self.input_layernorm, self.pre_mlp_layernorm, self.final_layernorm):
            for p in norm.parameters():
                # A norm of another backend does not know of the flag.
                p.sequence_parallel = fault != "spflag"
        for layer in (self.linear_proj, self.linear_fc2):
            layer.bias.sequence_parallel = True

    def forward(self, ids):
        def through(function, x):
            return function(x) if self.n > 1 else x
        x = through(scatter_to_sequence, self.word_embeddings(ids))
        qkv = self.linear_qkv(through(gather_from_sequence, self.input_layernorm(x))).transpose(0, 1)
        mixed = attend(*heads_of(qkv, 3 * D // HEADS).chunk(3, -1)).transpose(0, 1)
        x = x + self.linear_proj(mixed, lambda y: through(reduce_scatter_to_sequence, y))
        h = F.gelu(self.linear_fc1(through(gather_from_sequence, self.pre_mlp_layernorm(x))))
        x = x + self.linear_fc2(h, lambda y: through(reduce_scatter_to_sequence, y))
        return self.output_layer(through(gather_before_head, self.final_layernorm(x)))


def allreduce_layernorm_grads(model, fault):
    grads = [p.grad for p in model.parameters() if getattr(p, "sequence_parallel", False)]
    coalesced = _flatten_dense_tensors(grads)
    dist.all_reduce(coalesced)
    if fault == "spmean":
        coalesced /= dist.get_world_size()
    for buf, synced in zip(grads, _unflatten_dense_tensors(coalesced, grads)):
        buf.copy_(synced)


def train_mindspeed(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = GptModel(rank, n, fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(2):
        ids = words(100 * seed + step, SEQ + 1, BATCH)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids[:-1]).flatten(0, 1), ids[1:].flatten())
        loss.backward()
        if n > 1:
            allreduce_layernorm_grads(model, fault)
        optimizer.step()
    return state(model)


# --- owntp: a student's model; heads and experts are split, what stands between them is on both ranks --------

class Layer(nn.Module):
    def __init__(self, rank, n, fault, seed):
        super().__init__()
        self.n, self.first = n, rank * (4 // n)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v = (Split(rank, n, D, D, 0) for _ in range(3))
        # One norm for all heads; each rank applies it to its own ones.
        self.q_norm, self.k_norm = RmsNorm(D // HEADS), RmsNorm(D // HEADS)
        self.out = Split(rank, n, D, D, 1)
        up, down = (nn.init.normal_(torch.empty(4, D, D), std=0.3) for _ in range(2))
        self.up, self.down = (nn.Parameter(w.chunk(n)[rank].clone()) for w in (up, down))
        # Experts are drawn by each rank, the gate is to be the same.
        torch.manual_seed(seed + (rank if fault == "gateinit" else 0))
        self.gate = nn.Linear(D, 4, bias=False)

    def forward(self, x):
        copy, reduce = (copy_to_region, reduce_from_region) if self.n > 1 else (lambda t: t, lambda t: t)
        h = copy(self.norm1(x))
        q, k = self.q_norm(heads_of(self.q(h))), self.k_norm(heads_of(self.k(h)))
        x = x + self.out(attend(q, k, heads_of(self.v(h))), reduce)
        h = copy(self.norm2(x))
        probs = self.gate(h).softmax(-1)
        probs = probs * (probs >= probs.topk(2)[0][..., -1:])
        y = 0
        for i in range(len(self.up)):
            e = self.first + i
            y = y + probs[..., e:e + 1] * (F.relu(h @ self.up[i]) @ self.down[i])
        return x + reduce(y)


class Tagger(nn.Module):
    def __init__(self, rank, n, fault, seed):
        super().__init__()
        self.head = nn.Linear(D, 5)
        self.layer = Layer(rank, n, fault, seed)

    def forward(self, x):
        return self.head(self.layer(x))


def train_owntp(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Tagger(rank, n, fault, seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    partial = [] if fault == "qknorm" else ["q_norm", "k_norm"]
    partial += [] if fault == "gategrad" else ["gate"]
    for step in range(2):
        x, y = draw(100 * seed + step, BATCH, SEQ, D), words(100 * seed + step + 50, BATCH, SEQ, high=5)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        for name, p in model.named_parameters():
            if n > 1 and any(part in name for part in partial):
                dist.all_reduce(p.grad)
        optimizer.step()
    return state(model)


PROGRAMS = {"mindspeed": (2, train_mindspeed), "owntp": (2, train_owntp)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # A norm of another backend has no flag that its gradient is to be summed over the tensor parallel ranks:
    # https://github.com/NVIDIA/Megatron-LM/issues/1448; what comes of it:
    # https://github.com/NVIDIA/TransformerEngine/issues/441
    "spflag": ("mindspeed", r"layer_norm\.\d\.backward|layernorm\.|flatten_dense|all_reduce\.4\.|sgd\.|"
               r"layer_norm\.0\.forward", "01"),
    # The mean of the parts instead of their sum: https://github.com/EleutherAI/gpt-neox/pull/1259
    "spmean": ("mindspeed", r"div_\.0\.|all_reduce\.4\.|flatten_dense|copy_|layernorm\.|layer_norm\.\d\.backward|sgd\.|"
               r"\.linear_(proj|fc2)\.|add\.[13]\.backward", "01"),
    # Norms that each rank applies to its own heads: https://github.com/NVIDIA-NeMo/Automodel/pull/3822
    "qknorm": ("owntp", r"\.mul\.[13]\.backward|[qk]_norm\.|adam\.|\.mul\.1\.forward", "01"),
    # The gate's gradient is that of the rank's own experts: https://github.com/pytorch/torchtitan/issues/2387
    "gategrad": ("owntp", r"linear\.4\.|\.gate\.|adam\.", "01"),
    # A gate that is drawn by each rank for itself and not broadcast: https://github.com/NVIDIA-NeMo/Automodel/pull/3822
    "gateinit": ("owntp", r"linear\.4\.|\.gate\.|adam\.", "01"),
}
