#!/bin/sh
# ml_dtypes 0.6.0 with numpy 2.4.6: np.sort and np.argsort of bfloat16, float8 and other types of its own leave an array that
# holds a NaN as it was, though argmax and max see the NaN: numpy's own types sort it last. Ranks, quantiles and thresholds
# taken of such an array are those of no order.
# Seen on 2026-11-29:
#   bfloat16 [3.0, nan, 1.0, 2.0]   float16 [1.0, 2.0, 3.0, nan]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
x = np.array([3, np.nan, 1, 2], dtype="f4")
for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
    y = x.astype(getattr(ml_dtypes, name))
    print(name, np.sort(y).astype("f4").tolist(), np.argsort(y).tolist())
    assert str(np.sort(y).astype("f4").tolist()) == "[3.0, nan, 1.0, 2.0]" and np.argsort(y).tolist() == [0, 1, 2, 3]
    assert y.argmax() == 1 and np.isnan(y.max().astype("f4"))
    assert np.sort(y[[0, 2, 3]]).astype("f4").tolist() == [1, 2, 3]
print("float16", np.sort(x.astype("f2")).tolist())
assert str(np.sort(x.astype("f2")).tolist()) == "[1.0, 2.0, 3.0, nan]"
END
