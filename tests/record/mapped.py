#!/usr/bin/env python3
"""An ensemble member by member, mapped by torch.vmap, and one whose last member never ran: mapped.py FOLDER.

Within torch.vmap a recorder sees the op calls, but none of their values and no backward call."""
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import accrecord  # noqa: E402


def run(folder, how):
    g = torch.Generator().manual_seed(0)
    w, b, o = (0.3 * torch.randn(3, *s, generator=g) for s in ((16, 8), (16,), (4, 16)))
    x, y = torch.randn(10, 8, generator=g), torch.arange(10) % 4
    for t in (w, b, o):
        t.requires_grad_()

    def member(w, b, o):
        return F.linear(torch.tanh(F.linear(x, w, b)), o)
    with accrecord.record(output_dir=folder, record_level=2):
        if how == "mapped":
            out = torch.vmap(member)(w, b, o)
        else:
            out = torch.stack([member(*m) for m in zip(w, b, o)])
        loss = sum(F.cross_entropy(m, y) for m in out) / 3
        if how != "stopped":
            loss.backward()


for how in ("one-by-one", "mapped", "stopped"):
    run(f"{sys.argv[1]}/{how}", how)
