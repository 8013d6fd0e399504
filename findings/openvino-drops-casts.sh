#!/bin/sh
# OpenVINO 2026.4.1 on the CPU: a float32 that is cast to float16 or bfloat16 and back is not rounded: the pair of casts is
# taken away. A model that imitates 16 bits by casts, as quantization tests and ports do, is computed in float32; what overflows
# in float16 (1e6) stays finite. Casts to float8 and to integers are kept, and those to bfloat16 where the processor has
# instructions for it, so that the same model gives other numbers on another machine.
# Seen on 2026-11-29, and on a processor with avx512_bf16 on 2026-11-30:
#   FLOAT16: onnxruntime inf, OpenVINO 1000000.0; BFLOAT16 of 1.0009765625: onnxruntime 1.0, OpenVINO 1.0009765625, and 1.0 there
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
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(*i) for i in inputs], [h.make_tensor_value_info(*output)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10).SerializeToString()
    core = openvino.Core()
    # Where there are instructions for bfloat16 all would be computed in it (openvino-runs-bf16).
    compiled = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return (onnxruntime.InferenceSession(model).run(None, feed)[0], list(compiled(feed).values())[0])


native = "avx512_bf16" in open("/proc/cpuinfo").read()
for to, value, right, seen in (("FLOAT16", 1e6, np.inf, 1e6), ("FLOAT16", 1 + 2.0 ** -12, 1, 1 + 2.0 ** -12), ("BFLOAT16", 1 + 2.0 ** -10, 1, 1 if native else 1 + 2.0 ** -10),
                               ("FLOAT8E4M3FN", 1 + 2.0 ** -6, 1, 1)):
    a, b = both([h.make_node("Cast", ["x"], ["i"], to=getattr(T, to)), h.make_node("Cast", ["i"], ["j"], to=T.FLOAT), h.make_node("Mul", ["j", "one"], ["y"])],
                [("x", T.FLOAT, [1]), ("one", T.FLOAT, [1])], ("y", T.FLOAT, [1]), {"x": np.array([value], dtype="f4"), "one": np.ones(1, dtype="f4")})
    print(to, value, "onnxruntime", a[0], "OpenVINO", b[0])
    assert a[0] == right and b[0] == seen
END
