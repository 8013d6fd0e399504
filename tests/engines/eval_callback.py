#!/usr/bin/env python3
"""What llama-eval-callback prints of a small graph, as common/debug.cpp of llama.cpp does (and, --old, as
examples/eval-callback before September 2025, whose sums are of what is printed): eval_callback.py [--old] [--digits N]
[--fault NAME] [--scale X]. The graph is computed here by numpy; --noise rounds otherwise, as another backend does."""
import argparse

import numpy as np


def show(name, op, given, t, a, out):
    ne = list(t.shape[::-1]) + [1] * (4 - t.ndim)
    args = ", ".join("%s{%s}" % (n, ", ".join(map(str, list(s[::-1]) + [1] * (4 - len(s))))) for n, s in given)
    out.append("%s: %24s = (f32) %10s(%s%s}) = {%s}" % ("ggml_debug" if a.old else "common_debug_cb_eval", name, op, args,
                                                       ", " if len(given) == 1 else "", ", ".join(map(str, ne))))
    pad = " " * 37 if a.old else "    "
    x, seen = t.reshape(ne[::-1]), 0.0
    some = lambda n: list(range(n)) if n <= 6 else [0, 1, 2, None, n - 3, n - 2, n - 1]
    for i3 in range(ne[3]):
        out.append(pad + "[")
        for i2 in some(ne[2]):
            if i2 is None:
                out.append(pad + " ..., ")
                continue
            out.append(pad + " [")
            for i1 in some(ne[1]):
                if i1 is None:
                    out.append(pad + "  ..., ")
                    continue
                row = x[i3, i2, i1]
                seen += sum(float(row[k]) for k in some(ne[0]) if k is not None)
                out.append(pad + "  [" + ", ".join("..." if k is None else "%12.*f" % (a.digits, row[k]) for k in some(ne[0])) + "],")
            out.append(pad + " ],")
        out.append(pad + "]")
        out.append(pad + "sum = %f" % (seen if a.old else float(x.astype("f8").sum())))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--old", action="store_true")
    p.add_argument("--digits", type=int, default=4)
    p.add_argument("--fault")
    p.add_argument("--noise", action="store_true")
    a = p.parse_args()
    r, out = np.random.default_rng(3), []
    f = (lambda y: (y.astype("f8") * (1 + 1e-7 * np.random.default_rng(9).standard_normal(y.shape))).astype("f4")) if a.noise else lambda y: y.astype("f4")
    x = r.standard_normal((7, 32)).astype("f4")
    show("inp_embd", "GET_ROWS", [("token_embd.weight", (50, 32)), ("inp_tokens", (7,))], x, a, out)
    for i in range(2):
        w, g, d = (r.standard_normal(s).astype("f4") / 5 for s in ((32, 32), (48, 32), (32, 48)))
        n = f(x / np.sqrt((x * x).mean(-1, keepdims=True) + (0.05 if a.fault == f"norm-{i}" else 1e-5)))
        show(f"norm-{i}", "RMS_NORM", [("inp_embd" if i == 0 else "CPU#l_out-0#0", x.shape)], n, a, out)
        q = f(n @ w.T)
        show(f"Qcur-{i}", "MUL_MAT", [(f"blk.{i}.attn_q.weight", w.shape), (f"norm-{i}", n.shape)], q, a, out)
        v = q.reshape(7, 4, 8)
        show(f"Qcur-{i} (reshaped)", "RESHAPE", [(f"Qcur-{i}", q.shape)], v, a, out)
        h = f(n @ g.T)
        show(f"ffn_up-{i}", "MUL_MAT", [(f"blk.{i}.ffn_up.weight", g.shape), (f"norm-{i}", n.shape)], h, a, out)
        s = f(h / (1 + np.exp(-h)))
        if a.fault == f"silu-{i}":
            s[:, 3:-3] = np.nan
        show(f"ffn_silu-{i}", "UNARY", [(f"ffn_up-{i}", h.shape)], s, a, out)
        y = f(np.nan_to_num(s) @ d.T)
        show(f"ffn_out-{i}", "MUL_MAT", [(f"blk.{i}.ffn_down.weight", d.shape), (f"ffn_silu-{i}", s.shape)], y, a, out)
        x = f(x + y)
        show(f"l_out-{i}", "ADD", [(f"ffn_out-{i}", y.shape), ("inp_embd" if i == 0 else "l_out-0", x.shape)], x, a, out)
    print("\n".join(out))


main()
