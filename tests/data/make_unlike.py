#!/usr/bin/python3
"""Writes tests/data/unlike/*.acc.gz again: one network as three programs (tests/unlike/make.py), measured and
recomputed side by side, and two pairs as accfirstbad gets them; the same of other networks as two programs.
Needs torch and msgpack; run in the root of the tree, after make."""
import gzip
import io
import os
import subprocess
import tempfile

import msgpack

OUT = "tests/data/unlike"
SIDE = "bin/accdump-read %s | bin/accaudit 2>/dev/null | bin/accmetric -q"
SEED = 1  # RMSNorm, SwiGLU: 2 layers


# Family, seed, what is wrong of the device's program: which streams.
FAMILIES = [("unet", 1, "", "sides pairs"), ("vit", 0, "", "sides pairs"), ("vit", 0, "bug:ddof", "pairs"),
            ("llama", 2, "", "sides pairs"), ("accum", 1, "", "pairs"), ("resnet", 41, "bug:same", "pairs")]


def text(v):
    """Without where it was made."""
    if isinstance(v, list):
        return [text(x) for x in v]
    if not isinstance(v, str):
        return v
    return v.replace(work, "/dump").replace(os.getcwd() + "/tests/unlike/", "/home/me/")


def write(name, command):
    got = subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE).stdout
    packed = io.BytesIO()
    for kind, fields in msgpack.Unpacker(io.BytesIO(got), raw=False, max_buffer_size=0):
        if kind == "acc":
            fields["log"] = ["made by make_unlike.py"]
        packed.write(msgpack.packb([kind, {k: text(v) for k, v in fields.items()}]))
    with open(f"{OUT}/{name}.acc.gz", "wb") as f:
        f.write(gzip.compress(packed.getvalue(), 9, mtime=0))


os.makedirs(OUT, exist_ok=True)
with tempfile.TemporaryDirectory() as work:
    def record(program, fault="", seed=SEED):
        folder = os.path.join(work, program.replace(":", "-") + ("-fault" if fault else ""))
        subprocess.run(["/usr/bin/python3", "tests/unlike/make.py", "--run", str(seed), program, "f32", folder, fault],
                       check=True, env=dict(os.environ, ACCREC_LIBRARY="bin/libaccrec.so.0"))
        return folder

    bench = record("hf")
    sides = {"megatron": record("megatron"), "nano": record("nano"),
             "megatron-fault": record("megatron", "scaled:Torch.baddbmm.0.forward")}
    write("hf", SIDE % bench)
    def pairs(name, device, other):
        write(name + "-pairs", f"bash -c 'bin/accalign <({SIDE % device}) <({SIDE % other}) | bin/accmetric -q'")

    for side, where in sides.items():
        write(side, SIDE % where)
        if side != "nano":
            pairs(side, where, bench)
    folders = {}
    for family, seed, bug, which in FAMILIES:
        for side in ("bench", "device"):
            fault = bug if side == "device" else ""
            if (family, side, fault) not in folders:
                folders[family, side, fault] = record(f"{family}:{side}", fault, seed)
            if "sides" in which:
                write(f"{family}-{side}", SIDE % folders[family, side, fault])
        pairs(family + bug.replace("bug:", "-"), folders[family, "device", bug], folders[family, "bench", ""])
