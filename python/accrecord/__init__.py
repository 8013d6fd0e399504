"""accrecord - record the op calls of a PyTorch program, for acctools.

    import accrecord
    accrecord.start_record(output_dir="rec")     # ... train ...
    accrecord.record_switch(False)

then, in a shell, `accdump-read rec | accaudit | accfirstbad`, or `accdiff rec bench`. Plain Python
over libaccrec (accrec(3)); PyTorch 1.13 to 2.x. Two interfaces: that of maca_tools.accuracy
(start_record, record, record_switch, gen_report) and that of ptdbg_ascend (set_dump_path,
set_dump_switch, register_hook, seed_all). accrecord(7) says what is recorded, and what cannot be.

The modules, each using those before it:

    errors        why nothing is recorded, and what was left out
    native        libaccrec by ctypes
    values        arguments taken apart, tensors made readable
    stream        a recording of libaccrec
    msprobe       the same in msprobe's layout
    names         which functions are op calls, and what they are called
    choice        which of them are recorded
    autograd      the backward call of an op call
    session       the recorder of this process
    modes         how what runs is seen: functions, autograd's engine, torch.compile
    state         what the parts of a recorder share; these are classes, each on the one before:
    places        modules, steps, call stacks
    calls         op calls, forward and backward
    collectives   torch.distributed
    optimizers    steps of torch.optim
    compiled      TorchScript, torch.compile
    recorder      what is put in the place of functions while it is on
    maca, ptdbg   the two interfaces
    online        steps that are judged when they end
    samples       rollouts in parquet as JSON Lines
"""
from __future__ import annotations

import sys
from typing import Any

import torch

from . import session
from .errors import OverflowStop, RecordError, _lacking, lacking
from .maca import gen_report, record, record_switch, start_record, step
from .modes import watch_compile
from .names import name_of
from .ptdbg import acc_cmp_dump, overflow_check, register_hook, seed_all, set_dump_path, set_dump_switch
from .recorder import Recorder
from .session import replace as _replace
from .state import OWN

__all__ = ["start_record", "record", "record_switch", "gen_report", "step", "seed_all", "set_dump_path",
           "set_dump_switch", "register_hook", "acc_cmp_dump", "overflow_check", "RecordError", "OverflowStop"]

# What else the tests of the recorder ask.
_INSIDE = (Recorder, name_of, lacking, _lacking, _replace)


def __getattr__(name: str) -> Any:
    if name == "_now":   # it changes
        return session.now
    raise AttributeError(f"module 'accrecord' has no attribute '{name}'")


OWN.add((lambda: 0).__code__.co_filename)
OWN.update(m.__file__ for n, m in sys.modules.items() if n.startswith(__name__ + ".") and m.__file__ is not None)

if hasattr(torch, "compile"):
    torch.compile = watch_compile(torch.compile)
