#!/usr/bin/env python3
"""What is written to a view is used through what it is a view of: views.py FOLDER. The gradient of what was
written is recorded, that of the view is not."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import accrecord  # noqa: E402

g = torch.Generator().manual_seed(0)
x, w = torch.randn(3, 4, generator=g), torch.randn(4, 4, generator=g).requires_grad_()
with accrecord.record(output_dir=sys.argv[1], record_level=2):
    table = torch.zeros(2, 3, 4)
    view = table[1]
    view[:] = x @ w
    own = torch.zeros(3, 4)
    own[:] = torch.tanh(x @ w)
    ((table * table).sum() + (own ** 3).sum()).backward()
