"""The networks of models.py in Flax, hand-written as a port is: its modules have torch's names and weights, and the faults
that the torch module has. record() gives what capture_intermediates saw, one array a module's call."""
import typing

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import linen as nn

HIGHEST = jax.lax.Precision.HIGHEST


def arr(t):
    return jnp.asarray(t.detach().numpy())


class Port(nn.Module):
    m: typing.Any


class Linear(Port):
    def __call__(self, x):
        f = getattr(self.m, "f", self.m)  # Half holds one
        w, b = arr(f.weight), None if f.bias is None else arr(f.bias)
        if f is not self.m:
            w, x = (v.astype(jnp.float16).astype(jnp.float32) for v in (w, x))
        y = jnp.matmul(x, w.T, precision=HIGHEST)
        y = y if b is None else y + b
        return y if f is self.m else y.astype(jnp.float16).astype(jnp.float32)


class Embed(Port):
    def __call__(self, ids):
        return arr(self.m.weight)[ids]


class Norm(Port):
    def __call__(self, x):
        m = self.m
        if isinstance(m, torch.nn.LayerNorm):
            x = x - x.mean(-1, keepdims=True)
        y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + m.eps) * arr(m.weight)
        return y + arr(m.bias) if isinstance(m, torch.nn.LayerNorm) else y


def rotate(x, cos, sin, interleaved):
    if interleaved:
        y = jnp.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
    else:
        a, b = jnp.split(x, 2, -1)
        y = jnp.concatenate((-b, a), -1)
    return x * cos + y * sin


def heads(y, n, d):
    return y.reshape(*y.shape[:2], n, d).transpose(0, 2, 1, 3)


def attend(m, q, k, v):
    """Of heads; what models.Attention does behind its products."""
    t, d = q.shape[2], q.shape[3]
    if m.rope:
        angle = (jnp.arange(t) + (m.fault == "shift")).astype(jnp.float32)[:, None] * 10000 ** (-jnp.arange(0, d, 2, dtype=jnp.float32) / d)
        angle = jnp.concatenate((angle, angle), -1)
        q = rotate(q, jnp.cos(angle), jnp.sin(angle), m.fault == "rope")
        angle = angle if m.fault != "shift" else angle - angle[:1]
        k = rotate(k, jnp.cos(angle), jnp.sin(angle), m.fault == "rope")
    k, v = (jnp.repeat(y, q.shape[1] // y.shape[1], 1) for y in (k, v))
    s = jnp.matmul(q, k.transpose(0, 1, 3, 2), precision=HIGHEST) * d ** (-0.5 if m.fault != "scale" else -0.25)
    if m.causal and m.fault != "mask":
        s = s + jnp.triu(jnp.full((t, t), -1e9), 1)
    y = jnp.matmul(jax.nn.softmax(s, -1), v, precision=HIGHEST).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1)


class Attention(Port):
    @nn.compact
    def __call__(self, x):
        m, d = self.m, 16
        if hasattr(m, "qkv"):
            q, k, v = (heads(y, x.shape[-1] // d, d) for y in jnp.split(Linear(m.qkv, name="qkv")(x), 3, -1))
        else:
            q, k, v = (heads(Linear(getattr(m, n), name=n)(x), getattr(m, n).weight.shape[0] // d, d) for n in ("q", "k", "v"))
        return Linear(m.o, name="o")(attend(m, q, k, v))


class Gated(Port):
    @nn.compact
    def __call__(self, x):
        m = self.m
        return Linear(m.down, name="down")(nn.silu(Linear(m.gate, name="gate")(x)) * Linear(m.up, name="up")(x))


class Mlp(Port):
    @nn.compact
    def __call__(self, x):
        m = self.m
        return Linear(m.fc2, name="fc2")(nn.gelu(Linear(m.fc1, name="fc1")(x), approximate=m.tanh != (m.fault == "gelu")))


class Block(Port):
    @nn.compact
    def __call__(self, x):
        m = self.m
        norm1, norm2, attn = Norm(m.norm1, name="norm1"), Norm(m.norm2, name="norm2"), Attention(m.attn, name="attn")
        mlp = (Gated if hasattr(m.mlp, "gate") else Mlp)(m.mlp, name="mlp")
        if m.post:
            x = norm1(x + attn(x))
            return norm2(x + mlp(x))
        x = x + attn(norm1(x)) if not m.lost else attn(norm1(x))
        return x + mlp(norm2(x))


class Conv(Port):
    """Channels last, as Flax' own."""

    def __call__(self, x):
        m, p = self.m, self.m.padding
        pad = ((0, 0), (p[0], p[0]), (p[1], p[1]), (0, 0))
        x = jnp.pad(x, pad, mode="reflect" if m.padding_mode == "reflect" else "constant")
        y = jax.lax.conv_general_dilated(x, arr(m.weight), m.stride, "VALID", dimension_numbers=("NHWC", "OIHW", "NHWC"), precision=HIGHEST)
        return (y + arr(m.bias)) * getattr(m, "gain", 1)


class BatchNorm(Port):
    def __call__(self, x):
        m = self.m
        return (x - arr(m.running_mean)) * jax.lax.rsqrt(arr(m.running_var) + m.eps) * arr(m.weight) + arr(m.bias)


class Cnn(Port):
    @nn.compact
    def __call__(self, x):
        m = self.m
        x = nn.relu(BatchNorm(m.b1, name="b1")(Conv(m.c1, name="c1")(x)))
        x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.silu(BatchNorm(m.b2, name="b2")(Conv(m.c2, name="c2")(x)))
        x = nn.gelu(Conv(m.c3, name="c3")(x), approximate=False)
        return Linear(m.fc, name="fc")(x.mean((1, 2)))


class Network(Port):
    @nn.compact
    def __call__(self, x):
        m = self.m
        if hasattr(m, "patch"):
            x = Conv(m.patch, name="patch")(x)
            x = x.reshape(x.shape[0], -1, x.shape[-1])
            x = jnp.concatenate((jnp.broadcast_to(arr(m.cls), (x.shape[0], 1, x.shape[-1])), x), 1) + arr(m.place)
        else:
            n = x.shape[1]
            x = Embed(m.embed, name="embed")(x)
            if hasattr(m, "place"):
                x = x + Embed(m.place, name="place")(jnp.arange(n))
            if hasattr(m, "pool"):
                x = Norm(m.norm, name="norm")(x)
        for i, f in enumerate(m.layers):
            x = Block(f, name=f"layers_{i}")(x)
        if hasattr(m, "pool"):
            return jnp.tanh(Linear(m.pool, name="pool")(x[:, 0]))
        x = Norm(m.norm, name="norm")(x)
        return Linear(m.head, name="head")(x[:, 0] if hasattr(m, "patch") else x)


def record(m, x):
    x = jnp.asarray(x.numpy())
    x = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
    net = Network(m) if not hasattr(m, "c1") else Cnn(m)
    y, state = net.apply({}, x, capture_intermediates=True)
    made = jax.tree_util.tree_flatten_with_path(state["intermediates"])[0]
    return {".".join(str(getattr(p, "key", getattr(p, "idx", p))) for p in k): np.asarray(v) for k, v in made}, np.asarray(y)
