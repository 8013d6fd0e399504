"""What a recorder knows, and how it keeps out of what it sees."""
from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode

from .choice import Choice
from .errors import OverflowStop, lacking
from .modes import Mode, apart
from .msprobe import Msprobe
from .native import DESCRIPTION, FULL, STATISTICS
from .stream import Stream

CHECKPOINT = torch.utils.checkpoint.CheckpointFunction.backward.__code__.co_filename


# Frames of these files are nobody's business; and of this package's own, which it adds when all are loaded.
OWN: Set[str] = {TorchFunctionMode.__init__.__code__.co_filename,
       contextlib.contextmanager.__code__.co_filename}


LAYOUTS: Dict[Optional[str], Callable[..., Any]] = {None: Stream, "msprobe": Msprobe}
PARTS = ("input", "output", "forward", "backward")   # what of op calls: those of one pass, or one side


class State:
    """What all parts of a recorder share.

    Args:
        folder: where the recording goes.
        level: 2: tensors, 1: their statistics, 0: op calls alone.
        stack: whether call stacks are recorded.
        parts: of PARTS.
        choice: which op calls.
        rank: of this process; None: torch.distributed's, or RANK of the environment.
        overflow: only op calls that overflow, so many; -1: all of them.
        model: gives op calls their scope.
        detail: FULL, STATISTICS, HASH or DESCRIPTION, instead of what level says.
        layout: of LAYOUTS.
        online: (bench or None, number of bad steps that are kept): each step is judged when it ends.
        by: which call of another recorder's interface began it.
    """

    if TYPE_CHECKING:   # of the classes that this one becomes
        unwatch_modules: Callable[[], None]
        unwatch_custom: Callable[[], None]

        def learn(self, model: Any) -> None: ...
        def flush_partial(self) -> None: ...
        def flush_joined(self) -> None: ...
        def watch_modules(self) -> None: ...
        def watch_custom(self) -> None: ...
        def parameter_grad(self, leaf: int, op: str, name: str, grad: torch.Tensor) -> None: ...

    def __init__(self, folder: str, level: int = 2, stack: bool = True, parts: Sequence[str] = PARTS,
                 choice: Optional[Choice] = None, rank: Optional[int] = None, overflow: Optional[int] = None,
                 model: Any = None, detail: Optional[int] = None, layout: Optional[str] = None,
                 online: Optional[Tuple[Optional[str], int]] = None, by: Optional[str] = None) -> None:
        self.folder, self.level, self.want_stack = folder, level, stack
        self.parts, self.floats = parts, False   # floats: no other tensors, and no scalars
        self.choice = choice or Choice()
        self.detail = {2: FULL, 1: STATISTICS, 0: DESCRIPTION}[level] if detail is None else detail
        self.overflow, self.overflows = overflow, 0
        self.by = by   # the call of another recorder's that began it, for what asks to record again
        self.rank, self.layout, self.online = rank, LAYOUTS[layout], online
        self.stream: Any = None
        self.mode, self.on = Mode(self), False
        self.depth, self.in_backward = 0, 0
        self.lock = threading.RLock()
        self.thread = threading.get_ident()
        self.number, self.step_number = 0, 0
        self.seen = 0   # op calls and collectives, also of those that are not chosen
        self.calls: Dict[str, int] = {}
        self.partial: Dict[int, Any] = {}   # backward calls of whose nodes some ran
        self.grads: Dict[int, Tuple[str, str, torch.Tensor]] = {}
        self.works: Dict[int, Tuple[Any, ...]] = {}   # id -> a collective that is under way, and what is recorded of it
        self.waiting: weakref.WeakSet[Any] = weakref.WeakSet()   # backward calls that may still come
        self.modules: List[Tuple[Any, str]] = []   # those that are being called, and their calls' names
        self.names: Dict[Any, str] = {}
        self.roots: Set[Any] = set()
        self.unready: Set[Any] = set()   # models with parameters that their first call makes
        self.auto, self.pending, self.late = True, False, False
        self.first_root: Any = None
        self.frames: Dict[Any, str] = {}
        self.stacks: Dict[Any, Tuple[int, bool]] = {}
        self.patched: List[Tuple[Any, str, Any, bool]] = []
        self.wrote = self.told = False
        self.leaves: Set[Any] = set()   # parameters of op calls whose backward call is recorded
        self.joined: Dict[Any, Dict[Any, torch.Tensor]] = {}   # of DistributedDataParallel, those whose next backward pass ends in a reduction
        self.own: Dict[int, torch.Tensor] = {}   # of their parameters the rank's own gradients
        self.parted, self.moved = 0, False   # in an op call of DTensors; it communicated
        if model is not None:
            self.learn(model)

    def mine(self) -> bool:
        """Recording, and not inside of something that is recorded as one call."""
        return self.on and self.depth == 0 and self.here()

    def here(self) -> bool:
        """In the thread that started, or in one of autograd's own, which compute what is on other devices: it
        sets the mode there, too."""
        return threading.get_ident() == self.thread or \
            (self.in_backward > 0 and isinstance(threading.current_thread(), threading._DummyThread))

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing that runs in it is recorded."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def spared(self, what: str, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Whatever is met in what is to be recorded, the program goes on: of the first of a kind it is said."""
        try:
            with apart():
                return fn(*args, **kwargs)
        except OverflowStop:
            raise
        except Exception as e:   # pylint: disable=broad-except
            lacking(f"{what}, where {type(e).__name__}: " + str(e).partition("\n")[0][:200])
            return None

    def quietly(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a function gives, of which nothing is recorded."""
        with self.quiet():
            return fn(*args, **kwargs)
