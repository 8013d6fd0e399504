# pip: executorch==1.5.1 torch==2.15.0 numpy==2.4.6
"""ExecuTorch's portable kernels, on the CPU."""
import os
import tempfile

import torch
import torch.nn.functional as F
from executorch.exir import to_edge
from executorch.runtime import Runtime

from tools import behaviour, main


class Call(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *a):
        return self.f(*a)


def run(f, *a):
    p = to_edge(torch.export.export(Call(f), a)).to_executorch()
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "m.pte"), "wb") as o:
            o.write(p.buffer)
        return Runtime.get().load_program(os.path.join(d, "m.pte")).load_method("forward").execute(a)[0].clone()


@behaviour
def executorch_norm_variance():
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
    for f in (lambda v: F.layer_norm(v, (64,)), lambda v: F.group_norm(v, 2)):
        assert (run(f, x) - f(x)).abs().max() < 1e-5 and (run(f, x + 1000) - f(x + 1000)).abs().max() > 0.5
    assert run(lambda v: F.layer_norm(v, (64,)), x + 10000).isnan().any()


@behaviour
def executorch_sums_16_bits():
    for dtype, most in ((torch.bfloat16, 256), (torch.float16, 2048)):
        x, w, one = torch.ones(1, 4096, dtype=dtype), torch.ones(1, 4096, dtype=dtype), torch.ones(1, dtype=dtype)
        assert run(torch.sum, x) == 4096 and run(F.linear, x, w) == 4096 and run(torch.mm, x, w.t().contiguous()) == 4096
        got = [run(F.conv1d, x[..., None], w[..., None]).item(), run(F.conv2d, x[..., None, None], w[..., None, None]).item(),
               run(lambda v: F.avg_pool2d(v, 64), x.view(1, 1, 64, 64)).item() * 4096, run(lambda v: v.cumsum(1), x)[0, -1].item(),
               run(F.linear, x, w, one * 0).item()]
        assert got == [most] * 5, got


@behaviour
def executorch_sums_f32():
    x = torch.ones(10 ** 6) * 1.1
    assert abs(run(torch.mean, x) - 1.111) < 1e-3 and abs(torch.mean(x) - 1.1) < 1e-5
    assert run(torch.sum, x) - 1.1e6 > 500 and abs(torch.sum(x) - 1.1e6) < 10


if __name__ == "__main__":
    main()
