#!/usr/bin/env python3
"""What weights of few bits stand for, by the definitions of their formats and in numpy alone.

tests/data/packed.py FROM TO     the tensors of one .safetensors, decoded, as f32 in another

make_packed.py compares it with the packages that write them."""
import json
import struct
import sys

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1", "I32": "<i4", "I64": "<i8"}
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])


def e4m3():
    c = np.arange(256)
    e, m = c >> 3 & 15, c & 7
    v = np.where(e > 0, (1 + m / 8) * 2.0 ** (e - 7), m / 8 * 2.0 ** -6)
    v[c & 127 == 127] = np.nan
    return np.where(c > 127, -v, v).astype(np.float32)


E4M3 = e4m3()


def load(name):
    with open(name, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for k, x in json.loads(data[8:8 + n]).items():
        if k == "__metadata__":
            continue
        raw = data[8 + n + x["data_offsets"][0]:8 + n + x["data_offsets"][1]]
        if x["dtype"] == "BF16":
            v = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        elif x["dtype"] == "F8_E4M3":
            v = E4M3[np.frombuffer(raw, "u1")]
        else:
            v = np.frombuffer(raw, TYPES[x["dtype"]])
        out[k] = v.reshape(x["shape"])
    return out


def save(name, tensors):
    head, data = {}, b""
    for k, v in tensors.items():
        # Of 16 bits are those of bfloat16.
        kind, own = {"int8": ("I8", "i1"), "uint16": ("BF16", "<u2")}.get(str(v.dtype), ("F32", "<f4"))
        raw = np.ascontiguousarray(v, own).tobytes()
        head[k] = {"dtype": kind, "shape": list(v.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    with open(name, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def stream(words, bits, n):
    """n numbers of each row of words, as bits follow each other, low ones first."""
    b = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    return (b[:, :n * bits].reshape(len(b), n, bits).astype(np.int64) << np.arange(bits)).sum(2)


def gptq(t, s, one=1):
    q, z, scale, idx = (t[s + x] for x in ("qweight", "qzeros", "scales", "g_idx"))
    out, bits = scale.shape[1], z.shape[1] * 32 // scale.shape[1]
    zero = (stream(z, bits, out) + one) % 2 ** bits
    return ((stream(q.T.copy(), bits, len(idx)).T - zero[idx]) * scale.astype(np.float64)[idx]).T


def awq(t, s):
    q, z, scale = (t[s + x] for x in ("qweight", "qzeros", "scales"))
    order = np.arange(scale.shape[1]).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].ravel()
    q, z = (np.take(stream(x, 4, len(order)), np.argsort(order), 1) for x in (q, z))
    return ((q - np.repeat(z, len(q) // len(z), 0)) * np.repeat(scale.astype(np.float64), len(q) // len(z), 0)).T


def wide(scale, shape, block=None):
    """A scale for each element."""
    scale = np.atleast_2d(scale.astype(np.float64))
    scale = scale.T if scale.shape[0] == 1 and scale.shape[1] == shape[0] else scale
    r, c = block or (-(-shape[0] // scale.shape[0]), -(-shape[1] // scale.shape[1]))
    return np.repeat(np.repeat(scale, r, 0), c, 1)[:shape[0], :shape[1]]


def integers(t, s):
    q, shape = t[s + "weight_packed"], t[s + "weight_shape"]
    bits = next(b for b in (4, 8, 3) if -(-shape[1] * b // 32) == q.shape[1])
    scale, z = t[s + "weight_scale"], t.get(s + "weight_zero_point")
    zero = 2 ** (bits - 1) if z is None else wide(stream(z.T.copy(), bits, shape[0]).T, shape)
    return (stream(q, bits, shape[1]) - zero) * wide(scale, shape)


def four_bits(t, w):
    kind = next(k for k in t if k.startswith(w + ".quant_state."))
    state = json.loads(t[kind].tobytes())
    q = np.stack([t[w] >> 4, t[w] & 15], -1).ravel()[:np.prod(state["shape"])]
    a = t[w + ".absmax"]
    if a.dtype == np.uint8:
        inner = np.repeat(t[w + ".nested_absmax"].astype(np.float64), state["nested_blocksize"])[:len(a)]
        a = t[w + ".nested_quant_map"][a] * inner
        a = a + state["nested_offset"]
    return (t[w + ".quant_map"][q] * np.repeat(a, state["blocksize"])[:len(q)]).reshape(state["shape"])


def decode(t, block=None, one=1):
    out = {}
    for k, v in t.items():
        s = k[:k.rindex(".") + 1]
        if k.endswith(".qweight"):
            out[s + "weight"] = gptq(t, s, one) if s + "g_idx" in t else awq(t, s)
        elif k.endswith(".weight_packed") and s + "weight_shape" in t:
            out[s + "weight"] = integers(t, s)
        elif k.endswith(".weight_packed"):
            q = E2M1[np.stack([v & 15, v >> 4], -1).reshape(len(v), -1)]
            scale = t[s + "weight_scale"]
            scale = 2.0 ** (scale.astype(np.float64) - 127) if scale.dtype == np.uint8 else scale
            out[s + "weight"] = q * wide(scale, q.shape) / t.get(s + "weight_global_scale", 1)
        elif k + ".quant_map" in t:
            out[k] = four_bits(t, k)
        elif s + "SCB" in t and k.endswith(".weight"):
            out[k] = v * t[s + "SCB"].astype(np.float64)[:, None] / 127
        elif s + "weight_scale" in t and k.endswith(".weight"):
            z = t.get(s + "weight_zero_point")
            out[k] = (v - (0 if z is None else wide(z, v.shape))) * wide(t[s + "weight_scale"], v.shape, block)
        elif k.endswith("norm.weight"):
            out[k] = v
    return out


if __name__ == "__main__":
    given = load(sys.argv[1])
    save(sys.argv[2], decode(given, (24, 48) if "block" in sys.argv[1] else None, 0 if "v2" in sys.argv[1] else 1))
