#!/bin/sh
# ml_dtypes 0.6.0 and onnxruntime 1.32.0: from float64 to bfloat16, and to float8, they go by way of float32 and so round twice
# (onnxruntime also to float16). A number just above the middle of two becomes the lower one. Expected values that are computed
# in float64 and then stored are off by one unit of the last place by who stored them; numpy's own float64 to float16 rounds
# once.
# Seen on 2026-11-29:
#   ml_dtypes: bfloat16 1.0 of 1.0078125, float8_e4m3fn 1.0 of 1.125
#   onnxruntime: bfloat16 1.0 of 1.0078125, float16 1.0 of 1.0009765625
#   numpy: float16 1.0009765625
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0 onnx==1.23.2 onnxruntime==1.32.0
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
# The middle of 1 and its successor, and a little, which float32 has no place for.
middle = {"bfloat16": 2.0 ** -8, "float16": 2.0 ** -11, "float8_e4m3fn": 2.0 ** -4}
for name in ("bfloat16", "float8_e4m3fn"):
    got = float(np.array([1 + middle[name] + 2.0 ** -40]).astype(getattr(ml_dtypes, name))[0])
    print("ml_dtypes:", name, got, "of", 1 + 2 * middle[name])
    assert got == 1
    # What float32 holds is rounded right.
    assert np.array([1 + middle[name] + 2.0 ** -20]).astype(getattr(ml_dtypes, name)) == 1 + 2 * middle[name]
for name in ("bfloat16", "float16"):
    to = getattr(TensorProto, name.upper())
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["i"], to=to), helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    got = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": np.array([1 + middle[name] + 2.0 ** -40])})[0][0]
    print("onnxruntime:", name, got, "of", 1 + 2 * middle[name])
    assert got == 1
got = float(np.array([1 + 2.0 ** -11 + 2.0 ** -40]).astype("f2")[0])
print("numpy: float16", got)
assert got == 1 + 2.0 ** -10
END
