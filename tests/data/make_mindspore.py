#!/usr/bin/python3
"""Makes tests/data/mindspore: dumps as MindSpore, the drivers of Ascend and ATB write them, and
what is to be read from them (rows/*.tsv). Written from the layouts that accdump(5) describes: of
DumpData and ATB no public file exists. For developers only. Needs python3-numpy."""
import hashlib
import json
import os
import shutil
import struct
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "mindspore")
ROWS = os.path.join(HERE, "rows")
T0 = 1733905446000000
SCOPE = "Default/network-WithLossCell/_backbone-Net/"


def bf16(a):
    """The nearest bfloat16, as its 16 bits."""
    u = np.asarray(a, np.float32).view(np.uint32)
    return ((u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)


def unbf16(b):
    return (b.astype(np.uint32) << 16).view(np.float32)


def put(path, data):
    path = os.path.join(OUT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def npy(a, descr=None):
    """As MindSpore's own writer has it: every shape ends in a comma."""
    a = np.asarray(a, order="C")
    descr = descr or a.dtype.str
    shape = "(" + "".join("%d," % d for d in a.shape) + ")"
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + a.tobytes()


def flat(name):
    return "".join("_" if c in "/\\. " else c for c in name)


DTYPE = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "bool": "bool",
         "uint8": "u8", "int8": "i8", "hifloat8": "hif8", "complex64": "c64", "float64": "f64"}


def stats(a):
    """As MindSpore's host computes them, in double."""
    a = np.asarray(a).astype(np.float64)
    if a.size == 0:
        return {}
    s = {"max": a.max(), "min": a.min(), "avg": a.mean(), "l2norm": np.sqrt((a * a).sum()), "count": a.size,
         "negative zero count": int((a < 0).sum()), "positive zero count": int((a > 0).sum()),
         "zero count": int((a == 0).sum()), "nan count": int(np.isnan(a).sum()),
         "negative inf count": int(np.isneginf(a).sum()), "positive inf count": int(np.isposinf(a).sum())}
    if np.isnan(a).any():
        s.update({k: float("nan") for k in ("max", "min", "avg", "l2norm")})
    return s


COLUMN = {"max": "Max Value", "min": "Min Value", "avg": "Avg Value", "l2norm": "L2Norm Value", "count": "Count",
          "negative zero count": "Negative Zero Count", "positive zero count": "Positive Zero Count",
          "nan count": "NaN Count", "negative inf count": "Negative Inf Count",
          "positive inf count": "Positive Inf Count", "zero count": "Zero Count", "md5": "MD5", "sha1": "SHA1"}
KEY = {"max": "max", "min": "min", "avg": "mean", "l2norm": "norm", "count": "count",
       "negative zero count": "negative", "positive zero count": "positive", "nan count": "nan",
       "negative inf count": "neginf", "positive inf count": "posinf", "zero count": "zero", "md5": "md5",
       "sha1": "sha1"}
STATS = ["max", "min", "avg", "l2norm", "count", "negative zero count", "positive zero count", "nan count",
         "negative inf count", "positive inf count", "zero count", "md5", "sha1"]


def six(v):
    return v if isinstance(v, (int, str)) else "%g" % v


class Tensor:
    def __init__(self, typ, name, io, slot, a, dtype, time, fmt="DefaultFormat", stored=None, descr=None,
                 task=0, stream=0):
        self.typ, self.op, self.io, self.slot, self.a = typ, flat(name), io, slot, np.asarray(a)
        self.dtype, self.time, self.fmt, self.descr = dtype, time, fmt, descr
        self.stored = self.a if stored is None else stored
        self.task, self.stream = task, stream
        self.raw = bf16(self.a).tobytes() if dtype == "bfloat16" else self.a.tobytes()

    def stem(self, dtype=True):
        return "%s.%s.%d.%d.%d.%s.%d.%s" % (self.typ, self.op, self.task, self.stream, self.time, self.io,
                                            self.slot, self.fmt) + ("." + self.dtype if dtype else "")

    def stat(self, cats):
        s = stats(self.a)
        s["md5"] = hashlib.md5(self.raw).hexdigest()
        s["sha1"] = hashlib.sha1(self.raw).hexdigest()
        return {c: s.get(c, 0) for c in cats}

    def size(self):
        return len(self.raw)


def sheet(tensors, cats, comma, columns=None):
    head = ["Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type",
            "Shape"] + [COLUMN[c] for c in cats]
    out = ",".join(head) + "\n"
    for t in tensors:
        shape = "(" + ",".join(map(str, t.a.shape)) + ")"
        row = [t.typ, t.op, t.task, t.stream, t.time, t.io, t.slot, t.size(), t.dtype, '"%s"' % shape]
        row += [six(v) for v in t.stat(cats).values()]
        out += ",".join(map(str, row)) + comma + "\n"
    return out.encode()


def shown(v):
    """As accfmt --tsv shows a number."""
    if isinstance(v, str):
        return v
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    v = float("%g" % v)
    return repr(v)


def expect(t, cats, calls, step, rank, file=True, dtype=True):
    backward = t.op.startswith("Gradients")
    key = ("b" if backward else "f") + t.typ
    ident = (t.op, t.occ)
    table = calls.setdefault(key, {})
    call = table.setdefault(ident, len(table))
    cls = DTYPE[t.dtype]
    s = t.stat(cats) if cats else {}
    for c in ("max", "min"):
        if c in s:
            s[c] = bool(s[c]) if cls == "bool" else int(s[c]) if cls[0] in "iu" and s[c] == s[c] else float(s[c])
    stored = {"float32": "f32", "float16": "f16", "uint8": "u8"}.get(str(t.stored.dtype), None)
    have = cls if not file or t.dtype != "bfloat16" or t.descr else stored
    name = t.stem(dtype) if file else ".".join(t.stem().split(".")[:7])
    return [name, t.typ + "." + t.op, t.typ, call, "backward" if backward else "forward", "in" if t.io == "input"
            else "out", t.slot, have, t.dtype if dtype else "", "[" + ", ".join(map(str, t.a.shape)) + "]",
            "" if step is None else step, "" if rank is None else rank] + \
        [shown(s[c]) if c in s else "" for c in STATS]


def rows(name, lines):
    with open(os.path.join(ROWS, "mindspore_" + name + ".tsv"), "w") as f:
        for x in lines:
            f.write("\t".join(map(str, x)) + "\n")


def occurrences(tensors):
    seen = {}
    for t in sorted(tensors, key=lambda t: t.time):
        k = (t.typ, t.op, t.io, t.slot)
        t.occ = seen.get(k, 0)
        seen[k] = t.occ + 1


def network(rng, step, fault=0.0):
    """Tensors of one step of a tiny net; (fullname order, tensors)."""
    x = rng.standard_normal((2, 3)).astype(np.float32)
    w = rng.standard_normal((3, 4)).astype(np.float16)
    b = unbf16(bf16(rng.standard_normal(4)))
    y = x @ w.astype(np.float32)
    z = (y + b).astype(np.float32)
    r = np.maximum(z, 0) * np.float32(1 + fault)
    loss = np.float32(r.sum())
    m = r > 0
    order = [SCOPE + "fc-Dense/Cast-op1", SCOPE + "fc-Dense/MatMul-op2", SCOPE + "fc-Dense/BiasAdd-op3",
             SCOPE + "act-ReLU/ReLU-op4", "Default/ReduceSum-op5",
             "Gradients/" + SCOPE + "act-ReLU/gradReLU/ReluGrad-op6"]
    at = iter(range(T0 + step * 1000000, T0 + step * 1000000 + 100000, 137))

    def op(typ, name, ins, outs):
        out = []
        for io, group in (("input", ins), ("output", outs)):
            for i, (a, dtype) in enumerate(group):
                out.append(Tensor(typ, name, io, i, a, dtype, next(at), fmt="DefaultFormat"))
        return out
    f32, f16, bf = "float32", "float16", "bfloat16"
    t = []
    # ReLU is dumped before what makes its input: times do not tell the order.
    t += op("ReLU", order[3], [(z, f32)], [(r, f32)])
    t += op("Cast", order[0], [(w, f16)], [(w.astype(np.float32), f32)])
    t += op("MatMul", order[1], [(x, f32), (w.astype(np.float32), f32)], [(y, f32)])
    t += op("Print", "Default/Print-op9", [(np.int32(step), "int32")], [])
    t += op("BiasAdd", order[2], [(y, f32), (b, bf)], [(z, f32)])
    t += op("ReduceSum", order[4], [(r, f32)], [(loss, f32)])
    t += op("ReluGrad", order[5], [(np.ones_like(r), f32), (m, "bool")], [(m.astype(np.float32), f32)])
    # The same kernel once more in the same iteration.
    t += op("ReduceSum", order[4], [(r, f32)], [(np.float32(loss * 2), f32)])
    occurrences(t)
    return order, t


def metadata(root, device, config):
    put(root + "/.dump_metadata/config.json", json.dumps({"device_target": device, "ms_version": "2.4.0"}).encode())
    put(root + "/.dump_metadata/data_dump.json", json.dumps(config).encode())


def kbk(side, fault):
    """Kernel by kernel, saved_data full: files and statistics."""
    rng = np.random.default_rng(7)
    root = "kbk/%s/rank_0" % side
    cats = ["l2norm", "max", "min", "negative zero count", "positive zero count", "md5"]
    metadata(root, "Ascend", {"common_dump_settings": {"saved_data": "full", "statistic_category": cats}})
    calls, lines = {}, []
    for step in (0, 1):
        order, t = network(rng, step, fault if step == 1 else 0)
        for x in t:
            put("%s/Net/0/%d/%s.npy" % (root, step, x.stem()), npy(x.a.astype(np.float32)
                if x.dtype == "bfloat16" else x.a))
        put("%s/Net/0/%d/statistic.csv" % (root, step), sheet(t, cats, ","))
        rank = {flat(n): i for i, n in enumerate(order)}
        rank[flat("Default/Print-op9")] = rank[flat(order[1])] + .5
        calls = {}
        for x in sorted(t, key=lambda x: (x.occ, rank[x.op], x.io, x.slot)):
            lines.append(expect(x, cats, calls, step, 0))
    put(root + "/execution_order/ms_execution_order_graph_0.csv",
        ("NodeExecutionOrder-FullNameWithScope\n" + "\n".join(order) + "\n").encode())
    put(root + "/execution_order/ms_global_execution_order_graph_0.csv", b"0\n1\n")
    if side == "device":
        rows("kbk", lines)


def generations():
    """statistic.csv alone, of each generation."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal((2, 3)).astype(np.float32)
    bad = np.array([1, -np.inf, np.nan, 0], np.float32)
    t = [Tensor("Add", "Default/Add-op0", "input", 0, a, "float32", T0),
         Tensor("Add", "Default/Add-op0", "input", 1, np.int64(-7), "int64", T0 + 1),
         Tensor("Add", "Default/Add-op0", "output", 0, bad, "float32", T0 + 2),
         Tensor("Cast", "Default/Cast-op1", "output", 0, np.zeros(0, np.float16), "float16", T0 + 3),
         Tensor("Less", "Default/Less-op2", "output", 0, a > 0, "bool", T0 + 4)]
    occurrences(t)
    h1 = ["max", "min", "avg", "count", "negative zero count", "positive zero count", "nan count",
          "negative inf count", "positive inf count", "zero count"]
    sheets = {"h1": (h1, ""), "h2": (h1 + ["md5"], ""), "h3": (["max", "min", "avg", "l2norm", "count"], ""),
              "h4": (["sha1", "l2norm", "nan count", "min", "max"], ",")}
    for name, (cats, comma) in sheets.items():
        put("stat_%s/statistic.csv" % name, sheet(t, cats, comma))
        calls = {}
        lines = [expect(x, cats if x.a.size else [], calls, None, None, file=False) for x in t]
        rows("stat_" + name, lines)
    # As the drivers write it; a shape without quotes, and words of the device.
    put("stat_acl/statistic.csv", b"""\
Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,Shape,Max Value,\
Min Value,Avg Value,L2Norm Value,MD5 Value
MatMul,Default_MatMul-op1,3,7,1733905446000001,input,0,24,float16,ND,[3,4],2.5,-1,null,3.25,0123456789abcdef0123456789abcdef
MatMul,Default_MatMul-op1,3,7,1733905446000001,output,0,24,float16,FRACTAL_NZ,(1,1,16,16),inf,-inf,nan,nan,%s
Less,Default_Less-op2,3,7,1733905446000002,output,0,1,bool,ND,(),True,False,null,null,%s
""".replace(b"%s", b"00" * 16))
    rows("stat_acl", [
        ["MatMul.Default_MatMul-op1.3.7.1733905446000001.input.0", "MatMul.Default_MatMul-op1", "MatMul", 0,
         "forward", "in", 0, "f16", "float16", "[3, 4]", "", "", "2.5", "-1.0", "", "3.25"] + [""] * 7 +
        ["0123456789abcdef0123456789abcdef", ""],
        ["MatMul.Default_MatMul-op1.3.7.1733905446000001.output.0", "MatMul.Default_MatMul-op1", "MatMul", 0,
         "forward", "out", 0, "f16", "float16", "[1, 1, 16, 16]", "", "", "inf", "-inf", "nan", "nan"] +
        [""] * 7 + ["00" * 16, ""],
        ["Less.Default_Less-op2.3.7.1733905446000002.output.0", "Less.Default_Less-op2", "Less", 0, "forward",
         "out", 0, "bool", "bool", "[]", "", "", "true", "false"] + [""] * 9 + ["00" * 16, ""]])


def forms():
    """Names of all releases, types that numpy lacks, long names, private formats, attributes."""
    d = "forms/rank_3/Net/1/5/"
    a = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    old = Tensor("Add", "Default/Add-op0", "output", 0, a, "float32", T0, fmt="NCHW")
    put(d + old.stem(False) + ".npy", npy(a))
    put(d + "Mul.Default_Mul-op1.12.3.%d.input.0.npy" % (T0 + 1), npy(a))
    e2 = Tensor("Mul", "Default/Mul-op1", "input", 1, a, "bfloat16", T0 + 2, task=12, stream=3)
    put(d + e2.stem() + ".npy", npy(bf16(a), "<E2"))
    h2 = Tensor("Mul", "Default/Mul-op1", "output", 0, a, "bfloat16", T0 + 3, task=12, stream=3)
    put(d + h2.stem() + ".npy", npy(bf16(a), "<h2"))
    hif = Tensor("Cast", "Default/Cast-op2", "output", 0, np.arange(8, dtype=np.uint8), "hifloat8", T0 + 4)
    put(d + hif.stem() + ".npy", npy(hif.a))
    c = Tensor("FFT", "Default/FFT-op3", "output", 0, (a + 1j).astype(np.complex64), "complex64", T0 + 5)
    put(d + c.stem() + ".npy", npy(c.a))
    nz = Tensor("MatMul", "Default/MatMul-op4", "output", 0, np.zeros((1, 1, 16, 16), np.float16), "float16", T0 + 6,
                fmt="FRACTAL_NZ")
    put(d + nz.stem() + ".npy", npy(nz.a))
    long = Tensor("Sub", "Default/" + "very_" * 60 + "long-Cell/Sub-op5", "output", 0, a, "float32", T0 + 7)
    put(d + "17339054460000079.npy", npy(a))
    put(d + "mapping.csv", ("17339054460000079.npy,%s.npy\n" % long.stem()).encode())
    put(d + "MatMul.Default_MatMul-op4.json", b'{"transpose_a": false, "n": 3, "group": [1, 2], "beta": 0.5}')
    put(d + "out_float32_12.npy", npy(a))
    put(d + "Opdebug.Node_OpDebug.12.3.%d.output.0.json" % (T0 + 9), json.dumps(
        {"AI Core": {"model_id": 1, "stream_id": 3, "task_id": 12, "status": 32}}).encode())
    put("forms/rank_3/Net/1/constants/Parameter.data-1.0.0.%d.output.0.DefaultFormat.float32.npy" % T0, npy(a))
    # An older dump of two graphs: the second number is the graph.
    for graph, time in ((2, 50), (10, 40)):
        put("graphs2/rank_0/Net/%d/0/Add.Default_Add-op%d.0.0.%d.output.0.DefaultFormat.npy" %
            (graph, graph, T0 + time), npy(a))


# --- DumpData ---

def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(n, v):
    if isinstance(v, int):
        return varint(n << 3) + varint(v)
    v = v.encode() if isinstance(v, str) else v
    return varint(n << 3 | 2) + varint(len(v)) + v


def described(a, typ, fmt, output, packed=True, origin=None, groups=0, order=None):
    def dims(shape):
        return field(1, b"".join(varint(d) for d in shape)) if packed else b"".join(field(1, d) for d in shape)
    m = field(1, typ) + field(2, fmt) + field(3, dims(a.shape))
    if order is not None:
        m += field(4, field(1, "op") + field(4, order))
    m += field(6 if output else 5, a.nbytes)
    if origin != ():
        m += field(7 if output else 6, dims(a.shape if origin is None else origin))
    return m + (field(8 if output else 7, groups) if groups else b"")


def dumpdata(ins, outs, spaces=(), packed=True):
    """ins, outs: (array, data_type, format), or with what else it is described by."""
    m = field(1, "2.0") + field(2, T0)
    for a, typ, fmt, *more in outs:
        m += field(3, described(a, typ, fmt, True, packed, *more))
    for a, typ, fmt, *more in ins:
        m += field(4, described(a, typ, fmt, False, packed, *more))
    m += field(6, "op")
    for s in spaces:
        m += field(8, field(1, 0) + field(3, len(s)))
    return struct.pack("<Q", len(m)) + m + b"".join(t[0].tobytes() for t in ins) + \
        b"".join(t[0].tobytes() for t in outs) + b"".join(spaces)


TYPES = {1: "<f4", 2: "<f2", 3: "|i1", 4: "|u1", 5: "<i2", 6: "<u2", 7: "<i4", 8: "<i8", 9: "<u4", 10: "<u8",
         11: "|b1", 12: "<f8", 14: "|i1", 15: "|u1", 16: "<c8", 17: "<c16", 18: "|i1", 19: "<i2", 20: "<i4", 21: "|u1", 22: "<u2",
         27: "<u2", 32: "<u4", 33: "|u1", 34: "|u1", 35: "|u1", 36: "|u1"}


def ascend():
    rng = np.random.default_rng(9)
    d = "o2/1/20241211163020/0/Net/7/0/"
    a = rng.standard_normal((2, 3)).astype(np.float32)
    w = rng.standard_normal((3, 2)).astype(np.float16)
    y = a @ w.astype(np.float32)
    put(d + "MatMul.Default_MatMul-op1.3.7.%d" % T0, dumpdata([(a, 1, 2), (w, 2, 2)], [(y, 1, 2)]))
    put(d + "ReLU.Default_ReLU-op2.4.7.%d" % (T0 + 1),
        dumpdata([(y, 1, 0)], [(np.maximum(y, 0), 1, 0)], (b"workspace",), packed=False))
    info = struct.pack("<6Q", 9, 7, 4, 2, 0x1234, 0x5678)
    old = (info.ljust(128, b"\0") * 2 + info.ljust(256, b"\0") + struct.pack("<Q", 0).ljust(256, b"\0") * 2 +
           struct.pack("<3Q", 0xabc, 1, 32).ljust(1024, b"\0"))
    assert len(old) == 2048
    put(d + "Opdebug.Node_OpDebug.4.7.%d" % (T0 + 2), dumpdata([], [(np.frombuffer(old, np.uint8), 4, 2)]))
    new = struct.pack("<2I", 0x5a5a5a5a, 0) + struct.pack("<4I", 1, 0, 0, 88) + struct.pack(
        "<11Q", 9, 7, 3, 2, 0, 0, 0x1234, 0x5678, 1, 2, 8)
    put(d + "Opdebug.Node_OpDebug.3.7.%d" % (T0 + 3), dumpdata([], [(np.frombuffer(new, np.uint8), 4, 2)]))
    # Every type, and formats that are not decoded.
    ins = []
    for typ in range(43):
        n = np.dtype(TYPES.get(typ, "|u1"))
        raw = bytes(range(1, 1 + 3 * n.itemsize))
        ins.append((np.frombuffer(raw, n).copy() if typ != 11 else np.array([True, False, True]), typ, 2))
    lines = []
    for i, (a, typ, _) in enumerate(ins):
        v = decoded(a.tobytes(), typ)
        if v is not None:
            lines.append([i, "%.9g" % v.min(), "%.9g" % v.max()])
    rows("types", lines)
    put("types.bin", dumpdata(ins, [(np.zeros((1, 1, 16, 16), np.float16), 2, f) for f in (29, 3, 1, 49, 99, 27)]))


def in_blocks(a, axis, n, pad):
    """Pad an axis to whole blocks, and make two of it: which block, where in it."""
    more = [(0, 0)] * a.ndim
    more[axis] = (0, -a.shape[axis] % n)
    a = np.pad(a, more, constant_values=pad)
    return a.reshape(a.shape[:axis] + (-1, n) + a.shape[axis + 1:])


def nz(a, m0, n0, pad):
    a = a if a.ndim > 1 else a[None]
    a = in_blocks(in_blocks(a, a.ndim - 1, n0, pad), a.ndim - 2, m0, pad)  # ..., M1, M0, N1, N0
    return a.transpose(*range(a.ndim - 4), -2, -4, -3, -1)


def nc1hwc0(a, c0, pad):
    return in_blocks(a, 1, c0, pad).transpose(0, 1, 3, 4, 2)


def ndc1hwc0(a, c0, pad):
    return in_blocks(a, 1, c0, pad).transpose(0, 3, 1, 4, 5, 2)


def fractal_z(a, n0, c0, pad):
    a = in_blocks(in_blocks(a, 1, c0, pad), 0, n0, pad)  # N1, N0, C1, C0, H, W
    a = a.transpose(2, 4, 5, 0, 1, 3)
    return a.reshape((-1,) + a.shape[3:])


def c1hwncoc0(a, c0, pad):
    a = in_blocks(a, 1, c0, pad).transpose(1, 3, 4, 0, 2)  # C1, H, W, N, C0
    out = np.full(a.shape + (c0,), pad, a.dtype)
    for i in range(c0):
        out[..., i, i] = a[..., i]
    return out


def tiled():
    """One kernel in private formats and in plain ones. Padding is 99, which no element is."""
    rng = np.random.default_rng(19)

    def some(*shape, t=np.float16):
        return rng.integers(-90, 90, shape).astype(t) if t == np.int8 else rng.standard_normal(shape).astype(t)
    half, single, byte = 2, 1, 3
    a = [some(37, 53), some(3, 33, 17, t=np.float32), some(2, 2, 7, 40, t=np.int8), some(5), some(32, 16),
         some(1, 20), some(2, 19, 3, 5), some(1, 7, 4, 4, t=np.float32), some(33, 19, 3, 2), some(5, 70, 1, 1, t=np.int8),
         some(2, 17, 3, 2, 5), some(1, 35, 3, 3), some(2, 18, 2, 3), some(21)]
    nchw, nhwc = 0, 1
    stored = [  # (array, data_type, format, what it stands for, groups, order)
        (nz(a[0], 16, 16, 99), half, 29, a[0].shape), (nz(a[1], 16, 8, 99), single, 29, a[1].shape),
        (nz(a[2], 16, 32, 99), byte, 29, a[2].shape), (nz(a[3], 16, 16, 99), half, 29, a[3].shape),
        (nz(a[4], 16, 16, 99), half, 29, a[4].shape), (nz(a[5], 16, 16, 99), half, 29, a[5].shape),
        (nc1hwc0(a[6], 16, 99), half, 3, a[6].shape), (nc1hwc0(a[7], 8, 99), single, 3, a[7].shape),
        (fractal_z(a[8], 16, 16, 99), half, 4, a[8].shape, 1), (fractal_z(a[9], 16, 32, 99), byte, 4, a[9].shape),
        (ndc1hwc0(a[10], 16, 99), half, 32, a[10].shape), (c1hwncoc0(a[11], 16, 99), half, 25, a[11].shape),
        (c1hwncoc0(a[12], 16, 99), half, 25, a[12].shape),
        (nc1hwc0(a[13][None, :, None, None], 16, 99), half, 3, a[13].shape)]
    # What stands in another order of axes: a square that only the format of the framework's tensor tells.
    b, c, d, e = some(2, 19, 3, 5), some(3, 4, 4, 4), some(18, 33, 2, 3), some(2, 17, 3, 2, 5)
    outs = [(nc1hwc0(b, 16, 99), half, 3, b.transpose(0, 2, 3, 1)), (nc1hwc0(c, 16, 99), half, 3, c),
            (nc1hwc0(c, 16, 99), half, 3, c.transpose(0, 2, 3, 1), 0, nhwc),
            (fractal_z(d, 16, 16, 99), half, 4, d.transpose(2, 3, 1, 0)),
            (ndc1hwc0(e, 16, 99), half, 32, e.transpose(0, 2, 3, 4, 1)),
            (c1hwncoc0(c, 16, 99), half, 25, c.transpose(2, 3, 1, 0), 0, 16)]
    k = "MatMul.Default_MatMul-op1.3.7.%d" % T0
    put("tiled/device/" + k, dumpdata(stored, [s[:3] + (s[3].shape,) + s[4:] for s in outs]))
    put("tiled/bench/" + k, dumpdata([(x, s[1], 2) for x, s in zip(a, stored)], [(s[3], s[1], 2) for s in outs]))
    # Not told, or not to be understood: as they are stored.
    m, z = nz(some(20, 20), 16, 16, 99), fractal_z(a[8], 16, 16, 99)
    put("stored/device/" + k, dumpdata([(m, half, 29, ()), (m, half, 29, (20, 33)), (z, half, 4, a[8].shape, 2)],
                                       [(nz(a[4], 16, 16, 99), half, 29, ())]))
    put("stored/bench/" + k, dumpdata([(m, half, 29, ()), (some(2, 2, 16, 16), half, 2), (z, half, 2)], [(a[4], half, 2)]))


def decoded(raw, typ):
    """The three values of these bytes, by the definitions of the types; None: not decoded."""
    raw = bytes(raw)
    if typ == 27:
        return unbf16(np.frombuffer(raw, "<u2"))
    if typ == 32:
        half = np.frombuffer(raw, "<f2").astype(np.float64)
        return np.hypot(half[::2], half[1::2])
    if typ in (33, 34, 35, 36):  # codes 1, 2 and 3 are subnormal in all but the last
        code = np.array(list(raw), np.float64)
        return {33: 2 ** (code - 23), 34: code * 2.0 ** -16, 35: code * 2.0 ** -9, 36: 2 ** (code - 127)}[typ]
    if typ not in TYPES:
        return None
    a = np.frombuffer(raw, TYPES[typ])
    return np.abs(a.astype(np.complex128)) if a.dtype.kind == "c" else a


# --- ATB ---

def atb(a, dtype, fmt=2, short=False, extra=""):
    dims = ",".join(map(str, a.shape))
    data = a.tobytes()
    if short:
        return ("dtype=%d\ndims=%s\n$End=1\n" % (dtype, dims)).encode() + data
    return ("$Version=1.0\n$Object.Count=1\n$Object.Length=%d\nformat=%d\ndtype=%d\ndims=%s\n%s"
            "$Object.data=0,%d\n$End=1\n" % (len(data), fmt, dtype, dims, extra, len(data))).encode() + data


def atb_tree():
    rng = np.random.default_rng(10)
    root = "atb/atb_dump_data/data/2_39943/0/"
    x = rng.standard_normal((2, 4)).astype(np.float16)
    ids = np.array([1, 5], np.int64)
    put(root + "0_WordEmbedding/before/intensor0.bin", atb(x, 1))
    put(root + "0_WordEmbedding/before/intensor1.bin", atb(ids, 9, short=True))
    put(root + "0_WordEmbedding/after/outtensor0.bin", atb(x * 2, 1))
    put(root + "0_WordEmbedding/0_GatherOperation/before/intensor0.bin", atb(x, 1))
    put(root + "0_WordEmbedding/0_GatherOperation/after/outtensor0.bin", atb(x * 2, 1))
    put(root + "10_LmHead/before/intensor0.bin", atb(bf16(x), 27))
    put(root + "10_LmHead/after/outtensor0.bin", atb(x, 1, fmt=29))
    put(root + "2_Decoder_layer/before/intensor0.bin", atb(np.array(True), 12))
    put(root + "2_Decoder_layer/op_param.json", b"{}")
    put("atb_stat/data/1_39944/3/statistic.csv", b"""\
Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,Norm,Tensor Path
1_39944,3,Decoder_layer/LinearOperation,LinearOperation,2_0,input,0,bf16,nd,36x128,1.5,-2,0.25,7.5,N/A
1_39944,3,Decoder_layer/LinearOperation,LinearOperation,2_0,output,0,bf16,nd,36x128,nan,-inf,N/A,N/A,N/A
1_39944,3,Decoder_layer,Decoder_layer,2,output,1,int64,nd,1,4,4,4,4,N/A
""")


# --- MindSpore's checkpoints ---

def ckpt_value(tag, dims, typ, content):
    tensor = b"".join(field(1, d) for d in dims) + field(2, typ) + field(3, content)
    return field(1, field(1, tag) + field(2, tensor))


def ckpt():
    rng = np.random.default_rng(11)
    w = rng.standard_normal((3, 4)).astype(np.float32)
    b = rng.standard_normal(4).astype(np.float16)
    big = rng.standard_normal((4, 5)).astype(np.float32)
    flat_big = big.tobytes()
    parts = [ckpt_value("fc.weight", w.shape, "Float32", w.tobytes()),
             ckpt_value("fc.bias", b.shape, "Float16", b.tobytes()),
             # Cut into three, as what has more than 512 MiB is.
             ckpt_value("emb.table", big.shape, "Float32", flat_big[:28]),
             ckpt_value("emb.table", big.shape, "Float32", flat_big[28:56]),
             ckpt_value("emb.table", big.shape, "Float32", flat_big[56:]),
             ckpt_value("norm.gamma", b.shape, "BFloat16", bf16(b).tobytes()),
             ckpt_value("moment1.fc.weight", w.shape, "Float32", (w * 2).tobytes()),
             ckpt_value("step_num", [0], "Int64", struct.pack("<q", 12)),
             ckpt_value("mask", (3,), "Bool", b"\1\0\1"),
             ckpt_value("note", [0], "str", "later".encode("utf-32-le"))]
    data = b"".join(parts)
    put("model.ckpt", data)
    put("model_crc.ckpt", data + b"crc_num" + zlib.crc32(data).to_bytes(10, "big"))


def same():
    """The arrays of checkpoints/same once more, in these containers."""
    names = {"f32": ("Float32", 1), "f16": ("Float16", 2), "bf16": ("BFloat16", 27), "f64": ("Float64", 12),
             "i64": ("Int64", 8), "i32": ("Int32", 7), "i16": ("Int16", 5), "i8": ("Int8", 3), "u8": ("UInt8", 4),
             "bool": ("Bool", 11), "c64": ("Complex64", 16)}
    ckpt, ins = b"", []
    with open(os.path.join(HERE, "checkpoints", "same.tsv")) as f:
        for line in f:
            name, dtype, shape = line.rstrip("\n").split("\t")[:3]
            a = np.load(os.path.join(HERE, "checkpoints", "same", name + ".npy"))
            shape = [int(d) for d in shape.split(",") if d]
            assert list(a.shape) == shape
            ckpt += ckpt_value(name, shape or [0], names[dtype][0], a.tobytes())
            ins.append((a, names[dtype][1], 2))
    put("same.ckpt", ckpt)
    put("same.bin", dumpdata(ins, []))


# --- data of training steps ---

def steps():
    rng = np.random.default_rng(12)
    for step in (0, 1, 10):
        for rank in (0, 1):
            d = "steps/step_%d/rank_%d/" % (step, rank)
            tokens = rng.integers(0, 100, (2, 8))
            put(d + "tokens.npy", npy(tokens))
            put(d + "labels.npy", npy(np.roll(tokens, -1, 1)))
            put(d + "loss_mask.npy", npy(np.ones((2, 8), np.float32)))
            put(d + "attention_mask.npy", npy(np.tril(np.ones((1, 8, 8), bool))))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    kbk("device", 0.03)
    kbk("bench", 0)
    generations()
    forms()
    ascend()
    tiled()
    atb_tree()
    ckpt()
    steps()
    same()


main()
