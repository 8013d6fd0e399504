#!/usr/bin/python3
"""settings/*.pt: checkpoints of one optimizer with two groups of parameters, which differ in their settings or the groups' order.
Needs torch."""
import os

import torch

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings")
os.makedirs(out, exist_ok=True)


def save(name, *groups):
    torch.manual_seed(1)
    weights = {k: torch.nn.Parameter(torch.randn(n)) for k, n in (("a", 6), ("b", 3), ("c", 2))}
    optimizer = torch.optim.AdamW([{"params": [weights[k] for k in keys], "weight_decay": decay} for keys, decay in groups], lr=1e-3)
    torch.save({"model": {k: v.detach() for k, v in weights.items()}, "optimizer": optimizer.state_dict()}, os.path.join(out, name + ".pt"))


save("bench", ("a", 0.1), ("bc", 0.0))
save("order", ("bc", 0.0), ("a", 0.1))
save("decay", ("a", 0.1), ("bc", 0.1))
save("one", ("abc", 0.1))
