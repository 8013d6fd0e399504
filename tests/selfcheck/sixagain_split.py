"""Layers and sequences that are split: multi-query attention over tensor parallel ranks, norms in a sequence
parallel region as GPT-NeoX has them, context parallel training with a loss that is gathered, and with tokens that
ranks pass on.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as DF
import torch.nn as nn
import torch.nn.functional as F

from sixagain_kit import GatherTokens, ScatterTokens, SumForward, choose, draw, group_of, state

D, HEADS, VOCAB = 16, 4, 24


# --- mqa: queries are split over the ranks, the one head of keys and values is on each ------------------------

class CopyToTp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault = fault
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        # all_reduce works in place, on what is contiguous.
        if ctx.fault != "lostcopy":
            g = g.contiguous()
        dist.all_reduce(g.contiguous())
        return g, None


class GatherLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(dist.get_world_size(), -1)[dist.get_rank()].contiguous()


class MultiQuery(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault = n, fault

        def part(t, dim):
            return nn.Parameter(t.detach().chunk(n, dim)[rank].clone())
        self.embed, self.ln, self.ln_f = nn.Embedding(VOCAB, D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.kv = nn.Linear(D, 2 * D // HEADS)
        self.q = part(nn.Linear(D, D).weight, 0)
        self.o = part(nn.Linear(D, D).weight, 1)
        self.head = part(nn.Linear(D, VOCAB).weight, 0)

    def copy(self, x):
        return CopyToTp.apply(x, self.fault) if self.n > 1 else x

    def forward(self, ids):
        x = self.embed(ids)
        b, s, _ = x.shape
        h = self.ln(x)
        q = F.linear(self.copy(h), self.q).view(b, s, -1, D // HEADS).transpose(1, 2)
        k, v = self.kv(h if self.fault == "kvinput" else self.copy(h)).unsqueeze(1).chunk(2, -1)
        a = (q @ k.transpose(-1, -2) * 0.5).masked_fill(torch.ones(s, s).triu(1).bool(), -1e9).softmax(-1)
        y = F.linear((a @ v).transpose(1, 2).reshape(b, s, -1), self.o)
        x = x + (SumForward.apply(y, None) if self.n > 1 else y)
        # The head has the sequence first.
        logits = F.linear(self.copy(self.ln_f(x)).transpose(0, 1), self.head)
        return GatherLogits.apply(logits) if self.n > 1 else logits


def reduce_shared(model, fault):
    """Of keys and values each rank has the gradient of its own heads' queries."""
    shared = [p for name, p in model.named_parameters()
              if name == "kv.weight" or fault != "kvbias" and name == "kv.bias"]
    flat = torch.cat([p.grad.view(-1) for p in shared])
    dist.all_reduce(flat)
    for p, g in zip(shared, flat.split([p.numel() for p in shared])):
        p.grad.copy_(g.view_as(p))


def train_mqa(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MultiQuery(rank, n, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for s in range(2):
        ids = choose(1000 * seed + s, VOCAB, 3, 7)
        opt.zero_grad()
        F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].t().flatten()).backward()
        if n > 1:
            reduce_shared(model, fault)
        opt.step()
    return state(model)


# --- neox: attention and MLP side by side on gathered tokens; around them each rank has its part of the tokens -----

class NeoxLayer(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.n, d = n, D // HEADS
        self.input_layernorm, self.post_layernorm = nn.LayerNorm(D), nn.LayerNorm(D)
        # Of the fused queries, keys and values each rank has whole heads.
        qkv = nn.Linear(D, 3 * D).weight.detach().view(HEADS, 3 * d, D).chunk(n)[rank]
        self.qkv = nn.Parameter(qkv.reshape(-1, D).clone())
        self.dense, self.up, self.down = (
            nn.Parameter(w.weight.detach().chunk(n, dim)[rank].clone())
            for w, dim in ((nn.Linear(D, D), 1), (nn.Linear(D, 4 * D), 0), (nn.Linear(4 * D, D), 1)))

    def gather(self, x):
        return GatherTokens.apply(x) if self.n > 1 else x

    def forward(self, x):
        h = self.gather(self.input_layernorm(x))
        s, b, _ = h.shape
        q, k, v = F.linear(h, self.qkv).view(s, b, -1, 3 * D // HEADS).permute(1, 2, 0, 3).chunk(3, -1)
        a = (q @ k.transpose(-1, -2) * 0.5).softmax(-1)
        attn = F.linear((a @ v).permute(2, 0, 1, 3).reshape(s, b, -1), self.dense)
        mlp = F.linear(F.gelu(F.linear(self.gather(self.post_layernorm(x)), self.up)), self.down)
        y = attn + mlp
        return x + (ScatterTokens.apply(y) if self.n > 1 else y)


class Neox(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.embed, self.layer = nn.Embedding(VOCAB, D), NeoxLayer(rank, n)
        self.final_layernorm, self.head = nn.LayerNorm(D), nn.Linear(D, 6)

    def forward(self, ids):
        return self.head(self.final_layernorm(self.layer(self.embed(ids))))


def reduce_weight_grads(name, fault):
    """What a hook does to the gradient of a weight that sees a part of the tokens."""
    def hook(g):
        g = g.clone()
        dist.all_reduce(g)
        return g / dist.get_world_size() if fault == "spmean" and "layernorm" in name else g
    return hook


def train_neox(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Neox(rank, n)
    for name, p in model.named_parameters():
        if n > 1 and name.startswith(("embed", "final", "head", "layer.input", "layer.post")):
            p.register_hook(reduce_weight_grads(name, fault))
    opt = torch.optim.SGD(model.parameters(), lr=0.3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    for s in range(3):
        ids, y = choose(1000 * seed + s, VOCAB, 6, 2), choose(1000 * seed + s + 500, 6, 6, 2)
        opt.zero_grad()
        logits = model(ids.chunk(n)[rank])
        (F.cross_entropy(logits.flatten(0, 1), y.chunk(n)[rank].flatten(), reduction="sum") / 12).backward()
        opt.step()
        sched.step()
    return state(model)


# --- cp: two sequences, each over two ranks, that see all keys and values; the mean of a sequence is weighted -----

def of_all(t, group):
    """What each of two ranks has, with the sum of their gradients on the way back: gloo's own all_gather of
    torch.distributed.nn has none for groups that are a part of all.
    """
    parts = [torch.zeros_like(t), torch.zeros_like(t)]
    parts[dist.get_rank(group)] = t
    return DF.all_reduce(torch.stack(parts), group=group)


class Llama(nn.Module):
    def __init__(self, group=None):
        super().__init__()
        self.group = group
        self.embed, self.g1, self.g2 = nn.Embedding(VOCAB, D), nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D))
        self.q, self.kv, self.o = (nn.Linear(D, m, bias=False) for m in (D, D, D))
        self.gate_up, self.down = nn.Linear(D, 4 * D, bias=False), nn.Linear(2 * D, D, bias=False)
        self.lm_head = nn.Linear(D, VOCAB, bias=False)

    def rms(self, x, g):
        return x * x.square().mean(-1, keepdim=True).add(1e-6).rsqrt() * g

    def forward(self, ids, pos):
        x = self.embed(ids)
        h = self.rms(x, self.g1)
        q, kv = self.q(h).view(len(ids), HEADS, -1), self.kv(h)
        if self.group is not None:
            kv = of_all(kv, self.group).flatten(0, 1)
        k, v = (t.view(len(kv), 2, -1).repeat_interleave(2, 1) for t in kv.chunk(2, -1))
        a = torch.einsum("qhd,khd->hqk", q, k) * 0.5
        a = a.masked_fill(torch.arange(len(kv)) > pos[:, None], float("-inf")).softmax(-1)
        x = x + self.o(torch.einsum("hqk,khd->qhd", a, v).flatten(1))
        gate, up = self.gate_up(self.rms(x, self.g2)).chunk(2, -1)
        return self.lm_head(x + self.down(F.silu(gate) * up))


def sequence(seed, step, which):
    """Tokens and labels; the first are of a prompt, which has no labels."""
    ids = choose(100 * seed + 10 * step + which, VOCAB, 9)
    labels = ids[1:].clone()
    labels[:2 + which] = -100
    return ids[:-1], labels


def mean_over_ranks(logits, labels, group, fault):
    losses = of_all(F.cross_entropy(logits, labels, ignore_index=-100), group)
    if fault == "unweighted":
        return losses.mean()
    good = (labels != -100).sum()
    counts = [torch.empty_like(good) for _ in losses]
    dist.all_gather(counts, good, group=group)
    counts = torch.stack(counts)
    return (losses * counts).sum() / counts.sum()


def train_cp(rank, fault, seed):
    sp = group_of(rank, [[0, 1], [2, 3]])
    torch.manual_seed(seed)
    model = Llama(sp)
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    for s in range(2):
        ids, labels = sequence(seed, s, rank // 2)
        ids, labels, pos = (t.chunk(2)[rank % 2] for t in (ids, labels, torch.arange(8)))
        opt.zero_grad()
        mean_over_ranks(model(ids, pos), labels, sp, fault).backward()
        works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
        for w in works:
            w.wait()
        for p in model.parameters():
            p.grad.div_(dist.get_world_size())
        nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        opt.step()
    return state(model)


def whole_cp(seed):
    torch.manual_seed(seed)
    model = Llama()
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    for s in range(2):
        opt.zero_grad()
        for ids, labels in (sequence(seed, s, w) for w in range(2)):
            (F.cross_entropy(model(ids, torch.arange(8)), labels, ignore_index=-100) / 2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        opt.step()
    return state(model)


PROGRAMS = {"mqa": (2, train_mqa), "neox": (2, train_neox), "cp": (4, train_cp)}
WHOLE = {"mqa": lambda seed: train_mqa(0, None, seed, 1), "neox": lambda seed: train_neox(0, None, seed, 1),
         "cp": whole_cp}

FAULTS = {
    # The biases are not among what is reduced: https://github.com/bigcode-project/Megatron-LM/issues/11
    "kvbias": ("mqa", r"linear\.1\.backward|kv\.|all_reduce\.4|Torch\.cat\.1|sgd", "01"),
    # The gradient through keys and values is the rank's own: https://github.com/bigcode-project/Megatron-LM/issues/35
    "kvinput": ("mqa", r"linear\.1\.backward|layer_norm\.0\.backward|Module\.(ln|kv)\.", "01"),
    # The copy that is contiguous is reduced and lost: https://github.com/NovaSky-AI/SkyRL/pull/1886
    "lostcopy": ("mqa", r"(linear|transpose)\.3\.backward|layer_norm\.1\.backward|ln_f|all_reduce\.1", "01"),
    # The hook of norms averages: https://github.com/EleutherAI/gpt-neox/pull/1259
    "spmean": ("neox", r"layer_norm\.\d\.backward|layernorm|all_reduce\.(3|4|6|7|9|10)\.|Tensor\.div\.[1-9]", "01"),
    # The mean of the ranks' means: https://github.com/PrimeIntellect-ai/prime-rl/pull/1957
    "unweighted": ("cp", r"Tensor\.mean\.2|all_reduce\.1\.|Torch\.stack\.1|cross_entropy", "0123"),
}
