# pip: mindspore==2.10.0 numpy==1.26.4
"""MindSpore on the CPU."""
import subprocess
import sys

import numpy as np
import mindspore as ms
from mindspore import ops

from tools import behaviour, main


@behaviour
def ms_softmax_masked_row():
    """A row that is masked whole: nothing is written, in no row."""
    wrong = 0
    for k in range(4):
        x = np.array([[-np.inf] * 5, [1, 2, 3, 4, 5 + k], [4, 3, 2, 1, k]], dtype="f4")
        y = ops.softmax(ms.Tensor(x), axis=-1).asnumpy()
        want = np.exp(x[1:] - 9) / np.exp(x[1:] - 9).sum(-1, keepdims=True)
        wrong += not np.allclose(y[1:], want, atol=1e-5)
    assert wrong >= 3, wrong


@behaviour
def ms_bf16_refused():
    # Each in a process of its own: an error comes late, and in the name of what follows (ms-error-is-late).
    for call in ("ops.matmul(x, x)", "ops.reduce_sum(x)", "ops.exp(x)", "ops.softmax(x, -1) + ops.tanh(x)"):
        code = "import numpy as np, mindspore as ms\nfrom mindspore import ops\nx = ms.Tensor(np.ones((4, 4), 'f4')).astype(ms.bfloat16)\n" \
               "print('cast'); print(%s.astype(ms.float32).asnumpy())" % call
        r = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
        assert r.stdout.startswith("cast") and r.returncode != 0 and "BFloat16" in r.stdout + r.stderr, (call, r.stderr[-300:])


@behaviour
def ms_coarse_functions():
    x = np.linspace(0.999, 0.9999999, 2001).astype("f4")
    off = np.abs(ops.log(ms.Tensor(x)).asnumpy() / np.log(x.astype("f8")) - 1).max()
    assert 1e-4 < off < 0.5, off
    x = np.logspace(-6, 1, 5000).astype("f4")
    for name, least in (("tanh", 200), ("exp", 20), ("sigmoid", 5)):
        want = {"tanh": np.tanh, "exp": np.exp, "sigmoid": lambda v: 1 / (1 + np.exp(-v))}[name](x.astype("f8"))
        off = (np.abs(getattr(ops, name)(ms.Tensor(x)).asnumpy() - want) / np.spacing(want.astype("f4"))).max()
        assert off > least, (name, off)
    # The laws of lib/judge/coarse.c, in units of 2^-24: absolute, and by the largest result.
    rng = np.random.default_rng(0)
    for name, lo, hi, alone, out in (("log", 1e-6, 1e6, 6, 7), ("log2", 1e-6, 1e6, 7, 8), ("log1p", 1e-5, 1e3, 2, 3), ("tanh", 1e-6, 10, 1800, 0)):
        x = np.exp(rng.uniform(np.log(lo), np.log(hi), 200000)).astype("f4")
        want = getattr(np, name)(x.astype("f8"))
        off = np.abs(getattr(ops, name)(ms.Tensor(x)).asnumpy() - want) * 2 ** 24
        assert (off <= alone + out * np.abs(want)).all(), (name, (off - out * np.abs(want)).max())


@behaviour
def ms_loss_f16():
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((64, 257)).astype("f2"), rng.integers(0, 257, 64).astype("i4")
    got = {r: ops.cross_entropy(ms.Tensor(x), ms.Tensor(t), reduction=r).asnumpy() for r in ("mean", "sum", "none")}
    assert np.isnan(got["mean"]) and np.isnan(got["sum"]) and not np.isnan(got["none"]).any(), got


@behaviour
def ms_relu_nan():
    x = ms.Tensor(np.array([1, np.nan, -2], dtype="f4"))
    assert ops.relu(x).asnumpy()[1] == 0 and ops.maximum(x, ms.Tensor(np.float32(1))).asnumpy()[1] == 1


@behaviour
def ms_rmsprop_starts_at_one():
    p = ms.Parameter(ms.Tensor(np.ones(3, "f4")), name="p")
    o = ms.nn.RMSProp([p], learning_rate=0.1)
    start = [x.asnumpy() for x in o.ms] if hasattr(o, "ms") else [v.asnumpy() for v in o.get_parameters() if "mean_square" in v.name]
    assert start and (start[0] == 1).all(), start


@behaviour
def ms_clip_lets_nan_by():
    g = [ms.Tensor(np.full(3, 100, "f4")), ms.Tensor(np.array([np.nan], "f4"))]
    out = ops.clip_by_global_norm(g, 1.0)
    assert (out[0].asnumpy() == 100).all(), out


@behaviour
def ms_layernorm_eps():
    assert ms.nn.LayerNorm((4,)).epsilon == 1e-7 and ms.mint.nn.LayerNorm((4,)).eps == 1e-5
    x = np.array([[0, 1e-3, 2e-3, 3e-3]], dtype="f4")
    got, off = ms.nn.LayerNorm((4,))(ms.Tensor(x)).asnumpy()[0, 3], x[0, 3] - x.mean()
    by = [off / np.sqrt(x.astype("f8").var() + eps) for eps in (1e-7, 1e-5)]
    assert abs(got / by[0] - 1) < 1e-3 and by[0] / by[1] > 2.5, (got, by)


if __name__ == "__main__":
    main()
