#!/bin/sh
# OpenVINO 2026.4.1 on the CPU: an output in bfloat16 comes to numpy as an array of float16 with the bits of bfloat16, since numpy
# has no such type and the binding takes the other one of 16 bits: 1.0 is 1.875, 3.0 is 2.125. No value is absurd, and a dump that
# is saved from there is of other numbers.
# Seen on 2026-11-29:
#   float16 [1.875, 2.125, -0.875], as bfloat16 [1.0, 3.0, -0.001953125]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q openvino==2026.4.1 numpy==2.4.6 ml_dtypes==0.6.0
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
import openvino as ov
from openvino import opset13 as op
x = op.parameter([3], np.float32)
model = ov.Model([op.convert(x, "bf16")], [x])
given = np.array([1.0, 3.0, -2.0 ** -9], "f4")
y = list(ov.Core().compile_model(model, "CPU")(given).values())[0]
print(y.dtype, y.tolist(), "as bfloat16", y.view(ml_dtypes.bfloat16).astype("f4").tolist())
assert y.dtype == np.float16 and y[0] == 1.875
assert (y.view(ml_dtypes.bfloat16).astype("f4") == given).all()
END
