"""The networks of models.py in Keras, by its functional interface, its own layers where it has them; with torch's weights and
faults. record() gives the output of every operation of the model, by its name."""
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
import jax
import keras
import numpy as np
import torch
from keras import layers, ops

jax.config.update("jax_default_matmul_precision", "highest")


def arr(t):
    return t.detach().numpy()


class Rms(layers.Layer):
    def __init__(self, m, **k):
        super().__init__(**k)
        self.m = m

    def call(self, x):
        return x * ops.rsqrt(ops.mean(x * x, -1, keepdims=True) + self.m.eps) * arr(self.m.weight)


class Half(layers.Layer):
    def __init__(self, f, **k):
        super().__init__(**k)
        self.f = f

    def call(self, x):
        half = lambda v: ops.cast(ops.cast(v, "float16"), "float32")
        y = ops.matmul(half(x), half(arr(self.f.weight).T))
        return half(y if self.f.bias is None else y + arr(self.f.bias))


class Build:
    def __init__(self):
        self.late = []  # weights can be set when the layer is built

    def layer(self, f, x, *weights):
        y = f(x)
        f.set_weights([arr(w) for w in weights])
        return y

    def linear(self, m, x, name):
        if hasattr(m, "f"):
            return Half(m.f, name=name)(x)
        weights = [m.weight.T] + ([] if m.bias is None else [m.bias])
        return self.layer(layers.Dense(m.weight.shape[0], use_bias=m.bias is not None, name=name), x, *weights)

    def norm(self, m, x, name):
        if not isinstance(m, torch.nn.LayerNorm):
            return Rms(m, name=name)(x)
        return self.layer(layers.LayerNormalization(epsilon=m.eps, name=name), x, m.weight, m.bias)

    def conv(self, m, x, name):
        if m.padding_mode == "reflect":
            x = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
        same = m.padding[0] > 0 and m.padding_mode != "reflect"
        f = layers.Conv2D(m.weight.shape[0], m.kernel_size, m.stride, "same" if same else "valid", name=name)
        y = self.layer(f, x, m.weight.permute(2, 3, 1, 0), m.bias)
        return y * m.gain if hasattr(m, "gain") else y

    def bn(self, m, x, name):
        return self.layer(layers.BatchNormalization(epsilon=m.eps, name=name), x, m.weight, m.bias, m.running_mean, m.running_var)

    def attention(self, m, x, name):
        d, t = 16, x.shape[1]
        heads = lambda y: ops.transpose(ops.reshape(y, (-1, t, y.shape[-1] // d, d)), (0, 2, 1, 3))
        if hasattr(m, "qkv"):
            q, k, v = map(heads, ops.split(self.linear(m.qkv, x, name + "_qkv"), 3, -1))
        else:
            q, k, v = (heads(self.linear(getattr(m, n), x, f"{name}_{n}")) for n in ("q", "k", "v"))
        if m.rope:
            angle = lambda i: np.tile(i[:, None] * 10000 ** (-np.arange(0, d, 2, dtype="f4") / d), 2).astype("f4")
            at = np.arange(t, dtype="f4")
            q = self.rotate(q, angle(at + (m.fault == "shift")), m.fault == "rope")
            k = self.rotate(k, angle(at), m.fault == "rope")
        k, v = (ops.repeat(y, q.shape[1] // y.shape[1], 1) if q.shape[1] > y.shape[1] else y for y in (k, v))
        s = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * d ** (-0.5 if m.fault != "scale" else -0.25)
        if m.causal and m.fault != "mask":
            s = s + np.triu(np.full((t, t), -1e9, "f4"), 1)
        y = ops.matmul(ops.softmax(s, -1), v)
        return self.linear(m.o, ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, t, q.shape[1] * d)), name + "_o")

    def rotate(self, x, angle, interleaved):
        cos, sin = np.cos(angle), np.sin(angle)
        if interleaved:
            y = ops.reshape(ops.stack((-x[..., 1::2], x[..., ::2]), -1), (-1, *x.shape[1:]))
        else:
            a, b = ops.split(x, 2, -1)
            y = ops.concatenate((-b, a), -1)
        return x * cos + y * sin

    def mlp(self, m, x, name):
        if hasattr(m, "gate"):
            return self.linear(m.down, ops.silu(self.linear(m.gate, x, name + "_gate")) * self.linear(m.up, x, name + "_up"), name + "_down")
        return self.linear(m.fc2, ops.gelu(self.linear(m.fc1, x, name + "_fc1"), approximate=m.tanh != (m.fault == "gelu")), name + "_fc2")

    def block(self, m, x, name):
        attn, mlp = (lambda x: self.attention(m.attn, x, name + "_attn")), (lambda x: self.mlp(m.mlp, x, name + "_mlp"))
        norm1, norm2 = (lambda x: self.norm(m.norm1, x, name + "_norm1")), (lambda x: self.norm(m.norm2, x, name + "_norm2"))
        if m.post:
            x = norm1(x + attn(x))
            return norm2(x + mlp(x))
        x = x + attn(norm1(x)) if not m.lost else attn(norm1(x))
        return x + mlp(norm2(x))

    def cnn(self, m, x):
        x = ops.relu(self.bn(m.b1, self.conv(m.c1, x, "c1"), "b1"))
        x = layers.MaxPooling2D(2, name="pool")(x)
        x = ops.silu(self.bn(m.b2, self.conv(m.c2, x, "c2"), "b2"))
        x = ops.gelu(self.conv(m.c3, x, "c3"), approximate=False)
        return self.linear(m.fc, ops.mean(x, (1, 2)), "fc")

    def embed(self, m, x, name):
        return self.layer(layers.Embedding(*m.weight.shape, name=name), x, m.weight)

    def network(self, m, x):
        if hasattr(m, "c1"):
            return self.cnn(m, x)
        if hasattr(m, "patch"):
            x = self.conv(m.patch, x, "patch")
            x = ops.reshape(x, (-1, x.shape[1] * x.shape[2], x.shape[3]))
            x = ops.concatenate((x[:, :1] * 0 + arr(m.cls), x), 1) + arr(m.place)
        else:
            n, ids = x.shape[1], x
            x = self.embed(m.embed, ids, "embed")
            if hasattr(m, "place"):
                x = x + arr(m.place.weight)[:n]
            if hasattr(m, "pool"):
                x = self.norm(m.norm, x, "norm")
        for i, f in enumerate(m.layers):
            x = self.block(f, x, f"layers_{i}")
        if hasattr(m, "pool"):
            return ops.tanh(self.linear(m.pool, x[:, 0], "pool"))
        x = self.norm(m.norm, x, "norm")
        return self.linear(m.head, x[:, 0] if hasattr(m, "patch") else x, "head")


def record(m, x):
    x = x.numpy()
    x = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x.astype("i4")
    keras.utils.clear_session()
    given = keras.Input(x.shape[1:], dtype=str(x.dtype))
    made = Build().network(m, given)
    model = keras.Model(given, made)
    some = [f for f in model.operations if isinstance(f.output, keras.KerasTensor) and f.output is not given]
    every = keras.Model(given, [f.output for f in some])
    out = {f.name: keras.ops.convert_to_numpy(y) for f, y in zip(some, every(x, training=False))}
    return out, keras.ops.convert_to_numpy(model(x, training=False))
