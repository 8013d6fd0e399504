#!/usr/bin/python3
"""Writes tests/data/unlike/*.acc.gz again: one network as three programs (tests/unlike/make.py), measured and
recomputed side by side, and two pairs as accfirstbad gets them; the same of other networks as two programs.
With names of FAMILIES as arguments, these alone. Needs torch and msgpack; run in the root of the tree, after
make."""
import gzip
import io
import os
import subprocess
import sys
import tempfile

import msgpack

sys.path.insert(0, "examples")
from read_stream import records  # noqa: E402

OUT = "tests/data/unlike"
SIDE = "bin/accdump-read %s | bin/accaudit 2>/dev/null | bin/accmetric -q"
STACKLESS = "bin/accdump-read %s | LC_ALL=C sed s/stack/stbck/g | bin/accmetric -q"    # as of a recorder without stacks
SEED = 1  # RMSNorm, SwiGLU: 2 layers


# By name: family, seed, dtype, what is wrong of the device's program, which streams.
FAMILIES = {"unet": ("unet", 1, "f32", "", "sides pairs"), "vit": ("vit", 0, "f32", "", "sides pairs"),
            "vit-ddof": ("vit", 0, "f32", "bug:ddof", "pairs"), "llama": ("llama", 2, "f32", "", "sides pairs"),
            "accum": ("accum", 1, "f32", "", "pairs"), "resnet-same": ("resnet", 41, "f32", "bug:same", "pairs"),
            "unet-order": ("unet", 41, "f32", "bug:order", "pairs"), "llama-bf16": ("llama", 41, "bf16", "", "pairs"),
            "llama-repeat": ("llama", 41, "bf16", "bug:repeat", "pairs"), "rnn-gates": ("rnn", 41, "f32", "bug:gates", "pairs"),
            "bert-ddof": ("bert", 42, "f32", "bug:ddof", "pairs"), "moe-bf16": ("moe", 43, "bf16", "", "pairs"),
            "tcn-slope": ("tcn", 42, "bf16", "bug:slope", "pairs"), "moe-order": ("moe", 42, "bf16", "bug:order", "pairs"),
            "bert-bf16": ("bert", 44, "bf16", "", "pairs"), "vit-stackless": ("vit", 42, "f32", "", "stackless pairs")}
ONLY = sys.argv[1:]


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
    for kind, fields in records(io.BytesIO(got)):
        if kind == "acc":
            fields["log"] = ["made by make_unlike.py"]
        packed.write(msgpack.packb([kind, {k: text(v) for k, v in fields.items()}]))
    with open(f"{OUT}/{name}.acc.gz", "wb") as f:
        f.write(gzip.compress(packed.getvalue(), 9, mtime=0))


os.makedirs(OUT, exist_ok=True)
with tempfile.TemporaryDirectory() as work:
    def record(program, fault="", seed=SEED, dtype="f32"):
        folder = os.path.join(work, program.replace(":", "-") + (f"-{seed}-{dtype}" if seed != SEED else "") + ("-fault" if fault else ""))
        if not os.path.exists(folder):
            subprocess.run(["/usr/bin/python3", "tests/unlike/make.py", "--run", str(seed), program, dtype, folder, fault],
                           check=True, env=dict(os.environ, ACCREC_LIBRARY="bin/libaccrec.so.0"))
        return folder

    def pairs(name, device, other, side=SIDE):
        write(name + "-pairs", f"bash -c 'bin/accalign <({side % device}) <({side % other}) | bin/accmetric -q'")

    if not ONLY:
        bench = record("hf")
        sides = {"megatron": record("megatron"), "nano": record("nano"),
                 "megatron-fault": record("megatron", "scaled:Torch.baddbmm.0.forward")}
        write("hf", SIDE % bench)
        for side, where in sides.items():
            write(side, SIDE % where)
            if side != "nano":
                pairs(side, where, bench)
    for name, (family, seed, dtype, bug, which) in FAMILIES.items():
        if ONLY and name not in ONLY:
            continue
        of = {side: record(f"{family}:{side}", bug if side == "device" else "", seed, dtype) for side in ("bench", "device")}
        for side in ("bench", "device") if "sides" in which else ():
            write(f"{family}-{side}", SIDE % of[side])
        pairs(name, of["device"], of["bench"], STACKLESS if "stackless" in which else SIDE)
