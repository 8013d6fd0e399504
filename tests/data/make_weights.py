#!/usr/bin/python3
"""Weights as two frameworks would hold them, for tests/weights.bats:
/usr/bin/python3 tests/data/make_weights.py (torch 1.13) writes tests/data/weights/*.pt again."""
import os

import torch

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights")
os.makedirs(here, exist_ok=True)
torch.manual_seed(3)


def save(name, what):
    torch.save(what, os.path.join(here, name + ".pt"))


base = {
    "emb.weight": torch.randn(6, 4),
    "h.0.q.weight": torch.randn(4, 4),
    "h.0.k.weight": torch.randn(4, 4),
    "h.0.v.weight": torch.randn(4, 4),
    "h.0.norm.weight": torch.ones(4),
    "h.0.norm.bias": torch.zeros(4),
    "h.0.fc.weight": torch.randn(5, 4),
    "h.0.fc.bias": torch.randn(5),
}
save("base", base)
# The same: inside a wrapper; one in bf16; one is a transposed view; the words of MindSpore.
same = {"module." + k: v.clone() for k, v in base.items()}
same["module.emb.weight"] = base["emb.weight"].bfloat16()
same["module.h.0.fc.weight"] = base["h.0.fc.weight"].t()
for old, new in ("weight", "gamma"), ("bias", "beta"):
    same["module.h.0.norm." + new] = same.pop("module.h.0.norm." + old)
save("wrapped", {"epoch": 3, "state": same})
base_bf16 = dict(base)
base_bf16["emb.weight"] = base["emb.weight"].bfloat16().float()
save("base_bf16", base_bf16)
# q, k and v packed, and other names, as a rule can say.
packed = {"transformer." + k.replace("h.0", "layers.0"): v for k, v in base.items()
          if k[4:] not in ("q.weight", "k.weight", "v.weight")}
packed["transformer.layers.0.qkv.weight"] = torch.cat([base["h.0.%s.weight" % c] for c in "qkv"])
save("packed", packed)
# Nothing in common but the content.
save("strange", {"w%d" % i: v for i, v in enumerate(reversed(list(base.values())))})
# Other values in two, one missing, one too many, one of another shape.
other = dict(base)
other["h.0.k.weight"] = base["h.0.k.weight"] + 0.25 * torch.eye(4)
other["h.0.fc.bias"] = base["h.0.fc.bias"] * 3
del other["h.0.norm.bias"]
other["h.0.scale"] = torch.ones(2, 2)
other["emb.weight"] = torch.randn(7, 5)
save("other", other)
# A conversion that forgot where square matrices are transposed.
turned = dict(base)
turned["h.0.q.weight"] = base["h.0.q.weight"].t().contiguous()
save("turned", turned)
# Batches.
for name, seed in ("batch_npu", 1), ("batch_gpu", 1), ("batch_other", 2):
    torch.manual_seed(seed)
    words = ("input_ids", "labels") if name != "batch_gpu" else ("tokens", "target")
    save(name, {w: torch.randint(0, 1000, (2, 6)) for w in words})
save("one_npu", torch.arange(6.0))
save("one_gpu", torch.arange(6.0).reshape(2, 3))

# The same network as two frameworks hold it: no name in common, q, k and v packed by heads, gate
# and up one behind the other, the vocabulary padded.
hf, mg = {"embed": torch.randn(10, 8)}, {}
mg["word_embeddings"] = torch.cat([hf["embed"], torch.zeros(6, 8)])
for l in range(2):
    t = {n: torch.randn(*d) for n, d in (("q", (8, 8)), ("k", (8, 8)), ("v", (8, 8)), ("o", (8, 8)),
                                         ("gate", (12, 8)), ("up", (12, 8)), ("down", (8, 12)), ("ln", (8,)))}
    hf.update({"layers.%d.%s_proj" % (l, n): v for n, v in t.items()})
    mg["block%d.attn_qkv" % l] = torch.stack([t[n].view(2, 4, 8) for n in "qkv"], 1).reshape(24, 8)
    mg["block%d.attn_out" % l] = t["o"]
    mg["block%d.fc1" % l] = torch.cat([t["gate"], t["up"]])
    mg["block%d.fc2" % l] = t["down"].t().contiguous()
    mg["block%d.scale" % l] = t["ln"]
save("converted", mg)
save("original", hf)
