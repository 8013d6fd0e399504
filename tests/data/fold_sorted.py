#!/usr/bin/env python3
"""fold_sorted.py OUT [FAULT]: what one line of code lays out in several orders, on one rank (OUT/one) and on two
(OUT/dev), with tensors and lines of code, as msprobe records them.

Each of three layers lays out its weights by one line: one that is split by columns, three that are packed in one, of
which each rank has its part, and two that are packed in one; and by another one of ten rows, which is filled up to
twelve, by zeros, or in the second layer by its last row, at a line of its own. Rows of that are looked up, on two ranks
each its own, and summed up. Then it takes tokens, the first of all samples first,
sorts them by their expert, takes them apart by lists of how many there are, and multiplies all by a weight. Each rank
has half of the samples, and the second expert's tokens go to the second rank, from both.
FAULT: scale (rank 1's product of layer 1 is 3 % off), expert (that of its expert is), few (those of all experts are by
1 in a thousand, but the first, which got two tokens, in the ranks' order). Python's own library alone.
"""
import json
import os
import sys

from fold_tensors import Dump, f32, matrix, product

SAMPLES, LENGTH, DIM, LAYERS = 4, 6, 8, 3


class Lined(Dump):
    def __init__(self, folder):
        super().__init__(folder)
        self.stack = {}

    def call(self, op, ins, out, line, *numbers):
        super().call(op, ins, out if isinstance(out[0][0], float) else out[0])
        key = f"{op}.{self.n[op]}.forward"
        d = self.data[key]
        if numbers:
            d["input_args"].append([{"type": "int", "value": n} for n in numbers])
            d["output"] = [self.tensor(key, f"output.{i}", x) for i, x in enumerate(out)]
        self.stack[key] = [f"File /model.py, line {line}, in forward, \n line_{line}()"]

    def write(self):
        super().write()
        with open(os.path.join(self.folder, "stack.json"), "w") as f:
            json.dump(self.stack, f)


def rows(w, n, r):
    """Part r of two of each of n that are packed."""
    k = len(w) // (2 * n)
    return [w[i] for p in range(n) for i in range((2 * p + r) * k, (2 * p + r + 1) * k)]


def scaled(x, by):
    return f32([[v * by for v in row] for row in x])


def main():
    out, fault = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    one = Lined(f"{out}/one/step0/rank0")
    dev = [Lined(f"{out}/dev/step0/rank{r}") for r in range(2)]
    for layer in range(LAYERS):
        packed, columns, gated = matrix(12, DIM), matrix(DIM, 12), matrix(16, DIM)
        shares = ([[row[6 * r:6 * r + 6] for row in columns], rows(packed, 3, r), rows(gated, 2, r)] for r in range(2))
        for d, w in zip([one, *dev], [[columns, packed, gated], *shares]):
            for x in w:
                d.call("Tensor.contiguous", [x], x, 1)
        table = matrix(10, DIM)
        filled = table + [table[-1] if layer == 1 else [0.0] * DIM] * 2
        for d, x in zip([one, *dev], [table, filled[:6], filled[6:]]):
            d.call("Tensor.clone", [x], x, 7 if layer == 1 else 6)
        ids = [(7 * i + layer) % 10 for i in range(8)]
        looked = [table[i] for i in ids]
        for d, w, first in zip([one, *dev], [table, filled[:6], filled[6:]], (0, 0, 6)):
            here = [first <= i < first + len(w) for i in ids]
            x = [w[i - first] if ok else w[0] for i, ok in zip(ids, here)]
            d.call("Functional.embedding", [w], x, 8)
            if d is not one:
                own = [v if ok else [0.0] * DIM for v, ok in zip(x, here)]
                d.call("Tensor.masked_fill", [x], own, 9)
                d.call("Distributed.all_reduce", [own], looked, 10)
            d.call("Tensor.__mul__", [looked, looked], f32([[v * v for v in row] for row in looked]), 11)
        # Of token t of sample s: t before s.
        tokens = matrix(LENGTH * SAMPLES, DIM)
        expert = [(t * t + t // SAMPLES * layer) % 3 == 1 or t % SAMPLES == 3 for t in range(len(tokens))]
        w = [matrix(DIM, DIM) for _ in "abc"]
        given = [list(range(len(tokens)))] + [[t for t in range(len(tokens)) if t % SAMPLES // 2 == r] for r in range(2)]
        ordered = [sorted(g, key=lambda t: expert[t]) for g in given]
        parts = [[[t for t in o if expert[t] == e] for e in range(2)] for o in ordered]
        for d, g, o, p, bad in zip([one, *dev], given, ordered, parts, (1, 1, 1.03)):
            x = [tokens[t] for t in g]
            y = scaled(product(x, w[0]), bad if fault == "scale" and layer == 1 else 1)
            d.call("Functional.linear", [x, w[0]], y, 2)
            d.call("Torch.index_select", [[tokens[t] for t in g]], [tokens[t] for t in o], 3)
            d.call("Tensor.split", [[tokens[t] for t in o]], [[tokens[t] for t in e] for e in p], 4, *map(len, p))
        sent = [parts[1][e] + parts[2][e] for e in range(2)]
        for d in dev if fault == "few" and layer == 0 else ():
            own = matrix(DIM, DIM)
            for side in one, d:
                side.call("Functional.linear", [tokens[:2], own], product(tokens[:2], own), 5)
        for e in range(2):   # of one rank both, of two each its own
            for d, p in ((one, parts[0][e]), (dev[e], sent[e])):
                x = [tokens[t] for t in p]
                bad = 1.03 if fault == "expert" and layer == e == 1 and d is dev[1] else \
                    1.001 if fault == "few" and d is not one else 1
                d.call("Functional.linear", [x, w[1 + e]], scaled(product(x, w[1 + e]), bad), 5)
    for d in [one, *dev]:
        d.write()


if __name__ == "__main__":
    main()
