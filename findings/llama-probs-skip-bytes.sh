#!/bin/sh
# llama.cpp's server of October 2026 (xllamacpp 2026.10.11549): completion_probabilities, and logprobs.content of its answers in OpenAI's
# form, have an entry for each token that was generated, but for those whose bytes end within a character of UTF-8: these have none, and
# nothing says so but that usage.completion_tokens, or return_tokens, are more. Who pairs the n-th number with the n-th token is wrong
# from the first emoji or Chinese character that takes several tokens on; a rollout so scored looks like another model's.
# Seen on 2026-11-30, a random model whose tokens are mostly bytes, 24 generated: 14 to 21 entries
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


short = []
s = server()
for seed in range(8):
    o = post(s, "/completion", prompt=[1, 30, 31, 270, 300, 310], n_predict=24, n_probs=1, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed,
             return_tokens=True)
    entries, left = [t["id"] for t in o["completion_probabilities"]], iter(o["tokens"])
    assert all(i in left for i in entries)  # in their order
    short.append((len(o["tokens"]), len(entries)))
print(*("%d tokens, %d entries;" % x for x in short))
assert sum(b < a for a, b in short) >= 4
END
