#!/usr/bin/env python3
"""Engine x network x fault: make.py FOLDER [--engines ort,...] [--nets ...] (torch, onnxscript, onnxruntime, openvino).

Writes FOLDER/ENGINE/NET-FAULT/{device*,bench-calls,bench-modules,truth.json}: the bench is torch, recorded by accrecord
and by hooks (acc-by-hand(7)); the device what the engine's users have, one array a tensor's name. score.py reads it."""
import argparse
import json
import os
import shutil
import warnings

import numpy as np
import torch

import accrecord
import models

warnings.filterwarnings("ignore")


def record_calls(m, x, folder):
    accrecord.start_record(output_dir=folder)
    with torch.no_grad():
        m(x)
    accrecord.record_switch(False)


def record_modules(m, x, folder):
    os.makedirs(folder)
    names, n = {f: k for k, f in m.named_modules()}, iter(range(10000))

    def hook(f, given, made):
        i = next(n)
        for io, some in ("in", given), ("out", made):
            for p, t in enumerate(t for t in torch.utils._pytree.tree_leaves(some) if isinstance(t, torch.Tensor)):
                np.save(f"{folder}/{i:05}-{names[f]}-{io}.{p}.npy", t.numpy())

    hooks = [f.register_forward_hook(hook) for f, k in names.items() if k and not isinstance(f, torch.nn.ModuleList)]
    with torch.no_grad():
        m(x)
    for h in hooks:
        h.remove()


def export(m, x, path):
    with torch.no_grad():
        torch.onnx.export(m, (x,), path, dynamo=True, verbose=False, external_data=False)


def all_outputs(path):
    import onnx
    g = onnx.load(path)
    given = onnx.shape_inference.infer_shapes(g)
    kinds = {v.name: v for v in given.graph.value_info}
    have = {o.name for o in g.graph.output}
    for node in g.graph.node:
        for o in node.output:
            if o and o not in have and o in kinds:
                g.graph.output.append(kinds[o])
    return g


def session(path, x):
    """All tensors of the graph, by their names, and the graph."""
    import onnxruntime as rt
    o = rt.SessionOptions()
    o.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.log_severity_level = 4
    g = all_outputs(path)
    s = rt.InferenceSession(g.SerializeToString(), o, providers=["CPUExecutionProvider"])
    names, feeds = [v.name for v in s.get_outputs()], {s.get_inputs()[0].name: x.numpy()}
    return dict(zip(names, s.run(names, feeds))), feeds, g.graph


def ort(path, x):
    return session(path, x)[0]


def nodes(_, path, x, folder):
    """Each node's inputs and outputs, as NNNNN-NODE-in.0.npy."""
    import onnx
    made, feeds, g = session(path, x)
    have = {**feeds, **{w.name: onnx.numpy_helper.to_array(w) for w in g.initializer}, **made}
    os.makedirs(folder)
    for i, n in enumerate(n for n in g.node if any(o in made for o in n.output)):
        for io, some in ("in", n.input), ("out", n.output):
            for k, t in enumerate(some):
                if t in have:
                    np.save(f"{folder}/{i:05}-{n.name or n.output[0]}-{io}.{k}.npy", have[t])


def edges(_, path, x, folder):
    """Each tensor once, and a manifest that says which went in."""
    import onnx
    made, feeds, g = session(path, x)
    have = {**feeds, **{w.name: onnx.numpy_helper.to_array(w) for w in g.initializer}}
    os.makedirs(folder)
    rows = []
    safe = lambda name: name.replace("/", "_").replace(":", "_")
    for k, v in have.items():
        np.save(f"{folder}/{safe(k)}.npy", v)
        rows.append({"file": safe(k) + ".npy", "out": k})
    for n in g.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute if a.type != onnx.AttributeProto.TENSOR}
        attrs = {k: v.decode() if isinstance(v, bytes) else list(v) if hasattr(v, "__len__") and not isinstance(v, str) else v for k, v in attrs.items()}
        for k, t in enumerate(n.output):
            if t in made:
                np.save(f"{folder}/{safe(t)}.npy", made[t])
                rows.append({"file": safe(t) + ".npy", "op": n.op_type, "name": n.name, "pos": k, "in": list(n.input), "out": t, "attrs": attrs})
    with open(f"{folder}/manifest.jsonl", "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)


def openvino(path, x):
    import openvino as ov
    core = ov.Core()
    m = core.read_model(path)
    skip = ("Constant", "Result", "Parameter", "ShapeOf")
    for op in m.get_ordered_ops():
        if op.get_type_name() not in skip:
            for k in range(op.get_output_size()):
                if op.output(k).get_element_type().is_real():
                    m.add_outputs(op.output(k))
    c = core.compile_model(m, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    r = c([x.numpy()])
    out = {}
    for port in c.outputs:
        out.setdefault(sorted(port.get_names())[0] if port.get_names() else port.get_node().input_value(0).get_node().get_friendly_name(), np.array(r[port]))
    return out


def by_ort(_, path, x, folder):
    from accengine import ort
    import onnx
    ort.record(path, {onnx.load(path).graph.input[0].name: x.numpy()}, folder)


def by_openvino(_, path, x, folder):
    from accengine import openvino
    openvino.record(path, [x.numpy()], folder)


def by_export(m, _, x, folder):
    from accengine import export
    export.record(torch.export.export(m, (x,)), (x,), folder)


def by_executorch(m, _, x, folder):
    import copy
    import executorch.exir as exir
    from accengine import executorch
    from executorch.devtools import generate_etrecord
    from executorch.runtime import Runtime, Verification
    edge = exir.to_edge(torch.export.export(m, (x,)))
    kept = copy.deepcopy(edge)
    program = edge.to_executorch()
    at = os.path.dirname(folder)
    generate_etrecord(at + "/etrecord", kept, program)
    method = Runtime.get().load_program(program.buffer, verification=Verification.Minimal, enable_etdump=True, debug_buffer_size=int(1e8))
    method.load_method("forward").execute([x])
    method.write_etdump_result_to_file(at + "/etdump", at + "/buffer")
    executorch.record(at + "/etdump", at + "/etrecord", folder, at + "/buffer")


def port(engine):
    """A port by hand is of the network, not of its graph; its end is checked by whoever reads off."""
    def run(m, x):
        return __import__("ports_" + engine).record(m, x)[0]
    return run


ENGINES = {"ort": ort, "openvino": openvino}
RECORDINGS = {"ort-nodes": nodes, "ort-edges": edges,
              "acc-ort": by_ort, "acc-openvino": by_openvino, "acc-export": by_export, "acc-executorch": by_executorch}
PORTS = {e: port(e) for e in ("flax", "keras")}


def save(arrays, folder, form):
    if form == "npz":
        np.savez(f"{folder}/device.npz", **arrays)
    elif form == "safetensors":
        from safetensors.numpy import save_file
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, f"{folder}/device.safetensors")
    else:
        os.makedirs(f"{folder}/device")
        for k, v in arrays.items():
            np.save(f"{folder}/device/{k.replace('/', '_')}.npy", v)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--engines", default=",".join([*ENGINES, *RECORDINGS, *PORTS]))
    p.add_argument("--nets", default=",".join(models.MODELS))
    p.add_argument("--form", default="npz")
    p.add_argument("--faults", default=",".join(["none"] + models.FAULTS))
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    for net in a.nets.split(","):
        bench, x = models.make(net, a.seed)
        right = bench(x)
        for fault in a.faults.split(","):
            m, _ = models.make(net, a.seed)
            place = None if fault == "none" else models.break_it(m, net, fault)
            if fault != "none" and place is None:
                continue
            off = float((m(x) - right).abs().max() / right.abs().max())
            path = f"{a.folder}/model.onnx"
            os.makedirs(a.folder, exist_ok=True)
            engines = a.engines.split(",")
            if any(e not in PORTS for e in engines):
                export(m, x, path)
            for e in engines:
                folder = f"{a.folder}/{e}/{net}-{fault}"
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
                record_calls(bench, x, f"{folder}/bench-calls")
                record_modules(bench, x, f"{folder}/bench-modules")
                if e in RECORDINGS:
                    RECORDINGS[e](m, path, x, f"{folder}/device")
                else:
                    save(ENGINES[e](path, x) if e in ENGINES else PORTS[e](m, x), folder, a.form)
                with open(f"{folder}/truth.json", "w") as f:
                    json.dump({"clean": fault == "none", "place": place, "off": off}, f)
            if os.path.exists(path):
                os.remove(path)
            print(net, fault, place, off, flush=True)


if __name__ == "__main__":
    main()
