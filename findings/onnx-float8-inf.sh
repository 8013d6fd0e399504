#!/bin/sh
# onnx 1.23.2: of an infinity in float8_e5m2, which has one, helper.make_tensor makes the largest number (57344), as of 1e9;
# numpy_helper.from_array of the same numbers in ml_dtypes' float8_e5m2 keeps it. A constant that overflowed is finite or
# infinite in the model by which function wrote it.
# Seen on 2026-11-28 with numpy 2.4.6, ml_dtypes 0.5.4 (inf, -inf, 1e9):
#   make_tensor [57344.0, -57344.0, 57344.0]
#   from_array [inf, -inf, inf]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.5.4
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper
x = [float("inf"), float("-inf"), 1e9]
made = numpy_helper.to_array(helper.make_tensor("x", TensorProto.FLOAT8E5M2, [3], x)).astype("f4").tolist()
kept = numpy_helper.to_array(numpy_helper.from_array(np.array(x, dtype="f4").astype(ml_dtypes.float8_e5m2))).astype("f4").tolist()
print("make_tensor", made)
print("from_array", kept)
assert made == [57344.0, -57344.0, 57344.0] and kept == [float("inf"), float("-inf"), float("inf")]
END
