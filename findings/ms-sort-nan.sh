#!/bin/sh
# MindSpore 2.10.0 on the CPU: ops.sort of an array that holds a NaN leaves it unsorted behind and before the NaN, relu and sign
# of NaN are 0, and max passes over it. torch 2.15's sign of NaN is 0, too (its relu is NaN); numpy, JAX and onnxruntime keep
# NaN in all of them. What takes a rank or a sign (top-k, quantile, Lion's step) hides a broken run.
# Seen on 2026-11-29:
#   sort [0, 1, 2, 3, nan, 5] of [3, nan, 1, 2, 0, 5]; sort [1, nan, 2, 3] of [1, nan, 3, 2]; sign 0, max 3
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q mindspore==2.10.0 numpy==1.26.4
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import mindspore
import numpy as np
from mindspore import ops
for x, seen in (([3, np.nan, 1, 2, 0, 5], "[0.0, 1.0, 2.0, 3.0, nan, 5.0]"), ([1, np.nan, 3, 2], "[1.0, nan, 2.0, 3.0]")):
    got = ops.sort(mindspore.Tensor(np.array(x, dtype="f4")))[0].asnumpy().tolist()
    print("sort", x, got)
    assert str(got) == seen
x = mindspore.Tensor(np.array([1, np.nan, 3, 2], dtype="f4"))
print("sign", ops.sign(x).asnumpy().tolist(), "max", ops.max(x)[0].asnumpy())
assert ops.sign(x).asnumpy().tolist() == [1, 0, 1, 1] and ops.max(x)[0].asnumpy() == 3
END
