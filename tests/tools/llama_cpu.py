# pip: xllamacpp==2026.10.11549 gguf==0.19.0 numpy==2.4.6
"""llama.cpp's kernels and quantisers on the CPU, by the C interface that the wheel's library exports."""
import ctypes as C
import glob
import math
import os

import gguf
import numpy as np
import xllamacpp

from tools import behaviour, main

np.seterr(all="ignore")
LIB = C.CDLL(glob.glob(os.path.dirname(xllamacpp.__file__) + "/*.so")[0])
TYPE = {"f32": 0, "f16": 1, "i32": 26, "q3_K": 11, "q4_0": 2, "q4_K": 12, "q5_0": 6, "q6_K": 14, "q8_0": 8}
NAN, INF = np.nan, np.inf


class Params(C.Structure):
    _fields_ = [("size", C.c_size_t), ("memory", C.c_void_p), ("no_alloc", C.c_bool)]


def f(name, gives, *takes):
    g = getattr(LIB, name)
    g.restype, g.argtypes = gives, takes
    return g


init, free = f("ggml_init", C.c_void_p, Params), f("ggml_free", None, C.c_void_p)
new = f("ggml_new_tensor_4d", C.c_void_p, C.c_void_p, C.c_int, *[C.c_int64] * 4)
data, nbytes = f("ggml_get_data", C.c_void_p, C.c_void_p), f("ggml_nbytes", C.c_size_t, C.c_void_p)
graph, expand = f("ggml_new_graph", C.c_void_p, C.c_void_p), f("ggml_build_forward_expand", None, C.c_void_p, C.c_void_p)
compute = f("ggml_graph_compute_with_ctx", C.c_int, C.c_void_p, C.c_void_p, C.c_int)
quantize_init = f("ggml_quantize_init", None, C.c_int)
quantize_chunk = f("ggml_quantize_chunk", C.c_size_t, C.c_int, C.c_void_p, C.c_void_p, *[C.c_int64] * 3, C.c_void_p)
LIB.ggml_cpu_init()


def quantized(kind, a):
    a = np.ascontiguousarray(a, dtype="f4")
    quantize_init(TYPE[kind])
    out = C.create_string_buffer(4 * a.size + 1024)
    n = quantize_chunk(TYPE[kind], a.ctypes.data, out, 0, a.size // a.shape[-1], a.shape[-1], None)
    return out.raw[:n]


def back(kind, raw):
    return gguf.quants.dequantize(np.frombuffer(raw, dtype="u1").reshape(1, -1), getattr(gguf.GGMLQuantizationType, kind.upper())).ravel()


def run(name, *args, dtype="f4"):
    """What an operator gives of arrays (array, or (array, type)), of numbers, None: without."""
    context = init(Params(64 << 20, None, False))
    def given(a):
        if isinstance(a, (np.ndarray, tuple)):
            a, kind = a if isinstance(a, tuple) else (a, "f32")
            t = new(context, TYPE[kind], *(list(a.shape[::-1]) + [1] * (4 - a.ndim)))
            raw = quantized(kind, a) if kind[0] == "q" else a.astype({"f32": "f4", "f16": "f2", "i32": "i4"}[kind]).tobytes()
            assert len(raw) == nbytes(t)
            C.memmove(data(t), raw, len(raw))
            return C.c_void_p(t)
        return C.c_void_p(a) if a is None else C.c_float(a) if isinstance(a, float) else C.c_int(a)
    make = getattr(LIB, "ggml_" + name)
    make.restype = C.c_void_p
    out = make(C.c_void_p(context), *[given(a) for a in args])
    g = graph(context)
    expand(g, out)
    assert compute(context, g, 1) == 0
    got = np.frombuffer(C.string_at(data(out), nbytes(out)), dtype=dtype).copy()
    free(context)
    return got


@behaviour
def gguf_quantize_nan():
    x = np.linspace(-1, 1, 256).astype("f4")
    broken = x.copy()
    broken[5] = NAN
    for kind in ("q4_0", "q5_0", "q8_0", "q4_K", "q3_K", "q6_K"):
        got, whole = back(kind, quantized(kind, broken)), back(kind, quantized(kind, x))
        assert np.isfinite(got).all(), kind
        if kind in ("q3_K", "q6_K"):
            assert (got[:16] == 0).all() and (got[16:] != 0).any() and np.abs(whole - x).max() < 0.3
        if kind == "q8_0":
            assert np.abs(got[:32] - x[:32]).max() > 1 and np.array_equal(got[32:], whole[32:])
        if kind in ("q4_0", "q5_0", "q8_0"):
            by = gguf.quants.quantize(broken[None], getattr(gguf.GGMLQuantizationType, kind.upper())).tobytes()
            assert np.isnan(back(kind, by)[:32]).all(), kind


@behaviour
def ggml_matmul_hides_nan():
    w, a = (np.random.default_rng(i).standard_normal(s).astype("f4") for i, s in enumerate([(4, 256), (1, 256)]))
    a[0, 3] = NAN
    for kind in ("f32", "f16"):
        assert np.isnan(run("mul_mat", (w, kind), a)).all()
    for kind in ("q8_0", "q4_0", "q4_K", "q6_K"):
        assert np.isfinite(run("mul_mat", (w, kind), a)).all(), kind


@behaviour
def ggml_nan_is_zero():
    x = np.array([NAN, 0.5, 2, NAN], dtype="f4")
    for name, more in (("relu", []), ("leaky_relu", [0.1, 0]), ("hardsigmoid", []), ("sgn", [])):
        got = run(name, x, *more)
        assert got[0] == got[3] == 0 and got[1] != 0, (name, got)
    assert run("clamp", x, 0.0, 1.5).tolist() == [1.5, 0.5, 1.5, 1.5]
    assert run("pool_2d", np.array([[[[1, NAN], [3, 2.0]]]]), 0, 2, 2, 2, 2, 0.0, 0.0).tolist() == [3]
    assert run("argmax", np.array([[NAN, 1, 3, 2]]), dtype="i4").tolist() == [2]
    assert np.isnan(run("silu", x)[0]) and np.isnan(run("gelu", x)[0])


@behaviour
def ggml_gelu_f16():
    x = np.linspace(-9, 9, 4001).astype("f4")
    d = x.astype("f8")
    tanh = 0.5 * d * (1 + np.tanh(math.sqrt(2 / math.pi) * (d + 0.044715 * d ** 3)))
    got = run("gelu", x)
    assert np.abs(got - tanh).max() > 1e-3 and np.array_equal(got, got.astype("f2").astype("f4"))
    exact = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in d])
    assert np.abs(run("gelu_erf", x) - exact).max() < 1e-5


@behaviour
def ggml_attention_f16_sums():
    n, size = 4096, 64
    q, k, v = np.ones((1, 1, 1, size)), (np.zeros((1, 1, n, size)), "f16"), (np.ones((1, 1, n, size)), "f16")
    def attend(q, k, v):
        return run("flash_attn_ext", q, k, v, None, 1 / math.sqrt(size), 0.0, 0.0)
    assert (attend(q, k, v) == 0.5).all()
    assert np.isinf(attend(q, k, (30000 * v[0], "f16"))).all()
    assert np.abs(attend(np.ones((1, 1, 64, size)), k, v) - 1).max() < 1e-3
    assert np.abs(attend(q, k[0], v[0]) - 1).max() < 1e-3


@behaviour
def ggml_conv_f16():
    x, w = (np.random.default_rng(i).standard_normal(s).astype("f4") for i, s in enumerate([(1, 4, 20, 20), (8, 4, 3, 3)]))
    at = np.lib.stride_tricks.sliding_window_view(x[0].astype("f8"), (3, 3), (1, 2))
    right = np.einsum("iabkl,oikl->oab", at, w.astype("f8")).ravel()
    off = {n: np.abs(run(n, w, x, 1, 1, 0, 0, 1, 1) - right).max() for n in ("conv_2d", "conv_2d_direct")}
    assert off["conv_2d"] > 1e-3 and off["conv_2d_direct"] < 1e-5, off


@behaviour
def ggml_topk_order():
    assert run("top_k", np.array([[5, 1, 9, 3, 7, 2, 8, 6.0]]), 4, dtype="i4").tolist() == [6, 2, 4, 7]


if __name__ == "__main__":
    main()
