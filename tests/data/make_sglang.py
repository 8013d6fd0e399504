#!/usr/bin/python3
"""Makes sglang/device and sglang/bench: two folders as the dumper of SGLang and miles writes them
(sglang/srt/debug_utils/dumper.py: a file a tensor, {"value": ..., "meta": ...}, everything in
the file's name), of two ranks and two layers; on rank 1, layer 1's mlp_out is off on the device.

    /usr/bin/python3 tests/data/make_sglang.py    # Debian 12: python3-torch
"""
import os
import shutil

import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sglang")


def save(side, value, name, step, rank, index, old=False, **more):
    meta = dict(step=step, rank=rank, dump_index=index, name=name, dims="t h", **more)
    words = ["%s=%s" % (k, v) for k, v in more.items()]
    if old:
        names = ["forward_pass_id=%d" % step, "rank=%d" % rank, "name=" + name, "dump_index=%d" % index]
    else:
        names = ["step=%d" % step, "rank=%d" % rank, "dump_index=%d" % index, "name=" + name,
                 "recompute_status=disabled"] + words
    folder = os.path.join(HERE, side, "dump_1700000000" if side == "device" else "")
    os.makedirs(folder, exist_ok=True)
    torch.save({"value": value, "meta": meta}, os.path.join(folder, "___".join(names) + ".pt"))


shutil.rmtree(HERE, ignore_errors=True)
for side in "device", "bench":
    for rank in 0, 1:
        torch.manual_seed(rank)
        x, i = torch.randn(2, 4), 1
        # Eleven before ten: numbers, not letters, order the files.
        for n in range(9):
            save(side, torch.full((2,), float(n)), "pad", 0, rank, i)
            i += 1
        for layer in 0, 1:
            w = torch.randn(4, 4)
            save(side, w, "param__mlp.weight", 0, rank, i, layer_id=layer)
            save(side, x, "non_intrusive__mlp.inputs.0", 0, rank, i + 1, layer_id=layer)
            x = x @ w
            if side == "device" and rank == 1 and layer == 1:
                x[0, 2] *= 1.02
            save(side, x, "mlp_out", 0, rank, i + 2, layer_id=layer)
            i += 3
        save(side, torch.ones(2, 4), "grad__mlp_out", 0, rank, i, layer_id=1)
        save(side, torch.tensor([7, 8]), "ids", 1, rank, i + 1, old=True)
