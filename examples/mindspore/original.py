#!/usr/bin/env python3
"""A small network of torch, whose weights and batch port.py reads from net.npz. Run this one first."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import accrecord

accrecord.start_record(output_dir="rec")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.ln, self.fc2 = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 7)

    def forward(self, x, t):
        return F.cross_entropy(self.fc2(F.gelu(self.ln(self.fc1(x)))), t)


torch.manual_seed(0)
net, r = Net(), np.random.RandomState(1)
x, t = r.randn(5, 12).astype("f4"), r.randint(0, 7, 5)
np.savez("net.npz", x=x, t=t, **{k: v.detach().numpy() for k, v in net.state_dict().items()})
print(net(torch.from_numpy(x), torch.from_numpy(t)).item())
