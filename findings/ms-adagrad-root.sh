#!/bin/sh
# MindSpore 2.10.0 on the CPU: nn.Adagrad adds 1e-8 within the root, lr g / sqrt(h + 1e-8), and takes no epsilon; torch and
# MindSpore's own experimental.optim.Adagrad add 1e-10 behind it, lr g / (sqrt(h) + 1e-10). From an accumulator of 0, the first
# step of an element whose gradient is 1e-4 is 0.71 of torch's, of 1e-5 a tenth of it.
# Seen on 2026-11-29: 0.999999 0.995037 0.707107 0.0995037 of lr for gradients of 1e-1, 1e-3, 1e-4, 1e-5; experimental: 1
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q mindspore==2.10.0 numpy==1.26.4
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END2'
import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.experimental import optim

g = np.array([1e-1, 1e-3, 1e-4, 1e-5], "f4")
for name, make in (("nn", lambda p: nn.Adagrad(p, accum=0.0, learning_rate=1.0)), ("experimental", lambda p: optim.Adagrad(p, lr=1.0))):
    p = ms.Parameter(ms.Tensor(np.zeros(4, "f4")), name="p")
    make([p])((ms.Tensor(g),))
    step = -p.asnumpy().astype("f8")
    print(name, *("%g" % x for x in step))
    want = g.astype("f8") / np.sqrt(g.astype("f8") ** 2 + 1e-8) if name == "nn" else np.ones(4)
    assert np.abs(step - want).max() < 1e-4, (name, step, want)
END2
