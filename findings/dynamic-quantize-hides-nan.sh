#!/bin/sh
# onnxruntime 1.32.0 and OpenVINO 2026.4.1 on the CPU: DynamicQuantizeLinear leaves a NaN out of the range it takes, and makes
# it 0. A model that is quantized at run time (int8 products) turns broken activations into ordinary ones: the NaN is gone
# behind the first such layer. An infinity makes the scale infinite and all elements 0.
# Seen on 2026-11-29:
#   [1, nan, 2, 3]: [85, 0, 170, 255], scale 0.0118, by both
#   [inf, 1, 2, 3]: [0, 0, 0, 0], scale inf, by both
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import io

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto as T
from onnx import helper as h


def both(nodes, inputs, output, feed):
    """What onnxruntime and OpenVINO make of a graph."""
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(*i) for i in inputs], [h.make_tensor_value_info(*o) for o in output])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10).SerializeToString()
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(io.BytesIO(model)), "CPU")
    return (onnxruntime.InferenceSession(model).run(None, feed), list(compiled(feed).values()))


for x, q, finite in (([1, np.nan, 2, 3], [85, 0, 170, 255], True), ([np.inf, 1, 2, 3], [0, 0, 0, 0], False)):
    a, b = both([h.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])], [("x", T.FLOAT, [4])],
                [("q", T.UINT8, [4]), ("s", T.FLOAT, []), ("z", T.UINT8, [])], {"x": np.array(x, dtype="f4")})
    for who, got in (("onnxruntime", a), ("OpenVINO", b)):
        print(who, x, got[0].tolist(), "scale", float(got[1]))
        assert got[0].tolist() == q and np.isfinite(got[1]) == finite
END
