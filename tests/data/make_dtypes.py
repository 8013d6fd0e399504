#!/usr/bin/python3
"""Every code of the small formats of ml_dtypes as the bits of the double, in the order of include/acc/tensor.h:
python3 tests/data/make_dtypes.py writes tests/data/dtypes_ml.bin again (ml_dtypes 0.6), and with "pt" tests/data/dtypes/
(PyTorch 2.15)."""
import sys

if sys.argv[1:] == ["pt"]:
    import torch
    torch.save({"x": torch.quantize_per_tensor(torch.arange(8.0).reshape(2, 4), 1.0, 0, torch.quint4x2)},
               "tests/data/dtypes/quint4x2.pt")
    sys.exit()

import ml_dtypes
import numpy as np

NAMES = ["float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]

with open("tests/data/dtypes_ml.bin", "wb") as f:
    for name in NAMES:
        # Of a byte, those of 6 and 4 bits are the low ones.
        codes = (np.arange(256) % 2 ** int(name[5])).astype(np.uint8).view(getattr(ml_dtypes, name))
        f.write(codes.astype(np.float64).astype("<f8").tobytes())
