"""Dumps that no network gives: every leaf form, every tensor form, and broken files."""
import argparse
import collections
import io
import json
import os
import pickle
import zipfile
import zlib

import numpy as np
import torch
from torch import nn

from expect import row


def tensor(dtype, shape, *stats, kind="torch.Tensor", **more):
    d = {"type": kind, "dtype": dtype, "shape": shape}
    d.update(zip(("Max", "Min", "Mean", "Norm"), stats))
    return {**d, "requires_grad": False, **more}


def dump(folder, data, **top):
    os.makedirs(folder, exist_ok=True)
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    with open(os.path.join(folder, "dump.json"), "w") as f:
        json.dump({**head, **top, "data": data}, f, indent=1)


def leaves(folder):
    """All leaf forms in one call; statistics that are no numbers; nesting; empty members."""
    nan, inf, f32 = float("nan"), float("inf"), "torch.float32"
    shard = [{"Shard": {"dim": 0}}, {"Replicate": {}}, {"Partial": {"reduce_op": "sum"}}]
    num = {"type": "int", "value": 1}
    args = [
        tensor(f32, [2, 3], 1.5, -2.0, 0.25, 3.0),
        tensor(f32, [2], nan, nan, nan, nan),
        tensor(f32, [2], inf, -inf, nan, inf),
        tensor("torch.int64", [4], 7, -7, None, None),
        tensor("torch.bool", [4], True, False, None, None),
        tensor("torch.float8_e4m3fn", [4], None, None, None, None),
        tensor("torch.bfloat16", [], 0.5, 0.5, 0.5, 0.5),
        tensor("torch.float64", [0, 3], None, None, None, None),
        tensor(f32, [8], 1.0, -1.0, 0.0, 2.0, kind="DTensor",
               device_mesh=[0, 1], placements=shard),
        tensor(f32, [8], None, None, None, None, kind="FakeTensor"),
        tensor(f32, [8], 1.0, 0.0, 0.5, 2.0, kind="AsyncCollectiveTensor"),
        tensor("torch.float16", [8], inf, 0.0, nan, inf,
               Max_except_inf_nan=65504.0, Min_except_inf_nan=0.0),
        tensor(f32, [4], None, None, None, None, md5="0x00000000deadbeef"),
        num, {"type": "int", "value": -9007199254740993}, {"type": "float", "value": 1e-05},
        {"type": "float", "value": nan}, {"type": "float", "value": -inf},
        {"type": "bool", "value": True}, {"type": "str", "value": "i,j->ij \"q\" \u00e9\n\t"},
        {"type": "slice", "value": [0, None, None]}, {"type": "ellipsis", "value": "..."},
        {"type": "torch.Size", "value": [32, 3]}, {"type": "torch.device", "value": "npu:0"},
        {"type": "torch.dtype", "value": "torch.float16"},
        {"type": "torch.memory_format", "format": "torch.channels_last"},
        {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "2515757873"},
        {"class_type": "torch.distributed.P2POp", "tensor": tensor(f32, [2], 1.0, 0.0, 0.5, 1.0),
         "op": "isend", "peer": 1, "tag": 0, "group_id": "2515757873"},
        {"type": "torch.distributed.ReduceOp", "value": "RedOpType.SUM"},
        {"type": "int64", "value": 3},
        {"type": "numpy.ndarray", "dtype": "float32", "shape": [4],
         "Max": 4.0, "Min": 1.0, "Mean": 2.5, "Norm": 5.477226},
        None, [], {}, [num, [num, [num, None]]],
        {"a": num, "b": [tensor(f32, [1], 2.0, 2.0, 2.0, 2.0)], "c.d": None},
    ]
    kwargs = {"dim": num, "dtype": {"type": "torch.dtype", "value": "torch.float16"},
              "out": None, "weight": tensor(f32, [3], 1.0, 1.0, 1.0, 1.7320508)}
    out = [tensor(f32, [2, 3], 3.0, 0.0, 1.0, 4.0), [tensor(f32, [2], 1.0, -0.0, 0.0, 1.0)]]
    dump(folder, {
        "Functional.everything.0.forward": {
            "input_args": args, "input_kwargs": kwargs, "output": out},
        "Torch.nothing.0.forward": {"input_args": [], "input_kwargs": {}, "output": []},
        "Tensor.flagged.0.forward": {"input_args": [args[0]], "input_kwargs": {},
                                     "output": [args[0]], "is_nan": True,
                                     "is_recompute": True},
        "NPU.npu_swiglu.12.backward": {"input": [args[0], None], "output": [None, args[0]]},
    })


def views(folder, expect_dir):
    """.pt files whose tensors are views, Parameters, of every dtype, in containers. The
    expected values are of the logical, contiguous tensor."""
    os.makedirs(folder)
    g = torch.Generator().manual_seed(3)
    base = torch.randn(6, 8, generator=g)
    ramp = torch.arange(-6, 6).reshape(3, 4)
    halves = torch.tensor([1.5, -0., 65504, float("inf"), float("-inf"), float("nan"), 6e-8])
    files = {
        "plain": base, "slice": base[1:4, 2:7], "transpose": base.t(), "column": base[:, 3],
        "step": base[::2, ::3], "expand": base[:, :1].expand(6, 5), "item": base[2, 2],
        "permute": torch.randn(2, 3, 4, generator=g).permute(2, 0, 1),
        "parameter": nn.Parameter(base[:2].clone()), "wants_grad": base.clone().requires_grad_(),
        "zero_dim": torch.tensor(2.5), "empty": torch.empty(0, 3), "bf16": base.bfloat16(),
        "fp16": halves.half(), "fp32": halves, "fp64": base.double() * 1e100,
        "int8": ramp.to(torch.int8), "uint8": (ramp + 200).to(torch.uint8),
        "int16": ramp.to(torch.int16) * 5000, "int32": ramp.to(torch.int32) * 300000000,
        "int64": ramp * 10 ** 17, "bool": ramp > 0,
        "complex64": torch.complex(base[0], base[1]),
        "complex128": torch.complex(base[0].double(), base[1].double()),
    }
    for name, t in files.items():
        torch.save(t, f"{folder}/{name}.pt")
    nested = collections.OrderedDict(
        model=collections.OrderedDict([("fc.weight", base), ("fc.bias", base[0])]),
        both=[base[1:3], (base[3:].t(), 7)], step=12, lr=1e-3, name="adam", flag=True,
        nothing=None, big=2 ** 70, shape=base.shape, dtype=torch.float16)
    torch.save(nested, f"{folder}/nested.pt")
    torch.save({"x": base[0], "args": argparse.Namespace(lr=0.1, name="n")},
               f"{folder}/namespace.pt")
    torch.save({"x": base[0], "s": torch.eye(3).to_sparse()}, f"{folder}/sparse.pt")
    torch.save({"x": base[0], "q": torch.quantize_per_tensor(base, .1, 0, torch.qint8)},
               f"{folder}/quantized.pt")
    torch.save(nn.Linear(2, 2), f"{folder}/module.pt")
    legacy(base, f"{folder}/legacy.pt")
    for path, t in (("nested:model.fc.weight", base), ("nested:model.fc.bias", base[0]),
                    ("nested:both.0", base[1:3]), ("nested:both.1.0", base[3:].t())):
        files[path] = t
    with open(f"{expect_dir}/views.tsv", "w") as f, np.errstate(all="ignore"):
        f.write(row("name", "dtype", "shape", "stride", "offset", "requires_grad", "max", "min",
                    "mean", "norm", "crc32"))
        for name, t in files.items():
            f.write(view_row(name, t))


def legacy(t, path):
    """The form before torch 1.6, no zip. It names a storage by its address: not the same in
    every run, so it is made so."""
    torch.save(t, path, _use_new_zipfile_serialization=False)
    with open(path, "r+b") as f:
        data = f.read()
        f.seek(0)
        address = str(t.storage()._cdata).encode()
        f.write(data.replace(address, b"9" * len(address)))


def numbers(xs):
    return ",".join(map(str, xs)) or "-"


def view_row(name, t):
    c = t.detach().contiguous()
    raw = (c.view(torch.int16) if c.dtype == torch.bfloat16 else c).numpy().tobytes()
    a = (c.float() if c.dtype == torch.bfloat16 else c).numpy()
    a = (abs(a) if a.dtype.kind == "c" else a).astype(np.float64).ravel()
    s = ["-"] * 4
    if a.size:
        s = [float(np.fmax.reduce(a)), float(np.fmin.reduce(a)), float(a.mean()),
             float(np.sqrt((a * a).sum()))]
    return row(name, str(t.dtype)[6:], numbers(t.shape), numbers(t.stride()),
               t.storage_offset(), int(t.requires_grad), *s, f"{zlib.crc32(raw):08x}")


def npys(folder):
    """A folder of .npy files, of each version, order and byte order."""
    os.makedirs(folder)
    a = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
    np.save(f"{folder}/c_order.npy", a)
    np.save(f"{folder}/fortran.npy", np.asfortranarray(a))
    np.save(f"{folder}/big_endian.npy", a.astype(">f4"))
    np.save(f"{folder}/zero_dim.npy", np.float64(2.5))
    np.save(f"{folder}/empty.npy", np.empty((0, 3), np.int32))
    np.save(f"{folder}/int64.npy", np.arange(-3, 3))
    np.save(f"{folder}/bool.npy", a > 0.5)
    np.save(f"{folder}/fp16.npy", a.astype(np.float16))
    for v in ((2, 0), (3, 0)):
        with open(f"{folder}/version{v[0]}.npy", "wb") as f:
            np.lib.format.write_array(f, a, version=v)


# -- broken files -------------------------------------------------------------------------

GELU = "Functional.gelu.0.forward"


def one_op(folder, names=None):
    """A sound dump of one call with its two tensors."""
    x = torch.linspace(-2, 2, 8)
    data = {}
    os.makedirs(f"{folder}/dump_tensor_data")
    for io, t in (("input", x), ("output", nn.functional.gelu(x))):
        name = f"{GELU}.{io}.0.pt"
        torch.save(t, f"{folder}/dump_tensor_data/{name}")
        data[io] = tensor("torch.float32", [8], t.max().item(), t.min().item(),
                          t.mean().item(), t.norm().item(),
                          data_name=(names or {}).get(io, name))
    dump(folder, {GELU: {"input_args": [data["input"]], "input_kwargs": {},
                         "output": [data["output"]]}}, task="tensor",
         dump_data_dir="/home/user/train/dump_tensor_data")
    return f"{folder}/dump_tensor_data/{GELU}.output.0.pt"


def cut(path, size):
    with open(path, "r+b") as f:
        f.truncate(size)


def rezip(path, change):
    """Write a stored zip again, its members changed."""
    with zipfile.ZipFile(path) as z:
        members = {i.filename: z.read(i) for i in z.infolist()}
    with zipfile.ZipFile(path, "w") as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name), change(name, data))


class Call:
    """What unpickling would call."""

    def __init__(self, fn, *args):
        self.how = fn, args

    def __reduce__(self):
        return self.how


def hostile(path, obj):
    buf = io.BytesIO()
    pickle.dump(obj, buf, protocol=2)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(zipfile.ZipInfo("archive/data.pkl"), buf.getvalue())
        z.writestr(zipfile.ZipInfo("archive/version"), b"3\n")


def broken(root):
    cut(one_op(f"{root}/pt_truncated"), 700)
    os.remove(one_op(f"{root}/pt_missing"))
    one_op(f"{root}/pt_outside", {"input": "../../../../../../etc/passwd"})
    one_op(f"{root}/pt_absolute", {"input": "/etc/passwd"})

    def claim_more(name, data):   # 8 elements are stored; the pickle says 200
        return data.replace(b"K\x08", b"K\xc8") if name.endswith("data.pkl") else data
    rezip(one_op(f"{root}/pt_lies"), claim_more)
    path = one_op(f"{root}/pt_checksum")
    payload = torch.load(path).numpy().tobytes()
    with open(path, "r+b") as f:
        f.seek(f.read().index(payload))
        f.write(b"\0")
    one_op(f"{root}/json_truncated")
    cut(f"{root}/json_truncated/dump.json", 700)
    one_op(f"{root}/json_twice")
    path = f"{root}/json_twice/dump.json"
    with open(path) as f:
        text = f.read()
    op = json.dumps({GELU: json.loads(text)["data"][GELU]})[1:-1]
    with open(path, "w") as f:
        f.write(text.rstrip()[:-1].rstrip()[:-1].rstrip() + ",\n" + op + "\n}}")

    os.makedirs(f"{root}/not_a_dump")
    with open(f"{root}/not_a_dump/notes.txt", "w") as f:
        f.write("nothing to see\n")
    np.save(f"{root}/truncated.npy", np.arange(64.))
    cut(f"{root}/truncated.npy", 400)
    np.save(f"{root}/objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    with open(f"{root}/header.npy", "wb") as f:   # the header's length passes the end
        f.write(b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f4', ")
    hostile(f"{root}/system.pt", {"x": Call(os.system, "touch /tmp/acc-was-here")})
    hostile(f"{root}/eval.pt", Call(eval, "__import__('os').getpid()"))
    hostile(f"{root}/getattr.pt", Call(getattr, torch.Tensor, "shape"))
    with open(f"{root}/truncated.pkl", "w") as f:
        f.write('["Torch_relu_0_forward_input.0", 0, [], "torch.float32", [3], [1.0, 0.0, 0.5, '
                '1.2]]\n["Torch_relu_0_forward_output", 0, [], "torch.flo')
