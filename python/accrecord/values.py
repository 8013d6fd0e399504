"""What op calls are given and give: arguments taken apart, tensors made readable."""
from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch

from .errors import lacking

Part = Tuple[str, Any]          # (position, value)
Value = Tuple[str, str, Any]    # (io, position, value): io is in, kw, out or grad; position 0, 1.2, dim
Place = Dict[str, Any]          # scope, stack, recompute, and what else Stream.put takes of a call


def leaves(x: Any, pos: str) -> Iterator[Part]:
    """(pos, value) of an argument, in order; containers are taken apart: "1.0" is the first of the second."""
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        for i, v in enumerate(x):
            yield from leaves(v, f"{pos}.{i}")
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from leaves(v, f"{pos}.{k}")
    else:
        yield pos, x


def arguments(args: Iterable[Any], kwargs: Dict[str, Any]) -> List[Value]:
    """(io, pos, value) of a call."""
    out = [("in", p, v) for i, a in enumerate(args) for p, v in leaves(a, str(i))]
    return out + [("kw", p, v) for k, a in kwargs.items() for p, v in leaves(a, str(k))]


def results(y: Any) -> List[Part]:
    """(pos, value) of what a call gave: one value is that at "0"."""
    if isinstance(y, (list, tuple)):
        return [pv for i, v in enumerate(y) for pv in leaves(v, str(i))]
    return list(leaves(y, "0"))


def is_dtensor(v: Any) -> bool:
    """Is it a DTensor, of which this rank has a part?"""
    return type(v).__name__ == "DTensor" and hasattr(v, "_local_tensor")


def local(t: Any) -> Any:
    """Of a DTensor the part that this rank has; of what a functional collective gives what it stands for."""
    if is_dtensor(t):
        t = t._local_tensor
    return t.trigger_wait() if type(t).__name__ == "AsyncCollectiveTensor" else t


def unheld(grad: torch.Tensor) -> torch.Tensor:
    """A gradient that may be kept: of a DTensor that somebody holds autograd makes a copy, which PyTorch 2.6 does not
    do right where it is a part of a sum."""
    return local(grad).detach() if is_dtensor(grad) else grad


def copies(values: Iterable[Value]) -> List[Value]:
    """The same with tensors as they are now: of the same shapes, contiguous or not as clone() has it."""
    return [(io, p, local(v).detach().clone() if isinstance(v, torch.Tensor) else v) for io, p, v in values]


class Summand(torch.Tensor):
    """Of a DTensor whose ranks have summands, what an optimizer is given: it adds them up for itself, and they are no
    gradient yet. The shape alone is recorded."""


def given(v: Any) -> Any:
    """A copy of what an optimizer is given: of a DTensor this rank's part, of summands a Summand of its shape."""
    if is_dtensor(v) and any(p.is_partial() for p in v.placements):
        return torch.empty_like(local(v), device="meta").as_subclass(Summand)
    return local(v).detach().clone() if isinstance(v, torch.Tensor) else v


def tensors(values: Iterable[Any]) -> List[torch.Tensor]:
    """Those that are tensors, in order."""
    return [v for v in values if isinstance(v, torch.Tensor)]


DTYPES = re.compile(r"torch\.(bool|bfloat16|(float|complex|u?int)(8|16|32|64|128)(_\w+)?)$")   # of libaccrec


def is_nested(v: Any) -> bool:
    """Is it a nested tensor, which has no shape?"""
    return isinstance(v, torch.Tensor) and getattr(v, "is_nested", False)


def readable(t: torch.Tensor) -> Optional[torch.Tensor]:
    """Its elements, on the CPU; None: it has none that can be read.

    Args:
        t: of any shape, dtype and device; of a DTensor the part of this rank counts.

    Returns:
        A tensor of the shape and dtype of t, with strides of its own, neither conjugate nor negative by a flag.
    """
    t = local(t)
    kind = "nested" if is_nested(t) else "quantized" if t.is_quantized else \
        "sparse" if t.layout != torch.strided else "meta" if t.device.type == "meta" else \
        str(t.dtype) if not DTYPES.match(str(t.dtype)) else None
    if kind is not None:
        lacking(f"the elements of {kind} tensors")
        return None
    with contextlib.suppress(Exception):   # whatever a class of its own, or a mode, makes of this
        t = t.detach()
        if t.is_conj() or t.is_neg():
            t = t.resolve_conj().resolve_neg()
        t = t if t.device.type == "cpu" else t.cpu()
        if t.numel() == 0 or (t.data_ptr() != 0 and held_bytes(t)):
            return t
    lacking("the elements of tensors that stand for others, as those of torch.func do, or whose memory is freed")
    return None


def held_bytes(t: torch.Tensor) -> bool:
    """Has its memory not been taken away, as sharded weights' is?"""
    last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    memory = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()
    return (last + 1) * t.element_size() <= memory.nbytes()


def group_ranks(group: Any) -> Optional[List[int]]:
    """The global ranks of a process group, None: all; None: they are not known."""
    dist = torch.distributed
    if group is None or not hasattr(dist, "get_process_group_ranks"):
        if group is None or group is dist.group.WORLD:
            return list(range(dist.get_world_size()))
        known = getattr(dist.distributed_c10d, "_pg_group_ranks", {}).get(group)
        return sorted(known) if known else None
    return dist.get_process_group_ranks(group)


def reduce_op(v: Any) -> Optional[str]:
    """RedOpType.MAX, as a newer torch prints it; None: it is no reduction."""
    if type(v).__name__ not in ("ReduceOp", "RedOpType"):
        return None
    names = [n for n in "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()
             if v == getattr(torch.distributed.ReduceOp, n, None)]
    return "RedOpType." + names[0] if names else words(v)


def words(v: Any) -> str:
    """What it prints, without addresses, which differ between two runs."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(v))[:1000]


def kind_of(v: Any) -> str:
    """What a value is, for a message: "tensors of torch.int4", "numpy.ndarray"."""
    kind = type(v)
    if kind is torch.Tensor:
        return f"tensors of {v.dtype}"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def known(v: Any, make: Callable[..., Any], *args: Any) -> Any:
    """What is made of a value that is to be recorded; of one that cannot be, None, and its kind is said."""
    try:
        return make(v, *args)
    except Exception as e:   # pylint: disable=broad-except
        lacking(f"{kind_of(v)}, where {type(e).__name__}: " + str(e).partition("\n")[0][:200])
        return None


def sizes(t: torch.Tensor) -> str:
    """Of a nested tensor its dtype, and the shape of each part: it has no shape itself."""
    return words([t.dtype, *(list(part.shape) for part in t.unbind())])
