#!/usr/bin/env python3
"""Makes tests/data/weights/numbers.tar.gz: arrays as Orbax leaves those of several devices, initializers of ONNX whose
elements are numbers of protobuf's, and MXFP4 of GGUF, with what the packages themselves make of each in safetensors.

python3 tests/data/make_numbers.py     (jax 0.10.2, orbax-checkpoint 0.12.8, onnx 1.23.2, gguf 0.19.0, ml_dtypes)"""
import os
import tarfile
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import gguf  # noqa: E402
import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import orbax.checkpoint as ocp  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "numbers.tar.gz")
rng = np.random.default_rng(8)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def chunks():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    t = {"grid": (normal(8, 6), P("a", "b")), "rows": (normal(8, 5), P(("a", "b"))), "vector": (normal(16), P("a")),
         "cube": (normal(3, 4, 6), P(None, "a", "b")), "half": (normal(4, 4).astype(ml_dtypes.bfloat16), P(None, "b")),
         "whole": (normal(3, 3), P())}
    on = {k: jax.device_put(v, NamedSharding(mesh, p)) for k, (v, p) in t.items()}
    ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=False)).save(os.path.abspath("chunks"), on)
    save_file({k: np.asarray(v.astype(np.float32)) for k, (v, _) in t.items()}, "chunks.safetensors")


def numbers():
    kind = onnx.TensorProto
    values = {"I32": (kind.INT32, np.int32, [1, -2, 2**31 - 1, -2**31, 300, 0]),
              "I64": (kind.INT64, np.int64, [-1, 2**62, -2**63, 7, 128, 127]),
              "U64": (kind.UINT64, np.uint64, [2**64 - 1, 0, 1, 2**63, 127, 5]),
              "U32": (kind.UINT32, np.uint32, [2**32 - 1, 0, 1, 2**31, 127, 5]),
              "I8": (kind.INT8, np.int8, [-128, 127, 0, -1, 1, 5]), "U8": (kind.UINT8, np.uint8, [0, 255, 128, 1, 2, 3]),
              "I16": (kind.INT16, np.int16, [-32768, 32767, 0, -1, 1, 5]), "BOOL": (kind.BOOL, np.bool_, [1, 0, 1, 1, 0, 0])}
    t, out = [], {}
    for k, (e, d, v) in values.items():
        t.append(onnx.helper.make_tensor(k, e, [2, 3], v))
        out[k] = np.array(v).astype(d).reshape(2, 3) if d != np.uint64 else np.array(v, d).reshape(2, 3)
    for k, e, d in (("F16", kind.FLOAT16, np.float16), ("BF16", kind.BFLOAT16, ml_dtypes.bfloat16)):
        v = normal(300, 11)
        t.append(onnx.helper.make_tensor(k, e, [300, 11], v.ravel()))
        out[k] = v.astype(d).astype(np.float32)
    for x in t:
        assert not x.HasField("raw_data")
    onnx.save_model(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], t), producer_name="pytorch"), "numbers.onnx")
    save_file(out, "numbers.safetensors")


def mxfp4():
    kind = gguf.GGMLQuantizationType.MXFP4
    w = {"a": normal(4, 64), "b": np.exp(4 * normal(8, 96)) * np.sign(normal(8, 96)), "tiny": normal(2, 32) * np.float32(1e-30),
         "zero": np.zeros((2, 32), np.float32)}
    f = gguf.GGUFWriter("mxfp4.gguf", "gpt-oss")
    raw = {k: gguf.quantize(v, kind) for k, v in w.items()}
    for k, v in raw.items():
        f.add_tensor(k, v, raw_dtype=kind)
    f.write_header_to_file()
    f.write_kv_data_to_file()
    f.write_tensors_to_file()
    f.close()
    save_file(w, "model.safetensors")
    save_file({k: gguf.dequantize(v, kind) for k, v in raw.items()}, "mxfp4.safetensors")


def plain(i):
    i.mtime, i.uid, i.gid, i.uname, i.gname = 0, 0, 0, "", ""
    return i


with tempfile.TemporaryDirectory() as tmp:
    os.chdir(tmp)
    chunks()
    numbers()
    mxfp4()
    with tarfile.open(OUT, "w:gz", compresslevel=9) as tar:
        for n in sorted(os.listdir(".")):
            tar.add(n, filter=plain)
