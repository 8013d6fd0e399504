"""Data parallel programs: torch's DDP with accumulation and an average of the weights, DDP with heads that only some
micro-batches use, a bf16 optimizer whose state is split as DeepSpeed has it; and what is reported to go wrong in such.

Each train(rank, fault, seed, n): with n = 1 what one process does that has the whole batch.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from othersix_kit import randint, randn, weights

D = 12


# --- speech: frames of different lengths, accumulated, an average of the weights that is put back ----------------

class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(D, 2 * D, 3, padding=1), nn.GroupNorm(4, 2 * D)
        self.rnn, self.out = nn.GRU(2 * D, D, batch_first=True), nn.Linear(D, 6)

    def forward(self, x):
        h = F.relu(self.norm(self.conv(x)))
        return self.out(self.rnn(h.transpose(1, 2))[0])


class Ema:
    def __init__(self, model, decay=0.5):
        self.model, self.shadow, self.decay = model, copy.deepcopy(model), decay

    @torch.no_grad()
    def update(self):
        for e, p in zip(self.shadow.parameters(), self.model.parameters()):
            e.lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def put_back(self):
        for e, p in zip(self.shadow.parameters(), self.model.parameters()):
            p.copy_(e)


def train_speech(rank, fault, seed, n=2, accum_grad=2):
    torch.manual_seed(seed)
    model = Frames()
    ddp = DDP(model, bucket_cap_mb=0.002) if n > 1 else model
    ema = Ema(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for s in range(3):
        x, y = randn(1000 * seed + s, 8, D, 10), randint(1000 * seed + s + 500, 6, 8, 10)
        lengths = torch.tensor([10, 9, 4, 3, 10, 8, 2, 3])
        y = y.masked_fill(torch.arange(10)[None] >= lengths[:, None], -100)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        items = (y != -100).sum()
        if n > 1 and fault != "items":
            dist.all_reduce(items)
        scale = 1 if fault == "items" else n
        opt.zero_grad()
        for batch_idx, (xs, ys) in enumerate(zip(x.chunk(accum_grad), y.chunk(accum_grad))):
            last = batch_idx % accum_grad == 0 if fault == "nosync" else (batch_idx + 1) % accum_grad == 0
            with contextlib.nullcontext() if last or n == 1 else ddp.no_sync():
                nll = F.cross_entropy(ddp(xs).flatten(0, 1), ys.flatten(), ignore_index=-100, reduction="sum")
                (nll * scale / items).backward()
        opt.step()
        if fault != "emarank0" or rank == 0:
            ema.update()
            if s % 2 == 0:
                ema.put_back()
    return weights(model)


# --- tasks: a trunk with two heads, of which a micro-batch uses one ---------------------------------------------

class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(D, 2 * D), nn.LayerNorm(2 * D), nn.Tanh())
        self.heads = nn.ModuleDict({"rank": nn.Linear(2 * D, 1), "label": nn.Linear(2 * D, 4)})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def train_tasks(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = TwoTasks()
    ddp = DDP(model, find_unused_parameters=True) if n > 1 else model
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for s in range(2):
        x, score, label = randn(1000 * seed + s, 2, 6, D), randn(1000 * seed + s + 300, 6), \
            randint(1000 * seed + s + 500, 4, 6)
        x, score, label = x.chunk(n, 1)[rank], score.chunk(n)[rank], label.chunk(n)[rank]
        opt.zero_grad()
        # A head that the last micro-batch does not use is of no reduction there.
        with ddp.no_sync() if fault == "unused" else contextlib.nullcontext():
            (F.mse_loss(ddp(x[0], "rank")[:, 0], score) / 2).backward()
        (F.cross_entropy(ddp(x[1], "label"), label) / 2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    return weights(model)


# --- bf16: weights in bf16, gradients accumulated in f32, masters and their state split over the ranks -----------

class Bf16Optimizer:
    """Accumulates in f32; each rank steps its part of the flat masters and all gather the parts."""
    def __init__(self, model, rank, n):
        self.params, self.rank, self.n = list(model.parameters()), rank, n
        flat = torch.cat([p.detach().float().flatten() for p in self.params])
        self.flat = F.pad(flat, (0, -len(flat) % 2))
        self.master = nn.Parameter(self.flat.chunk(n)[rank].clone())
        self.acc = torch.zeros_like(self.flat)
        self.inner = torch.optim.Adam([self.master], lr=0.02, eps=1e-4)

    def update_hp_grads(self):
        grad = torch.cat([p.grad.float().flatten() for p in self.params])
        self.acc += F.pad(grad, (0, len(self.flat) - len(grad)))
        for p in self.params:
            p.grad = None

    def reduce(self):
        if self.n > 1:
            dist.all_reduce(self.acc)
            self.acc /= self.n

    def step(self):
        self.master.grad = self.acc.chunk(self.n)[self.rank].clone()
        self.inner.step()
        parts = [self.master.detach()]
        if self.n > 1:
            parts = [torch.empty_like(self.master) for _ in range(self.n)]
            dist.all_gather(parts, self.master.detach())
        self.flat, at = torch.cat(parts), 0
        self.acc.zero_()
        with torch.no_grad():
            for p in self.params:
                p.copy_(self.flat[at:at + p.numel()].view_as(p))
                at += p.numel()


def train_bf16(rank, fault, seed, n=2, steps=3, gas=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 3 * D), nn.GELU(), nn.Linear(3 * D, D), nn.GELU(), nn.Linear(D, 4))
    model = model.to(torch.bfloat16)
    opt = Bf16Optimizer(model, rank, n)
    for s in range(steps):
        x, y = randn(1000 * seed + s, gas, 8, D).bfloat16(), randint(1000 * seed + s + 500, 4, gas, 8)
        for g in range(gas):
            # One process has the parts of the ranks after each other: the sums in bf16 are those of the ranks.
            parts = [rank] if n > 1 else range(2)
            for part in parts:
                xs, ys = x[g].chunk(2)[part], y[g].chunk(2)[part]
                (F.cross_entropy(model(xs).float(), ys) / gas / (1 if n > 1 else 2)).backward()
                boundary = g == gas - 1
                if fault == "bf16leak" and boundary:
                    opt.reduce()
                    opt.update_hp_grads()
                else:
                    opt.update_hp_grads()
                    if boundary:
                        opt.reduce()
        opt.step()
    # A weight in bf16 may round to its neighbour where the f32 sums end otherwise.
    return {"master": opt.flat}


PROGRAMS = {"speech": (2, train_speech), "tasks": (2, train_tasks), "bf16": (2, train_bf16)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # The items of a batch are those of the own micro-batches:
    # https://github.com/huggingface/transformers/issues/34242
    "items": ("speech", r"sum|div|mul|nll_loss|cross_entropy|all_reduce|sgd|__ne__", "01"),
    # The first micro-batch is summed, not the last: https://github.com/modelscope/FunASR/pull/3472
    "nosync": ("speech", r"all_reduce|sgd|conv|gru|linear\.\d+\.backward|group_norm|\.(conv|norm|rnn|out)\.", "01"),
    # An average of the weights only on rank 0 that is put back: https://github.com/lucidrains/ema-pytorch/issues/9
    "emarank0": ("speech", r"lerp|copy_|sgd|conv1d\.\d+\.forward|all_reduce|broadcast|\.(conv|norm|rnn|out)\.", "01"),
    # A head that the last micro-batch does not use keeps its own gradient:
    # https://github.com/mosaicml/composer/issues/9
    "unused": ("tasks", r"adamw|linear\.1\.backward|heads\.rank|all_reduce|clip|norm\.|mul_", "01"),
    # The last micro-batch comes in after the sum: https://github.com/deepspeedai/DeepSpeed/pull/7985
    "bf16leak": ("bf16", r"all_reduce|add|div|adam|chunk|all_gather|linear\.\d+\.backward", "01"),
}
