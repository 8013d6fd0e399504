"""The interface of maca_tools.accuracy."""
from __future__ import annotations

import contextlib
import os
import subprocess
import warnings
from typing import Any, List, Optional, Sequence, Tuple

from . import session
from .choice import Choice
from .errors import RecordError
from .native import HERE
from .recorder import Recorder
from .session import Elsewhere, for_this_rank, replace
from .state import LAYOUTS


def start_record(enabled: bool = True, output_dir: str = "./record_dir", record_level: int = 2,
                 record_stack: bool = True, record_input: bool = True, record_output: bool = True,
                 op_range: Optional[Sequence[Any]] = (), op_list: Any = (), skip: int = 0, process_group: Any = None,
                 ranks: Any = (), layout: Optional[str] = None, keep: Optional[int] = None,
                 bench: Optional[str] = None) -> None:
    """Record all op calls from now on.

    Args:
        enabled: False: from record_switch(True) on.
        output_dir: where the recording goes.
        record_level: 2: tensors of any shape, element by element; 1: their statistics; 0: op calls alone.
        record_stack: call stacks, too.
        record_input: what op calls are given.
        record_output: what they give.
        op_range: the first op call and the end, such as torch.nn.Conv1d.6.fwd; None: an open end.
        op_list: op calls, or operators by any of their names.
        skip: so many op calls are left out before each that is recorded.
        process_group: whose ranks are meant; None: all.
        ranks: those that record; none: all.
        layout: None, our own; "msprobe".
        keep: judge each step when it ends, against the recording `bench` or by itself, and keep only what is bad
            of the first so many steps that are.
        bench: a recording to judge each step against.

    Raises:
        ValueError: an argument is none of these.
        RecordError: nothing can be recorded there.
    """
    if record_level not in (0, 1, 2):
        raise ValueError("record_level: 0, 1 or 2")
    if layout not in LAYOUTS:
        raise ValueError(f"layout: '{layout}' is neither None nor 'msprobe'")
    if bench is not None and keep is None:
        raise ValueError("bench: with keep alone, the number of bad steps that are kept")
    if keep is not None and (layout is not None or record_level != 2):
        raise ValueError("keep: with record_level 2 and our own layout alone")
    if bench is not None and not os.path.exists(bench):
        raise ValueError(f"bench: {bench} is not there")
    choice = Choice(op_range, op_list, skip)
    replace(None)
    if not for_this_rank(process_group, ranks):
        replace(Elsewhere())
        return
    parts = [part for part, wanted in (("input", record_input), ("output", record_output)) if wanted]
    replace(Recorder(output_dir, record_level, record_stack, parts, choice, layout=layout,
                      online=None if keep is None else (bench, int(keep))))
    if enabled:
        session.now.start()


class record(contextlib.ContextDecorator):
    """The same for a block or a function."""

    def __init__(self, enabled: bool = True, output_dir: str = "./record_dir", **options: Any) -> None:
        self.options = dict(options, enabled=enabled, output_dir=output_dir)

    def __enter__(self) -> record:
        start_record(**self.options)
        return self

    def __exit__(self, *_: Any) -> None:
        replace(None)


def record_switch(enabled: bool) -> None:
    """Stop recording, or go on."""
    if session.now is None:
        if enabled:
            raise RecordError("record_switch: start_record comes first")
        return
    session.now.start() if enabled else session.now.stop()


def step(number: Optional[int] = None) -> None:
    """A training step ends, and that of this number begins, or goes on where it is the same. Without
    it, one ends behind an optimizer's step, where the next model is called."""
    if session.now is None or session.now.stream is None:
        return
    session.now.auto = False
    if number is not None and number == session.now.step_number:
        return
    with session.now.quiet():
        session.now.next_step(number)


def _program(name: str) -> str:
    here = os.path.join(HERE, "..", "..", "bin", name)
    return here if os.path.exists(here) else name


def gen_report(dir0: str, dir1: str, output_dir: str = "./", names: Optional[str] = None) -> int:
    """Compare two recordings: compare_result.csv and .xlsx with a row for each tensor (both sides, diff1, diff2,
    stack), .html, and report.txt with what accdiff says.

    Args:
        dir0: the recording of what is trusted.
        dir1: that of what is tested.
        output_dir: where the reports go.
        names: None, ours; "maca", such as torch.nn.functional.conv1d.6.fwd.

    Returns:
        0: the same, 1: different.
    """
    if names not in (None, "maca"):
        raise ValueError(f"names: '{names}' is neither None nor 'maca'")
    if session.now is not None and os.path.realpath(session.now.folder) in map(os.path.realpath, (dir0, dir1)):
        replace(None)
    os.makedirs(output_dir, exist_ok=True)
    result = os.path.join(output_dir, "compare_result.")
    table = ["--all", "--format=csv", "--columns=maca" + ("-names" if names else ""), "--html=" + result + "html"]
    sheet = "--xlsx=" + result + "xlsx"
    status, why = _compare(result + "csv", [*table, sheet, dir1, dir0])
    if status > 1 and "spreadsheets need" in why:
        warnings.warn("accrecord: no compare_result.xlsx: " + why)
        status, why = _compare(result + "csv", [*table, dir1, dir0])
    if status <= 1:
        status, why = _compare(os.path.join(output_dir, "report.txt"), [dir1, dir0])
    if status > 1:
        raise RecordError("accdiff: " + why)
    return status


def _compare(path: str, arguments: List[str]) -> Tuple[int, str]:
    with open(path, "wb") as f:
        done = subprocess.run([_program("accdiff"), *arguments], stdout=f, stderr=subprocess.PIPE,
                              check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()
