"""A pipeline of two stages, the first of which embeds with what the last has as its head; and what is reported of
such.

train_stages(rank, fault, seed, n) is a user's program; n = 1 is one process that has both stages.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from twolast_split import D, VOCAB, state, tokens


class Head(torch.autograd.Function):
    """Logits, whose weight's gradient is left for later so that the stage before need not wait for it."""
    @staticmethod
    def forward(ctx, h, weight, later):
        ctx.save_for_backward(h, weight)
        ctx.later = later
        return F.linear(h, weight)

    @staticmethod
    def backward(ctx, g):
        h, weight = ctx.saved_tensors
        ctx.later.append((g, h))
        return g @ weight, None, None


class Stages(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.is_first, self.is_last, self.later = rank == 0, rank == n - 1, []
        self.embed = nn.Embedding(VOCAB, D)
        nn.init.normal_(self.embed.weight, std=0.3)
        blocks = [nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
                  for _ in range(2)]
        self.blocks = nn.ModuleDict({str(i): b for i, b in enumerate(blocks) if n == 1 or i == rank})
        if self.is_last:
            self.final = nn.LayerNorm(D)

    def forward(self, x):
        if self.is_first:
            x = self.embed(x)
        for block in self.blocks.values():
            x = x + block(x)
        return Head.apply(self.final(x), self.embed.weight, self.later) if self.is_last else x

    def finish_head(self):
        for g, h in self.later:
            self.embed.weight.grad += g.flatten(0, 1).t() @ h.flatten(0, 1)
        self.later.clear()


def run_micro_batch(model, t, target, n):
    """Forward and backward of one; what the stages send each other is one hidden state and its gradient."""
    x = t
    if not model.is_first:
        x = torch.empty(*t.shape, D)
        dist.recv(x, 0)
        x.requires_grad_()
    y = model(x)
    if model.is_last:
        (F.cross_entropy(y.flatten(0, 1), target.flatten()) / 2).backward()
    else:
        dist.send(y.detach(), 1)
        g = torch.empty_like(y)
        dist.recv(g, 1)
        y.backward(g)
    if not model.is_first:
        dist.send(x.grad, 0)


def train_stages(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Stages(rank, n)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(3):
        optimizer.zero_grad(set_to_none=False)
        for part in zip(*(x.chunk(2, 1) for x in tokens(100 * seed + step, 4))):
            run_micro_batch(model, *part, n)
        if fault != "tiedlate":
            model.finish_head()
        if n > 1 and fault != "tiedskip":
            dist.all_reduce(model.embed.weight.grad)
        model.finish_head()
        optimizer.step()
    return state(model)


PROGRAMS = {"stages": (2, train_stages)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

# Where its gradient is made or added, the step that takes it, and where the parted weight is first read.
TIED = r"embedding\.[01]\.|\.embed\.|linear\.[25]\.forward|matmul\.[23]\.|add_\.[01]\.|adam"

FAULTS = {
    # An embedding tied across stages.
    # Not reduced: https://github.com/uw-syfi/piper/issues/13
    "tiedskip": ("stages", TIED, "01"),
    # Reduced before the head's part is there: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "tiedlate": ("stages", r"all_reduce|" + TIED, "01"),
}
