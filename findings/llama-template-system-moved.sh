#!/bin/sh
# llama.cpp's server of October 2026 (xllamacpp 2026.10.11549): where a chat template does not print the system message, as one that skips
# that role, it is not left out, as jinja2 and transformers do, but written in front of the first user's message with a line feed between. The
# model sees a text that the template never gives. What else differs from jinja2, without an error: lists are printed without
# separators, dictionaries and none not at all; -7 % 3 is -1; length counts bytes; sort puts capitals first; format does nothing.
# Seen on 2026-11-30: [user]Be brief.\nHi, where jinja2 gives [user]Hi
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q xllamacpp==2026.10.11549 gguf==0.19.0 numpy==2.4.6 jinja2==3.1.6
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


import jinja2
t = "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
got = post(server(chat_template=t, use_jinja=True), "/apply-template", messages=messages)["prompt"]
want = jinja2.Template(t).render(messages=messages)
print(repr(got), repr(want))
assert got == "[user]Be brief.\nHi" and want == "[user]Hi"
END
