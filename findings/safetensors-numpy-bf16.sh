#!/bin/sh
# safetensors 0.8.0, safetensors.numpy: with ml_dtypes 0.5.4, save() takes arrays of bfloat16 and of float8 and writes a right
# file (BF16, F8_E4M3, F8_E5M2, F8_E8M0), which load() of the same module cannot read: KeyError, the name of the dtype alone.
# Who sees it takes the file for broken; it is not.
# Seen on 2026-11-28 with numpy 2.4.6:
#   bfloat16: written as BF16; load: KeyError 'BF16'
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q safetensors==0.8.0 numpy==2.4.6 ml_dtypes==0.5.4
"$tmp/v/bin/python" - <<'END'
import json
import struct

import ml_dtypes
import numpy as np
from safetensors.numpy import load, save
for name, tag in (("bfloat16", "BF16"), ("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2"), ("float8_e8m0fnu", "F8_E8M0")):
    x = np.array([1, 2, 4], dtype="f4").astype(getattr(ml_dtypes, name))
    file = save({"x": x})
    n = struct.unpack("<Q", file[:8])[0]
    assert json.loads(file[8:8 + n])["x"]["dtype"] == tag and file[8 + n:] == x.tobytes()
    try:
        load(file)
    except KeyError as e:
        print(f"{name}: written as {tag}; load: KeyError {e}")
        assert e.args == (tag,)
    else:
        raise AssertionError(name + " is read now")
END
