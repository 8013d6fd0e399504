#!/bin/sh
# torch 2.15.0, torch.distributed.checkpoint: load() into tensors of another dtype converts them without a word, float32 into
# bfloat16 and integers into floats, since it copies into what is there; a strict load_state_dict behind it sees nothing.
# Another shape is refused. A run that is resumed with a model built in bfloat16 has lost its master weights.
# Seen on 2026-11-29:
#   float32 1.0000009536743164 is 1.0 (bfloat16), int64 16777217 is 16777216.0 (float32)
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import torch
import torch.distributed.checkpoint as dcp
dcp.save({"w": torch.tensor([1 + 2.0 ** -20]), "n": torch.tensor([2 ** 24 + 1])}, checkpoint_id="c")
into = {"w": torch.zeros(1, dtype=torch.bfloat16), "n": torch.zeros(1)}
dcp.load(into, checkpoint_id="c")
print({k: (v.item(), v.dtype) for k, v in into.items()})
assert into["w"].dtype == torch.bfloat16 and into["w"].item() == 1 and into["n"].item() == 2 ** 24
try:
    dcp.load({"w": torch.zeros(1, 1)}, checkpoint_id="c")
    raise AssertionError("another shape is taken now")
except dcp.api.CheckpointException:
    pass
END
