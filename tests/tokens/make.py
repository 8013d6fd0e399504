#!/usr/bin/env python3
"""Rollouts of small random models by two real engines, with a cause planted in one of them, or none.

    python tests/tokens/make.py FOLDER [--seed N] [--arch llama|qwen3|gpt2|mixtral]

Needs torch and transformers 5. The sampler decodes with a cache, a token at a time; the scorer runs the whole
sequence at once, as trainers do. Each case is FOLDER/ARCH-SEED/CASE/{rollout.jsonl,trainer.jsonl or .pt} with
truth.json: the rules of acctoken of which one names the cause, or none for a clean pair, and the preset. Of a mixture of
experts in 16 bits the routers of both say whether a token went elsewhere.
"""
import argparse
import copy
import json
import math
import os

import torch
from transformers import GPT2Config, LlamaConfig, MixtralConfig, Qwen3Config, AutoModelForCausalLM

VOCAB, EOS, BOS, PAD, TOP = 384, 2, 1, 0, 5


def model_of(arch, seed, attn="eager", experts=0):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    width = [48, 64, 96][int(torch.randint(3, (1,), generator=g))]
    layers = [2, 3, 4][int(torch.randint(3, (1,), generator=g))]
    init = 0.8 / width ** 0.5  # what keeps the size of activations, so that rounding is not amplified
    common = dict(vocab_size=VOCAB, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, attn_implementation=attn)
    if arch == "gpt2":
        cfg = GPT2Config(n_embd=width, n_layer=layers, n_head=4, n_positions=512, resid_pdrop=0, embd_pdrop=0,
                         attn_pdrop=0, initializer_range=init, tie_word_embeddings=False, **common)
    else:
        kind = {"llama": LlamaConfig, "qwen3": Qwen3Config, "mixtral": MixtralConfig}[arch]
        cfg = kind(hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=width // 4, max_position_embeddings=512, initializer_range=init,
                   tie_word_embeddings=False, **common)
        if arch == "mixtral":
            cfg.num_local_experts, cfg.num_experts_per_tok = 8, 2
    m = AutoModelForCausalLM.from_config(cfg).eval()
    # Logits as real models have them: a few nats apart.
    with torch.no_grad():
        x = torch.randint(3, VOCAB, (4, 32), generator=g)
        m.get_output_embeddings().weight.mul_(3.0 / m(x).logits.std())
    return m


def noisy(m, scale, seed):
    other = copy.deepcopy(m)
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in other.parameters():
            p.add_(torch.randn(p.shape, generator=g) * p.std() * scale)
    return other


def int8(m, bits=8):
    other = copy.deepcopy(m)
    with torch.no_grad():
        for n, p in other.named_parameters():
            if p.ndim == 2 and "embed" not in n and "lm_head" not in n and "wte" not in n:
                s = p.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
                p.copy_((p / s).round() * s)
    return other


def rounded(by):
    """What a cache of keys and values keeps of them: for sample(kv=...)."""
    def hook(past):
        for layer in past.layers:
            layer.keys, layer.values = by(layer.keys), by(layer.values)
    return hook


def of_8_bits(x):
    s = x.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127
    return (x / s).round() * s


def head16(m):
    other = copy.deepcopy(m)
    h = other.get_output_embeddings()
    w = h.weight.data.bfloat16()
    h.forward = lambda x: (x.bfloat16() @ w.T).float()
    return other


@torch.no_grad()
def full(m, seq, positions=None, pad=0, chunk=None):
    ids = torch.tensor([[PAD] * pad + seq])
    mask = torch.ones_like(ids)
    mask[:, :pad] = 0
    if positions is None:
        positions = (mask.cumsum(1) - 1).clamp(min=0)
    if chunk:
        past, out = None, []
        for i in range(0, ids.shape[1], chunk):
            r = m(ids[:, i:i + chunk], past_key_values=past, use_cache=True)
            past = r.past_key_values
            out.append(r.logits)
        return torch.cat(out, 1)[0, pad:].float()
    return m(ids, attention_mask=mask, position_ids=positions).logits[0, pad:].float()


def processed(logits, before, how):
    z = logits.clone()
    kind, v = how
    if kind in ("repetition", "frequency"):
        seen = torch.tensor(before)
        if kind == "repetition":
            s = z[seen.unique()]
            z[seen.unique()] = torch.where(s > 0, s / v, s * v)
        else:
            z -= v * torch.bincount(seen, minlength=len(z)).float()
    if kind == "temperature":
        z = z / v
    if kind == "top_k":
        z[z < z.topk(v).values[-1]] = -math.inf
    if kind == "top_p":
        p, i = z.softmax(0).sort(descending=True)
        z[i[(p.cumsum(0) - p) >= v]] = -math.inf
    return z


@torch.no_grad()
def sample(m, prompt, n, g, how=None, greedy=False, report="processed", kv=None):
    """Decode with the cache; log-probabilities as reported, and the top choices."""
    past, ids, seq = None, torch.tensor([prompt]), list(prompt)
    lp, tops = [], []
    for _ in range(n):
        r = m(ids, past_key_values=past, use_cache=True)
        past = r.past_key_values
        if kv:
            kv(past)
        z = r.logits[0, -1].float()
        q = processed(z, seq, how) if how else z
        t = int(q.argmax()) if greedy else int(torch.multinomial(q.softmax(0), 1, generator=g))
        l = (q if report == "processed" else z).log_softmax(0)
        lp.append(float(l[t]))
        k = l.topk(TOP)
        tops.append([[float(a), int(b), None] for a, b in zip(k.values, k.indices) if a > -math.inf])
        seq.append(t)
        ids = torch.tensor([[t]])
        if t == EOS:
            break
    return seq[len(prompt):], lp, tops


def logps(logits, prompt, response, how=None):
    out, tops, seq = [], [], list(prompt)
    for i, t in enumerate(response):
        z = logits[len(prompt) - 1 + i]
        if how:
            z = processed(z, seq, how)
        l = z.log_softmax(0)
        out.append(float(l[t]))
        k = l.topk(TOP)
        tops.append([[float(a), int(b), None] for a, b in zip(k.values, k.indices)])
        seq.append(t)
    return out, tops


def jsonl(path, samples):
    with open(path, "w") as f:
        for s in samples:
            o = {"id": s["id"], "prompt_ids": s["prompt"], "step": s.get("step", 1)}
            for k in ("rank", "response_mask", "weight_version", "prompt_text", "response_text"):
                if k in s:
                    o[k] = s[k]
            if "tops" in s:
                meta = {"output_token_logprobs": [[l, t, None] for l, t in zip(s["lp"], s["response"])],
                        "output_top_logprobs": s["tops"]}
                for k in ("cached_tokens", "finish_reason"):
                    if k in s:
                        meta[k] = s[k]
                o["meta_info"] = meta
            else:
                o["response_ids"] = s["response"]
                o["logprobs"] = s["lp"]
                for k in ("finish_reason", "cached_tokens"):
                    if k in s:
                        o[k] = s[k]
            f.write(json.dumps(o) + "\n")


def pt(path, samples):
    """As slime's train debug data."""
    d = {"tokens": [torch.tensor(s["prompt"] + s["response"]) for s in samples],
         "response_lengths": [len(s["response"]) for s in samples],
         "log_probs": [torch.tensor(s["lp"]) for s in samples]}
    if "response_mask" in samples[0]:
        d["loss_masks"] = [torch.tensor(s["response_mask"], dtype=torch.int32) for s in samples]
    torch.save({"rollout_id": samples[0].get("step", 1), "rank": 0, "rollout_data": d}, path)


class World:
    def __init__(self, arch, seed, count=24):
        self.arch, self.seed = arch, seed
        self.m = model_of(arch, seed)
        self.g = torch.Generator().manual_seed(seed * 7 + 1)
        self.count = count
        self.prompts = []
        for i in range(count // 4):
            n = int(torch.randint(5, 40, (1,), generator=self.g))
            p = [BOS] + torch.randint(3, VOCAB, (n,), generator=self.g).tolist()
            self.prompts += [p] * 4
        self.lengths = torch.randint(24, 72, (count,), generator=self.g).tolist()

    def rollout(self, m=None, tops=True, **kw):
        out = []
        for i, p in enumerate(self.prompts):
            mm = m(i) if callable(m) and not isinstance(m, torch.nn.Module) else (m or self.m)
            r, lp, t = sample(mm, p, self.lengths[i], self.g, **kw)
            s = {"id": f"s{i}", "prompt": p, "response": r, "lp": lp, "i": i}
            if tops:
                s["tops"] = t
            out.append(s)
        return out

    def score(self, samples, m=None, tops=False, how=None, pad=None, positions=None, chunk=None):
        out = []
        for s in samples:
            i = s["i"]
            mm = m(i) if callable(m) and not isinstance(m, torch.nn.Module) else (m or self.m)
            n = pad(i) if pad else 0
            pos = positions(n, len(s["prompt"] + s["response"])) if positions else None
            z = full(mm, s["prompt"] + s["response"], positions=pos, pad=n, chunk=chunk)
            lp, t = logps(z, s["prompt"], s["response"], how)
            b = {k: v for k, v in s.items() if k not in ("lp", "tops", "cached_tokens", "finish_reason", "weight_version")}
            b["lp"] = lp
            if tops:
                b["tops"] = t
            out.append(b)
        return out


@torch.no_grad()
def routed(m, samples, decode=False, kv=None):
    """Which experts each router takes, as sets, of all samples: of the whole at once, or as sample() goes on."""
    out, seen = [], []
    gates = [mod for n, mod in m.named_modules() if n.endswith(".mlp.gate")]
    hooks = [mod.register_forward_hook(lambda _, a, o: seen.append(o[2].sort(-1).values.reshape(-1, o[2].shape[-1]))) for mod in gates]
    for s in samples:
        seen.clear()
        if not decode:
            full(m, s["prompt"] + s["response"])
        else:
            past = None
            for part in [s["prompt"]] + [[t] for t in s["response"]]:
                past = m(torch.tensor([part]), past_key_values=past, use_cache=True).past_key_values
                if kv:
                    kv(past)
        out += [torch.cat(seen[i::len(gates)]) for i in range(len(gates))]
    for h in hooks:
        h.remove()
    return out


def rounding(a, b, samples, kv=None, **kw):
    """A pair that differs by rounding alone is clean, unless that sends a token to other experts: then this is what it differs by."""
    other = any(not torch.equal(x, y) for x, y in zip(routed(a, samples, True, kv), routed(b, samples)))
    return dict(rules=["routing", "token", "samples", "some"] if other else [], **kw)


def cases(w):
    m = w.m
    A = w.rollout()
    bare = [{k: v for k, v in s.items() if k != "tops"} for s in A]
    half = lambda: copy.deepcopy(m).bfloat16()
    clean = lambda **kw: dict(rules=[], **kw)

    # --- clean: what real engines differ by ---
    yield "clean-cache", A, w.score(A), clean(preset="fp32")
    yield "clean-sdpa", A, w.score(A, model_like(w, "sdpa")), clean(preset="fp32")
    yield "clean-batch-padded", A, w.score(A, pad=lambda i: 3 * (i % 5)), clean(preset="fp32")
    yield "clean-chunked", A, w.score(A, chunk=16), clean(preset="fp32")
    if w.arch != "mixtral":  # its products of experts have no double
        yield "clean-double", A, w.score(A, copy.deepcopy(m).double()), clean(preset="fp32")
    h = half()
    B = w.rollout(h)
    yield "clean-bf16-both", B, w.score(B, h), rounding(h, h, B)
    yield "clean-bf16-fp32", B, w.score(B), rounding(h, m, B)
    yield "clean-fp32-bf16", A, w.score(A, h), rounding(m, h, A)
    yield "clean-head-bf16", A, w.score(A, head16(m)), clean()
    C = [dict(s, lp=torch.tensor(s["lp"]).bfloat16().float().tolist()) for s in bare]
    yield "clean-stored-bf16", C, w.score(bare), clean()
    f = copy.deepcopy(m).half()
    yield "clean-fp16", A, w.score(A, f), rounding(m, f, A)
    hs = model_like(w, "sdpa").bfloat16()
    yield "clean-bf16-sdpa", B, w.score(B, hs, tops=True), rounding(h, hs, B)

    K = w.rollout(kv=rounded(lambda x: x.bfloat16().float()))
    yield "clean-cache-bf16", K, w.score(K), rounding(m, m, K, kv=rounded(lambda x: x.bfloat16().float()))
    G = w.rollout(greedy=True)
    # What is behind the first id that parts is not compared: it may be there that experts differ.
    yield "clean-greedy", G, w.rollout(h, greedy=True), rounding(m, h, G, either=True)

    # --- numbers ---
    for T in ([0.7] if w.seed % 2 else [1.3]):
        how = ("temperature", T)
        R = w.rollout(how=how)
        yield "temperature-tops", R, w.score(R, tops=True), dict(rules=["temperature"])
        R2 = w.rollout(how=how, tops=False)
        yield "temperature-fit", R2, w.score(R2), dict(rules=["temperature"])
        yield "temperature-rescore", bare, w.score(bare, how=how), dict(rules=["temperature"])
    for name, how, rule in (("top-p", ("top_p", 0.9), "processed"), ("top-k", ("top_k", 20), "processed"),
                            ("repetition", ("repetition", 1.3), "penalty"), ("frequency", ("frequency", 0.7), "penalty")):
        R = w.rollout(how=how, tops=name == "top-k")
        yield name, R, w.score(R), dict(rules=[rule])
    B = w.score(bare)
    yield "shift", bare, [dict(s, lp=s["lp"][1:] + s["lp"][:1]) for s in B], dict(rules=["shift"])
    yield "probabilities", [dict(s, lp=[math.exp(x) for x in s["lp"]]) for s in bare], B, dict(rules=["scale"])
    yield "log10", bare, [dict(s, lp=[x / math.log(10) for x in s["lp"]]) for s in B], dict(rules=["scale"])
    yield "placeholder", [dict(s, lp=[0.0] * len(s["lp"])) if s["i"] % 9 == 4 else s for s in bare], B, dict(rules=["placeholder"])

    off = [w.seed % 5, w.seed % 7 + 3]  # a sample, and a token of it
    yield "token", bare, [dict(s, lp=[x - 3 * ((s["i"], j) == tuple(off)) for j, x in enumerate(s["lp"])]) for s in B], dict(rules=["token"])
    yield "unrelated", bare, w.score(bare, model_of(w.arch, w.seed + 1000)), dict(rules=["unrelated"])

    # --- masks ---
    ones = [dict(s, response_mask=[1] * len(s["response"])) for s in bare]
    yield "mask-end", ones, [dict(s, response_mask=[1] * (len(s["response"]) - 1) + [0]) for s in B], dict(rules=["mask-end"])
    tool = [dict(s, response_mask=[int(not 5 <= j < 11) for j in range(len(s["response"]))]) for s in bare]
    yield "mask-shift", tool, [dict(b, response_mask=[1] + t["response_mask"][:-1]) for b, t in zip(B, tool)], dict(rules=["mask-shift"])

    yield "mask-prompt", ones, [dict(s, response_mask=[1] * len(s["prompt"]) + s["response_mask"]) for s in w.score(ones)], \
        dict(rules=["mask-prompt"], form="jsonl")
    longer = [dict(s, response=s["response"] + [PAD] * 3, lp=s["lp"] + [0.0] * 3, response_mask=[1] * (len(s["response"]) + 3),
                   behind=3) for s in B]
    yield "mask-padding", ones, longer, dict(rules=["mask-padding"], form="padded")

    # --- parts ---
    old = noisy(m, 0.02, w.seed + 5)
    R = [dict(s, weight_version="7" if s["i"] % 4 == 1 else "8") for s in w.rollout(lambda i: old if i % 4 == 1 else m, tops=False)]
    yield "stale-version", R, w.score(R), dict(rules=["stale"], preset="fp32")
    R = w.rollout(lambda i: old if i in (3, 17) else m, tops=False)
    yield "stale-few", R, w.score(R), dict(rules=["samples"], preset="fp32")
    ranked = [dict(s, rank=s["i"] % 4) for s in bare]
    # Of each rank a file of its own would come; the samples name theirs here.
    yield "rank", ranked, w.score(ranked, lambda i: old if i % 4 == 2 else m), dict(rules=["rank"], preset="fp32")
    R = [dict(s, finish_reason="abort" if s["i"] % 6 == 2 else "stop") for s in w.rollout(lambda i: old if i % 6 == 2 else m, tops=False)]
    yield "abort", R, w.score(R), dict(rules=["finish", "samples"], preset="fp32")
    # What a cache of prefixes gives that was computed by the weights before.
    R = [dict(s, cached_tokens=0 if s["i"] % 4 == 0 else len(s["prompt"]) - 1) for s in w.rollout(lambda i: m if i % 4 == 0 else old, tops=False)]
    yield "prefix-cache", R, w.score(R), dict(rules=["prefix-cache"], preset="fp32")

    R = [dict(s, step=1 + s["i"] // 4) for s in w.rollout(lambda i: old if i // 4 == 3 else m, tops=False)]
    yield "step", R, w.score(R), dict(rules=["step"], preset="fp32", form="jsonl")

    # --- positions ---
    yield "positions-from", bare, w.score(bare, positions=lambda n, k: torch.tensor([[j if j < 48 else j + 7 for j in range(k)]])), dict(rules=["position"], preset="fp32")
    # All to the width of the longest prompt, positions counted from the padding on.
    width = max(len(p) for p in w.prompts)
    padded = lambda i: width - len(w.prompts[i])
    S = w.score(bare, pad=padded, positions=lambda n, k: torch.arange(n + k)[None])
    # Rotary embeddings see distances alone: all positions later is no difference.
    yield ("padding-positions" if w.arch == "gpt2" else "clean-padding-positions"), bare, S, \
        dict(rules=["padding"] if w.arch == "gpt2" else [], preset="fp32", form="padded")

    # --- weights ---
    yield "int8-weights", bare, w.score(bare, int8(m)), dict(rules=["alike", "grows"], preset="fp32")
    R = w.rollout(kv=rounded(of_8_bits), tops=False)
    yield "int8-cache", R, w.score(R), dict(rules=["alike", "grows"], preset="fp32")
    yield "head-bf16-tops", A, w.score(A, head16(m), tops=True), dict(rules=["head"], preset="fp32")

    # --- ids ---
    twice = [dict(s, prompt=[BOS] + s["prompt"]) for s in bare]
    yield "bos-twice", bare, w.score(twice), dict(rules=["ids-bos"])
    yield "bos-missing", bare, w.score([dict(s, prompt=s["prompt"][1:]) for s in bare]), dict(rules=["ids-bos"])
    yield "generation-prompt", [dict(s, prompt=s["prompt"] + [9, 8, 7]) for s in bare], B, dict(rules=["ids-generation-prompt"])
    yield "system-prompt", [dict(s, prompt=[BOS, 11, 12, 13, 14] + s["prompt"][1:]) for s in bare], B, dict(rules=["ids-template"])
    text = lambda s: dict(s, prompt_text="p%d" % (s["i"] // 4), response_text="r%d" % s["i"])
    re = [dict(text(s), response=s["response"][:6] + [300, 301] + s["response"][7:], lp=s["lp"][:6] + [-1.0, -1.0] + s["lp"][7:]) for s in B]
    yield "retokenised", [text(s) for s in bare], re, dict(rules=["ids-retokenised"], form="jsonl")
    yield "ends-early", bare, [dict(s, response=s["response"][:20], lp=s["lp"][:20]) for s in B], dict(rules=["ids-end"])
    yield "padding-ids", bare, [dict(s, prompt=[PAD] * 4 + s["prompt"]) for s in B], dict(rules=["ids-padding"])

    yield "prompt", bare, w.score([dict(s, prompt=s["prompt"][:2] + [s["prompt"][2] % 300 + 7] + s["prompt"][3:]) for s in bare]), dict(rules=["ids-prompt"])
    yield "other-ids", bare, w.score([dict(s, response=s["response"][:7] + [s["response"][7] % 300 + 7] + s["response"][8:]) for s in bare]), dict(rules=["ids"])

    # --- experts ---
    if w.arch == "mixtral":
        yield "routing", bare, w.score(bare, flipped(m, w.seed)), dict(rules=["routing"], preset="fp32")


def flipped(m, seed):
    """A router that takes its second and third choice the other way round for a token in fifty."""
    other = copy.deepcopy(m)
    g = torch.Generator().manual_seed(seed)
    for n, mod in other.named_modules():
        if n.endswith("layers.%d.mlp" % (m.config.num_hidden_layers - 1)):
            def hook(_, args, n=n):
                x = args[0].clone()
                pick = torch.rand(x.shape[:2], generator=g) < 0.02
                x[pick] = x[pick].roll(1, -1)
                return (x,)
            mod.register_forward_pre_hook(hook)
    return other


def model_like(w, attn):
    m = model_of(w.arch, w.seed, attn)
    m.load_state_dict(w.m.state_dict())
    return m


def verl(path, samples):
    """Tensors of one width, as verl's DataProto has them."""
    P = max(len(s["prompt"]) for s in samples)
    R = max(len(s["response"]) for s in samples)
    n = len(samples)
    d = {"prompts": torch.zeros(n, P, dtype=torch.long), "responses": torch.zeros(n, R, dtype=torch.long),
         "attention_mask": torch.zeros(n, P + R, dtype=torch.long), "response_mask": torch.zeros(n, R, dtype=torch.long),
         "old_log_probs": torch.zeros(n, R)}
    for k, s in enumerate(samples):
        p, r = len(s["prompt"]), len(s["response"])
        d["prompts"][k, P - p:] = torch.tensor(s["prompt"])
        d["responses"][k, :r] = torch.tensor(s["response"])
        d["attention_mask"][k, P - p:P + r - s.get("behind", 0)] = 1
        d["response_mask"][k, :r] = 1
        d["old_log_probs"][k, :r] = torch.tensor(s["lp"])
    d["input_ids"] = torch.cat([d["prompts"], d["responses"]], 1)
    torch.save(d, path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--arch", default="llama")
    p.add_argument("--count", type=int, default=24)
    p.add_argument("--only", default="", help="cases whose name begins so")
    a = p.parse_args()
    torch.set_num_threads(1)
    w = World(a.arch, a.seed, a.count)
    for name, A, B, truth in cases(w):
        if not name.startswith(a.only):
            continue
        d = os.path.join(a.folder, f"{a.arch}-{a.seed}", name)
        os.makedirs(d, exist_ok=True)
        jsonl(os.path.join(d, "rollout.jsonl"), A)
        form = truth.get("form")
        if form == "padded":
            verl(os.path.join(d, "trainer.pt"), B)
        elif form == "jsonl" or "tops" in B[0]:
            jsonl(os.path.join(d, "trainer.jsonl"), B)
        else:
            pt(os.path.join(d, "trainer.pt"), B)
        json.dump(truth, open(os.path.join(d, "truth.json"), "w"))


if __name__ == "__main__":
    main()
