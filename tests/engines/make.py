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
        for io, some in ("in", given), ("out", made if isinstance(made, tuple) else (made,)):
            for p, t in enumerate(some):
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


def ort(path, x):
    import onnxruntime as rt
    o = rt.SessionOptions()
    o.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.log_severity_level = 4
    s = rt.InferenceSession(all_outputs(path).SerializeToString(), o, providers=["CPUExecutionProvider"])
    names = [v.name for v in s.get_outputs()]
    return dict(zip(names, s.run(names, {s.get_inputs()[0].name: x.numpy()})))


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


ENGINES = {"ort": ort, "openvino": openvino}


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
    p.add_argument("--engines", default="ort,openvino")
    p.add_argument("--nets", default=",".join(models.MODELS))
    p.add_argument("--form", default="npz")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    for net in a.nets.split(","):
        bench, x = models.make(net, a.seed)
        right = bench(x)
        for fault in ["none"] + models.FAULTS:
            m, _ = models.make(net, a.seed)
            place = None if fault == "none" else models.break_it(m, net, fault)
            if fault != "none" and place is None:
                continue
            off = float((m(x) - right).abs().max() / right.abs().max())
            path = f"{a.folder}/model.onnx"
            os.makedirs(a.folder, exist_ok=True)
            export(m, x, path)
            for e in a.engines.split(","):
                folder = f"{a.folder}/{e}/{net}-{fault}"
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
                record_calls(bench, x, f"{folder}/bench-calls")
                record_modules(bench, x, f"{folder}/bench-modules")
                save(ENGINES[e](path, x), folder, a.form)
                with open(f"{folder}/truth.json", "w") as f:
                    json.dump({"clean": fault == "none", "place": place, "off": off}, f)
            os.remove(path)
            print(net, fault, place, off, flush=True)


main()
