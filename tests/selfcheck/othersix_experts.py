"""Mixtures of experts that are split over the ranks: tokens exchanged as torchtitan has it, with biases that even the
load; experts of two layers on a mesh of four; all tokens on all ranks; and what is reported to go wrong in such.

Each train(rank, fault, seed, n): with n = 1 what one process does that has the whole model and batch.
"""
import re

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from othersix_kit import CopyToGroup, Exchange, SumOverGroup, coalesced, groups, randint, randn, weights

D, E = 12, 4


class Experts(nn.Module):
    """Those of a rank."""
    def __init__(self, part, n):
        super().__init__()
        w1, w2 = torch.randn(E, 2 * D, D) * 0.3, torch.randn(E, D, 2 * D) * 0.3
        self.w1, self.w2 = (nn.Parameter(w.chunk(n)[part].clone()) for w in (w1, w2))

    def forward(self, x, expert):
        """Rows of x, each through one of the experts here."""
        out = torch.zeros_like(x)
        for e in range(len(self.w1)):
            rows = (expert == e).nonzero()[:, 0]
            out = out.index_add(0, rows, F.linear(F.silu(F.linear(x[rows], self.w1[e])), self.w2[e]))
        return out


class ExchangedMoe(nn.Module):
    """Top 1; a token goes to the rank that has its expert, and comes back."""
    def __init__(self, part, n, group):
        super().__init__()
        self.part, self.n, self.group = part, n, group
        self.router, self.experts = nn.Linear(D, E, bias=False), Experts(part, n)
        self.register_buffer("expert_bias", torch.zeros(E))
        self.register_buffer("tokens_per_expert", torch.zeros(E))

    def forward(self, x):
        scores = self.router(x).sigmoid()
        chosen = (scores.detach() + self.expert_bias).argmax(-1)
        self.tokens_per_expert += F.one_hot(chosen, E).sum(0)
        weight = scores.gather(1, chosen[:, None])
        if self.n == 1:
            return x + self.experts(x, chosen) * weight
        order = chosen.argsort(stable=True)
        sent = (chosen // (E // self.n)).bincount(minlength=self.n)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        sent, received = sent.tolist(), received.tolist()
        rows = Exchange.apply(x[order], sent, received, self.group)
        which = Exchange.apply(chosen[order, None].float(), sent, received, self.group)[:, 0].long()
        rows = self.experts(rows, which - self.part * (E // self.n))
        rows = Exchange.apply(rows, received, sent, self.group)
        return x + rows[order.argsort()] * weight


@torch.no_grad()
def update_expert_bias(moes, group, reduce, rate=0.05):
    counts = torch.stack([m.tokens_per_expert for m in moes])
    if reduce:
        dist.all_reduce(counts, group=group)
    for m, c in zip(moes, counts):
        m.expert_bias += rate * torch.sign(c.mean() - c)
        m.tokens_per_expert.zero_()


def biased(model):
    return {**weights(model), **{k: b.clone() for k, b in model.named_buffers() if k.endswith("bias")}}


# --- titan: two ranks that share the experts and have each its part of the batch ---------------------------------

def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"inp": nn.Linear(D, D), "moe": ExchangedMoe(rank, n, None), "norm": nn.LayerNorm(D),
                           "head": nn.Linear(D, 5)})
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for s in range(3):
        x, y = randn(1000 * seed + s, 32, D), randint(1000 * seed + s + 500, 5, 32)
        opt.zero_grad()
        for xs, ys in zip(x.chunk(2), y.chunk(2)):
            xs, ys = xs.chunk(n)[rank], ys.chunk(n)[rank]
            h = model["moe"](torch.tanh(model["inp"](xs)))
            (F.cross_entropy(model["head"](model["norm"](h)), ys) / 2).backward()
        if n > 1:
            coalesced([p.grad for name, p in model.named_parameters() if "experts" not in name], div=n)
            for p in model["moe"].experts.parameters():
                # All ranks' tokens are in it; of its data parallel group it is the one.
                p.grad /= 1 if fault == "epscale" else n
        update_expert_bias([model["moe"]], None, n > 1)
        opt.step()
    return biased(model)


# --- mesh: four ranks, of which two share the experts, and two have the same ones --------------------------------

class Block(nn.Module):
    """A layer calls its experts what its model does."""
    def __init__(self, name, part, n, group):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.name = name
        self.add_module(name, ExchangedMoe(part, n, group))

    def forward(self, x):
        return x + getattr(self, self.name)(self.norm(x))


def train_mesh(rank, fault, seed, n=4):
    ep = edp = None
    if n > 1:
        ep, edp = groups(rank, [0, 1], [2, 3]), groups(rank, [0, 2], [1, 3])
    torch.manual_seed(seed)
    model = nn.Sequential(Block("mlp", rank % 2, min(n, 2), ep), Block("moe", rank % 2, min(n, 2), ep),
                          nn.Linear(D, 5))
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    expert = re.compile(r"\.(mlp|moe)\.experts\.")
    scaled = re.compile(r"\.mlp\.experts\.") if fault == "namedmoe" else expert
    for s in range(2):
        x, y = randn(1000 * seed + s, 32, D), randint(1000 * seed + s + 500, 5, 32)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for name, p in model.named_parameters():
            if n == 1:
                continue
            if expert.search(name) is None:
                dist.all_reduce(p.grad)
                p.grad /= n
                continue
            if fault != "skipexp":
                dist.all_reduce(p.grad, group=ep if fault == "meshorder" else edp)
                p.grad /= 2
            if scaled.search(name):
                p.grad /= 2
        moes = [model[0].mlp, model[1].moe]
        update_expert_bias(moes, ep if fault == "countsep" else None, n > 1)
        opt.step()
    return biased(model)


# --- replicated: all tokens on all ranks, each has them through its own experts; noise for the router ------------

class ReplicatedMoe(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.norm, self.router, self.experts = nn.LayerNorm(D), nn.Linear(D, E, bias=False), Experts(rank, n)

    def enter(self, x):
        return CopyToGroup.apply(x, None) if self.n > 1 else x

    def forward(self, x):
        h = self.norm(x)
        logits = self.router(h)
        probs = (logits + 0.5 * torch.randn(logits.shape)).softmax(-1)
        top, chosen = probs.topk(2, -1)
        top = top / top.sum(-1, keepdim=True)
        if self.fault != "eprouter":
            top = self.enter(top)
        h, mine, y = self.enter(h), E // self.n, torch.zeros_like(x)
        for k in range(2):
            local = chosen[:, k] - self.rank * mine
            here = (local >= 0) & (local < mine)
            y = y + self.experts(h, local) * (top[:, k] * here)[:, None]
        return x + (SumOverGroup.apply(y, None) if self.n > 1 else y)


def train_replicated(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, D), nn.Tanh(), ReplicatedMoe(rank, n, fault), nn.Linear(D, 5))
    # What all ranks have whole draws the same.
    torch.manual_seed(7 * seed + (rank if fault == "noiseseed" else 0))
    opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)
    for s in range(2):
        x, y = randn(1000 * seed + s, 24, D), randint(1000 * seed + s + 500, 5, 24)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return weights(model)


PROGRAMS = {"titan": (2, train_titan), "mesh": (4, train_mesh), "replicated": (2, train_replicated)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Divided by the ranks that have the same expert: https://github.com/deepspeedai/DeepSpeed/issues/6545
    "epscale": ("titan", r"div|(linear|__getitem__)\.\d+\.backward|experts|sgd", "01"),
    # The load of one of the groups that share experts: https://github.com/pytorch/torchtitan/pull/3386
    "countsep": ("mesh", r"all_reduce|sign|sub|mean|add_|mul|argmax|stack|expert_bias", "0123"),
    # The mesh in another order, experts summed with others:
    # https://github.com/laekov/fastmoe/issues/106
    "meshorder": ("mesh", r"all_reduce|div|experts|sgd|linear\.\d+\.backward", "0123"),
    # A name that the expression does not know: https://github.com/NVIDIA-NeMo/Automodel/pull/3817
    "namedmoe": ("mesh", r"div|all_reduce|experts|sgd|linear\.\d+\.backward", "0123"),
    # Experts are skipped, also by those that have the same: https://github.com/facebookresearch/fairseq/issues/4220
    "skipexp": ("mesh", r"all_reduce|div|experts|sgd|linear\.\d+\.backward", "0123"),
    # A router's scores are used for the own experts only: https://github.com/huggingface/transformers/pull/48205
    "eprouter": ("replicated", r"(linear\.1|softmax\.0|topk\.0|sum\.0|div\.0|add\.0|mul\.\d+)\.backward|"
                 r"\.router\.|adam", "01"),
    # Noise of another seed on each rank: https://github.com/InternLM/InternLM/pull/405
    "noiseseed": ("replicated", r"randn|add|softmax|topk|router|normal", "01"),
}
