#!/usr/bin/env python3
"""Logs of torch's DebugMode (torch 2.15): debugmode.py FOLDER writes right.txt, eps.txt (another eps in the second norm),
rows.txt (rows of what goes in change places), xor.txt (hash_tensor), plain.txt (no hashes) and right.json, eps.json; and
norms.json, of each op call with its output's L1 norm, which hooks of our own measured."""
import json
import os
import sys

import torch
from torch.utils._debug_mode import DebugMode


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
            "norm": torch.nn.LayerNorm(16), "up": torch.nn.Linear(16, 32), "down": torch.nn.Linear(32, 16)}) for _ in range(2))

    def forward(self, x):
        for f in self.layers:
            x = x + f["down"](torch.nn.functional.gelu(f["up"](f["norm"](x))))
        return torch.cat([x, x.flip(1)], 1).max(1).values


class Norms(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        y = func(*args, **(kwargs or {}))
        for t in y if isinstance(y, (list, tuple)) else (y,):
            self.out.append([func._schema.name, float(t.double().abs().sum())])
        return y


def run(m, x, hashes="norm", inputs=True):
    with torch.no_grad(), DebugMode(record_nn_module=True, record_ids=True) as d:
        if hashes is None:
            m(x)
        else:
            with DebugMode.log_tensor_hashes(hash_fn=hashes, hash_inputs=inputs):
                m(x)
    return d


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    m, x = Net(), torch.randn(3, 7, 16)
    torch.manual_seed(0)
    other = Net()
    other.layers[1]["norm"].eps = 0.1
    cases = {"right": run(m, x), "eps": run(other, x), "rows": run(m, x.flip(0)), "xor": run(m, x, "hash_tensor"),
             "both": run(m, x, ["norm", "hash_tensor"]), "plain": run(m, x, None)}
    for k, d in cases.items():
        with open(f"{out}/{k}.txt", "w") as f:
            f.write(d.debug_string(show_stack_trace=False) + "\n")
    for k in "right", "eps":
        DebugMode.save_logs(cases[k].logs, f"{out}/{k}.json")
    norms = []
    with torch.no_grad(), Norms(norms):
        m(x)
    with open(f"{out}/norms.json", "w") as f:
        json.dump(norms, f)


main()
