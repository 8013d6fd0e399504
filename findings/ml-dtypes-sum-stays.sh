#!/bin/sh
# Behaviours ml-dtypes-sum-stays, numpy-norm-f16.
# numpy 2.4.6 with ml_dtypes 0.6.0: sum and mean of bfloat16 add in bfloat16, one by one: a thousand ones are 256, and their
# mean is 0.256; numpy's own float16 has the right sum and mean. numpy.linalg.norm of float16 takes its squares in float16: of
# 4,096 times 300, whose norm is 19,200, it gives inf. Whoever takes statistics of dumped arrays with numpy should convert
# them to float64 first.
# Seen on 2026-11-29:
#   bfloat16: sum 256, mean 0.255859; float16: sum 1000, mean 1, norm inf
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
one, half = np.ones(1000, ml_dtypes.bfloat16), np.ones(1000, np.float16)
norm = np.linalg.norm(np.full(4096, 300, np.float16))
print("bfloat16: sum %s, mean %s; float16: sum %s, mean %s, norm %s" % (one.sum(), one.mean(), half.sum(), half.mean(), norm))
assert float(one.sum()) == 256 and abs(float(one.mean()) - 0.256) < 0.001 and half.sum() == 1000 and half.mean() == 1
assert np.isinf(norm) and np.linalg.norm(np.full(4096, 300.0)) == 19200
END
