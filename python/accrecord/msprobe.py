"""The same recording in the layout of msprobe."""
from __future__ import annotations

import json
import os
import zlib
from typing import Any, Dict, Iterable, List, Optional, Sequence

import torch

from .errors import RecordError, lacking
from .native import DESCRIPTION, FULL, HASH
from .values import Value, group_ranks, is_nested, known, local, readable, reduce_op, sizes


def statistics(of: torch.Tensor) -> Dict[str, Any]:
    """As msprobe defines them, but not rounded to the tensor's dtype.

    Args:
        of: of any shape and dtype.

    Returns:
        Max, Min, Mean and Norm (the root of the sum of squares), each one number in the unit of the elements: of
        complex ones of their absolute values; of bool and of whole numbers Max and Min alone, and None for what
        there is not.
    """
    t = readable(of)
    none: Dict[str, Any] = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if t is None or t.numel() == 0:
        return none
    if t.dtype == torch.bool:
        return dict(none, Max=bool(t.any()), Min=bool(t.all()))
    if t.is_complex():
        t = t.to(torch.complex128).abs()
        return dict(none, Max=t.max().item(), Min=t.min().item(), Mean=t.mean().item())
    if not t.is_floating_point():
        t = t.numpy() if str(t.dtype).startswith("torch.uint") else t   # torch has no largest of some of these
        return dict(none, Max=t.max().item(), Min=t.min().item())
    if t.dim() == 0:
        return dict.fromkeys(none, t.item())
    t = t if t.dtype == torch.float64 else t.float()
    return {"Max": t.max().item(), "Min": t.min().item(), "Mean": t.mean().item(),
            "Norm": t.norm().item()}


def nested(leaves_of: Dict[str, Any]) -> Any:
    """Values by their paths ("1.0") as the lists and dicts that they came from."""
    if list(leaves_of) == [""]:
        return leaves_of[""]
    parts: Dict[str, Any] = {}
    for path, v in leaves_of.items():
        head, _, rest = path.partition(".")
        parts.setdefault(head, {})[rest] = v
    parts = {k: nested(v) for k, v in parts.items()}
    if parts and all(k.isdigit() for k in parts):
        return [parts.get(str(i)) for i in range(max(map(int, parts)) + 1)]
    return parts


class Msprobe:
    """The same as a Stream, in the layout of msprobe: step0/rank0/dump.json, stack.json,
    construct.json and dump_tensor_data. A step is written when it ends."""

    def __init__(self, folder: str, rank: int, task: str, *_: Any) -> None:
        self.folder, self.rank, self.task, self.number = folder, rank, task, 0
        self.frames: List[Sequence[str]] = []
        self.clear()
        if os.path.exists(os.path.join(self.place(), "dump.json")):
            raise RecordError(f"{self.place()}: a recording is there already: delete it, or name "
                              "another folder")

    def place(self) -> str:
        """The folder of this step and rank."""
        return os.path.join(self.folder, f"step{self.number}", f"rank{self.rank}")

    def clear(self) -> None:
        """A step begins."""
        self.data: Dict[str, Dict[str, Any]] = {}
        self.parents: Dict[str, Optional[str]] = {}
        self.stacks: Dict[int, Dict[str, None]] = {}

    def stack(self, frames: Sequence[str]) -> int:
        """The number of a call stack, innermost frame first."""
        self.frames.append(frames)
        return len(self.frames)

    def leaf(self, v: Any, name: str, detail: int) -> Any:
        """What dump.json has of one value; of a tensor of any shape, beside it the file NAME.pt where detail is FULL."""
        return known(v, self._leaf, name, detail)

    def _leaf(self, v: Any, name: str, detail: int) -> Optional[Dict[str, Any]]:
        if is_nested(v):
            lacking("the elements of nested tensors")
            return {"type": "NestedTensor", "value": sizes(v)}
        if v is None or isinstance(v, (torch.Tensor, bool, int, float, str)):
            pass
        elif isinstance(v, slice):
            return {"type": "slice", "value": [v.start, v.stop, v.step]}
        elif v is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        elif isinstance(v, torch.Size):
            return {"type": "torch.Size", "value": list(v)}
        elif "ProcessGroup" in type(v).__name__:
            return {"type": "torch.ProcessGroup", "group_ranks": group_ranks(v)}
        elif reduce_op(v):
            return {"type": "torch.distributed.ReduceOp", "value": reduce_op(v)}
        elif isinstance(v, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(v)}
        elif type(v).__module__ == "torch":
            return {"type": f"torch.{type(v).__name__}", "value": str(v)}
        else:
            return None
        if not isinstance(v, torch.Tensor):
            return None if v is None else {"type": type(v).__name__, "value": v}
        one = {"type": "torch.Tensor", "dtype": str(v.dtype), "shape": list(local(v).shape),
               **(statistics(v) if detail != DESCRIPTION else {}), "requires_grad": v.requires_grad}
        t = readable(v)
        if detail == HASH and t is not None:
            bytes_of = t.contiguous().view(-1).view(torch.uint8) if t.numel() else t
            one["md5"] = f"{zlib.crc32(bytes_of.numpy()) if t.numel() else 0:08x}"
        if detail == FULL and t is not None:
            one["data_name"] = name + ".pt"
            folder = os.path.join(self.place(), "dump_tensor_data")
            os.makedirs(folder, exist_ok=True)
            torch.save(t.contiguous().clone(), os.path.join(folder, one["data_name"]))
        return one

    def put(self, op: str, number: int, direction: str, values: Iterable[Value], detail: int,
            scope: Optional[str] = None, stack: int = 0, stack_from: Optional[str] = None, recompute: bool = False,
            key: Optional[str] = None) -> None:
        """As that of Stream."""
        values = list(values)
        if key is None:
            key = f"{op}.{direction}.{number}" if op.startswith("Module.") else \
                f"{op}.{number}.{direction}"
        forward = direction == "forward"
        members = {"in": "input_args" if forward else "input", "kw": "input_kwargs",
                   "out": "output"}
        words = {"in": "input", "kw": "kwargs", "out": "output"}
        entry = self.data.setdefault(key, {})
        if forward and not entry:
            entry.update(input_args=[], input_kwargs={}, is_recompute=recompute)
        for io in dict.fromkeys(io for io, _, _ in values):
            word = "." + words[io] if io in words else ""
            here = {pos: self.leaf(v, f"{key}{word}.{pos}", detail)
                    for one, pos, v in values if one == io}
            if io == "grad":
                entry.update({pos: [v] for pos, v in here.items()})
            else:
                entry[members[io]] = nested(here)
        self.parents[key] = scope
        if stack:
            self.stacks.setdefault(stack, {})[key] = None

    def step(self, number: int) -> None:
        """What follows is of step number."""
        self.write()
        self.clear()
        self.number = number

    def write(self) -> None:
        """The three files of this step, each whole or not at all."""
        os.makedirs(self.place(), exist_ok=True)
        stacks = {str(i): [list(keys), self.frames[s - 1]]
                  for i, (s, keys) in enumerate(self.stacks.items())}
        data = {"task": "statistics" if self.task == "md5" else self.task, "level": "mix",
                "framework": "pytorch",
                "dump_data_dir": os.path.abspath(os.path.join(self.place(), "dump_tensor_data")),
                "data": self.data}
        for name, what in (("dump.json", data), ("stack.json", stacks),
                           ("construct.json", self.parents)):
            path = os.path.join(self.place(), name)
            with open(path + ".part", "w", encoding="utf-8") as f:
                json.dump(what, f, indent=1)
            os.replace(path + ".part", path)

    def sync(self) -> None:
        """What is known of the step is written."""
        self.write()

    def close(self) -> None:
        """The recording is whole."""
        self.write()
