#!/usr/bin/env python3
"""Writes fold_stats.h: parts of random tensors and of their whole, by numpy. Needs python3-numpy."""
import os

import numpy as np

rng = np.random.default_rng(5)


def stat(x):
    x = np.asarray(x, dtype=np.float64)
    shape = ", ".join(str(n) for n in x.shape)
    v = [x.max(), x.min(), x.mean(), np.sqrt((x * x).sum())]
    text = ", ".join("NAN" if np.isnan(n) else repr(float(n)) for n in v)
    return f"{{{x.ndim}, {{{shape}}}, {x.size}, 15, {{{text}}}}}"


def case(kind, parts, whole):
    return (f"\t{{{kind}, {len(parts)}, {{{', '.join(stat(p) for p in parts)}}},\n"
            f"\t\t{stat(whole)}}},\n")


def cases():
    for n in (2, 3, 4):
        x = rng.normal(1, 2, (12, 24))
        yield case("SHARD0", np.split(x, n, 0), x)
        yield case("SHARD1", np.split(x, n, 1), x)
        yield case("SHARD0", np.split(x, [1] + list(range(2, n)), 0), x)   # parts that differ in size
        parts = rng.normal(0.5, 1, (n, 4, 6))
        yield case("SUM", list(parts), parts.sum(0))
        yield case("SAME", [x] * n, x)
    x = rng.normal(0, 1, (8, 6))   # pieces that are interleaved: 0 1 0 1
    yield case("SHARD0", [x[[0, 1, 4, 5]], x[[2, 3, 6, 7]]], x)
    x = rng.normal(0, 1, (4, 4))
    x[3, 3] = np.nan
    yield case("SHARD0", np.split(x, 2, 0), x)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fold_stats.h"), "w") as f:
    f.write("/* Made by make_fold.py with numpy. */\n")
    f.write("enum fold_kind { SHARD0, SHARD1, SUM, SAME };\n")
    f.write("static const struct {\n\tenum fold_kind kind;\n\tuint32_t n;\n"
            "\tstruct acc_fold_stat part[4], whole;\n} fold_case[] = {\n")
    f.write("".join(cases()))
    f.write("};\n")
