#!/usr/bin/env python3
"""Makes tests/data/weights/packed.tar.gz: one model's weights in few bits, each by the package that users have it from.

python3 tests/data/make_packed.py GPTQMODEL AUTOAWQ

torch 2.15, bitsandbytes 0.50.2, compressed-tensors 0.20.1; GPTQMODEL and AUTOAWQ are the folders of the sources of
gptqmodel 7.7.0 and autoawq 0.2.9, whose modules for packing alone are loaded. What each stands for by its package is
compared with what packed.py makes of the file."""
import os
import sys
import tarfile
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [sys.argv[1], HERE]
awq = types.ModuleType("awq")
awq.__path__ = [os.path.join(sys.argv[2], "awq")]
sys.modules["awq"] = awq
for n in ("modules", "modules.linear", "utils"):
    m = types.ModuleType("awq." + n)
    m.__path__ = [os.path.join(awq.__path__[0], n.replace(".", "/"))]
    sys.modules["awq." + n] = m

import bitsandbytes.functional as bnb  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from awq.modules.linear.gemm import WQLinear_GEMM  # noqa: E402
from awq.utils.packing_utils import dequantize_gemm  # noqa: E402
from compressed_tensors.compressors import BaseCompressor  # noqa: E402
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme  # noqa: E402
from compressed_tensors.quantization.utils import calculate_qparams  # noqa: E402
from gptqmodel.nn_modules.qlinear.torch import TorchLinear  # noqa: E402
from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import packed  # noqa: E402

OUT = os.path.join(HERE, "weights", "packed.tar.gz")
O, I, G = 32, 64, 32
torch.manual_seed(49)
NORM = {"model.norm.weight": 1 + 0.1 * torch.randn(I)}
W = {f"model.layers.{i}.mlp.up_proj.weight": (torch.randn(O, I) * 0.05).bfloat16() for i in (0, 1)}


def put(name, tensors, means, rtol=1e-5, **how):
    save_file({k: v.contiguous() for k, v in {**NORM, **tensors}.items()}, name)
    got = packed.decode(packed.load(name), **how)
    for k, v in means.items():
        np.testing.assert_allclose(got[k], v.double().numpy(), rtol=rtol, atol=1e-6)


def params(v, bits, sym):
    x, most = v.float().view(O, I // G, G), 2 ** bits - 1
    if sym:
        s = 2 * x.abs().amax(2) / most
        return s.half().float(), torch.full_like(s, (most + 1) // 2)
    low, high = x.amin(2).clamp(max=0), x.amax(2).clamp(min=0)
    s = ((high - low) / most).half().float()
    return s, torch.round(-low / s)


def gptq(name, bits, sym, order=False, first=True):
    out, means = {}, {}
    for k, v in W.items():
        idx = torch.arange(I) // G
        x = v.float()
        if order:
            idx = idx[torch.randperm(I)]
            s, z = params(x[:, torch.argsort(idx, stable=True)], bits, sym)
        else:
            s, z = params(x, bits, sym)
        lin = torch.nn.Linear(I, O, bias=False)
        lin.weight.data = x.clone()
        m = TorchLinear(bits=bits, group_size=G, desc_act=order, sym=sym, in_features=I, out_features=O, bias=False,
                        pack_dtype=torch.int32, adapter=None, register_buffers=True)
        m.pack_original(lin, s, z, idx.to(torch.int32))
        means[k] = s[:, idx] * (torch.clamp(torch.round((x + (s * z)[:, idx]) / s[:, idx]), 0, 2**bits - 1) - z[:, idx])
        if first:
            m.qzero_format(format=2)
            convert_gptq_v2_to_v1_format_module(m, types.SimpleNamespace(bits=bits, pack_dtype=torch.int32))
        for a in ("qweight", "qzeros", "scales", "g_idx"):
            out[k[:-6] + a] = getattr(m, a)
    put(name, out, means, one=1 if first else 0)


def by_awq(name):
    out, means = {}, {}
    for k, v in W.items():
        s, z = params(v, 4, False)
        x = torch.clamp(torch.round(v.float().view(O, I // G, G) / s[..., None]) + z[..., None], 0, 15) - z[..., None]
        lin = torch.nn.Linear(I, O, bias=False)
        lin.weight.data = (x * s[..., None]).view(O, I)
        m = WQLinear_GEMM.from_linear(lin, 4, G, scales=s.T.contiguous(), zeros=z.T.contiguous())
        for a in ("qweight", "qzeros", "scales"):
            out[k[:-6] + a] = getattr(m, a)
        means[k] = dequantize_gemm(m.qweight, m.qzeros, m.scales.float(), 4, G).T
    put(name, out, means)


def compressed(name, form, block=None, **more):
    out, means = {}, {}
    args = QuantizationArgs(block_structure=block, **more)
    way = BaseCompressor.get_value_from_registry(form)
    for k, v in W.items():
        if more["strategy"] == "tensor":
            low, high = v.min().reshape(1), v.max().reshape(1)
        elif block:
            x = torch.nn.functional.pad(v, (0, -I % block[1], 0, -O % block[0]))
            x = x.reshape(len(x) // block[0], block[0], -1, block[1])
            low, high = x.amin((1, 3)), x.amax((1, 3))
        else:
            x = v.view(O, -1, more.get("group_size", I))
            low, high = x.amin(2), x.amax(2)
        sd, kw = {"weight": v}, {}
        if form.startswith("nvfp4"):
            sd["weight_global_scale"] = kw["global_scale"] = (448 * 6 / v.abs().max()).float().reshape(1)
        sd["weight_scale"], sd["weight_zero_point"] = calculate_qparams(low, high, args, **kw)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        r = way.compress(sd, scheme)
        means[k] = way.decompress(dict(r), scheme)["weight"].float()
        out.update({k[:-6] + a: getattr(b, "data", b) for a, b in r.items()})
    put(name, out, means, 1e-2, **({"block": block} if block else {}))


def by_bitsandbytes():
    for kind, nested in (("nf4", False), ("nf4", True)):
        out, means = {}, {}
        for k, v in W.items():
            q, state = bnb.quantize_4bit(v, blocksize=64, quant_type=kind, compress_statistics=nested)
            out[k] = q
            out.update({k + "." + a: b for a, b in state.as_dict(packed=True).items()})
            means[k] = bnb.dequantize_4bit(q, state).float()
        put(f"{kind}{'-nested' if nested else ''}.safetensors", out, means, rtol=1e-2)
    out, means = {}, {}
    for k, v in W.items():
        q, s, _ = bnb.int8_vectorwise_quant(v.half())
        out.update({k: q, k[:-6] + "SCB": s, k[:-6] + "weight_format": torch.tensor(0, dtype=torch.uint8)})
        means[k] = q.float() * s[:, None] / 127
    put("int8.safetensors", out, means)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        put("hf.safetensors", W, {})
        for name, bits, sym in (("4", 4, True), ("3", 3, False)):
            gptq(f"gptq-{name}.safetensors", bits, sym)
        gptq("gptq-order.safetensors", 4, True, order=True)
        gptq("gptq-v2.safetensors", 4, True, first=False)
        by_awq("awq.safetensors")
        by_bitsandbytes()
        for name, more in (("4", {"num_bits": 4, "symmetric": True}), ("4-zeros", {"num_bits": 4, "symmetric": False})):
            compressed(f"ct-{name}.safetensors", "pack-quantized", type="int", strategy="group", group_size=G, **more)
        for sym in (True, False):
            compressed(f"ct-8{'' if sym else '-zeros'}.safetensors", "int-quantized", num_bits=8, type="int",
                       strategy="channel", symmetric=sym)
        for how, block in (("channel", None), ("block", [24, 48])):
            compressed(f"ct-fp8-{how}.safetensors", "float-quantized", block, num_bits=8, type="float", strategy=how,
                       symmetric=True)
        compressed("ct-nvfp4.safetensors", "nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group",
                   group_size=16, symmetric=True, scale_dtype=torch.float8_e4m3fn, zp_dtype=torch.float8_e4m3fn)
        compressed("ct-mxfp4.safetensors", "mxfp4-pack-quantized", num_bits=4, type="float", strategy="group",
                   group_size=32, symmetric=True, scale_dtype=torch.uint8, zp_dtype=torch.uint8)
        with tarfile.open(OUT, "w:gz", compresslevel=9) as t:
            for n in sorted(os.listdir(".")):
                t.add(n, filter=lambda i: (setattr(i, "mtime", 0), setattr(i, "uid", 0), setattr(i, "gid", 0), i)[-1])


if __name__ == "__main__":
    main()
