"""accengine - record what an inference engine computes, for acctools; acc-engines(7) says how.

    from accengine import ort
    ort.record("model.onnx", {"x": x}, "device")

then, in a shell, `accdiff device bench`. One module an engine: ort, openvino, flax, jaxpr, keras, mlx, export, executorch;
each needs its engine, numpy, and nothing else. Recording is theirs all: the nodes of a graph, each tensor once, with what
went in by name, attributes, and of whom it is known module and line.
"""
import os
import re
import struct
import zlib

import numpy as np

__all__ = ["Recording"]

DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
          "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool", "complex64": "c64",
          "complex128": "c128",
          # ml_dtypes'
          "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
          "float8_e8m0fnu": "f8e8m0", "float8_e4m3": "f8e4m3ieee", "float8_e3m4": "f8e3m4", "float8_e4m3b11fnuz": "f8e4m3b11fnuz",
          "float6_e2m3fn": "f6e2m3", "float6_e3m2fn": "f6e3m2", "float4_e2m1fn": "f4e2m1"}
WIDER = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}   # of ml_dtypes', too
WORDS = {"in": "input", "out": "output", "kw": "kwargs"}


def pack(x):
    """MessagePack, as far as accstream(5) has it."""
    if x is None or isinstance(x, bool):
        return bytes([0xc0 if x is None else 0xc2 + x])
    if isinstance(x, int):
        return struct.pack(">Bq", 0xd3, x)
    if isinstance(x, float):
        return struct.pack(">Bd", 0xcb, x)
    if isinstance(x, str):
        x = x.encode("utf-8", "surrogatepass")
        return struct.pack(">BI", 0xdb, len(x)) + x
    if isinstance(x, dict):
        return struct.pack(">BI", 0xdf, len(x)) + b"".join(pack(k) + pack(v) for k, v in x.items())
    return struct.pack(">BI", 0xdd, len(x)) + b"".join(map(pack, x))


def attribute(v):
    """(type, value) of an attribute: numbers, texts, and lists of integers or of texts; else as it prints."""
    if v is None:
        return "None", None
    if isinstance(v, (bool, int, float, str)):
        return type(v).__name__, v if not isinstance(v, int) or -2**63 <= v < 2**63 else str(v)
    if isinstance(v, np.generic):
        return attribute(v.item())
    if isinstance(v, bytes):
        return "str", v.decode(errors="replace")
    if isinstance(v, (list, tuple)) and v and (all(type(i) is int for i in v) or all(type(i) is str for i in v)):
        return "list", list(v)
    return type(v).__name__, str(v)[:1000]


class Recording:
    """A folder as libaccrec writes it, of rank 0 and step 0. framework: "onnxruntime 1.32.0"."""

    def __init__(self, folder, framework):
        os.makedirs(folder, exist_ok=True)
        self.records, self.data = open(folder + "/rank0.acc", "xb"), open(folder + "/rank0.step0.data", "xb")
        self.n = self.seq = self.at = self.unnamed = self.sum = 0
        self.known, self.keys, self.stacks, self.names, self.kept = set(), {}, set(), {}, []
        self.put("acc", {"v": 1, "minor": 1, "log": ["accengine " + framework]})
        self.id = "%08x" % zlib.crc32(os.urandom(8))
        source = {"format": "record", "framework": framework.split(" ")[0], "task": "tensor", "id": self.id}
        if re.match(r"\S+ \d", framework):
            source["versions"] = framework
        self.put("source", source)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.close(1 if failed is None else 0)

    def name(self, x, name=None):
        """What this very array is called, from now on or already; in_0, in_1 ... where nobody gave it a name."""
        if name is not None or id(x) not in self.names:
            self.names[id(x)] = name or "in_%d" % self.unnamed
            self.unnamed += name is None
            self.kept.append(x)   # so that no other gets its id
        return self.names[id(x)]

    def write(self, b):
        self.records.write(b)
        self.sum = zlib.crc32(b, self.sum)

    def put(self, kind, fields):
        self.write(b"\x92" + pack(kind) + pack(fields))
        self.n += kind != "acc"

    def item(self, kind, call, io, pos, fields):
        name = "%s.%s.%s" % (call["key"], WORDS[io], pos)
        self.put(kind, {"name": name, **call, "io": io, "pos": str(pos), **fields, "src": self.id, "seq": self.seq, "step": 0, "rank": 0})
        self.seq += 1

    def tensor(self, call, io, pos, value, name=None):
        if isinstance(value, str):   # what went in is a tensor that is there
            self.item("tensor", call, io, pos, {"from": value})
            return
        v = np.asarray(value)
        fields = {"dtype.raw": v.dtype.name, "shape": list(v.shape)}   # of what has no numbers that is all
        if v.dtype.name in WIDER:
            v = v.astype(WIDER[v.dtype.name])
        if v.dtype.name in DTYPES:
            # Of arrays from files the bytes may stand the other way round.
            b = np.ascontiguousarray(v, v.dtype.newbyteorder("<")).tobytes()
            self.data.write(bytes(-self.at % 64))
            self.at += -self.at % 64
            fields = {**fields, "dtype": DTYPES[v.dtype.name], "file": "rank0.step0.data", "off": self.at, "len": len(b),
                      "crc32": zlib.crc32(b)}
            self.data.write(b)
            self.at += len(b)
        if name is not None:
            fields["as"] = name
            self.known.add(name)
        self.item("tensor", call, io, pos, fields)

    def stack(self, at):
        """at: frames as (file, line, function, code), the innermost first."""
        frames = ["File %s, line %s, in %s, \n %s" % tuple(f) for f in at]
        key = "%08x%08x" % (zlib.crc32("".join(frames).encode()), len(frames))
        if key not in self.stacks:
            self.stacks.add(key)
            self.put("stack", {"id": key, "frames": frames})
        return key

    def node(self, op, made, given=(), attrs=None, module=None, at=()):
        """One node of a graph. made: what it gives, {name: array}; given: what went in, the name of a tensor that some
        node gave, (name, array) of one that none did, as a weight, a number, or None."""
        first = next(iter(made))
        again = self.keys[first] = self.keys.get(first, -1) + 1
        call = {"key": "%s.%d" % (first, again) if again else first, "op": op, "pass": "forward"}
        if op is None:
            call["op"] = call["key"]
        if module:
            call["scope"] = module
        if at:
            call["stack"] = self.stack(at)
        for i, g in enumerate(given):
            if isinstance(g, (bool, int, float)):
                self.item("arg", call, "in", i, dict(zip(("type", "value"), attribute(g))))
                continue
            name, value = g if isinstance(g, tuple) else (g, None)
            if name in self.known:
                self.tensor(call, "in", i, name)
            elif value is not None:
                self.tensor(call, "in", i, value, name)
        for k, v in (attrs or {}).items():
            kind, value = attribute(v)
            self.item("arg", call, "kw", k, {"type": kind, "value": value})
        for i, (name, value) in enumerate(made.items()):
            if value is not None:
                self.tensor(call, "out", i, value, name)

    def array(self, name, value):
        """A tensor of which no more than its name is known."""
        self.node(None, {name: value})

    def close(self, whole=1):
        self.put("step", {"step": 0})
        self.data.close()
        if whole:
            # The checksum of all bytes before its own, in five: its place is that of nil, which takes one.
            self.write((b"\x92" + pack("end") + pack({"n": self.n, "st": 0, "crc32": None}))[:-1] + b"\xce")
            self.records.write(struct.pack(">I", self.sum))
        self.records.close()


def frames(text):
    """Of a traceback as torch writes it, the outermost first."""
    found = re.findall(r'File "(.+?)", line (\d+), in (\S+)(?:\n\s+(.*))?', text or "")
    return [(f, int(n), where, code.strip()) for f, n, where, code in reversed(found)]
