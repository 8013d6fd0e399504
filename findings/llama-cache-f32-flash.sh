#!/bin/sh
# llama.cpp of October 2026 (xllamacpp 2026.10.11549) on the CPU: --cache-type-k f32 --cache-type-v f32 changes no bit. Flash attention is on
# where nobody switches it off, and casts keys and values to float16 whatever the cache holds. Only with flash attention off does the
# type of the cache count, and a cache of float16 alone is then nearer to the truth than one of float32 was with it.
# Seen on 2026-11-30, log-probabilities of 24 greedy tokens against both off and f32, largest difference:
#   as it comes and with a cache in f32: the same bits, 0.0025; flash attention off, cache in f16: 0.0012
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q xllamacpp==2026.10.11549 gguf==0.19.0 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - 2>err <<'END' || { tail -n 3 err >&2; exit 1; }
import json
import urllib.request
import gguf
import numpy as np
import xllamacpp
r = np.random.default_rng(4)
w = gguf.GGUFWriter("m.gguf", "llama")
for name, n in ("context_length", 512), ("embedding_length", 64), ("block_count", 2), ("feed_forward_length", 128), ("head_count", 4), \
        ("head_count_kv", 4), ("rope_dimension_count", 16), ("vocab_size", 384), ("bos_token_id", 1), ("eos_token_id", 2), ("unk_token_id", 0):
    getattr(w, "add_" + name)(n)
w.add_layer_norm_rms_eps(1e-6)
w.add_tokenizer_model("llama")
w.add_token_list(["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] + ["\u2581w%d" % i for i in range(125)])
w.add_token_scores([0.0] * 3 + [-1.0] * 381)
w.add_token_types([2, 3, 3] + [6] * 256 + [1] * 125)
w.add_add_bos_token(False)
shapes = {"token_embd": (384, 64), "output_norm": (64,), "output": (384, 64)}
for i in range(2):
    shapes.update({"blk.%d.%s" % (i, k): s for k, s in (("attn_norm", (64,)), ("ffn_norm", (64,)), ("ffn_gate", (128, 64)), ("ffn_up", (128, 64)),
                   ("ffn_down", (64, 128)), ("attn_q", (64, 64)), ("attn_k", (64, 64)), ("attn_v", (64, 64)), ("attn_output", (64, 64)))})
for name, s in shapes.items():
    a = np.ones(s) if len(s) == 1 else r.standard_normal(s) * (0.35 if name == "output" else 1 if name == "token_embd" else s[-1] ** -0.5)
    w.add_tensor(name + ".weight", a.astype("f4"))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()


def server(**more):
    p = xllamacpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.cpuparams.n_threads = "m.gguf", 512, 1, False, 1
    for k, v in more.items():
        setattr(p, k, v)
    return xllamacpp.Server(p)


def post(s, path, **ask):
    q = urllib.request.Request(s.listening_address + path, json.dumps(ask).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(q, timeout=60))


f32 = dict(cache_type_k=xllamacpp.ggml_type.GGML_TYPE_F32, cache_type_v=xllamacpp.ggml_type.GGML_TYPE_F32)
off = dict(flash_attn_type=xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED)


def logprobs(**more):
    o = post(server(**more), "/completion", prompt=[1, 280, 281, 270, 300, 310], n_predict=24, n_probs=1, temperature=0.0, ignore_eos=True,
             logit_bias=[[i, False] for i in range(3, 259)])
    return np.array([t["logprob"] for t in o["completion_probabilities"]])


usual, asked, f16, exact = logprobs(), logprobs(**f32), logprobs(**off), logprobs(**f32, **off)
print("the same bits: %s; off by %.3g, and %.3g without flash attention" % (np.array_equal(usual, asked), abs(asked - exact).max(), abs(f16 - exact).max()))
assert np.array_equal(usual, asked) and abs(asked - exact).max() > 1.2 * abs(f16 - exact).max() > 1e-5
END
