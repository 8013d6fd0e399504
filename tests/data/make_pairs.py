#!/usr/bin/env python3
"""What torch's kernels give of all pairs of numbers, zero, the largest, Inf, -Inf and NaN, recorded by accrecord. Torch 2.15:

    PYTHONPATH=python tests/data/make_pairs.py FOLDER && tar -C FOLDER -cJf tests/data/wild/pairs.tar.xz .

Functions of two have one operand from each place of a pair, functions of one both, and what joins a row has the pair as
its row. Forward in f32, bf16, f16 and f64, backward (of ones) in f32 and bf16.
"""
import itertools
import shutil
import sys

import accrecord
import torch
import torch.nn.functional as F

torch.set_num_threads(1)

ONE = [torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.rsqrt,
       torch.reciprocal, torch.abs, torch.neg, torch.sign, torch.floor, torch.round, torch.sin, torch.cos, torch.erf,
       torch.square, torch.atan, F.gelu, F.silu, F.mish, F.softplus, F.elu, F.selu, F.celu, F.leaky_relu, F.relu6,
       F.hardtanh, F.hardswish, F.hardsigmoid, F.logsigmoid, F.softsign, F.tanhshrink, F.hardshrink, F.softshrink,
       lambda x: F.gelu(x, approximate="tanh"), lambda x: torch.clamp(x, -1, 1), lambda x: torch.clamp(x, min=0),
       lambda x: torch.pow(x, 2), lambda x: torch.pow(x, 0.5), lambda x: torch.pow(x, -1), torch.exp2, torch.log2, torch.log10,
       torch.isnan, torch.isfinite, torch.nan_to_num, torch.trunc, torch.frac, torch.sinh, torch.cosh, torch.asinh,
       torch.erfc, torch.lgamma, torch.logit, torch.sinc, lambda x: x * 0.0, lambda x: x / 0.0]
TWO = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.pow,
       torch.atan2, torch.fmod, torch.remainder, torch.hypot, torch.logaddexp, torch.copysign, torch.eq, torch.lt,
       torch.floor_divide, torch.heaviside, torch.xlogy, F.prelu, torch.lerp, torch.where, torch.addcmul, torch.addcdiv,
       lambda x, y: F.mse_loss(x, y, reduction="none"), lambda x, y: F.l1_loss(x, y, reduction="none"),
       lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), lambda x, y: torch.clamp(x, max=y),
       lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), torch.logaddexp2, torch.isclose]
ROWS = [torch.sum, torch.mean, torch.prod, torch.amax, torch.amin, torch.logsumexp, torch.softmax, torch.log_softmax,
        torch.cumsum, torch.cumprod, torch.nansum, torch.argmax, torch.sort, torch.var, torch.std, torch.cummax,
        lambda x, d: torch.linalg.vector_norm(x, dim=d), lambda x, d: torch.norm(x, 1, dim=d), torch.topk, torch.max,
        lambda x, d: F.normalize(x, dim=d), lambda x, d: F.layer_norm(x, (2,)), lambda x, d: F.rms_norm(x, (2,), None, 1e-5),
        lambda x, d: torch.matmul(x, torch.tensor([[1.0, 0.5, 0.0], [-1.0, 2.0, 1.0]], dtype=x.dtype)), torch.median,
        lambda x, d: F.linear(x, torch.tensor([[1.0, -1.0], [0.5, 0.0]], dtype=x.dtype)),
        lambda x, d: F.max_pool1d(x[:, None], 2), lambda x, d: F.avg_pool1d(x[:, None], 2), torch.nanmean,
        lambda x, d: F.cross_entropy(x, torch.zeros(len(x), dtype=torch.int64), reduction="none")]


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    accrecord.start_record(output_dir=folder, record_level=2, record_stack=False)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        with accrecord._now.quiet():
            most = torch.finfo(dtype).max
            pairs = list(itertools.product([0.0, 1.5, -2.0, most, -most, float("inf"), float("-inf"), float("nan")], repeat=2))
            both = torch.tensor(pairs, dtype=dtype)
        for kind, calls in enumerate((ONE, TWO, ROWS)):
            for f in calls:
                with accrecord._now.quiet():
                    x = both.clone().requires_grad_(dtype in (torch.float32, torch.bfloat16))
                    a, b = (v.detach().clone().requires_grad_(x.requires_grad) for v in (both[:, 0], both[:, 1]))
                    args = {0: (a if kind == 0 else x,), 1: (a, b), 2: (x, -1)}[kind]
                    third = {"where": [b > a], "lerp": [0.25], "addcmul": [torch.ones_like(a)],
                             "addcdiv": [torch.ones_like(a) * 2], "prelu": [], "topk": []}.get(getattr(f, "__name__", ""), [])
                    if f is torch.where:
                        args = (b > a, a, b)
                    elif f is torch.topk:
                        args = (x, 2)
                    elif f is F.prelu:
                        args = (a[None], b)
                    else:
                        args = (*args, *third)
                try:
                    y = f(*args)
                    y = y if isinstance(y, torch.Tensor) else y[0]
                    if y.requires_grad:
                        y.backward(torch.ones_like(y))
                except (RuntimeError, TypeError, NotImplementedError) as why:  # not of this dtype
                    print(getattr(f, "__name__", f), dtype, str(why).split("\n")[0][:80], file=sys.stderr)
    accrecord.record_switch(False)
    accrecord._replace(None)


if __name__ == "__main__":
    main()
