# pip: xllamacpp==2026.10.11549 gguf==0.19.0 numpy==2.4.6
"""llama.cpp's server on the CPU, which the wheel has: what it says of tokens, and what it makes of chat templates."""
import json
import os
import tempfile
import urllib.error
import urllib.request

import gguf
import numpy as np
import xllamacpp as x

from tools import behaviour, main

TMP = tempfile.mkdtemp()
VOCAB, WIDTH, HEADS, LAYERS = 384, 64, 4, 2
PROMPT = [1, 30, 31, 270, 300, 310]


def model(of_bytes):
    """A Llama with random weights; 256 of its tokens are single bytes, or all are words."""
    path = os.path.join(TMP, f"{of_bytes}.gguf")
    if os.path.exists(path):
        return path
    r = np.random.default_rng(4)
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(512)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(2 * WIDTH)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_vocab_size(VOCAB)
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] * of_bytes
    n = len(tokens) - 3
    tokens += ["\u2581w%d" % i for i in range(VOCAB - len(tokens))]
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * 3 + [-1.0] * (VOCAB - 3))
    w.add_token_types([2, 3, 3] + [6] * n + [1] * (VOCAB - 3 - n))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_add_bos_token(False)

    def add(name, *shape, scale=None):
        a = np.ones(shape) if len(shape) == 1 else r.standard_normal(shape) * (scale or shape[-1] ** -0.5)
        w.add_tensor(name, a.astype("f4"))
    add("token_embd.weight", VOCAB, WIDTH, scale=1.0)
    add("output_norm.weight", WIDTH)
    add("output.weight", VOCAB, WIDTH, scale=0.35)
    for i in range(LAYERS):
        for name, shape in (("attn_norm", (WIDTH,)), ("ffn_norm", (WIDTH,)), ("ffn_gate", (2 * WIDTH, WIDTH)), ("ffn_up", (2 * WIDTH, WIDTH)),
                            ("ffn_down", (WIDTH, 2 * WIDTH)), *((f"attn_{k}", (WIDTH, WIDTH)) for k in ("q", "k", "v", "output"))):
            add(f"blk.{i}.{name}.weight", *shape)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def server(of_bytes=False, **more):
    p = x.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.cpuparams.n_threads = model(of_bytes), 512, 1, False, 1
    for k, v in more.items():
        setattr(p, k, v)
    return x.Server(p)


def post(s, path="/completion", **ask):
    r = urllib.request.Request(s.listening_address + path, json.dumps(ask).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(r, timeout=60))


def logprobs(s, **ask):
    return [t["logprob"] for t in post(s, prompt=PROMPT, n_predict=24, n_probs=1, temperature=0.0, ignore_eos=True, **ask)["completion_probabilities"]]


@behaviour
def llama_probs_skip_bytes():
    s = server(of_bytes=True)
    short = 0
    for seed in range(8):
        o = post(s, prompt=PROMPT, n_predict=24, n_probs=1, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed, return_tokens=True)
        entries = [t["id"] for t in o["completion_probabilities"]]
        assert len(o["tokens"]) == o["tokens_predicted"]
        left = iter(o["tokens"])
        assert all(i in left for i in entries)  # in their order
        c = post(s, "/v1/completions", prompt=PROMPT, max_tokens=24, logprobs=1, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
        assert [t["id"] for t in c["choices"][0]["logprobs"]["content"]] == entries and c["usage"]["completion_tokens"] == len(o["tokens"])
        short += len(entries) < len(o["tokens"])
    assert short >= 4, short


@behaviour
def llama_cache_f32_flash():
    f32 = dict(cache_type_k=x.ggml_type.GGML_TYPE_F32, cache_type_v=x.ggml_type.GGML_TYPE_F32)
    off = dict(flash_attn_type=x.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    usual, asked, f16, exact = [logprobs(server(**k)) for k in ({}, f32, off, {**f32, **off})]
    assert usual == asked != exact and f16 != exact
    far = lambda a: max(abs(p - q) for p, q in zip(a, exact))
    assert far(asked) > 1.2 * far(f16) > 1e-5, (far(asked), far(f16))


@behaviour
def llama_predict_zero():
    o = post(server(), prompt=PROMPT, n_predict=0, n_probs=1)
    assert o["tokens_predicted"] == 1 and len(o["completion_probabilities"]) == 1


@behaviour
def llama_logprobs_zero():
    s = server()
    assert post(s, "/v1/completions", prompt=PROMPT, max_tokens=3, logprobs=0)["choices"][0].get("logprobs") is None
    assert len(post(s, "/v1/completions", prompt=PROMPT, max_tokens=3, logprobs=1, ignore_eos=True)["choices"][0]["logprobs"]["content"]) == 3


@behaviour
def llama_echo_ignored():
    o = post(server(), "/v1/completions", prompt=PROMPT, max_tokens=3, logprobs=1, echo=True, ignore_eos=True)
    assert len(o["choices"][0]["logprobs"]["content"]) == 3 and o["usage"]["prompt_tokens"] == len(PROMPT)


SYSTEM = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi \u00e9\u4e2d"}]


def rendered(expression, messages=None):
    t = "{% for m in messages %}[{{ m.role }}]{{ m.content }}:{{ " + expression + " }};{% endfor %}"
    return post(server(True, chat_template=t, use_jinja=True), "/apply-template", messages=messages or SYSTEM[1:])["prompt"]


def of_user(expression):
    return rendered(expression).split(":", 1)[1].rstrip(";")


@behaviour
def llama_template_system_moved():
    t = "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
    s = server(True, chat_template=t, use_jinja=True)
    assert post(s, "/apply-template", messages=SYSTEM)["prompt"] == "[user]Be brief.\nHi \u00e9\u4e2d"


@behaviour
def llama_template_bytes():
    assert of_user("m.content|length") == "8" and of_user("m.content|upper") == "HI \u00e9\u4e2d"


@behaviour
def llama_template_numbers():
    assert [of_user(e) for e in ("-7 % 3", "0.1 + 0.2", "1.0|string", "{'a': 2.0}|tojson")] == ["-1", "0.3", "1", '{"a": 2}']


@behaviour
def llama_template_prints():
    assert [of_user(e) for e in ("[1, 'a', true]", "{'a': 1}", "none")] == ["1aTrue", "", ""]


@behaviour
def llama_template_sort():
    assert of_user("['b', 'a', 'C']|sort|join(' ')") == "C a b"


@behaviour
def llama_template_format():
    assert of_user("'%s-%d'|format('a', 3)") == "%s-%d"


if __name__ == "__main__":
    main()
