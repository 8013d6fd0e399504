#!/bin/sh
# MindSpore 2.10.0 on the CPU: nn.Conv2dTranspose(output_padding=1) computes what output_padding=0 gives, and puts zeros behind
# it: the last row and column hold neither what the kernel reaches there nor the bias. torch's ConvTranspose2d computes them:
# a row of ones through a kernel of ones, stride 2, padding 1, ends in 1 of the kernel and 1 of the bias.
# Seen on 2026-11-30: first row 2 3 2 3 2 3 2 0, last row all 0; by the definition 2 3 2 3 2 3 2 2, and the same last.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q mindspore==2.10.0 numpy==1.26.4
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END2'
import mindspore as ms
import numpy as np
from mindspore import nn

layer = nn.Conv2dTranspose(1, 1, 3, stride=2, pad_mode="pad", padding=1, output_padding=1, has_bias=True,
                           weight_init="ones", bias_init="ones")
got = layer(ms.Tensor(np.ones((1, 1, 4, 4), "f4"))).asnumpy()[0, 0]
# Each input adds the kernel at twice its place, less the padding; then the bias.
want = np.ones((10, 10))
for i in range(4):
    for k in range(4):
        want[2 * i:2 * i + 3, 2 * k:2 * k + 3] += 1
want = want[1:9, 1:9]
print("MindSpore", *got[0].astype(int), "... last row", *got[-1].astype(int))
print("defined  ", *want[0].astype(int), "... last row", *want[-1].astype(int))
assert (got[:7, :7] == want[:7, :7]).all()
assert not got[-1].any() and not got[:, -1].any()
assert want[-1].tolist() == [2, 3, 2, 3, 2, 3, 2, 2]
END2
