#!/bin/sh
# safetensors 0.8.0, safetensors.numpy: an array that is not in C order is written as its memory lies, under its logical shape,
# and nobody is told: of a.T what comes back is not a.T. (safetensors.torch refuses such a tensor.) Whoever dumps weights as
# w.T, or in Fortran order, gets a checkpoint of other values, which every reader reads alike.
# Seen on 2026-11-28 with numpy 2.4.6:
#   [[0, 3], [1, 4], [2, 5]] comes back as [[0, 1], [2, 3], [4, 5]]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q safetensors==0.8.0 numpy==2.4.6
"$tmp/v/bin/python" - <<'END'
import numpy as np
from safetensors.numpy import load, save
a = np.arange(6, dtype="f4").reshape(2, 3)
for x in (a.T, np.asfortranarray(a)):
    y = load(save({"x": x}))["x"]
    print(x.tolist(), "comes back as", y.tolist())
    assert y.shape == x.shape and not np.array_equal(x, y)
    assert y.ravel().tolist() == x.ravel(order="K").tolist()
assert np.array_equal(load(save({"x": np.ascontiguousarray(a.T)}))["x"], a.T)
END
