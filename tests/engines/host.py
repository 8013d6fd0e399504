#!/usr/bin/env python3
"""A network that runs on from what it is fed, in plain Python, for tests of accreplace: 24 calls on 2 x 4 x 4 x 3
numbers, each also of the one two before.

host.py save FILE.npz BAD,...     its tensors; the calls BAD are wrong; those behind the comma of --last, channels last
host.py bench FOLDER              the right ones, as hooks save them, channels first
host.py run BAD,...               0: fed from ACC_FEED it ends as the right one does, 1: it does not
"""
import array
import ast
import math
import os
import struct
import sys
import zipfile
from urllib.parse import quote

N, SHAPE = 24, (2, 3, 4, 4)
SIZE = math.prod(SHAPE)
NAMES = ["in/%d" % i if i % 3 else "../../it's \N{GREEK SMALL LETTER MU}:%d" % i for i in range(N)]
LAST = os.environ.get("HOST_LAST") == "1"


def turn(v, back=False):
    """N, C, H, W to N, H, W, C, or back."""
    n, c, h, w = SHAPE
    order = [((i * c + k) * h + y) * w + x for i in range(n) for y in range(h) for x in range(w) for k in range(c)]
    out = [0.0] * SIZE
    for to, at in enumerate(order):
        out[at if back else to] = v[to if back else at]
    return out


def npy(v, shape):
    head = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + array.array("f", v).tobytes()


def load(path):
    with open(path, "rb") as f:
        b = f.read()
    n = struct.unpack("<H", b[8:10])[0]
    head = ast.literal_eval(b[10:10 + n].decode())
    assert head["descr"] == "<f4" and not head["fortran_order"]
    assert head["shape"] == ((2, 4, 4, 3) if LAST else SHAPE), head
    v = array.array("f", b[10 + n:]).tolist()
    return turn(v, True) if LAST else v


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def net(bad=(), feed=None):
    x = [f32(math.sin(1 + 7 * i)) for i in range(SIZE)]
    before, out = x, []
    for k in range(N):
        y = [f32(math.sin(a * 1.3 + k + j % 5) + 0.3 * b) * (1.02 if k in bad else 1) for j, (a, b) in enumerate(zip(x, before))]
        path = feed and os.path.join(feed, quote(NAMES[k], safe="_.:+-,=@").replace("..%2F", "%2E.%2F", 1) + ".npy")
        if path and os.path.exists(path):
            y = load(path)
        before, x = x, [f32(v) for v in y]
        out.append(x)
    return out


def main():
    what = sys.argv[1]
    bad = {int(v) for v in (sys.argv[-1] if what != "bench" else "").split(",") if v}
    if what == "save":
        with zipfile.ZipFile(sys.argv[2], "w") as z:
            for name, v in zip(NAMES, net(bad)):
                z.writestr(name + ".npy", npy(turn(v), (2, 4, 4, 3)) if LAST else npy(v, SHAPE))
    elif what == "bench":
        os.mkdir(sys.argv[2])
        for k, v in enumerate(net()):
            with open("%s/%05d-layer.%d-out.0.npy" % (sys.argv[2], k, k), "wb") as f:
                f.write(npy(v, SHAPE))
    else:
        a, b = net(bad, os.environ["ACC_FEED"])[-1], net()[-1]
        sys.exit(int(max(abs(p - q) for p, q in zip(a, b)) > 1e-5))


main()
