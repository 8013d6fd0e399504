"""The interface of ptdbg_ascend."""
from __future__ import annotations

import contextlib
import os
import random
from typing import Any, Optional

import torch

from . import session
from .choice import Choice, listed
from .native import FULL, HASH, STATISTICS
from .recorder import Recorder
from .session import replace
from .state import PARTS

_dump_path = "./record_dir"
_model: Any = None
_overflow: Optional[int] = None
MODES = ("all", "list", "range", "stack", "api_list", "api_stack")


def seed_all(seed: int = 1234, mode: bool = False) -> None:
    """All seeds; mode: deterministic algorithms, too."""
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    torch.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy
        numpy.random.seed(seed)
    torch.use_deterministic_algorithms(mode)
    if mode:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False


def set_dump_path(fpath: Optional[str] = None, dump_tag: str = "ptdbg_dump") -> None:
    """Where set_dump_switch and register_hook record to."""
    global _dump_path
    if not fpath:
        raise ValueError("set_dump_path: a folder is wanted")
    _dump_path = os.path.join(fpath, dump_tag) if os.path.isdir(fpath) else fpath


def acc_cmp_dump(*_: Any) -> None:
    """For register_hook: record everything that set_dump_switch asks for."""


def overflow_check(*_: Any) -> None:
    """For register_hook: record only op calls that overflow."""


def register_hook(model: Any, hook: Any = acc_cmp_dump, overflow_nums: int = 1, **_: Any) -> None:
    """The model whose modules give op calls their scope; and what to record.

    Args:
        model: a torch.nn.Module.
        hook: acc_cmp_dump: what set_dump_switch asks for; overflow_check: op calls that overflow, from now on.
        overflow_nums: of these so many, then OverflowStop; -1: all.
    """
    global _model, _overflow
    if not isinstance(model, torch.nn.Module):
        raise TypeError("register_hook: no torch.nn.Module")
    name = getattr(hook, "__name__", str(hook))
    if name not in ("acc_cmp_dump", "overflow_check"):
        raise ValueError(f"register_hook: '{name}' is neither acc_cmp_dump nor overflow_check")
    if not isinstance(overflow_nums, int) or (overflow_nums < 1 and overflow_nums != -1):
        raise ValueError("overflow_nums: above 0, or -1 for no end")
    _model = model
    _overflow = overflow_nums if name == "overflow_check" else None
    if _overflow is not None:
        replace(Recorder(_dump_path, overflow=_overflow, model=model, by="overflow_check"))
        session.now.start()


def set_dump_switch(switch: str, mode: str = "all", scope: Any = (), api_list: Any = (), filter_switch: str = "OFF",
                    dump_mode: Any = ("all",), summary_only: bool = False, summary_mode: Optional[str] = None) -> None:
    """Record from now on, or no more.

    Args:
        switch: ON or OFF.
        mode: which op calls, one of MODES.
        scope: op calls by their names, for list, range and stack.
        api_list: operators by any of their names, for api_list.
        filter_switch: ON: no integers, booleans and scalars.
        dump_mode: what of op calls, a list of all, input, output, forward, backward.
        summary_only: statistics of tensors (Max, Min, Mean, Norm), not their elements.
        summary_mode: "summary": the same; "md5": a checksum of each.
    """
    if switch not in ("ON", "OFF"):
        raise ValueError("set_dump_switch: ON or OFF")
    if switch == "OFF":
        if session.now is not None:
            session.now.stop()
        return
    if mode.startswith("acl"):
        raise ValueError(f"set_dump_switch: mode '{mode}' dumps kernels by Ascend's own acl "
                         "library, which is not here: record the op call with mode 'list'")
    if mode not in MODES:
        raise ValueError(f"set_dump_switch: mode '{mode}' is none of {', '.join(MODES)}")
    keys = listed(scope)
    if mode == "range" and len(keys) != 2:
        raise ValueError("set_dump_switch: mode 'range' wants the first and the last op call")
    if mode == "list" and not keys:
        raise ValueError("set_dump_switch: mode 'list' wants op calls")
    if mode == "api_list" and not api_list:
        raise ValueError("set_dump_switch: mode 'api_list' wants names in api_list")
    choice = Choice(op_list=api_list if mode == "api_list" else (),
                    keys=keys if mode in ("list", "stack") and len(keys) != 2 and keys else
                    keys if mode == "list" else None,
                    key_range=keys if mode == "range" or (mode == "stack" and len(keys) == 2)
                    else None)
    detail = HASH if summary_mode == "md5" else \
        STATISTICS if summary_only or summary_mode == "summary" else FULL
    parts = {dump_mode} if isinstance(dump_mode, str) else set(dump_mode)
    if not parts or parts - {"all", *PARTS}:
        raise ValueError(f"set_dump_switch: dump_mode is a list of all, {', '.join(PARTS)}")
    if filter_switch not in ("ON", "OFF"):
        raise ValueError("set_dump_switch: filter_switch is ON or OFF")
    if session.now is None or session.now.folder != _dump_path or session.now.stream is None:
        replace(Recorder(_dump_path, 0 if mode == "api_stack" else 2, True, model=_model, detail=detail,
                          by="set_dump_switch"))
    # Also of a later switch of the same recording.
    session.now.choice, session.now.floats = choice, filter_switch == "ON"
    session.now.parts = PARTS if "all" in parts else parts
    session.now.start()
