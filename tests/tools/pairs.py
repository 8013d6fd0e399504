#!/usr/bin/env python3
"""Recordings that show rows of share/behaviours, right ones and with a fault, scored by accdiff.

    tests/tools/pairs.py FOLDER SEED ...     # the engines that this interpreter has: see onnx_cpu.py, llama_cpu.py, jax_cpu.py
    tests/tools/pairs.py --score FOLDER      # programs from PATH

A network of some operators, each run by the engine by itself on what it gave before, beside the same in numpy (double, rounded
once); its shapes, weights and its other operators are drawn by the seed. In the right ones the tool does what its row says
and no more; in the wrong ones an element that has nothing to do with that is off by half, behind it, or a matrix product is.
Both ways round: a pair is accused where either is exit status 1.
"""
import collections
import glob
import math
import os
import subprocess
import sys

import numpy as np

np.seterr(all="ignore")
erf = np.vectorize(math.erf)
EXACT = {
    "relu": lambda v: np.where(np.isnan(v), v, np.maximum(v, 0)), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "silu": lambda v: v / (1 + np.exp(-v)),
    "gelu": lambda v: v / 2 * np.vectorize(math.erfc)(-v / math.sqrt(2)), "elu": lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0))),
    "exp": np.exp, "hardsigmoid": lambda v: np.clip(v / 6 + 0.5, 0, 1), "celu": lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0))),
    "softmax": lambda v: np.exp(v - v.max(-1, keepdims=True)) / np.exp(v - v.max(-1, keepdims=True)).sum(-1, keepdims=True),
    "amax": lambda v: v.max(-1), "amin": lambda v: v.min(-1), "clamp": lambda v: np.clip(v, -1, 1.5), "sign": np.sign,
    "leaky_relu": lambda v: np.where(v > 0, v, v * np.float32(0.1)), "tanh": np.tanh, "abs": np.abs,
    "max_pool2d": lambda v: v.reshape(v.shape[0] // 2, 2, v.shape[1] // 2, 2).max((1, 3)),
    "mul": lambda v: v * np.float32(1e-20)}
NODE = {"relu": "Relu", "sigmoid": "Sigmoid", "silu": "Swish", "gelu": "Gelu", "elu": "Elu", "exp": "Exp", "hardsigmoid": "HardSigmoid", "celu": "Celu",
        "softmax": "Softmax", "amax": "ReduceMax", "amin": "ReduceMin", "clamp": "Clip", "max_pool2d": "MaxPool", "tanh": "Tanh", "abs": "Abs"}
# What shows a row: an operator, whether it is given NaN, and where its input lies.
SHOWN = {
    "onnxruntime": [(op, True, 0) for op in ("amax", "amin", "max_pool2d")] +
                   [(op, False, at) for op in ("sigmoid", "silu", "gelu", "elu") for at in (-7, -2)] + [("sigmoid", True, -5)],
    "openvino": [(op, True, 0) for op in ("relu", "clamp", "softmax", "exp", "hardsigmoid", "celu", "amax", "amin", "max_pool2d")],
    "llama.cpp": [(op, True, 0) for op in ("relu", "leaky_relu", "hardsigmoid", "sign", "clamp")],
    "jax": [("mul", False, 0)],  # what is below the normal numbers is 0
}


def model(op, shape):
    from onnx import TensorProto as T
    from onnx import helper as h
    more = {"ReduceMax": dict(keepdims=0), "ReduceMin": dict(keepdims=0), "MaxPool": dict(kernel_shape=[2, 2], strides=[2, 2]),
            "HardSigmoid": dict(alpha=1 / 6, beta=0.5)}.get(NODE[op], {})
    init = {"Clip": [h.make_tensor("lo", T.FLOAT, [], [-1.0]), h.make_tensor("hi", T.FLOAT, [], [1.5])]}.get(
        NODE[op], [h.make_tensor("axes", T.INT64, [1], [len(shape) - 1])] if NODE[op].startswith("Reduce") else [])
    node = h.make_node(NODE[op], ["x"] + [i.name for i in init], ["y"], **more)
    g = h.make_graph([node], "g", [h.make_tensor_value_info("x", T.FLOAT, shape)], [h.make_tensor_value_info("y", T.FLOAT, None)], init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 24 if NODE[op] == "Swish" else 20)], ir_version=10).SerializeToString()


def engines():
    out = {}
    try:
        import onnxruntime as ort
        out["onnxruntime"] = lambda op, x: ort.InferenceSession(model(op, x.shape), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        import openvino as ov
        core = ov.Core()
        out["openvino"] = lambda op, x: list(core.compile_model(core.read_model(model(op, x.shape), b""), "CPU",
                                                                {"INFERENCE_PRECISION_HINT": "f32"})([x]).values())[0]
    except ImportError:
        pass
    try:
        from llama_cpu import run
        name = {"sign": ("sgn",), "clamp": ("clamp", -1.0, 1.5), "leaky_relu": ("leaky_relu", 0.1, 0)}
        out["llama.cpp"] = lambda op, x: run(name.get(op, (op,))[0], x, *name.get(op, (op,))[1:]).reshape(x.shape)
    except ImportError:
        pass
    try:
        import jax
        out["jax"] = lambda op, x: np.asarray(jax.jit(lambda v: v * np.float32(1e-20))(x))
    except ImportError:
        pass
    return out


def case(folder, tool, run, op, nan, at, seed):
    r = np.random.default_rng([seed, len(op), int(nan), abs(at), ord(op[0])])
    rows, columns = (int(2 * r.integers(4, 20)) for _ in range(2))
    x = (r.normal(at / 2, 1, (rows, columns)) * (10 ** r.uniform(-20, 0, (rows, columns)) if op == "mul" else 1)).astype("f4")
    if nan:
        x.flat[r.choice(x.size, 2, replace=False)] = np.nan
    sides = {"d": {}, "b": {}}

    def call(n, name, ins, outs):
        for side, i, o in zip(("d", "b"), ins, outs):
            for k, t in enumerate(i):
                sides[side][f"{name}.{n}.forward.input.{k}"] = t
            sides[side][f"{name}.{n}.forward.output.0"] = o
        return outs
    double = np.float32(2)
    h = call(0, "Torch.mul", ([x], [x]), (x * double, x * double))
    y = run(op, h[0].reshape((1, 1) + h[0].shape) if op == "max_pool2d" else h[0])
    want = EXACT[op](h[1].astype("f8")).astype("f4")
    factor = [np.full((1,), 1e-20, "f4")] if op == "mul" else []
    y = call(2, "Torch." + op if op in ("amax", "amin", "exp", "abs", "clamp", "sign", "mul") else "Functional." + op, ([h[0]] + factor, [h[1]] + factor), (y.reshape(want.shape), want))
    z = [np.nan_to_num(v) for v in y] if nan else y
    z = call(0, "Torch.nan_to_num", ([y[0]], [y[1]]), z) if nan else z
    z = [v[:, None] if v.ndim == 1 else v for v in z]
    w = r.standard_normal((z[0].shape[1], 8)).astype("f4")
    out = [(v.astype("f8") @ w.astype("f8")).astype("f4") for v in z]
    out = call(0, "Torch.matmul", ([z[0], w], [z[1], w]), out)
    call(1, "Torch.mul", ([out[0]], [out[1]]), (out[0] * double, out[1] * double))
    name = os.path.join(folder, f"{tool}-{seed}-{op}{'-nan' if nan else ''}{at or ''}")
    os.makedirs(name)
    last = "Torch.matmul.0.forward.output.0"
    for side, more in ("d", {"framework": np.array(tool)}), ("b", {}):
        np.savez(os.path.join(name, side + ".npz"), **sides[side], **more)
    wrong = dict(sides["d"])
    bad = wrong[last].copy()
    i = int(r.integers(bad.size))
    bad.flat[i] = bad.flat[i] * 1.5
    wrong[last] = wrong["Torch.mul.1.forward.input.0"] = bad
    wrong["Torch.mul.1.forward.output.0"] = bad * double
    np.savez(os.path.join(name, "w.npz"), **wrong, framework=np.array(tool))


def score(folder):
    count = collections.Counter()
    for d in sorted(glob.glob(os.path.join(folder, "*"))):
        def diff(a, b):
            p = subprocess.run(["accdiff", "-f", "brief", f"{d}/{a}.npz", f"{d}/{b}.npz"], capture_output=True, text=True)
            return p.returncode, p.stdout
        got = [diff("d", "b"), diff("b", "d")]
        count["pairs"] += 1
        accused = [o for rc, o in got if rc == 1]
        count["accused"] += bool(accused)
        count["refused"] += any(rc == 2 for rc, _ in got)
        rc, text = diff("w", "b")
        count["wrong"] += 1
        count["found"] += rc == 1
        count["named"] += rc == 1 and "matmul.0" in text.split("evidence")[0]
        for o in accused or ([] if rc == 1 and "matmul.0" in text.split("evidence")[0] else [text]):
            print(os.path.basename(d), "ACCUSED" if accused else "NOT NAMED %d" % rc, "|".join(o.splitlines()[:5])[:300])
    print(dict(count))


if __name__ == "__main__":
    if sys.argv[1] == "--score":
        score(sys.argv[2])
        sys.exit()
    os.makedirs(sys.argv[1], exist_ok=True)
    for tool, run in engines().items():
        for seed in map(int, sys.argv[2:]):
            for op, nan, at in SHOWN[tool]:
                case(sys.argv[1], tool, run, op, nan, at, seed)
