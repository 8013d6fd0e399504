# pip: jax==0.10.0 flax==0.12.0 optax==0.2.8 numpy==2.4.6 ml_dtypes==0.6.0
"""JAX, flax, optax on the CPU."""
import math

import jax
import jax.numpy as jnp
import numpy as np

from tools import behaviour, main


@behaviour
def jax_flushes_subnormals():
    x = jnp.array([1e-40], dtype=jnp.float32)
    assert np.asarray(x)[0] != 0 and np.asarray(jnp.concatenate([x, x]))[0] != 0
    assert np.asarray(x * 1.5)[0] == 0 and np.float32(1e-40) * np.float32(1.5) != 0


@behaviour
def flax_fast_variance():
    from flax import linen
    x = jnp.array([[4096.0, 4096.25, 4096.5, 4096.75]], dtype=jnp.float32)
    net = linen.LayerNorm(use_bias=False, use_scale=False)
    y = np.asarray(net.apply({}, x))
    z = np.asarray(linen.LayerNorm(use_bias=False, use_scale=False, use_fast_variance=False).apply({}, x))
    assert abs(z[0, 0] + 1.34) < 0.01 and abs(y[0, 0] / z[0, 0] - 1) > 0.05, (y, z)


@behaviour
def jax_debug_callback_order():
    seen = []

    @jax.jit
    def f(x):
        a = jnp.sin(x)
        jax.debug.callback(lambda v: seen.append("a"), a)
        b = jnp.cos(a)
        jax.debug.callback(lambda v: seen.append("b"), b)
        return jax.vmap(lambda v: jax.lax.cond(v > 0, lambda u: (jax.debug.callback(lambda w: seen.append("+"), u), u)[1],
                                               lambda u: (jax.debug.callback(lambda w: seen.append("-"), u), u)[1], v))(b)
    f(jnp.ones(2)).block_until_ready()
    jax.effects_barrier()
    assert seen.count("+") == 2 and seen.count("-") == 2, seen


@behaviour
def jax_casts_saturate():
    x = jnp.array([300.0, -300.0, jnp.nan])
    assert np.asarray(x.astype(jnp.int8)).tolist() == [127, -128, 0]
    assert np.isnan(np.asarray(jnp.array([1e9]).astype(jnp.float8_e4m3fn)).astype("f4")).all()


@behaviour
def optax_clip_f16():
    import optax
    g = {"w": jnp.full((4,), 300.0, dtype=jnp.float16)}
    t = optax.clip_by_global_norm(1.0)
    u, _ = t.update(g, t.init(g))
    assert np.asarray(u["w"]).tolist() == [0, 0, 0, 0], u


@behaviour
def flax_scan_drops_intermediates():
    from flax import linen

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, _):
            x = linen.Dense(3)(x)
            self.sow("intermediates", "h", x)
            return x, None

    class Net(linen.Module):
        axes: dict

        @linen.compact
        def __call__(self, x):
            return linen.scan(Layer, variable_axes=self.axes, split_rngs={"params": True}, length=2)()(x, None)[0]
    x, n = jnp.ones((1, 3)), []
    for axes in ({"params": 0}, {"params": 0, "intermediates": 0}):
        net = Net(axes)
        v = net.init(jax.random.PRNGKey(0), x)
        _, s = net.apply({"params": v["params"]}, x, mutable=["intermediates"])
        n.append([np.shape(a) for a in jax.tree_util.tree_leaves(s)])
    assert n == [[], [(2, 1, 3)]], n


@behaviour
def jax_draws_by_dtype():
    key = jax.random.key(0)
    a, b = jax.random.normal(key, (64,)).astype(jnp.bfloat16), jax.random.normal(key, (64,), jnp.bfloat16)
    assert (a == b).mean() < 0.1, (a, b)


@behaviour
def jax_attention_masked_row():
    q = jnp.arange(8.0).reshape(1, 2, 1, 4)
    y = jax.nn.dot_product_attention(q, q, q, mask=jnp.zeros((1, 1, 2, 2), bool))
    assert np.allclose(y[0, :, 0], q[0, :, 0].mean(0)), y


@behaviour
def torch_clamp_gradient():
    g = jax.grad(lambda x: jnp.clip(x, 0.0, 1.0).sum())(jnp.array([0.0, 0.5, 1.0]))
    assert g.tolist() == [0.5, 1, 0.5], g


@behaviour
def flax_embed_outside():
    from flax import linen
    table = {"params": {"embedding": jnp.arange(6.0).reshape(3, 2)}}
    y = np.asarray(linen.Embed(3, 2).apply(table, jnp.array([-1, 7])))
    assert y[0].tolist() == [4, 5] and np.isnan(y[1]).all(), y


@behaviour
def flax_promotes_bf16():
    from flax import linen
    x = jnp.ones((2, 4), jnp.bfloat16)
    for m in linen.Dense(3), linen.LayerNorm():
        y = m.apply(m.init(jax.random.key(0), x), x)
        assert y.dtype == jnp.float32, y.dtype


@behaviour
def flax_attention_softmax_bf16():
    from flax import linen
    q = jnp.ones((1, 2, 1, 4), jnp.bfloat16)
    exps = [s for s in str(jax.make_jaxpr(lambda x: linen.dot_product_attention(x, x, x))(q)).splitlines() if "= exp" in s]
    assert len(exps) == 1 and "bf16[" in exps[0], exps


@behaviour
def optax_moments_two_dtypes():
    import optax
    t, p = optax.adam(1e-3), {"w": jnp.ones(4, jnp.bfloat16)}
    s = t.init(p)
    assert s[0].mu["w"].dtype == s[0].nu["w"].dtype == jnp.bfloat16
    _, s = t.update({"w": jnp.ones(4)}, s, p)
    assert s[0].mu["w"].dtype == jnp.float32 and s[0].nu["w"].dtype == jnp.bfloat16, s


@behaviour
def jax_norm_f16():
    x = jnp.zeros(4096, jnp.float16).at[0].set(256)
    assert jnp.linalg.norm(x) == jnp.inf and jnp.linalg.norm(x.astype(jnp.float32)) == 256
    assert jnp.mean(jnp.full(4096, 300, jnp.float16)) == 300


@behaviour
def jax_softmax_where():
    keep = jnp.array([[True] * 3, [False] * 3])
    assert jax.nn.softmax(jnp.ones((2, 3)), where=keep)[1].tolist() == [0, 0, 0]
    assert jnp.isnan(jax.nn.softmax(jnp.where(keep, 1.0, -jnp.inf))[1]).all()


@behaviour
def jax_erfc_coarse():
    x = jax.random.normal(jax.random.key(0), (20000,)) * 3
    def off(got, f):
        right = np.array([f(float(v)) for v in x])
        large = np.abs(right) > 1e-30
        return (np.abs(np.asarray(got, "f8") - right) / np.spacing(np.abs(right).astype("f4")).astype("f8"))[large].max()
    assert off(jax.lax.erfc(x), math.erfc) > 30 and off(jax.nn.gelu(x, approximate=False), lambda v: v / 2 * math.erfc(-v / math.sqrt(2))) > 30
    assert off(jax.lax.erf(x), math.erf) < 8 and off(jnp.tanh(x), math.tanh) < 8


if __name__ == "__main__":
    main()
