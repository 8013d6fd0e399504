#!/usr/bin/env python3
"""Writes msprobe's record of modules as transformers names them, computed by Python's math: modules.py FOLDER [CLASS]

Of CLASS the other form is recorded: gelu by the error function or by tanh, a norm's factor weight or 1 + weight.
"""

import json
import math
import os
import random
import struct
import sys

N, ROWS = 8, 4


def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def by_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + math.exp(-x))


def mish(x):
    return x * math.tanh(math.log1p(math.exp(x)))


def norm(plus):
    def f(x, w):
        out = []
        for i in range(0, len(x), N):
            row = x[i:i + N]
            scale = 1 / math.sqrt(sum(v * v for v in row) / N + 1e-6)
            out += [v * scale * (plus + u) for v, u in zip(row, w)]
        return out
    return f


def each(f):
    return lambda x, w: [f(v) for v in x]


MODULES = {"GELUTanh": (each(by_tanh), each(gelu)), "GELUActivation": (each(gelu), each(by_tanh)), "GELU": (each(by_tanh), each(gelu)),
           "SiLUActivation": (each(silu), each(gelu)), "MishActivation": (each(mish), each(gelu)), "MixtralRMSNorm": (norm(0), norm(1)),
           "Gemma2RMSNorm": (norm(1), norm(0)), "LlamaRMSNorm": (norm(0), norm(1))}


def main(folder, other=None):
    place = os.path.join(folder, "step0", "rank0")
    os.makedirs(os.path.join(place, "dump_tensor_data"))
    data, rng = {}, random.Random(1)

    def tensor(name, shape, values):
        values = struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
        head += " " * (63 - (10 + len(head)) % 64) + "\n"
        with open(os.path.join(place, "dump_tensor_data", name + ".npy"), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values))
        mean = math.fsum(values) / len(values)
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": max(values), "Min": min(values), "Mean": mean,
                "Norm": math.sqrt(math.fsum(v * v for v in values)), "requires_grad": False, "data_name": name + ".npy"}, values

    for i, (name, forms) in enumerate(MODULES.items()):
        key = f"Module.layers.{i}.{name}.forward.0"
        entry, x = tensor(f"{key}.input.0", [ROWS, N], [rng.gauss(0, 2) for _ in range(ROWS * N)])
        call, w = {"input_args": [entry], "input_kwargs": {}}, None
        if name.endswith("Norm"):
            weight, w = tensor(f"{key}.parameters.weight", [N], [rng.gauss(0.5, 0.3) for _ in range(N)])
            call["parameters"] = {"weight": weight}
        call["output"] = [tensor(f"{key}.output.0", [ROWS, N], forms[name == other](x, w))[0]]
        data[key] = call
    with open(os.path.join(place, "dump.json"), "w") as f:
        json.dump({"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": os.path.join(place, "dump_tensor_data"),
                   "data": data}, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
