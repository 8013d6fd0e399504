#!/usr/bin/env python3
"""Makes tests/data/weights/frameworks.tar.gz: weights as Keras, Flax and Orbax write them, and as torch has the same.

python3 tests/data/make_frameworks.py     (keras 3.15, h5py 3.16, flax 0.12, jax 0.10, orbax 0.12, safetensors)

model.keras, model.weights.h5, legacy.h5 and half.weights.h5 are Keras' own; truth.safetensors is what h5py reads of
them, torch.safetensors the same as torch.nn.Linear keeps it. odd.h5 and latest.h5 hold what h5py can write beside.
flax.msgpack is by flax.serialization.to_bytes, flax.safetensors what jax has of it; orbax, in the folder of a step, and
orbax.safetensors likewise."""
import os
import shutil
import tarfile
import tempfile

os.environ.update(KERAS_BACKEND="numpy", JAX_PLATFORMS="cpu")
import flax.serialization
import h5py
import jax.numpy as jnp
import keras
import ml_dtypes
import numpy as np
import orbax.checkpoint as ocp
from safetensors.numpy import save_file

OUT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "frameworks.tar.gz"))
LAYERS = (("up", "dense", 2), ("norm", "layer_normalization", 2), ("head", "dense_1", 2))


def model(dtype="float32"):
    keras.backend.clear_session()
    keras.config.set_dtype_policy(dtype)
    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(6, name="up"), keras.layers.LayerNormalization(name="norm"),
                          keras.layers.Dense(4, name="head")])
    r = np.random.default_rng(3)
    m.set_weights([r.standard_normal(w.shape).astype("f") for w in m.get_weights()])
    return m


def of_keras():
    m = model()
    m.save("model.keras")
    m.save_weights("model.weights.h5")
    m.save("legacy.h5")
    with h5py.File("model.weights.h5") as f:
        d = {f"layers/{own}/vars/{i}": f[f"layers/{kind}/vars/{i}"][:] for own, kind, n in LAYERS for i in range(n)}
    save_file(d, "truth.safetensors")
    torch = {}
    for own, _, _ in LAYERS:
        torch[own + ".weight"] = np.ascontiguousarray(d[f"layers/{own}/vars/0"].T)
        torch[own + ".bias"] = d[f"layers/{own}/vars/1"]
    save_file(torch, "torch.safetensors")
    m.layers[0].set_weights([m.layers[0].get_weights()[0] * 1.5, m.layers[0].get_weights()[1]])
    m.save_weights("scaled.weights.h5")
    model("bfloat16").save_weights("half.weights.h5")


def of_h5py():
    with h5py.File("odd.h5", "w") as g:
        for i in range(20):
            g.create_dataset(f"many/t{i:02}", data=np.full((2,), i, "f4"))
        g.create_dataset("chunked", data=np.arange(100.0), chunks=(10,), compression="gzip")
        g.create_dataset("empty", shape=(0, 3), dtype="f4")
        g.create_dataset("half", data=np.arange(3, dtype="f2"))
        g.create_dataset("big", data=np.arange(3, dtype=">i4"))
        g.create_dataset("flag", data=np.array([True, False]))
        g.create_dataset("scalar", data=3.5)
        g.create_dataset("complex", data=np.array([1 + 2j]))
        g.create_dataset("never", shape=(3,), dtype="f4")
        g["hard"], g["soft"] = g["half"], h5py.SoftLink("/half")
    with h5py.File("latest.h5", "w", libver="latest") as g:
        for i in range(3):
            g.create_dataset(f"a/b{i}", data=np.arange(6.0).reshape(2, 3) + i)
        g["a"].attrs["name"] = "alpha"
    with h5py.File("dense.h5", "w", libver="latest") as g:
        for i in range(20):
            g.create_dataset(f"b{i}", data=np.arange(2.0))


def of_flax():
    r = np.random.default_rng(4)
    d = {"params": {"Dense_0": {"kernel": r.standard_normal((8, 6)).astype("f"), "bias": r.standard_normal(6).astype("f")},
                    "embed": jnp.asarray(r.standard_normal((4, 8)), jnp.bfloat16),
                    "scale": jnp.asarray(r.standard_normal(4), jnp.float8_e4m3fn)},
         "step": 3, "name": "a", "fortran": np.asfortranarray(r.standard_normal((3, 4)))}
    with open("flax.msgpack", "wb") as f:
        f.write(flax.serialization.to_bytes(d))
    p = d["params"]
    save_file({"params.Dense_0.kernel": p["Dense_0"]["kernel"], "params.Dense_0.bias": p["Dense_0"]["bias"],
               "params.embed": np.asarray(p["embed"]).astype(ml_dtypes.bfloat16), "fortran": d["fortran"].copy("C"),
               "params.scale": np.asarray(p["scale"])}, "flax.safetensors")
    flax.serialization.MAX_CHUNK_SIZE = 64
    with open("chunked.msgpack", "wb") as f:
        f.write(flax.serialization.to_bytes({"params": {"kernel": p["Dense_0"]["kernel"], "bias": np.zeros(2, "f")}}))


def of_orbax():
    r = np.random.default_rng(5)
    d = {"params": {"kernel": jnp.asarray(r.standard_normal((8, 6)), jnp.float32),
                    "embed": jnp.asarray(r.standard_normal((40, 64)), jnp.bfloat16),
                    "scale": jnp.asarray(r.standard_normal(4), jnp.float8_e4m3fn)}, "step": 3}
    for name, how in (("orbax", {}), ("orbax-ocdbt", {"use_ocdbt": True}), ("orbax-zarr3", {"use_zarr3": True})):
        how = {"use_ocdbt": False, "use_zarr3": False, **how}
        ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**how)).save(os.path.abspath(name), d)
    shutil.move("orbax", "7")
    os.mkdir("orbax")
    shutil.move("7", "orbax/7")
    p = {k: np.asarray(v) for k, v in d["params"].items()}
    save_file({"params." + k: v for k, v in p.items()} | {"step": np.array(3)}, "orbax.safetensors")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    of_keras()
    of_h5py()
    of_flax()
    of_orbax()
    with tarfile.open(OUT, "w:gz") as t:
        for name in sorted(os.listdir(folder)):
            t.add(name)
