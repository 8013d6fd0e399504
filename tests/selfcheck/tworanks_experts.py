"""Trainers on two ranks with experts, as a researcher writes them in a script of his own: experts of which each rank
has a part of the hidden units, experts that get their tokens by all_to_all; and a router that differs by rank, and
gradients of experts that are averaged over the wrong group.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from tworanks_copies import CLASSES, D, batch
from tworanks_sequence import state

EXPERTS = 4


# --- tpmoe: both ranks have all tokens and the gate, and half of the hidden units of each expert -------------

class SumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class TpMoe(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault = n, fault
        self.inputs, self.gate, self.head = nn.Linear(D, D), nn.Linear(D, 2, bias=False), nn.Linear(D, CLASSES)
        self.up = nn.Parameter((torch.randn(2, D, 4 * D) / D ** 0.5).chunk(n, 2)[rank].clone())
        self.down = nn.Parameter((torch.randn(2, 4 * D, D) / (4 * D) ** 0.5).chunk(n, 1)[rank].clone())

    def forward(self, x):
        x = torch.tanh(self.inputs(x))
        scores, h = self.gate(x).softmax(-1), x
        if self.n > 1:
            h = SumBackward.apply(h)
        if self.n > 1 and self.fault != "gatepartial":
            scores = SumBackward.apply(scores)
        y = torch.bmm(F.gelu(torch.bmm(h.expand(2, *h.shape), self.up)), self.down)
        y = (scores.t()[..., None] * y).sum(0)
        return self.head(x + (SumForward.apply(y) if self.n > 1 else y))


def train_tpmoe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = TpMoe(rank, n, fault)
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for s in range(3):
        x, y = batch(100 * seed + s, 8, 0, 1)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return state(model)


# --- moe: each rank has its own tokens and two of the four experts -------------------------------------------

class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sent, got):
        ctx.splits = sent, got
        out = x.new_empty(sum(got), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), got, sent)
        return out

    @staticmethod
    def backward(ctx, g):
        sent, got = ctx.splits
        out = g.new_empty(sum(sent), g.shape[1])
        dist.all_to_all_single(out, g.contiguous(), sent, got)
        return out, None, None


class Moe(nn.Module):
    def __init__(self, rank, n, seed, fault):
        super().__init__()
        self.n = n
        self.inputs, self.norm, self.head = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, CLASSES)
        torch.manual_seed(seed + (rank if fault == "gateseed" else 0))
        self.gate = nn.Linear(D, EXPERTS, bias=False)
        self.experts = nn.ModuleDict()
        for e in torch.arange(EXPERTS).chunk(n)[rank].tolist():
            torch.manual_seed(1000 * seed + e)          # experts differ, whichever rank has them
            self.experts[str(e)] = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))

    def compute(self, x, chosen):
        y = torch.zeros_like(x)
        for e, expert in self.experts.items():
            rows = (chosen == int(e)).nonzero()[:, 0]
            y = y.index_add(0, rows, expert(x[rows]))
        return y

    def dispatch(self, x, chosen):
        """Tokens, sorted by expert, to the ranks that have these, and back."""
        counts = torch.stack([(chosen // (EXPERTS // self.n) == r).sum() for r in range(self.n)])
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sent, got = counts.tolist(), theirs.tolist()
        order = chosen.argsort()
        ids = chosen.new_empty(sum(got))
        dist.all_to_all_single(ids, chosen[order], got, sent)
        y = self.compute(AllToAll.apply(x[order], sent, got), ids)
        return AllToAll.apply(y, got, sent)[order.argsort()]

    def forward(self, x):
        x = torch.tanh(self.inputs(x))
        h = self.norm(x)
        prob, chosen = self.gate(h).softmax(-1).max(-1)
        y = self.dispatch(h, chosen) if self.n > 1 else self.compute(h, chosen)
        return self.head(x + prob[:, None] * y)


def reduce_gradients(model, n, fault):
    """Means over the tokens of all ranks, which have no expert in common."""
    for name, p in model.named_parameters():
        sharers = 1 if "experts" in name else n
        if sharers > 1 or fault == "expertgroup":
            dist.all_reduce(p.grad)
        p.grad /= sharers if fault == "expertscale" else n


def train_moe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Moe(rank, n, seed, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for s in range(3):
        x, y = batch(100 * seed + s, 24, rank, n)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if n > 1:
            reduce_gradients(model, n, fault)
        opt.step()
    return state(model)


PROGRAMS = {"tpmoe": (2, train_tpmoe), "moe": (2, train_moe)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # A router that differs: its gradient comes from a part of the hidden units:
    # https://github.com/pytorch/torchtitan/issues/2387
    "gatepartial": ("tpmoe", r"(Tensor\.mul\.0|\.t\.0|softmax\.0|linear\.1)\.backward|linear\.1\.forward|\.gate\.|"
                    r"adamw", "01"),
    # A router that differs: each rank draws its own, as it does its experts:
    # https://github.com/microsoft/Tutel/issues/278
    "gateseed": ("moe", r"linear\.1\.|\.gate\.|sgd", "01"),
    # Gradients of experts: averaged with those of other experts, as if all ranks had the same:
    # https://github.com/microsoft/Tutel/issues/161
    "expertgroup": ("moe", r"(all_reduce|div_)\.([7-9]|1\d)\.|\.experts\.|sgd", "01"),
    # Sums over the tokens of all ranks, divided by the ranks that have the expert, of which there is one:
    # https://github.com/deepspeedai/DeepSpeed/pull/5259
    "expertscale": ("moe", r"linear\.[2-5]\.backward|div_\.([7-9]|1\d)\.|\.experts\.|sgd", "01"),
}
