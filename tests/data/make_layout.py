#!/usr/bin/python3
"""Pairs of tensors that are the same but for their layout and a little noise, and what the layout
is: python3 tests/data/make_layout.py writes tests/data/layout/{a,b}/*.npy and expect.tsv again."""
import os

import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layout")
rng = np.random.default_rng(7)
expect = []


def save(name, a, b, layout):
    for side, t in ("a", a), ("b", b):
        os.makedirs(os.path.join(here, side), exist_ok=True)
        np.save(os.path.join(here, side, name + ".npy"), np.ascontiguousarray(t))
    expect.append((name, layout))


def rand(*shape):
    return rng.standard_normal(shape).astype("f4")


def noisy(t):
    return (t + 1e-3 * rng.standard_normal(t.shape)).astype("f4")


x, square, h = rand(6, 5, 4), rand(6, 6), rand(2, 3, 4, 2)
q, k, v = rand(4, 6), rand(4, 6), rand(4, 6)
qkv = np.concatenate([q, k, v])
heads = np.stack([t.reshape(2, 2, 6) for t in (q, k, v)], 1).reshape(12, 6)

# Axes in another order, split, joined.
w = rand(5, 7)
save("weight", w, noisy(w.T), "a.permute(1,0)")
save("square", square, noisy(square.T), "a.permute(1,0)")
save("batch_first", x, noisy(x.transpose(1, 0, 2)), "a.permute(1,0,2)")
save("flattened", x.reshape(30, 4), noisy(x.transpose(1, 0, 2)), "a.view(6,5,4).permute(1,0,2)")
save("joined", x, noisy(x.transpose(1, 0, 2)).reshape(30, 4), "a.permute(1,0,2).reshape")
save("heads", h, noisy(h.transpose(0, 2, 1, 3)).reshape(2, 12, 2), "a.permute(0,2,1,3).reshape")
save("squeezed", square[None], noisy(square).reshape(36), "a.reshape")
save("stored_by_columns", np.asfortranarray(w), noisy(w), "")
np.save(os.path.join(here, "a", "stored_by_columns.npy"), np.asfortranarray(w))
save("columns", w, noisy(w.T), "a.permute(1,0)")
np.save(os.path.join(here, "a", "columns.npy"), np.asfortranarray(w))
save("big_endian", w.astype(">f8"), noisy(w.T), "a.permute(1,0)")
tokens = rng.integers(0, 1000, (4, 9))
save("tokens", tokens, tokens.T.astype("i4"), "a.permute(1,0)")
mask = np.triu(np.ones((7, 7), bool))
save("mask", mask, mask.T, "a.permute(1,0)")
nan = square.copy()
nan[1, 2] = np.nan
save("nan", nan, nan.T, "a.permute(1,0)")
big = rand(60, 40)
save("large", big, noisy(big.T), "a.permute(1,0)")

# Parts of what is packed: in blocks, by heads, along the last axis, of a transposed weight.
save("q", q, qkv, "b.part(0,0,4)")
save("k", noisy(k), qkv, "b.part(0,4,4)")
save("packed", qkv, noisy(v), "a.part(0,8,4)")
save("by_heads", v, heads, "b.view(2,6,6).part(1,4,2).reshape")
save("last_axis", x[..., 1:2], x, "b.part(2,1,1)")
q8 = rand(8, 6)
save("grouped_query", k, np.concatenate([q8, k, v]), "b.part(0,8,4)")
save("conv1d", q, noisy(qkv).T, "b.part(1,0,4).permute(1,0)")
vocab = rand(11, 3)
save("padded", vocab, np.concatenate([vocab, np.zeros((5, 3), "f4")]), "b.part(0,0,11)")

# None: the same as it is, other content, nothing that tells.
sym = square + square.T
save("symmetric", sym, noisy(sym), "")
save("row_major", square, noisy(square), "")
save("other", rand(6, 6), rand(6, 6), "")
save("other_shape", rand(6, 4), rand(4, 6), "")
save("no_part", rand(4, 6), qkv, "")
save("constant", np.ones((3, 5), "f4"), np.full((5, 3), 2, "f4"), "")
save("almost", square, (square.T + 0.5 * rand(6, 6)).astype("f4"), "")
inf = square.T.copy()
inf[0, 0] = np.inf
save("inf", square, inf, "")

with open(os.path.join(here, "expect.tsv"), "w") as f:
    for row in sorted(expect):
        f.write("%s\t%s\n" % row)
