#!/bin/sh
# orbax-checkpoint 0.12.8 with JAX 0.10.2: restored into a target of another dtype, a checkpoint is converted without a word,
# float32 even into int32, where 0.9 becomes 0; only another shape is refused. Without a target the named tuples of an
# optimizer's state come back as lists and dictionaries, so that the same state has other names before and after.
# Seen on 2026-11-29:
#   float32 [0.9, 1.5] into int32: [0, 1], into bfloat16: [0.8984, 1.5]
#   optax.adam's state: list of dict, None
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q orbax-checkpoint==0.12.8 jax==0.10.2 optax==0.2.8 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import logging
import os

logging.disable(logging.CRITICAL)
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
here = os.getcwd()
with ocp.StandardCheckpointer() as c:
    state = optax.adam(1e-3).init({"w": jnp.ones(2)})
    c.save(here + "/a", {"w": np.array([0.9, 1.5], dtype="f4"), "s": state})
    c.wait_until_finished()
    for t in (jnp.int32, jnp.bfloat16):
        got = c.restore(here + "/a", {"w": jnp.zeros(2, t), "s": state})["w"]
        print("float32 [0.9, 1.5] into", got.dtype, np.asarray(got).astype("f4").tolist())
        assert got.dtype == t
        assert t != jnp.int32 or np.asarray(got).tolist() == [0, 1]
    s = c.restore(here + "/a")["s"]
print("optax.adam's state:", type(state).__name__, type(state[0]).__name__, "is then", type(s).__name__, type(s[0]).__name__)
assert type(s) is list and type(s[0]) is dict and sorted(s[0]) == ["count", "mu", "nu"]
END
