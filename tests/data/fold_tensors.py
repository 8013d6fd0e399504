#!/usr/bin/env python3
"""fold_tensors.py OUT [FAULT]: a network on one rank (OUT/one) and on two (OUT/dev), with tensors; on two of which
each has half of the rows (OUT/split); and on four, both in one (OUT/grid), neighbours as the two of OUT/dev, or as
OUT/dev has two (OUT/four).

Three layers x = W2 (W1 x), as msprobe records them. W1 is split over the ranks as packed query, key
and value are: rank r has part r of each third. W2 is split by columns; an all_reduce sums up.
FAULT: scale (rank 1's first product of layer 1 is 3 % off), first (that of layer 0, and W1 is not packed), order (rank 1 has its thirds in another
order there), lost (nothing sums up there), triple (the sum is three times what it should be there); stages
(rank 0 has two layers, rank 1 the third, whole), rolled (the same, and rank 1 takes its rows in another
order); places (a list of places, of which each rank has a half, before each layer). Python's own library alone.
"""
import array
import json
import math
import os
import random
import sys

ROWS, DIM, WIDE, LAYERS = 6, 8, 12, 3
random.seed(3)


def f32(x):
    return [list(array.array("f", r)) for r in x]


def product(x, w):   # x w^T
    return f32([[math.fsum(a * b for a, b in zip(r, c)) for c in w] for r in x])


def matrix(rows, columns):
    return f32([[random.gauss(0.2, 0.5) for _ in range(columns)] for _ in range(rows)])


class Dump:
    def __init__(self, folder):
        self.folder, self.data, self.n = folder, {}, {}
        os.makedirs(os.path.join(folder, "dump_tensor_data"))

    def tensor(self, key, place, x):
        flat = [v for r in x for v in r]
        name = f"{key}.{place}.npy"
        head = str({"descr": "<f4", "fortran_order": False, "shape": (len(x), len(x[0]))}).encode()
        head += b" " * (117 - len(head)) + b"\n"
        with open(os.path.join(self.folder, "dump_tensor_data", name), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
            f.write(array.array("f", flat).tobytes())
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [len(x), len(x[0])],
                "Max": max(flat), "Min": min(flat), "Mean": math.fsum(flat) / len(flat),
                "Norm": math.sqrt(math.fsum(v * v for v in flat)), "requires_grad": False,
                "data_name": name}

    def call(self, op, ins, out):
        n = self.n[op] = self.n.get(op, -1) + 1
        key = f"{op}.{n}.forward"
        self.data[key] = {
            "input_args": [self.tensor(key, f"input.{i}", x) for i, x in enumerate(ins)],
            "input_kwargs": {}, "output": [self.tensor(key, "output.0", out)]}

    def places(self, x):
        n = self.n["Tensor.clone"] = self.n.get("Tensor.clone", -1) + 1
        key = f"Tensor.clone.{n}.forward"
        t = [self.tensor(key, place, [x]) for place in ("input.0", "output.0")]
        for v in t:   # as recorders have it of integers
            head = str({"descr": "<i8", "fortran_order": False, "shape": (len(x),)}).encode().ljust(117) + b"\n"
            with open(os.path.join(self.folder, "dump_tensor_data", v["data_name"]), "wb") as f:
                f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
                f.write(array.array("q", x).tobytes())
            v |= {"dtype": "torch.int64", "shape": [len(x)], "Mean": None, "Norm": None}
        self.data[key] = {"input_args": t[:1], "input_kwargs": {}, "output": t[1:]}

    def write(self):
        with open(os.path.join(self.folder, "dump.json"), "w") as f:
            json.dump({"task": "tensor", "level": "L1", "framework": "pytorch",
                       "dump_data_dir": None, "data": self.data}, f)


def stages(ranks, x, w1, w2, fault):
    for i, (a1, a2) in enumerate(zip(w1, w2)):
        rank = ranks[i == 2]
        if i == 2:
            ranks[0].call("Distributed.send", [x], x)
            ranks[1].call("Distributed.recv", [x], x)
            x = x[1:] + x[:1] if fault == "rolled" else x
        h = product(x, a1)
        rank.call("Functional.linear", [x, a1], h)
        x = product(h, a2)
        rank.call("Functional.linear", [h, a2], x)


def main():
    out, fault = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    w1 = [matrix(WIDE, DIM) for _ in range(LAYERS)]
    w2 = [matrix(DIM, WIDE) for _ in range(LAYERS)]
    mine = [[k * WIDE // 3 + r * WIDE // 6 + i for k in range(3) for i in range(WIDE // 6)]
            for r in range(2)]
    if fault == "first":
        mine = [[r * WIDE // 2 + i for i in range(WIDE // 2)] for r in range(2)]
    x = matrix(ROWS, DIM)
    one = Dump(f"{out}/one/step0/rank0")
    ranks = [Dump(f"{out}/dev/step0/rank{r}") for r in range(2)]
    halves = [Dump(f"{out}/split/step0/rank{r}") for r in range(2)]
    for r, d in enumerate(halves):
        a = x[r * ROWS // 2:(r + 1) * ROWS // 2]
        for a1, a2 in zip(w1, w2):
            h = product(a, a1)
            d.call("Functional.linear", [a, a1], h)
            a = product(h, a2)
            d.call("Functional.linear", [h, a2], a)
    a = x
    for a1, a2 in zip(w1, w2):
        if fault == "places":
            one.places(list(range(ROWS)))
            for r in range(2):
                ranks[r].places(list(range(r * ROWS // 2, (r + 1) * ROWS // 2)))
        h = product(a, a1)
        one.call("Functional.linear", [a, a1], h)
        b = product(h, a2)
        one.call("Functional.linear", [h, a2], b)
        a = b
    grid = [Dump(f"{out}/grid/step0/rank{r}") for r in range(4)]
    for half in range(2):
        a = x[half * ROWS // 2:(half + 1) * ROWS // 2]
        for i, (a1, a2) in enumerate(zip(w1, w2)):
            parts = []
            for r, d in enumerate(grid[2 * half:2 * half + 2]):
                rows, columns = [a1[k] for k in mine[r]], [[row[k] for k in mine[r]] for row in a2]
                h = product(a, rows)
                if half == r == i == 1 and fault == "scale":
                    h = f32([[v * 1.03 for v in row] for row in h])
                d.call("Functional.linear", [a, rows], h)
                parts.append(product(h, columns))
                d.call("Functional.linear", [h, columns], parts[r])
            a = f32([[p + q for p, q in zip(*rows)] for rows in zip(*parts)])
            for r, d in enumerate(grid[2 * half:2 * half + 2]):
                d.call("Distributed.all_reduce", [parts[r]], a)
    four, a = [Dump(f"{out}/four/step0/rank{r}") for r in range(4)], x
    for a1, a2 in zip(w1, w2):
        parts = []
        for r, d in enumerate(four):
            own = [k * WIDE // 3 + r for k in range(3)]
            rows, columns = [a1[k] for k in own], [[row[k] for k in own] for row in a2]
            h = product(a, rows)
            d.call("Functional.linear", [a, rows], h)
            parts.append(product(h, columns))
            d.call("Functional.linear", [h, columns], parts[r])
        a = f32([[sum(p) for p in zip(*rows)] for rows in zip(*parts)])
        for r, d in enumerate(four):
            d.call("Distributed.all_reduce", [parts[r]], a)
    if fault in ("stages", "rolled"):
        stages(ranks, x, w1, w2, fault)
        w1 = []
    xs = [x, x]
    for i, (a1, a2) in enumerate(zip(w1, w2)):
        parts = []
        for r in range(2):
            x = xs[r]
            rows = [a1[k] for k in mine[r]]
            h = product(x, rows)
            if r == 1 and (i, fault) in ((1, "scale"), (0, "first")):
                h = f32([[v * 1.03 for v in row] for row in h])
            if i == 1 and r == 1 and fault == "order":
                h = [row[2:4] + row[:2] + row[4:] for row in h]
            columns = [[row[k] for k in mine[r]] for row in a2]
            ranks[r].call("Functional.linear", [x, rows], h)
            parts.append(product(h, columns))
            ranks[r].call("Functional.linear", [h, columns], parts[r])
        times = 3 if i == 1 and fault == "triple" else 1
        y = f32([[(p + q) * times for p, q in zip(*rows)] for rows in zip(*parts)])
        xs = [y, y]
        if i == 1 and fault == "lost":
            xs = parts
            continue
        for r in range(2):
            ranks[r].call("Distributed.all_reduce", [parts[r]], y)
    for d in [one] + ranks + halves + grid + four:
        d.write()


if __name__ == "__main__":
    main()
