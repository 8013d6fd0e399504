#!/bin/sh
# optax 0.2.8: softmax_cross_entropy_with_integer_labels has no label that is left out. -1 is the last class, as an index of
# numpy is, so that padding trains towards the last token of the vocabulary; -100 and what is beyond the classes is NaN. mlx
# 0.32.4 takes any of them for some class. Ports of losses that pad by -1 or -100 are wrong in silence, or NaN.
# Seen on 2026-11-29:
#   optax: -1 0.4076 (as class 2), -100 nan, 7 nan
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q optax==0.2.8 jax==0.10.2 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import jax.numpy as jnp
import numpy as np
import optax
scores = jnp.array([[1.0, 2.0, 3.0]])
got = {label: float(optax.softmax_cross_entropy_with_integer_labels(scores, jnp.array([label]))[0]) for label in (2, -1, -100, 7)}
print(got)
assert got[-1] == got[2] and np.isnan(got[-100]) and np.isnan(got[7])
END
