"""The recorder that is on, of this process."""
from __future__ import annotations

import atexit
import multiprocessing.util
import os
from typing import Any

import torch


def distributed() -> bool:
    """Is torch.distributed at work?"""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


class Elsewhere:
    """Instead of a recorder, of a rank that is not to be recorded."""
    stream: Any = None
    folder, on, auto, number = "", False, False, 0

    def mine(self) -> bool:
        """Nothing is."""
        return False

    def start(self) -> None:
        """Nothing is to be done."""
        pass

    stop = close = start


now: Any = None     # the recorder that start_record or set_dump_path set up


def replace(new: Any) -> None:
    """Another recorder, or none; the one before is closed."""
    global now
    if now is not None:
        now.close()
    elif new is not None:
        _end_with_process()
    now = new


@atexit.register
def _end() -> None:
    replace(None)


def _end_with_process() -> None:
    """Processes that multiprocessing forks end without atexit, and forget what their parent asked for: asked of each."""
    multiprocessing.util.Finalize(None, _end, exitpriority=0)


def _child() -> None:
    """After fork only the parent records: what a child would write, or delete, is the parent's."""
    global now
    if now is not None:
        now.on, now = False, None


os.register_at_fork(after_in_child=_child)


def for_this_rank(process_group: Any, ranks: Any) -> bool:
    """Is this rank one of those that are recorded? ranks: one, several or none, which is all, of the group."""
    if not distributed():
        return True
    ranks = [ranks] if isinstance(ranks, int) else ranks
    if process_group is not None:
        rank = torch.distributed.get_rank(process_group)
        return rank >= 0 and (not ranks or rank in ranks)
    return not ranks or torch.distributed.get_rank() in ranks
