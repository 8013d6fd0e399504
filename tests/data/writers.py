"""Writes events in the file formats of msprobe and ptdbg_ascend.

The look of every file was taken from what the recorders write: msprobe 26.0.0 (PyTorch and
MindSpore), its versions of 2024 and 2025, ptdbg_ascend v1, v4 and v6.
"""
import json
import os
import zlib

import numpy as np
import torch

MS_DTYPES = {"float32": "Float32", "float16": "Float16", "float64": "Float64",
             "bfloat16": "BFloat16", "int64": "Int64", "int32": "Int32", "bool": "Bool"}
INPLACE = ("Distributed",)


class Raw(dict):
    """A leaf written as it stands."""


def array(t):
    """A tensor as numpy has it; bfloat16, which numpy lacks, as float32."""
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy()


def stats(t, ints_too=False):
    """Max, Min, Mean, Norm. ints_too: all four for integers (as float32), as until 2025."""
    if t.numel() == 0:
        return [None] * 4
    if t.dtype == torch.bool:
        return [t.any().item(), t.all().item(), None, None]
    if t.is_complex():
        a = t.abs()
        return [a.max().item(), a.min().item(), a.mean().item(), None]
    if t.dim() == 0:
        return [t.item()] * 4
    if not t.is_floating_point() or t.dtype == torch.float64:
        if not ints_too:
            return [t.max().item(), t.min().item(), None, None]
        t = t.float()
    return [t.max().item(), t.min().item(), t.mean().item(), torch.norm(t).item()]


def crc32(t):
    t = t.contiguous()
    raw = t.view(torch.int16) if t.dtype == torch.bfloat16 else t
    return f"{zlib.crc32(raw.numpy().tobytes()):08x}"


class Msprobe:
    """task: tensor, statistics, md5. level: L0, L1, mix, debug. old: as of 2024 (stack.json by
    op, parameters_grad without a number, is_recompute, four statistics for integers).
    mindspore: its spelling, and .npy."""

    def __init__(self, folder, task="tensor", level="L1", old=False, mindspore=False,
                 data=None):
        self.folder, self.task, self.level = folder, task, level
        self.old, self.mindspore, self.save = old, mindspore, data or {}
        os.makedirs(folder, exist_ok=True)
        self.tensors = os.path.join(folder, "dump_tensor_data")
        if task == "tensor":
            os.makedirs(self.tensors, exist_ok=True)

    def payload(self, name, t):
        if name in self.save:
            t = self.save[name]
        path = os.path.join(self.tensors, name)
        if name.endswith(".npy"):
            np.save(path, array(t))
        else:
            torch.save(t, path)

    def tensor(self, t, name):
        dtype = str(t.dtype)[6:]
        hi, lo, mean, norm = stats(t.float() if self.mindspore and t.dim() and
                                   t.dtype != torch.bool else t, self.old)
        d = {"type": "mindspore.Tensor" if self.mindspore else "torch.Tensor",
             "dtype": MS_DTYPES[dtype] if self.mindspore else "torch." + dtype,
             "shape": list(t.shape), "Max": hi, "Min": lo, "Mean": mean, "Norm": norm}
        if not self.mindspore:
            d["requires_grad"] = getattr(t, "grad_wanted", t.requires_grad)
        if self.task == "md5":
            d["md5"] = crc32(t.float() if self.mindspore else t)
        if self.task == "tensor" and t.numel() > 0:
            d["data_name"] = name + (".npy" if self.mindspore else ".pt")
            self.payload(d["data_name"], t)
        return d

    def leaf(self, x, name):
        if isinstance(x, Raw):
            return dict(x)
        if isinstance(x, torch.Tensor):
            return self.tensor(x, name)
        if isinstance(x, torch.Size):
            return {"type": "torch.Size", "value": list(x)}
        if isinstance(x, (list, tuple)):
            return [self.leaf(v, f"{name}.{i}") for i, v in enumerate(x)]
        if isinstance(x, dict):
            return {k: self.leaf(v, f"{name}.{k}") for k, v in x.items()}
        if isinstance(x, slice):
            return {"type": "slice", "value": [x.start, x.stop, x.step]}
        if x is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        if isinstance(x, (bool, int, float, str)):
            return {"type": type(x).__name__, "value": x}
        return None

    def key(self, e):
        k = e.key()
        if self.old and e.kind == "grad":
            k = k.rsplit(".", 1)[0]
        if self.mindspore:
            for a, b in (("Module.", "Cell."), ("Torch.", "Mint."),
                         ("Functional.", "MintFunctional.")):
                if k.startswith(a):
                    k = b + k[len(a):]
        return k

    def op(self, e):
        k = self.key(e)
        if e.kind == "grad":
            return {p: self.leaf(v, f"{k}.{p}") if len(v) != 1 else
                    [self.leaf(v[0], f"{k}.{p}")] for p, v in e.output.items()}
        if e.direction == "backward":
            return {"input": self.leaf(e.args, k + ".input"),
                    "output": self.leaf(e.output, k + ".output")}
        d = {"input_args": self.leaf(e.args, k + ".input"),
             "input_kwargs": self.leaf(e.kwargs, k + ".kwargs")}
        if self.old:
            d["is_recompute"] = False
        d["output"] = self.leaf(e.output, k + ".output")
        if e.kind == "module" and e.parameters:
            d["parameters"] = self.leaf(e.parameters, k + ".parameters")
        return d

    def wanted(self, e):
        return self.level == "mix" or (e.kind == "api") == (self.level == "L1")

    def write(self, events):
        events = [e for e in events if self.wanted(e)]
        where = "/home/user/train/" + "/".join(self.folder.split("/")[-3:])
        tensor = self.task == "tensor"
        self.json("dump.json", {
            "task": "tensor" if tensor else "statistics", "level": self.level,
            "framework": "mindspore" if self.mindspore else "pytorch",
            "dump_data_dir": where + "/dump_tensor_data" if tensor else None,
            "data": {self.key(e): self.op(e) for e in events}})
        keys = {e.key(): self.key(e) for e in events}
        self.json("construct.json", {} if self.level == "L1" else {
            self.key(e): keys.get(e.parent) for e in events if e.kind != "grad"})
        self.json("stack.json", self.stacks(events))

    def stacks(self, events):
        groups, old = {}, {}
        for e in events:
            if e.stack is not None:
                frames = [f"File {f}, line {n}, in {fn}, \n {code}" for f, n, fn, code in e.stack]
                groups.setdefault(tuple(frames), []).append(self.key(e))
                old[self.key(e)] = frames
        if self.old:
            return old
        return {str(i): [keys, list(frames)]
                for i, (frames, keys) in enumerate(groups.items())}

    def json(self, name, obj):
        with open(os.path.join(self.folder, name), "w") as f:
            json.dump(obj, f, indent=1)
