"""Which op calls are recorded: ranges, lists, every n-th."""
from __future__ import annotations

import fnmatch
import re
import warnings
from typing import Any, Iterable, List, Optional, Sequence


def plain_name(name: str) -> str:
    """A name in any of the three spellings, for comparison: Tensor_permute_1_forward,
    Tensor.permute.1.forward."""
    return name.replace("_", "").replace(".", "").lower()


def forward_name(name: str) -> str:
    """The same of an op call, whichever of its passes is named, or none: a backward call is recorded with its forward
    call."""
    return re.sub("(forward|backward)$", "", plain_name(name))


def listed(names: Any) -> List[str]:
    """A list of names, also of one that stands alone."""
    return [names] if isinstance(names, str) else list(names or ())


class Bound:
    """One end of a range: torch.nn.Conv1d.6.fwd, where 6 is a number among all forward calls; or one of
    our own keys."""

    def __init__(self, name: str) -> None:
        part = str(name).split(".")
        if len(part) < 3 or not part[-2].isdigit() or part[-1] not in ("fwd", "bwd", "forward", "backward"):
            raise ValueError(f"op_range: '{name}' is no name such as torch.nn.Conv1d.6.fwd")
        self.backward = part[-1] in ("bwd", "backward")
        self.number = int(part[-2]) if part[-1] in ("fwd", "bwd") else None
        self.key = plain_name(".".join(part[:-1]) + ".forward")
        self.name = ".".join(part[:-2])
        self.met = self.past = False   # past: its backward call ran

    def order(self, key: str, number: int) -> int:
        """Of a forward call: < 0 before it, 0: this one, > 0 behind it."""
        met = self.met
        if self.number is None:
            self.met = met or self.key == plain_name(key)
            return 1 if met else int(self.met) - 1
        self.met = met or number >= self.number
        return number - self.number


NO, FORWARD, BOTH = range(3)


class Choice:
    """Which op calls are recorded.

    Args:
        op_range: two names such as torch.nn.Conv1d.6.fwd, the first and the end; None: an open end.
        op_list: op calls and operators by any of their names.
        skip: so many op calls are left out before each that is recorded.
        keys: op calls by the recorder's own names.
        key_range: the first and the last of a range of those.
    """

    def __init__(self, op_range: Optional[Sequence[Any]] = (), op_list: Any = (), skip: int = 0,
                 keys: Optional[Iterable[str]] = None, key_range: Optional[Sequence[str]] = None) -> None:
        op_range = list(op_range or [])
        if op_range and len(op_range) != 2:
            raise ValueError("op_range: two names, or None for an open end, are wanted")
        self.first: Optional[Bound] = None
        self.end: Optional[Bound] = None
        if op_range:
            self.first, self.end = [Bound(x) if x else None for x in op_range]
        self.named = [(b.number, b.name) for b in (self.first, self.end) if b and b.number is not None]
        self.ops = [str(o) for o in listed(op_list)]
        for o in self.ops:
            part = o.split(".")
            if len(part) > 2 and part[-1] in ("fwd", "bwd") and part[-2].isdigit():
                self.named.append((int(part[-2]), ".".join(part[:-2])))
        self.skip, self.keys = int(skip), keys and {forward_name(k) for k in keys}
        self.key_range = [forward_name(k) for k in key_range or ()]
        if key_range and all(plain_name(k).endswith("backward") for k in key_range):
            self.key_range.reverse()   # they run from the last to the first
        self.inside = self.passed = False
        self.all = not (op_range or self.ops or self.skip or keys or key_range)
        if self.skip < 0:
            raise ValueError("skip: not below 0")

    @staticmethod
    def same_op(name: str, classes: Sequence[str], op: str) -> bool:
        """relu: torch.relu, torch.relu_, Tensor.relu, nn.ReLU, F.relu."""
        want = name.rsplit(".", 1)[-1].strip("_").lower()
        have = [op.rsplit(".", 1)[-1]] + [k.rsplit(".", 1)[-1] for k in classes]
        return any(fnmatch.fnmatchcase(h.strip("_").lower(), want) for h in have)

    def check(self, op: str, number: int, classes: Sequence[str]) -> None:
        """A number counts, also where another op call has it than its name says: that is told."""
        for n, name in self.named:
            if n == number and not self.same_op(name, classes, op):
                warnings.warn(f"accrecord: op call number {n} is {op}, not {name}", stacklevel=6)
        self.named = [pair for pair in self.named if pair[0] > number]

    def listed(self, op: str, key: str, number: int, classes: Sequence[str]) -> bool:
        """Is it in op_list, if there is one?"""
        if not self.ops:
            return True
        for o in self.ops:
            part = o.split(".")
            if len(part) > 2 and part[-1] in ("fwd", "bwd") and part[-2].isdigit():
                if int(part[-2]) == number:
                    return True
            elif plain_name(o) == plain_name(key) or self.same_op(o, classes, op):
                return True
        return False

    def in_range(self, key: str, number: int) -> int:
        """In the order of time, in which backward calls run from the last forward call to the first. They
        are recorded with their forward calls alone."""
        first, end = self.first, self.end
        from_first = first.order(key, number) if first else 0
        from_end = end.order(key, number) if end else -1
        back_first = first is not None and first.backward and not first.past
        if from_first > 0 if back_first else first is not None and from_first < 0 and not first.backward:
            return NO
        if end is None or not end.backward:
            return NO if from_end >= 0 else BOTH
        if end.past or (back_first and from_end <= 0):
            return NO
        return BOTH if from_end > 0 else FORWARD

    def backward_done(self) -> None:
        """A backward pass is over: what it met is behind it."""
        for b in (self.first, self.end):
            if b is not None:
                b.past = b.past or (b.backward and b.met)

    def in_keys(self, key: str) -> bool:
        """Is it one of keys, or in their range, if there are any?"""
        if self.keys is not None:
            return forward_name(key) in self.keys
        if not self.key_range:
            return True
        name = forward_name(key)
        if not self.inside:
            self.inside = name == self.key_range[0]
        good = self.inside and not self.passed
        self.passed = self.passed or (good and name == self.key_range[1])
        return good

    def forward(self, op: str, key: str, number: int, classes: Sequence[str]) -> int:
        """NO, or FORWARD, or BOTH: its backward call, too."""
        if self.named:
            self.check(op, number, classes)
        passes = self.in_range(key, number)
        return passes if self.in_keys(key) and self.listed(op, key, number, classes) and \
            number % (self.skip + 1) == self.skip else NO
