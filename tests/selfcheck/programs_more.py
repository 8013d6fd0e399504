"""More programs of programs.py: graph, a network of nodes of which ranks have different numbers and one no
labels; local, batch norms of each rank's own, gradients that are compressed, batches of different sizes and
ZeroRedundancyOptimizer."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

from programs_base import Draw, Gather, kept, total, world

SIZES = 5, 4, 3


class Convolution(nn.Module):
    """Of each node of this rank a mean of its neighbours on all ranks."""
    def __init__(self, a, b, edges, ranks, fault):
        super().__init__()
        self.linear, self.norm = nn.Linear(a, b), nn.LayerNorm(b)
        self.edges, self.ranks, self.fault = edges, ranks, fault

    def forward(self, h):
        near = h
        if self.ranks > 1:
            # Padded to as many as the largest part has.
            near = Gather.apply(F.pad(h, (0, 0, 0, max(SIZES) - len(h))), world(self.ranks), 0)
            if self.fault == "ghosts":
                near = near.detach()
            near = near[[r * max(SIZES) + i for r, n in enumerate(SIZES) for i in range(n)]]
        return F.relu(self.norm(self.linear(self.edges @ near + h)))


def graph(rank, fault, seed, ranks=3):
    torch.manual_seed(seed)
    data = Draw(seed + 100)
    mine = slice(0, 12) if ranks == 1 else slice(sum(SIZES[:rank]), sum(SIZES[:rank + 1]))
    edges = (data(12, 12, std=1.0) > 0.5).float() + torch.eye(12)
    edges = edges / edges.sum(1, keepdim=True)
    x, y = data(12, 6, std=1.0), data.ints(3, 12)
    # The last rank's nodes have no labels.
    labelled = (torch.arange(12) < 9) & (torch.arange(12) % 4 > 0)
    x, y, labelled, edges = x[mine], y[mine], labelled[mine], edges[mine]
    model = nn.Sequential(Convolution(6, 8, edges, ranks, fault), Convolution(8, 8, edges, ranks, fault),
                          nn.Linear(8, 3))
    group = world(ranks)
    opt = torch.optim.Adam(model.parameters(), lr=0.02, eps=1e-3, weight_decay=0.01)
    for _ in range(3):
        count = labelled.sum().float()
        if fault != "labelled":
            total(count, group)
        losses = F.cross_entropy(model(x), y, reduction="none") * labelled
        loss = losses.sum() / count.clamp(min=1.0)
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            total(p.grad, group)
            if fault in ("labelled", "nodesaverage"):
                p.grad.div_(ranks)
        opt.step()
    return kept(model.named_parameters())


def halves(fault, ranks):
    """Gradients are sent in half precision."""
    def hook(state, bucket):
        small = bucket.buffer().to(torch.float16)
        if fault != "hooksum":
            small = small / ranks
        done = dist.all_reduce(small, async_op=True).get_future()
        return done.then(lambda f: bucket.buffer().copy_(f.value()[0]))
    return hook


def local(rank, fault, seed, ranks=3):
    torch.manual_seed(seed + 10 * rank)
    model = nn.Sequential(nn.Conv1d(2, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(),
                          nn.Linear(48, 4))
    # Each rank made its own weights; those of rank 0 are all ranks'.
    run = DDP(model, broadcast_buffers=False)
    run.register_comm_hook(None, halves(fault, ranks))
    opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    data = Draw(seed + 100 + rank)
    for _ in range(3):
        n = 4 + rank
        x, y = data(n, 2, 6, std=1.0), data.ints(4, n)
        loss = F.cross_entropy(run(x), y)
        opt.zero_grad()
        # A mean of all samples: 15 of them, and DDP will divide by the ranks.
        share = n / 15 if fault == "batchweight" else n * ranks / 15
        (loss * share).backward()
        opt.step()
        said = [None] * ranks
        dist.all_gather_object(said, loss.item())
    return kept(model.named_parameters())


PROGRAMS = {"graph": (3, graph), "local": (3, local)}
WHOLE = {"graph": lambda seed: graph(0, None, seed, 1), "local": lambda seed: {}}
# What a bug's place may be called, and the ranks that may be named; above each, a report of such a one.
FAULTS = {
    # https://github.com/pytorch/torchtitan/pull/2206
    "labelled": ("graph", r"Tensor\.(sum|div|clamp)\.\d+\.|cross_entropy", "012"),
    # https://github.com/kohjingyu/fromage/issues/33
    "ghosts": ("graph", r"all_gather|detach|(__getitem__|matmul)\.\d+\.backward", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/673
    "nodesaverage": ("graph", r"div_|all_reduce|Tensor\.(sum|div)\.\d+\.|adam\.", "012"),
    # https://github.com/EleutherAI/bergson/pull/334
    "hooksum": ("local", r"(linear|conv1d|batch_norm)\.\d+\.backward|parameters_grad|sgd|all_reduce|"
                r"Tensor\.(div|to)", "012"),
    # https://github.com/ruimalheiro/gradient-garden/pull/113
    "batchweight": ("local", r"Tensor\.(mul|div)\.\d+\.|cross_entropy|sgd", "012"),
}
