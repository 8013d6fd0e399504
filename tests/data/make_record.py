#!/usr/bin/python3
"""A recording of accrecord, forward and backward of three op calls; needs python3-torch, and `make`:

    tests/data/make_record.py tests/data/dumps/record

Where it is made is in it, as a recorder notes it.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import accrecord  # noqa: E402

torch.manual_seed(0)
x, w = torch.randn(2, 3), torch.randn(2, 3, requires_grad=True)
accrecord.start_record(True, sys.argv[1], record_level=2, record_stack=False)
F.gelu(F.linear(x, w)).sum().backward()
accrecord.record_switch(False)
