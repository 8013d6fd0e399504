"""Op calls of the forward and of the backward pass, one after another."""
from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .autograd import Backward, Edge, edge_of, find_nodes
from .choice import BOTH
from .errors import OverflowStop
from .names import changes, name_of, overwritten, registered
from .native import DESCRIPTION
from .places import Places
from .values import Part, Place, Value, arguments, copies, is_dtensor, is_nested, local, results, tensors


class Calls(Places):
    """Op calls, forward and backward. ins and outs are (io, position, value), n is the number of the call."""

    def emit(self, op: str, number: int, direction: str, values: List[Value], detail: Optional[int] = None,
             **place: Any) -> None:
        """Hand an op call, or a part of one, to the stream; whatever is met there, the program goes on."""
        self.spared(op, self._emit, op, number, direction, values, detail, **place)

    def _emit(self, op: str, number: int, direction: str, values: List[Value], detail: Optional[int],
              **place: Any) -> None:
        self.wrote = True
        if self.floats:
            values = [v for v in values if not isinstance(v[2], (bool, int, float)) and not (
                isinstance(v[2], torch.Tensor) and not (v[2].is_floating_point() or v[2].is_complex()))]
        with self.lock:
            self.stream.put(op, number, direction, values, self.detail if detail is None else detail, **place)

    def function(self, mode: Any, func: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
        """What the mode sees; it does not see what runs inside."""
        if not self.mine():
            return func(*args, **kwargs)
        name = name_of(func)
        if name is None or (registered(func) and not tensors(v for _, _, v in arguments(args, kwargs))):
            return func(*args, **kwargs)
        # FSDP2 views what its gathering has not filled yet: memory that nobody wrote. (0 is this frame, 1 the mode's)
        if name == "Tensor.view" and sys._getframe(2).f_code.co_filename.endswith("_fsdp_collectives.py"):
            return func(*args, **kwargs)
        with self.quiet():
            return self.op(name, func, args, kwargs)

    def run_backward(self, run: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
        """A backward pass. What it computes by Python, such as a checkpoint's second run, is recorded: the mode, which
        is off in what it sees itself, is on."""
        if not self.on or not self.here():
            return run(*args, **kwargs)
        if self.in_backward == 0:
            for m in self.joined:   # what micro-batches before this one left
                self.joined[m] = {p: p.grad.clone() for p in m.parameters() if p.grad is not None}
        off = self.depth == 0 and self.mode not in torch.overrides._get_current_function_mode_stack()
        self.in_backward += 1
        try:
            with self.mode if off else contextlib.nullcontext():
                return run(*args, **kwargs)
        finally:
            self.in_backward -= 1
            if self.in_backward == 0:
                self.flush_partial()
                self.flush_joined()
                self.choice.backward_done()

    def op(self, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
        """Run an op call, and record it if it is chosen."""
        n, chosen = self.next_call(name)
        if not chosen:
            return func(*args, **kwargs)
        one = self.spared(name, self.begin, name, n, func, args, kwargs)
        y = self.parts_of(func, args, kwargs, one["place"]) if one and one["parted"] else func(*args, **kwargs)
        if one:
            self.spared(name, self.end, name, n, args, kwargs, y, chosen, **one)
        return y

    def begin(self, name: str, n: int, func: Callable[..., Any], args: Sequence[Any],
              kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """What there is to know of an op call before it runs."""
        values = arguments(args, kwargs)
        place = self.place()
        ins = tensors(v for _, _, v in values)
        edges, held = self.edges(ins)
        gives = overwritten(func, args, kwargs) if registered(func) else []
        changed = changes(name, kwargs) or bool(gives)
        parted = any(map(is_dtensor, ins))
        values = copies(values) if parted and changed else values if parted else self.hold(values, changed)
        if not parted:
            self.before(name, n, "forward", values, place)
        return {"values": values, "place": place, "edges": edges, "held": held, "gives": gives, "parted": parted,
                "nin": len(ins)}

    def end(self, name: str, n: int, args: Sequence[Any], kwargs: Dict[str, Any], y: Any, chosen: int,
            values: List[Value], place: Place, edges: Dict[Edge, List[int]], held: List[Any], gives: List[Part],
            parted: bool, nin: int) -> None:
        """What there is to know behind it: its results, and the nodes of its backward call."""
        if parted:
            self.before(name, n, "forward", values, place)
        outs = results(y)
        if name.endswith(".__setitem__") and args:
            outs = [("0", args[0])]
        elif y is None and args and name.endswith("_") and "foreach_" in name:
            outs = results(args[0] if "._foreach_" in name else args[:2])   # of GradScaler: found_inf, too
        elif not tensors(v for _, v in outs) and kwargs.get("out") is not None:
            outs = results(kwargs["out"])
        elif y is None and gives:
            outs = gives
        self.after(name, n, "forward", values, [("out", p, v) for p, v in outs], place)
        if edges and chosen == BOTH:
            self.watch(name, n, edges, nin, [v for _, v in outs], place)
        del held

    def parts_of(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any], place: Place) -> Any:
        """An op call of DTensors is one of the parts that this rank has, but where it communicates: then they do not
        show what it made, and are left out."""
        self.moved = getattr(func, "__name__", "") in ("view", "reshape", "expand", "unflatten")   # to whole sizes
        y = func(*args, **kwargs)
        if self.moved:
            place["detail"], self.moved = DESCRIPTION, False
        return y

    def dispatch(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """What DTensor does for one operator of ATen is nobody's business, but what it communicates."""
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (self.on and self.here()):
                return old(*args, **kwargs)
            self.parted += 1
            try:
                return self.quietly(old, *args, **kwargs)
            finally:
                self.parted -= 1
        return call

    def redistribute(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """DTensor communicates, or cuts out a part, as another layout needs it."""
        def call(*args: Any, **kwargs: Any) -> Any:
            self.moved = True
            return old(*args, **kwargs)
        return call

    def next_call(self, name: str) -> Tuple[int, int]:
        """Which call of this operator it is, and what of it is chosen."""
        number, n = self.number, self.count(name)
        self.number += 1
        self.seen += 1
        return n, self.choice.forward(name, f"{name}.{n}.forward", number, self.classes())

    def custom(self, kind: Any, run: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
        """A function of torch.autograd.Function whose forward calls nothing that is seen, such as one of a
        C++ extension, is one op call. That is known behind it: its inputs are as it leaves them."""
        values = arguments(args, kwargs)
        ins = tensors(v for _, _, v in values)
        edges, held = self.edges(ins)
        seen = self.seen
        y = run(*args, **kwargs)
        if self.seen == seen and ins and not (kind.__module__ or "").startswith("torch."):
            with self.quiet():
                name = f"Function.{kind.__name__}"
                self.spared(name, self.one_call, name, values, ins, edges, results(y))
        del held
        return y

    def one_call(self, name: str, values: List[Value], ins: List[torch.Tensor], edges: Dict[Edge, List[int]],
                 outs: List[Part]) -> None:
        """An op call that is known behind it alone."""
        if not tensors(v for _, v in outs):
            return
        n, chosen = self.next_call(name)
        if chosen:
            place = self.place()
            self.before(name, n, "forward", values, place)
            self.after(name, n, "forward", values, [("out", p, v) for p, v in outs], place)
            if edges and chosen == BOTH:
                self.watch(name, n, edges, len(ins), [v for _, v in outs], place)

    # Where only overflows are wanted, inputs wait until the outputs are known.

    def hold(self, values: List[Value], changed: bool) -> List[Value]:
        return values if self.overflow is None or not changed else copies(values)

    def before(self, name: str, n: int, direction: str, values: List[Value], place: Place) -> None:
        """Record what an op call is given."""
        if self.overflow is None and self.wants(direction, "input") and self.level > 0:
            self.emit(name, n, direction, values, **place)

    def after(self, name: str, n: int, direction: str, ins: List[Value], outs: List[Value], place: Place) -> None:
        """Record what it gave; where only overflows are wanted, also what it was given."""
        if self.overflow is not None:
            if not any(self.spared(name, overflowed, v) for _, _, v in outs if isinstance(v, torch.Tensor)):
                return
            self.emit(name, n, direction, ins + outs, **place)
            self.count_overflow(f"{name}.{n}.{direction}")
        elif self.level == 0:
            self.emit(name, n, direction, [], **place)
        elif self.wants(direction, "output"):
            self.emit(name, n, direction, outs, **place)

    def wants(self, direction: str, side: str) -> bool:
        """Is this side (input, output) of this pass (forward, backward) recorded?"""
        return side in self.parts or direction in self.parts

    def count_overflow(self, key: str) -> None:
        """One more; OverflowStop: that was the last that is waited for."""
        self.overflows += 1
        warnings.warn(f"accrecord: {key} overflows ({self.overflows})")
        if self.overflow is not None and 0 < self.overflow <= self.overflows:
            self.stream.sync()
            raise OverflowStop(f"{key}: overflow number {self.overflows}; the recording is in "
                               f"{self.folder}")

    @staticmethod
    def edges(ins: List[torch.Tensor]) -> Tuple[Dict[Edge, List[int]], List[Any]]:
        """edge -> which tensors of the call have it; and what keeps the edges' names valid."""
        edges: Dict[Edge, List[int]] = {}
        held: List[Any] = []
        if torch.is_grad_enabled():
            for i, t in enumerate(ins):
                if t.requires_grad:
                    held.append(t.grad_fn)
                    edges.setdefault(edge_of(t), []).append(i)
        return edges, held

    def watch(self, name: str, n: int, edges: Dict[Edge, List[int]], nin: int, outs: List[Any], place: Place) -> None:
        """Hooks on the nodes of an op call's backward call: nin tensors went in, outs came out."""
        floats = [y for y in tensors(outs) if y.is_floating_point() or y.is_complex()]
        nodes = find_nodes(edges, [(i, y) for i, y in enumerate(floats) if y.requires_grad])
        if not any(ins for _, _, ins, _ in nodes):
            return
        back = Backward(self, name, n, place["scope"], place["stack"], place["recompute"],
                        len(floats), nin)
        back.nodes = len(nodes)
        self.waiting.add(back)
        if not self.choice.all:
            self.leaves.update(i for kind, i in edges if kind == "leaf")
        for node, *places in nodes:
            node.register_hook(back.hook(*places))

    def backward(self, b: Backward, arrived: List[Optional[torch.Tensor]], given: List[Optional[torch.Tensor]]) -> None:
        """Record a backward call.

        Args:
            arrived: of each output of the forward call its gradient, of the output's shape; None: none came.
            given: of each tensor that went in its gradient, of that one's shape; None: it gets none.
        """
        if not self.on or self.stream is None:
            return
        if b.step != self.step_number:
            if not self.late:
                self.late = True
                warnings.warn("accrecord: a backward call whose forward call was before step() is "
                              "not recorded")
            return
        scope = b.scope and b.scope.replace(".forward.", ".backward.")
        place = {"scope": scope, "stack": b.stack, "recompute": False,
                 "stack_from": f"{b.op}.{b.number}.forward" if b.stack else None}
        if b.moved:
            place["detail"], b.moved = DESCRIPTION, False
        ins = [("in", str(i), g) for i, g in enumerate(arrived)]
        outs = [("out", str(i), g) for i, g in enumerate(given)]
        with self.quiet(), torch.no_grad():
            self.before(b.op, b.number, "backward", ins, place)
            self.after(b.op, b.number, "backward", ins, outs, place)

    def flush_partial(self) -> None:
        """Of op calls one of whose outputs nobody used, not all nodes ran. Behind them come the
        gradients of parameters, which they gave."""
        for b in list(self.partial.values()):
            b.done()
        grads, self.grads = self.grads, {}
        with self.quiet(), torch.no_grad():
            for op, name, grad in grads.values():
                n = self.count(f"{op}.parameters_grad.{name}")
                self.emit(op, n, "grad", [("grad", name, grad)], key=f"{op}.parameters_grad.{n}")

    def parameter_grad(self, leaf: int, op: str, name: str, grad: torch.Tensor) -> None:
        """The gradient of a parameter, of its shape: of this backward pass alone, before it is added up."""
        with self.quiet(), torch.no_grad():
            self.spared("gradients of parameters", self._parameter_grad, leaf, op, name, grad)

    def _parameter_grad(self, leaf: int, op: str, name: str, grad: torch.Tensor) -> None:
        """Where only some op calls are recorded, of the parameters that these have."""
        if self.joined:
            self.own[leaf] = self.own[leaf] + grad if leaf in self.own else grad
        if self.on and self.overflow is None and self.level > 0 and self.wants("backward", "output") and \
                (self.choice.all or leaf in self.leaves):
            grad = local(grad).detach().clone() if is_dtensor(grad) else grad
            # Of passes within a pass, as of second runs with use_reentrant, each gives a part.
            self.grads[leaf] = (op, name, self.grads[leaf][2] + grad if leaf in self.grads else grad)
            if self.in_backward == 0:
                self.flush_partial()


def overflowed(t: torch.Tensor) -> bool:
    """NaN, infinity, or the largest number of its dtype, which saturating devices give for it."""
    if is_nested(t) or not t.is_floating_point() or t.numel() == 0:
        return False
    most = t.detach().abs().max()
    return not bool(most < torch.finfo(t.dtype).max)
