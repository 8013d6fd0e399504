"""Four ranks with one model, whose gradients are summed up over pairs of ranks twice; what the last one is given counts nowhere, so
that all its gradients are zeros. Recorded into OUT. Needs torch with gloo.

Usage: zeros.py OUT"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Parameter(1 + 0.3 * torch.randn(16)) for _ in "xy")

    def forward(self, x):
        return torch.tanh(x * self.first) * self.second


def rank(number, out):
    from nets import accrecord
    dist.init_process_group("gloo", init_method=f"file://{out}.meet", rank=number, world_size=4)
    pairs = [[dist.new_group(p) for p in way] for way in (((0, 2), (1, 3)), ((0, 1), (2, 3)))]
    torch.manual_seed(1)
    net = Scale()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    with accrecord.record(output_dir=out):
        accrecord.step(0)
        torch.manual_seed(number)
        x, counts = torch.randn(4, 16), torch.full((4, 1), float(number < 3))
        optimizer.zero_grad()
        (net(x).square() * counts).sum().backward()
        for p in net.parameters():
            dist.all_reduce(p.grad, group=pairs[0][number % 2])
            dist.all_reduce(p.grad, group=pairs[1][number // 2])
        optimizer.step()


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1],), 4)
