#!/usr/bin/python3
"""tests/data/byhand: recordings by hooks of one's own, a dict in a file for each module, and
checkpoints under other names. Needs torch: /usr/bin/python3 make_byhand.py"""
import os
import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "byhand")


def record(side, wrong):
    torch.manual_seed(1)
    os.makedirs(os.path.join(HERE, side), exist_ok=True)
    x = torch.randn(4, 8)
    weight = {n: torch.randn(8, 8) * 0.3 for n in ("emb", "act", "fc", "head")}
    for n in ("emb", "act", "fc", "head"):
        y = torch.nn.functional.gelu(x) if n == "act" else x @ weight[n]
        if n == wrong:
            y[..., -2:] *= 1.03
        g = torch.randn(4, 8)
        torch.save({"in": [x], "out": y, "grad_output": [g]}, os.path.join(HERE, side, n + ".pt"))
        x = y


def weights():
    torch.manual_seed(2)
    names = (("wq", "self_attn.q_proj"), ("wk", "self_attn.k_proj"), ("wo", "self_attn.o_proj"), ("w1", "mlp.gate_proj"))
    own, hf = {}, {}
    for i in range(2):
        for a, b in names:
            own[f"layers.{i}.{a}.weight"] = t = torch.randn(8, 8)
            hf[f"model.layers.{i}.{b}.weight"] = t.clone()
    bad = {k: v.clone() for k, v in own.items()}
    bad["layers.1.w1.weight"][3, 4] += 1
    other = {k: torch.randn(8, 8) for k in own}
    for name, d in (("", own), ("_hf", dict(sorted(hf.items()))), ("_bad", bad), ("_other", other)):
        torch.save(d, os.path.join(HERE, f"weights{name}.pt"))
    # As list(model.named_parameters()), in another order.
    torch.save(list(bad.items())[::-1], os.path.join(HERE, "weights_bad_list.pt"))


record("npu", "emb")
record("gpu", None)
weights()
