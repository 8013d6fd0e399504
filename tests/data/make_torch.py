#!/usr/bin/python3
"""Makes tests/data/torch: small .pt files, and expected.txt, what is in them; and
tests/data/zip, three plain zip files. For developers only: neither building nor testing runs it.

Needs Debian 12's python3-torch (1.13.1) and python3-numpy. What torch 1.13 can write is
expected as torch itself reads it back. What it cannot write (newer torch, torch_npu, another
byte order, hostile files) is put together here by hand, and what is expected of it is too.

expected.txt has a line per leaf, tab-separated: file, path, then
  T dtype shape flags values   a tensor; flags: r requires_grad, p parameter; values as doubles
  V type text                  another value
  E text                       a tensor that is not decoded; the message contains the text
or, with - for the path,
  X text                       reading ends with a message that contains the text
"""
import argparse
import collections
import io
import os
import pickle
import shutil
import struct
import sys
import warnings
import zipfile

import numpy as np
import torch

import oldtorch

sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")
lines = []


def line(*fields):
    lines.append("\t".join(fields))


def values(t):
    if isinstance(t, np.ndarray):
        return " ".join(repr(float(v)) for v in t.flatten())
    t = t.detach()
    if t.is_complex():
        t = torch.view_as_real(t)[..., 0]
    return " ".join(repr(v) for v in t.to(torch.float64).flatten().tolist())


def dims(shape):
    return ",".join(str(n) for n in shape)


def tensor(name, path, t):
    if isinstance(t, np.ndarray):
        kind = t.dtype.str[1:]
        line(name, path, "T", kind, dims(t.shape), "-", values(t))
        return
    flags = "r" * t.requires_grad + "p" * isinstance(t, torch.nn.Parameter)
    line(name, path, "T", str(t.dtype), dims(t.shape), flags or "-", values(t))


def expect(name, o, path="", errors=()):
    """A line per leaf of o, as torch.load gave it. errors: (path, text) of what we cannot."""
    def join(k):
        return f"{path}.{k}" if path else str(k)

    for p, text in errors:
        if p == path:
            line(name, path, "E", text)
            return
    if isinstance(o, np.ndarray) and o.dtype == object:
        expect(name, list(o.flat) if o.ndim else o.item(), path, errors)
    elif isinstance(o, torch.nn.Module):
        expect(name, dict(o.state_dict(keep_vars=True)), path, errors)
    elif isinstance(o, torch.Tensor) and o.layout == torch.sparse_coo:
        expect(name, {"indices": o._indices(), "values": o._values(), "size": o.shape}, path, errors)
    elif isinstance(o, torch.Tensor) and o.is_quantized:
        line(name, join("int_repr"), "T", str(o.dtype), dims(o.shape), "-", values(o.int_repr()))
        expect(name, {"scale": o.q_scale(), "zero_point": o.q_zero_point()}, path, errors)
    elif isinstance(o, (torch.Tensor, np.ndarray)):
        tensor(name, path, o)
    elif isinstance(o, dict):
        for i, (k, v) in enumerate(o.items()):
            plain = k is None or isinstance(k, (str, int))
            expect(name, v, join(k if plain else f"[{i}]"), errors)
    elif isinstance(o, (list, tuple, set, frozenset, collections.deque)):
        for i, v in enumerate(o):
            expect(name, v, join(i), errors)
    elif o is None:
        line(name, path, "V", "None", "")
    elif isinstance(o, bool):
        line(name, path, "V", "bool", str(int(o)))
    elif isinstance(o, int) and -2**63 <= o < 2**63:
        line(name, path, "V", "int", str(o))
    elif type(o) is float:
        line(name, path, "V", "float", repr(o))
    elif isinstance(o, str):
        line(name, path, "V", "str", o)
    elif isinstance(o, (torch.dtype, torch.device, torch.memory_format)):
        line(name, path, "V", "str", str(o))
    else:
        opaque = {int: "int", bytes: "bytes", complex: "__builtin__.complex",
                  slice: "__builtin__.slice", np.float64: "numpy.core.multiarray.scalar",
                  type: "collections.OrderedDict"}
        cls = type(o)
        line(name, path, "V", "opaque", opaque.get(cls, f"{cls.__module__}.{cls.__qualname__}"))


def save(name, o, protocol=2, errors=()):
    path = os.path.join(OUT, name + ".pt")
    torch.save(o, path, pickle_protocol=protocol)
    expect(name, torch.load(path), "", errors)


class Mine(torch.Tensor):
    pass


class Holder:
    """Stands for any class that the reader does not know."""


def by_torch():
    torch.manual_seed(1)
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) / 8 - 1
    save("one", base[0])
    save("dtypes", {
        str(d).split(".")[1]: torch.tensor([0, 1, 3, 100], dtype=d)
        for d in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64,
                  torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
                  torch.complex64, torch.complex128)
    } | {"special": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]),
         "scalar": torch.tensor(7, dtype=torch.int16), "empty": torch.zeros(0, 3)})
    save("views", {
        "whole": base, "transposed": base.permute(2, 0, 1), "part": base[1, :, 1::2],
        "row": base[0, 2], "expanded": base[:, :1, :1].expand(2, 3, 2),
        "overlapping": base.as_strided((3, 4), (1, 2), 5), "scalar": base[1, 2, 3],
        "one": base[:, 1:2, :], "none": base[:, 3:]})
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    save("state", {"model": net.state_dict(), "step": 7})
    grad = torch.ones(2, requires_grad=True)
    save("params", [net[0].weight, torch.nn.Parameter(torch.ones(2), requires_grad=False), grad,
                    net.state_dict(keep_vars=True)])
    nest = {
        "list": [1, [2.5, (True, None)], []], 3: {"a.b": "text", True: False}, None: {-4: 0.1},
        (1, 2): "tuple key", "size": torch.Size([2, 3]), "set": {5}, "frozen": frozenset(["x"]),
        "dtype": torch.bfloat16, "device": torch.device("cpu"),
        "gpu": torch.device("cuda", 1), "default": collections.defaultdict(list, a=[1]),
        "deque": collections.deque([1, 2], maxlen=5), "count": collections.Counter("aab"),
        "max": torch.max(base, 0), "big": 2**64 - 1, "min": -2**63, "nan": float("nan"),
        "bytes": b"\x00\xff", "complex": 1 + 2j, "slice": slice(1, 2), "ünï": "\U0001f600",
        "class": collections.OrderedDict, "np": np.float64(2.5), "empty": {}}
    nest["again"] = nest["list"]
    save("nest", nest)
    # Other protocols: other opcodes; bytes, complex and so on under Python 3's names.
    for k in ("bytes", "complex", "slice", "np", "class"):
        del nest[k]
    for protocol in (1, 3, 4, 5):
        save(f"nest{protocol}", nest, protocol)

    ascii_ = np.arange(6, dtype=np.int32).reshape(2, 3)
    high = np.array([[1.5, -2.5], [3.0, 1e9]])
    save("numpy2", {"ascii": ascii_, "high": high, "none": np.zeros((0, 2), np.float32),
                    "turned": np.asfortranarray(high)}, 2)
    for protocol in (4, 5):
        save(f"numpy{protocol}", {
            "high": high, "fortran": np.asfortranarray(high), "big": high.astype(">f4"),
            "bool": np.array([True, False]), "scalar": np.array(3.0, np.float16),
            "objects": np.array([None, "x"], dtype=object),
            "text": np.array(["ab"]), "pair": np.zeros(2, dtype="i4,f4")},
            protocol, [("text", "numpy array of U2"),
                       ("pair", "numpy array of V8")])

    held, safe = Holder(), Holder()
    held.deep = [{"x": torch.ones(2)}]
    safe.text = ["x"]
    safe.me = safe
    ns = argparse.Namespace(lr=0.1, dtype=torch.float32)
    save("opaque", {"args": ns, "safe": safe, "held": held, "after": torch.ones(1),
                    "module": torch.nn.Linear(1, 1), "io": io.BytesIO(b"x")}, 2,
         [("held", "inside an object of class __main__.Holder")])
    mine = torch.ones(2).as_subclass(Mine)
    mine.tag = 1
    save("kinds", [
        torch.eye(2).to_sparse(), torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
        mine, torch.zeros(2, device="meta"),
        torch.ones(2).untyped_storage() if hasattr(torch.ones(1), "untyped_storage")
        else torch.ones(2).storage(), torch.ones(3)], 2,
        [("3", "_rebuild_meta_tensor_no_storage"), ("4", "a storage that belongs to no tensor")])
    # As before torch 1.6: shared storages, views, many storages, a list.
    many = {f"w{i}": torch.tensor([i + 0.5]) for i in range(12)}
    for name, o in (("old", base[1]), ("old_many", {"net": net.state_dict(), "step": 7, **many,
                    "views": [base, base.permute(2, 0, 1), base[1, :, 1::2]],
                    "types": [torch.tensor([1, 2], dtype=d) for d in
                              (torch.bfloat16, torch.bool, torch.int16, torch.complex64)]})):
        path = os.path.join(OUT, name + ".pt")
        oldtorch.save(o, path)
        expect(name, torch.load(path))
    whole = open(os.path.join(OUT, "old.pt"), "rb").read()
    for name, b, text in (
            ("old_cut", whole[:-1], "ends inside of storage 0"),
            ("old_short", whole[:whole.rindex(b"q") - 40], "the pickle ends too early"),
            ("old_more", whole + b"x", "goes on for 1 bytes behind"),
            ("old_count", whole[:-104] + struct.pack("<Q", 23) + whole[-96:], "has 23 elements"),
            ("old_evil", whole.replace(b"ctorch._utils\n_rebuild_tensor_v2\n",
                                       b"cposix\nsystem\n"), "pickle calls posix.system")):
        with open(os.path.join(OUT, name + ".pt"), "wb") as f:
            f.write(b)
        line(name, "-", "X", text)


class Global:
    def __init__(self, name):
        self.module, self.name = name.rsplit(".", 1)


class Call:
    def __init__(self, name, *args, state=None):
        self.f, self.args, self.state = Global(name), args, state


class Storage:
    def __init__(self, cls, key, n, where="cpu"):
        self.id = ("storage", Global(cls), key, where, n)


class Raw:
    def __init__(self, code):
        self.code = code


class Pickler(pickle._Pickler):
    """Of what torch 1.13 does not know, too."""
    def save(self, o, save_persistent_id=True):
        if isinstance(o, Raw):
            self.write(o.code)
        elif isinstance(o, Global):
            self.write(f"c{o.module}\n{o.name}\n".encode())
        elif isinstance(o, Storage):
            self.save(o.id)
            self.write(pickle.BINPERSID)
        elif isinstance(o, Call):
            self.save(o.f)
            self.save(o.args)
            self.write(pickle.REDUCE)
            if o.state is not None:
                self.save(o.state)
                self.write(pickle.BUILD)
        else:
            super().save(o, save_persistent_id)


def pickled(o, protocol=2):
    f = io.BytesIO()
    Pickler(f, protocol).dump(o)
    return f.getvalue()


def write(name, o, storages=(), order=None, method=zipfile.ZIP_STORED):
    """o: an object, or the bytes of a pickle."""
    def put(member, data):
        z.writestr(zipfile.ZipInfo(f"archive/{member}"), data, method)

    with zipfile.ZipFile(os.path.join(OUT, name + ".pt"), "w") as z:
        put("data.pkl", o if isinstance(o, bytes) else pickled(o))
        if order is not None:
            put("byteorder", order)
        for key, data in storages:
            put(f"data/{key}", data)
        put("version", "3\n")


def v2(st, shape, stride, first=0, grad=False, f="torch._utils._rebuild_tensor_v2", more=()):
    return Call(f, st, first, shape, stride, grad, Call("collections.OrderedDict"), *more)


def v3(st, shape, stride, dtype):
    return v2(st, shape, stride, f="torch._utils._rebuild_tensor_v3", more=(Global(dtype),))


def by_hand():
    f32 = np.array([1.5, -2.0, 0.25, 8.0], "<f4")
    st = Storage("torch.FloatStorage", "0", 4, "cuda:3")
    npu = "torch_npu.utils.storage._rebuild_npu_tensor"
    write("places", [
        v2(st, (4,), (1,)),
        v2(Storage("torch.npu.FloatStorage", "0", 4, "npu:0"), (2, 2), (2, 1), f=npu, more=(2,)),
        v2(Storage("torch.cuda.HalfStorage", "h", 2, "cuda:0"), (2,), (1,), grad=True),
        Call("torch._utils._rebuild_tensor", st, 1, (3,), (1,)),
        Call("torch._utils._rebuild_parameter_with_state", v2(st, (4,), (1,)), True,
             Call("collections.OrderedDict"), {"tag": 1}),
        Call("torch._tensor._rebuild_from_type_v2", Global("torch._utils._rebuild_tensor_v2"),
             Global("somewhere.Tensor"), (st, 0, (1,), (1,), False, None), {}),
        Call("torch._utils._rebuild_device_tensor_from_cpu_tensor", v2(st, (2,), (2,)),
             Global("torch.float32"), "npu:0", True),
        Call("torch._utils._rebuild_device_tensor_from_numpy",
             Call("numpy.core.multiarray._reconstruct", Global("numpy.ndarray"), (0,), "b",
                  state=(1, (2,), Call("numpy.dtype", "i2", False, True, state=(
                      3, "<", None, None, None, -1, -1, 0)), False,
                      Raw(b"X\x04\0\0\0\x01\0\x02\x01"))),
             Global("torch.int16"), "xla:0", True)],
        [("0", f32.tobytes()), ("h", np.array([1, 2], "<f2").tobytes())])
    n = "places"
    line(n, "0", "T", "torch.float32", "4", "-", values(f32))
    line(n, "1", "T", "torch.float32", "2,2", "-", values(f32))
    line(n, "2", "T", "torch.float16", "2", "r", "1.0 2.0")
    line(n, "3", "T", "torch.float32", "3", "-", values(f32[1:]))
    line(n, "4", "T", "torch.float32", "4", "rp", values(f32))
    line(n, "5", "T", "torch.float32", "1", "-", "1.5")
    line(n, "6", "T", "torch.float32", "2", "r", "1.5 0.25")
    line(n, "7", "T", "i2", "2", "r", "1.0 258.0")

    # Codes and values from the definitions of the formats.
    kinds = [("float8_e4m3fn", bytes([0x38, 0x7e, 0x01, 0xff]), "1.0 448.0 0.001953125 nan"),
             ("float8_e5m2", bytes([0x3c, 0x7b, 0x01, 0xfc]),
              "1.0 57344.0 1.52587890625e-05 -inf"),
             ("uint16", struct.pack("<2H", 1, 65535), "1.0 65535.0"),
             ("uint32", struct.pack("<2I", 1, 2**32 - 1), "1.0 4294967295.0"),
             ("uint64", struct.pack("<2Q", 1, 2**63), "1.0 9.223372036854775808e18"),
             ("complex32", np.array([1.5, 9, -2, 9], "<f2").tobytes(), "1.5 -2.0"),
             ("bfloat16", bytes([0x80, 0x3f]), "1.0"),
             ("bits8", b"1", "49.0")]
    o = {}
    for i, (d, data, text) in enumerate(kinds):
        count = len(text.split())
        o[d] = v3(Storage("torch.storage.UntypedStorage", str(i), len(data)), (count,), (1,),
                  "torch." + d)
        text = " ".join(repr(float(x)) for x in text.split())
        line("v3", d, "T", "torch." + d, str(count), "-", text)
    write("v3", o, [(str(i), k[1]) for i, k in enumerate(kinds)])

    one = v2(Storage("torch.FloatStorage", "0", 4), (4,), (1,))
    write("big", one, [("0", f32.astype(">f4").tobytes())], order="big")
    line("big", "", "T", "torch.float32", "4", "-", values(f32))
    write("little", one, [("0", f32.tobytes())], order="little")
    line("little", "", "T", "torch.float32", "4", "-", values(f32))
    write("order", one, [("0", f32.tobytes())], order="pdp")
    line("order", "-", "X", "unknown byte order")
    write("deflated", [one, one], [("0", bytes(4096))], method=zipfile.ZIP_DEFLATED)
    for i in "01":
        line("deflated", i, "T", "torch.float32", "4", "-", "0.0 0.0 0.0 0.0")

    def s(n, key="0", cls="torch.FloatStorage", where="cpu"):
        return Storage(cls, key, n, where)
    wrong = [
        (v2(s(5), (4,), (1,)), "storage data/0 is shorter"),
        (v2(s(4, "1"), (4,), (1,)), "no storage data/1"),
        (v2(s(4, "../data/0"), (4,), (1,)), "no storage data/../data/0"),
        (v2(s(4), (5,), (1,)), ""), (v2(s(4), (2, 2), (3, 1)), ""),
        (v2(s(4), (1,), (1,), 4), ""), (v2(s(4), (2**62, 2**62), (1, 1)), ""),
        (v2(s(4), (2,), (2**62,)), ""), (v2(s(4), (-1,), (1,)), ""),
        (v2(s(4), (4,), (1, 1)), "makes no sense"), (v2(s(-1), (4,), (1,)), "makes no sense"),
        (v2(s(4), (4,), (1,), -1), "makes no sense"), (v2(s(4), 4, (1,)), "makes no sense"),
        (v2(s(4), (1.0,), (1,)), "makes no sense"), (v2(4, (4,), (1,)), "makes no sense"),
        (v2(s(4), (1,) * 65, (1,) * 65), "65 dimensions"),
        (v2(s(4, cls="torch.QInt8Storage"), (4,), (1,)), ("torch.qint8", f32.view("i1")[:4])),
        (v2(s(4, where="meta"), (4,), (1,)), "device meta"),
        (v2(s(16, cls="torch.UntypedStorage"), (4,), (1,)), "elements of type"),
        (Call("torch._utils._rebuild_tensor_v2"), "makes no sense"),
        (v2(s(4), (4,), (1,), more=({"neg": False, "conj": True},)), "lazily conjugated"),
        (Call("torch._utils._rebuild_new_thing", s(4)), "made by _rebuild_new_thing"),
        (Call("torch._utils._rebuild_parameter", 3, True, {}), "makes no sense"),
        (Call("torch.storage._load_from_bytes", "x"), "without torch.save"),
        (Call("some.where.Thing", one), "inside an object of class some.where.Thing"),
        (v2(s(4), (4,), (1,), more=({"neg": False},)), None), (one, None)]
    write("wrong", [w for w, _ in wrong], [("0", f32.tobytes())])
    for i, (_, text) in enumerate(wrong):
        if text is None:
            line("wrong", str(i), "T", "torch.float32", "4", "-", values(f32))
        elif isinstance(text, tuple):
            line("wrong", str(i), "T", text[0], "4", "-", values(text[1]))
        else:
            line("wrong", str(i), "E", text)

    bomb = []
    for _ in range(40):
        bomb = [bomb, bomb]
    deep = 1
    for _ in range(65):
        deep = [deep]
    cycle = [1]
    cycle.append(cycle)
    for name, o, text in (
            ("bomb", bomb, "too many places"), ("deep", deep, "nested more than 64 deep"),
            ("cycle", cycle, "holds itself"),
            ("twice", Raw(b"(X\1\0\0\0aNX\1\0\0\0aNd"), "the key 'a' twice"),
            ("longname", {"x" * 5000: 1}, "a name of more than"),
            ("evil_posix", [one, Call("posix.system", "true")], "pickle calls posix.system: refused"),
            ("evil_eval", Call("builtins.eval", "1"), "pickle calls builtins.eval: refused"),
            ("evil_popen", Call("subprocess.Popen", "true"), "subprocess.Popen: refused"),
            ("evil_func", [one, Call("torch._tensor._rebuild_from_type_v2", Global("os.system"),
                                     Global("x.Y"), ("true",), {})],
             "pickle calls os.system: refused")):
        write(name, o, [("0", f32.tobytes())])
        if name == "cycle":
            line(name, "0", "V", "int", "1")
        line(name, "-", "X", text)
    # Called, and the result thrown away.
    write("evil_popped", pickled(one)[:-1] + b"cos\nsystem\n)R0.", [("0", f32.tobytes())])
    line("evil_popped", "-", "X", "pickle calls os.system: refused")
    with zipfile.ZipFile(os.path.join(OUT, "other.pt"), "w") as z:
        z.writestr(zipfile.ZipInfo("a/b.npy"), "x")
    line("other", "-", "X", "no data.pkl")
    open(os.path.join(OUT, "text.pt"), "w").write("no zip at all\n")
    line("text", "-", "X", "not a zip")


def zips():
    """a.txt is stored, b/b.txt deflated, c empty (deflated in `wide`); as Python writes them. `wide` has 64-bit
    fields everywhere, `streamed` data descriptors, as if written to a pipe."""
    class Pipe(io.RawIOBase):
        def __init__(self, f):
            self.f = f

        def writable(self):
            return True

        def write(self, b):
            return self.f.write(b)

    folder = os.path.join(os.path.dirname(OUT), "zip")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    limit = zipfile.ZIP64_LIMIT
    for name in ("plain", "wide", "streamed"):
        zipfile.ZIP64_LIMIT = -1 if name == "wide" else limit
        with open(os.path.join(folder, name + ".zip"), "wb") as f:
            with zipfile.ZipFile(Pipe(f) if name == "streamed" else f, "w") as z:
                def info(member, method):
                    i = zipfile.ZipInfo(member)
                    i.compress_type = method
                    return i
                z.writestr(info("a.txt", zipfile.ZIP_STORED), "stored")
                z.writestr(info("b/b.txt", zipfile.ZIP_DEFLATED), "deflated " * 100)
                method = zipfile.ZIP_DEFLATED if name == "wide" else zipfile.ZIP_STORED
                z.writestr(info("c", method), "")
    zipfile.ZIP64_LIMIT = limit


def main():
    zips()
    shutil.rmtree(OUT, ignore_errors=True)
    os.mkdir(OUT)
    by_torch()
    by_hand()
    with open(os.path.join(OUT, "expected.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
