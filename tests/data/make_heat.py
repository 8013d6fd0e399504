#!/usr/bin/env python3
"""Two folders of .npy, a and b, for tests/accplot.bats: where they differ is known by construction."""
import os
import struct


def npy(path, shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%df" % len(values), *values))


for side in "ab":
    os.makedirs(side, exist_ok=True)
    x = [2.0, -2.0] * 12
    long = [1.0] * 3000
    if side == "a":
        x[2 * 4 + 1] += 1
        x[3 * 4 + 2] += 0.1
        x[5 * 4 + 3] = float("nan")
        long[999 * 3 + 2] = 3.0
    npy(side + "/x.npy", (2, 3, 4), x)
    npy(side + "/long.npy", (1000, 3), long)
    npy(side + "/other.npy", (2,) if side == "a" else (3,), [1.0] * (2 if side == "a" else 3))
