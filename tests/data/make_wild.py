#!/usr/bin/env python3
"""Op calls for the audit that torch 2.15 computes itself (PyTorch 2.10 or newer, msgpack, and python/ in PYTHONPATH):

    tests/data/make_wild.py tests/data/wild

    large.tar.gz      recordings of a product too large to be formed, of small integers: right; NaN, and
                      Inf, in one element of a gradient of a factor
    optimizers.acc.gz what torch.optim calls with its own arguments, in f32, bf16 and f64; then AdamW with
                      its weight decay added to the gradient, and Adam with it taken off the parameter
"""
import copy
import os
import struct
import sys
import tarfile
import tempfile

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


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    if len(sys.argv) < 3 or "large" in sys.argv[2:]:
        large(sys.argv[1])
    for family in (optimizers,):
        if len(sys.argv) > 2 and family.__name__ not in sys.argv[2:]:
            continue
        torch.manual_seed(7)
        s = Calls()
        family(s)
        s.write(f"{sys.argv[1]}/{family.__name__}.acc.gz")


main()
