#!/usr/bin/env python3
"""Makes tests/data/weights/quantized.tar.gz: a small Llama as GGUF quantizes it, right and wrong, and packed as Phi-3
is; and rows in each type of GGUF's that is decoded, beside what they are.

python3 tests/data/make_quantized.py LIBCTRANSFORMERS     (numpy, gguf 0.19, safetensors, ml_dtypes)

What is quantized is by ggml's own code, in the shared library that the package ctransformers 0.2.27 holds; what it
stands for is by gguf's quants.py. hf.safetensors is the model under Hugging Face's names, in bf16."""
import ctypes
import os
import sys
import tarfile
import tempfile

import gguf
import ml_dtypes
import numpy as np
from gguf.quants import dequantize
from safetensors.numpy import save_file

D, H, KV, F, V, L = 32, 4, 2, 64, 32, 2
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "quantized.tar.gz")
KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")


class Params(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def open_ggml(name):
    lib = ctypes.CDLL(name)
    lib.ggml_init.restype = ctypes.c_void_p
    assert lib.ggml_init(Params(1 << 20, None, False))     # its tables
    return lib


def quantize(lib, x, kind):
    n, size = gguf.GGML_QUANT_SIZES[getattr(gguf.GGMLQuantizationType, kind)]
    call = getattr(lib, "ggml_quantize_" + kind.lower().replace("_k", "_K"))
    call.restype = ctypes.c_size_t
    rows = []
    for row in np.ascontiguousarray(x, np.float32):
        out = np.zeros(row.size // n * size, np.uint8)
        got = call(row.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), row.size, row.size,
                   (ctypes.c_int64 * 16)())
        assert got == out.size
        rows.append(out)
    return np.stack(rows)


def llama(r):
    def w(*shape):
        return (r.standard_normal(shape) * 0.05).astype(ml_dtypes.bfloat16)
    sd = {"model.embed_tokens.weight": w(V, D)}
    for i in range(L):
        p = f"model.layers.{i}."
        sd[p + "input_layernorm.weight"] = (1 + w(D)).astype(ml_dtypes.bfloat16)
        for x, rows in (("q", D), ("k", KV * D // H), ("v", KV * D // H), ("o", D)):
            sd[p + f"self_attn.{x}_proj.weight"] = w(rows, D)
        sd[p + "post_attention_layernorm.weight"] = (1 + w(D)).astype(ml_dtypes.bfloat16)
        sd[p + "mlp.gate_proj.weight"] = w(F, D)
        sd[p + "mlp.up_proj.weight"] = w(F, D)
        sd[p + "mlp.down_proj.weight"] = w(D, F)
    sd["model.norm.weight"] = (1 + w(D)).astype(ml_dtypes.bfloat16)
    sd["lm_head.weight"] = w(V, D)
    return sd


def packed(sd):
    """As Phi-3 has them."""
    out = {}
    for k, v in sd.items():
        if "q_proj" in k:
            out[k.replace("q_proj", "qkv_proj")] = np.concatenate([sd[k.replace("q_", x + "_")] for x in "qkv"])
        elif "gate_proj" in k:
            out[k.replace("gate_proj", "gate_up_proj")] = np.concatenate([v, sd[k.replace("gate", "up")]])
        elif not any(x in k for x in ("k_proj", "v_proj", "up_proj")):
            out[k] = v
    return out


def rotary(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(x.shape)


NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "model.norm": "output_norm", "model.embed_tokens": "token_embd", "lm_head": "output"}


def put(lib, name, sd, kind, permuted=True, change=lambda name, raw: raw):
    """As convert_hf_to_gguf.py and llama-quantize do: vectors stay f32."""
    g = gguf.GGUFWriter(name, "llama")
    for k, v in sd.items():
        v = v.astype(np.float32)
        if permuted and "q_proj" in k:
            v = rotary(v, H)
        if permuted and "k_proj" in k:
            v = rotary(v, KV)
        to = k.replace("model.layers.", "blk.")
        for a, b in NAMES.items():
            to = to.replace(a, b)
        if v.ndim == 1:
            g.add_tensor(to, v)
        else:
            g.add_tensor(to, change(to, quantize(lib, v, kind)), raw_dtype=getattr(gguf.GGMLQuantizationType, kind))
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()


def main():
    lib = open_ggml(os.path.abspath(sys.argv[1]))
    r = np.random.default_rng(49)
    sd = llama(r)
    out = os.path.abspath(OUT)
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        save_file(sd, "hf.safetensors")
        save_file(packed(sd), "packed.safetensors")
        put(lib, "q8.gguf", sd, "Q8_0")
        put(lib, "q4.gguf", sd, "Q4_0")
        put(lib, "q4-plain.gguf", sd, "Q4_0", permuted=False)

        def damaged(name, raw):
            if name == "blk.1.ffn_up.weight":
                raw[5, 2:] = raw[5, 2:] ^ 0x80       # each number by 128
            return raw
        put(lib, "q8-signs.gguf", sd, "Q8_0", change=damaged)
        other = {k: v for k, v in sd.items()}
        a, b = "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"
        other[a], other[b] = sd[b], sd[a]
        put(lib, "q4-layers.gguf", other, "Q4_0")
        g, values = gguf.GGUFWriter("kinds.gguf", "llama"), {}
        for kind in KINDS:
            x = r.standard_normal((2, 256)) * 10.0 ** r.uniform(-2, 1, (2, 1))
            raw = quantize(lib, x, kind)
            g.add_tensor(kind, raw, raw_dtype=getattr(gguf.GGMLQuantizationType, kind))
            values[kind] = np.ascontiguousarray(dequantize(raw, getattr(gguf.GGMLQuantizationType, kind)), np.float32)
        g.add_tensor("Q2_K", np.zeros((1, 84), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q2_K)
        g.write_header_to_file()
        g.write_kv_data_to_file()
        g.write_tensors_to_file()
        g.close()
        save_file(values, "kinds.safetensors")
        with tarfile.open(out, "w:gz") as t:
            for f in sorted(os.listdir(d)):
                t.add(f)


main()
