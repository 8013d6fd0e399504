"""Why nothing can be recorded, and what was left out."""
from __future__ import annotations

import warnings


class RecordError(RuntimeError):
    """Nothing can be recorded, and why."""


class OverflowStop(RuntimeError):
    """The number of overflows that register_hook was to wait for is reached."""


_lacking: set[str] = set()


def lacking(what: str) -> None:
    """What is not recorded is said, once."""
    if what not in _lacking:
        _lacking.add(what)
        warnings.warn(f"accrecord: not recorded: {what}", stacklevel=3)
