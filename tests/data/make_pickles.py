#!/usr/bin/python3
"""Makes tests/data/pickles.txt: lines of a pickle in hex, a tab, and the tree it stands for.
For developers only: neither building nor testing runs it.

The tree comes from Python's own unpickler, with every class replaced by one that notes how it
is called. Written as: N T F, 12, 1.5, L:hex (an integer beyond 64 bits, little-endian), s:hex,
b:hex, [list], (tuple), {set}, <dict key value>, @module.name, #persistent id,
!@name(args)=state+[appended]+<set>.
"""
import argparse
import collections
import datetime
import io
import os
import pickle
import struct
import sys

import numpy as np

sys.dont_write_bytecode = True
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pickles.txt")


class Name:
    def __init__(self, module, name):
        self.text = f"@{module}.{name}"

    def __call__(self, *args):
        return Made(self, args)


class Made:
    def __init__(self, name, args):
        self.name, self.args, self.state, self.items, self.pairs = name, args, None, None, None

    def __setstate__(self, state):
        self.state = (state,)

    def append(self, x):
        self.items = (self.items or []) + [x]

    def extend(self, xs):
        for x in xs:
            self.append(x)

    def __setitem__(self, k, v):
        self.pairs = (self.pairs or []) + [k, v]


class Persistent:
    def __init__(self, pid):
        self.pid = pid


class Reader(pickle._Unpickler):
    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return Name(module, name)

    def persistent_load(self, pid):
        return Persistent(pid)

    def make(self):
        args = self.stack.pop()
        self.stack.append(self.stack.pop()(*args))
    dispatch[pickle.NEWOBJ[0]] = make

    def make_ex(self):
        kwargs, args = self.stack.pop(), self.stack.pop()
        self.stack.append(self.stack.pop()(args, kwargs))
    dispatch[pickle.NEWOBJ_EX[0]] = make_ex

    def _instantiate(self, cls, args):
        self.append(cls(*args))


def long_bytes(v):
    n = (v.bit_length() + 8) // 8
    return v.to_bytes(n, "little", signed=True).hex()


def tree(o):
    if o is None:
        return "N"
    if isinstance(o, bool):
        return "T" if o else "F"
    if isinstance(o, int):
        return str(o) if -2**63 <= o < 2**63 else "L:" + long_bytes(o)
    if isinstance(o, float):
        return repr(o)
    if isinstance(o, str):
        return "s:" + o.encode("utf-8", "surrogatepass").hex()
    if isinstance(o, (bytes, bytearray)):
        return "b:" + o.hex()
    for kind, marks in ((list, "[]"), (tuple, "()"), (set, "{}"), (frozenset, "{}")):
        if isinstance(o, kind):
            return marks[0] + " ".join(tree(x) for x in o) + marks[1]
    if isinstance(o, dict):
        return "<" + " ".join(f"{tree(k)} {tree(v)}" for k, v in o.items()) + ">"
    if isinstance(o, Name):
        return o.text
    if isinstance(o, Persistent):
        return "#" + tree(o.pid)
    s = f"!{o.name.text}{tree(o.args)}"
    if o.state is not None:
        s += "=" + tree(o.state[0])
    if o.items is not None:
        s += "+" + tree(o.items)
    if o.pairs is not None:
        s += "+<" + " ".join(tree(x) for x in o.pairs) + ">"
    return s


class Items(list):
    pass


class Pairs(dict):
    pass


def objects():
    shared = ["x", (1,)]
    things = Items([1, 2])
    things.more = shared
    yield None
    yield [True, False, 0, 1, -1, 255, 256, 65535, 65536, -2**31, 2**31 - 1, 2**31, -2**31 - 1]
    yield [2**63 - 1, -2**63, 127, 128, -128, -129, 32767, -32768, 2**40, -2**40]
    yield [0.1, -0.0, 1e300, 5e-324, float("inf"), float("nan")]
    yield ["", "plain", "it's \"q\" \\ \n \r \t \0 \x7f", "é ÿ \u0100 \uffff \U0001f600",
           "\\u0041 \\", "\ud800", "x" * 260]
    yield [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [[]], {}, {"a": {"b": [1]}}]
    yield {1: "a", None: 2, (1, 2): 3.5, True: []}
    yield [shared, shared, (shared, shared)]
    yield [[] for i in range(260)]  # as many memo entries need the long opcodes
    yield {f"k{i}": (i, str(i)) for i in range(40)}
    yield [argparse.Namespace(a=1, b=[2]), datetime.datetime(2024, 1, 2, 3, 4, 5),
           collections.OrderedDict([("a", 1), ("b", 2)]), collections.defaultdict(list, x=[1]),
           complex(1, 2), things, Pairs(a=1), argparse.Namespace]
    yield [b"", b"abc\xff", bytearray(b"xy"), {7}, frozenset(["z"]), set()]
    yield np.arange(3, dtype=np.int16)


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


BY_HAND = [
    b"(I1\nI2\nimodule\nClass\n.", b"(cmodule\nClass\nI1\no.", b"(cmodule\nClass\no.",
    b"(I01\nI00\nI0\nI-7\nL12L\nL-3\nt.", b"S'a\\x41\\101\\n\\'\"\\\\'\n.", b'S"it\'s"\n.',
    b"S''\n.", b"Vraw \\u00e9 \xe9 \\U0001F600 \\x\n.", b"F1.5\n.", b"F-1e-5\n.",
    b"U\x02ab.", b"T\x02\0\0\0ab.", b"]2\x86.", b"I1\nI2\n0.",
    b"I1\n(I2\nI3\n1.", b"I1\n(0.", b"Pid 7\n.", b"U\x01aQ.", b"(I1\nI2\nd.", b"(I1\nI2\nl.",
    b"(lp5\nI1\nag5\n\x86.", b"}r\x07\0\0\0I1\nI2\nsj\x07\0\0\0\x86.",
    b"\x8a\x00.", b"\x8a\x01\xff.", b"\x8a\x08" + u64(2**63) + b".", b"\x8b" + u32(2) + b"\0\x01.",
    b"\x8a\x09" + u64(2**64 - 1) + b"\0.",
    b"\x80\x04\x8f(K\x01\x90(K\x02\x91\x86.", b"\x80\x04\x8d" + u64(2) + b"ab.",
    b"\x80\x04\x8e" + u64(2) + b"a\xff.", b"\x80\x05\x96" + u64(1) + b"\xfe.",
    b"\x80\x04B" + u32(1) + b"z.", b"\x80\x04\x8c\x03mod\x8c\x05A.Bcd\x93.",
    b"\x80\x04\x8c\x03mod\x94\x8c\x01C\x94\x93\x94h\x00h\x01h\x02\x87.",
    b"\x80\x04cmod\nC\n)}\x92.", b"\x80\x04cmod\nC\n(K\x01t}\x8c\x01aK\x02s\x92.",
    b"cmod\nC\n)\x81}(U\x01aI1\nub.", b"cmod\nC\n)\x81(I1\nI2\nl(I3\nI4\ne.",
    b"cmod\nC\n)\x81(I1\nI2\neI3\na.", b"cmod\nC\n)\x81(I1\nI2\nu.",
    b"\x80\x04K\x01q\x00K\x02q\x00K\x03\x94h\x01\x87.",  # MEMOIZE counts entries, not writes
    b"\x80\x04\x95" + u64(2) + b"K\x01.", b"cmod\nC\n.", b"cmod\nC\n)RI5\nb.",
]


def main():
    with open(OUT, "w") as f:
        def put(data):
            data = bytes(data)
            r = Reader(io.BytesIO(data), encoding="latin-1")
            f.write(f"{data.hex()}\t{tree(r.load())}\n")

        for o in objects():
            for protocol in range(6):
                put(pickle.dumps(o, protocol))
        for data in BY_HAND:
            put(data)


if __name__ == "__main__":
    main()
