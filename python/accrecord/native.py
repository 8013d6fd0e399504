"""libaccrec by ctypes (accrec(3)): its structures, and where it is found."""
from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, \
    c_uint32, c_uint64, c_void_p

import torch

from .errors import RecordError

HERE = os.path.dirname(os.path.abspath(__file__))
FULL, STATISTICS, HASH, DESCRIPTION = range(4)
A_TENSOR, A_NONE, A_BOOL, A_INT, A_FLOAT, A_TEXT, A_INTS = range(7)


class Options(ctypes.Structure):
    """acc_rec_options: what is said of a recording; queue: bytes that may wait to be written."""

    _fields_ = [("rank", c_int64), ("program", c_char_p), ("framework", c_char_p),
                ("device", c_char_p), ("task", c_char_p), ("queue", c_size_t), ("drop", c_bool),
                ("deflate", c_bool)]


class Call(ctypes.Structure):
    """acc_rec_call_info: one op call, or a part of one."""

    _fields_ = [("op", c_char_p), ("call", c_int64), ("pass_", c_char_p), ("key", c_char_p),
                ("scope", c_char_p), ("stack", c_uint64), ("stack_from", c_char_p),
                ("recompute", c_bool)]


class Item(ctypes.Structure):
    """acc_rec_item: one value. shape: ndim numbers of elements; stride: ndim numbers, in elements, not bytes."""

    _fields_ = [("type", c_int), ("io", c_char_p), ("pos", c_char_p), ("cls", c_char_p),
                ("i", c_int64), ("f", c_double), ("text", c_char_p), ("dtype", c_char_p),
                ("ndim", c_uint32), ("shape", POINTER(c_int64)), ("stride", POINTER(c_int64)),
                ("data", c_void_p), ("detail", c_int), ("requires_grad", c_int),
                ("stays", c_bool)]


@functools.lru_cache(None)
def library() -> ctypes.CDLL:
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
def c(text: str) -> bytes:
    """The bytes of a text, also of one that a file's name gave."""
    return text.encode("utf-8", "surrogateescape")


def versions() -> str:
    """pytorch 2.15.0, torch_npu 2.9.0: what tools are known to do depends on it."""
    had = [("pytorch", torch), ("torch_npu", sys.modules.get("torch_npu"))]
    return ", ".join(f"{name} {m.__version__}" for name, m in had if hasattr(m, "__version__"))
