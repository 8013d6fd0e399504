"""A step of torch.optim for one group of parameters, as one op call."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .collectives import Collectives
from .values import Place, Value, arguments, given, is_dtensor

# Of torch.optim: what one step does with a list of parameters, by the name of its module.
OPTIMIZERS = "sgd adam adamw adagrad adadelta adamax asgd nadam radam rmsprop rprop".split()
# What they change, beside the first list.
STATES = ("exp_avgs exp_avg_sqs max_exp_avg_sqs momentum_buffer_list state_sums square_avgs "
          "acc_deltas exp_infs grad_avgs").split()


class Optimizers(Collectives):
    """Steps of optimizers."""

    def optimizer(self, name: str, old: Callable[..., Any]) -> Callable[..., Any]:
        """A step of torch.optim for one group of parameters, as one call."""
        names = list(inspect.signature(old).parameters)

        def step(*args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(*args, **kwargs)
            self.flush_partial()
            self.pending = True
            with self.quiet(), torch.no_grad():
                op = f"Functional.{name}"
                n = self.count(op)
                one = self.spared(op, self.begin_step, op, n, args, kwargs)
                y = old(*args, **kwargs)
                if one:
                    lists = dict(zip(names, args), **kwargs)
                    self.spared(op, self.end_step, op, n, args, lists, *one)
                return y
        return step

    def begin_step(self, op: str, n: int, args: Sequence[Any],
                   kwargs: Dict[str, Any]) -> Optional[Tuple[List[Value], Place, bool]]:
        """What it is given, before it changes that; None: it is not chosen."""
        if not self.choice.forward(op, f"{op}.{n}.forward", self.number, []):
            return None
        place = self.place()
        values = self.hold(arguments(args, kwargs), True)
        parted = any(is_dtensor(v) for _, _, v in values)
        if parted:
            values = [(io, p, given(v)) for io, p, v in values]
        else:
            self.before(op, n, "forward", values, place)
        return values, place, parted

    def end_step(self, op: str, n: int, args: Sequence[Any], lists: Dict[str, Any], values: List[Value], place: Place,
                 parted: bool) -> None:
        """What the step left: parameters, gradients, and the lists of STATES."""
        if parted:
            self.before(op, n, "forward", values, place)
        # What the arguments are afterwards, in their order.
        states = [lists[s] for s in STATES if lists.get(s) and all(isinstance(v, torch.Tensor) for v in lists[s])]
        outs: List[Any] = [v for one in [*args[:2], *states] for v in one]
        self.after(op, n, "forward", values, [("out", str(i), v) for i, v in enumerate(outs)], place)
