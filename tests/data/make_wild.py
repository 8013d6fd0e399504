#!/usr/bin/env python3
"""Op calls for the audit that torch 2.15 computes itself (PyTorch 2.10 or newer, msgpack, and python/ in PYTHONPATH):

    tests/data/make_wild.py tests/data/wild

    large.tar.gz      recordings of a product too large to be formed, of small integers: right; NaN, and
                      Inf, in one element of a gradient of a factor
    overflows.tar.gz  an element that overflows, forward, in a gradient and in the state of an optimizer, in
                      three dtypes: Inf, as it should be, and NaN, the largest number, and 1 in its place
    left_out.tar.gz   two sides each that differ where the audit of one does not look: NaN that relu swallows,
                      a row that a mask hides, a slope at its kink, one element of a large product; and one
                      where they are the same there
    optimizers.acc.gz what torch.optim calls with its own arguments, in f32, bf16 and f64; then AdamW with
                      its weight decay added to the gradient, and Adam with it taken off the parameter
"""
import copy
import os
import struct
import sys
import tarfile
import tempfile

import msgpack
import torch
import torch.nn.functional as F

import accrecord
import make_replay_fused
from make_replay_fused import Stream

make_replay_fused.DT.update({torch.float16: "f16", torch.float8_e5m2: "f8e5m2", torch.int32: "i32",
                             torch.uint8: "u8"})
f64, f32, bf16, f16 = torch.float64, torch.float32, torch.bfloat16, torch.float16
nan, inf = float("nan"), float("inf")


class Calls(Stream):
    """Calls as they come: nothing is made wrong here but what the caller makes wrong."""

    def put(self, key, op, call, pas, io, pos, v, wrong=False):
        if isinstance(v, torch.Tensor):
            seq = len(self.rec)
            t = v.detach().contiguous()
            self.rec.append(["tensor", {
                "name": f"{key}.{io}.{pos}", "src": "00000001", "seq": seq, "key": key, "op": op,
                "call": call, "pass": pas, "io": io, "pos": str(pos),
                "dtype": make_replay_fused.DT[t.dtype], "shape": list(t.shape), "x-wrong": wrong}])
            self.data.append((seq, t.reshape(-1).view(torch.uint8).numpy().tobytes()))
        elif isinstance(v, (list, tuple)):
            for i, x in enumerate(v):
                self.put(key, op, call, pas, io, f"{pos}.{i}", x, wrong)
        else:
            self.arg(key, op, call, io, pos, v)
            self.rec[-1][1]["pass"] = pas

    def call(self, op, ins, kw, outs, pas="forward", wrong=False, new=True):
        n = self.calls[op] = self.calls.get(op, -1) + (1 if new else 0)
        key = f"{op}.{n}.{pas}"
        for i, x in enumerate(ins):
            self.put(key, op, n, pas, "in", i, x)
        for k, x in kw.items():
            self.put(key, op, n, pas, "kw", k, x)
        for i, x in enumerate(outs):
            self.put(key, op, n, pas, "out", i, x, wrong is True or (wrong and x is outs[wrong - 1]))


    def folder(self, path):
        """As a recording: its elements are in a file, which old dumps have, and what is audited there is
        read from it."""
        os.makedirs(path)
        whole = b"".join(d for _, d in self.data)
        at, size = 0, {}
        for seq, d in self.data:
            size[seq] = (at, len(d))
            at += len(d)
        with open(f"{path}/data", "wb") as out:
            out.write(whole)
        os.utime(f"{path}/data", (10 ** 9, 10 ** 9))
        body = [["source", {"id": "00000001", "root": ".", "format": "record"}]]
        for kind, r in self.rec[1:]:
            if kind == "tensor":
                r = dict(r, file="data", off=size[r["seq"]][0], len=size[r["seq"]][1], fsize=at,
                         mtime=10 ** 18)
            body.append([kind, r])
        with open(f"{path}/rank0.acc", "wb") as out:
            for r in [["acc", {"v": 1, "minor": 0, "log": []}], *body,
                      ["end", {"n": len(body), "st": 0}]]:
                out.write(msgpack.packb(r))
        os.utime(f"{path}/rank0.acc", (10 ** 9, 10 ** 9))


def large(folder):
    def ints(m, n, of):
        return ((torch.arange(m)[:, None] * 7 + torch.arange(n)[None] * of) % 5 - 2).to(f32)

    with tempfile.TemporaryDirectory() as tmp:
        for name, bad in (("right", None), ("nan", nan), ("inf", inf)):
            x, w, g = ints(800, 96, 3), ints(96, 96, 11).requires_grad_(), ints(800, 96, 2)
            accrecord.start_record(output_dir=f"{tmp}/{name}", record_level=2, record_stack=False)
            F.linear(x, w).backward(g)
            accrecord.record_switch(False)
            accrecord._replace(None)
            path = f"{tmp}/{name}/rank0.step0.data"
            data = open(path, "rb").read()
            at = data.index(w.grad.numpy().tobytes()) + (3 * 96 + 7) * 4
            with open(path, "r+b") as out:
                if bad is not None:
                    out.seek(at)
                    out.write(struct.pack("<f", bad))
        # The time of a file is in its records.
        with tarfile.open(f"{folder}/large.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name in ("right", "nan", "inf"):
                tar.add(f"{tmp}/{name}", name)


class Watched:
    """A function of torch.optim whose calls go into the stream."""

    def __init__(self, s, module, name, change=None):
        self.s, self.module, self.name, self.change = s, module, name, change

    def __enter__(self):
        self.old = getattr(self.module, self.name)

        def call(params, *rest, **kw):
            given = [[copy.deepcopy(t.detach()) for t in v] if isinstance(v, list) else v
                     for v in (params, *rest)]
            said = dict(kw)
            if self.change is not None:
                kw = {**kw, **self.change}
            self.old(params, *rest, **kw)
            self.s.call("Functional." + self.name, given, said, list(params),
                        wrong=self.change is not None)
        setattr(self.module, self.name, call)

    def __exit__(self, *_):
        setattr(self.module, self.name, self.old)


def optimizers(s):
    import torch.optim.adam as adam
    import torch.optim.sgd as sgd
    import torch.optim.adagrad as adagrad

    def run(module, name, cls, dtype, change=None, **kw):
        params = [torch.randn(9, dtype=f64).to(dtype) for _ in range(2)]
        o = cls(params, lr=0.05, weight_decay=0.3, **kw)
        for step in range(2):
            for p in params:
                p.grad = torch.randn(9, dtype=f64).to(dtype)
            if step == 1:
                with Watched(s, module, name, change):
                    o.step()
            else:
                o.step()

    ways = [{}, {"foreach": True}, {"fused": True}, {"maximize": True}, {"differentiable": True}]
    for dtype in (f32, bf16, f64):
        for cls in (torch.optim.Adam, torch.optim.AdamW):
            for way in ways + [{"amsgrad": True}]:
                run(adam, "adam", cls, dtype, **way)
        for way in ways + [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}]:
            run(sgd, "sgd", torch.optim.SGD, dtype, **way)
        run(adagrad, "adagrad", torch.optim.Adagrad, dtype)
    run(adam, "adam", torch.optim.AdamW, f32, {"decoupled_weight_decay": False})
    run(adam, "adam", torch.optim.Adam, f32, {"decoupled_weight_decay": True})


# --- what overflows ---

F8 = torch.float8_e5m2
TIMES = {f16: 300.0, bf16: 1e30, F8: 300.0}   # twice that is beyond the dtype's largest


def value(what, dtype, right):
    return {"inf": inf, "nan": nan, "largest": torch.finfo(dtype).max, "finite": 1.0,
            "right": right}[what]


def overflows(s, where, dtype, what):
    """One element overflows, and holds `what`."""
    x = (torch.arange(12, dtype=f64) % 5 - 2).reshape(3, 4) * 0.5
    x[1, 2] = TIMES[dtype] if dtype != F8 else 256
    x = x.to(dtype)
    y = torch.ones(3, 4, dtype=f64).to(dtype)
    y64 = y.double()
    y64[1, 2] = TIMES[dtype] if dtype == f16 else 1e20 if dtype == bf16 else 256
    y = y64.to(dtype)
    product = (x.double() * y.double()).to(dtype)
    product.view(-1)[6] = value(what, dtype, inf)
    if where == "forward":
        s.call("Torch.mul", [x, y], {}, [product])
    elif where == "gradient":
        # A factor's gradient is the other one, times what came in.
        small = (torch.arange(12, dtype=f64) % 3).reshape(3, 4).to(dtype)
        s.call("Torch.mul", [small, x], {}, [(small.double() * x.double()).to(dtype)])
        s.call("Torch.mul", [y], {}, [product, (y.double() * small.double()).to(dtype)], "backward",
               new=False)
    else:
        # The square of a gradient, in the second moment of a step of Adam, whose beta2 is 0.
        g = torch.full((4,), 0.5, dtype=f64).to(dtype)
        g.view(-1)[1] = {f16: 300.0, bf16: 1e20, F8: 1024.0}[dtype]
        p, m, v = (torch.full((4,), 0.25, dtype=f64).to(dtype) for _ in range(3))
        kw = {"lr": 0.5, "beta1": 0.5, "beta2": 0.0, "weight_decay": 0.0, "eps": 1e-8,
              "amsgrad": False, "maximize": False}
        t = torch.tensor([0.0], dtype=f32)
        m1 = 0.5 * m.double() + 0.5 * g.double()
        v1 = g.double() ** 2
        p1 = p.double() - 0.5 / 0.5 * m1 / (v1.sqrt() + 1e-8)
        v1 = v1.to(dtype)
        v1.view(-1)[1] = value(what, dtype, inf)
        s.call("Functional.adam", [[p], [g], [m], [v], [], [t]], kw,
               [p1.to(dtype), g, m1.to(dtype), v1])


def pairs(folder):
    """Two sides each: what was left out by the audit differs; and, last, does not matter."""
    def swallowed(s, device):
        x = (torch.arange(24, dtype=f64).reshape(4, 6) % 7 - 3).to(f32)
        x[1, 2] = nan
        y = F.relu(x)
        if device:
            y = torch.where(torch.isnan(y), torch.zeros(()), y)
        s.call("Functional.relu", [x], {}, [y])

    def garbage(s, device):
        x = (torch.arange(24, dtype=f64).reshape(4, 6) % 7 - 3).to(f32)
        x[2] = -inf
        y = F.softmax(x, -1)
        if device:
            y[2] = 123
        s.call("Functional.softmax", [x], {"dim": -1}, [y])

    def kink(s, device):
        x = (torch.arange(24, dtype=f64).reshape(4, 6) % 7 - 3).to(f32)
        g = torch.ones(4, 6)
        s.call("Functional.relu", [x], {}, [F.relu(x)])
        s.call("Functional.relu", [g], {}, [g * (x >= 0 if device else x > 0)], "backward", new=False)

    def element(s, device):
        x = ((torch.arange(192 * 192).reshape(192, 192) * 7) % 11 - 5).to(f32) / 8
        y = ((torch.arange(192 * 192).reshape(192, 192) * 5) % 13 - 6).to(f32) / 8
        z = x @ y
        if device:
            z[100, 33] += 0.001
        s.call("Torch.matmul", [x, y], {}, [z])

    def right(s, device):
        x = (torch.arange(24, dtype=f64).reshape(4, 6) % 7 - 3).to(f32)
        x[1, 2] = nan
        s.call("Functional.relu", [x], {}, [F.relu(x)])
        y = torch.tensor([1.0, 2.0, 3.0]) + (1e-7 if device else 0)
        s.call("Torch.exp", [y], {}, [y.exp()])

    with tempfile.TemporaryDirectory() as tmp:
        for way in (swallowed, garbage, kink, element, right):
            for side in ("device", "bench"):
                s = Calls()
                way(s, side == "device")
                s.folder(f"{tmp}/{way.__name__}/{side}")
        with tarfile.open(f"{folder}/left_out.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(os.listdir(tmp)):
                tar.add(f"{tmp}/{name}", name)


def tables(folder):
    with tempfile.TemporaryDirectory() as tmp:
        for where in ("forward", "gradient", "state"):
            for dtype in (f16, bf16, F8):
                for what in ("inf", "nan", "largest", "finite"):
                    s = Calls()
                    overflows(s, where, dtype, what)
                    s.folder(f"{tmp}/{where}.{make_replay_fused.DT[dtype]}.{what}")
        with tarfile.open(f"{folder}/overflows.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(os.listdir(tmp)):
                tar.add(f"{tmp}/{name}", name)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    if len(sys.argv) < 3 or "large" in sys.argv[2:]:
        large(sys.argv[1])
    if len(sys.argv) < 3 or "overflows" in sys.argv[2:]:
        tables(sys.argv[1])
    if len(sys.argv) < 3 or "left_out" in sys.argv[2:]:
        pairs(sys.argv[1])
    for family in (optimizers,):
        if len(sys.argv) > 2 and family.__name__ not in sys.argv[2:]:
            continue
        torch.manual_seed(7)
        s = Calls()
        family(s)
        s.write(f"{sys.argv[1]}/{family.__name__}.acc.gz")


main()
