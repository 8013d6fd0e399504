"""Two ranks with one model, whose weights become an average of themselves behind the first step, and go on alone, recorded into
OUT. Needs torch with gloo.

Usage: putback.py OUT"""
import copy
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def rank(number, out):
    from nets import accrecord
    dist.init_process_group("gloo", init_method=f"file://{out}.meet", rank=number, world_size=2)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6))
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    with accrecord.record(output_dir=out):
        for step in range(3):
            accrecord.step(step)
            torch.manual_seed(10 * step + number)
            optimizer.zero_grad()
            net(torch.randn(8, 6)).square().mean().backward()
            for p in net.parameters():
                dist.all_reduce(p.grad)
                p.grad.div_(2)
            optimizer.step()
            with torch.no_grad():
                for a, p in zip(average.parameters(), net.parameters()):
                    a.lerp_(p, 0.5)
                    if step == 0:
                        p.copy_(a)


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1],), 2)
