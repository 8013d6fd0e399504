#!/usr/bin/env python3
"""Dumps for the recomputation of suspects, of four layers of linear and relu, forward and backward:

    tests/data/make_recompute.py tests/data/recompute

    bench    as numpy computes it in f64, every result rounded to f32
    clean    operands of products rounded to 10 bits, as TF32 does: some inputs of relu change sign
    faulty   the same, and the third relu loses half of an incoming gradient's first row
    wrong    a bench that loses it

and, of squares that f16 cannot hold, what is added to the difference of two of them, in f16 and in f32:

    narrow, wide

and dropout, with two seeds:

    drawn, redrawn
"""
import sys

import numpy as np
import torch

from recorder import Event
from writers import Msprobe

ROWS, WIDTH, LAYERS = 24, 48, 4


def f32(x):
    return np.float32(x)


def tf32(x):
    """Rounded to nearest, to 10 bits behind the leading one."""
    bits = np.float32(x).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xffffe000)).view(np.float32)


def product(a, b, rough):
    a, b = (tf32(a), tf32(b)) if rough else (a, b)
    return f32(a.astype(np.float64) @ b.astype(np.float64))


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def call(op, n, direction, args, output):
    return Event("api", "Functional." + op, n, direction, args=[tensor(x) for x in args],
                 kwargs={}, output=[tensor(x) for x in output])


def step(rough, loses):
    rng = np.random.default_rng(7)
    x = f32(rng.standard_normal((ROWS, WIDTH)))
    w = [f32(rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH / 2)) for _ in range(LAYERS)]
    g = f32(rng.standard_normal((ROWS, WIDTH)))
    events, taken, before = [], [], []
    for i in range(LAYERS):
        taken.append(x)
        h = product(x, w[i].T, rough)
        events.append(call("linear", i, "forward", [x, w[i]], [h]))
        before.append(h)
        x = np.maximum(h, f32(0))
        events.append(call("relu", i, "forward", [h], [x]))
    for i in reversed(range(LAYERS)):
        out = g * (before[i] > 0)
        if loses and i == 2:
            out[0] /= 2
        events.append(call("relu", i, "backward", [g], [out]))
        g = product(out, w[i], rough)
        events.append(call("linear", i, "backward", [out],
                           [g, product(out.T, taken[i], rough)]))
    return events


def squares(dtype):
    x = np.array([1, 2, 300, 4], dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        y = x * x
        z = y - y[::-1] + (y[2] - y[2])   # what no recorder sees
        return [call("square", 0, "forward", [x], [y]), call("relu", 0, "forward", [x], [x]),
                call("relu", 1, "forward", [z], [np.maximum(z, dtype(0))])]


def dropped(seed):
    x = f32(np.random.default_rng(7).standard_normal((ROWS, WIDTH)))
    y = np.where(np.random.default_rng(seed).random(x.shape) < 0.25, f32(0), x / f32(0.75))
    return [Event("api", "Functional.dropout", 0, "forward", args=[tensor(x), 0.25, True], kwargs={},
                  output=[tensor(y)]),
            call("relu", 0, "forward", [y], [np.maximum(y, f32(0))])]


def main():
    for name, seed in (("drawn", 1), ("redrawn", 2)):
        Msprobe(f"{sys.argv[1]}/{name}/step0/rank0", extra_info=False).write(dropped(seed))
    for name, dtype in (("narrow", np.float16), ("wide", np.float32)):
        Msprobe(f"{sys.argv[1]}/{name}/step0/rank0", extra_info=False).write(squares(dtype))
    for name, rough, loses in (("bench", False, False), ("clean", True, False),
                               ("faulty", True, True), ("wrong", False, True)):
        Msprobe(f"{sys.argv[1]}/{name}/step0/rank0", extra_info=False).write(step(rough, loses))


main()
