#!/usr/bin/env python3
"""A batch in one pass, and in parts whose gradients add up before the optimizer's step: micro.py FOLDER [LEVEL]
bench; right: each part's loss divided by their number; undivided; last: the others' gradients are lost; first: all parts go
forward before any goes back; first-undivided. Where some labels are ignored: masked, the bench; masked-sum: each part's sum by
the number of all that count; masked-mean: each part by its own number, which is wrong."""
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
    parts = 1 if kind in ("bench", "masked") else PARTS
    accrecord.start_record(True, folder, record_level=level)
    for _ in range(STEPS):
        x, y = torch.randn(4 * PARTS, 20, generator=data), torch.randint(0, 10, (4 * PARTS,), generator=data)
        if kind.startswith("masked"):
            y[:3] = -100
        step.zero_grad()
        losses = []
        for xs, ys in zip(x.chunk(parts), y.chunk(parts)):
            if kind == "last":
                step.zero_grad()
            if kind == "masked-sum":
                loss = F.cross_entropy(net(xs), ys, reduction="sum") / (len(y) - 3)
            elif kind.endswith("undivided"):
                loss = F.cross_entropy(net(xs), ys)
            else:
                loss = F.cross_entropy(net(xs), ys) / parts
            losses.append(loss)
            if not kind.startswith("first"):
                loss.backward()
        if kind.startswith("first"):
            sum(losses).backward()
        step.step()
        accrecord.step()
    accrecord.record_switch(False)


def main():
    for kind in ("bench", "right", "undivided", "last", "first", "first-undivided", "masked", "masked-sum", "masked-mean"):
        train(os.path.join(sys.argv[1], kind), kind, int(sys.argv[2]) if len(sys.argv) > 2 else 2)


main()
