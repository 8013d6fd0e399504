#!/usr/bin/env python3
"""Makes tests/data/weights/scaled.tar.gz: a layer of a Llama as AutoAWQ leaves it, whose columns are scaled and folded
into what comes before, clipped or not; and with faults.

python3 tests/data/make_scaled.py AUTOAWQ

torch 2.15; AUTOAWQ is the folder of the sources of autoawq 0.2.9, whose scale_ln_fcs, scale_fc_fc, apply_clip and
WQLinear_GEMM are what is run. Factors are those of its _compute_best_scale, of activations of several sizes, with half
of their exponent."""
import os
import sys
import tarfile
import tempfile
import types

import torch
from safetensors.torch import save_file

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "scaled.tar.gz")
awq = os.path.join(sys.argv[1], "awq")


def module(name, **more):
    m = types.ModuleType(name)
    m.__dict__.update(more)
    sys.modules[name] = m
    return m


class Norm(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.2 * torch.randn(n))


module("awq").__path__ = [awq]
for n in ("modules", "modules.linear", "utils", "quantize"):
    module("awq." + n).__path__ = [os.path.join(awq, n.replace(".", "/"))]
# What it imports of transformers 4 alone; of the norms only Llama's is used.
for n, c in (("bloom", "BloomGelu"), ("llama", "LlamaRMSNorm"), ("gemma", "GemmaRMSNorm"), ("gemma2", "Gemma2RMSNorm"),
             ("cohere", "CohereLayerNorm")):
    module(f"transformers.models.{n}.modeling_{n}", **{c: Norm if n == "llama" else type(c, (torch.nn.Module,), {})})
module("transformers.activations", **{c: type(c, (torch.nn.Module,), {}) for c in
                                      ("NewGELUActivation", "PytorchGELUTanh", "GELUActivation")})
module("awq.utils.utils", get_best_device=lambda: "cpu", clear_memory=lambda *a: None)
module("awq.utils.module", get_op_by_name=lambda m, n: m.get_submodule(n), set_op_by_name=None, try_import=lambda n: (None, ""))

from awq.modules.act import ScaledActivation  # noqa: E402
from awq.modules.linear.gemm import WQLinear_GEMM  # noqa: E402
from awq.quantize import scale  # noqa: E402

D, F, G = 64, 128, 32
torch.manual_seed(49)


def layer():
    m = torch.nn.Module()
    m.input_layernorm, m.post_attention_layernorm = Norm(D), Norm(D)
    m.self_attn, m.mlp = torch.nn.Module(), torch.nn.Module()
    for n in "qkvo":
        setattr(m.self_attn, n + "_proj", torch.nn.Linear(D, D, bias=False))
    m.mlp.gate_proj, m.mlp.up_proj = torch.nn.Linear(D, F, bias=False), torch.nn.Linear(D, F, bias=False)
    m.mlp.down_proj = torch.nn.Linear(F, D, bias=False)
    for x in m.modules():
        if isinstance(x, torch.nn.Linear):
            x.weight.data = torch.randn(x.weight.shape) * 0.05
    return m.half()


def factors(n):
    s = torch.exp(torch.randn(n)).pow(0.5)
    return (s / (s.max() * s.min()).sqrt()).half()


PLAN = (("input_layernorm", ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], D),
        ("self_attn.v_proj", ["self_attn.o_proj"], D),
        ("post_attention_layernorm", ["mlp.gate_proj", "mlp.up_proj"], D), ("mlp.up_proj", ["mlp.down_proj"], F))


def fold(m, plan=PLAN, columns=True, rows=True):
    for before, behind, n in plan:
        s, prev = factors(n), m.get_submodule(before)
        fcs = [m.get_submodule(x) for x in behind]
        own, all_ = prev.weight.data.clone(), [x.weight.data.clone() for x in fcs]
        (scale.scale_ln_fcs if isinstance(prev, Norm) else scale.scale_fc_fcs)(prev, fcs, s)
        if not rows:
            prev.weight.data = own
        if not columns:
            for x, w in zip(fcs, all_):
                x.weight.data = w


def quantized(w):
    """pseudo_quantize_tensor, with zero points."""
    low, high = w.amin(-1).clamp(max=0), w.amax(-1).clamp(min=0)
    s = ((high - low).clamp(min=1e-5) / 15).half().float()
    z = torch.round(-low / s).clamp(0, 15)
    return (torch.clamp(torch.round(w / s[..., None]) + z[..., None], 0, 15) - z[..., None]) * s[..., None], s, z


def best_clip(w, steps=20, shrink=0.5):
    """What _compute_best_clip does: of each group the range that changes its outputs least."""
    x = torch.randn(1, 64, w.shape[1] // G, G) * torch.exp(torch.randn(G))
    w = w.view(w.shape[0], 1, -1, G)
    most = w.abs().amax(-1, keepdim=True)
    best, least, out = most.clone(), torch.full_like(most, 1e9), (x * w).sum(-1)
    for i in range(int(shrink * steps)):
        end = most * (1 - i / steps)
        err = ((x * quantized(torch.clamp(w, -end, end))[0]).sum(-1) - out).pow(2).mean(1).view(least.shape)
        best, least = torch.where(err < least, end, best), torch.minimum(err, least)
    return best.squeeze(1)


def put(name, m, clip=False):
    out = {"model.layers.0." + k: v.data.clone() for k, v in m.named_parameters()}
    for k, x in list(m.named_modules()):
        if not isinstance(x, torch.nn.Linear):
            continue
        if clip and k[-6] not in "qk":
            scale.apply_clip(m, [(k, best_clip(x.weight.data.float()).half())])
        q, s, z = quantized(x.weight.data.float().view(x.weight.shape[0], -1, G))
        lin = torch.nn.Linear(x.in_features, x.out_features, bias=False)
        lin.weight.data = q.view(x.weight.shape)
        packed = WQLinear_GEMM.from_linear(lin, 4, G, scales=s.T.contiguous(), zeros=z.T.contiguous())
        del out[f"model.layers.0.{k}.weight"]
        for a in ("qweight", "qzeros", "scales"):
            out[f"model.layers.0.{k}.{a}"] = getattr(packed, a)
    save_file({k: v.contiguous() for k, v in out.items()}, name + ".safetensors")


def main():
    import copy
    base = layer()
    save_file({"model.layers.0." + k: v.data.clone() for k, v in base.named_parameters()}, "base.safetensors")

    def made(name, change=lambda m: None, clip=False, behind=lambda m: None, **how):
        m = copy.deepcopy(base)
        change(m)
        fold(m, **how)
        behind(m)
        put(name, m, clip)

    def row(m):
        m.self_attn.k_proj.weight.data[3] *= 1.5

    def unscaled(m):
        m.self_attn.v_proj.weight.data = base.self_attn.v_proj.weight.data.clone()

    made("awq")
    made("awq-norms", plan=(PLAN[0], PLAN[2]))
    made("awq-rows", plan=(PLAN[3],))
    made("awq-plain", plan=())
    made("awq-clip", clip=True)
    made("bad-not-folded", rows=False)
    made("bad-columns", columns=False)
    made("bad-row", change=row)
    made("bad-v", behind=unscaled, plan=PLAN[:1])
    made("bad-norm", behind=lambda m: m.post_attention_layernorm.weight.data[5].mul_(1.2))
    made("bad-gate", behind=lambda m: m.mlp.gate_proj.weight.data[:, 7].mul_(-1))
    made("bad-layers", behind=lambda m: m.mlp.up_proj.weight.data.copy_(m.mlp.up_proj.weight.data.flip(0)))
    activation()


def activation():
    """As of GPT-NeoX and others, whose MLP has nothing that rows could be folded into: its activation is divided."""
    import copy
    base = torch.nn.Module()
    base.norm, base.mlp = Norm(D), torch.nn.Module()
    base.mlp.dense_h_to_4h = torch.nn.Linear(D, F, bias=False).half()
    base.mlp.dense_4h_to_h = torch.nn.Linear(F, D, bias=False).half()
    save_file({"model.layers.0." + k: v.data.clone() for k, v in base.half().named_parameters()}, "act-base.safetensors")
    s = factors(F)
    for name in ("act", "act-lost", "act-moved", "act-column"):
        m = copy.deepcopy(base)
        scale.scale_gelu_fc(torch.nn.GELU(), m.mlp.dense_4h_to_h, s)
        m.mlp.act = ScaledActivation(torch.nn.GELU(), s.roll(1) if name == "act-moved" else s)
        if name == "act-column":
            m.mlp.dense_4h_to_h.weight.data[:, 7] *= 1.5
        if name == "act-lost":
            del m.mlp.act
        put(name, m)


def plain(i):
    i.mtime, i.uid, i.gid, i.uname, i.gname = 0, 0, 0, "", ""
    return i


with tempfile.TemporaryDirectory() as tmp:
    os.chdir(tmp)
    main()
    with tarfile.open(OUT, "w:gz", compresslevel=9) as tar:
        for n in sorted(os.listdir(".")):
            tar.add(n, filter=plain)
