#!/usr/bin/python3
"""Streams written by another implementation than ours (python3-msgpack), for the tests of the
programs: python3 tests/data/make_streams.py writes tests/data/streams/*.acc again."""
import gzip
import math
import os
import zlib

import msgpack

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams")
os.makedirs(here, exist_ok=True)


def stream(name, records, status=0, v=1, minor=0, log=("made by hand",), n=None, end=True):
    out = msgpack.packb(["acc", {"v": v, "minor": minor, "log": list(log)}])
    for kind, fields in records:
        out += msgpack.packb([kind, fields])
    fields = {"n": len(records) if n is None else n, "st": status}
    if end and minor > 0:
        out += msgpack.packb(["end", dict(fields, crc32=2**32 - 1)])[:-4]
        out += zlib.crc32(out).to_bytes(4, "big")
    elif end:
        out += msgpack.packb(["end", fields])
    with open(os.path.join(here, name + ".acc"), "wb") as f:
        f.write(out)


every = ("tensor", {"name": "x", "seq": 0, "int": -5, "big": 2**63 + 5, "float": 0.1, "small": 5e-324,
                    "nan": math.nan, "inf": math.inf, "ninf": -math.inf, "true": True, "nil": None,
                    "empty": "", "text": 'a "quote", a \\ and a\nline', "utf8": "标杆", "shape": [2, -3],
                    "none": [], "texts": ["a", ""], "bin": b"\x00\x01"})
stream("every-type", [every])
stream("status-1", [every], status=1)
stream("unknown", [("x-mine", {"name": "kept", "x-key": 1}), ("novel", {"z": 1, "a": 2})], minor=7)
stream("newer", [], v=4)


def listed(name, items, n, minor=1, v=3):
    """Of a stream by lists of keys: items as they stand there."""
    out = msgpack.packb(["acc", {"v": v, "minor": minor, "log": ["made by hand"]}])
    out += b"".join(msgpack.packb(item) for item in items)
    out += msgpack.packb(["end", {"n": n, "st": 0, "crc32": 2**32 - 1}])[:-4]
    with open(os.path.join(here, name + ".acc"), "wb") as f:
        f.write(out + zlib.crc32(out).to_bytes(4, "big"))


# The pairs of "shared", twice, the second with other values of some keys; between them one with its keys, and
# one of another list, whose values are those of a key that both lists have.
first = ["x", "tensor", "tensor", "name", "f32", [2, 300], 0.1, 0, 7, 0.5, 8, 3, "l" * 300]
keys = ["name", "a.kind", "b.kind", "how", "ab.dtype", "ab.shape", "a.stat.max", "ab.step", "a.seq", "b.stat.max",
        "b.seq", "b.rank", "x-long"]
keys.insert(4, "ab.name")
listed("by-list", [
    [0, "pair", keys], [0, b"\xef\x3f"] + first,
    ["finding", {"what": "x", "text": "between", "a.seq": 5}],
    [1, "x-other", ["name", "a.seq", "x-new", "b.name"]], [1, b"\x0c", None, "z"], [0, b"\x01\x24", "y", 11, "s"],
    [0, b"\x00\x00"], [1, b"\x00"],
], 6)
stream("lost", [every], n=2)
stream("no-end", [every], end=False)
stream("not-utf8", [("tensor", {"name": "x"})])
p = os.path.join(here, "not-utf8.acc")
data = open(p, "rb").read().replace(b"\xa4name\xa1x", b"\xa4name\xa1\xff")
open(p, "wb").write(data)


def t(name, seq, rank, **more):
    return ("tensor", dict({"name": name, "seq": seq, "step": 0, "rank": rank}, **more))


stream("rank0", [("source", {"id": "00000000"}), t("a", 0, 0), t("c", 1, 0)])
stream("rank1", [("source", {"id": "00000001"}), t("b", 0, 1), t("d", 1, 1)])
stream("sort", [("source", {"id": "00000000"}), t("ten", 0, 0, v=10), t("nan", 1, 0, v=math.nan),
                t("two", 2, 0, v=2.5), t("none", 3, 0), t("text", 4, 0, v="x"), t("two again", 5, 0, v=2.5)])


def pair(name, **more):
    return ("pair", dict({"name": name, "a.kind": "tensor", "a.name": name, "a.key": "Torch.add.0.forward",
                          "a.dtype": "f32", "a.shape": [2, 3], "b.kind": "tensor", "b.name": name}, **more))


# What the sides share stands once: the pair of "apart", by another writer of version 1, says the same.
stream("apart", [("pair", {"name": "x", "a.kind": "tensor", "b.kind": "tensor", "how": "name", "a.name": "x",
                           "a.dtype": "f32", "a.shape": [2, 300], "a.stat.max": 0.1, "a.step": 0, "a.seq": 7,
                           "b.name": "x", "b.dtype": "f32", "b.shape": [2, 300], "b.stat.max": 0.5, "b.step": 0,
                           "b.seq": 8, "b.rank": 3, "m.max_diff": 0.4})])
stream("shared", [("pair", {"name": "x", "a.kind": "tensor", "b.kind": "tensor", "how": "name", "ab.name": "x",
                            "ab.dtype": "f32", "ab.shape": [2, 300], "a.stat.max": 0.1, "ab.step": 0, "a.seq": 7,
                            "b.stat.max": 0.5, "b.seq": 8, "b.rank": 3, "m.max_diff": 0.4})], v=2)
stream("judged", [
    pair("Torch.add.0.forward.input.0", **{"m.max_abs": 0.0, "m.rel_l2": 0.0}),
    pair("Torch.add.0.forward.output.0", **{"m.max_abs": 0.25, "m.rel_l2": 1 / 3, "bad": "error",
                                            "why": "off"}),
    ("finding", {"what": "culprit", "name": "Torch.add.0.forward", "text": "Torch.add.0.forward is wrong"}),
], status=1)

# What a terminal would obey: ESC, CSI as one character of 8 bits, a turn of the direction; and
# what ends lines.
evil = "E\x1b[31m\x9b1m\u202e\n\t|,]("
stream("hostile", [pair(evil, bad="error"), ("x-" + evil, {"name": "other", evil: evil}),
                   ("finding", {"what": "culprit", "name": evil, "text": evil + " is\nwrong"})], status=1)
# More rows than a table looks at before it begins, and of two ranks.
stream("places", [t("first", i, 0, io="in") for i in range(1001)] + [t("last", 0, 1, io="in")])
p = os.path.join(here, "places.acc")
with open(p, "rb") as f, open(p + ".gz", "wb") as g:
    g.write(gzip.compress(f.read(), 9, mtime=0))
os.remove(p)
stream("ranks", [pair("x", **{"a.step": 0, "a.rank": r, "b.step": 0, "b.rank": r}) for r in (0, 1)] +
       [("pair", {"name": "y", "b.kind": "tensor", "b.name": "y", "b.step": 0, "b.rank": 1}),
        ("finding", {"what": "ranks", "name": "x", "step": 0, "rank": 1, "text": "rank 1 too"})])
stream("wide", [("tensor", {"name": "Functional.linear.0.forward.input.%d" % i, "loss": 1234567.891,
                            "small": -1.23456789e-300, "text": "of words " * 12 + "/a" * 50}) for i in (0, 1)] +
       [("finding", {"what": "clean", "text": "a sentence of many words that is longer than a line " * 3})])
