#!/bin/sh
# Keras 3.15.1: one function, two defaults. keras.ops.gelu(x) is the tanh form, keras.activations.gelu(x) and
# Dense(activation="gelu") the erf form; keras.activations.leaky_relu(x) has a slope of 0.2 and keras.layers.LeakyReLU() one
# of 0.3 (torch 0.01 in both). A network that is moved from layers to functions, with no argument changed, is another.
# Seen on 2026-11-29 (jax 0.10.2, CPU): gelu(1) 0.841192 of ops and 0.841345 of activations; leaky_relu(-1) -0.2 and -0.3
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q keras==3.15.1 jax==0.10.2
cd "$tmp"
KERAS_BACKEND=jax KERAS_HOME="$tmp" "$tmp/v/bin/python" -W ignore - <<'END2'
import keras
import numpy as np

one, minus = np.ones(1, "f4"), -np.ones(1, "f4")
ops, act = float(keras.ops.gelu(one)[0]), float(keras.activations.gelu(one)[0])
slope, layer = float(keras.activations.leaky_relu(minus)[0]), float(keras.layers.LeakyReLU()(minus)[0])
print("gelu(1): ops %.6f, activations %.6f; leaky_relu(-1): activations %g, layers %g" % (ops, act, slope, layer))
assert abs(ops - 0.841192) < 1e-6 and abs(act - 0.841345) < 1e-6
assert abs(slope + 0.2) < 1e-6 and abs(layer + 0.3) < 1e-6
END2
