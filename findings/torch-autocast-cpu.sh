#!/bin/sh
# torch 2.15.0: autocast on the CPU leaves softmax, log_softmax, layer_norm, exp, sum and norm of bfloat16 in bfloat16; on CUDA
# the same context takes them in float32, as torch's documentation lists. Only losses are float32 on both. So a bench that is
# recorded on the CPU under autocast is the coarser side at each softmax, and a device that follows CUDA's list looks wrong.
# Seen on 2026-11-29:
#   bfloat16: softmax log_softmax layer_norm exp sum norm; float32: cross_entropy mse_loss
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import torch
import torch.nn.functional as F
x = torch.randn(4, 8).bfloat16()
calls = {"softmax": lambda: F.softmax(x, -1), "log_softmax": lambda: F.log_softmax(x, -1), "layer_norm": lambda: F.layer_norm(x, (8,)), "exp": lambda: x.exp(),
         "sum": lambda: x.sum(), "norm": lambda: x.norm(), "cross_entropy": lambda: F.cross_entropy(x, torch.zeros(4, dtype=torch.long)),
         "mse_loss": lambda: F.mse_loss(x, -x)}
with torch.autocast("cpu", dtype=torch.bfloat16):
    got = {name: str(f().dtype)[6:] for name, f in calls.items()}
print(got)
assert [n for n in got if got[n] == "float32"] == ["cross_entropy", "mse_loss"] and set(got.values()) == {"float32", "bfloat16"}
END
