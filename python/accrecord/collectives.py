"""Op calls of torch.distributed: collectives, sends, those of DTensor and of DistributedDataParallel."""
from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .calls import Calls
from .errors import lacking
from .values import Place, Value, arguments, copies, leaves

COLLECTIVES = """all_reduce broadcast reduce all_gather all_gather_into_tensor _all_gather_base gather
    scatter reduce_scatter reduce_scatter_tensor _reduce_scatter_base all_to_all all_to_all_single
    send recv""".split()
# What PyTorch 2.15 calls two of them, which it still has under the old name, too.
RENAMED = {"all_gather_single": "all_gather_into_tensor", "reduce_scatter_single": "reduce_scatter_tensor"}


# Of torch.ops._c10d_functional, on which torch.distributed._functional_collectives and DTensor stand: what each is
# given as one of the collectives above, by its arguments; True: into a tensor, which it makes.
FUNCTIONAL: Dict[str, Tuple[bool, Callable[..., List[Value]]]] = {
    "all_reduce": (False, lambda op, _: [("kw", "op", reduction(op))]),
    "broadcast": (False, lambda src, _: [("kw", "src", src)]),
    "all_gather_into_tensor": (True, lambda *_: []),
    "reduce_scatter_tensor": (True, lambda op, *_: [("kw", "op", reduction(op))]),
    "all_to_all_single": (True, lambda out, given, _: [
        ("kw", p, n) for name, sizes in (("output_split_sizes", out), ("input_split_sizes", given))
        for p, n in leaves(list(sizes), name)])}


def reduction(name: str) -> Any:
    """The ReduceOp of this name."""
    return getattr(torch.distributed.ReduceOp, name.upper())


class Collectives(Calls):
    """Op calls that communicate."""

    def flush_joined(self) -> None:
        """The reduction of DistributedDataParallel, as it would be with one of each parameter: the mean of what the
        ranks have, which is the gradient of this backward pass and what was there before it."""
        own, self.own = self.own, {}
        for m, was in list(self.joined.items()):
            mine = [p for name, p in m.module.named_parameters()
                    if p.requires_grad and name not in m.parameters_to_ignore]
            if not self.on or not any(id(p) in own for p in mine):
                continue   # another model's backward pass
            del self.joined[m]
            if m._get_ddp_logging_data().get("comm_hook"):
                lacking("the reduction of DistributedDataParallel where a communication hook does it")
                continue
            with self.quiet(), torch.no_grad():
                for p in mine:
                    if p.grad is not None and not p.grad.is_sparse:
                        self.join(p, own.get(id(p)), was.get(p), m.process_group)

    def join(self, p: Any, own: Optional[torch.Tensor], was: Optional[torch.Tensor], group: Any) -> None:
        """One of these reductions.

        Args:
            p: the parameter, whose gradient is reduced by now.
            own: what this rank's backward pass gave, of the shape of p; None: nothing.
            was: what was there before it, of the same shape; None: nothing.
            group: of processes that have p.
        """
        given = torch.zeros_like(p.grad) if own is None and was is None else \
            own if was is None else was if own is None else was + own
        n, chosen = self.next_call("Distributed.all_reduce")
        if chosen:
            place = self.place()
            values = [("in", "0", given), ("kw", "op", torch.distributed.ReduceOp.AVG), ("kw", "group", group)]
            self.before("Distributed.all_reduce", n, "forward", values, place)
            self.after("Distributed.all_reduce", n, "forward", values, [("out", "0", p.grad)], place)

    def collective(self, name: str, old: Callable[..., Any]) -> Callable[..., Any]:
        """One of COLLECTIVES, as one call."""
        # What others put in its place, such as a timer, may take *args.
        own = getattr(torch.distributed.distributed_c10d, name, old)
        names = list(inspect.signature(own).parameters)
        last = names.index("async_op") if "async_op" in names else len(names)
        op = f"Distributed.{RENAMED.get(name, name)}"

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(*args, **kwargs)
            self.seen += 1
            with self.quiet(), torch.no_grad():
                n = self.count(op)
                given = dict(zip(names, args), **kwargs)
                later = given.get("async_op") and self.level > 0
                one = self.spared(op, begin, args, kwargs, given, later)
                if one and not later:
                    self.before(op, n, "forward", one[0], one[2])
                y = old(*args, **kwargs)
                if one and not later:
                    self.after(op, n, "forward", *one)
                elif one and y is not None:
                    self.works[id(y)] = (y, op, n, *one, self.step_number)
                return y

        def begin(args: Any, kwargs: Dict[str, Any], given: Dict[str, Any],
                  later: Any) -> Tuple[List[Value], List[Value], Place]:
            place = self.place()
            # With async_op, too, what is recorded is what it gave.
            shown = {k: v for k, v in kwargs.items() if k != "async_op"}
            if "group" in names and not shown.get("group") and len(args) <= names.index("group"):
                shown["group"] = torch.distributed.group.WORLD
            # Tensors by their places, however they are given.
            for k in names[len(args):last]:
                if not isinstance(shown.get(k), torch.Tensor):
                    break
                args = (*args, shown.pop(k))
            values = arguments(args[:last], shown)
            outs = [("out", p, v) for k, a in given.items()
                    for p, v in leaves(a, str(names.index(k)) if k in names else k)
                    if isinstance(v, torch.Tensor)]
            return copies(values) if later else values, outs, place
        return call

    def functional(self, name: str, old: Callable[..., Any]) -> Callable[..., Any]:
        """One of torch.distributed._functional_collectives, which is waited for, as that of torch.distributed."""
        into, more = FUNCTIONAL[name]

        def call(x: Any, *args: Any) -> Any:
            if not (self.on and self.here()) or (self.depth > 0 and self.parted == 0):
                return old(x, *args)
            self.seen += 1
            self.moved = self.moved or self.parted > 0
            y = self.quietly(old, x, *args)
            with self.quiet(), torch.no_grad():
                self.spared(f"Distributed.{name}", put, x, args, y)
            return y

        def put(x: Any, args: Sequence[Any], y: Any) -> None:
            torch.ops._c10d_functional.wait_tensor(y.detach())
            op = f"Distributed.{name}"
            n, place = self.count(op), self.place()
            group = torch.distributed.distributed_c10d._resolve_process_group(args[-1])
            values: List[Value] = [("in", "0", torch.zeros_like(y)), ("in", "1", x)] if into else [("in", "0", x)]
            values += more(*args) + [("kw", "group", group)]
            self.before(op, n, "forward", values, place)
            self.after(op, n, "forward", values, [("out", "0", y)], place)
        return call

    def one_to_one(self, name: str, old: Callable[..., Any]) -> Callable[..., Any]:
        """isend is a send; irecv is a recv when it is waited for."""
        def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(tensor, *args, **kwargs)
            self.seen += 1
            with self.quiet(), torch.no_grad():
                op = f"Distributed.{name[1:]}"
                n, place = self.count(op), self.place()
                shown = {k: v for k, v in kwargs.items() if v is not None}
                for k, rank in (("dst", "group_dst"), ("src", "group_src")):   # those of P2POp
                    if rank in shown:
                        shown[k] = torch.distributed.get_global_rank(
                            shown.get("group") or torch.distributed.group.WORLD, shown.pop(rank))
                values = arguments((tensor, *args), shown)
                if name == "isend":
                    self.before(op, n, "forward", values, place)
                    self.after(op, n, "forward", values, [("out", "0", tensor)], place)
                y = old(tensor, *args, **kwargs)
                if y is not None and name == "irecv" and self.level > 0:
                    self.works[id(y)] = (y, op, n, copies(values), [("out", "0", tensor)], place, self.step_number)
                elif y is not None:
                    self.works[id(y)] = (y, None, n, (), (), place, self.step_number)
                return y
        return call

    def wait(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """A collective that was begun with async_op is recorded where its results are waited for, with its
        inputs as they were."""
        def call(work: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(work, *args, **kwargs)
            if id(work) not in self.works:
                if sys._getframe(1).f_code.co_filename != call_of_distributed():   # of a barrier
                    lacking("whatever this wait() is for")
                return old(work, *args, **kwargs)
            with self.quiet(), torch.no_grad():
                y = old(work, *args, **kwargs)
                _, op, n, values, outs, place, step = self.works.pop(id(work))
                if op is None:   # it was recorded when it was sent
                    return y
                if step != self.step_number:   # it belongs to the step that goes on with its result
                    n = self.count(op)
                self.before(op, n, "forward", values, place)
                self.after(op, n, "forward", values, outs, place)
                return y
        return call

    def flush_works(self) -> None:
        """Of collectives that nobody waited for only the inputs are known."""
        works, self.works = self.works, {}
        with self.quiet(), torch.no_grad():
            for _, op, n, values, _, place, _ in works.values():
                if op is None:
                    continue
                lacking("the result of collectives with async_op whose wait() is not called")
                self.before(op, n, "forward", values, place)


def call_of_distributed() -> str:
    """The file of torch.distributed's own functions, which wait themselves."""
    return torch.distributed.distributed_c10d.__file__
