#!/bin/sh
# torch 2.15.0 on the CPU: 16-bit sums over many terms are right where they are a sum (sum, cumsum, scatter_add accumulate in
# float32), and stand still in index_add, index_put with accumulate and the gradient of an embedding, which add in the dtype
# itself: 4,096 ones give 256 in bfloat16, 2,048 in float16. A frequent token's gradient is cut off by that, with no NaN and no
# word.
# Seen on 2026-11-29:
#   bfloat16: sum 4096 cumsum 4096 scatter_add 4096 index_add 256 index_put 256 embedding 256
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import torch
import torch.nn.functional as F
at = torch.zeros(4096, dtype=torch.long)
for t, stop in ((torch.bfloat16, 256), (torch.float16, 2048)):
    x, zero = torch.ones(4096, dtype=t), torch.zeros(1, dtype=t)
    w = torch.zeros(1, 1, dtype=t, requires_grad=True)
    F.embedding(at, w).sum().backward()
    got = {"sum": x.sum(), "cumsum": x.cumsum(0)[-1], "scatter_add": zero.scatter_add(0, at, x)[0], "index_add": zero.index_add(0, at, x)[0],
           "index_put": zero.index_put((at,), x, accumulate=True)[0], "embedding": w.grad[0, 0]}
    print(t, {k: v.item() for k, v in got.items()})
    assert [v.item() for v in got.values()] == [4096] * 3 + [stop] * 3
END
