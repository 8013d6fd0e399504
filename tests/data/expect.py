"""Expected values of dumps, by numpy in float64: what the programs' results are held against.

Numbers are written with repr, which reads back to the same double. A tensor is named as
accdump-read names it: its file name without the extension.
"""
import os
import zlib

import numpy as np

from writers import array

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dumps/expect")


def leaves(e, key):
    """(name, tensor) of one event, in the order in which a dump lists them."""
    def walk(x, name):
        if hasattr(x, "numel"):
            yield name, x
        elif isinstance(x, (list, tuple)):
            for i, v in enumerate(x):
                yield from walk(v, f"{name}.{i}")
        elif isinstance(x, dict):
            for k, v in x.items():
                yield from walk(v, f"{name}.{k}")
    if e.kind == "grad":
        for p, v in e.output.items():
            yield f"{key}.{p}", v[0]
        return
    yield from walk(e.args, key + ".input")
    yield from walk(e.kwargs, key + ".kwargs")
    yield from walk(e.output, key + ".output")
    yield from walk(e.parameters, key + ".parameters")


def row(*cells):
    return "\t".join(c if isinstance(c, str) else repr(c) for c in cells) + "\n"


def dims(t):
    return ",".join(map(str, t.shape)) or "-"


def tensors(path, events):
    """One line a tensor: max, min, mean and norm over all elements, NaN and inf included
    (max and min ignore NaN); counts; CRC-32 of the bytes."""
    with open(path, "w") as f, np.errstate(all="ignore"):
        f.write(row("name", "dtype", "shape", "max", "min", "mean", "norm", "nan", "posinf",
                    "neginf", "zero", "crc32"))
        for e in events:
            for name, t in leaves(e, e.key()):
                if t.numel() == 0:
                    continue
                a = array(t).astype(np.float64).ravel()
                f.write(row(name, str(t.dtype)[6:], dims(t), float(np.fmax.reduce(a)),
                            float(np.fmin.reduce(a)), float(a.mean()),
                            float(np.sqrt((a * a).sum())), int(np.isnan(a).sum()),
                            int((a == np.inf).sum()), int((a == -np.inf).sum()),
                            int((a == 0).sum()), f"{zlib.crc32(array(t).tobytes()):08x}"))


def pairs(path, events):
    """One line a tensor of both sides, over the places where both are finite. d: device, b:
    bench. cosine d.b/(|d||b|); maxabs |d-b|; maxrel |d-b|/|b| where b != 0; rel_l2
    |d-b|/|b|; rmse."""
    bench = {n: t for e in events["bench"] for n, t in leaves(e, e.key())}
    with open(path, "w") as f, np.errstate(all="ignore"):
        f.write(row("name", "equal", "cosine", "maxabs", "maxrel", "rel_l2", "rmse"))
        for e in events["device"]:
            for name, t in leaves(e, e.key()):
                if name not in bench or t.numel() == 0:
                    continue
                d, b = (array(x).astype(np.float64).ravel() for x in (t, bench[name]))
                equal = bool((d == b).all())
                both = np.isfinite(d) & np.isfinite(b)
                d, b = d[both], b[both]
                nz = b != 0
                err = abs(d - b)
                f.write(row(name, int(equal),
                            float(d @ b / (np.sqrt(d @ d) * np.sqrt(b @ b))),
                            float(err.max(initial=0)),
                            float((err[nz] / abs(b[nz])).max(initial=0)),
                            float(np.sqrt(err @ err) / np.sqrt(b @ b)),
                            float(np.sqrt(err @ err / len(d))) if len(d) else 0.0))


def both(name, events):
    """The L1 records of a pair."""
    events = {k: [e for e in ev if e.kind == "api"] for k, ev in events.items()}
    for side, ev in events.items():
        tensors(f"{DIR}/{name}.{side}.tsv", ev)
    pairs(f"{DIR}/{name}.pairs.tsv", events)
