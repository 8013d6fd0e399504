#!/usr/bin/python3
"""chunks.py FOLDER: a layer's MLP whose parts are made of whole chunks of 65,536 elements, as Megatron saves it
over two ranks (FOLDER/ranks), and in one file of other names (FOLDER/one). Needs numpy and torch; the tests have
it as tests/data/weights/chunks.tar.gz. All values are multiples of 1/128, and repeat, so that it is small."""
import os
import sys

import numpy as np

import make
import ranks

D, F = 512, 256


def weight(rows, columns, k):
    return ((np.arange(rows * columns) * k % 241 - 120) / 128).astype('f4').reshape(rows, columns)


out = sys.argv[1]
gate, up, down = weight(F, D, 7), weight(F, D, 11), weight(D, F, 13)
norm = weight(1, D, 17)[0]
mlp = 'model.decoder.layers.0.mlp.linear_'
parts = {}
for t in range(2):
    rows = slice(t * F // 2, (t + 1) * F // 2)
    parts[t, 0, 0] = {mlp + 'fc1.layer_norm_weight': (None, norm),
                      mlp + 'fc1.weight': (None, np.concatenate([gate[rows], up[rows]])),
                      mlp + 'fc2.weight': (None, down[:, rows])}
ranks.save_ranks(os.path.join(out, 'ranks'), parts, 2, 1, 1, 'bf16')
name = 'model.layers.0.'
make.safetensors(os.path.join(out, 'one'), {
    k: make.cast(v, 'bf16') for k, v in {name + 'post_attention_layernorm.weight': norm,
                                         name + 'mlp.gate_proj.weight': gate, name + 'mlp.up_proj.weight': up,
                                         name + 'mlp.down_proj.weight': down}.items()})
