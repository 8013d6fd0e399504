"""A tensor-parallel MLP on two ranks, trained for two steps: dumps of several steps and ranks.

Each rank has half of the channels between fc1 and fc2; their partial sums meet in an
all_reduce, so a fault of one rank shows on both."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

from recorder import Recorder

RANKS, STEPS, DIM = 2, 2, 4


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, op=dist.ReduceOp.SUM, group=dist.group.WORLD)
        return y

    @staticmethod
    def backward(ctx, g):
        return g


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(DIM, DIM)   # each rank's half of 2 * DIM channels
        self.fc2 = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x):
        return Reduce.apply(self.fc2(F.gelu(self.fc1(x))))


def rank_main(rank, side, faults, write, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=RANKS)
    torch.manual_seed(21 + rank)
    net = Net()
    g = torch.Generator().manual_seed(5)
    for step in range(STEPS):
        rec = Recorder(noise=50 + 10 * step + rank if side == "device" else None,
                       faults=faults if side == "device" and rank == 1 else None)
        x, y = (torch.randn(3, DIM, generator=g) for _ in "xy")
        with rec.recording(net):
            loss = (net(x) - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        write(side, step, rank, rec.events)


def run(faults, write):
    """write(side, step, rank, events) runs in a process of its own."""
    for side in ("device", "bench"):
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(rank_main, (side, faults, write, os.path.join(d, "store")),
                               RANKS, start_method="fork")
