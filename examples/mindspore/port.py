#!/usr/bin/env python3
"""The same network in MindSpore, with two defaults that are not torch's: MINDSPORE_DUMP_CONFIG=dump.json python3 port.py"""
import mindspore as ms
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.ln, self.fc2 = nn.Dense(12, 16), nn.LayerNorm((16,)), nn.Dense(16, 7)
        self.act, self.loss = nn.GELU(), nn.CrossEntropyLoss()

    def construct(self, x, t):
        return self.loss(self.fc2(self.act(self.ln(self.fc1(x)))), t)


net, w = Net(), np.load("net.npz")
for p in net.get_parameters():
    p.set_data(ms.Tensor(w[p.name.replace("gamma", "weight").replace("beta", "bias")]))
print(net(ms.Tensor(w["x"]), ms.Tensor(w["t"].astype("i4"))))
