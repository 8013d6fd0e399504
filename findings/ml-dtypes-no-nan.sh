#!/bin/sh
# ml_dtypes 0.5.4: what a dtype of few bits has no place for becomes something else by each dtype's own rule. NaN in
# float4_e2m1fn is -0.0, in int4 0; infinity saturates in float4 (6), is NaN in float8_e4m3fn and in float8_e8m0fnu; a negative
# number is NaN in float8_e8m0fnu. So a NaN that a quantizer is given is an ordinary zero behind it.
# Seen on 2026-11-28 with numpy 2.4.6 (NaN, inf, -inf, -1):
#   float4_e2m1fn [-0.0, 6.0, -6.0, -1.0]   int4 [0.0, 0.0, 0.0, -1.0]
#   float8_e4m3fn [nan, nan, nan, -1.0]     float8_e8m0fnu [nan, nan, nan, nan]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.5.4
"$tmp/v/bin/python" -W ignore - <<'END'
import ml_dtypes
import numpy as np
x = np.array([np.nan, np.inf, -np.inf, -1], dtype="f4")
expected = {"float4_e2m1fn": "[-0.0, 6.0, -6.0, -1.0]", "int4": "[0.0, 0.0, 0.0, -1.0]",
            "float8_e4m3fn": "[nan, nan, nan, -1.0]", "float8_e8m0fnu": "[nan, nan, nan, nan]"}
for name, seen in expected.items():
    got = str(x.astype(getattr(ml_dtypes, name)).astype("f4").tolist())
    print(name, got)
    assert got == seen, (name, got)
END
