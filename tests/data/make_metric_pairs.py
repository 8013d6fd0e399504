"""Makes metric_pairs/, two dumps of corner cases in msprobe's layout, and what numpy makes of
each pair by the definitions of msprobe and of ptdbg_ascend (not by their code):
metric_msprobe.tsv, metric_ptdbg.tsv. Also metric_stats/, two dumps of statistics, metric_bias/,
two dumps of one backward call, and metric_inline.acc, a stream that brings its payload along.

    /usr/bin/python3 tests/data/make_metric_pairs.py    # Debian 12: python3-numpy, python3-msgpack
"""
import json
import math
import os
import shutil

import msgpack
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "metric_pairs")
f8 = np.float64
EPS = np.finfo(f8).eps
inf, nan = math.inf, math.nan
rng = np.random.default_rng(11)
b40 = rng.standard_normal(40)
n40 = rng.standard_normal(40)


def f4(*v):
    return np.array(v, "f4")


CASES = [
    ("noise", f8(b40 * (1 + 1e-6 * n40)).astype("f4"), b40.astype("f4")),
    ("noise_f16", (b40 * (1 + 1e-2 * n40)).astype("f2"), b40.astype("f2")),
    ("noise_f64", b40 * (1 + 1e-9 * n40), b40),
    ("f16_f32", b40.astype("f2"), b40.astype("f4")),
    ("near", (b40 + 3e-3 * n40).astype("f4"), b40.astype("f4")),
    ("unlike", n40.astype("f4"), b40.astype("f4")),
    ("int64", np.array([1, 2, 0, -4]), np.array([1, 3, 0, -5])),
    ("int64_zero", np.array([1, 2, 4]), np.array([0, 2, 4])),
    ("int8", np.array([1, 2, 0, -4], "i1"), np.array([1, 3, 0, -5], "i1")),
    ("flags", np.array([True, False, True]), np.array([True, True, True])),
    ("b_zero", f4(4, 1e-9, 0, 3), f4(0, 0, 0, 3)),
    ("b_zero_f16", np.array([4, 0, 3], "f2"), np.array([0, 0, 3], "f2")),
    ("b_zero_f64", np.array([4.0, 0, 3]), np.array([0.0, 0, 3])),
    ("a_all_zero", f4(0, 0, 0), f4(1, 2, 3)),
    ("b_all_zero", f4(1, 2, 3), f4(0, 0, 0)),
    ("both_zero", f4(0, 0), f4(0, -0.0)),
    ("nan_alike", f4(nan, 1, 2.5, 3), f4(nan, 1, 2, 3)),
    ("inf_sign", f4(inf, 1, 2, 3), f4(-inf, 1, 2, 3)),
    ("nan_one_side", f4(nan, 1, 2, 3), f4(1, 1, 2, 3)),
    ("inf_against_nan", f4(inf, 1), f4(nan, 1)),
    ("squeeze", f4(1, 2, 3).reshape(1, 3), f4(1, 2, 3.5)),
    ("shapes", f4(1, 2, 3, 4, 5, 6).reshape(2, 3), f4(1, 2, 3, 4, 5, 6).reshape(3, 2)),
    ("one_element", f4(1.5), f4(1)),
    ("scalar", np.array(1.5, "f4"), np.array(1, "f4")),
    ("scalar_nan", np.array(nan, "f4"), np.array(1, "f4")),
    ("scalar_zero", np.array(3, "f4"), np.array(0, "f4")),
    ("empty", np.zeros((0, 2), "f4"), np.zeros((0, 2), "f4")),
    # 1 / 1000 and 5 / 1000 are exactly the limits, in each of the two types.
    ("limits_f32", f4(1001, 1005, 1000), f4(1000, 1000, 1000)),
    ("limits_i64", np.array([1001, 1005, 1000]), np.array([1000, 1000, 1000])),
    ("edge_1e3", np.array([1.001, 1.005, 0.999], "f4"), f4(1, 1, 1)),
]


def number(v):
    """as a decimal of 12 places, read back"""
    return repr(float("%.12f" % v)) if math.isfinite(v) else "Nan" if math.isnan(v) else repr(v)


def msprobe(n, b):
    n, b = np.squeeze(n), np.squeeze(b)
    if n.size == 0:
        return ["unsupported"] * 6
    if n.shape != b.shape:
        return ["shape unmatched"] * 6
    n, b = n.copy(), b.copy()
    if n.shape:
        n8, b8 = n.astype(f8), b.astype(f8)
        if (np.isinf(n8) != np.isinf(b8)).any() or (np.isnan(n8) != np.isnan(b8)).any():
            return ["N/A"] * 6
        n[~np.isfinite(n8)] = 0
        b[~np.isfinite(b8)] = 0
    t = np.result_type(n.dtype, b.dtype, np.float32)
    nt, bt = np.atleast_1d(n.astype(t)), np.atleast_1d(b.astype(t))
    zero = bt == 0
    nt[zero] += np.finfo(t).eps
    bt[zero] += np.finfo(t).eps
    r = np.abs((nt - bt) / bt)
    n8, b8 = n.reshape(-1).astype(f8), b.reshape(-1).astype(f8)
    d = np.abs(n8 - b8).max()
    if not n.shape:
        return ["unsupported", "unsupported", number(d), number(r.max())] + ["unsupported"] * 2
    na, nb = math.sqrt(n8.dot(n8)), math.sqrt(b8.dot(b8))
    if na <= EPS and nb <= EPS:
        cos = "1.0"
    elif na <= EPS or nb <= EPS:
        cos = "Nan"
    else:
        c = float("%.12f" % (n8.dot(b8) / (na * nb)))
        cos = repr(round(c, 6) if c > 0.9999 else c)
    return [cos, repr(float(np.linalg.norm(n8 - b8))), number(d), number(r.max()),
            number((r < 0.001).sum() / r.size), number((r < 0.005).sum() / r.size)]


def ptdbg(n, b):
    def text(v):
        return "%.12f" % v
    n, b = n.copy(), b.copy()
    if n.size == 0:
        return ["unsupported", "0", "0", "0", "0"]
    if n.shape != b.shape:
        return ["shape unmatched"] * 5
    own = b.dtype.kind == "f"
    nr, br = (n, b) if own else (n.astype(f8), b.astype(f8))
    zero = np.array(br == 0)
    nr[zero] += np.finfo(br.dtype).eps
    br[zero] += np.finfo(br.dtype).eps
    r = np.abs((nr - br) / br)
    rel = "Nan" if np.isnan(r).any() else text(r.max())
    if not n.shape:
        if n.dtype == bool:
            n, b = n.astype(f8), b.astype(f8)
        return ["unsupported", text(np.abs(n - b)), rel, "Nan", "Nan"]
    if (np.isinf(n) != np.isinf(b)).any() or (np.isnan(n) != np.isnan(b)).any():
        return ["N/A"] * 5
    n[~np.isfinite(n)] = 0
    b[~np.isfinite(b)] = 0
    n8, b8 = n.reshape(-1).astype(f8), b.reshape(-1).astype(f8)
    na, nb = math.sqrt(n8.dot(n8)), math.sqrt(b8.dot(b8))
    if len(n8) == 1:
        cos = "unsupported"
    elif na <= EPS and nb <= EPS:
        cos = "1.0"
    elif na <= EPS or nb <= EPS:
        cos = "Nan"
    else:
        c = n8.dot(b8) / (na * nb)
        cos = "1.0" if float(text(c)) > 0.99999 else text(c)
    return [cos, text(np.abs(n8 - b8).max()), rel, text((r < 0.001).sum() / r.size),
            text((r < 0.005).sum() / r.size)]


def accuracy(cos, m, none):
    if cos == "shape unmatched":
        return "Unmatched"
    if cos == "N/A":
        return "No"
    try:
        c, m = float(cos), float(m)
    except ValueError:
        return none
    if math.isnan(c) or math.isnan(m):
        return none
    return "No" if (c < 0.99 and m > 0.001) or c < 0.9 or m > 1 else "Yes"


np.seterr(all="ignore")
shutil.rmtree(root, ignore_errors=True)
for side in (1, 2):
    folder = os.path.join(root, ("device", "bench")[side - 1])
    os.makedirs(os.path.join(folder, "dump_tensor_data"))
    data = {}
    for case in CASES:
        a, key = case[side], f"Functional.{case[0]}.0.forward"
        name = key + ".output.0.npy"
        np.save(os.path.join(folder, "dump_tensor_data", name), a)
        data[key] = {"input_args": [], "input_kwargs": {}, "output": [
            {"type": "mindspore.Tensor", "dtype": str(a.dtype).capitalize(),
             "shape": list(a.shape), "data_name": name}]}
    with open(os.path.join(folder, "dump.json"), "w") as f:
        json.dump({"task": "tensor", "level": "L1", "framework": "mindspore",
                   "dump_data_dir": None, "data": data}, f)
with open(os.path.join(here, "metric_msprobe.tsv"), "w") as m, \
        open(os.path.join(here, "metric_ptdbg.tsv"), "w") as p:
    for name, n, b in CASES:
        row = f"Functional.{name}.0.forward.output.0"
        v = msprobe(n, b)
        m.write("\t".join([row] + v + [accuracy(v[0], v[2], "None")]) + "\n")
        v = ptdbg(n, b)
        p.write("\t".join([row] + v + [accuracy(v[0], v[1], "Nan")]) + "\n")

# Statistics: two dumps of the statistics task, and what a recorder would have written of the
# tensor "noise" above (mean and norm in the tensor's dtype).
noise = CASES[0][1]
own = [float(noise.max()), float(noise.min()), float(f4(noise.astype(f8).mean())[0]),
       float(f4(np.sqrt((noise.astype(f8) ** 2).sum()))[0])]
STATS = [
    ("last_digit", [1.0, -1.0, 0.005691702011972666, 2.0], [1.0, -1.0, 0.00569171691313386, 2.5]),
    ("nan", [nan, nan, nan, inf], [nan, 1.0, nan, inf]),
    ("inf", [inf, 1.0, 1.0, inf], [2.0, -inf, inf, -inf]),
    ("zero", [1.0, -0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]),
    ("tiny", [1e-310, 5e-324, 1.0, 0.0], [2e-310, 5e-324, 1.0, 0.0]),
    ("ints", [7, -3, None, None], [8, -3, None, None]),
    ("null", [None] * 4, [None] * 4),
    ("null_one_side", [1.0, None, 1.0, 1.0], [None, 1.0, 1.5, 1.0]),
    ("bool", [True, False, None, None], [True, True, None, None]),
    ("noise", own, own),
]
KEYS = ("Max", "Min", "Mean", "Norm")
for side in (1, 2):
    data = {}
    for case in STATS:
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [40]}
        leaf.update(zip(KEYS, case[side]))
        args = [{"type": "float", "value": float(side)}, {"type": "int", "value": 3}]
        data[f"Functional.{case[0]}.0.forward"] = {
            "input_args": args if case[0] == "nan" else [], "input_kwargs": {}, "output": [leaf]}
    folder = os.path.join(here, "metric_stats", ("device", "bench")[side - 1])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "dump.json"), "w") as f:
        json.dump({"task": "statistics", "level": "L1", "framework": "pytorch",
                   "dump_data_dir": None, "data": data}, f)

# A backward call: the gradient of a bias that has no effect, rounding noise on both sides, and
# the gradient that came in: 0.03 of its rms is what counts as an error.
BIAS = [np.arange(-10, 10, dtype="f4").reshape(5, 4)] * 2, \
       [f4(3e-8, -1e-8, 2e-8, 1e-8), f4(-2e-8, 1e-8, 1e-8, 3e-8)]
for side in (0, 1):
    folder = os.path.join(here, "metric_bias", ("device", "bench")[side])
    os.makedirs(os.path.join(folder, "dump_tensor_data"), exist_ok=True)
    op = {}
    for io, a in zip(("input", "output"), (BIAS[0][side], BIAS[1][side])):
        name = f"Functional.bias.0.backward.{io}.0.npy"
        np.save(os.path.join(folder, "dump_tensor_data", name), a)
        op[io] = [{"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(a.shape),
                   "data_name": name}]
    with open(os.path.join(folder, "dump.json"), "w") as f:
        json.dump({"task": "tensor", "level": "L1", "framework": "mindspore",
                   "dump_data_dir": None, "data": {"Functional.bias.0.backward": op}}, f)

# A stream of pairs with payload: two halves each, then statistics, and a tensor of which
# nothing comes.
SIDES = (CASES[0][1], CASES[0][2])
pair = {"name": "noise", "a.kind": "tensor", "b.kind": "tensor"}
stat = {"name": "stat", "a.kind": "tensor", "b.kind": "tensor"}
none = {"name": "none", "a.kind": "tensor", "b.kind": "tensor"}
for k, s in enumerate("ab"):
    pair.update({s + ".src": "0000000" + s, s + ".seq": 0, s + ".dtype": "f32", s + ".shape": [40]})
    none.update({s + ".src": "0000000" + s, s + ".seq": 2, s + ".dtype": "f32", s + ".shape": [2]})
    stat.update({s + ".src": "0000000" + s, s + ".seq": 1, s + ".dtype": "f32", s + ".shape": [2],
                 s + ".stat.max": 1.0 + k})
records = [["source", {"id": "0000000" + s, "root": "", "host": "elsewhere"}] for s in "ab"]
records += [["pair", pair], ["pair", stat], ["pair", none]]
for k, s in enumerate("ab"):
    raw = SIDES[k].tobytes()
    for off in (0, 100):
        records.append(["data", {"src": "0000000" + s, "seq": 0, "off": off, "side": s,
                                 "data": raw[off:off + 100]}])


def stream(name, recs):
    with open(os.path.join(here, name), "wb") as f:
        for r in [["acc", {"v": 1, "minor": 0, "log": ["make_metric_pairs.py"]}]] + recs + \
                [["end", {"n": len(recs), "st": 0}]]:
            f.write(msgpack.packb(r, use_bin_type=True))


stream("metric_inline.acc", records)
stream("metric_inline_short.acc", records[:-1])
stream("metric_inline_order.acc", records[:-2] + [records[-1], records[-2]])
