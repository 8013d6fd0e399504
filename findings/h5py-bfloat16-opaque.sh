#!/bin/sh
# h5py 3.16.0 with ml_dtypes 0.5.4: an array of bfloat16, float8_e4m3fn or int4 is taken without a word and stored as an HDF5
# opaque type of one or two bytes, without a tag that names it: who reads the file gets V2 or V1, from which nothing says that
# it was bfloat16. float8_e5m2 alone is refused (TypeError).
# Seen on 2026-11-28 with numpy 2.4.6:
#   bfloat16 is read as |V2, opaque, tag b''
#   float8_e5m2: TypeError
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q h5py==3.16.0 numpy==2.4.6 ml_dtypes==0.5.4
cd "$tmp"
"$tmp/v/bin/python" - <<'END'
import h5py
import ml_dtypes
import numpy as np
for name, seen in (("bfloat16", "|V2"), ("float8_e4m3fn", "|V1"), ("int4", "|V1")):
    x = np.array([1, 2, -3], dtype="f4").astype(getattr(ml_dtypes, name))
    with h5py.File("x.h5", "w") as f:
        f["x"] = x
    with h5py.File("x.h5") as f:
        kind, got = f["x"].id.get_type(), f["x"][...]
        print(f"{name} is read as {got.dtype.str}, opaque, tag {kind.get_tag()}")
        assert kind.get_class() == h5py.h5t.OPAQUE and got.dtype.str == seen and got.tobytes() == x.tobytes()
        assert b"float" not in kind.get_tag() and b"int4" not in kind.get_tag()
try:
    with h5py.File("x.h5", "w") as f:
        f["x"] = np.ones(3, dtype=ml_dtypes.float8_e5m2)
except TypeError:
    print("float8_e5m2: TypeError")
else:
    raise AssertionError("float8_e5m2 is taken now")
END
