#!/usr/bin/env python3
"""What today's MindSpore writes of one small network on a CPU, into FOLDER:

    make_mindspore.py FOLDER     (no dot in its path: MindSpore refuses one)

    dump/               two steps by its Dump, graph mode, level of compilation O0
    net.ckpt            save_checkpoint; net.safetensors: the same weights in that format
    expected.json       of each file of the dump and each weight its shape, least and largest value and norm, by numpy
"""
import glob
import json
import os
import sys

folder = os.path.abspath(sys.argv[1])
dump = os.path.join(folder, "dump")
settings = os.path.join(folder, "dump.json")
with open(settings, "w") as f:
    json.dump({"common_dump_settings": {"op_debug_mode": 0, "dump_mode": 0, "path": dump, "net_name": "Net", "iteration": "all",
                                        "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": list(range(8))},
               "e2e_dump_settings": {"enable": True, "trans_flag": True}}, f)
os.environ["MINDSPORE_DUMP_CONFIG"] = settings

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", jit_config={"jit_level": "O0"})
ms.set_seed(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.act, self.fc2 = nn.Dense(6, 8), nn.LayerNorm((8,)), nn.GELU(), nn.Dense(8, 4)

    def construct(self, x):
        return ops.softmax(self.fc2(self.act(self.norm(self.fc1(x)))), axis=-1)


def numbers(a):
    x = a.astype(np.float64)
    return [list(a.shape), float(x.min()), float(x.max()), float(np.sqrt((x * x).sum()))]


net = Net()
x = ms.Tensor(np.random.RandomState(7).randn(5, 6).astype(np.float32))
net(x)
net(x * 2)
ms.save_checkpoint(net, os.path.join(folder, "net.ckpt"))
ms.save_checkpoint(net, os.path.join(folder, "net.safetensors"), format="safetensors")
files = glob.glob(dump + "/**/*.npy", recursive=True)
expected = {"dump": {os.path.relpath(p, dump): numbers(np.load(p)) for p in files},
            "weights": {p.name: numbers(p.asnumpy()) for p in net.get_parameters()}}
with open(os.path.join(folder, "expected.json"), "w") as f:
    json.dump(expected, f)
