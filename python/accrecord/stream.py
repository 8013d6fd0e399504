"""A recording of libaccrec, and how it is told of a value."""
from __future__ import annotations

import contextlib
import ctypes
import os
import warnings
from ctypes import byref, c_char_p, c_int64, c_uint64
from typing import Any, Iterable, List, Optional, Sequence

import torch

from .errors import RecordError, lacking
from .native import A_BOOL, A_FLOAT, A_INT, A_INTS, A_NONE, A_TENSOR, A_TEXT, DESCRIPTION, Call, Item, Options, c, \
    library, versions
from .values import Summand, Value, group_ranks, is_nested, kind_of, known, local, readable, reduce_op, \
    sizes, words


class Stream:
    """One recording of libaccrec."""

    rec: Any   # acc_rec *; None: it is closed

    def __init__(self, folder: str, rank: int, task: str, device: str, by: Optional[str] = None) -> None:
        why = ctypes.create_string_buffer(600)
        self.lib, self.folder = library(), folder
        with contextlib.suppress(OSError):   # the library says it
            os.makedirs(folder, exist_ok=True)
        opt = Options(rank=rank, program=c("accrecord " + by if by else "accrecord"), framework=c(versions()),
                      device=c(device), task=c(task))
        self.rec = self.lib.acc_rec_open(c(folder), byref(opt), why, len(why))
        if self.rec is None:
            raise RecordError(why.value.decode(errors="replace") + (
                ": delete it, or name another folder" if b"is there already" in why.value else ""))
        self.told = False

    def check(self, rc: int) -> None:
        """Of the first failure it is said why: behind it libaccrec takes nothing more."""
        if rc < 0 and not self.told:
            self.told = True   # the training goes on
            why = self.lib.acc_rec_error(self.rec).decode(errors="replace")
            warnings.warn(f"accrecord: nothing more is recorded: {why}")

    def put(self, op: str, number: int, direction: str, values: Iterable[Value], detail: int,
            scope: Optional[str] = None, stack: int = 0, stack_from: Optional[str] = None, recompute: bool = False,
            key: Optional[str] = None) -> None:
        """Record an op call, or a part of one.

        Args:
            op: its name without number and pass: Functional.linear.
            number: from 0, of its calls in this step.
            direction: forward, backward or grad.
            values: (io, position, value), tensors of any shape.
            detail: of tensors: FULL, STATISTICS, HASH or DESCRIPTION.
            scope: the module's call that it is in.
            stack: of stack(), 0: none.
            stack_from: of a backward call, the forward call whose stack it is.
            recompute: it is the second run of a checkpoint.
            key: its name in whole, where it is not op.number.direction.
        """
        keep: List[Any] = []
        # What is in out= before the call is nothing that it reads.
        items = [item(v, io, pos, DESCRIPTION if isinstance(v, Summand) or
                      io == "kw" and pos.split(".")[0] == "out" else detail, keep) for io, pos, v in values]
        one = Call(c(op), number, c(direction), c(key) if key else None, c(scope) if scope else None, stack,
                   c(stack_from) if stack_from else None, recompute)
        array = (Item * len(items))(*items)
        self.check(self.lib.acc_rec_call(self.rec, byref(one), array, len(items)))

    def stack(self, frames: Sequence[str]) -> int:
        """The number of a call stack, innermost frame first."""
        out = c_uint64()
        array = (c_char_p * len(frames))(*[c(f) for f in frames])
        self.check(self.lib.acc_rec_stack(self.rec, array, len(frames), byref(out)))
        return out.value

    def step(self, n: int) -> None:
        """What follows is of step n."""
        self.check(self.lib.acc_rec_step(self.rec, n))

    def sync(self) -> None:
        """Wait until all is written."""
        self.check(self.lib.acc_rec_sync(self.rec))

    def close(self) -> None:
        """The recording is whole."""
        why = ctypes.create_string_buffer(600)
        rec, self.rec = self.rec, None
        if self.lib.acc_rec_close(rec, why, len(why)) < 0 and not self.told:
            warnings.warn("accrecord: the recording is not complete: " +
                          why.value.decode(errors="replace"))


def ints(values: Sequence[int]) -> Any:
    """An array of int64_t."""
    return (c_int64 * len(values))(*values)


def tensor_item(t: torch.Tensor, io: str, pos: str, detail: int, keep: List[Any]) -> Item:
    """What libaccrec is told of a tensor: its shape and, of what has elements, its strides, in elements.

    Args:
        t: of any shape and dtype; its data_ptr() is handed on, and nothing is copied that lies on the CPU.
        detail: DESCRIPTION: the elements are not read.
        keep: gets what must live until libaccrec has copied it.
    """
    requires_grad, t = t.requires_grad, local(t)
    item = Item(type=A_TENSOR, io=c(io), pos=c(pos), cls=b"torch.Tensor", dtype=c(str(t.dtype)),
                ndim=t.dim(), detail=detail, requires_grad=requires_grad)
    try:
        stride = t.stride()
    except (RuntimeError, NotImplementedError):
        stride = None
    shape = ints(t.shape)
    item.shape = shape
    keep.append(shape)
    elements = None if detail == DESCRIPTION else readable(t)
    if elements is not None:
        item.data = elements.data_ptr()
        stride = elements.stride()
        keep.append(elements)
    if stride is not None:
        strides = ints(stride)
        item.stride = strides
        keep.append(strides)
    return item


def item(v: Any, io: str, pos: str, detail: int, keep: List[Any]) -> Item:
    """What libaccrec is told of one value."""
    one = known(v, _item, io, pos, detail, keep)
    return one or Item(type=A_TEXT, io=c(io), pos=c(pos), cls=c(kind_of(v)), text=b"")


def _item(v: Any, io: str, pos: str, detail: int, keep: List[Any]) -> Item:
    if is_nested(v):
        lacking("the elements of nested tensors")
        return Item(type=A_TEXT, io=c(io), pos=c(pos), cls=b"NestedTensor", text=c(sizes(v)))
    if isinstance(v, torch.Tensor):
        return tensor_item(v, io, pos, detail, keep)
    one = Item(io=c(io), pos=c(pos), cls=c(type(v).__name__))
    if v is None:
        one.type, one.cls = A_NONE, b"None"
    elif isinstance(v, bool):
        one.type, one.i = A_BOOL, v
    elif isinstance(v, int) and -2**63 <= v < 2**63:
        one.type, one.i, one.cls = A_INT, int(v), b"int"
    elif isinstance(v, float):
        one.type, one.f, one.cls = A_FLOAT, v, b"float"
    elif isinstance(v, torch.Size):
        values = ints(v)
        keep.append(values)
        one.type, one.cls, one.ndim, one.shape = A_INTS, b"torch.Size", len(v), values
    elif isinstance(v, slice):
        parts = ["null" if p is None else str(int(p)) for p in (v.start, v.stop, v.step)]
        one.type, one.text = A_TEXT, c("[" + ", ".join(parts) + "]")
    elif v is Ellipsis:
        one.type, one.cls, one.text = A_TEXT, b"ellipsis", b"..."
    elif type(v).__name__.endswith("ProcessGroup") or type(v).__name__.startswith("ProcessGroup"):
        ranks = ints(group_ranks(v) or [])
        keep.append(ranks)
        one.type, one.cls, one.ndim, one.shape = A_INTS, b"ProcessGroup", len(ranks), ranks
    elif reduce_op(v):
        one.type, one.cls, one.text = A_TEXT, b"torch.distributed.ReduceOp", c(reduce_op(v))
    else:
        kind = type(v)
        if kind.__module__ == "torch":
            one.cls = c(f"torch.{kind.__name__}")
        one.type, one.text = A_TEXT, c(words(v))
    return one
