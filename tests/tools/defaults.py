#!/usr/bin/env python3
"""The rows of lib/op/defaults.c, read off the libraries that this interpreter has: defaults.py

    pip install mindspore==2.10.0 numpy==1.26.4; or keras==3.15.1 jax==0.10.2 flax==0.12.8 optax==0.2.8 onnx==1.23.2; or torch;
    or paddlepaddle==3.3.1; or xllamacpp==2026.10.11549 gguf==0.19.0

An argument of torch's is found by what the library calls it; what means another thing is turned round (the momentum of others
is the weight of the old statistics). Rows whose library is not there are counted, and not seen."""
import importlib.metadata
import inspect
import os
import re

os.environ.setdefault("KERAS_BACKEND", "jax")
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = {"torch": "torch", "MindSpore": "mindspore", "JAX": "jax", "flax": "flax", "optax": "optax", "Keras": "keras", "ONNX": "onnx",
           "Paddle": "paddlepaddle", "ggml": "xllamacpp"}
# What torch's argument is called elsewhere.
OTHER = {"eps": ("eps", "epsilon"), "alpha": ("alpha", "rho", "decay"), "negative_slope": ("negative_slope", "alpha"), "approximate": ("approximate",),
         "unbiased": ("unbiased", "ddof", "correction"), "padding": ("pad_mode", "padding"), "lr": ("lr",),
         "initial_accumulator_value": ("initial_accumulator_value", "accum"), "momentum": ("momentum",),
         "count_include_pad": ("count_include_pad", "exclusive")}


def rows():
    text = open(os.path.join(HERE, "..", "..", "lib", "op", "defaults.c")).read()
    macro = dict((n, re.findall(r'"([^"]*)"', v)) for n, v in re.findall(r"#define (\w+) (.*)", text))
    for head, api, ops, name, value in re.findall(r'\{(\w+),\s*"([^"]*)",\s*((?:"[^"]*"|STD)),\s*"([^"]*)",\s*"([^"]*)"\}', text):
        yield (*macro[head][1:3], api, name, value)


def found(library, api):
    if library == "ONNX":
        from onnx import defs
        return defs.get_schema(api) if defs.has(api) else defs.get_schema(api, domain="ai.onnx.preview.training")
    at = __import__("paddle" if library == "Paddle" else PACKAGE[library])
    parts = api.split(".")
    if library == "flax":
        import flax.linen  # noqa: F401
    if library == "JAX":
        import jax.numpy  # noqa: F401
    for p in parts:
        at = getattr(at, p)
    return at


def std_is_unbiased(f, library):
    import numpy as np
    x = np.array([1.0, 2.0, 4.0], "f4")
    if library in ("torch", "MindSpore"):
        lib = __import__(PACKAGE[library])
        x = lib.Tensor(x) if library == "MindSpore" else lib.tensor(x)
    got = float(f(x))
    return bool(abs(got - np.std([1.0, 2.0, 4.0], ddof=1)) < 1e-4)


def ggml_default(name):
    """By the C interface that the wheel's library exports: the settings that an optimizer is given, and which form gelu is."""
    import ctypes
    import math
    import llama_cpu
    import numpy as np
    if name == "approximate":
        x = np.linspace(-3, 3, 25, dtype="f4")
        tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
        erf = 0.5 * x * (1 + np.array([math.erf(v / math.sqrt(2)) for v in x]))
        got = llama_cpu.run("gelu", x)
        return "tanh" if abs(got - tanh).sum() < abs(got - erf).sum() else "none"

    class Settings(ctypes.Structure):  # of AdamW, then of SGD
        _fields_ = [(n, ctypes.c_float) for n in ("alpha", "beta1", "beta2", "eps", "weight_decay", "sgd_alpha", "sgd_wd")]

    return getattr(llama_cpu.f("ggml_opt_get_default_optimizer_params", Settings, ctypes.c_void_p)(None), name)


def default(library, api, name):
    if library == "ggml":
        return ggml_default(name)
    f = found(library, api)
    if name == "unbiased":
        return std_is_unbiased(f, library)
    if library == "ONNX":
        from onnx import helper
        known = {k: helper.get_attribute_value(a.default_value) for k, a in f.attributes.items() if a.default_value.name}
    else:
        known = {k: p.default for k, p in inspect.signature(f).parameters.items()}
    v = next(known[k] for k in (*OTHER.get(name, ()), name) if k in known)
    if name == "momentum" and library != "torch":
        v = 1 - v
    if api == "ops.L2Normalize":  # of the square
        v = v ** 0.5
    if name == "approximate" and isinstance(v, bool):
        v = "tanh" if v else "none"
    if name in ("count_include_pad", "align_corners"):
        v = bool(v) != ("exclusive" in known and name == "count_include_pad")
    return v.lower() if isinstance(v, str) else v


def same(v, text):
    if isinstance(v, (str, bool)):
        return str(v) == text
    return abs(float(v) - float(text)) <= 1e-6 * abs(float(text))


seen = missing = unread = 0
for library, version, api, name, value in rows():
    try:
        has = importlib.metadata.version(PACKAGE[library])
    except importlib.metadata.PackageNotFoundError:
        missing += 1
        continue
    try:
        got = default(library, api, name)
    except (ValueError, StopIteration) as e:  # a builtin's arguments
        unread += 1
        print("not read %s %s %s: %s" % (library, api, name, str(e)[:60]))
        continue
    seen += 1
    if not same(got, value):
        print("CHANGED  %s %s (the table: %s) %s %s: %r, the table %s" % (library, has, version, api, name, got, value))
print("seen %d rows, not read %d, of libraries that are not here %d" % (seen, unread, missing))
