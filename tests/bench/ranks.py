#!/usr/bin/env python3
"""A stream of what many ranks recorded of one step, statistics alone, to see what a rank costs.

Usage: ranks.py RANKS CALLS [--parts N] [--one] [--odd RANK]

CALLS op calls of two or three tensors each.
A network of linear layers is trained by RANKS ranks, each with its own data; its gradients are averaged over them.
--parts N: N neighbours share their data and hold parts of each weight: columns of one layer, rows of the next.
--one: the same on one rank, with the data of all. --odd RANK: this rank's middle weight is another."""
import argparse
import struct
import sys

KEYS = b"\xa8stat.max", b"\xa8stat.min", b"\xa9stat.mean", b"\xa9stat.norm"
ROWS, WIDTH = 4, 64
OPS = {"data": "AVG", "parts": "SUM"}


def text(s):
    s = s.encode()
    return (bytes([0xa0 | len(s)]) if len(s) < 32 else struct.pack(">BB", 0xd9, len(s))) + s


def whole(i):
    return struct.pack(">Bq", 0xd3, i)


def ints(v):
    each = (bytes([i]) if i < 128 else struct.pack(">BH", 0xcd, i) for i in v)
    return struct.pack(">BI", 0xdd, len(v)) + b"".join(each)


def texts(v):
    return struct.pack(">BI", 0xdd, len(v)) + b"".join(text(s) for s in v)


def record(kind, extra=0, **fields):
    body = b"".join(text(k.replace("_", ".") if k == "dtype_raw" else k) + v for k, v in fields.items())
    return b"\x92" + text(kind) + struct.pack(">BH", 0xde, len(fields) + extra) + body


def chance(a, b):
    """Between 0.5 and 1.5, the same for the same."""
    x = (a * 0.6180339887498949 + b * 0.7548776662466927 + a * b * 0.0012345) % 1.0
    return 0.5 + x


class Step:
    """The records of a step, each without what ranks differ in: bytes, and who differs in its statistics.

    own: each has its own. data: the ranks with the same data have the same. part: ranks with the same part of weights
    have. all: all have the same."""
    def __init__(self, a):
        self.a, self.records, self.tensors, self.calls, self.number = a, [], 0, 0, {}
        self.back, self.sum, self.alias, self.scaled, self.seen = [], {}, {}, set(), {}

    def tensor(self, who, io, pos, like, which, shape, wants=False):
        op, call, way = who
        key = f"{op}.{call}.{way}"
        word = {"in": "input", "out": "output"}[io]
        r = record("tensor", 6, name=text(f"{key}.{word}.{pos}"), key=text(key), op=text(op), call=whole(call),
                   stack=text("%016x" % (1 + (way != "forward"))), io=text(io), pos=text(str(pos)),
                   **{"pass": text(way)}, type=text("torch.Tensor"), dtype=text("f32"), step=whole(0),
                   shape=ints(shape), requires_grad=b"\xc3" if wants else b"\xc2")
        self.records.append((r, like, which))

    def group(self, who, over):
        op, call, way = who
        key = f"{op}.{call}.{way}"
        common = dict(key=text(key), op=text(op), call=whole(call), stack=text("%016x" % 2), io=text("kw"),
                      **{"pass": text(way)}, step=whole(0))
        self.records.append((record("arg", 2, name=text(f"{key}.kwargs.op"), **common, pos=text("op"),
                                    type=text("torch.distributed.ReduceOp"), value=text(f"RedOpType.{OPS[over]}")),
                             None, None))
        self.records.append((record("arg", 3, name=text(f"{key}.kwargs.group"), **common, pos=text("group"),
                                    type=text("ProcessGroup")), None, over))

    def who(self, op, way="forward"):
        n = self.number[op] = self.number.get(op, -1) + 1
        self.calls += 1
        return op, n, way

    def new(self):
        self.tensors += 1
        return self.tensors

    def reduce(self, which, then, shape, over):
        out = self.new()
        self.sum[out] = which, over
        if self.a.one:
            self.alias[which] = out, then
            return out
        who = self.who("Distributed.all_reduce")
        self.tensor(who, "in", 0, "own", which, shape)
        self.group(who, over)
        self.tensor(who, "out", 0, then, out, shape)
        return out

    def make(self):
        parts, rows = self.a.parts, ROWS * (self.a.ranks // self.a.parts if self.a.one else 1)
        cut = 1 if self.a.one else parts
        x, layer, weights = self.new(), 0, []
        # A layer: forward 2, backward 2, a reduction of its weight's gradient, of two layers one more.
        layers = self.a.calls // (5 if parts == 1 else 6) // 2 * 2
        for layer in range(layers):
            wide = layer % 2 == 0
            ends = (WIDTH, 4 * WIDTH // cut) if wide else (4 * WIDTH // cut, WIDTH)
            w, h, y = self.new(), self.new(), self.new()
            weights.append((w, ends))
            who = self.who("Functional.linear")
            like = ("data", "own") if wide else ("own", "own")
            if layer == layers // 2:
                self.middle = w
            self.tensor(who, "in", 0, like[0], x, (rows, ends[0]), layer > 0)
            self.tensor(who, "in", 1, "part" if parts > 1 else "all", w, ends[::-1], True)
            self.tensor(who, "out", 0, like[1], h, (rows, ends[1]), True)
            first = who[1]
            if not wide and parts > 1:
                h = self.reduce(h, "data", (rows, ends[1]), "parts")
            like = "own" if wide else "data"
            who = self.who("Functional.gelu")
            self.tensor(who, "in", 0, like, h, (rows, ends[1]), True)
            self.tensor(who, "out", 0, like, y, (rows, ends[1]), True)
            self.back.append((first, who[1], x, w, h, ends, wide))
            x = y
        g = self.new()
        for first, second, _, w, h, ends, wide in reversed(self.back):
            like, other = ("own", "data") if wide else ("data", "own")
            self.calls += 2
            d, back, grad = self.new(), self.new(), self.new()
            self.scaled |= {g, d, back, self.tensors + 1 if wide and parts > 1 else back}
            who = ("Functional.gelu", second, "backward")
            self.tensor(who, "in", 0, like, g, (rows, ends[1]))
            self.tensor(who, "out", 0, like, d, (rows, ends[1]))
            who = ("Functional.linear", first, "backward")
            self.tensor(who, "in", 0, like, d, (rows, ends[1]))
            self.tensor(who, "out", 0, "own", back, (rows, ends[0]))
            self.tensor(who, "out", 1, "own", grad, ends[::-1])
            if wide and parts > 1:
                back = self.reduce(back, other, (rows, ends[0]), "parts")
            g = back
            self.reduce(grad, "part" if parts > 1 else "all", ends[::-1], "data")
        return self


    def of(self, like, which, rank):
        """max, min, mean and norm of a tensor on a rank."""
        parts, ranks = self.a.parts, self.a.ranks
        if which not in self.sum:
            v = chance(which, {"own": rank + 1, "data": rank // parts + 1, "part": -(rank % parts) - 1, "all": 0}[like])
            return 3 * v, -2 * v, v / 8, 20 * v
        of, over = self.sum[which]
        key = which, rank % parts if over == "data" else -1 - rank // parts
        if key not in self.seen:
            among = range(rank % parts, ranks, parts) if over == "data" else \
                range(rank // parts * parts, (rank // parts + 1) * parts)
            v = sum(chance(of, r + 1) for r in among) / (len(among) if over == "data" else 1)
            self.seen = {key: (1.5 * v, -v, v / 8, 10 * v), **(self.seen if len(self.seen) < 10000 else {})}
        return self.seen[key]

    def whole(self, like, which):
        """Of all ranks as one."""
        scale = self.a.parts / self.a.ranks if which in self.scaled else 1
        which, like = self.alias.get(which, (which, like))
        parts, ranks = self.a.parts, self.a.ranks
        among = {"own": range(ranks), "data": range(0, ranks, parts), "part": range(parts), "all": range(1)}[like]
        each = [self.of(like, which, r) for r in among]
        return (scale * max(e[0] for e in each), scale * min(e[1] for e in each),
                scale * sum(e[2] for e in each) / len(each), scale * sum(e[3] ** 2 for e in each) ** 0.5)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ranks", type=int)
    p.add_argument("calls", type=int)
    p.add_argument("--parts", type=int, default=1)
    p.add_argument("--one", action="store_true")
    p.add_argument("--odd", type=int, default=-1)
    a = p.parse_args()
    step = Step(a).make()
    out, n = sys.stdout.buffer, 0
    out.write(record("acc", v=whole(2), minor=whole(0), log=texts([" ".join(sys.argv)])))
    for rank in range(1 if a.one else a.ranks):
        src = b"%08x" % rank
        out.write(record("source", id=text(src.decode()), root=text("/nowhere"), host=text("none"),
                         format=text("record"), framework=text("pytorch"), task=text("statistics")))
        if rank == 0:
            for i in (1, 2):
                frames = texts([f"File model.py, line {i}, in step, \n step()"])
                out.write(record("stack", id=text("%016x" % i), frames=frames))
                n += 1
        n += 1
        over = {"data": [r for r in range(a.ranks) if r % a.parts == rank % a.parts],
                "parts": [rank // a.parts * a.parts + i for i in range(a.parts)]}
        over = {k: text("value") + ints(v) for k, v in over.items()}
        for r, like, which in step.records:
            out.write(r + b"\xa4rank\xd1" + struct.pack(">h", rank) + b"\xa3src" + text(src.decode()))
            if like is None:
                out.write(over.get(which, b""))
            else:
                stats = step.whole(like, which) if a.one else step.of(like, which, rank)
                odd = 1.5 if rank == a.odd and which == step.middle else 1
                out.write(b"".join(k + struct.pack(">Bd", 0xcb, odd * v) for k, v in zip(KEYS, stats)))
            n += 1
    out.write(record("end", n=whole(n), st=whole(0)))
    print(step.calls, "op calls a rank", file=sys.stderr)


if __name__ == "__main__":
    main()
