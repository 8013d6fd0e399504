#!/usr/bin/env python3
"""By which factor of an adapter's product PEFT's merged weights are off from their base, and what that leaves: the
limits adapter-rest and adapter-scale. Three dtypes, two shapes, adapters of three sizes, two ranks, four factors.

tests/weights/adapters.py     (torch 2.15, peft 0.21.2)"""
import warnings

import torch
from peft import LoraConfig, get_peft_model

warnings.filterwarnings("ignore")


class Model(torch.nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.q = torch.nn.Linear(m, n, bias=False)

    def forward(self, x):
        return self.q(x)


def build(n, m, dtype, size, alpha, r, seed):
    """The base, the product of its adapter times alpha / r, and both merged."""
    torch.manual_seed(seed)
    net = Model(n, m)
    net.q.weight.data.normal_(0, 0.02)
    p = get_peft_model(net.to(dtype), LoraConfig(target_modules=["q"], r=r, lora_alpha=alpha))
    torch.manual_seed(seed + 1)
    for k, v in p.named_parameters():
        if "lora_" in k:
            v.data = (torch.randn(v.shape) * (size if "lora_B" in k else m ** -0.5)).to(v.dtype)
    q = p.base_model.model.q
    base = q.base_layer.weight.data.double().clone()
    product = q.lora_B.default.weight.data.double() @ q.lora_A.default.weight.data.double() * alpha / r
    return base, product, p.merge_and_unload().q.weight.data.double()


def fit(other, base, product):
    d = other - base
    dp, pp, dd = (d * product).sum(), (product ** 2).sum(), (d ** 2).sum()
    return (dp / pp).item(), torch.sqrt((dd - dp * dp / pp).clamp(min=0) / dd).item()


right, other = [], []
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for n, m in ((64, 48), (256, 512)):
        for size in (1e-3, 1e-2, 1e-1):
            for r in (4, 16):
                base, product, _ = build(n, m, dtype, size, 8, r, 5)
                for f in (0.5, 1, 2, 4):
                    scale, left = fit(build(n, m, dtype, size, 8 * f, r, 5)[2], base, product)
                    right.append((left, abs(scale / f - 1)))
                other.append(fit(base + build(n, m, dtype, size, 8, r, 77)[1], base, product)[1])
said = [x for x in right if x[0] <= 0.1]
print(f"{len(right)} merged, {len(said)} leave 0.1 at most, their factor is off by {max(x[1] for x in said):.2g} at most; "
      f"another adapter leaves {min(other):.4f} at least")
