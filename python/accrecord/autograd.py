"""The backward call that belongs to an op call, found by autograd's nodes."""
from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import torch

from .values import unheld

Edge = Tuple[Any, int]   # a node of autograd and its input, or "leaf" and the tensor's id
Places = List[Tuple[int, int]]   # (which of the node's, which of the call's)


class Backward:
    """The backward call that belongs to an op call: hooks on the nodes of autograd that the call
    made see what arrives at its outputs, and what it gives each of its inputs. Those of modules do not see all
    (behaviour torch-backward-hook-dict)."""

    def __init__(self, recorder: Any, op: str, number: int, scope: Optional[str], stack: int, recompute: bool,
                 nout: int, nin: int) -> None:
        self.recorder, self.op, self.number, self.scope = recorder, op, number, scope
        self.stack, self.recompute, self.nodes = stack, recompute, 0
        self.arrived: List[Optional[torch.Tensor]] = [None] * nout
        self.given: List[Optional[torch.Tensor]] = [None] * nin
        self.within: List[Optional[torch.Tensor]] = [None] * nout   # of what arrives at an output, what comes from the call's other outputs
        self.left, self.step = 0, recorder.step_number
        self.moved = False   # of DTensors: what it was given was communicated first

    def hook(self, outs: Places, ins: Places, within: Places) -> Callable[[Any, Any], None]:
        """Of one node: outs: which of its outputs is which of the call's; ins: the same of what
        it gives; within: which of the call's outputs what it gives goes to, as of an LSTM's cell the gradient of h to c."""
        def arrive(grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
            if self.left == 0:
                self.left = self.nodes
            self.moved, self.recorder.moved = self.moved or self.recorder.moved, False
            for at, i in outs:
                if at < len(grad_outputs) and grad_outputs[at] is not None:
                    self.arrived[i] = self.recorder.quietly(self.from_outside, unheld(grad_outputs[at]), self.within[i])
            for sums, places in (self.given, ins), (self.within, within):
                for at, i in places:
                    g = grad_inputs[at] if at < len(grad_inputs) else None
                    if g is not None:
                        g = unheld(g)
                        old = sums[i]
                        sums[i] = g if old is None else self.recorder.quietly(old.add, g)
            self.left -= 1
            if self.left == 0:
                self.done()
            else:
                self.recorder.partial[id(self)] = self

        def fired(grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
            self.recorder.spared(f"gradients of {self.op}", arrive, grad_inputs, grad_outputs)
        return fired

    @staticmethod
    def from_outside(grad: torch.Tensor, within: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        """What the program gave of the gradient of an output, of its shape; None: nothing."""
        if within is None:
            return grad
        return None if torch.equal(grad, within) else grad - within

    def done(self) -> None:
        """All its nodes ran, or no more of them will: the backward call is recorded."""
        self.recorder.partial.pop(id(self), None)
        self.recorder.waiting.discard(self)
        arrived, given, self.left = self.arrived, self.given, 0
        self.arrived, self.given = [None] * len(arrived), [None] * len(given)
        self.within = [None] * len(arrived)
        self.recorder.backward(self, arrived, given)


def edge_of(t: torch.Tensor) -> Edge:
    """Where the gradient of a tensor goes: to a node and its input, or to the leaf itself."""
    return ("leaf", id(t)) if t.grad_fn is None else (id(t.grad_fn), t.output_nr)


LIMIT = 20000   # nodes of one op call: an LSTM on a CPU has some twenty a time step


def find_nodes(edges: Dict[Edge, List[int]], outs: Sequence[Tuple[int, torch.Tensor]]) -> List[List[Any]]:
    """The nodes of an op call that hand something to its inputs or to others of its outputs, or get something
    from its outputs: [node, [(output of the node, number)], [(input of the node, number)], [the same, of outputs]].
    edges: of the inputs, before the call: edge -> their numbers; outs: (number, tensor)."""
    stop = {e[0] for e in edges if e[0] != "leaf"}
    # seen keeps the nodes: what stands for one in Python may go, and another get its id. Nodes stand in the
    # order of what they are given, so that of a tensor given twice the first gradient is that of the first.
    uses: Dict[Edge, int] = {}
    found: Dict[int, List[Any]] = {}
    seen: Dict[int, Any] = {}
    queue: Deque[Any] = collections.deque()
    made: Dict[Edge, int] = {}
    for i, y in outs:
        node = y.grad_fn
        if node is None or id(node) in stop:
            continue
        made.setdefault((id(node), y.output_nr), i)
        found.setdefault(id(node), [node, [], [], []])[1].append((y.output_nr, i))
        if id(node) not in seen:
            seen[id(node)] = node
            queue.append(node)
    while queue:
        node = queue.popleft()
        # What a change of a view hands to its base is that of earlier calls, too.
        base = 1 if node.name() == "CopySlices" else 0
        for at, (to, nr) in list(enumerate(node.next_functions))[base:]:
            if to is None:
                continue
            edge: Edge = (id(to), nr)
            if edge not in edges and hasattr(to, "variable"):
                edge = ("leaf", id(to.variable))
            if edge in edges:
                which = edges[edge]
                n = uses.get(edge, 0)
                uses[edge] = n + 1
                entry = found.setdefault(id(node), [node, [], [], []])
                entry[2].append((at, which[min(n, len(which) - 1)]))
                continue
            if edge in made:
                found.setdefault(id(node), [node, [], [], []])[3].append((at, made[edge]))
            if id(to) not in seen and id(to) not in stop and not hasattr(to, "variable"):
                if len(seen) >= LIMIT:
                    return []
                seen[id(to)] = to
                queue.append(to)
    return list(found.values())
