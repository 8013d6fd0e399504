#!/usr/bin/python3
"""Writes tests/data/unlike/*.acc.gz again: one network as three programs (tests/unlike/make.py), measured and
recomputed side by side, and two pairs as accfirstbad gets them. Needs torch and msgpack; run in the root of
the tree, after make."""
import gzip
import io
import os
import subprocess
import tempfile

import msgpack

OUT = "tests/data/unlike"
SIDE = "bin/accdump-read %s | bin/accaudit 2>/dev/null | bin/accmetric -q"
SEED = 1  # RMSNorm, SwiGLU: 2 layers


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
    def record(program, fault=""):
        folder = os.path.join(work, program + ("-fault" if fault else ""))
        subprocess.run(["/usr/bin/python3", "tests/unlike/make.py", "--run", str(SEED), program, "f32", folder, fault],
                       check=True, env=dict(os.environ, ACCREC_LIBRARY="bin/libaccrec.so.0"))
        return folder

    bench = record("hf")
    sides = {"megatron": record("megatron"), "nano": record("nano"),
             "megatron-fault": record("megatron", "scaled:Torch.baddbmm.0.forward")}
    write("hf", SIDE % bench)
    for side, where in sides.items():
        write(side, SIDE % where)
        if side != "nano":
            write(side + "-pairs", f"bash -c 'bin/accalign <({SIDE % where}) <({SIDE % bench}) | bin/accmetric -q'")
