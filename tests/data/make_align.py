#!/usr/bin/python3
"""Streams for the tests of accalign, written by another implementation than ours
(python3-msgpack): python3 tests/data/make_align.py writes tests/data/align/*.acc again."""
import os

import msgpack

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "align")
os.makedirs(here, exist_ok=True)


def stream(name, records, status=0, log=("made by hand",)):
    with open(os.path.join(here, name + ".acc"), "wb") as f:
        f.write(msgpack.packb(["acc", {"v": 1, "minor": 0, "log": list(log)}]))
        for kind, fields in records:
            f.write(msgpack.packb([kind, fields]))
        f.write(msgpack.packb(["end", {"n": len(records), "st": status}]))


def tensor(src, seq, op, call, io="in", pos="0", **more):
    way = {"in": "input", "out": "output", "kw": "kwargs"}[io]
    key = "%s.%d.forward" % (op, call)
    return ("tensor", dict({"name": "%s.%s.%s" % (key, way, pos), "src": src, "seq": seq, "step": 0,
                            "rank": 0, "key": key, "op": op, "call": call, "pass": "forward", "io": io,
                            "pos": pos, "type": "torch.Tensor", "dtype": "f32", "shape": [2, 3],
                            "requires_grad": True}, **more))


def data(src, seq, off, payload):
    return ("data", {"src": src, "seq": seq, "off": off, "data": payload})


A, B = "aaaaaaaa", "bbbbbbbb"

# What travels with the tensors: sources, stacks, unknown kinds and keys, payload, curves and
# parameters. The bench lacks mul.1 and has exp.0; the data type of add's output differs.
stream("device", [
    ("source", {"id": A, "root": "/a", "framework": "pytorch"}),
    ("stack", {"id": "0" * 16, "frames": ["f"]}),
    tensor(A, 0, "Torch.mul", 0, stack="0" * 16, x_mine=[1, 2]),
    tensor(A, 1, "Torch.mul", 0, "out"),
    ("x-mine", {"name": "kept"}),
    tensor(A, 2, "Torch.mul", 1),
    tensor(A, 3, "Torch.add", 0, requires_grad=False),
    tensor(A, 4, "Torch.add", 0, "out", dtype="bf16", shape=[3, 2]),
    ("scalar", {"tag": "loss", "step": 1, "value": 0.5}),
    ("scalar", {"tag": "loss", "step": 2, "value": 0.25}),
    ("param", {"key": "lr", "value": 0.1}),
    data(A, 0, 0, b"first"),
    data(A, 1, 0, b"second"),
], log=("the device",))
stream("bench", [
    ("source", {"id": B, "root": "/b", "framework": "pytorch"}),
    tensor(B, 0, "Torch.mul", 0),
    tensor(B, 1, "Torch.mul", 0, "out"),
    tensor(B, 2, "Torch.exp", 0),
    tensor(B, 3, "Torch.add", 0),
    tensor(B, 4, "Torch.add", 0, "out"),
    ("param", {"key": "seed", "value": 1}),
    ("param", {"key": "lr", "value": 0.2}),
    ("scalar", {"tag": "loss", "step": 2, "value": 0.25}),
    ("scalar", {"tag": "loss", "step": 3, "value": 0.125}),
    data(B, 3, 0, b"third"),
], log=("the bench", "twice"))

one = ("source", {"id": A, "root": "/a"}), tensor(A, 0, "Torch.mul", 0)
stream("status-1", one, status=1)
stream("status-2", one, status=2)
stream("pairs", [("pair", {"name": "x", "a.kind": "tensor", "how": "only-a"})])
stream("late", [*one, data(A, 0, 0, b"x"), tensor(A, 1, "Torch.mul", 1)])
stream("empty", [])
