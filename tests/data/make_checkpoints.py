#!/usr/bin/python3
"""Makes tests/data/checkpoints: one checkpoint in every format that holds one, as small as it can be.

/usr/bin/python3 tests/data/make_checkpoints.py     (Debian 12: python3-torch, python3-numpy)

same.*, same/: the same arrays in each format. same.raw holds their elements, row-major and
little-endian, one array behind the other; same.tsv says dtype, shape, offset and length of each.
There is no python3-safetensors in Debian, so its writer is the format's own description: a
length, JSON, data.
"""
import argparse
import io
import json
import os
import pickle
import shutil
import struct
import sys
import types
import zipfile

import numpy as np
import torch

sys.dont_write_bytecode = True
import oldtorch  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")
ST = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "f8e4m3": "F8_E4M3",
      "f8e5m2": "F8_E5M2", "f8e8m0": "F8_E8M0", "f8e4m3fnuz": "F8_E4M3FNUZ",
      "f8e5m2fnuz": "F8_E5M2FNUZ", "i64": "I64", "i32": "I32", "i16": "I16", "i8": "I8",
      "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8", "bool": "BOOL", "c64": "C64"}
NAMES = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1",
         "u8": "u1", "bool": "?", "c64": "c8", "c128": "c16"}


class Array:
    """Elements as bytes, since numpy has no bfloat16."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)

    def numpy(self):
        kind = "V2" if self.dtype == "bf16" else "<" + NAMES[self.dtype].replace("?", "?")
        return np.frombuffer(self.data, np.dtype(kind)).reshape(self.shape)

    def torch(self):
        if self.dtype == "bf16":
            bits = np.frombuffer(self.data, "<i2").reshape(self.shape).copy()
            return torch.from_numpy(bits).view(torch.bfloat16)
        return torch.from_numpy(self.numpy().copy())


def of(dtype, array):
    array = np.asarray(array)
    return Array(dtype, array.shape, array.tobytes())


def arrays():
    rng = np.random.default_rng(7)
    f = rng.standard_normal((4, 3)).astype("<f4")
    f[0, 0], f[1, 1], f[2, 2], f[3, 0] = np.nan, np.inf, -0.0, 1e-42
    return {
        "embed.weight": of("f32", f),
        "layers.0.bias": of("f16", rng.standard_normal(5).astype("<f2")),
        "layers.0.weight": of("bf16", (rng.standard_normal((2, 3)).astype("<f4")
                                       .view("<u4") >> 16).astype("<u2")),
        "layers.2.weight": of("f64", rng.standard_normal((2, 2))),
        "layers.10.weight": of("f32", rng.standard_normal((3, 2)).astype("<f4")),
        "ids": of("i64", np.array([[1, -2], [3, 2**40]])),
        "small.i32": of("i32", np.array([7, -8], "<i4")),
        "small.i16": of("i16", np.array([7, -8, 9], "<i2")),
        "small.i8": of("i8", np.array([[-128, 127]], "i1")),
        "small.u8": of("u8", np.array([0, 255, 3], "u1")),
        "mask": of("bool", np.array([True, False, True])),
        "phase": of("c64", np.array([1 + 2j, -3.5j], "<c8")),
        "scale": of("f32", np.float32(0.25)),
        "none": of("f32", np.zeros((0, 3), "<f4")),
    }


def safetensors(path, all_of, metadata=None, order=None, pad=True):
    """Data in the order of the element's size, then of the name, as the reference writes it."""
    size = {n: len(a.data) // max(1, int(np.prod(a.shape))) for n, a in all_of.items()}
    names = order or sorted(all_of, key=lambda n: (-size[n], n))
    head = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for n in names:
        a = all_of[n]
        head[n] = {"dtype": ST.get(a.dtype, a.dtype), "shape": a.shape,
                   "data_offsets": [len(data), len(data) + len(a.data)]}
        data += a.data
    raw_safetensors(path, json.dumps(head, separators=(",", ":")), data, pad)


def raw_safetensors(path, head, data, pad=True):
    head = head.encode()
    if pad:
        head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)


def npz(path, all_of, method=zipfile.ZIP_STORED):
    """As numpy's savez: force_zip64 puts zip64 fields into the local headers only."""
    with zipfile.ZipFile(path, "w", method) as z:
        for n, a in all_of.items():
            info = zipfile.ZipInfo(n + ".npy")
            info.compress_type = method
            with z.open(info, "w", force_zip64=True) as f:
                np.lib.format.write_array(f, a.numpy())


def wide(path, src):
    """Every size and offset of the central directory in zip64 fields, as above 4 GiB."""
    with open(src, "rb") as f:
        b = f.read()
    end = b.rindex(b"PK\5\6")
    n, size, off = struct.unpack("<HII", b[end + 10:end + 20])
    old, new, at = b[off:off + size], b"", 0
    for _ in range(n):
        h = list(struct.unpack("<4s6H3I5H2I", old[at:at + 46]))
        name = old[at + 46:at + 46 + h[10]]
        at += 46 + h[10] + h[11] + h[12]
        extra = struct.pack("<HHQQQ", 1, 24, h[9], h[8], h[16])
        h[8] = h[9] = h[16] = 0xFFFFFFFF
        h[11], h[12] = len(extra), 0
        new += struct.pack("<4s6H3I5H2I", *h) + name + extra
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n, len(new), off)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, off + len(new), 1)
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    # The number of members says 0xffff, so a reader must look into the zip64 record.
    with open(path, "wb") as f:
        f.write(b[:off] + new + end64 + locator + tail)


def same(all_of):
    os.makedirs(f"{OUT}/same")
    with open(f"{OUT}/same.raw", "wb") as raw, open(f"{OUT}/same.tsv", "w") as tsv:
        for n, a in all_of.items():
            tsv.write(f"{n}\t{a.dtype}\t{','.join(map(str, a.shape))}\t{raw.tell()}\t"
                      f"{len(a.data)}\n")
            raw.write(a.data)
            np.save(f"{OUT}/same/{n}.npy", a.numpy())
    npz(f"{OUT}/same.npz", all_of)
    npz(f"{OUT}/same-deflated.npz", all_of, zipfile.ZIP_DEFLATED)
    wide(f"{OUT}/same-wide.npz", f"{OUT}/same.npz")
    state = {n: a.torch() for n, a in all_of.items()}
    torch.save(state, f"{OUT}/same.pt")
    oldtorch.save(state, f"{OUT}/same-old.pt")
    safetensors(f"{OUT}/same.safetensors", all_of, {"format": "pt"})


def small(all_of):
    """As small as can be, for every byte of them is damaged in turn. The scale shares a storage
    with the bias."""
    w = Array("f32", [2, 2], all_of["layers.10.weight"].data[:16])
    b = all_of["layers.0.bias"]
    some = {"w": w, "b": b, "n": Array("i64", [], struct.pack("<q", 258))}
    bias = b.torch()
    state = {"w": w.torch(), "b": bias, "s": bias[1:3], "n": some["n"].torch()}
    torch.save(state, f"{OUT}/small.pt")
    oldtorch.save(state, f"{OUT}/small-old.pt")
    safetensors(f"{OUT}/small.safetensors", some)
    npz(f"{OUT}/small.npz", some)
    npz(f"{OUT}/small-deflated.npz", some, zipfile.ZIP_DEFLATED)
    wide(f"{OUT}/small-wide.npz", f"{OUT}/small.npz")
    np.save(f"{OUT}/small.npy", w.numpy())


def float8(path):
    """All codes of every type of 8 bits; and two types that are too small to be decoded."""
    codes = bytes(range(256))
    safetensors(path, {t: Array(t, [16, 16], codes) for t in
                       ("f8e4m3", "f8e5m2", "f8e8m0", "f8e4m3fnuz", "f8e5m2fnuz")} |
                {"u64": of("u64", np.array([0, 2**63], "<u8")),
                 "u32": of("u32", np.array([1, 2**31], "<u4")),
                 "u16": of("u16", np.array([2, 2**15], "<u2"))}, pad=False)


def sharded(all_of):
    """Sets of files with an index; one file is missing in broken/."""
    names = sorted(all_of)
    parts = {f"model-{i + 1:05}-of-00003": names[i::3] for i in range(3)}
    for folder in ("shards", "bins", "broken"):
        os.makedirs(f"{OUT}/{folder}")
    for part, some in parts.items():
        few = {n: all_of[n] for n in some}
        safetensors(f"{OUT}/shards/{part}.safetensors", few)
        if part != "model-00002-of-00003":
            safetensors(f"{OUT}/broken/{part}.safetensors", few)
        torch.save({n: a.torch() for n, a in few.items()}, f"{OUT}/bins/pytorch_{part}.bin")
    where = {n: part for part, some in parts.items() for n in some}
    index(f"{OUT}/shards/model.safetensors.index.json",
          {n: p + ".safetensors" for n, p in where.items()})
    index(f"{OUT}/bins/pytorch_model.bin.index.json",
          {n: f"pytorch_{p}.bin" for n, p in where.items()})
    index(f"{OUT}/broken/model.safetensors.index.json",
          {n: p + ".safetensors" for n, p in where.items()} |
          {"lost": "model-00001-of-00003.safetensors"})
    index(f"{OUT}/out.safetensors.index.json", {"x": "../checkpoints/same.safetensors"})


def index(path, weight_map):
    with open(path, "w") as f:
        json.dump({"metadata": {"total_size": 0}, "weight_map": weight_map}, f, indent=1)


def refused():
    """What a reader of safetensors must refuse, by the rules of the reference."""
    f4 = '"dtype":"F32","shape":[2]'
    d = bytes(range(8))
    cases = {
        "hole": ('{"a":{%s,"data_offsets":[8,16]}}' % f4, d + d),
        "overlap": ('{"a":{%s,"data_offsets":[0,8]},"b":{%s,"data_offsets":[4,12]}}' % (f4, f4),
                    d + d[:4]),
        "long": ('{"a":{%s,"data_offsets":[0,8]}}' % f4, d + d),
        "outside": ('{"a":{%s,"data_offsets":[0,16]}}' % f4, d),
        "lies": ('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', d),
        "huge": ('{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}',
                 b""),
        "minus": ('{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', d),
        "back": ('{"a":{%s,"data_offsets":[8,0]}}' % f4, d),
        "twice": ('{"a":{%s,"data_offsets":[0,8]},"a":{%s,"data_offsets":[8,16]}}' % (f4, f4),
                  d + d),
        "type": ('{"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}}', d),
        "deep": ('{"a":' + "[" * 600 + "]" * 600 + "}", b""),
        "dims": ('{"a":{"dtype":"U8","shape":[%s],"data_offsets":[0,8]}}' % ",".join("1" * 70),
                 d),
        "lacks": ('{"a":{"dtype":"F32","shape":[2]}}', b""),
        "list": ("{[]}", b""),
    }
    os.makedirs(f"{OUT}/refused")
    for name, (head, data) in cases.items():
        raw_safetensors(f"{OUT}/refused/{name}.safetensors", head, data)
    with open(f"{OUT}/refused/length.safetensors", "wb") as f:
        f.write(struct.pack("<Q", 2**63) + b'{"a":1}')
    with open(f"{OUT}/refused/cut.safetensors", "wb") as f:
        f.write(struct.pack("<Q", 1000) + b'{"a":1}')


def refused_npz():
    """Zips that lie; shapes that cannot be."""
    def npy(shape, data, descr="<f4"):
        head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data

    def zipped(name, members, change=lambda b: b):
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w") as z:
            for n, (data, method) in members.items():
                z.writestr(zipfile.ZipInfo(n), data, method)
        with open(f"{OUT}/refused/{name}.npz", "wb") as out:
            out.write(change(f.getvalue()))

    def overlap(b):   # the second entry of the directory points to the first member
        at = b.rindex(b"PK\1\2")
        return b[:at + 42] + struct.pack("<I", 0) + b[at + 46:]

    def longer(b):    # the directory says 8 GiB
        at = b.index(b"PK\1\2")
        return b[:at + 20] + struct.pack("<II", 0xfffffff0, 0xfffffff0) + b[at + 28:]

    def bomb(b):      # 40 bytes are to become 4 GiB
        at = b.index(b"PK\1\2")
        return b[:at + 24] + struct.pack("<I", 0xfffffff0) + b[at + 28:]

    def locked(b):
        at = b.index(b"PK\1\2")
        return b[:at + 8] + b"\1" + b[at + 9:]
    store, deflate = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    two = {"a.npy": (npy("(2,)", bytes(8)), store), "b.npy": (npy("(2,)", bytes(8)), store)}
    zipped("overlap", two, overlap)
    zipped("longer", two, longer)
    zipped("locked", two, locked)
    zipped("bomb", {"a.npy": (npy("(2,)", bytes(8)), deflate)}, bomb)
    zipped("absurd", {"a.npy": (npy("(4611686018427387904, 4611686018427387904)", b""), store)})
    zipped("dims", {"a.npy": (npy("(" + "1, " * 70 + ")", bytes(4)), store)})
    zipped("more", {"a.npy": (npy("(200,)", bytes(8)), deflate)})
    zipped("header", {"a.npy": (b"\x93NUMPY\1\0\xff\xff{'descr'", deflate)})
    with open(f"{OUT}/refused/cut.npz", "wb") as f:
        f.write(open(f"{OUT}/small.npz", "rb").read()[:400])


def odd_npz(path):
    """Fortran order, big endian, a name with a slash, objects, a member that is no array."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        def put(name, a):
            f = io.BytesIO()
            np.lib.format.write_array(f, a, allow_pickle=True)
            add(name, f.getvalue())

        def add(name, data):   # without the time of day
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        put("fortran.npy", np.asfortranarray(np.arange(6, dtype="<f4").reshape(2, 3)))
        put("big.npy", np.array([1, -2, 300], ">i4"))
        put("a/b.npy", np.array([1.5, 2.5]))
        put("objects.npy", np.array([{}], object))
        put("Functional.linear.0.forward.input.0.npy", np.ones(3, "<f4"))
        add("notes.txt", b"no array")
        with io.BytesIO() as f:
            np.save(f, np.array([1.5, 2.5]))
            add("short.npy", f.getvalue()[:-8])


class Newer:
    """The dataclasses of torch.distributed.checkpoint, which cannot be imported here: torch
    1.13's do not work with Python 3.11."""

    def __init__(self, module, name):
        if module not in sys.modules:
            sys.modules[module] = types.ModuleType(module)
        self.cls = type(name, (), {"__module__": module, "__qualname__": name})
        setattr(sys.modules[module], name, self.cls)

    def __call__(self, **fields):
        x = self.cls.__new__(self.cls)
        x.__dict__.update(fields)
        return x


META = "torch.distributed.checkpoint.metadata"
FILES = "torch.distributed.checkpoint.filesystem"
Metadata, Index = Newer(META, "Metadata"), Newer(META, "MetadataIndex")
Tensor, Chunk = Newer(META, "TensorStorageMetadata"), Newer(META, "ChunkStorageMetadata")
Bytes, Props = Newer(META, "BytesStorageMetadata"), Newer(META, "TensorProperties")
Info = Newer(FILES, "_StorageInfo")


class Sharded:
    """A folder of two ranks' files; parts stand in any order in them."""

    def __init__(self, folder):
        self.folder = f"{OUT}/{folder}"
        os.makedirs(self.folder)
        self.files = {0: b"", 1: b""}
        self.names, self.storage = {}, {}

    def store(self, rank, obj, zipped=True):
        f = io.BytesIO()
        torch.save(obj, f, _use_new_zipfile_serialization=zipped)
        off = len(self.files[rank])
        self.files[rank] += f.getvalue()
        return Info(relative_path=f"__{rank}_0.distcp", offset=off, length=len(f.getvalue()))

    def tensor(self, name, t, cuts, lose=None):
        """cuts: (offsets, sizes) of each part."""
        chunks = []
        for i, (at, size) in enumerate(cuts):
            part = t[tuple(slice(a, a + s) for a, s in zip(at, size))].clone()
            chunks.append(Chunk(offsets=torch.Size(at), sizes=torch.Size(size)))
            info = self.store(i % 2, part)
            if lose != i:
                key = Index(fqn=name, offset=torch.Size(at), index=i)
                self.storage[key] = info
        self.names[name] = Tensor(properties=Props(dtype=t.dtype), size=t.shape, chunks=chunks)

    def bytes(self, name, obj):
        self.names[name] = Bytes()
        self.storage[Index(fqn=name, offset=None, index=None)] = self.store(0, obj)

    def write(self):
        for rank, b in self.files.items():
            with open(f"{self.folder}/__{rank}_0.distcp", "wb") as f:
                f.write(b)
        self.pickle(Metadata(state_dict_metadata=self.names, planner_data=None,
                             storage_data=self.storage, storage_meta=None, version="1.0.0"))

    def pickle(self, obj):
        with open(f"{self.folder}/.metadata", "wb") as f:
            pickle.dump(obj, f)


def dcp_sharded(all_of):
    t = {n: a.torch() for n, a in all_of.items()}
    s = Sharded("dcp")
    for n, x in t.items():
        s.tensor(n, x, [((0,) * x.dim(), tuple(x.shape))])
    s.bytes("extra", {"step": 7, "lr": [0.5]})
    s.write()

    s = Sharded("dcp-shards")
    s.tensor("embed.weight", t["embed.weight"],
             [((0, 0), (2, 2)), ((0, 2), (2, 1)), ((2, 0), (2, 2)), ((2, 2), (2, 1))])
    s.tensor("layers.0.weight", t["layers.0.weight"], [((0, 0), (2, 3))])
    s.tensor("layers.0.bias", t["layers.0.bias"], [((0,), (3,)), ((3,), (2,))])
    s.tensor("scale", t["scale"], [((), ())])
    s.bytes("optimizer.param_groups", [{"lr": 0.5, "betas": (0.9, 0.95)}])
    s.bytes("step", 7)
    s.write()
    torch.save({"iteration": 7, "args": None}, f"{s.folder}/common.pt")

    s = Sharded("small-dcp")
    s.tensor("w", t["layers.10.weight"], [((0, 0), (2, 2)), ((2, 0), (1, 2))])
    s.tensor("n", t["scale"], [((), ())])
    s.write()

    s = Sharded("dcp-broken")
    bias = t["layers.0.bias"]
    s.tensor("holes", bias, [((0,), (3,)), ((4,), (1,))])
    s.tensor("twice", bias, [((0,), (3,)), ((2,), (2,))])
    s.tensor("good", bias, [((0,), (3,)), ((3,), (2,))])
    s.tensor("lost", bias, [((0,), (3,)), ((3,), (2,))], lose=1)
    s.tensor("short", bias, [((0,), (5,))])
    s.tensor("file", bias, [((0,), (5,))])
    s.tensor("out", bias, [((0,), (5,))])
    s.tensor("other", bias, [((0,), (5,))])
    s.tensor("zipped", bias, [((0,), (5,))])
    s.bytes("evil", 7)
    for k, v in s.storage.items():
        if k.fqn == "short":
            v.length -= 1
        elif k.fqn == "file":
            v.relative_path = "__2_0.distcp"
        elif k.fqn == "out":
            v.relative_path = "../dcp-shards/__0_0.distcp"
        elif k.fqn == "other":
            v.offset, v.length = s.storage[next(iter(s.storage))].offset, v.length - 64
        elif k.fqn == "zipped":
            v.transform_descriptors = ["zstd"]
        elif k.fqn == "evil":
            v.offset = 1 << 62
    s.write()
    for name, obj in (("dcp-evil", Run()), ("dcp-else", {"a": 1})):
        s = Sharded(name)
        s.write()
        s.pickle(obj)


def universal():
    """DeepSpeed's: a flat parameter, its shape in the model states."""
    for path, o in (("zero/w/fp32.pt", torch.arange(6.)), ("zero/w/exp_avg.pt", torch.ones(6)),
                    ("zero_pp_rank_0_mp_rank_00_model_states.pt", {
                        "module": {"w": torch.zeros(0), "buf": torch.ones(2)},
                        "param_shapes": [{"w": torch.Size([2, 3])}]})):
        os.makedirs(os.path.dirname(f"{OUT}/universal/{path}"), exist_ok=True)
        torch.save(o, f"{OUT}/universal/{path}")


def megatron():
    """Two iterations of two ranks, converted weights, gradients; DeepSpeed's names; a distributed
    checkpoint of an iteration."""
    def put(path, obj):
        os.makedirs(os.path.dirname(f"{OUT}/{path}"), exist_ok=True)
        torch.save(obj, f"{OUT}/{path}")
    torch.manual_seed(1)
    ones = torch.ones(2)
    for it, rank in ((10, "00_000"), (10, "01_000"), (10, "00_001"), (10, "01_001"), (200, "00")):
        folder = f"megatron/iter_{it:07}/mp_rank_{rank}"
        put(f"{folder}/model_optim_rng.pt", {
            "args": argparse.Namespace(lr=0.1), "checkpoint_version": 3.0, "iteration": it,
            "model": {"language_model": {"weight": torch.randn(2), "view": torch.eye(3)[1]}},
            "optimizer": {"state": {0: {"step": 3, "exp_avg": ones}},
                          "param_groups": [{"lr": 0.1}]},
            "rng_state": [{"np": ("MT19937", np.array([1, 2**31], np.uint32))}]})
    put("megatron/iter_0000010/mp_rank_00_000/distrib_optim.pt",
        {0: {torch.float32: {"param": ones}}})
    put("megatron/release/mp_rank_00/model_optim_rng.pt", {"model": {"weight": ones}})
    put("megatron/wgrads/iter_0000010/mp_rank_00.pth", {"language_model.weight": ones})
    put("megatron/wgrads/iter_0000010/mp_rank_01.pth", {"language_model.weight": ones})
    put("megatron/activations/iter_0000010/mp_rank_00.pth", {"language_model": ones})
    with open(f"{OUT}/megatron/latest_checkpointed_iteration.txt", "w") as f:
        f.write("200")
    shutil.copytree(f"{OUT}/dcp-shards", f"{OUT}/megatron/iter_0000300")
    for rank in ("00", "01"):
        put(f"deepspeed/global_step5/mp_rank_{rank}_model_states.pt", {"module": {"w": ones}})
        for data in range(2):
            put(f"deepspeed/global_step5/bf16_zero_pp_rank_{data}_mp_rank_{rank}_optim_states.pt",
                {"state": {"w": ones}})


class Run:
    def __reduce__(self):
        return os.system, ("touch /tmp/was-run",)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    all_of = arrays()
    same(all_of)
    small(all_of)
    float8(f"{OUT}/float8.safetensors")
    safetensors(f"{OUT}/tiny.safetensors", {"x": Array("F4", [4], b"\x12\x34"),
                                            "y": of("i32", np.array([1, 2], "<i4"))})
    sharded(all_of)
    refused()
    dcp_sharded(all_of)
    megatron()
    universal()
    refused_npz()
    odd_npz(f"{OUT}/odd.npz")


if __name__ == "__main__":
    main()
