"""Checkpoints for run: weights.py FOLDER DTYPE makes ranks, dcp and one, the same model as Megatron saves
it over tensor=2 pipeline=2, as PyTorch's DCP does over four ranks, and in one file of other names."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "weights"))
import make  # noqa: E402
import ranks  # noqa: E402

make.D, make.F, make.V, make.H, make.KV = 1024, 2816, 32000, 16, 8
make.HD = make.D // make.H


class Rng:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def normal(self, mean, scale, shape):
        return self.rng.standard_normal(shape, dtype="f4") * np.float32(scale) + np.float32(mean)


out, dtype = sys.argv[1:]
net = make.llama(Rng(), layers=8)
megatron = make.megatron(net, kv=make.KV, te=True, pad_to=32256)
ranks.save_ranks(os.path.join(out, "ranks"), ranks.split(megatron, 2, 2, 1), 2, 2, 1, dtype)
ranks.save_dcp(os.path.join(out, "dcp"), net, 4, dtype)
make.safetensors(os.path.join(out, "one"), {k: make.cast(w.v, dtype) for k, w in net.items()})
