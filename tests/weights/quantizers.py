#!/usr/bin/env python3
"""What real quantizers leave of weights: what of the difference is a multiple of them (m.reach.along), by format.

tests/weights/quantizers.py [LIBCTRANSFORMERS] [--seed N]

torch 2.15, gguf 0.19, torchao 0.18, bitsandbytes 0.50, compressed-tensors 0.20; the types of GGUF that end in K by ggml
in the library of ctransformers 0.2.27. Limits reach-along and reach-cut are judged on what this prints, and on weights times 1.25."""
import argparse
import os
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
N, M = 128, 512


def weights(r):
    def g():
        return r.standard_normal((N, M))
    out = {"normal": g(), "student3": r.standard_t(3, (N, M)), "student5": r.standard_t(5, (N, M)), "laplace": r.laplace(size=(N, M)),
           "positive": np.abs(g()), "columns": g() * np.exp(r.standard_normal(M)), "rows": g() * np.exp(r.standard_normal((N, 1))),
           "uniform": r.uniform(-1, 1, (N, M)), "sparse": g() * (r.random((N, M)) < 0.2)}
    return {k: (0.02 * v).astype(np.float32) for k, v in out.items()}


def along(q, b):
    e, b = q.astype(np.float64) - b, b.astype(np.float64)
    cross = (e * b).sum()
    beyond = abs(cross) - 6 * np.sqrt((e * e * b * b).sum()) - 2.0 ** -8 * (b * b).sum()
    return np.sign(cross) * max(beyond, 0) / (e * e).sum()


def by_torchao(config):
    from torchao.quantization import quantize_

    def f(w):
        m = torch.nn.Linear(M, N, bias=False)
        m.weight.data = torch.from_numpy(w.copy())
        m = torch.nn.Sequential(m.bfloat16())
        b = m[0].weight.data.float().numpy()
        quantize_(m, config())
        return m[0].weight.dequantize().detach().float().numpy(), b
    return f


def by_bitsandbytes(kind):
    import bitsandbytes.functional as bnb

    def f(w):
        t = torch.from_numpy(w)
        if kind == "int8":
            q, s, _ = bnb.int8_vectorwise_quant(t.half())
            return (q.float() * s[:, None] / 127).numpy(), w
        return bnb.dequantize_4bit(*bnb.quantize_4bit(t, blocksize=64, quant_type=kind)).numpy(), w
    return f


def compressed(form, **more):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    args = QuantizationArgs(**more)
    way, scheme = BaseCompressor.get_value_from_registry(form), QuantizationScheme(targets=["Linear"], weights=args)

    def f(w):
        v = torch.from_numpy(w)
        x, sd, kw = v.view(N, -1, more.get("group_size", M)), {"weight": v}, {}
        if form.startswith("nvfp4"):
            sd["weight_global_scale"] = kw["global_scale"] = (448 * 6 / v.abs().max()).float().reshape(1)
        sd["weight_scale"], sd["weight_zero_point"] = calculate_qparams(x.amin(2), x.amax(2), args, **kw)
        return way.decompress(dict(way.compress(sd, scheme)), scheme)["weight"].float().numpy(), w
    return f


def by_gguf(kind, lib):
    import gguf
    t = getattr(gguf.GGMLQuantizationType, kind)

    def f(w):
        return gguf.dequantize(lib(w, kind) if lib else gguf.quantize(w, t), t), w
    return f


def ggml(name):
    with open(os.path.join(HERE, "..", "data", "make_quantized.py")) as f:
        head = f.read().split("def llama(")[0]
    scope = {"__file__": os.path.join(HERE, "..", "data", "make_quantized.py")}
    exec(compile(head, "make_quantized.py", "exec"), scope)
    lib = scope["open_ggml"](os.path.abspath(name))
    return lambda w, kind: scope["quantize"](lib, w, kind)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lib", nargs="?")
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    from torchao.prototype.mx_formats import MXDynamicActivationMXWeightConfig, NVFP4WeightOnlyConfig
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, IntxWeightOnlyConfig, PerGroup
    f8 = torch.float8_e4m3fn
    four = {"num_bits": 4, "type": "float", "symmetric": True}
    ways = {"torchao int8": by_torchao(Int8WeightOnlyConfig), "torchao float8": by_torchao(Float8WeightOnlyConfig),
            "torchao int4": by_torchao(lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))),
            "torchao NVFP4": by_torchao(NVFP4WeightOnlyConfig), "torchao MXFP8": by_torchao(MXDynamicActivationMXWeightConfig),
            **{"bitsandbytes " + k: by_bitsandbytes(k) for k in ("nf4", "fp4", "int8")},
            "compressed-tensors int4": compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=128,
                                                  symmetric=True),
            "compressed-tensors NVFP4": compressed("nvfp4-pack-quantized", strategy="tensor_group", group_size=16, scale_dtype=f8,
                                                   zp_dtype=f8, **four),
            "compressed-tensors MXFP4": compressed("mxfp4-pack-quantized", strategy="group", group_size=32,
                                                   scale_dtype=torch.uint8, zp_dtype=torch.uint8, **four),
            **{"GGUF " + k: by_gguf(k, None) for k in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4")}}
    if o.lib:
        ways.update({"GGUF " + k: by_gguf(k, ggml(o.lib)) for k in ("Q4_K", "Q5_K", "Q6_K")})
    r = np.random.default_rng(o.seed)
    of = weights(r)
    print("| format | " + " | ".join(of) + " | times 1.25, least |\n|" + "---|" * (len(of) + 2))
    for name, f in ways.items():
        got = [f(w) for w in of.values()]
        print(f"| {name} | " + " | ".join(f"{along(q, b):.2f}" for q, b in got) +
              f" | {min(along(1.25 * q, b) for q, b in got):.1f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
