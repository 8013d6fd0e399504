#!/bin/sh
# gguf 0.19.0: the scale of a block is kept in float16, so what Q8_0 loses depends on how large the weights are: of a block
# whose largest is 1e-5 a quarter of it, below 3e-6 everything, while a block about 1 loses 0.3 %. Weights above 8e6 come back
# infinite. MXFP4, whose scale is a power of two, does not, but takes a NaN and gives a finite number, which the other types do
# not.
# Seen on 2026-11-29:
#   Q8_0: 1 loses 0.0026, 1e-05 loses 0.259, 1e-07 loses 1, 1e+07 is infinite
#   MXFP4: 1e-07 loses 0.145; a NaN is finite; Q8_0: its block is NaN
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q gguf==0.19.0 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants


def again(x, t):
    return quants.dequantize(quants.quantize(x.reshape(1, -1).astype("f4"), t), t)[0]


def lost(size, t):
    x = np.linspace(-size, size, 256).astype("f4")
    return float(np.abs(again(x, t) - x).max() / size)


got = {s: lost(s, Type.Q8_0) for s in (1, 1e-5, 1e-7, 1e7)}
print("Q8_0:", got)
assert got[1] < 0.005 and 0.2 < got[1e-5] < 0.3 and got[1e-7] == 1 and np.isinf(got[1e7])
small = lost(1e-7, Type.MXFP4)
print("MXFP4: 1e-07 loses", small)
assert 0.1 < small < 0.2
x = np.linspace(-1, 1, 32)
x[3] = np.nan
print("of a block with a NaN finite: MXFP4", np.isfinite(again(x, Type.MXFP4)).sum(), "Q8_0", np.isfinite(again(x, Type.Q8_0)).sum())
assert np.isfinite(again(x, Type.MXFP4)).all() and np.isnan(again(x, Type.Q8_0)).all()
END
