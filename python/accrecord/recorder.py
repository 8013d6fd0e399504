"""The recorder: what it puts in the place of functions while it is on."""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
import threading
import warnings
from typing import Any, Callable

import torch

from .collectives import COLLECTIVES, FUNCTIONAL, RENAMED
from .compiled import Compiled
from .errors import RecordError
from .modes import Engine, compiled_module, sees_index, sequence_kept
from .names import op_names
from .native import FULL, HASH, STATISTICS
from .optimizers import OPTIMIZERS
from .session import distributed


class Recorder(Compiled):
    """Records all op calls of this process while it is on."""

    def open(self) -> None:
        """The recording begins, in the layout that is wanted."""
        task = {FULL: "tensor", STATISTICS: "statistics", HASH: "md5"}.get(self.detail,
                                                                         "structure")
        rank = self.rank
        if rank is None:
            rank = torch.distributed.get_rank() if distributed() else \
                int(os.environ.get("RANK", "0"))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if hasattr(torch, "npu"):
            device = "npu"
        if self.online is None:
            self.stream = self.layout(self.folder, rank, task, device, self.by)
            return
        from . import online
        try:
            self.stream = online.Online(lambda folder: self.layout(folder, rank, task, device, self.by),
                                        self.folder, rank, *self.online)
        except OSError as e:
            raise RecordError(str(e)) from e

    def start(self) -> None:
        """From here on op calls are recorded."""
        if self.on:
            return
        if self.stream is None:
            self.open()
        self.on = True
        self.thread = threading.get_ident()
        self.patch_all()
        self.mode.__enter__()

    def stop(self) -> None:
        """No more, until start(); what was recorded is written."""
        if not self.on:
            return
        self.mode.__exit__(None, None, None)
        self.on = False
        self.unpatch_all()
        self.flush_partial()
        self.flush_works()
        self.stream.sync()
        if not (self.wrote or self.told or self.overflow is not None):
            self.told = True
            warnings.warn(f"accrecord: {self.folder}: nothing is recorded: " + (
                f"of {self.number} op calls op_range, op_list, skip, scope and api_list let none through"
                if self.number else "no op call was seen"), stacklevel=4)

    def close(self) -> None:
        """The recording is whole."""
        self.stop()
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def patch(self, space: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put what make() makes of a function in its place, where there is one."""
        old = getattr(space, name, None)
        if old is None or not callable(old):
            return
        self.put(space, name, functools.wraps(old)(make(old)))

    def put(self, space: Any, name: str, new: Any) -> None:
        """Put something in the place of another, until unpatch_all()."""
        self.patched.append((space, name, getattr(space, name), name in vars(space)))
        setattr(space, name, new)

    @staticmethod
    def same(space: Any, name: str, _: Any) -> Any:
        """What stands in another place under this name."""
        return getattr(space, name)

    def patch_all(self) -> None:
        """Put recording functions in the place of all that no mode sees."""
        op_names()   # of the functions as they are
        with contextlib.suppress(Exception):   # it compiles the optimizers' functions, which it must not find patched
            importlib.import_module("torch.distributed.optim")
        autograd = torch.autograd.Variable
        self.put(autograd, "_execution_engine", Engine(autograd._execution_engine, self.run_backward))
        if not sees_index():
            with sequence_kept(torch.Tensor):
                for name in ("__getitem__", "__setitem__"):
                    self.patch(torch.Tensor, name, functools.partial(self.index, name))
        for name in OPTIMIZERS:
            module = sys.modules.get(f"torch.optim.{name}")
            if module is not None:
                self.patch(module, name, functools.partial(self.optimizer, name))
        for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
            self.patch(kind, "__call__", self.script)
        for space, name in ((torch.jit, "script"), (torch.jit, "trace"), (sys.modules.get("torch.export"), "export")):
            # They run what they are given, to look at it.
            self.patch(space, name, lambda old: functools.partial(self.quietly, old))
        # Before its first step a pipeline runs each stage forward and backward on memory as it is, to learn the shapes.
        schedules = sys.modules.get("torch.distributed.pipelining.schedules")
        for kind, name in (("Single", "_initialize_stage"), ("Multi", "_initialize_stages")):
            self.patch(getattr(schedules, f"PipelineSchedule{kind}", None), name,
                       lambda old: lambda *args, **kwargs: self.quietly(old, *args, **kwargs))
        if distributed():
            for name in (*COLLECTIVES, *RENAMED):
                self.patch(torch.distributed, name, functools.partial(self.collective, name))
            self.patch(torch._C._distributed_c10d.Work, "wait", self.wait)
            c10d = torch.distributed.distributed_c10d
            for name in ("isend", "irecv"):   # one function in both places, as P2POp asks for
                self.patch(c10d, name, functools.partial(self.one_to_one, name))
                self.patch(torch.distributed, name, functools.partial(self.same, c10d, name))
            for space in ("_c10d_functional", "_c10d_functional_autograd"):
                for name in FUNCTIONAL:
                    self.patch(getattr(torch.ops, space), name, functools.partial(self.functional, name))
            dispatcher = getattr(getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None),
                                 "_op_dispatcher", None)
            if dispatcher is not None:
                self.patch(dispatcher, "dispatch", self.dispatch)
                self.patch(sys.modules[type(dispatcher).__module__], "redistribute_local_tensor", self.redistribute)
        compiled = compiled_module()
        if compiled is not None:
            self.patch(compiled, "__call__", self.compiled_module)
        self.watch_modules()
        self.watch_custom()

    def watch_custom(self) -> None:
        """Functions of torch.autograd.Function."""
        kind = torch.autograd.Function
        old, own = inspect.getattr_static(kind, "apply"), "apply" in vars(kind)

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            run = old.__get__(None, cls)
            return self.custom(cls, run, args, kwargs) if self.mine() else run(*args, **kwargs)

        def undo() -> None:
            if own:
                kind.apply = old
            else:
                del kind.apply
        kind.apply, self.unwatch_custom = classmethod(apply), undo

    def watch_modules(self) -> None:
        """Calls of torch.nn.Module."""
        kind = torch.nn.Module
        old = kind.__call__

        @functools.wraps(old)
        def call(m: Any, *args: Any, **kwargs: Any) -> Any:
            depth = len(self.modules)
            self.spared("modules", self.enter, m)
            try:
                return old(m, *args, **kwargs)
            finally:   # also by an exception, which no hook sees: behaviour torch-checkpoint-hooks
                if self.here():
                    del self.modules[depth:]
                    if depth == 0 and self.unready:
                        unready, self.unready = self.unready, set()
                        for model in unready:
                            self.spared("modules", self.learn, model)

        def undo() -> None:
            kind.__call__ = old
        kind.__call__, self.unwatch_modules = call, undo

    def unpatch_all(self) -> None:
        """All is as it was."""
        with sequence_kept(torch.Tensor):
            for space, name, old, own in reversed(self.patched):
                setattr(space, name, old) if own else delattr(space, name)
        self.unwatch_modules()
        self.unwatch_custom()
        self.patched, self.modules = [], []
