"""How the recorder sees what runs: a mode for functions, the engine of autograd, torch.compile."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from ctypes import c_void_p
from typing import Any, Callable, Iterator, Optional

import torch
from torch.overrides import TorchFunctionMode

from . import session


class Mode(TorchFunctionMode):
    """Hands each function of torch that is called to a recorder."""

    def __init__(self, recorder: Any) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.function(self, func, args, kwargs or {})


@functools.lru_cache(None)
def sees_index() -> bool:
    """Does a mode see x[0]? PyTorch 1.13 tells it only of indices that are tuples."""
    class See(TorchFunctionMode):
        seen = False

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            See.seen = See.seen or getattr(func, "__name__", "") == "__getitem__"
            return func(*args, **(kwargs or {}))
    x = torch.zeros(1)
    with See():
        x[0]
    return See.seen


@contextlib.contextmanager
def sequence_kept(kind: type) -> Iterator[None]:
    """CPython makes a class whose __getitem__ is set a sequence, and does not take that back: torch.tensor asks a
    sequence for its length, also a tensor of one number, which has none."""
    if sys.implementation.name != "cpython":
        yield
        return
    word = ctypes.sizeof(c_void_p)
    methods = c_void_p.from_address(id(kind) + 13 * word).value   # PyTypeObject.tp_as_sequence
    item = c_void_p.from_address(methods + 3 * word) if methods else c_void_p()   # .sq_item
    was = item.value
    yield
    item.value = was


# What a class of tensors makes of its functions is the program's: the recorder looks beneath.
apart = getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)


# --- torch.compile, of PyTorch 2 ---

@functools.lru_cache(None)
def compiled_module() -> Optional[type]:
    """The class of compiled modules, or None. Loading it computes some things, so that this is done
    before anything is recorded."""
    if not hasattr(torch, "compile"):
        return None
    with contextlib.suppress(Exception):   # a PyTorch without a compiler
        from torch._dynamo.eval_frame import OptimizedModule
        return OptimizedModule
    return None


def watch_compile(old: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile, whose functions are known to the recorder. Modules are by their class."""
    @functools.wraps(old)
    def make(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(make, **options)
        made = old(model, **options)
        if isinstance(model, torch.nn.Module):
            return made

        @functools.wraps(made)
        def call(*args: Any, **kwargs: Any) -> Any:
            if session.now is None or not session.now.mine():
                return made(*args, **kwargs)
            return session.now.compiled(getattr(model, "__name__", "function"), made, args, kwargs)
        return call
    return make


if hasattr(torch, "compile"):
    torch.compile = watch_compile(torch.compile)


class Engine:
    """Autograd's, by which every backward pass goes, whoever asks for it: no mode for functions is active in it
    (behaviour torch-function-mode-backward)."""

    def __init__(self, engine_of: Any, run: Callable[..., Any]) -> None:
        self.engine, self.run = engine_of, run

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        """A backward pass, as the recorder runs it."""
        return self.run(self.engine.run_backward, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)
