"""What numpy makes of the same numbers: prints GB/s of both sides' bytes,
by CPU time.

	numpy_bench.py blocks      all metrics, arrays of 65,536 elements (in the cache)
	numpy_bench.py whole       all metrics, arrays of 16 Mi elements
	numpy_bench.py files A B   the usual 14 values, of the .npy files in two folders
"""
import os
import sys
import time

import numpy as np

np.seterr(all="ignore")


def one(x):
    f = x[np.isfinite(x)]
    return (np.isnan(x).sum(), np.isposinf(x).sum(), np.isneginf(x).sum(), (x == 0).sum(),
            (np.abs(x) == np.finfo(x.dtype).max).sum(), f.min(), f.max(),
            f.sum(dtype=np.float64), np.square(f, dtype=np.float64).sum())


def ordinal(x):
    i = x.view(np.int32).astype(np.int64)
    return np.where(i < 0, -0x80000000 - i, i)


def two(x, y):
    kinds = (np.isfinite(x) & np.isfinite(y))
    same = (x.view(np.int32) == y.view(np.int32)).sum()
    bad = (~kinds & ~((np.isnan(x) & np.isnan(y)) | (x == y))).sum()
    ulp = np.abs(ordinal(x) - ordinal(y))[kinds]
    hist = np.bincount(np.frexp(ulp.astype(np.float64))[1], minlength=65)
    x = x[kinds].astype(np.float64)
    y = y[kinds].astype(np.float64)
    d = np.abs(x - y)
    q = np.abs(y)
    r = d / q
    e = d / (q + 0.5)
    return (same, bad, np.dot(x, y), np.dot(x, x), np.dot(y, y), d.sum(), np.dot(d, d), d.max(),
            d.argmax(), np.nansum(r), np.nanmax(r), np.nanargmax(r), (r < 0.001).sum(),
            (r < 0.005).sum(), (d > 1e-5 + 1.3e-6 * q).sum(), ulp.max(), hist, np.dot(e, e),
            e.max(), e.argmax())


def usual(x, y):
    d = np.abs(x - y)
    r = d / np.abs(y)
    nx, ny = np.linalg.norm(x), np.linalg.norm(y)
    return (x.min(), x.max(), x.mean(), nx, y.min(), y.max(), y.mean(), ny,
            np.dot(x, y) / (nx * ny), np.linalg.norm(x - y), d.max(), r.max(),
            (r < 0.001).mean(), (r < 0.005).mean())


def rate(n, seconds):
    rng = np.random.default_rng(1)
    y = rng.standard_normal(n, dtype=np.float32)
    x = y * (1 + np.float32(1e-3) * rng.standard_normal(n, dtype=np.float32))
    done, begin = 0, time.process_time()
    while True:
        one(x), one(y), two(x, y)
        done += x.nbytes + y.nbytes
        t = time.process_time() - begin
        if t > seconds:
            return done / t * 1e-9


def files(a, b):
    done, begin = 0, time.process_time()
    for name in sorted(os.listdir(a)):
        x, y = np.load(os.path.join(a, name)).ravel(), np.load(os.path.join(b, name)).ravel()
        usual(x, y)
        done += x.nbytes + y.nbytes
    return done / (time.process_time() - begin) * 1e-9


what = sys.argv[1]
print("%.4f" % (files(*sys.argv[2:]) if what == "files" else
                rate(65536, 0.5) if what == "blocks" else rate(1 << 24, 1)))
