"""ONNX Runtime: record(model.onnx, feeds, folder) marks all tensors of the graph as outputs, and runs it unfused.

What torch's exporter knows of each node comes along: the module in which it is, and the line of code. The tensors of
subgraphs (If, Loop, Scan) are not marked. optimize=True leaves the graph to ONNX Runtime: what is watched is still not
fused (ort-watching-changes)."""
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

from . import Recording, frames


def mark(model):
    """Every tensor an output; those that are already stay first."""
    have = {o.name for o in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=o) for o in node.output if o and o not in have)
    return model


def scope(node):
    """As "layers.1.attn"."""
    import ast
    props = {p.key: p.value for p in node.metadata_props}
    names = [n for n in ast.literal_eval(props.get("pkg.torch.onnx.name_scopes", "[]")) if n]
    return names[-2] if len(names) > 1 else None, frames(props.get("pkg.torch.onnx.stack_trace"))


def record(path, feeds, folder, optimize=False, providers=("CPUExecutionProvider",)):
    model = onnx.load(path)
    nodes = list(model.graph.node)
    held = {t.name: t for t in model.graph.initializer}
    o = onnxruntime.SessionOptions()
    if not optimize:
        o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = onnxruntime.InferenceSession(mark(model).SerializeToString(), o, providers=list(providers))
    names = [v.name for v in s.get_outputs()]
    made = dict(zip(names, s.run(names, feeds)))
    with Recording(folder, "onnxruntime " + onnxruntime.__version__) as r:
        for n in nodes:
            module, at = scope(n)
            given = [(i, feeds[i] if i in feeds else onnx.numpy_helper.to_array(held[i]) if i in held and i not in r.known else None)
                     for i in n.input]
            attrs = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute
                     if a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR)}
            out = {x: made.get(x) for x in n.output if x}
            if n.op_type != "Constant" and any(isinstance(v, np.ndarray) for v in out.values()):
                r.node(n.op_type, out, given, attrs, module, at)
            elif n.op_type == "Constant":
                held.update({x: onnx.numpy_helper.from_array(v, x) for x, v in out.items() if isinstance(v, np.ndarray)})
    return made


if __name__ == "__main__":   # python3 -m accengine.ort model.onnx feeds.npz folder
    record(sys.argv[1], dict(np.load(sys.argv[2])), sys.argv[3])
