#!/usr/bin/env python3
"""accengine against accrecord: adapters.py FOLDER ENGINE ... writes FOLDER/ENGINE/{right,wrong}/{device,bench}. The device is the
engine's recording of a small network, the bench torch's of the same; in "wrong" the device has one fault, an eps of 0.1 or
0.01. Needs torch and the engine; prints the place of the fault. tests/data/engines/adapters.tar.gz is of
    ADAPTER_NET=mlp adapters.py F ort openvino export flax jaxpr keras mlx executorch
    adapters.py F strip
with one bench of all but executorch, in F/bench."""
import os
import shutil
import sys

import numpy as np
import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, here + "/../../python"]
import accrecord  # noqa: E402
import models     # noqa: E402


def bench(m, x, folder):
    accrecord.start_record(output_dir=folder)
    with torch.no_grad():
        m(x)
    accrecord.record_switch(False)


class Mlp(torch.nn.Module):
    """What each engine can be written in by hand: two blocks of norm, linear, gelu, linear."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
            "norm": torch.nn.LayerNorm(16), "up": torch.nn.Linear(16, 32), "down": torch.nn.Linear(32, 16)}) for _ in range(2))
        self.head = torch.nn.Linear(16, 5)

    def forward(self, x):
        for f in self.layers:
            x = x + f["down"](torch.nn.functional.gelu(f["up"](f["norm"](x))))
        return self.head(x)


def mlp():
    torch.manual_seed(0)
    m = Mlp().eval()
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape) * 0.4 + (p.dim() == 1) * 0.5)
    return m, torch.randn(3, 7, 16)


def weights(m):
    return {k: v.detach().numpy() for k, v in m.state_dict().items()}


def pair_of(wrong):
    """What is exported, the bench, its input, the place of the fault."""
    if os.environ.get("ADAPTER_NET") == "mlp":
        (m, x), (right, _) = mlp(), mlp()
        m.layers[1]["norm"].eps = 1e-1 if wrong else 1e-5
        return m, right, x, "layers.1.norm" if wrong else None
    m, x = models.make("llama", 0)
    right, _ = models.make("llama", 0)
    return m, right, x, models.break_it(m, "llama", "eps") if wrong else None


def onnx_of(wrong, path):
    m, right, x, place = pair_of(wrong)
    if not os.path.exists(path):
        with torch.no_grad():
            torch.onnx.export(m, (x,), path, dynamo=True, verbose=False, external_data=False)
    return right, x, place


def ort(folder, wrong):
    from accengine import ort
    m, x, place = onnx_of(wrong, folder + ".onnx")
    import onnx
    ort.record(folder + ".onnx", {onnx.load(folder + ".onnx").graph.input[0].name: x.numpy()}, folder + "/device")
    return m, x, place


def openvino(folder, wrong):
    from accengine import openvino
    m, x, place = onnx_of(wrong, folder + ".onnx")
    openvino.record(folder + ".onnx", [x.numpy()], folder + "/device")
    return m, x, place


def export(folder, wrong):
    from accengine import export
    m, right, x, place = pair_of(wrong)
    export.record(torch.export.export(m, (x,)), (x,), folder + "/device")
    return right, x, place


def flax(folder, wrong):
    import flax.linen as nn
    import jax.numpy as jnp
    from accengine import flax
    m, x = mlp()
    w = weights(m)

    class Block(nn.Module):
        wrong: bool

        @nn.compact
        def __call__(self, x):
            y = nn.Dense(32, name="up")(nn.LayerNorm(epsilon=1e-1 if self.wrong else 1e-5, name="norm")(x))
            return x + nn.Dense(16, name="down")(nn.gelu(y, approximate=False))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for i in range(2):
                x = Block(wrong and i == 1, name="layers_%d" % i)(x)
            return nn.Dense(5, name="head")(x)

    def dense(k):
        return {"kernel": w[k + ".weight"].T, "bias": w[k + ".bias"]}

    params = {"layers_%d" % i: {"norm": {"scale": w["layers.%d.norm.weight" % i], "bias": w["layers.%d.norm.bias" % i]},
                                "up": dense("layers.%d.up" % i), "down": dense("layers.%d.down" % i)} for i in range(2)}
    flax.record(Net(), {"params": {**params, "head": dense("head")}}, folder + "/device", jnp.asarray(x.numpy()))
    return m, x, "layers_1.norm" if wrong else None


def jaxpr(folder, wrong):
    import jax
    import jax.numpy as jnp
    from accengine import jaxpr
    m, x = mlp()
    w = weights(m)

    @jax.jit
    def net(x):
        for i in range(2):
            p = lambda k: w["layers.%d.%s" % (i, k)]
            d = x - x.mean(-1, keepdims=True)
            h = d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + (1e-1 if wrong and i == 1 else 1e-5)) * p("norm.weight") + p("norm.bias")
            h = jax.nn.gelu(h @ p("up.weight").T + p("up.bias"), approximate=False)
            x = x + h @ p("down.weight").T + p("down.bias")
        return x @ w["head.weight"].T + w["head.bias"]

    jaxpr.record(net, folder + "/device", jnp.asarray(x.numpy()))
    return m, x, "rsqrt_1" if wrong else None


def keras(folder, wrong):
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras
    from accengine import keras as adapter
    m, x = mlp()
    w = weights(m)
    L, i = keras.layers, keras.Input((7, 16))
    y = i
    for k in range(2):
        h = L.LayerNormalization(epsilon=1e-1 if wrong and k == 1 else 1e-5, name="norm_%d" % k)(y)
        h = L.Activation(lambda v: keras.ops.gelu(v, approximate=False), name="gelu_%d" % k)(L.Dense(32, name="up_%d" % k)(h))
        y = L.Add(name="add_%d" % k)([y, L.Dense(16, name="down_%d" % k)(h)])
    net = keras.Model(i, L.Dense(5, name="head")(y))
    for k in range(2):
        net.get_layer("norm_%d" % k).set_weights([w["layers.%d.norm.weight" % k], w["layers.%d.norm.bias" % k]])
        for d in "up", "down":
            net.get_layer("%s_%d" % (d, k)).set_weights([w["layers.%d.%s.weight" % (k, d)].T, w["layers.%d.%s.bias" % (k, d)]])
    net.get_layer("head").set_weights([w["head.weight"].T, w["head.bias"]])
    adapter.record(net, x.numpy(), folder + "/device")
    return m, x, "norm_1" if wrong else None


def mlx(folder, wrong):
    import mlx.core as mx
    import mlx.nn as nn
    from accengine import mlx
    m, x = mlp()

    class Block(nn.Module):
        def __init__(self, eps):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(16, eps=eps), nn.Linear(16, 32), nn.Linear(32, 16)

        def __call__(self, x):
            return x + self.down(nn.gelu(self.up(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = [Block(1e-5), Block(1e-1 if wrong else 1e-5)], nn.Linear(16, 5)

        def __call__(self, x):
            for f in self.layers:
                x = f(x)
            return self.head(x)

    net = Net()
    net.load_weights([(k, mx.array(v)) for k, v in weights(m).items()])
    mlx.record(net, folder + "/device", mx.array(x.numpy()))
    return m, x, "layers.1.norm" if wrong else None


def executorch(folder, wrong):
    import executorch.exir as exir
    from accengine import executorch
    from executorch.devtools import generate_etrecord
    from executorch.runtime import Runtime, Verification
    m, x = models.make("cnn", 0)
    right, _ = models.make("cnn", 0)
    place = models.break_it(m, "cnn", "eps") if wrong else None
    edge = exir.to_edge(torch.export.export(m, (x,)))
    import copy
    kept = copy.deepcopy(edge)
    program = edge.to_executorch()
    generate_etrecord(folder + "/etrecord", kept, program)
    method = Runtime.get().load_program(program.buffer, verification=Verification.Minimal, enable_etdump=True, debug_buffer_size=int(1e7))
    method.load_method("forward").execute([x])
    method.write_etdump_result_to_file(folder + "/etdump", folder + "/buffer")
    executorch.record(folder + "/etdump", folder + "/etrecord", folder + "/device", folder + "/buffer")
    return right, x, place


def strip(folder):
    """Of the recordings that a fixture is made of, what is of the machine where they were made goes: stacks, roots."""
    import glob
    import msgpack
    for path in glob.glob(folder + "/**/*.acc", recursive=True):
        with open(path, "rb") as f:
            records = list(msgpack.Unpacker(f))
        records = [r for r in records if r[0] != "stack"]
        for kind, r in records:
            for k in ("stack", "stack_from", "root", "host", "log") if kind != "acc" else ():
                r.pop(k, None)
            if kind == "acc":
                r["log"] = ["adapters.py"]
            if kind == "end":
                r["n"] = len(records) - 2
        with open(path, "wb") as f:
            f.write(b"".join(map(msgpack.packb, records)))


for engine in sys.argv[2:]:
    if engine == "strip":
        strip(sys.argv[1])
        continue
    for side in "right", "wrong":
        folder = "%s/%s/%s" % (os.path.abspath(sys.argv[1]), engine, side)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        m, x, place = globals()[engine](folder, side == "wrong")
        bench(m, x, folder + "/bench")
        print(engine, side, place, flush=True)
