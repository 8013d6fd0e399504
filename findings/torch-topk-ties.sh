#!/bin/sh
# torch 2.15.0 on the CPU: topk of equal scores gives neither the first nor the last of them, but those that its selection
# leaves: 6 and 5 of 8, 42, 43, 44 and 41 of 64. onnxruntime 1.32.0 gives the first ones. Scores of a router in bfloat16 are
# often equal: then the same network sends tokens to other experts, and both are right.
# Seen on 2026-11-29:
#   2 of 8: torch [6, 5], onnxruntime [0, 1]
#   4 of 64: torch [42, 43, 44, 41], onnxruntime [0, 1, 2, 3]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import numpy as np
import onnxruntime
import torch
from onnx import TensorProto as T
from onnx import helper as h
for n, k, seen in ((8, 2, [6, 5]), (64, 4, [42, 43, 44, 41])):
    got = torch.topk(torch.zeros(1, n), k).indices[0].tolist()
    graph = h.make_graph([h.make_node("TopK", ["x", "k"], ["v", "i"])], "g", [h.make_tensor_value_info("x", T.FLOAT, [n]), h.make_tensor_value_info("k", T.INT64, [1])],
                         [h.make_tensor_value_info("i", T.INT64, [k])])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10).SerializeToString()
    other = onnxruntime.InferenceSession(model).run(None, {"x": np.zeros(n, dtype="f4"), "k": np.array([k])})[0].tolist()
    print(k, "of", n, "torch", got, "onnxruntime", other)
    assert got == seen and other == list(range(k))
END
