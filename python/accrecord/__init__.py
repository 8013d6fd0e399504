"""accrecord - record the op calls of a PyTorch program, for acctools.

    import accrecord
    accrecord.start_record(output_dir="rec")     # ... train ...
    accrecord.record_switch(False)

then, in a shell, `accdump-read rec | accaudit | accfirstbad`, or `accdiff rec bench`. Plain Python
over libaccrec (accrec(3)); PyTorch 1.13 to 2.x. Two interfaces: that of maca_tools.accuracy
(start_record, record, record_switch, gen_report) and that of ptdbg_ascend (set_dump_path,
set_dump_switch, register_hook, seed_all). accrecord(7) says what is recorded, and what cannot be.
"""
import atexit
import collections
import contextlib
import ctypes
import fnmatch
import functools
import importlib
import inspect
import json
import linecache
import multiprocessing.util
import os
import random
import re
import subprocess
import sys
import threading
import warnings
import weakref
import zlib
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, \
    c_uint32, c_uint64, c_void_p

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode

__all__ = """start_record record record_switch gen_report step seed_all set_dump_path set_dump_switch
    register_hook acc_cmp_dump overflow_check RecordError OverflowStop""".split()

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKPOINT = torch.utils.checkpoint.CheckpointFunction.backward.__code__.co_filename
FULL, STATISTICS, HASH, DESCRIPTION = range(4)
A_TENSOR, A_NONE, A_BOOL, A_INT, A_FLOAT, A_TEXT, A_INTS = range(7)


# Frames of these files are nobody's business.
OWN = {(lambda: 0).__code__.co_filename, TorchFunctionMode.__init__.__code__.co_filename,
       contextlib.contextmanager.__code__.co_filename}


class RecordError(RuntimeError):
    """Nothing can be recorded, and why."""


class OverflowStop(RuntimeError):
    """The number of overflows that register_hook was to wait for is reached."""


# --- the library -----------------------------------------------------------------------------

class Options(ctypes.Structure):
    _fields_ = [("rank", c_int64), ("program", c_char_p), ("framework", c_char_p),
                ("device", c_char_p), ("task", c_char_p), ("queue", c_size_t), ("drop", c_bool),
                ("deflate", c_bool)]


class Call(ctypes.Structure):
    _fields_ = [("op", c_char_p), ("call", c_int64), ("pass_", c_char_p), ("key", c_char_p),
                ("scope", c_char_p), ("stack", c_uint64), ("stack_from", c_char_p),
                ("recompute", c_bool)]


class Item(ctypes.Structure):
    _fields_ = [("type", c_int), ("io", c_char_p), ("pos", c_char_p), ("cls", c_char_p),
                ("i", c_int64), ("f", c_double), ("text", c_char_p), ("dtype", c_char_p),
                ("ndim", c_uint32), ("shape", POINTER(c_int64)), ("stride", POINTER(c_int64)),
                ("data", c_void_p), ("detail", c_int), ("requires_grad", c_int),
                ("stays", c_bool)]


@functools.lru_cache(None)
def library():
    """Beside this file, or in its source tree, or where the system finds it."""
    tries = [os.path.join(HERE, "libaccrec.so.0"), os.path.join(HERE, "..", "..", "bin", "libaccrec.so.0"),
             "libaccrec.so.0"]
    why = []
    for name in [os.environ.get("ACCREC_LIBRARY")] + tries:
        if name is None or (os.sep in name and not os.path.exists(name)):
            continue
        try:
            lib = ctypes.CDLL(name)
            break
        except OSError as e:
            why.append(str(e))
    else:
        raise RecordError(f"libaccrec.so.0 cannot be loaded ({'; '.join(why)}): install acctools, or "
                          "name the file in ACCREC_LIBRARY")
    lib.acc_rec_open.restype = c_void_p
    lib.acc_rec_open.argtypes = [c_char_p, POINTER(Options), c_char_p, c_size_t]
    lib.acc_rec_call.argtypes = [c_void_p, POINTER(Call), POINTER(Item), c_size_t]
    lib.acc_rec_stack.argtypes = [c_void_p, POINTER(c_char_p), c_size_t, POINTER(c_uint64)]
    lib.acc_rec_step.argtypes = [c_void_p, c_int64]
    lib.acc_rec_sync.argtypes = [c_void_p]
    lib.acc_rec_error.restype = c_char_p
    lib.acc_rec_error.argtypes = [c_void_p]
    lib.acc_rec_close.argtypes = [c_void_p, c_char_p, c_size_t]
    return lib


@functools.lru_cache(100000)
def c(text):
    return text.encode("utf-8", "surrogateescape")


def versions():
    """pytorch 2.15.0, torch_npu 2.9.0: what tools are known to do depends on it."""
    had = [("pytorch", torch), ("torch_npu", sys.modules.get("torch_npu"))]
    return ", ".join(f"{name} {m.__version__}" for name, m in had if hasattr(m, "__version__"))


class Stream:
    """One recording of libaccrec."""

    def __init__(self, folder, rank, task, device, by=None):
        why = ctypes.create_string_buffer(600)
        self.lib, self.folder = library(), folder
        with contextlib.suppress(OSError):   # the library says it
            os.makedirs(folder, exist_ok=True)
        opt = Options(rank=rank, program=c("accrecord " + by if by else "accrecord"), framework=c(versions()),
                      device=c(device), task=c(task))
        self.rec = self.lib.acc_rec_open(c(folder), byref(opt), why, len(why))
        if self.rec is None:
            raise RecordError(why.value.decode(errors="replace") + (
                ": delete it, or name another folder" if b"is there already" in why.value else ""))
        self.told = False

    def check(self, rc):
        if rc < 0 and not self.told:
            self.told = True   # the training goes on
            why = self.lib.acc_rec_error(self.rec).decode(errors="replace")
            warnings.warn(f"accrecord: nothing more is recorded: {why}")

    def put(self, op, number, direction, values, detail, scope=None, stack=0, stack_from=None,
            recompute=False, key=None):
        """values: (io, position, value) of an op call, or of a part of one."""
        keep = []
        # What is in out= before the call is nothing that it reads.
        items = [item(v, io, pos, DESCRIPTION if isinstance(v, Summand) or
                      io == "kw" and pos.split(".")[0] == "out" else detail, keep) for io, pos, v in values]
        one = Call(c(op), number, c(direction), c(key) if key else None, c(scope) if scope else None, stack,
                   c(stack_from) if stack_from else None, recompute)
        array = (Item * len(items))(*items)
        self.check(self.lib.acc_rec_call(self.rec, byref(one), array, len(items)))

    def stack(self, frames):
        out = c_uint64()
        array = (c_char_p * len(frames))(*[c(f) for f in frames])
        self.check(self.lib.acc_rec_stack(self.rec, array, len(frames), byref(out)))
        return out.value

    def step(self, n):
        self.check(self.lib.acc_rec_step(self.rec, n))

    def sync(self):
        self.check(self.lib.acc_rec_sync(self.rec))

    def close(self):
        why = ctypes.create_string_buffer(600)
        rec, self.rec = self.rec, None
        if self.lib.acc_rec_close(rec, why, len(why)) < 0 and not self.told:
            warnings.warn("accrecord: the recording is not complete: " +
                          why.value.decode(errors="replace"))


# --- arguments -------------------------------------------------------------------------------

def leaves(x, pos):
    """(pos, value) of an argument, in order; containers are taken apart."""
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        for i, v in enumerate(x):
            yield from leaves(v, f"{pos}.{i}")
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from leaves(v, f"{pos}.{k}")
    else:
        yield pos, x


def arguments(args, kwargs):
    """(io, pos, value) of a call."""
    out = [("in", p, v) for i, a in enumerate(args) for p, v in leaves(a, str(i))]
    return out + [("kw", p, v) for k, a in kwargs.items() for p, v in leaves(a, str(k))]


def results(y):
    if isinstance(y, (list, tuple)):
        return [pv for i, v in enumerate(y) for pv in leaves(v, str(i))]
    return list(leaves(y, "0"))


def is_dtensor(v):
    return type(v).__name__ == "DTensor" and hasattr(v, "_local_tensor")


def local(t):
    """Of a DTensor the part that this rank has; of what a functional collective gives what it stands for."""
    if is_dtensor(t):
        t = t._local_tensor
    return t.trigger_wait() if type(t).__name__ == "AsyncCollectiveTensor" else t


def unheld(grad):
    """A gradient that may be kept: of a DTensor that somebody holds autograd makes a copy, which PyTorch 2.6 does not
    do right where it is a part of a sum."""
    return local(grad).detach() if is_dtensor(grad) else grad


def copies(values):
    return [(io, p, local(v).detach().clone() if isinstance(v, torch.Tensor) else v) for io, p, v in values]


class Summand(torch.Tensor):
    """Of a DTensor whose ranks have summands, what an optimizer is given: it adds them up for itself, and they are no
    gradient yet. The shape alone is recorded."""


def given(v):
    if is_dtensor(v) and any(p.is_partial() for p in v.placements):
        return torch.empty_like(local(v), device="meta").as_subclass(Summand)
    return local(v).detach().clone() if isinstance(v, torch.Tensor) else v


def tensors(values):
    return [v for v in values if isinstance(v, torch.Tensor)]


def ints(values):
    return (c_int64 * len(values))(*values)


_lacking: "set[str]" = set()


def lacking(what):
    """What is not recorded is said, once."""
    if what not in _lacking:
        _lacking.add(what)
        warnings.warn(f"accrecord: not recorded: {what}", stacklevel=3)


DTYPES = re.compile(r"torch\.(bool|bfloat16|(float|complex|u?int)(8|16|32|64|128)(_\w+)?)$")   # of libaccrec


def is_nested(v):
    return isinstance(v, torch.Tensor) and getattr(v, "is_nested", False)


def readable(t):
    """Its elements, on the CPU; None: it has none that can be read."""
    t = local(t)
    kind = "nested" if is_nested(t) else "quantized" if t.is_quantized else \
        "sparse" if t.layout != torch.strided else "meta" if t.device.type == "meta" else \
        str(t.dtype) if not DTYPES.match(str(t.dtype)) else None
    if kind is not None:
        lacking(f"the elements of {kind} tensors")
        return None
    with contextlib.suppress(Exception):   # whatever a class of its own, or a mode, makes of this
        t = t.detach()
        if t.is_conj() or t.is_neg():
            t = t.resolve_conj().resolve_neg()
        t = t if t.device.type == "cpu" else t.cpu()
        if t.numel() == 0 or (t.data_ptr() != 0 and held_bytes(t)):
            return t
    lacking("the elements of tensors that stand for others, as those of torch.func do, or whose memory is freed")
    return None


def held_bytes(t):
    """Has its memory not been taken away, as sharded weights' is?"""
    last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    memory = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()
    return (last + 1) * t.element_size() <= memory.nbytes()


def tensor_item(t, io, pos, detail, keep):
    requires_grad, t = t.requires_grad, local(t)
    item = Item(type=A_TENSOR, io=c(io), pos=c(pos), cls=b"torch.Tensor", dtype=c(str(t.dtype)),
                ndim=t.dim(), detail=detail, requires_grad=requires_grad)
    try:
        stride = t.stride()
    except (RuntimeError, NotImplementedError):
        stride = None
    shape = ints(t.shape)
    item.shape = shape
    keep.append(shape)
    elements = None if detail == DESCRIPTION else readable(t)
    if elements is not None:
        item.data = elements.data_ptr()
        stride = elements.stride()
        keep.append(elements)
    if stride is not None:
        strides = ints(stride)
        item.stride = strides
        keep.append(strides)
    return item


def group_ranks(group):
    dist = torch.distributed
    if group is None or not hasattr(dist, "get_process_group_ranks"):
        if group is None or group is dist.group.WORLD:
            return list(range(dist.get_world_size()))
        known = getattr(dist.distributed_c10d, "_pg_group_ranks", {}).get(group)
        return sorted(known) if known else None
    return dist.get_process_group_ranks(group)


def reduce_op(v):
    """RedOpType.MAX, as a newer torch prints it; None: it is no reduction."""
    if type(v).__name__ not in ("ReduceOp", "RedOpType"):
        return None
    names = [n for n in "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()
             if v == getattr(torch.distributed.ReduceOp, n, None)]
    return "RedOpType." + names[0] if names else words(v)


def words(v):
    """What it prints, without addresses, which differ between two runs."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(v))[:1000]


def kind_of(v):
    kind = type(v)
    if kind is torch.Tensor:
        return f"tensors of {v.dtype}"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def known(v, make, *args):
    """What is made of a value that is to be recorded; of one that cannot be, None, and its kind is said."""
    try:
        return make(v, *args)
    except Exception as e:   # pylint: disable=broad-except
        lacking(f"{kind_of(v)}, where {type(e).__name__}: " + str(e).partition("\n")[0][:200])
        return None


def item(v, io, pos, detail, keep):
    """What libaccrec is told of one value."""
    one = known(v, _item, io, pos, detail, keep)
    return one or Item(type=A_TEXT, io=c(io), pos=c(pos), cls=c(kind_of(v)), text=b"")


def sizes(t):
    """Of a nested tensor: it has no shape."""
    return words([t.dtype, *(list(part.shape) for part in t.unbind())])


def _item(v, io, pos, detail, keep):
    if is_nested(v):
        lacking("the elements of nested tensors")
        return Item(type=A_TEXT, io=c(io), pos=c(pos), cls=b"NestedTensor", text=c(sizes(v)))
    if isinstance(v, torch.Tensor):
        return tensor_item(v, io, pos, detail, keep)
    one = Item(io=c(io), pos=c(pos), cls=c(type(v).__name__))
    if v is None:
        one.type, one.cls = A_NONE, b"None"
    elif isinstance(v, bool):
        one.type, one.i = A_BOOL, v
    elif isinstance(v, int) and -2**63 <= v < 2**63:
        one.type, one.i, one.cls = A_INT, int(v), b"int"
    elif isinstance(v, float):
        one.type, one.f, one.cls = A_FLOAT, v, b"float"
    elif isinstance(v, torch.Size):
        values = ints(v)
        keep.append(values)
        one.type, one.cls, one.ndim, one.shape = A_INTS, b"torch.Size", len(v), values
    elif isinstance(v, slice):
        parts = ["null" if p is None else str(int(p)) for p in (v.start, v.stop, v.step)]
        one.type, one.text = A_TEXT, c("[" + ", ".join(parts) + "]")
    elif v is Ellipsis:
        one.type, one.cls, one.text = A_TEXT, b"ellipsis", b"..."
    elif type(v).__name__.endswith("ProcessGroup") or type(v).__name__.startswith("ProcessGroup"):
        ranks = ints(group_ranks(v) or [])
        keep.append(ranks)
        one.type, one.cls, one.ndim, one.shape = A_INTS, b"ProcessGroup", len(ranks), ranks
    elif reduce_op(v):
        one.type, one.cls, one.text = A_TEXT, b"torch.distributed.ReduceOp", c(reduce_op(v))
    else:
        kind = type(v)
        if kind.__module__ == "torch":
            one.cls = c(f"torch.{kind.__name__}")
        one.type, one.text = A_TEXT, c(words(v))
    return one


# --- msprobe's layout ------------------------------------------------------------------------

def statistics(t):
    """As msprobe defines them, but not rounded to the tensor's dtype."""
    t = readable(t)
    none = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if t is None or t.numel() == 0:
        return none
    if t.dtype == torch.bool:
        return dict(none, Max=bool(t.any()), Min=bool(t.all()))
    if t.is_complex():
        t = t.to(torch.complex128).abs()
        return dict(none, Max=t.max().item(), Min=t.min().item(), Mean=t.mean().item())
    if not t.is_floating_point():
        t = t.numpy() if str(t.dtype).startswith("torch.uint") else t   # torch has no largest of some of these
        return dict(none, Max=t.max().item(), Min=t.min().item())
    if t.dim() == 0:
        return dict.fromkeys(none, t.item())
    t = t if t.dtype == torch.float64 else t.float()
    return {"Max": t.max().item(), "Min": t.min().item(), "Mean": t.mean().item(),
            "Norm": t.norm().item()}


def nested(leaves_of):
    """Values by their paths ("1.0") as the lists and dicts that they came from."""
    if list(leaves_of) == [""]:
        return leaves_of[""]
    parts = {}
    for path, v in leaves_of.items():
        head, _, rest = path.partition(".")
        parts.setdefault(head, {})[rest] = v
    parts = {k: nested(v) for k, v in parts.items()}
    if parts and all(k.isdigit() for k in parts):
        return [parts.get(str(i)) for i in range(max(map(int, parts)) + 1)]
    return parts


class Msprobe:
    """The same as a Stream, in the layout of msprobe: step0/rank0/dump.json, stack.json,
    construct.json and dump_tensor_data. A step is written when it ends."""

    def __init__(self, folder, rank, task, *_):
        self.folder, self.rank, self.task, self.number = folder, rank, task, 0
        self.frames = []
        self.clear()
        if os.path.exists(os.path.join(self.place(), "dump.json")):
            raise RecordError(f"{self.place()}: a recording is there already: delete it, or name "
                              "another folder")

    def place(self):
        return os.path.join(self.folder, f"step{self.number}", f"rank{self.rank}")

    def clear(self):
        self.data, self.parents, self.stacks = {}, {}, {}

    def stack(self, frames):
        self.frames.append(frames)
        return len(self.frames)

    def leaf(self, v, name, detail):
        return known(v, self._leaf, name, detail)

    def _leaf(self, v, name, detail):
        if is_nested(v):
            lacking("the elements of nested tensors")
            return {"type": "NestedTensor", "value": sizes(v)}
        if v is None or isinstance(v, (torch.Tensor, bool, int, float, str)):
            pass
        elif isinstance(v, slice):
            return {"type": "slice", "value": [v.start, v.stop, v.step]}
        elif v is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        elif isinstance(v, torch.Size):
            return {"type": "torch.Size", "value": list(v)}
        elif "ProcessGroup" in type(v).__name__:
            return {"type": "torch.ProcessGroup", "group_ranks": group_ranks(v)}
        elif reduce_op(v):
            return {"type": "torch.distributed.ReduceOp", "value": reduce_op(v)}
        elif isinstance(v, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(v)}
        elif type(v).__module__ == "torch":
            return {"type": f"torch.{type(v).__name__}", "value": str(v)}
        else:
            return None
        if not isinstance(v, torch.Tensor):
            return None if v is None else {"type": type(v).__name__, "value": v}
        one = {"type": "torch.Tensor", "dtype": str(v.dtype), "shape": list(local(v).shape),
               **(statistics(v) if detail != DESCRIPTION else {}), "requires_grad": v.requires_grad}
        t = readable(v)
        if detail == HASH and t is not None:
            bytes_of = t.contiguous().view(-1).view(torch.uint8) if t.numel() else t
            one["md5"] = f"{zlib.crc32(bytes_of.numpy()) if t.numel() else 0:08x}"
        if detail == FULL and t is not None:
            one["data_name"] = name + ".pt"
            folder = os.path.join(self.place(), "dump_tensor_data")
            os.makedirs(folder, exist_ok=True)
            torch.save(t.contiguous().clone(), os.path.join(folder, one["data_name"]))
        return one

    def put(self, op, number, direction, values, detail, scope=None, stack=0, stack_from=None,
            recompute=False, key=None):
        if key is None:
            key = f"{op}.{direction}.{number}" if op.startswith("Module.") else \
                f"{op}.{number}.{direction}"
        forward = direction == "forward"
        members = {"in": "input_args" if forward else "input", "kw": "input_kwargs",
                   "out": "output"}
        words = {"in": "input", "kw": "kwargs", "out": "output"}
        entry = self.data.setdefault(key, {})
        if forward and not entry:
            entry.update(input_args=[], input_kwargs={}, is_recompute=recompute)
        for io in dict.fromkeys(io for io, _, _ in values):
            word = "." + words[io] if io in words else ""
            here = {pos: self.leaf(v, f"{key}{word}.{pos}", detail)
                    for one, pos, v in values if one == io}
            if io == "grad":
                entry.update({pos: [v] for pos, v in here.items()})
            else:
                entry[members[io]] = nested(here)
        self.parents[key] = scope
        if stack:
            self.stacks.setdefault(stack, {})[key] = None

    def step(self, number):
        self.write()
        self.clear()
        self.number = number

    def write(self):
        os.makedirs(self.place(), exist_ok=True)
        stacks = {str(i): [list(keys), self.frames[s - 1]]
                  for i, (s, keys) in enumerate(self.stacks.items())}
        data = {"task": "statistics" if self.task == "md5" else self.task, "level": "mix",
                "framework": "pytorch",
                "dump_data_dir": os.path.abspath(os.path.join(self.place(), "dump_tensor_data")),
                "data": self.data}
        for name, what in (("dump.json", data), ("stack.json", stacks),
                           ("construct.json", self.parents)):
            path = os.path.join(self.place(), name)
            with open(path + ".part", "w", encoding="utf-8") as f:
                json.dump(what, f, indent=1)
            os.replace(path + ".part", path)

    def sync(self):
        self.write()

    def close(self):
        self.write()


LAYOUTS = {None: Stream, "msprobe": Msprobe}


# --- names -----------------------------------------------------------------------------------

# They ask for something, make something out of nothing or random numbers, or belong to autograd.
SKIP = set("""
    dim size numel nelement ndimension stride storage_offset is_contiguous data_ptr item tolist
    numpy element_size storage untyped_storage storage_type get_device has_names backward
    register_hook register_post_accumulate_grad_hook requires_grad_ retain_grad detach detach_
    allclose equal result_type can_cast promote_types type share_memory_ pin_memory is_same_size
    set_ resize_ resize_as_ as_subclass apply_ map_ map2_ record_stream names rename rename_
    refine_names align_to align_as uniform_ normal_ random_ exponential_ bernoulli_ cauchy_
    geometric_ log_normal_ zero_ get_num_threads set_num_threads is_tensor typename
    manual_seed seed initial_seed save load compile no_grad enable_grad set_grad_enabled
    is_grad_enabled is_inference_mode_enabled broadcast_shapes finfo iinfo Generator
    tensor as_tensor from_numpy frombuffer sparse_coo_tensor asarray scalar_tensor
    empty empty_like empty_strided empty_quantized new_empty new_empty_strided new_tensor
    zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full eye arange range
    linspace logspace rand rand_like randn randn_like randint randint_like randperm normal
    bernoulli multinomial poisson tril_indices triu_indices hann_window hamming_window
    bartlett_window blackman_window kaiser_window complex_out
    __len__ __bool__ __repr__ __str__ __format__ __hash__ __deepcopy__ __reduce_ex__ __array__
    __array_wrap__ __setstate__ __contains__ __iter__ __dir__ __get__ __set__ __delete__ __float__
    __int__ __index__ __complex__ __long__ __nonzero__ __cuda_array_interface__ __dlpack__
    __dlpack_device__ __reversed__ __init__ __new__ __class__ __getattribute__ __setattr__
    __subclasshook__ __init_subclass__ __sizeof__ __dir__ __torch_function__ __torch_dispatch__
    has_torch_function boolean_dispatch handle_torch_function assert_int_or_pair list obj""".split())
INPLACE = set("__iadd__ __isub__ __imul__ __itruediv__ __idiv__ __ifloordiv__ __imod__ __ipow__ "
              "__iand__ __ior__ __ixor__ __ilshift__ __irshift__ __setitem__".split())


def wanted(name):
    return name.startswith(("_foreach_", "_amp_")) or not (
        name in SKIP or name.startswith("is_") or (name.startswith("_") and not name.endswith("__")))


@functools.lru_cache(None)
def op_names():
    """Of each function its name as the recorders write it. The first that has it counts; of several in one place
    that which the operator has: torch.mm is torch.dsmm, too, and says that this is its name."""
    spaces = [("Functional", F), ("Torch", torch), ("Tensor", torch.Tensor),
              ("Torch.linalg", getattr(torch, "linalg", None)),
              ("Torch.fft", getattr(torch, "fft", None)),
              ("Torch.special", getattr(torch, "special", None))]
    names = {}
    for family, space in spaces:
        here = {}
        for name in dir(space) if space is not None else []:
            fn = getattr(space, name, None)
            if not wanted(name) or not callable(fn) or isinstance(fn, type):
                continue
            with contextlib.suppress(TypeError):
                if here.setdefault(fn, name) != name and not hasattr(torch.ops.aten, here[fn]) and \
                        hasattr(torch.ops.aten, name):
                    here[fn] = name
        for fn, name in here.items():
            names.setdefault(fn, f"{family}.{name}")
    return names


# torch.nn.functional and its kin choose between two functions by a flag.
ALIAS = {f"Functional.{n}_with_indices": f"Functional.{n}" for n in (
    "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d").split()}


def registered(fn):
    """(namespace, name) of torch.ops.namespace.name; or None."""
    if type(fn).__name__ not in ("OpOverload", "OpOverloadPacket"):
        return None
    return getattr(fn, "overloadpacket", fn)._qualified_op_name.split("::")[:2]


def overwritten(fn, args, kwargs):
    """Of a registered operator that gives nothing: the arguments that it changes, by its schema."""
    try:
        schemas = [fn._schema] if hasattr(fn, "_schema") else [getattr(fn, o)._schema for o in fn.overloads()]
    except (AttributeError, RuntimeError):
        return []
    for schema in schemas:
        names = [a.name for a in schema.arguments]
        if len(args) <= len(names) and set(kwargs) <= set(names):
            given = dict(zip(names, args), **kwargs)
            return [pv for i, a in enumerate(schema.arguments)
                    if a.alias_info is not None and a.alias_info.is_write and a.name in given
                    for pv in leaves(given[a.name], str(i))]
    return []


def name_elsewhere(fn):
    """Of operators that others registered, and those of torch that have no place of their own."""
    plain, module = getattr(fn, "__name__", ""), getattr(fn, "__module__", None) or ""
    if registered(fn):
        space, plain = registered(fn)
        if "c10d" in space:
            if plain != "wait_tensor" and plain[0] != "_":   # those of FUNCTIONAL are seen elsewhere
                lacking("some collectives of torch.distributed._functional_collectives, such as " + plain)
        elif space == "aten":
            return f"Aten.{plain}" if wanted(plain) else None
        elif space not in ("profiler", "prim"):
            return f"NPU.{plain}" if space == "npu" else f"Torch.ops.{space}.{plain}"
    elif getattr(fn, "__qualname__", "").startswith("_VariableFunctions") and wanted(plain):
        return f"Torch.{plain}" if module.split(".")[0] == "torch" or not hasattr(torch, "npu") else f"NPU.{plain}"
    elif module == "torch._C._nn" and wanted(plain):
        return f"Functional.{plain}"
    return None


# Attributes that are op calls; a mode sees that they are got.
TURNED = {getattr(torch.Tensor, n): f"Tensor.{n}" for n in ("T", "mT", "H", "mH") if hasattr(torch.Tensor, n)}


def name_of(fn):
    """None: it is not recorded."""
    if getattr(fn, "__name__", "") == "__get__":
        return TURNED.get(getattr(fn, "__self__", None))
    try:
        name = op_names().get(fn)
    except TypeError:
        return None
    if name is None:
        plain = getattr(fn, "__name__", "")
        module = getattr(fn, "__module__", None) or ""
        if module == "torch.nn.functional" and plain.startswith("_") and wanted(plain[1:]):
            name = "Functional." + plain[1:]   # what boolean_dispatch chose
        elif plain and wanted(plain) and hasattr(torch.Tensor, plain) and \
                getattr(fn, "__qualname__", "").startswith(("_TensorBase.", "TensorBase.",
                                                            "Tensor.")):
            name = "Tensor." + plain
        else:
            name = name_elsewhere(fn)
    return ALIAS.get(name, name)


def changes(name, kwargs):
    plain = name.rsplit(".", 1)[1]
    return plain in INPLACE or bool(kwargs.get("inplace")) or kwargs.get("out") is not None or \
        (plain.endswith("_") and not plain.endswith("__"))


# --- what to record --------------------------------------------------------------------------

def plain_name(name):
    """A name in any of the three spellings, for comparison: Tensor_permute_1_forward,
    Tensor.permute.1.forward."""
    return name.replace("_", "").replace(".", "").lower()


def forward_name(name):
    """The same of an op call, whichever of its passes is named, or none: a backward call is recorded with its forward
    call."""
    return re.sub("(forward|backward)$", "", plain_name(name))


def listed(names):
    """A list of names, also of one that stands alone."""
    return [names] if isinstance(names, str) else list(names or ())


class Bound:
    """One end of a range: torch.nn.Conv1d.6.fwd, where 6 is a number among all forward calls; or one of
    our own keys."""

    def __init__(self, name):
        part = str(name).split(".")
        if len(part) < 3 or not part[-2].isdigit() or part[-1] not in ("fwd", "bwd", "forward", "backward"):
            raise ValueError(f"op_range: '{name}' is no name such as torch.nn.Conv1d.6.fwd")
        self.backward = part[-1] in ("bwd", "backward")
        self.number = int(part[-2]) if part[-1] in ("fwd", "bwd") else None
        self.key = plain_name(".".join(part[:-1]) + ".forward")
        self.name = ".".join(part[:-2])
        self.met = self.past = False   # past: its backward call ran

    def order(self, key, number):
        """Of a forward call: < 0 before it, 0: this one, > 0 behind it."""
        met = self.met
        if self.number is None:
            self.met = met or self.key == plain_name(key)
            return 1 if met else int(self.met) - 1
        self.met = met or number >= self.number
        return number - self.number


NO, FORWARD, BOTH = range(3)


class Choice:
    """Which op calls."""

    def __init__(self, op_range=(), op_list=(), skip=0, keys=None, key_range=None):
        op_range = list(op_range or [])
        if op_range and len(op_range) != 2:
            raise ValueError("op_range: two names, or None for an open end, are wanted")
        self.first, self.end = [x and Bound(x) for x in op_range] if op_range else (None, None)
        self.named = [(b.number, b.name) for b in (self.first, self.end) if b and b.number is not None]
        self.ops = [str(o) for o in listed(op_list)]
        for o in self.ops:
            part = o.split(".")
            if len(part) > 2 and part[-1] in ("fwd", "bwd") and part[-2].isdigit():
                self.named.append((int(part[-2]), ".".join(part[:-2])))
        self.skip, self.keys = int(skip), keys and {forward_name(k) for k in keys}
        self.key_range = key_range and [forward_name(k) for k in key_range]
        if key_range and all(plain_name(k).endswith("backward") for k in key_range):
            self.key_range.reverse()   # they run from the last to the first
        self.inside = self.passed = False
        self.all = not (op_range or self.ops or self.skip or keys or key_range)
        if self.skip < 0:
            raise ValueError("skip: not below 0")

    @staticmethod
    def same_op(name, classes, op):
        """relu: torch.relu, torch.relu_, Tensor.relu, nn.ReLU, F.relu."""
        want = name.rsplit(".", 1)[-1].strip("_").lower()
        have = [op.rsplit(".", 1)[-1]] + [k.rsplit(".", 1)[-1] for k in classes]
        return any(fnmatch.fnmatchcase(h.strip("_").lower(), want) for h in have)

    def check(self, op, number, classes):
        """A number counts, also where another op call has it than its name says: that is told."""
        for n, name in self.named:
            if n == number and not self.same_op(name, classes, op):
                warnings.warn(f"accrecord: op call number {n} is {op}, not {name}", stacklevel=6)
        self.named = [pair for pair in self.named if pair[0] > number]

    def listed(self, op, key, number, classes):
        if not self.ops:
            return True
        for o in self.ops:
            part = o.split(".")
            if len(part) > 2 and part[-1] in ("fwd", "bwd") and part[-2].isdigit():
                if int(part[-2]) == number:
                    return True
            elif plain_name(o) == plain_name(key) or self.same_op(o, classes, op):
                return True
        return False

    def in_range(self, key, number):
        """In the order of time, in which backward calls run from the last forward call to the first. They
        are recorded with their forward calls alone."""
        first, end = self.first, self.end
        from_first = first.order(key, number) if first else 0
        from_end = end.order(key, number) if end else -1
        back_first = first is not None and first.backward and not first.past
        if (from_first > 0 if back_first else from_first < 0 and not first.backward):
            return NO
        if end is None or not end.backward:
            return NO if from_end >= 0 else BOTH
        if end.past or (back_first and from_end <= 0):
            return NO
        return BOTH if from_end > 0 else FORWARD

    def backward_done(self):
        for b in (self.first, self.end):
            if b is not None:
                b.past = b.past or (b.backward and b.met)

    def in_keys(self, key):
        if self.keys is not None:
            return forward_name(key) in self.keys
        if self.key_range is None:
            return True
        name = forward_name(key)
        if not self.inside:
            self.inside = name == self.key_range[0]
        good = self.inside and not self.passed
        self.passed = self.passed or (good and name == self.key_range[1])
        return good

    def forward(self, op, key, number, classes):
        """NO, or FORWARD, or BOTH: its backward call, too."""
        if self.named:
            self.check(op, number, classes)
        passes = self.in_range(key, number)
        return passes if self.in_keys(key) and self.listed(op, key, number, classes) and \
            number % (self.skip + 1) == self.skip else NO


# --- autograd --------------------------------------------------------------------------------

class Backward:
    """The backward call that belongs to an op call: hooks on the nodes of autograd that the call
    made see what arrives at its outputs, and what it gives each of its inputs. Those of modules do not see all
    (behaviour torch-backward-hook-dict)."""

    def __init__(self, recorder, op, number, scope, stack, recompute, nout, nin):
        self.recorder, self.op, self.number, self.scope = recorder, op, number, scope
        self.stack, self.recompute, self.nodes = stack, recompute, 0
        self.arrived, self.given = [None] * nout, [None] * nin
        self.within = [None] * nout   # of what arrives at an output, what comes from the call's other outputs
        self.left, self.step = 0, recorder.step_number
        self.moved = False   # of DTensors: what it was given was communicated first

    def hook(self, outs, ins, within):
        """Of one node: outs: which of its outputs is which of the call's; ins: the same of what
        it gives; within: which of the call's outputs what it gives goes to, as of an LSTM's cell the gradient of h to c."""
        def arrive(grad_inputs, grad_outputs):
            if self.left == 0:
                self.left = self.nodes
            self.moved, self.recorder.moved = self.moved or self.recorder.moved, False
            for at, i in outs:
                if at < len(grad_outputs) and grad_outputs[at] is not None:
                    self.arrived[i] = self.recorder.quietly(self.from_outside, unheld(grad_outputs[at]), self.within[i])
            for sums, places in (self.given, ins), (self.within, within):
                for at, i in places:
                    g = grad_inputs[at] if at < len(grad_inputs) else None
                    if g is not None:
                        g = unheld(g)
                        old = sums[i]
                        sums[i] = g if old is None else self.recorder.quietly(old.add, g)
            self.left -= 1
            if self.left == 0:
                self.done()
            else:
                self.recorder.partial[id(self)] = self

        def fired(grad_inputs, grad_outputs):
            self.recorder.spared(f"gradients of {self.op}", arrive, grad_inputs, grad_outputs)
        return fired

    @staticmethod
    def from_outside(grad, within):
        """What the program gave; None: nothing."""
        if within is None:
            return grad
        return None if torch.equal(grad, within) else grad - within

    def done(self):
        self.recorder.partial.pop(id(self), None)
        self.recorder.waiting.discard(self)
        arrived, given, self.left = self.arrived, self.given, 0
        self.arrived, self.given = [None] * len(arrived), [None] * len(given)
        self.within = [None] * len(arrived)
        self.recorder.backward(self, arrived, given)


def edge_of(t):
    """Where the gradient of a tensor goes: to a node and its input, or to the leaf itself."""
    return ("leaf", id(t)) if t.grad_fn is None else (id(t.grad_fn), t.output_nr)


LIMIT = 20000   # nodes of one op call: an LSTM on a CPU has some twenty a time step


def find_nodes(edges, outs):
    """The nodes of an op call that hand something to its inputs or to others of its outputs, or get something
    from its outputs: [node, [(output of the node, number)], [(input of the node, number)], [the same, of outputs]].
    edges: of the inputs, before the call: edge -> their numbers; outs: (number, tensor)."""
    stop = {e[0] for e in edges if e[0] != "leaf"}
    # seen keeps the nodes: what stands for one in Python may go, and another get its id. Nodes stand in the
    # order of what they are given, so that of a tensor given twice the first gradient is that of the first.
    uses, found, seen, queue, made = {}, {}, {}, collections.deque(), {}
    for i, y in outs:
        node = y.grad_fn
        if node is None or id(node) in stop:
            continue
        made.setdefault((id(node), y.output_nr), i)
        found.setdefault(id(node), [node, [], [], []])[1].append((y.output_nr, i))
        if id(node) not in seen:
            seen[id(node)] = node
            queue.append(node)
    while queue:
        node = queue.popleft()
        # What a change of a view hands to its base is that of earlier calls, too.
        base = 1 if node.name() == "CopySlices" else 0
        for at, (to, nr) in list(enumerate(node.next_functions))[base:]:
            if to is None:
                continue
            edge = (id(to), nr)
            if edge not in edges and hasattr(to, "variable"):
                edge = ("leaf", id(to.variable))
            if edge in edges:
                which = edges[edge]
                n = uses.get(edge, 0)
                uses[edge] = n + 1
                entry = found.setdefault(id(node), [node, [], [], []])
                entry[2].append((at, which[min(n, len(which) - 1)]))
                continue
            if edge in made:
                found.setdefault(id(node), [node, [], [], []])[3].append((at, made[edge]))
            if id(to) not in seen and id(to) not in stop and not hasattr(to, "variable"):
                if len(seen) >= LIMIT:
                    return []
                seen[id(to)] = to
                queue.append(to)
    return list(found.values())


# --- the recorder ----------------------------------------------------------------------------

class Mode(TorchFunctionMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.recorder.function(self, func, args, kwargs or {})


@functools.lru_cache(None)
def sees_index():
    """Does a mode see x[0]? PyTorch 1.13 tells it only of indices that are tuples."""
    class See(TorchFunctionMode):
        seen = False

        def __torch_function__(self, func, types, args=(), kwargs=None):
            See.seen = See.seen or getattr(func, "__name__", "") == "__getitem__"
            return func(*args, **(kwargs or {}))
    x = torch.zeros(1)
    with See():
        x[0]
    return See.seen


@contextlib.contextmanager
def sequence_kept(kind):
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
def compiled_module():
    """The class of compiled modules, or None. Loading it computes some things, so that this is done
    before anything is recorded."""
    if not hasattr(torch, "compile"):
        return None
    with contextlib.suppress(Exception):   # a PyTorch without a compiler
        from torch._dynamo.eval_frame import OptimizedModule
        return OptimizedModule


def watch_compile(old):
    """torch.compile, whose functions are known to the recorder. Modules are by their class."""
    @functools.wraps(old)
    def make(model=None, **options):
        if model is None:
            return functools.partial(make, **options)
        made = old(model, **options)
        if isinstance(model, torch.nn.Module):
            return made

        @functools.wraps(made)
        def call(*args, **kwargs):
            if _now is None or not _now.mine():
                return made(*args, **kwargs)
            return _now.compiled(getattr(model, "__name__", "function"), made, args, kwargs)
        return call
    return make


if hasattr(torch, "compile"):
    torch.compile = watch_compile(torch.compile)


class Engine:
    """Autograd's, by which every backward pass goes, whoever asks for it: no mode for functions is active in it
    (behaviour torch-function-mode-backward)."""

    def __init__(self, engine_of, run):
        self.engine, self.run = engine_of, run

    def run_backward(self, *args, **kwargs):
        return self.run(self.engine.run_backward, args, kwargs)

    def __getattr__(self, name):
        return getattr(self.engine, name)


# Of torch.optim: what one step does with a list of parameters, by the name of its module.
OPTIMIZERS = "sgd adam adamw adagrad adadelta adamax asgd nadam radam rmsprop rprop".split()
# What they change, beside the first list.
STATES = ("exp_avgs exp_avg_sqs max_exp_avg_sqs momentum_buffer_list state_sums square_avgs "
          "acc_deltas exp_infs grad_avgs").split()
COLLECTIVES = """all_reduce broadcast reduce all_gather all_gather_into_tensor _all_gather_base gather
    scatter reduce_scatter reduce_scatter_tensor _reduce_scatter_base all_to_all all_to_all_single
    send recv""".split()
# What PyTorch 2.15 calls two of them, which it still has under the old name, too.
RENAMED = {"all_gather_single": "all_gather_into_tensor", "reduce_scatter_single": "reduce_scatter_tensor"}


# Of torch.ops._c10d_functional, on which torch.distributed._functional_collectives and DTensor stand: what each is
# given as one of the collectives above, by its arguments; True: into a tensor, which it makes.
FUNCTIONAL = {
    "all_reduce": (False, lambda op, _: [("kw", "op", reduction(op))]),
    "broadcast": (False, lambda src, _: [("kw", "src", src)]),
    "all_gather_into_tensor": (True, lambda *_: []),
    "reduce_scatter_tensor": (True, lambda op, *_: [("kw", "op", reduction(op))]),
    "all_to_all_single": (True, lambda out, given, _: [
        ("kw", p, n) for name, sizes in (("output_split_sizes", out), ("input_split_sizes", given))
        for p, n in leaves(list(sizes), name)])}


def reduction(name):
    return getattr(torch.distributed.ReduceOp, name.upper())


# Modules that a framework puts around a model, and what each calls it.
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod",
            "FullyShardedDataParallel": "_fsdp_wrapped_module", "CheckpointWrapper": "_checkpoint_wrapped_module"}
PARTS = ("input", "output", "forward", "backward")   # what of op calls: those of one pass, or one side


class Recorder:
    def __init__(self, folder, level=2, stack=True, parts=PARTS, choice=None, rank=None, overflow=None,
                 model=None, detail=None, layout=None, online=None, by=None):
        self.folder, self.level, self.want_stack = folder, level, stack
        self.parts, self.floats = parts, False   # floats: no other tensors, and no scalars
        self.choice = choice or Choice()
        self.detail = {2: FULL, 1: STATISTICS, 0: DESCRIPTION}[level] if detail is None else detail
        self.overflow, self.overflows = overflow, 0
        self.by = by   # the call of another recorder's that began it, for what asks to record again
        self.rank, self.layout, self.online = rank, LAYOUTS[layout], online
        self.stream = None
        self.mode, self.on = Mode(self), False
        self.depth, self.in_backward = 0, 0
        self.lock = threading.RLock()
        self.thread = threading.get_ident()
        self.number, self.step_number = 0, 0
        self.seen = 0   # op calls and collectives, also of those that are not chosen
        self.calls, self.partial, self.grads = {}, {}, {}
        self.works = {}   # id -> a collective that is under way, and what is recorded of it
        self.waiting = weakref.WeakSet()   # backward calls that may still come
        self.modules, self.names, self.roots = [], {}, set()
        self.unready = set()   # models with parameters that their first call makes
        self.auto, self.pending, self.first_root, self.late = True, False, None, False
        self.frames, self.stacks = {}, {}
        self.patched = []
        self.wrote = self.told = False
        self.leaves = set()   # parameters of op calls whose backward call is recorded
        self.joined = {}   # of DistributedDataParallel, those whose next backward pass ends in a reduction
        self.own = {}      # of their parameters the rank's own gradients
        self.parted, self.moved = 0, False   # in an op call of DTensors; it communicated
        if model is not None:
            self.learn(model)

    # -- on and off --

    def open(self):
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

    def start(self):
        if self.on:
            return
        if self.stream is None:
            self.open()
        self.on = True
        self.thread = threading.get_ident()
        self.patch_all()
        self.mode.__enter__()

    def stop(self):
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

    def close(self):
        self.stop()
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def patch(self, space, name, make):
        old = getattr(space, name, None)
        if old is None or not callable(old):
            return
        self.put(space, name, functools.wraps(old)(make(old)))

    def put(self, space, name, new):
        self.patched.append((space, name, getattr(space, name), name in vars(space)))
        setattr(space, name, new)

    def patch_all(self):
        op_names()   # of the functions as they are
        with contextlib.suppress(Exception):   # it compiles the optimizers' functions, which it must not find patched
            importlib.import_module("torch.distributed.optim")
        autograd = torch.autograd.Variable
        self.put(autograd, "_execution_engine", Engine(autograd._execution_engine, self.run_backward))
        if not sees_index():
            with sequence_kept(torch.Tensor):
                for name in ("__getitem__", "__setitem__"):
                    self.patch(torch.Tensor, name, lambda old, n=name: self.index(n, old))
        for name in OPTIMIZERS:
            module = sys.modules.get(f"torch.optim.{name}")
            if module is not None:
                self.patch(module, name, lambda old, n=name: self.optimizer(n, old))
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
                self.patch(torch.distributed, name, lambda old, n=name: self.collective(n, old))
            self.patch(torch._C._distributed_c10d.Work, "wait", self.wait)
            c10d = torch.distributed.distributed_c10d
            for name in ("isend", "irecv"):   # one function in both places, as P2POp asks for
                self.patch(c10d, name, lambda old, n=name: self.one_to_one(n, old))
                self.patch(torch.distributed, name, lambda old, n=name: getattr(c10d, n))
            for space in ("_c10d_functional", "_c10d_functional_autograd"):
                for name in FUNCTIONAL:
                    self.patch(getattr(torch.ops, space), name, lambda old, n=name: self.functional(n, old))
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

    def watch_custom(self):
        kind = torch.autograd.Function
        old, own = inspect.getattr_static(kind, "apply"), "apply" in vars(kind)

        def apply(cls, *args, **kwargs):
            run = old.__get__(None, cls)
            return self.custom(cls, run, args, kwargs) if self.mine() else run(*args, **kwargs)

        def undo():
            if own:
                kind.apply = old
            else:
                del kind.apply
        kind.apply, self.unwatch_custom = classmethod(apply), undo

    def watch_modules(self):
        kind = torch.nn.Module
        old = kind.__call__

        @functools.wraps(old)
        def call(m, *args, **kwargs):
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

        def undo():
            kind.__call__ = old
        kind.__call__, self.unwatch_modules = call, undo

    def unpatch_all(self):
        with sequence_kept(torch.Tensor):
            for space, name, old, own in reversed(self.patched):
                setattr(space, name, old) if own else delattr(space, name)
        self.unwatch_modules()
        self.unwatch_custom()
        self.patched, self.modules = [], []

    def mine(self):
        """Recording, and not inside of something that is recorded as one call."""
        return self.on and self.depth == 0 and self.here()

    def here(self):
        """In the thread that started, or in one of autograd's own, which compute what is on other devices: it
        sets the mode there, too."""
        return threading.get_ident() == self.thread or \
            (self.in_backward > 0 and isinstance(threading.current_thread(), threading._DummyThread))

    @contextlib.contextmanager
    def quiet(self):
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def spared(self, what, fn, *args, **kwargs):
        """Whatever is met in what is to be recorded, the program goes on: of the first of a kind it is said."""
        try:
            with apart():
                return fn(*args, **kwargs)
        except OverflowStop:
            raise
        except Exception as e:   # pylint: disable=broad-except
            lacking(f"{what}, where {type(e).__name__}: " + str(e).partition("\n")[0][:200])
            return None

    def quietly(self, fn, *args, **kwargs):
        with self.quiet():
            return fn(*args, **kwargs)

    # -- modules, steps --

    def learn(self, model):
        hidden = set()
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

    def module_op(self, m):
        return f"Module.{self.names[m]}.{type(m).__name__}"

    def enter(self, m):
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

    def next_step(self, number=None):
        self.flush_partial()
        self.step_number = self.step_number + 1 if number is None else number
        self.pending = False
        self.calls.clear()
        self.stream.step(self.step_number)

    def count(self, op):
        n = self.calls.get(op, 0)
        self.calls[op] = n + 1
        return n

    def scope(self):
        return self.modules[-1][1] if self.modules else None

    def classes(self):
        """Of torch.nn: the class that an op call does the work of."""
        return [type(m).__name__ for m, _ in self.modules[-1:]
                if type(m).__module__.startswith("torch.nn")]

    # -- stacks --

    def frame_text(self, code, line):
        key = (code, line)
        text = self.frames.get(key)
        if text is None:
            source = linecache.getline(code.co_filename, line).strip()
            text = self.frames[key] = \
                f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"
        return text

    def stack(self):
        """The id of the call stack, and whether a checkpoint's second run is in it."""
        if not self.want_stack and self.in_backward == 0:
            return 0, False
        f, path = sys._getframe(3), []
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

    def place(self):
        stack, checkpoint = self.stack()
        return {"scope": self.scope(), "stack": stack,
                "recompute": checkpoint and self.in_backward > 0}

    # -- op calls --

    def emit(self, op, number, direction, values, detail=None, **place):
        self.spared(op, self._emit, op, number, direction, values, detail, **place)

    def _emit(self, op, number, direction, values, detail, **place):
        self.wrote = True
        if self.floats:
            values = [v for v in values if not isinstance(v[2], (bool, int, float)) and not (
                isinstance(v[2], torch.Tensor) and not (v[2].is_floating_point() or v[2].is_complex()))]
        with self.lock:
            self.stream.put(op, number, direction, values, self.detail if detail is None else detail, **place)

    def function(self, mode, func, args, kwargs):
        """What the mode sees; it does not see what runs inside."""
        if not self.mine():
            return func(*args, **kwargs)
        name = name_of(func)
        if name is None or (registered(func) and not tensors(v for _, _, v in arguments(args, kwargs))):
            return func(*args, **kwargs)
        # FSDP2 views what its gathering has not filled yet: memory that nobody wrote. (0 is this frame, 1 the mode's)
        if name == "Tensor.view" and sys._getframe(2).f_code.co_filename.endswith("_fsdp_collectives.py"):
            return func(*args, **kwargs)
        with self.quiet():
            return self.op(name, func, args, kwargs)

    def run_backward(self, run, args, kwargs):
        """A backward pass. What it computes by Python, such as a checkpoint's second run, is recorded: the mode, which
        is off in what it sees itself, is on."""
        if not self.on or not self.here():
            return run(*args, **kwargs)
        if self.in_backward == 0:
            for m in self.joined:   # what micro-batches before this one left
                self.joined[m] = {p: p.grad.clone() for p in m.parameters() if p.grad is not None}
        off = self.depth == 0 and self.mode not in torch.overrides._get_current_function_mode_stack()
        self.in_backward += 1
        try:
            with self.mode if off else contextlib.nullcontext():
                return run(*args, **kwargs)
        finally:
            self.in_backward -= 1
            if self.in_backward == 0:
                self.flush_partial()
                self.flush_joined()
                self.choice.backward_done()

    def op(self, name, func, args, kwargs):
        n, chosen = self.next_call(name)
        if not chosen:
            return func(*args, **kwargs)
        one = self.spared(name, self.begin, name, n, func, args, kwargs)
        y = self.parts_of(func, args, kwargs, one["place"]) if one and one["parted"] else func(*args, **kwargs)
        if one:
            self.spared(name, self.end, name, n, args, kwargs, y, chosen, **one)
        return y

    def begin(self, name, n, func, args, kwargs):
        """What there is to know of an op call before it runs."""
        values = arguments(args, kwargs)
        place = self.place()
        ins = tensors(v for _, _, v in values)
        edges, held = self.edges(ins)
        gives = overwritten(func, args, kwargs) if registered(func) else []
        changed = changes(name, kwargs) or gives
        parted = any(map(is_dtensor, ins))
        values = copies(values) if parted and changed else values if parted else self.hold(values, changed)
        if not parted:
            self.before(name, n, "forward", values, place)
        return {"values": values, "place": place, "edges": edges, "held": held, "gives": gives, "parted": parted,
                "nin": len(ins)}

    def end(self, name, n, args, kwargs, y, chosen, values, place, edges, held, gives, parted, nin):
        if parted:
            self.before(name, n, "forward", values, place)
        outs = results(y)
        if name.endswith(".__setitem__") and args:
            outs = [("0", args[0])]
        elif y is None and args and name.endswith("_") and "foreach_" in name:
            outs = results(args[0] if "._foreach_" in name else args[:2])   # of GradScaler: found_inf, too
        elif not tensors(v for _, v in outs) and kwargs.get("out") is not None:
            outs = results(kwargs["out"])
        elif y is None and gives:
            outs = gives
        self.after(name, n, "forward", values, [("out", p, v) for p, v in outs], place)
        if edges and chosen == BOTH:
            self.watch(name, n, edges, nin, [v for _, v in outs], place)
        del held

    def parts_of(self, func, args, kwargs, place):
        """An op call of DTensors is one of the parts that this rank has, but where it communicates: then they do not
        show what it made, and are left out."""
        self.moved = getattr(func, "__name__", "") in ("view", "reshape", "expand", "unflatten")   # to whole sizes
        y = func(*args, **kwargs)
        if self.moved:
            place["detail"], self.moved = DESCRIPTION, False
        return y

    def dispatch(self, old):
        """What DTensor does for one operator of ATen is nobody's business, but what it communicates."""
        def call(*args, **kwargs):
            if not (self.on and self.here()):
                return old(*args, **kwargs)
            self.parted += 1
            try:
                return self.quietly(old, *args, **kwargs)
            finally:
                self.parted -= 1
        return call

    def redistribute(self, old):
        def call(*args, **kwargs):
            self.moved = True
            return old(*args, **kwargs)
        return call

    def next_call(self, name):
        """Which call of this operator it is, and what of it is chosen."""
        number, n = self.number, self.count(name)
        self.number += 1
        self.seen += 1
        return n, self.choice.forward(name, f"{name}.{n}.forward", number, self.classes())

    def custom(self, kind, run, args, kwargs):
        """A function of torch.autograd.Function whose forward calls nothing that is seen, such as one of a
        C++ extension, is one op call. That is known behind it: its inputs are as it leaves them."""
        values = arguments(args, kwargs)
        ins = tensors(v for _, _, v in values)
        edges, held = self.edges(ins)
        seen = self.seen
        y = run(*args, **kwargs)
        if self.seen == seen and ins and not (kind.__module__ or "").startswith("torch."):
            with self.quiet():
                name = f"Function.{kind.__name__}"
                self.spared(name, self.one_call, name, values, ins, edges, results(y))
        del held
        return y

    def one_call(self, name, values, ins, edges, outs):
        if not tensors(v for _, v in outs):
            return
        n, chosen = self.next_call(name)
        if chosen:
            place = self.place()
            self.before(name, n, "forward", values, place)
            self.after(name, n, "forward", values, [("out", p, v) for p, v in outs], place)
            if edges and chosen == BOTH:
                self.watch(name, n, edges, len(ins), [v for _, v in outs], place)

    # Where only overflows are wanted, inputs wait until the outputs are known.

    def hold(self, values, changed):
        return values if self.overflow is None or not changed else copies(values)

    def before(self, name, n, direction, values, place):
        if self.overflow is None and self.wants(direction, "input") and self.level > 0:
            self.emit(name, n, direction, values, **place)

    def after(self, name, n, direction, ins, outs, place):
        if self.overflow is not None:
            if not any(self.spared(name, overflowed, v) for _, _, v in outs if isinstance(v, torch.Tensor)):
                return
            self.emit(name, n, direction, ins + outs, **place)
            self.count_overflow(f"{name}.{n}.{direction}")
        elif self.level == 0:
            self.emit(name, n, direction, [], **place)
        elif self.wants(direction, "output"):
            self.emit(name, n, direction, outs, **place)

    def wants(self, direction, side):
        return side in self.parts or direction in self.parts

    def count_overflow(self, key):
        self.overflows += 1
        warnings.warn(f"accrecord: {key} overflows ({self.overflows})")
        if 0 < self.overflow <= self.overflows:
            self.stream.sync()
            raise OverflowStop(f"{key}: overflow number {self.overflows}; the recording is in "
                               f"{self.folder}")

    # -- backward --

    @staticmethod
    def edges(ins):
        """edge -> which tensors of the call have it; and what keeps the edges' names valid."""
        edges, held = {}, []
        if torch.is_grad_enabled():
            for i, t in enumerate(ins):
                if t.requires_grad:
                    held.append(t.grad_fn)
                    edges.setdefault(edge_of(t), []).append(i)
        return edges, held

    def watch(self, name, n, edges, nin, outs, place):
        floats = [y for y in tensors(outs) if y.is_floating_point() or y.is_complex()]
        nodes = find_nodes(edges, [(i, y) for i, y in enumerate(floats) if y.requires_grad])
        if not any(ins for _, _, ins, _ in nodes):
            return
        back = Backward(self, name, n, place["scope"], place["stack"], place["recompute"],
                        len(floats), nin)
        back.nodes = len(nodes)
        self.waiting.add(back)
        if not self.choice.all:
            self.leaves.update(i for kind, i in edges if kind == "leaf")
        for node, *places in nodes:
            node.register_hook(back.hook(*places))

    def backward(self, b, arrived, given):
        if not self.on or self.stream is None:
            return
        if b.step != self.step_number:
            if not self.late:
                self.late = True
                warnings.warn("accrecord: a backward call whose forward call was before step() is "
                              "not recorded")
            return
        scope = b.scope and b.scope.replace(".forward.", ".backward.")
        place = {"scope": scope, "stack": b.stack, "recompute": False,
                 "stack_from": f"{b.op}.{b.number}.forward" if b.stack else None}
        if b.moved:
            place["detail"], b.moved = DESCRIPTION, False
        ins = [("in", str(i), g) for i, g in enumerate(arrived)]
        outs = [("out", str(i), g) for i, g in enumerate(given)]
        with self.quiet(), torch.no_grad():
            self.before(b.op, b.number, "backward", ins, place)
            self.after(b.op, b.number, "backward", ins, outs, place)

    def flush_partial(self):
        """Of op calls one of whose outputs nobody used, not all nodes ran. Behind them come the
        gradients of parameters, which they gave."""
        for b in list(self.partial.values()):
            b.done()
        grads, self.grads = self.grads, {}
        with self.quiet(), torch.no_grad():
            for op, name, grad in grads.values():
                n = self.count(f"{op}.parameters_grad.{name}")
                self.emit(op, n, "grad", [("grad", name, grad)], key=f"{op}.parameters_grad.{n}")

    def parameter_grad(self, leaf, op, name, grad):
        with self.quiet(), torch.no_grad():
            self.spared("gradients of parameters", self._parameter_grad, leaf, op, name, grad)

    def _parameter_grad(self, leaf, op, name, grad):
        """Where only some op calls are recorded, of the parameters that these have."""
        if self.joined:
            self.own[leaf] = self.own[leaf] + grad if leaf in self.own else grad
        if self.on and self.overflow is None and self.level > 0 and self.wants("backward", "output") and \
                (self.choice.all or leaf in self.leaves):
            grad = local(grad).detach().clone() if is_dtensor(grad) else grad
            # Of passes within a pass, as of second runs with use_reentrant, each gives a part.
            self.grads[leaf] = (op, name, self.grads[leaf][2] + grad if leaf in self.grads else grad)
            if self.in_backward == 0:
                self.flush_partial()

    # -- optimizers, collectives --

    def flush_joined(self):
        """The reduction of DistributedDataParallel, as it would be with one of each parameter: the mean of what the
        ranks have, which is the gradient of this backward pass and what was there before it."""
        own, self.own = self.own, {}
        for m, was in list(self.joined.items()):
            mine = [p for name, p in m.module.named_parameters()
                    if p.requires_grad and name not in m.parameters_to_ignore]
            if not self.on or not any(id(p) in own for p in mine):
                continue   # another model's backward pass
            del self.joined[m]
            if m._get_ddp_logging_data().get("comm_hook"):
                lacking("the reduction of DistributedDataParallel where a communication hook does it")
                continue
            with self.quiet(), torch.no_grad():
                for p in mine:
                    if p.grad is not None and not p.grad.is_sparse:
                        self.join(p, own.get(id(p)), was.get(p), m.process_group)

    def join(self, p, own, was, group):
        given = torch.zeros_like(p.grad) if own is None and was is None else \
            own if was is None else was if own is None else was + own
        n, chosen = self.next_call("Distributed.all_reduce")
        if chosen:
            place = self.place()
            values = [("in", "0", given), ("kw", "op", torch.distributed.ReduceOp.AVG), ("kw", "group", group)]
            self.before("Distributed.all_reduce", n, "forward", values, place)
            self.after("Distributed.all_reduce", n, "forward", values, [("out", "0", p.grad)], place)

    def optimizer(self, name, old):
        """A step of torch.optim for one group of parameters, as one call."""
        names = list(inspect.signature(old).parameters)

        def step(*args, **kwargs):
            if not self.mine():
                return old(*args, **kwargs)
            self.flush_partial()
            self.pending = True
            with self.quiet(), torch.no_grad():
                op = f"Functional.{name}"
                n = self.count(op)
                one = self.spared(op, self.begin_step, op, n, args, kwargs)
                y = old(*args, **kwargs)
                if one:
                    lists = dict(zip(names, args), **kwargs)
                    self.spared(op, self.end_step, op, n, args, lists, *one)
                return y
        return step

    def begin_step(self, op, n, args, kwargs):
        if not self.choice.forward(op, f"{op}.{n}.forward", self.number, []):
            return None
        place = self.place()
        values = self.hold(arguments(args, kwargs), True)
        parted = any(is_dtensor(v) for _, _, v in values)
        if parted:
            values = [(io, p, given(v)) for io, p, v in values]
        else:
            self.before(op, n, "forward", values, place)
        return values, place, parted

    def end_step(self, op, n, args, lists, values, place, parted):
        if parted:
            self.before(op, n, "forward", values, place)
        # What the arguments are afterwards, in their order.
        states = [lists[s] for s in STATES if lists.get(s) and all(isinstance(v, torch.Tensor) for v in lists[s])]
        outs = [v for one in [*args[:2], *states] for v in one]
        self.after(op, n, "forward", values, [("out", str(i), v) for i, v in enumerate(outs)], place)

    def index(self, name, old):
        def call(*args):
            if not self.mine():
                return old(*args)
            with self.quiet():
                return self.op(f"Tensor.{name}", old, args, {})
        return call

    def script(self, old):
        """What TorchScript does inside cannot be seen: it is one op call."""
        def call(this, *args, **kwargs):
            if not self.mine():
                return old(this, *args, **kwargs)
            with self.quiet():
                return self.op(f"Script.{this.name}", functools.partial(old, this), args, kwargs)
        return call

    def compiled(self, name, fn, args, kwargs):
        """A function of torch.compile is one op call, too; it runs as if nothing were recorded, for the
        compiler would look into the recorder, and see new hooks late (behaviour torch-compile-late-hooks)."""
        def plain(*args, **kwargs):
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

    def compiled_module(self, old):
        def call(this, *args, **kwargs):
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

    def collective(self, name, old):
        # What others put in its place, such as a timer, may take *args.
        own = getattr(torch.distributed.distributed_c10d, name, old)
        names = list(inspect.signature(own).parameters)
        last = names.index("async_op") if "async_op" in names else len(names)
        op = f"Distributed.{RENAMED.get(name, name)}"

        def call(*args, **kwargs):
            if not self.mine():
                return old(*args, **kwargs)
            self.seen += 1
            with self.quiet(), torch.no_grad():
                n = self.count(op)
                given = dict(zip(names, args), **kwargs)
                later = given.get("async_op") and self.level > 0
                one = self.spared(op, begin, args, kwargs, given, later)
                if one and not later:
                    self.before(op, n, "forward", one[0], one[2])
                y = old(*args, **kwargs)
                if one and not later:
                    self.after(op, n, "forward", *one)
                elif one and y is not None:
                    self.works[id(y)] = (y, op, n, *one, self.step_number)
                return y

        def begin(args, kwargs, given, later):
            place = self.place()
            # With async_op, too, what is recorded is what it gave.
            shown = {k: v for k, v in kwargs.items() if k != "async_op"}
            if "group" in names and not shown.get("group") and len(args) <= names.index("group"):
                shown["group"] = torch.distributed.group.WORLD
            # Tensors by their places, however they are given.
            for k in names[len(args):last]:
                if not isinstance(shown.get(k), torch.Tensor):
                    break
                args = (*args, shown.pop(k))
            values = arguments(args[:last], shown)
            outs = [("out", p, v) for k, a in given.items()
                    for p, v in leaves(a, str(names.index(k)) if k in names else k)
                    if isinstance(v, torch.Tensor)]
            return copies(values) if later else values, outs, place
        return call

    def functional(self, name, old):
        """One of torch.distributed._functional_collectives, which is waited for, as that of torch.distributed."""
        into, more = FUNCTIONAL[name]

        def call(x, *args):
            if not (self.on and self.here()) or (self.depth > 0 and self.parted == 0):
                return old(x, *args)
            self.seen += 1
            self.moved = self.moved or self.parted > 0
            y = self.quietly(old, x, *args)
            with self.quiet(), torch.no_grad():
                self.spared(f"Distributed.{name}", put, x, args, y)
            return y

        def put(x, args, y):
            torch.ops._c10d_functional.wait_tensor(y.detach())
            op = f"Distributed.{name}"
            n, place = self.count(op), self.place()
            group = torch.distributed.distributed_c10d._resolve_process_group(args[-1])
            values = [("in", "0", torch.zeros_like(y)), ("in", "1", x)] if into else [("in", "0", x)]
            values += more(*args) + [("kw", "group", group)]
            self.before(op, n, "forward", values, place)
            self.after(op, n, "forward", values, [("out", "0", y)], place)
        return call

    def one_to_one(self, name, old):
        """isend is a send; irecv is a recv when it is waited for."""
        def call(tensor, *args, **kwargs):
            if not self.mine():
                return old(tensor, *args, **kwargs)
            self.seen += 1
            with self.quiet(), torch.no_grad():
                op = f"Distributed.{name[1:]}"
                n, place = self.count(op), self.place()
                shown = {k: v for k, v in kwargs.items() if v is not None}
                for k, rank in (("dst", "group_dst"), ("src", "group_src")):   # those of P2POp
                    if rank in shown:
                        shown[k] = torch.distributed.get_global_rank(
                            shown.get("group") or torch.distributed.group.WORLD, shown.pop(rank))
                values = arguments((tensor, *args), shown)
                if name == "isend":
                    self.before(op, n, "forward", values, place)
                    self.after(op, n, "forward", values, [("out", "0", tensor)], place)
                y = old(tensor, *args, **kwargs)
                if y is not None and name == "irecv" and self.level > 0:
                    self.works[id(y)] = (y, op, n, copies(values), [("out", "0", tensor)], place, self.step_number)
                elif y is not None:
                    self.works[id(y)] = (y, None, n, (), (), place, self.step_number)
                return y
        return call

    def wait(self, old):
        """A collective that was begun with async_op is recorded where its results are waited for, with its
        inputs as they were."""
        def call(work, *args, **kwargs):
            if not self.mine():
                return old(work, *args, **kwargs)
            if id(work) not in self.works:
                if sys._getframe(1).f_code.co_filename != call_of_distributed():   # of a barrier
                    lacking("whatever this wait() is for")
                return old(work, *args, **kwargs)
            with self.quiet(), torch.no_grad():
                y = old(work, *args, **kwargs)
                _, op, n, values, outs, place, step = self.works.pop(id(work))
                if op is None:   # it was recorded when it was sent
                    return y
                if step != self.step_number:   # it belongs to the step that goes on with its result
                    n = self.count(op)
                self.before(op, n, "forward", values, place)
                self.after(op, n, "forward", values, outs, place)
                return y
        return call

    def flush_works(self):
        """Of collectives that nobody waited for only the inputs are known."""
        works, self.works = self.works, {}
        with self.quiet(), torch.no_grad():
            for _, op, n, values, _, place, _ in works.values():
                if op is None:
                    continue
                lacking("the result of collectives with async_op whose wait() is not called")
                self.before(op, n, "forward", values, place)


def overflowed(t):
    """NaN, infinity, or the largest number of its dtype, which saturating devices give for it."""
    if is_nested(t) or not t.is_floating_point() or t.numel() == 0:
        return False
    most = t.detach().abs().max()
    return not bool(most < torch.finfo(t.dtype).max)


def call_of_distributed():
    """The file of torch.distributed's own functions, which wait themselves."""
    return torch.distributed.distributed_c10d.__file__


def distributed():
    return torch.distributed.is_available() and torch.distributed.is_initialized()


# --- the interface of maca_tools.accuracy ----------------------------------------------------

class Elsewhere:
    """Instead of a recorder, of a rank that is not to be recorded."""
    stream, folder, on, auto, number = None, "", False, False, 0

    def mine(self):
        return False

    def start(self):
        pass

    stop = close = start


_now = None     # the recorder that start_record or set_dump_path set up


def _replace(new):
    global _now
    if _now is not None:
        _now.close()
    elif new is not None:
        _end_with_process()
    _now = new


@atexit.register
def _end():
    _replace(None)


def _end_with_process():
    """Processes that multiprocessing forks end without atexit, and forget what their parent asked for: asked of each."""
    multiprocessing.util.Finalize(None, _end, exitpriority=0)


def _child():
    """After fork only the parent records: what a child would write, or delete, is the parent's."""
    global _now
    if _now is not None:
        _now.on, _now = False, None


os.register_at_fork(after_in_child=_child)


def _for_this_rank(process_group, ranks):
    if not distributed():
        return True
    ranks = [ranks] if isinstance(ranks, int) else ranks
    if process_group is not None:
        rank = torch.distributed.get_rank(process_group)
        return rank >= 0 and (not ranks or rank in ranks)
    return not ranks or torch.distributed.get_rank() in ranks


def start_record(enabled=True, output_dir="./record_dir", record_level=2, record_stack=True,
                 record_input=True, record_output=True, op_range=(), op_list=(), skip=0,
                 process_group=None, ranks=(), layout=None, keep=None, bench=None):
    """Record all op calls from now on. layout: None, our own; "msprobe". keep: judge each step when it
    ends, against the recording `bench` or by itself, and keep only what is bad of the first so many
    that are."""
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
    _replace(None)
    if not _for_this_rank(process_group, ranks):
        _replace(Elsewhere())
        return
    parts = [part for part, wanted in (("input", record_input), ("output", record_output)) if wanted]
    _replace(Recorder(output_dir, record_level, record_stack, parts, choice, layout=layout,
                      online=None if keep is None else (bench, int(keep))))
    if enabled:
        _now.start()


class record(contextlib.ContextDecorator):
    """The same for a block or a function."""

    def __init__(self, enabled=True, output_dir="./record_dir", **options):
        self.options = dict(options, enabled=enabled, output_dir=output_dir)

    def __enter__(self):
        start_record(**self.options)
        return self

    def __exit__(self, *_):
        _replace(None)
        return False


def record_switch(enabled):
    """Stop recording, or go on."""
    if _now is None:
        if enabled:
            raise RecordError("record_switch: start_record comes first")
        return
    _now.start() if enabled else _now.stop()


def step(number=None):
    """A training step ends, and that of this number begins, or goes on where it is the same. Without
    it, one ends behind an optimizer's step, where the next model is called."""
    if _now is None or _now.stream is None:
        return
    _now.auto = False
    if number is not None and number == _now.step_number:
        return
    with _now.quiet():
        _now.next_step(number)


def _program(name):
    here = os.path.join(HERE, "..", "..", "bin", name)
    return here if os.path.exists(here) else name


def gen_report(dir0, dir1, output_dir="./", names=None):
    """Compare the recording dir1, of what is tested, with dir0, of what is trusted: compare_result.csv and .xlsx with a
    row for each tensor (both sides, diff1, diff2, stack), .html, and report.txt with what accdiff says. names: None,
    ours; "maca", such as torch.nn.functional.conv1d.6.fwd. 0: the same, 1: different."""
    if names not in (None, "maca"):
        raise ValueError(f"names: '{names}' is neither None nor 'maca'")
    if _now is not None and os.path.realpath(_now.folder) in map(os.path.realpath, (dir0, dir1)):
        _replace(None)
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


def _compare(path, arguments):
    with open(path, "wb") as f:
        done = subprocess.run([_program("accdiff"), *arguments], stdout=f, stderr=subprocess.PIPE,
                              check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()


# --- the interface of ptdbg_ascend -----------------------------------------------------------

_dump_path = "./record_dir"
_model = None
_overflow = None
MODES = ("all", "list", "range", "stack", "api_list", "api_stack")


def seed_all(seed=1234, mode=False):
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


def set_dump_path(fpath=None, dump_tag="ptdbg_dump"):
    """Where set_dump_switch and register_hook record to."""
    global _dump_path
    if not fpath:
        raise ValueError("set_dump_path: a folder is wanted")
    _dump_path = os.path.join(fpath, dump_tag) if os.path.isdir(fpath) else fpath


def acc_cmp_dump(*_):
    """For register_hook: record everything that set_dump_switch asks for."""


def overflow_check(*_):
    """For register_hook: record only op calls that overflow."""


def register_hook(model, hook=acc_cmp_dump, overflow_nums=1, **_):
    """The model whose modules give op calls their scope; and what to record."""
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
        _replace(Recorder(_dump_path, overflow=_overflow, model=model, by="overflow_check"))
        _now.start()


def set_dump_switch(switch, mode="all", scope=(), api_list=(), filter_switch="OFF",
                    dump_mode=("all",), summary_only=False, summary_mode=None):
    """ON or OFF, and which op calls. dump_mode: what of them, a list of input, output, forward, backward;
    filter_switch ON: no integers, booleans and scalars."""
    if switch not in ("ON", "OFF"):
        raise ValueError("set_dump_switch: ON or OFF")
    if switch == "OFF":
        if _now is not None:
            _now.stop()
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
    if _now is None or _now.folder != _dump_path or _now.stream is None:
        _replace(Recorder(_dump_path, 0 if mode == "api_stack" else 2, True, model=_model, detail=detail,
                          by="set_dump_switch"))
    # Also of a later switch of the same recording.
    _now.choice, _now.floats = choice, filter_switch == "ON"
    _now.parts = PARTS if "all" in parts else parts
    _now.start()
