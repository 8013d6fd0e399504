"""Two stages that share a table, with AdamW, recorded into OUT: that of the last one decays it otherwise. Needs torch with
gloo.

Usage: decay.py OUT"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def rank(number, out):
    from nets import accrecord
    dist.init_process_group("gloo", init_method=f"file://{out}.meet", rank=number, world_size=2)
    torch.manual_seed(1)
    table = nn.Embedding(9, 4)
    torch.manual_seed(2 + number)
    inner = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW([*table.parameters(), *inner.parameters()], lr=0.1, weight_decay=0.5 if number else 0.1)
    ids = torch.arange(6)
    with accrecord.record(output_dir=out):
        for step in range(2):
            accrecord.step(step)
            optimizer.zero_grad()
            x = torch.zeros(6, 4)
            if number == 0:
                x = inner(table(ids))
                dist.send(x.detach(), 1)
                dist.recv(grad := torch.zeros(6, 4), 1)
                x.backward(grad)
            else:
                dist.recv(x, 0)
                F.cross_entropy(F.linear(inner(x.requires_grad_()), table.weight), ids + 1).backward()
                dist.send(x.grad, 0)
            dist.all_reduce(table.weight.grad)
            optimizer.step()


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1],), 2)
