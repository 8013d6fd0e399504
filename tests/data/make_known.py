"""Right kernels of PyTorch 2.15 on the CPU that round otherwise than most, in 16 bits, forward and backward: known.tar.gz, in which
a folder for each dtype is a recording of accrecord. None of their sums stands still.

    PYTHONPATH=python ACCREC_LIBRARY=$PWD/bin/libaccrec.so.0 $(tests/torch/run --python) tests/data/make_known.py tests/data/known.tar.gz
"""
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import accrecord

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
g = torch.Generator().manual_seed(5)


def calls(dtype):
    def normal(*s):
        return torch.randn(*s, generator=g).bfloat16().to(dtype).requires_grad_()

    def near_one(*s):
        return (1 + 0.05 * torch.rand(*s, generator=g)).bfloat16().to(dtype).requires_grad_()
    yield lambda: F.adaptive_avg_pool2d(normal(1, 1, 4, 4), 32)
    yield lambda: F.adaptive_max_pool1d(normal(1, 2, 4), 64)
    yield lambda: F.avg_pool1d(normal(1, 2, 513), 257, 1)
    yield lambda: F.max_pool1d(normal(1, 4, 2049), 1025, 1)
    yield lambda: F.max_pool2d(normal(1, 2, 24, 24), 9, 1, 4)
    yield lambda: F.pad(normal(1, 2, 16), (7, 300), mode="replicate")
    yield lambda: F.interpolate(normal(1, 1, 8), size=512)
    yield lambda: torch.prod(near_one(256))
    yield lambda: torch.prod(near_one(8, 300), 1)
    yield lambda: torch.histc(torch.rand(512, generator=g).to(dtype), 8, 0, 1)
    yield lambda: torch.func.vmap(lambda a: torch.softmax(a, 0))(normal(5, 3, 4))
    yield lambda: F.linear(normal(40, 16), normal(16, 16))
    yield lambda: torch.nn.LSTM(4, 8).to(dtype)(normal(3, 2, 4))[0]
    shared = normal(10, 8)
    yield lambda: F.linear(F.embedding(torch.arange(24) % 10, shared), shared)
    yield lambda: torch.compile(lambda a: a.to(torch.float16).float() * 1)(torch.randn(64, generator=g).requires_grad_())


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as d:
    for name, dtype in DTYPES.items():
        g.manual_seed(5)
        torch.manual_seed(1)
        accrecord.start_record(output_dir=os.path.join(d, name), record_level=2, record_stack=False)
        for step, call in enumerate(calls(dtype)):
            accrecord.step(step)
            y = call()
            if y.requires_grad:
                y.backward(torch.randn(y.shape, generator=g).to(y.dtype))
        accrecord.record_switch(False)
        accrecord._replace(None)
    subprocess.run(["tar", "-czf", os.path.abspath(sys.argv[1]), "--sort=name", "--owner=0", "--group=0", "-C", d, *DTYPES], check=True)
