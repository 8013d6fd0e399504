#!/usr/bin/env python3
"""One network whose loss is reduced in several ways: reduction.tar.gz.

Usage: make_reduction.py OUT    (torch; PYTHONPATH=python, ACCREC_LIBRARY as accrecord(7) says)
    tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n >reduction.tar.gz

mean, and the same value otherwise: summed (sum / n), each (none, then mean); and not the same: half of it, less (sum / (n - 1)),
plus (with a term for the logits), scaled (times 1024, as loss scaling does)."""
import os
import sys

import torch
import torch.nn.functional as F

import accrecord

LOSSES = {
    "mean": lambda h, y: F.cross_entropy(h, y),
    "summed": lambda h, y: F.cross_entropy(h, y, reduction="sum") / len(y),
    "each": lambda h, y: F.cross_entropy(h, y, reduction="none").mean(),
    "half": lambda h, y: F.cross_entropy(h, y) / 2,
    "less": lambda h, y: F.cross_entropy(h, y, reduction="sum") / (len(y) - 1),
    "plus": lambda h, y: F.cross_entropy(h, y) + 0.1 * h.pow(2).sum(),
    "scaled": lambda h, y: F.nll_loss(h.softmax(1).log(), y) * 1024,  # by other calls, that round otherwise
}


def main():
    for name, loss in LOSSES.items():
        child = os.fork()
        if child == 0:
            torch.manual_seed(7)
            w = [(torch.randn(n, m) / 2).requires_grad_() for n, m in ((8, 6), (5, 8))]
            x, y = torch.randn(7, 6), torch.randint(0, 5, (7,))
            with accrecord.record(output_dir=os.path.join(sys.argv[1], name), record_level=2):
                loss(F.linear(F.gelu(F.linear(x, w[0])), w[1]), y).backward()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(1)


main()
