#!/usr/bin/env python3
"""Makes tests/data/weights/onnxruntime.tar.gz: matrices in 8 bits, as onnxruntime's own quantizers leave them.

python3 tests/data/make_onnxruntime.py     (onnx 1.23, onnxruntime 1.32, numpy)

model.onnx multiplies by two matrices and one more that is square. int8, uint8 and channel (a scale for each column) are quantize_dynamic's; means-X
is model.onnx with what numpy makes of X's initializers, (q - zero point) * scale."""
import os
import shutil
import tarfile
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "onnxruntime.tar.gz")
SHAPES = {"up.weight": (16, 24), "down.weight": (24, 16), "onnx::MatMul_7": (16, 16)}


def model(weights):
    nodes, last = [], "x"
    for i, k in enumerate(SHAPES):
        nodes.append(onnx.helper.make_node("MatMul", [last, k], [f"y{i}"], name=f"n{i}"))
        last = f"y{i}"
    value = onnx.helper.make_tensor_value_info
    g = onnx.helper.make_graph(nodes, "g", [value("x", 1, [1, 16])], [value(last, 1, [1, 16])],
                               [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()])
    return onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def means(name):
    own = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(name).graph.initializer}
    return {k: ((own[k + "_quantized"].astype("f4") - own[k + "_zero_point"].astype("f4")) * own[k + "_scale"]).astype("f4")
            for k in SHAPES}


def main():
    r = np.random.default_rng(7)
    w = {k: (r.standard_normal(s) * 0.05).astype("f4") for k, s in SHAPES.items()}
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        onnx.save(model(w), "model.onnx")
        for name, more in (("int8", {"weight_type": QuantType.QInt8}), ("uint8", {"weight_type": QuantType.QUInt8}),
                           ("channel", {"weight_type": QuantType.QInt8, "per_channel": True})):
            quantize_dynamic("model.onnx", name + ".onnx", **more)
            onnx.save(model(means(name + ".onnx")), f"means-{name}.onnx")
        other = {**w, "up.weight": w["up.weight"] * np.where(np.arange(24) == 3, 1.5, 1).astype("f4")}
        onnx.save(model(other), "other.onnx")
        with tarfile.open(OUT, "w:gz", compresslevel=9) as t:
            for n in sorted(os.listdir(".")):
                t.add(n, filter=lambda i: (setattr(i, "mtime", 0), setattr(i, "uid", 0), setattr(i, "gid", 0), i)[-1])


if __name__ == "__main__":
    main()
