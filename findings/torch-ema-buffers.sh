#!/bin/sh
# torch 2.15.0: swa_utils.AveragedModel averages parameters and, by default, copies buffers: the weights of an averaged network are
# means over steps, and its batch norms' running statistics those of the last step. What is evaluated by it belongs to no step, and
# a port that averages all of the state, or leaves buffers as they were at first, gives another evaluation with the same weights.
# Seen on 2026-11-29:
#   weight 2.29 of 2, 3, 4; running mean that of the network
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
cat >see.py <<'END'
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
net = torch.nn.BatchNorm1d(2)
mean = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
for _ in range(3):
    net(torch.randn(8, 2) + 5)
    with torch.no_grad():
        net.weight.add_(1)
    mean.update_parameters(net)
print("weight %.2f of 2, 3, 4;" % mean.module.weight[0], "running mean that of the network" if torch.equal(mean.module.running_mean, net.running_mean)
      else "running mean of its own")
assert abs(mean.module.weight[0].item() - 2.29) < 1e-5 and torch.equal(mean.module.running_mean, net.running_mean)
END
"$tmp/v/bin/python" -W ignore see.py
