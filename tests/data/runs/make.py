#!/usr/bin/env python3
"""Folders of runs as trackers leave them, in the forms of MLflow 3.17, W&B 0.31 and SwanLab 0.10, with numbers of
our own. The logs of the last two are written by hand here: blocks of 32 KiB, messages of protobuf."""
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))


def put(path, text):
    path = os.path.join(HERE, "mlflow", path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


put("meta.yaml", "artifact_uri: file:///runs/1/ab/artifacts\nend_time: 1795874370802\nexperiment_id: '1'\n"
    "run_id: ab\nrun_name: awesome-hog-977\nstart_time: 1795874370600\nstatus: 3\nuser_id: me\n")
put("metrics/train/loss", "".join(f"{1795874370660 + i} {4 / (i + 1)!r} {10 * i}\n" for i in range(8)))
put("metrics/val_loss", "1795874370650 nan 0\n1795874370700 3.5 40\n1795874370701 3.25 70\n")
for k, v in {"learning_rate": "0.003", "batch_size": "8", "model": "{'hidden': 32}"}.items():
    put(f"params/{k}", v)


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, v):
    if isinstance(v, int):
        return varint(number << 3) + varint(v)
    if isinstance(v, float):
        return varint(number << 3 | 1) + struct.pack("<d", v)
    v = v.encode() if isinstance(v, str) else v
    return varint(number << 3 | 2) + varint(len(v)) + v


def log(path, magic, records):
    """Parts of records, none across the end of a block; what is left of one is zero."""
    out = magic + b"\xe1\xbe\0"
    for r in records:
        first = True
        while first or r:
            left = 32768 - len(out) % 32768
            if left < 7:
                out += bytes(left)
                left = 32768
            part, r = r[:left - 7], r[left - 7:]
            kind = bytes([(1 if first else 4) if not r else (2 if first else 3)])
            out += struct.pack("<IH", zlib.crc32(kind + part), len(part)) + kind + part
            first = False
    with open(os.path.join(HERE, path), "wb") as f:
        f.write(out)


def item(key, value, nested=False):
    return field(1, field(2 if nested else 1, key) + field(16, value))


def wandb(path, rate, losses):
    config = item("_wandb", "{}") + item("learning_rate", repr(rate)) + item("optimizer", '"adamw"') + item("note", "null")
    records = [field(1, 1) + field(17, field(1, "abc") + field(4, config))]
    # One that spans blocks: a table that is no number.
    records.append(field(1, 2) + field(2, item("table", '"%s"' % ("x" * 40000)) + field(2, field(1, 0))))
    for i, v in enumerate(losses):
        text = "NaN" if v != v else repr(v)
        records.append(field(1, 3 + i) + field(2, item("train/loss", text, i % 2 == 1) + item("_runtime", "9") +
                                              item("_step", str(i)) + field(2, field(1, i))))
    records.append(field(1, 99) + field(5, item("batch_size", "8")))
    log(path, b":W&B", records)


wandb("run-abc.wandb", 0.001, [4.0, 2.0, float("nan"), 1.0])
log("run-abc.swanlab", b":SWL", [
    field(1, i) + field(13, field(1, key) + (field(2, i) if i else b"") + field(3, kind) +
                        field(5, field(1, v) if v else b""))
    for key, kind in (("loss", 1), ("__swanlab__.cpu.pct", 1), ("picture", 2)) for i, v in enumerate((4.0, 2.0, 0.0))])
