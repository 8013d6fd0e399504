"""Where an op call stands: its module, its step, its number, its call stack."""
from __future__ import annotations

import functools
import linecache
import sys
import weakref
from types import FrameType
from typing import Any, List, Optional, Set, Tuple

import torch

from .errors import lacking
from .state import CHECKPOINT, OWN, State
from .values import Place

# Modules that a framework puts around a model, and what each calls it.
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod",
            "FullyShardedDataParallel": "_fsdp_wrapped_module", "CheckpointWrapper": "_checkpoint_wrapped_module"}


class Places(State):
    """Modules, steps and call stacks of a recorder."""

    def learn(self, model: Any) -> None:
        """The names of a model's modules; of its parameters the gradients are recorded."""
        hidden: Set[str] = set()
        for path, m in model.named_modules():
            if any(kind.__name__ == "FSDPModule" for kind in type(m).__mro__):
                lacking("gradients of the parameters that fully_shard keeps")
            inner = WRAPPERS.get(type(m).__name__)
            if inner is not None:
                hidden.add(f"{path}.{inner}".strip("."))
            # What is beneath what a framework puts around a model is called as without it.
            parts = path.split(".")
            path = ".".join(p for i, p in enumerate(parts) if ".".join(parts[:i + 1]) not in hidden)
            self.names.setdefault(m, path or "model")
        for _, m in model.named_modules():
            for name, p in m.named_parameters(recurse=False):
                if torch.nn.parameter.is_lazy(p):
                    self.unready.add(model)
                elif p.requires_grad and p not in self.roots:
                    self.roots.add(p)
                    p.register_hook(functools.partial(self.parameter_grad, id(p),
                                                      self.module_op(m), name))

    def module_op(self, m: Any) -> str:
        """What calls of a module are called: Module.layer.0.Linear."""
        return f"Module.{self.names[m]}.{type(m).__name__}"

    def enter(self, m: Any) -> None:
        """A module is called."""
        if not self.mine():
            if self.on and not self.here():
                lacking("what threads compute other than the one in which recording started")
            return
        if not self.modules:
            if self.first_root is None:
                self.first_root = weakref.ref(m)
            # Of several models, an iteration begins with that which was called first; and not while
            # a graph waits for its backward call. A part of this one that was called alone as it was
            # built, as parametrizations are, is none.
            if self.pending and self.first_root() is not m and self.first_root() in set(m.modules()):
                self.first_root = weakref.ref(m)
            if self.pending and self.auto and self.in_backward == 0 and \
                    self.first_root() is m and not self.waiting:
                self.next_step()
            if m not in self.names:
                self.learn(m)
        if m not in self.names:
            self.learn(m)   # one that was made meanwhile
        if isinstance(m, torch.nn.parallel.DistributedDataParallel) and torch.is_grad_enabled() and \
                m.require_backward_grad_sync:
            self.joined[m] = {}
        op = self.module_op(m)
        self.modules.append((m, f"{op}.forward.{self.count(op)}"))

    def next_step(self, number: Optional[int] = None) -> None:
        """The step of this number begins, or the next one."""
        self.flush_partial()
        self.step_number = self.step_number + 1 if number is None else number
        self.pending = False
        self.calls.clear()
        self.stream.step(self.step_number)

    def count(self, op: str) -> int:
        """Of an operator the number of this call, from 0 in each step."""
        n = self.calls.get(op, 0)
        self.calls[op] = n + 1
        return n

    def scope(self) -> Optional[str]:
        """The module's call that runs."""
        return self.modules[-1][1] if self.modules else None

    def classes(self) -> List[str]:
        """Of torch.nn: the class that an op call does the work of."""
        return [type(m).__name__ for m, _ in self.modules[-1:]
                if type(m).__module__.startswith("torch.nn")]

    def frame_text(self, code: Any, line: int) -> str:
        """A frame as msprobe writes it."""
        key = (code, line)
        text = self.frames.get(key)
        if text is None:
            source = linecache.getline(code.co_filename, line).strip()
            text = self.frames[key] = \
                f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"
        return text

    def stack(self) -> Tuple[int, bool]:
        """The id of the call stack, and whether a checkpoint's second run is in it."""
        if not self.want_stack and self.in_backward == 0:
            return 0, False
        f: Optional[FrameType] = sys._getframe(3)
        path = []
        while f is not None:
            if f.f_code.co_filename not in OWN:
                path.append((f.f_code, f.f_lineno))
            f = f.f_back
        key = tuple(path)
        known = self.stacks.get(key)
        if known is None:
            frames = [self.frame_text(code, line) for code, line in path]
            known = self.stacks[key] = (self.stream.stack(frames) if self.want_stack else 0,
                                        any(code.co_filename == CHECKPOINT for code, _ in path))
        return known

    def place(self) -> Place:
        """What Stream.put is told of where an op call stands."""
        stack, checkpoint = self.stack()
        return {"scope": self.scope(), "stack": stack,
                "recompute": checkpoint and self.in_backward > 0}
