#!/usr/bin/env python3
"""A stream of any length as accfirstbad --all writes it, for trying pages and spreadsheets.

	make.py RECORDS [hostile] >x.acc

Two ranks, modules with scopes, inputs and outputs that hand values on; one op call in the middle is
the culprit. With "hostile" names are as an attacker would have them. No package is needed.
"""
import struct
import sys


def pack(v):
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        return b"\xd3" + struct.pack(">q", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, (str, bytes)):
        s = v if isinstance(v, bytes) else v.encode()
        return b"\xdb" + struct.pack(">I", len(s)) + s
    if isinstance(v, list):
        return b"\xdd" + struct.pack(">I", len(v)) + b"".join(map(pack, v))
    return b"\xdf" + struct.pack(">I", len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())


def record(kind, fields):
    sys.stdout.buffer.write(b"\x92\xa3acc" if kind == "acc" else b"\x92" + pack(kind))
    sys.stdout.buffer.write(pack(fields))


def main():
    n, hostile = int(sys.argv[1]), "hostile" in sys.argv
    bad = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> =1+1 \x1b[31m" if hostile else ""
    record("acc", {"v": 1, "minor": 0, "log": ["make.py"]})
    written = 0

    def put(kind, fields):
        nonlocal written
        written += 1
        record(kind, fields)

    for side in "device", "bench":
        put("source", {"root": "/data/" + side + bad, "host": "h", "id": "0000000" + str(len(side))})
    for k in range(50):
        put("stack", {"id": f"{k:016x}", "frames": [
            f"File /home/u/model.py, line {k + 10}, in forward{bad}, \n y = self.f{k}(x){bad}",
            "File /home/u/train.py, line 7, in <module>, \n loss = model(x)"]})
    calls = n // 4
    culprit = calls // 2
    for c in range(calls):
        rank, at = (0, c) if c < calls // 2 + 1 else (1, c - calls // 2 - 1)
        layer = at // 40
        key = f"Functional.linear.{at}.forward{bad}"
        for k, io in enumerate(["in", "in", "out", "out"]):
            err = 1e-7 * (1 + (c * 7 + k) % 13) if c < culprit or rank else 0.02 / (1 + c - culprit)
            both = {"kind": "tensor", "name": f"{key}.{io}put.{k % 2}", "key": key, "io": io, "pos": str(k % 2),
                    "scope": f"Module.layers.{layer}.mlp.MLP.forward.0{bad}", "stack": f"{c % 50:016x}",
                    "pass": "forward", "dtype": "f32", "shape": [8, 128, 512], "step": 0, "rank": rank,
                    "seq": c * 4 + k, "file": f"d/{c}.{k}.pt", "s.min": -1.5 - err, "s.max": 2.5 + c * 1e-5,
                    "s.mean": 0.01, "s.norm": 731.25 + c * .001,
                    "s.hash": f"{(rank << 40) + (c - (io == 'in')) * 2 + k % 2:016x}"}
            f = {"name": both["name"], "how": "source"}
            for side, src in ("a", "00000006"), ("b", "00000005"):
                f.update({side + "." + key: v for key, v in both.items()})
                f[side + ".src"] = src
            f.update({"m.mode": "tensor", "m.cosine": 1 - err, "m.max_abs": err * 3, "m.max_rel": err * 5,
                      "m.rel_l2": err, "m.err_rms": err, "m.err_max": err * 2, "m.ulp_max": int(err * 2 ** 24),
                      "m.ulp_hist": [3, 5, 9, 4, 1], "m.worst": [0, 1, k], "m.nonfinite": 0,
                      "m.same": 0.5, "m.outside": 0.0})
            if c % 1000 == 5:
                f["m.max_rel"] = float("inf")
            if c == culprit and io == "out" and k == 2:
                f.update({"bad": "error", "rule": "output", "value": 0.08, "limit": 1e-5, "limit_from": "dtype",
                          "why": "off" + bad, "m.where": "the last 4 channels of axis 2", "m.where.how": "times 1.03"})
            put("pair", f)
    put("finding", {"name": f"Functional.linear.{culprit}.forward{bad}", "what": "culprit", "io": "out", "pos": "0",
                    "step": 0, "rank": 0, "rule": "output", "value": 0.08, "limit": 1e-5, "limit_from": "dtype",
                    "confidence": 0.97, "stack": f"{culprit % 50:016x}",
                    "text": f"Functional.linear.{culprit}.forward{bad}: output 0 is off by up to 0.08 of the bench's "
                            "values (rms 0.02), worst at [0, 1, 2]; its inputs agree to 1.9e-07; at model.py:12 "
                            "in forward: a; b"})
    put("finding", {"what": "clean", "value": 3.0, "text": f"{culprit} earlier op calls within tolerance"})
    record("end", {"n": written, "st": 1})


if __name__ == "__main__":
    main()
