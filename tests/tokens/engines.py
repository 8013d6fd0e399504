#!/usr/bin/env python3
"""Rollouts of two engines that are not PyTorch, scored by transformers: llama.cpp's server, and ONNX Runtime.

    python tests/tokens/engines.py FOLDER [--seed N] [--count N]
    python tests/tokens/engines.py --fixture tests/data/rollout

    pip install torch transformers onnxruntime==1.32.0 onnxscript xllamacpp==2026.10.11549 gguf==0.19.0

The models are those of make.py, with random weights. llama.cpp gets them as GGUF, and answers over its own HTTP; what it
answers is kept as it stands. ONNX Runtime gets what torch.onnx.export makes, and computes the whole sequence for each token.
Cases as make.py writes them, for score.py.
"""
import argparse
import copy
import json
import os
import sys
import tempfile
import urllib.request

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make  # noqa: E402

PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}


def gguf_of(m, path, kind="F32", turned=True, base=None, of_bytes=False):
    """turned: rows of queries and keys in the order in which llama.cpp turns them; of_bytes: 256 tokens are single bytes."""
    import gguf
    c, w = m.config, gguf.GGUFWriter(path, "llama")
    w.add_context_length(512)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_key_length(c.head_dim)
    w.add_value_length(c.head_dim)
    w.add_rope_dimension_count(c.head_dim)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.add_rope_freq_base(base or c.rope_parameters["rope_theta"])
    w.add_vocab_size(c.vocab_size)
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] * of_bytes
    bytes_ = len(tokens) - 3
    tokens += ["\u2581w%d" % i for i in range(c.vocab_size - len(tokens))]
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * 3 + [-1.0] * (c.vocab_size - 3))
    w.add_token_types([2, 3, 3] + [6] * bytes_ + [1] * (c.vocab_size - 3 - bytes_))
    w.add_bos_token_id(make.BOS)
    w.add_eos_token_id(make.EOS)
    w.add_unk_token_id(0)
    w.add_add_bos_token(False)
    q = getattr(gguf.GGMLQuantizationType, kind)
    for name, t in m.state_dict().items():
        a, to = t.float().numpy(), WHOLE.get(name)
        if to is None:
            _, _, layer, rest = name.split(".", 3)
            rest = rest[:-len(".weight")]
            to = f"blk.{layer}.{PARTS[rest]}.weight"
            if turned and rest.endswith(("q_proj", "k_proj")):
                a = a.reshape(-1, 2, c.head_dim // 2, a.shape[1]).swapaxes(1, 2).reshape(a.shape)
        a = np.ascontiguousarray(a)
        if a.ndim == 1 or kind == "F32":
            w.add_tensor(to, a)
        else:
            w.add_tensor(to, gguf.quants.quantize(a, q), raw_dtype=q)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def llama(w, path, cache=None, flash=True, chat=False, bos=False, **how):
    """What llama.cpp's server answers, an object a sample; the samples as make.py has them."""
    import xllamacpp as x
    p = x.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.cpuparams.n_threads = path, 512, 1, False, 1
    if cache is not None:
        p.cache_type_k = p.cache_type_v = getattr(x.ggml_type, cache)
    if not flash:
        p.flash_attn_type = x.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = x.Server(p)
    answers, samples = [], []
    for i, prompt in enumerate(w.prompts):
        ask = dict(prompt=[make.BOS] * bos + prompt, n_predict=w.lengths[i], max_tokens=w.lengths[i], n_probs=make.TOP, logprobs=make.TOP, temperature=1.0, top_k=0, top_p=1.0,
                   min_p=0.0, seed=w.seed * 1000 + i, return_tokens=True, cache_prompt=True)
        ask.update(how)
        r = urllib.request.Request(server.listening_address + ("/v1/completions" if chat else "/completion"), json.dumps(ask).encode(),
                                   {"Content-Type": "application/json"})
        o = json.load(urllib.request.urlopen(r))
        o.get("generation_settings", {}).clear()
        o["model"] = "m.gguf"
        answers.append(o)
        samples.append(dict(id=f"s{i}", i=i, prompt=prompt, response=[k["id"] for k in o["choices"][0]["logprobs"]["content"]] if chat else o["tokens"]))
    del server
    return answers, samples


def session(m, folder, bits=None, **more):
    import onnxruntime as ort

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = m

        def forward(self, ids):
            return self.m(input_ids=ids, use_cache=False).logits

    path = os.path.join(folder, "m.onnx")
    ids = torch.randint(3, make.VOCAB, (1, 17))
    torch.onnx.export(Logits(), (ids,), dynamo=True, input_names=["ids"], output_names=["logits"], verbose=False,
                      dynamic_shapes={"ids": {1: torch.export.Dim("n", min=2, max=512)}}).save(path)
    if bits:
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(path, path + "8", weight_type=QuantType.QInt8)
        path += "8"
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    for k, v in more.items():
        setattr(o, k, v)
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


class Engine:
    """A session of ONNX Runtime in the place of a model of make.sample, which has no cache."""
    def __init__(self, s):
        self.s = s

    def __call__(self, ids, past_key_values=None, use_cache=True):
        seq = ids if past_key_values is None else torch.cat([past_key_values, ids], 1)
        z = torch.from_numpy(self.s.run(None, {"ids": seq.numpy()})[0])
        return type("Out", (), dict(logits=z, past_key_values=seq))


def write(folder, name, answers, scored, truth):
    d = os.path.join(folder, name)
    os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, "rollout.jsonl"), "w") as f:
        f.writelines(json.dumps(o) + "\n" for o in answers)
    make.jsonl(os.path.join(d, "trainer.jsonl"), scored)
    json.dump(truth, open(os.path.join(d, "truth.json"), "w"))


def of_llama(w, folder, tmp):
    m, old = w.m, make.noisy(w.m, 0.02, w.seed + 5)
    made = {}

    def file(kind="F32", model=m, **more):
        key = (kind, id(model), tuple(more.items()))
        if key not in made:
            made[key] = os.path.join(tmp, f"{len(made)}.gguf")
            gguf_of(model, made[key], kind, **more)
        return made[key]
    clean, other = [], ["alike", "grows"]
    # Its cache of keys and values is float16 unless asked.
    for name, path, ask, rules, preset in (
            ("clean-llama", file(), {}, clean, "bf16"),
            # Tokens that end within a character are left out of what it says of them.
            ("clean-llama-bytes", file(of_bytes=True), {}, clean, "bf16"),
            ("clean-llama-chat", file(), dict(chat=True), clean, "bf16"),
            ("clean-llama-f32", file(), dict(cache="GGML_TYPE_F32", flash=False), clean, "fp32"),
            ("clean-llama-f32-flash", file(), dict(cache="GGML_TYPE_F32"), clean, "fp16"),
            ("clean-llama-f16", file("F16"), {}, clean, "bf16"),
            ("clean-llama-bf16", file("BF16"), {}, clean, "bf16"),
            ("clean-llama-no-cache", file(), dict(cache_prompt=False), clean, "bf16"),
            ("clean-llama-greedy", file(), dict(temperature=0.0), clean, "bf16"),
            ("clean-llama-probs", file(), dict(post_sampling_probs=True), clean, "bf16"),
            ("llama-q8", file("Q8_0"), dict(cache="GGML_TYPE_F32", flash=False), other, "fp32"),
            ("llama-q4", file("Q4_0"), {}, other, "bf16"),
            ("llama-cache-q8", file(), dict(cache="GGML_TYPE_Q8_0"), other, "fp32"),
            ("llama-temperature", file(), dict(temperature=0.7, post_sampling_probs=True), ["temperature"], "bf16"),
            ("llama-top-k", file(), dict(top_k=20, post_sampling_probs=True), ["processed"], "bf16"),
            ("llama-top-p", file(), dict(top_p=0.9, post_sampling_probs=True), ["processed"], "bf16"),
            ("llama-penalty", file(), dict(repeat_penalty=1.3, post_sampling_probs=True), ["penalty"], "bf16"),
            ("llama-old-weights", file(model=old), {}, other, "bf16"),
            ("llama-bos-twice", file(), dict(bos=True), other + ["ids-bos"], "bf16"),
            ("llama-rope-base", file(base=500000.0), {}, other + ["position"], "bf16"),
            ("llama-rope-order", file(turned=False), {}, other + ["position", "unrelated"], "bf16")):
        if ask.get("cache", "").endswith("Q8_0") and m.config.head_dim % 32:
            continue  # it refuses blocks of 32 in heads that are no multiple of that
        answers, samples = llama(w, path, **ask)
        write(folder, name, answers, w.score(samples), dict(rules=rules, preset=preset))


def of_ort(w, folder, tmp):
    import onnxruntime as ort
    m = w.m
    lines = lambda samples: [{"id": s["id"], "prompt_ids": s["prompt"], "response_ids": s["response"], "logprobs": s["lp"]} for s in samples]
    half = copy.deepcopy(m).bfloat16()
    off = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, s, trainer, ask, rules, preset in (
            ("clean-ort", session(m, tmp), m, {}, [], "fp32"),
            ("clean-ort-plain", session(m, tmp, graph_optimization_level=off), m, {}, [], "fp32"),
            ("clean-ort-greedy", session(m, tmp), m, dict(greedy=True), [], "fp32"),
            ("clean-ort-bf16", session(m, tmp), half, {}, [], "bf16"),
            ("ort-int8", session(m, tmp, bits=8), m, {}, ["alike", "grows"], "bf16"),
            ("ort-temperature", session(m, tmp), m, dict(how=("temperature", 1.2)), ["temperature"], "bf16"),
            ("ort-top-p", session(m, tmp), m, dict(how=("top_p", 0.9)), ["processed"], "bf16"),
            ("ort-penalty", session(m, tmp), m, dict(how=("frequency", 0.7)), ["penalty"], "bf16"),
            ("ort-old-weights", session(make.noisy(m, 0.02, w.seed + 5), tmp), m, {}, ["alike", "grows"], "bf16")):
        e = Engine(s)
        rolled = w.rollout(lambda i: e, tops=False, **ask)
        write(folder, name, lines(rolled), w.score(rolled, trainer), dict(rules=rules, preset=preset))


def fixture(folder, tmp):
    """Four short answers in each form of llama.cpp's server, some with tokens that it leaves out, and of ONNX Runtime; what
    transformers makes of the same tokens beside each."""
    make.TOP = 2
    w = make.World("llama", 5, 4)
    w.lengths = [9, 10, 11, 12]
    for name, of_bytes, ask in (("llama", True, {}), ("llama_chat", False, dict(chat=True)),
                                ("llama_probs", True, dict(post_sampling_probs=True, temperature=0.7)), ("llama_short", True, dict(chat=True))):
        path = os.path.join(tmp, name + ".gguf")
        gguf_of(w.m, path, of_bytes=of_bytes)
        answers, samples = llama(w, path, **ask)
        with open(os.path.join(folder, name + ".jsonl"), "w") as f:
            f.writelines(json.dumps(o) + "\n" for o in answers)
        if name != "llama_short":
            make.jsonl(os.path.join(folder, name + "_trainer.jsonl"), w.score(samples))
    e = Engine(session(w.m, tmp))
    rolled = w.rollout(lambda i: e, tops=False)
    make.jsonl(os.path.join(folder, "ort.jsonl"), rolled)
    make.jsonl(os.path.join(folder, "ort_trainer.jsonl"), w.score(rolled))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder", nargs="?")
    p.add_argument("--fixture")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=24)
    a = p.parse_args()
    torch.set_num_threads(1)
    if a.fixture:
        with tempfile.TemporaryDirectory() as tmp:
            fixture(a.fixture, tmp)
        return
    w = make.World("llama", a.seed, a.count)
    folder = os.path.join(a.folder, f"engines-{a.seed}")
    with tempfile.TemporaryDirectory() as tmp:
        of_llama(w, folder, tmp)
        of_ort(w, folder, tmp)


if __name__ == "__main__":
    main()
