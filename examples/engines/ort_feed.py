#!/usr/bin/env python3
"""A command for accreplace: ONNX Runtime goes on from what lies in ACC_FEED.

    accreplace --run='python3 ort_feed.py model.onnx feeds.npz end.npy' device.npz bench

Each tensor that is fed becomes an input of the graph, and what made it is cut away. feeds.npz has the inputs by name,
end.npy the bench's end: the model's first output."""
import os
import sys
from urllib.parse import unquote

import numpy as np
import onnx
import onnxruntime as rt

model, feeds, end = sys.argv[1:]
g = onnx.shape_inference.infer_shapes(onnx.load(model))
fed = {unquote(f[:-4]): np.load(os.path.join(os.environ["ACC_FEED"], f))
       for f in os.listdir(os.environ["ACC_FEED"]) if f.endswith(".npy")}
out = g.graph.output[0].name
if out in fed:
    made = fed[out]
else:
    made_by = {o: n for n in g.graph.node for o in n.output}
    kinds = {v.name: v for v in g.graph.value_info}
    inputs, dtype = dict(np.load(feeds)), onnx.helper.tensor_dtype_to_np_dtype
    for name in sorted(fed.keys() & made_by.keys()):
        out_of = made_by[name].output
        out_of[list(out_of).index(name)] = name + " computed"     # and given to nobody
        g.graph.input.append(kinds[name])
        inputs[name] = fed[name].astype(dtype(kinds[name].type.tensor_type.elem_type))
    for node in [n for n in g.graph.node if all(o.endswith(" computed") for o in n.output)]:
        g.graph.node.remove(node)
    o = rt.SessionOptions()
    o.graph_optimization_level, o.log_severity_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    s = rt.InferenceSession(g.SerializeToString(), o, providers=["CPUExecutionProvider"])
    made = s.run([out], {i.name: inputs[i.name] for i in s.get_inputs()})[0]
sys.exit(int(not np.allclose(made, np.load(end), rtol=1e-4, atol=1e-5)))
