#!/usr/bin/env python3
"""Makes tests/data/ort_formulas.npz: what ONNX Runtime 1.32 gives of functions where their results are small, as recorded.

pip install onnxruntime==1.32.0 onnx==1.23.2 numpy. Beside each what the function is, in double, rounded once."""
import math
import os

import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h

EXACT = {"Sigmoid": lambda v: 1 / (1 + np.exp(-v)), "Swish": lambda v: v / (1 + np.exp(-v)), "Elu": np.expm1,
         "Gelu": lambda v: v / 2 * np.vectorize(math.erfc)(-v / math.sqrt(2))}
out = {}
for op, f in EXACT.items():
    r = np.random.default_rng(5)
    x = (-1e-3 * r.random((4, 64)) if op == "Elu" else r.normal(-6, 2, (4, 64))).astype("f4")
    graph = h.make_graph([h.make_node(op, ["x"], ["y"])], "g", [h.make_tensor_value_info("x", T.FLOAT, list(x.shape))],
                         [h.make_tensor_value_info("y", T.FLOAT, list(x.shape))])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 24)], ir_version=10).SerializeToString()
    out[op + "_x"] = x
    out[op + "_y"] = onnxruntime.InferenceSession(m).run(None, {"x": x})[0]
    out[op + "_exact"] = f(x.astype("f8")).astype("f4")
np.savez(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_formulas.npz"), **out)
