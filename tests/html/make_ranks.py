#!/usr/bin/env python3
"""A stream of statistics of several steps and ranks as accfirstbad --all writes it, for the joined tree
and the map of steps, ranks and modules.

	make_ranks.py STEPS RANKS LAYERS [pp] [renamed] [code] [hostile] >x.acc

Modules of LAYERS layers, with two op calls each, on each rank in each step. With "pp" the ranks are
two stages, which the sends and receives between them tell, each with its own LAYERS layers of the same
names; with "renamed" the bench calls fc1 "up", has a dropout of its own, and lacks a gelu of the
device; with "code" no module is noted, but stacks are. From step STEPS // 2 on, the last layer's linear is wrong on the last rank. No package is needed.
"""
import sys

from make import record


def main():
    steps, ranks, layers = map(int, sys.argv[1:4])
    pp, renamed, code = (word in sys.argv for word in ("pp", "renamed", "code"))
    bad = "</script><img src=x onerror=alert(2)>\x1b[31m" if "hostile" in sys.argv else ""
    written = 0

    def put(kind, fields):
        nonlocal written
        written += 1
        record(kind, fields)

    def call(step, rank, key, scope, err, sides="ab", bench=None, wrong=False, **more):
        f = {"name": key + ".output.0", "how": "name" if sides == "ab" else "only-" + sides}
        for side in sides:
            k, s = (key, scope) if side == "a" or bench is None else bench
            if code:
                s, more["stack"] = None, f"{int(key.split('.')[-2]):016x}"
            f.update({side + "." + n: v for n, v in {
                "kind": "tensor", "name": k + ".output.0", "key": k, "op": k.rsplit(".", 2)[0], "io": "out",
                "pos": "0", "scope": s, "pass": "forward", "dtype": "f32", "shape": [8, 16], "step": step,
                "rank": rank, "stat.max": 1.0, "stat.min": -1.0, "stat.mean": 0.0, "stat.norm": 4.0, **more
            }.items() if v is not None})
        if sides == "ab":
            f.update({"m.mode": "statistics", "m.norm_relerr": err})
        if wrong:
            f.update({"bad": "error", "rule": "output", "value": err, "limit": 1e-3})
        put("pair", f)

    record("acc", {"v": 1, "minor": 0, "log": ["make_ranks.py"]})
    for k in range(layers if code else 0):
        put("stack", {"id": f"{k:016x}", "frames": [
            f"File /home/u/model.py, line {k + 10}, in forward, \n y = self.f{k}(x){bad}",
            "File /home/u/train.py, line 7, in step, \n loss = model(x)",
            "File /home/u/train.py, line 9, in <module>, \n step()"]})
    for step in range(steps):
        for rank in range(ranks):
            n = 0
            stage = rank * 2 // ranks
            if pp:
                peer = rank + ranks // 2 if stage == 0 else rank - ranks // 2
                key = f"Distributed.{'recv' if stage else 'send'}.0.forward"
                both = {"kind": "arg", "name": key + ".input.1", "key": key, "op": key[:-10], "io": "in", "pos": "1",
                        "pass": "forward", "step": step, "rank": rank, "type": "int", "value": peer}
                put("pair", {"name": both["name"], **{s + "." + k: v for s in "ab" for k, v in both.items()}})
            top = f"Module.model.GPT.forward.0{bad}"
            for layer in range(layers):
                block = f"Module.model.layers.{layer}.Block.forward.0{bad}"
                fc = f"Module.model.layers.{layer}.fc1.Linear.forward.0{bad}"
                up = f"Module.model.layers.{layer}.up.Linear.forward.0{bad}" if renamed else fc
                wrong = step >= steps // 2 and rank == ranks - 1 and layer == layers - 1
                err = 0.05 if wrong else 1e-7 * (1 + (step * 7 + rank * 3 + layer) % 9)
                call(step, rank, f"Functional.linear.{n}.forward", fc, err, bench=(
                    f"Functional.linear.{n}.forward", up), wrong=wrong)
                if not code:
                    call(step, rank, fc, block, err, bench=(up, block))
                    call(step, rank, block, top, err)
                if renamed and layer == 0:
                    call(step, rank, "Functional.gelu.0.forward", block, 0, sides="a")
                    call(step, rank, "Functional.dropout.0.forward", up, 0, sides="b")
                n += 1
            if not code:
                call(step, rank, top, None, 1e-7)
    put("finding", {"name": f"Functional.linear.{layers - 1}.forward", "what": "culprit", "step": steps // 2,
                    "rank": ranks - 1, "rule": "output", "value": 0.05, "limit": 1e-3, "confidence": 0.97,
                    "text": f"Functional.linear.{layers - 1}.forward: output 0 is off by 5 %"})
    record("end", {"n": written, "st": 1})


if __name__ == "__main__":
    main()
