#!/usr/bin/env python3
"""Formulas of several op calls, given numbers of 16 and of 32 bits together: mixed.py FOLDER. The result is of 32
bits; some of what it is made of is not."""
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import accrecord  # noqa: E402

CALLS = {
    "logits": lambda a, b: F.binary_cross_entropy_with_logits(a, (b.detach() > 0).float()), "weighted": lambda a, b: F.binary_cross_entropy_with_logits(a, (b.detach() > 0).float(), pos_weight=torch.tensor([2.0])),
    "labels": lambda a, b: F.multilabel_soft_margin_loss(a, (b.detach() > 0).float()), "cosine": F.cosine_similarity, "directions": lambda a, b: F.cosine_embedding_loss(a, b, torch.ones(32)),
    "counts": lambda a, b: F.poisson_nll_loss(b, a.detach().abs(), full=True), "angle": torch.atan2, "power": lambda a, b: b.abs() ** a, "turned": lambda a, b: a.abs() ** b}

for name, call in CALLS.items():
    for dtype in (torch.bfloat16, torch.float16):
        g = torch.Generator().manual_seed(3)
        a = (2 * torch.randn(32, 16, generator=g)).to(dtype).requires_grad_()
        b = (1.5 * torch.randn(32, 16, generator=g)).requires_grad_()
        with accrecord.record(output_dir=f"{sys.argv[1]}/{name}-{str(dtype)[6:]}", record_level=2):
            out = call(a * 1, b * 1)
            (out ** 2).sum().backward()
