# pip: mlx[cpu]==0.32.4 numpy==2.4.6
"""MLX on the CPU."""
import tempfile
import zipfile

import mlx.core as mx
import numpy as np

from tools import behaviour, main

mx.set_default_device(mx.cpu)


@behaviour
def mlx_savez_order():
    with tempfile.TemporaryDirectory() as d:
        names = ["layer%d" % i for i in range(12)]
        mx.savez(d + "/a.npz", **{n: mx.zeros(1) for n in names})
        got = [n.replace(".npy", "") for n in zipfile.ZipFile(d + "/a.npz").namelist()]
    assert sorted(got) == sorted(names) and got != names, got


@behaviour
def mlx_inplace_is_seen():
    a = mx.array([1.0, 2.0])
    kept, lazy, view = a, a * 1, np.array(a, copy=False)
    a += 1
    assert np.array(kept).tolist() == [2, 3] and np.array(lazy).tolist() == [1, 2] and view.tolist() == [1, 2]


@behaviour
def mlx_f16_mean():
    x = mx.full((512,), 200.0, dtype=mx.float16)
    assert np.isinf(np.array(mx.mean(x))) and np.isfinite(np.full(512, 200, "f2").mean())


@behaviour
def mlx_bf16_cumsum():
    y = mx.cumsum(mx.ones((600,), dtype=mx.bfloat16))
    assert y[-1].item() == 256


@behaviour
def mlx_quantize_nan():
    w = mx.concatenate([mx.array([float("nan")]), mx.linspace(-1, 1, 63)]).reshape(1, 64)
    q = mx.dequantize(*mx.quantize(w, group_size=64, bits=4), group_size=64, bits=4)
    assert np.isfinite(np.array(q)).any(), q


@behaviour
def mlx_labels():
    """Labels beyond the classes count as some class."""
    import mlx.nn as nn
    x = mx.array([[1.0, 2.0, 3.0]])
    got = [nn.losses.cross_entropy(x, mx.array([i])).item() for i in (2, -1, -100)]
    assert np.isfinite(got).all() and got[1] == got[0], got


@behaviour
def mlx_null_metadata():
    with tempfile.TemporaryDirectory() as d:
        mx.save_safetensors(d + "/a.safetensors", {"a": mx.zeros(2)})
        head = open(d + "/a.safetensors", "rb").read()[8:40]
    assert head.startswith(b'{"__metadata__":null,'), head


if __name__ == "__main__":
    main()
