#!/usr/bin/env python3
"""Two steps of RMSprop with a momentum and a variance: rmsprop.tar.gz.

Usage: make_rmsprop.py OUT    (torch; PYTHONPATH=python, ACCREC_LIBRARY as accrecord(7) says)
    tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n >rmsprop.tar.gz

right: torch's; wrong: torch's, and behind it a hundredth of the step once more, within the same op call."""
import functools
import importlib
import os
import sys

import torch
import torch.nn.functional as F

import accrecord

RMSPROP = importlib.import_module("torch.optim.rmsprop")  # torch.optim has others in its place
OWN = RMSPROP.rmsprop


@functools.wraps(OWN)
def further(params, *args, **keywords):
    before = [p.detach().clone() for p in params]
    OWN(params, *args, **keywords)
    with torch.no_grad():
        for p, b in zip(params, before):
            p.add_(p - b, alpha=0.01)


def main():
    for name in "right", "wrong":
        child = os.fork()
        if child == 0:
            torch.manual_seed(13)
            w = [(torch.randn(n, m) / 2).requires_grad_() for n, m in ((8, 6), (5, 8))]
            x, y = torch.randn(7, 6), torch.randint(0, 5, (7,))
            RMSPROP.rmsprop = further if name == "wrong" else OWN
            opt = torch.optim.RMSprop(w, 0.01, momentum=0.9, centered=True, weight_decay=0.01, foreach=False)
            with accrecord.record(output_dir=os.path.join(sys.argv[1], name), record_level=2):
                for _ in range(2):
                    F.cross_entropy(F.linear(F.gelu(F.linear(x, w[0])), w[1]), y).backward()
                    opt.step()
                    opt.zero_grad()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(1)


main()
