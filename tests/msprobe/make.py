#!/usr/bin/env python3
"""Records pairs of training runs with msprobe's own recorder: make.py FOLDER [CASE...]

Needs torch, transformers and mindstudio-probe from PyPI (26.2, torch 2.15, transformers 5.24 when this was written),
so it is no part of `make check`. Each case is a folder: device and bench, two steps each, and truth.json, which says
what was done to the device, and the op calls that may be named for it; score.py runs accdiff on all of them.
Two programs differ where the bench's attention is sdpa's and the device's eager; a kernel of the device's that is
right sums up in f64.
"""

import json
import os
import shutil
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.use_deterministic_algorithms(False)

TOKENS = 61


def small(name, attention):
    import transformers as t

    common = dict(vocab_size=TOKENS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                  attn_implementation=attention, use_cache=False, max_position_embeddings=64)
    causal = dict(common, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    if name == "bert":
        return t.BertForMaskedLM(t.BertConfig(**common, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    if name == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=TOKENS, n_embd=32, n_layer=2, n_head=4, n_positions=64, attn_pdrop=0.0,
                                              embd_pdrop=0.0, resid_pdrop=0.0, attn_implementation=attention, use_cache=False))
    if name == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**causal))
    if name == "qwen3":
        return t.Qwen3ForCausalLM(t.Qwen3Config(**causal, head_dim=8))
    if name == "qwen3moe":
        return t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**causal, head_dim=8, num_experts=4, num_experts_per_tok=2,
                                                      moe_intermediate_size=16, decoder_sparse_step=1))
    if name == "mixtral":
        return t.MixtralForCausalLM(t.MixtralConfig(**causal, num_local_experts=4, num_experts_per_tok=2))
    if name == "t5":
        return t.T5ForConditionalGeneration(t.T5Config(vocab_size=TOKENS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                                       dropout_rate=0.0, decoder_start_token_id=0, use_cache=False))
    if name == "vit":
        return t.ViTForImageClassification(t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                                                       image_size=16, patch_size=4, num_labels=5, hidden_dropout_prob=0.0,
                                                       attention_probs_dropout_prob=0.0, attn_implementation=attention))
    if name == "gemma3":
        return t.Gemma3ForCausalLM(t.Gemma3TextConfig(**causal, head_dim=8, sliding_window=8))
    return None


class Residual(nn.Module):
    """A small network of convolutions whose biases stand before a normalisation."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.n, self.m = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu(self.n(self.a(x)), inplace=True)
        y = y + F.relu(self.m(self.b(y)))
        return self.out(y.mean(dim=(2, 3)))


class Buffers(nn.Module):
    """What it writes in place was never written before: new_empty, copy_, index_put_, fill_."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 5)

    def forward(self, x):
        y = torch.empty(x.shape[0], 32)
        y.copy_(F.gelu(self.a(x)))
        order = torch.empty(x.shape[0], dtype=torch.int64)
        order[torch.randperm(x.shape[0])] = torch.arange(x.shape[0])
        z = torch.empty_like(y)
        z.index_copy_(0, order, y)
        mask = y.new_empty(y.shape).fill_(0.5)
        mask.mul_(2)
        return self.b(z * mask)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 5)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.out(y[:, -1])


def network(name, attention):
    torch.manual_seed(3)
    if name in ("residual", "buffers", "recurrent"):
        return {"residual": Residual, "buffers": Buffers, "recurrent": Recurrent}[name]()
    return small(name, attention)


def batch(name, step):
    g = torch.Generator().manual_seed(100 + step)
    if name in ("residual",):
        return torch.randn(4, 3, 8, 8, generator=g), torch.randint(0, 5, (4,), generator=g)
    if name in ("buffers",):
        return torch.randn(6, 16, generator=g), torch.randint(0, 5, (6,), generator=g)
    if name in ("recurrent",):
        return torch.randn(4, 7, 16, generator=g), torch.randint(0, 5, (4,), generator=g)
    if name == "vit":
        return torch.randn(3, 3, 16, 16, generator=g), torch.randint(0, 5, (3,), generator=g)
    x = torch.randint(3, TOKENS, (2, 12), generator=g)
    return x, x.clone()


def loss_of(name, m, x, y):
    if name in ("residual", "buffers", "recurrent"):
        return F.cross_entropy(m(x).float(), y)
    if name == "vit":
        return m(pixel_values=x.to(m.dtype), labels=y).loss
    return m(input_ids=x, labels=y).loss


# --- what is done to the device: before msprobe wraps what it records ---


class InF64(torch.autograd.Function):
    """A kernel that is right, forwards and backwards, and rounds otherwise."""

    @staticmethod
    def forward(ctx, f, rest, *tensors):
        ctx.f, ctx.rest = f, rest
        ctx.save_for_backward(*tensors)
        return f(*[t.double() for t in tensors], *rest).to(tensors[0].dtype)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            up = [t.detach().double().requires_grad_() for t in ctx.saved_tensors]
            grads = torch.autograd.grad(ctx.f(*up, *ctx.rest), up, grad.double())
        return (None, None, *[g.to(t.dtype) for g, t in zip(grads, ctx.saved_tensors)])


def in_f64(name):
    f = getattr(F, name)

    def g(*a):
        n = sum(torch.is_tensor(x) for x in a)
        return InF64.apply(f, a[n:], *a[:n])

    setattr(F, name, g)


def twisted(owner, name, twist, only=None):
    """A kernel that is wrong: the only-th call of it, or each."""
    f, count = getattr(owner, name), [0]

    def g(*a, **k):
        n, count[0] = count[0], count[0] + 1
        out = f(*a, **k)
        return twist(out, a, k) if only is None or n == only else out

    setattr(owner, name, g)


def scaled(v):
    return lambda out, a, k: out * v


def element(out, a, k):
    out = out.clone()
    with torch.no_grad():
        out.view(-1)[out.numel() // 3] += 0.25 * out.abs().max() + 0.05
    return out


def optimizer(m, how):
    kind = dict(lr=1e-3, foreach=False)
    if how.get("sgd"):
        return torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, foreach=False)
    kind.update(how.get("adam", {}))
    return torch.optim.AdamW(m.parameters(), **kind)


def record(folder, name, how, task, level, steps=2):
    for f in how.get("f64", []):
        in_f64(f)
    if "kernel" in how:
        owner, call, twist, only = how["kernel"]
        twisted(owner, call, twist, only)
    from msprobe.pytorch import PrecisionDebugger

    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    settings = {"task": task, "dump_path": folder, "rank": [], "step": [], "level": level,
                "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": how.get("summary", "statistics")},
                "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}
    if "risk" in how:
        settings["risk_level"] = how["risk"]
    with open(config, "w") as f:
        json.dump(settings, f)
    m = network(name, how.get("attention", "eager"))
    if "model" in how:
        how["model"](m)
    m = m.to(how.get("dtype", torch.float32))
    m.train()
    o = optimizer(m, how)
    d = PrecisionDebugger(config_path=config)
    for step in range(steps):
        torch.manual_seed(9 + step)
        x, y = batch(name, step)
        if name in ("residual", "buffers", "recurrent"):
            x = x.to(how.get("dtype", torch.float32))
        d.start(m)
        loss = loss_of(name, m, x, y)
        loss.backward()
        if "grads" in how:
            how["grads"](m, step)
        o.step()
        o.zero_grad()
        d.stop()
        d.step()


def child(what, *args):
    """In a process of its own: msprobe's recorder is one of a process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            null = os.open(os.environ.get("MAKE_LOG", "/dev/null"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(null, 1)
            os.dup2(null, 2)
            what(*args)
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def no_grads(which):
    def f(m, step):
        p = list(m.parameters())[which]
        with torch.no_grad():
            p.grad.mul_(1.1)
    return f


def eps_of(v):
    def f(m):
        for x in m.modules():
            if hasattr(x, "variance_epsilon"):
                x.variance_epsilon = v
            elif isinstance(x, (nn.LayerNorm, nn.BatchNorm2d)):
                x.eps = v
    return f


def weight_of(i):
    """The next that is not all zeros, as biases are: what is multiplied differs."""
    def f(m):
        with torch.no_grad():
            next(p for p in list(m.parameters())[i:] if p.any()).mul_(1.01)
    return f


def scaling(v):
    def f(m):
        for x in m.modules():
            if hasattr(x, "scaling"):
                x.scaling = x.scaling * v
    return f


FAMILIES = ["bert", "gpt2", "llama", "qwen3", "qwen3moe", "mixtral", "t5", "vit", "gemma3", "residual", "buffers", "recurrent"]
HAND = ("residual", "buffers", "recurrent")


def cases():
    out = {}
    for n in FAMILIES:
        out[f"{n}.again"] = (n, {}, {}, None)
        out[f"{n}.f64"] = (n, {"f64": ["linear", "conv2d"]}, {}, None)
        if n not in HAND + ("t5",):
            out[f"{n}.sdpa"] = (n, {}, {"attention": "sdpa"}, None)
        out[f"{n}.element"] = (n, {"f64": ["linear"], "kernel": (F, "linear", element, 1)} if n != "residual" else
                               {"kernel": (F, "conv2d", element, 1)}, {}, ["Functional.linear.1.forward", "Functional.conv2d.1.forward"] +
                               # It has one product of this kind, at its end: the second step's.
                               (["Functional.linear.0.forward"] if n == "gpt2" else []))
        out[f"{n}.weight"] = (n, {"f64": ["linear"], "model": weight_of(6)}, {}, ["*"])
        out[f"{n}.betas"] = (n, {"f64": ["linear"], "adam": {"betas": (0.8, 0.999)}}, {}, ["*lerp_*"])
        out[f"{n}.wd"] = (n, {"f64": ["linear"], "adam": {"weight_decay": 0.1}}, {}, ["*mul_*"])
    for n in ("bert", "gpt2", "vit"):
        out[f"{n}.eps"] = (n, {"f64": ["linear"], "model": eps_of(1e-3)}, {}, ["Functional.layer_norm.*"])
    for n in ("llama", "qwen3", "mixtral"):
        out[f"{n}.eps"] = (n, {"f64": ["linear"], "model": eps_of(1e-3)}, {}, ["Tensor.__add__.*", "Tensor.__radd__.*"])
        out[f"{n}.scale"] = (n, {"f64": ["linear"], "model": scaling(1.03)}, {}, ["Tensor.__mul__.*"])
        out[f"{n}.silu"] = (n, {"f64": ["linear"], "kernel": (F, "silu", scaled(1.02), 0)}, {}, ["Functional.silu.0.forward"])
    for n in ("bert", "gpt2", "vit", "llama"):
        out[f"{n}.bf16"] = (n, {"dtype": torch.bfloat16}, {"dtype": torch.bfloat16, "attention": "sdpa"}, None)
    for n in ("buffers", "llama", "residual", "qwen3moe"):
        for mode in ("md5", "xor"):
            out[f"{n}.{mode}"] = (n, {"summary": mode}, {"summary": mode}, None)
        out[f"{n}.md5weight"] = (n, {"summary": "md5", "model": weight_of(0)}, {"summary": "md5"}, ["*"])
    out["buffers.gelu"] = ("buffers", {"kernel": (F, "gelu", scaled(1.02), 0)}, {}, ["Functional.gelu.0.forward"])
    out["residual.relu"] = ("residual", {"kernel": (F, "relu", scaled(1.02), 1)}, {}, ["Functional.relu.1.forward"])
    return out


def make(folder, wanted):
    import msprobe.pytorch  # noqa: F401  (imported once, before the processes part)
    import transformers  # noqa: F401
    all_cases = cases()
    order = wanted or sorted(all_cases, key=lambda x: all_cases[x][3] is not None)
    for case in order:
        name, device, bench, truth = all_cases[case]
        for task in ("tensor", "statistics"):
            if task == "tensor" and "summary" in device:
                continue
            place = os.path.join(folder, f"{case}.{task}")
            if os.path.exists(os.path.join(place, "truth.json")):
                continue
            shutil.rmtree(place, ignore_errors=True)
            ok = True
            for side, how in (("device", device), ("bench", bench)):
                ok = child(record, os.path.join(place, side), name, how, task, "L1" if task == "statistics" else "mix") and ok
            if not ok:
                print(f"{case}.{task}: failed", flush=True)
                continue
            with open(os.path.join(place, "truth.json"), "w") as f:
                json.dump({"clean": truth is None, "named": truth}, f)
            print(place, flush=True)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2:])
