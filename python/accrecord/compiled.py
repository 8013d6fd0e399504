"""What runs without being seen inside is one op call: TorchScript, torch.compile, x[i] of old PyTorch."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Sequence

from .optimizers import Optimizers


class Compiled(Optimizers):
    """Op calls inside of which nothing is seen."""

    def index(self, name: str, old: Callable[..., Any]) -> Callable[..., Any]:
        """x[i], where no mode sees it."""
        def call(*args: Any) -> Any:
            if not self.mine():
                return old(*args)
            with self.quiet():
                return self.op(f"Tensor.{name}", old, args, {})
        return call

    def script(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """What TorchScript does inside cannot be seen: it is one op call."""
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(this, *args, **kwargs)
            with self.quiet():
                return self.op(f"Script.{this.name}", functools.partial(old, this), args, kwargs)
        return call

    def compiled(self, name: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
        """A function of torch.compile is one op call, too; it runs as if nothing were recorded, for the
        compiler would look into the recorder, and see new hooks late (behaviour torch-compile-late-hooks)."""
        def plain(*args: Any, **kwargs: Any) -> Any:
            self.mode.__exit__(None, None, None)
            self.unwatch_modules()
            self.unwatch_custom()
            try:
                return fn(*args, **kwargs)
            finally:
                self.watch_custom()
                self.watch_modules()
                self.mode.__enter__()
        with self.quiet():
            return self.op(f"Compiled.{name}", plain, args, kwargs)

    def compiled_module(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """The same of a compiled module."""
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.mine():
                return old(this, *args, **kwargs)
            depth = len(self.modules)
            self.spared("modules", self.enter, this)
            try:
                return self.compiled(type(this._orig_mod).__name__, functools.partial(old, this),
                                     args, kwargs)
            finally:
                del self.modules[depth:]
        return call
