#!/usr/bin/env python3
"""A batch in one pass, and in parts whose gradients add up before the optimizer's step: micro.py FOLDER [LEVEL]
bench; right: each part's loss divided by their number; undivided; last: the others' gradients are lost."""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import accrecord  # noqa: E402

PARTS, STEPS = 3, 2


def train(folder, kind, level):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10))
    step = torch.optim.AdamW(net.parameters(), 1e-3)
    data = torch.Generator().manual_seed(7)
    parts = 1 if kind == "bench" else PARTS
    accrecord.start_record(True, folder, record_level=level)
    for _ in range(STEPS):
        x, y = torch.randn(4 * PARTS, 20, generator=data), torch.randint(0, 10, (4 * PARTS,), generator=data)
        step.zero_grad()
        for xs, ys in zip(x.chunk(parts), y.chunk(parts)):
            if kind == "last":
                step.zero_grad()
            loss = F.cross_entropy(net(xs), ys)
            (loss if kind == "undivided" else loss / parts).backward()
        step.step()
        accrecord.step()
    accrecord.record_switch(False)


def main():
    for kind in ("bench", "right", "undivided", "last"):
        train(os.path.join(sys.argv[1], kind), kind, int(sys.argv[2]) if len(sys.argv) > 2 else 2)


main()
