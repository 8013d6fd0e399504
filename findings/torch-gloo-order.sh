#!/bin/sh
# torch 2.15.0, gloo: scatter sends the memory of a tensor whose memory is not in the order of its axes (a transposed one) as it lies,
# and says nothing: the elements arrive in another order. torch.distributed.nn.functional.all_gather uses it for its gradient, which is
# therefore permuted wherever what comes behind transposes it, as attention does with gathered keys: same norm, same mean, other places.
# A bench of several processes on the CPU that gathers keys so trains otherwise than one process does. contiguous() before helps.
# Seen on 2026-11-29:
#   rank 0: [[[0.0, 16.0, 10.0], [8.0, 2.0, 18.0]]], right is [[[0.0, 8.0, 16.0], [2.0, 10.0, 18.0]]]
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
cat >see.py <<'END'
import os
import torch
import torch.distributed as dist
from torch.distributed.nn.functional import all_gather
child = os.fork()
rank = 0 if child else 1
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=rank, world_size=2)
a, w = torch.arange(6.).reshape(1, 2, 3).requires_grad_(), torch.arange(12.).reshape(1, 3, 4)
(torch.cat(all_gather(a), 1).transpose(1, 2) * w).sum().backward()
right = (2 * w).transpose(1, 2)[:, 2 * rank:2 * rank + 2]
status = 0
if rank == 0:
    print("rank 0:", a.grad.tolist(), "right is", right.tolist())
    status = int(torch.equal(a.grad, right) or sorted(a.grad.flatten().tolist()) != sorted(right.flatten().tolist()))
dist.barrier()
if child:
    os.waitpid(child, 0)
os._exit(status)
END
"$tmp/v/bin/python" -u -W ignore see.py
