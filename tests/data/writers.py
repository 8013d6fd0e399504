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
    mindspore: its spelling, and .npy. megatron: its form of construct.json. extra_info=False
    leaves out construct.json and stack.json."""

    def __init__(self, folder, task="tensor", level="L1", old=False, mindspore=False,
                 megatron=False, extra_info=True):
        self.folder, self.task, self.level = folder, task, level
        self.old, self.mindspore, self.megatron = old, mindspore, megatron
        self.extra_info = extra_info
        os.makedirs(folder, exist_ok=True)
        self.tensors = os.path.join(folder, "dump_tensor_data")
        if task == "tensor":
            os.makedirs(self.tensors, exist_ok=True)

    def payload(self, name, t):
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
        if isinstance(x, torch.distributed.ReduceOp):
            names = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")
            name = next(n for n in names if getattr(torch.distributed.ReduceOp, n) == x)
            return {"type": "torch.distributed.ReduceOp", "value": f"RedOpType.{name}"}
        if isinstance(x, torch.distributed.ProcessGroup):
            members = torch.distributed.distributed_c10d._pg_group_ranks.get(x)
            ranks = list(range(x.size())) if members is None else sorted(members)
            return {"type": "torch.ProcessGroup", "group_ranks": ranks,
                    "group_id": str(zlib.crc32(str(ranks).encode()))}
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

    def parents(self, events):
        """construct.json. Megatron's form says the micro step as well."""
        if self.level == "L1":
            return {}
        keys = {e.key(): self.key(e) for e in events}
        none = "" if self.mindspore else None
        tree = {self.key(e): keys.get(e.parent, none) for e in events if e.kind != "grad"}
        if self.megatron:
            return {**{k: [p, 0] for k, p in tree.items()}, "megatron_micro_step_number": 1}
        return tree

    def wanted(self, e):
        return self.level == "mix" or (e.kind == "api") == (self.level == "L1")

    def debug(self, saved):
        """debug.json: {key: value}, as PrecisionDebugger.save() leaves it."""
        self.json("debug.json", {
            "task": self.task, "level": "debug", "framework": "pytorch",
            "dump_data_dir": "/home/user/train/dump_tensor_data",
            "data": {k: self.leaf(v, k) for k, v in saved.items()}})

    def write(self, events):
        events = [e for e in events if self.wanted(e)]
        where = "/home/user/train/" + "/".join(self.folder.split("/")[-3:])
        tensor = self.task == "tensor"
        self.json("dump.json", {
            "task": "tensor" if tensor else "statistics", "level": self.level,
            "framework": "mindspore" if self.mindspore else "pytorch",
            "dump_data_dir": where + "/dump_tensor_data" if tensor else None,
            "data": {self.key(e): self.op(e) for e in events}})
        if self.extra_info:
            self.json("construct.json", self.parents(events))
            self.json("stack.json", self.stacks(events))

    def stacks(self, events):
        groups, old = {}, {}
        for e in events:
            if e.stack is not None and e.direction == "forward":
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


class Ptdbg:
    """ptdbg_ascend's NAME.pkl (JSON lines) and the folder NAME of npy files. version 1 has
    three statistics; 6 has dots in names. mode: all (tensor lines), api_stack (a stack line
    after each op), stack (only those). summary: all, summary (no npy), md5. overflow: the
    file pair of one overflow, stack line first."""

    def __init__(self, folder, name, version=4, mode="all", summary="all", overflow=False,
                 data=None):
        self.path, self.data = os.path.join(folder, name), data or os.path.join(folder, name)
        self.version, self.mode, self.summary = version, mode, summary
        self.overflow, self.sep = overflow, "." if version >= 6 else "_"
        os.makedirs(folder, exist_ok=True)
        if summary == "all" and mode != "stack":
            os.makedirs(self.data, exist_ok=True)

    def stats(self, x):
        if not isinstance(x, torch.Tensor):
            s = [x] * 4
        elif x.numel() == 0 or x.dtype == torch.bool:
            s = [[], [], [], "Nan"]
        elif x.dim() == 0:
            s = [float(x)] * 3 + ["Nan"]
        else:
            s = stats(x.float())
            if not x.is_floating_point():
                s[3] = "Nan"
        return s if self.version >= 4 else s[:3]

    def lines(self, name, x):
        if isinstance(x, (list, tuple)):
            for i, v in enumerate(x):
                yield from self.lines(f"{name}.{i}", v)
        elif isinstance(x, torch.Tensor) or type(x) in (bool, int, float):
            tensor = isinstance(x, torch.Tensor)
            if self.summary == "all":
                np.save(os.path.join(self.data, name + ".npy"), array(x) if tensor else x)
            md5 = self.summary == "md5"
            yield [name, 101 if self.overflow else 0, crc32(x) if md5 and tensor else [],
                   str(x.dtype) if tensor else str(type(x)),
                   list(x.shape) if tensor else "[]",
                   [] if md5 or self.overflow else self.stats(x)]

    def op(self, e):
        key = e.key().replace(".", self.sep) + self.sep
        single = e.direction == "forward" and e.single
        stack = [[key + "stack_info", [[f, str(n), fn, code] for f, n, fn, code in e.stack]]]
        if self.mode == "stack":
            return stack
        tensors = [*self.lines(key + "input", e.args),
                   *self.lines(key + "output", e.output[0] if single else e.output)]
        if self.overflow:
            return stack + tensors
        return tensors + (stack if self.mode == "api_stack" else [])

    def write(self, events):
        with open(self.path + ".pkl", "w") as f:
            for e in events:
                if e.kind == "api":
                    for line in self.op(e):
                        f.write(json.dumps(line) + "\n")
