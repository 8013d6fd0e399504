"""Programs whose losses are of all ranks' tokens: context parallel groups under data parallel ones, fine-tuning with
accumulation, and a router with a loss of its load; and what is reported to go wrong in such.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from sixkinds_kit import choose, draw, mesh, state

D, VOCAB, EXPERTS = 16, 20, 4


# --- ctx: two data parallel groups, in each of which two ranks share the sequence ---------------------------

class GatherKv(torch.autograd.Function):
    """Keys and values of the whole sequence; each rank's gradients of them are a part."""
    @staticmethod
    def forward(ctx, kv, group):
        ctx.group = group
        parts = [torch.empty_like(kv) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, kv, group=group)
        return torch.cat(parts, 3)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g, group=ctx.group)
        return g.chunk(dist.get_world_size(ctx.group), 3)[dist.get_rank(ctx.group)].contiguous(), None


class CtxLayer(nn.Module):
    """Its rank's queries see the keys and values of all tokens before them."""
    def __init__(self, index, group):
        super().__init__()
        self.index, self.group = index, group
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.w1, self.w2, self.w3 = nn.Linear(D, 24), nn.Linear(24, D), nn.Linear(D, 24)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (w(h).unflatten(-1, (2, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        if self.group is not None:
            k, v = GatherKv.apply(torch.stack([k, v]), self.group)
        at = self.index * q.shape[2] + torch.arange(q.shape[2])
        scores = (q @ k.transpose(2, 3) / 8 ** 0.5).masked_fill(
            torch.arange(k.shape[2]) > at[:, None], float("-inf"))
        x = x + self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


def train_ctx(rank, fault, seed, dp=2, cp=2):
    world, index = dp * cp, rank % cp
    cp_group = mesh(rank, [0, 1], [2, 3]) if world > 1 else None
    dp_group = mesh(rank, [0, 2], [1, 3]) if world > 1 else None
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(VOCAB, D), CtxLayer(index, cp_group), nn.LayerNorm(D), nn.Linear(D, VOCAB))
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    for step in range(2):
        text = choose(1000 * seed + step, VOCAB, 4, 9).chunk(dp)[rank // cp]
        tokens, labels = text[:, :-1], text[:, 1:].masked_fill(text[:, 1:] < 4, -100)   # prompts are not learnt
        count = (labels != -100).sum()
        if world > 1:
            # Whole sequences were counted, which the ranks of a context group share.
            dist.all_reduce(count, group=None if fault == "cptokens" else dp_group)
        tokens, labels = (t.chunk(cp, 1)[index] for t in (tokens, labels))
        opt.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), reduction="sum") / count
        (loss * (world if fault == "cploss" else dp)).backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        if world > 1:
            dist.all_reduce(flat)
            flat /= dp
        for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
            p.grad.copy_(g.view_as(p))
        opt.step()
    return state(model)


# --- sft: packed conversations of which the answers are learnt; the rate falls with what has been read -------

def conversations(seed, step, rank, micro):
    """A packed row and where its answers are; ranks pack more or fewer conversations into a row."""
    s = 1000 * seed + 100 * step + 10 * rank + micro
    text = choose(s, VOCAB, 2 + micro, 8)
    return text, draw(s, 2 + micro, 7) > (0.4 if (micro + rank) % 2 else -0.8), 5 + rank + micro


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, D), nn.Embedding(8, D)
        self.rnn, self.ln_f, self.lm_head = nn.GRU(D, D, batch_first=True), nn.LayerNorm(D), nn.Linear(D, VOCAB)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        return self.lm_head(self.ln_f(x + self.rnn(x)[0]))


def nll(model, text, mask):
    """The loss of each answer's token, the rest 0."""
    logits = model(text[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), text[:, 1:], reduction="none") * mask


def set_rate(opt, progress):
    for group in opt.param_groups:
        group["lr"] = 0.02 * (1 - progress)


def train_sft(rank, fault, seed):
    torch.manual_seed(seed)
    model = Reader()
    ddp = DDP(model)
    opt = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    read = 0
    for step in range(3):
        batch = [conversations(seed, step, rank, micro) for micro in range(2)]
        total = sum(mask.sum() for _, mask, _ in batch)
        dist.all_reduce(total)
        for micro, (text, mask, count) in enumerate(batch):
            with contextlib.nullcontext() if micro == 1 else ddp.no_sync():
                losses = nll(ddp, text, mask)
                if fault == "tokenmean":
                    loss = losses.sum() / mask.sum() * len(text) / sum(len(t) for t, _, _ in batch)
                else:
                    loss = losses.sum() / total * 2   # DDP takes the mean of the ranks
                loss.backward()
            read += count
        progress = torch.tensor(read / 60)
        if fault != "sftlr":
            dist.all_reduce(progress, dist.ReduceOp.MAX)   # the rank that is ahead
        set_rate(opt, progress.item())
        opt.step()
        opt.zero_grad()
    return state(model)


def whole_sft(seed):
    torch.manual_seed(seed)
    model = Reader()
    opt = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    read = [0, 0]
    for step in range(3):
        batch = [(r, *conversations(seed, step, r, micro)) for r in range(2) for micro in range(2)]
        opt.zero_grad()
        losses = sum(nll(model, text, mask).sum() for _, text, mask, _ in batch)
        (losses / sum(mask.sum() for _, _, mask, _ in batch)).backward()
        for r, _, _, count in batch:
            read[r] += count
        set_rate(opt, max(read) / 60)
        opt.step()
    return state(model, grads=False)


# --- balance: whole experts on each rank, whose load on all ranks the router is to even out -----------------

class Balanced(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.router = nn.Linear(8, D), nn.Linear(D, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(D, 12), nn.ReLU(), nn.Linear(12, D))
                                     for _ in range(EXPERTS))
        self.out = nn.Linear(D, 6)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        probs = self.router(x).softmax(-1)
        top, chosen = probs.topk(2, -1)
        gates = torch.zeros_like(probs).scatter(-1, chosen, top)
        y = sum(gates[:, i:i + 1] * expert(x) for i, expert in enumerate(self.experts))
        return self.out(x + y), probs, F.one_hot(chosen, EXPERTS).sum(1)


def train_balance(rank, fault, seed, n=2, coefficient=0.2):
    torch.manual_seed(seed)
    model = Balanced()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(2):
        x, y = draw(1000 * seed + step, 16, 8), choose(1000 * seed + step, 6, 16)
        # Rows without a label are padding, which has no part in any loss.
        keep = [i for i in range(16) if (i + step) % 5 or i < 4]
        rows = [i for i in keep if i * n // 16 == rank]
        opt.zero_grad()
        out, probs, chosen = model(x[rows])
        local_tokens = torch.tensor(float(len(rows)))
        tokens = local_tokens if fault == "countinplace" else local_tokens.clone()
        load = chosen.sum(0).float()
        if n > 1:
            dist.all_reduce(tokens)
            dist.all_reduce(load)
        share = probs.sum(0) / (tokens if fault == "globalaux" else len(rows))
        aux = coefficient * EXPERTS * (share * load / (2 * tokens)).sum()
        # The sum over tokens, of which the mean is taken when all are known.
        (F.cross_entropy(out, y[rows], reduction="sum") + aux * local_tokens).backward()
        for p in model.parameters():
            if n > 1:
                dist.all_reduce(p.grad)
            p.grad /= tokens
        opt.step()
    return state(model)


PROGRAMS = {"ctx": (4, train_ctx), "sft": (2, train_sft), "balance": (2, train_balance)}
WHOLE = {"ctx": lambda seed: train_ctx(0, None, seed, 1, 1), "sft": whole_sft,
         "balance": lambda seed: train_balance(0, None, seed, 1)}

FAULTS = {
    # (2) The loss times all ranks, where gradients are averaged over the data parallel ones:
    # https://github.com/NVIDIA/Megatron-LM/issues/906, https://github.com/huggingface/transformers/issues/39648
    "cploss": ("ctx", r"mul\.1\.|div\.1\.|cross_entropy|all_reduce|div_|sgd", "0123"),
    # (2) Tokens counted once for each rank that shares them: https://github.com/NVIDIA/Megatron-LM/issues/673
    "cptokens": ("ctx", r"all_reduce|mul\.1\.|div\.1\.|cross_entropy|div_|sgd", "0123"),
    # (2) The mean of a micro batch by its own tokens, weighed by rows:
    # https://github.com/verl-project/verl/issues/5625
    "tokenmean": ("sft", r"div\.\d\.|mul\.\d\.|all_reduce|adamw", "01"),
    # (3) A rate by what the rank itself has read: https://github.com/karpathy/nanochat/pull/857
    "sftlr": ("sft", r"all_reduce|adamw", "01"),
    # (4) The rank's probabilities over the tokens of all: https://github.com/NVIDIA/Megatron-LM/issues/3672
    "globalaux": ("balance", r"div\.[01]\.|sum\.2\.|mul\.[4-7]\.|softmax\.0\.backward|all_reduce\.[01]\.", "01"),
    # (4) The sum of the counts in place of the rank's own: https://github.com/NVIDIA/Megatron-LM/issues/7452
    "countinplace": ("balance", r"all_reduce\.0\.|mul\.[4-7]\.|div\.[01]\.|add\.5\.|softmax\.0\.backward", "01"),
}
