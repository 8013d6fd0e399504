#!/usr/bin/python3
"""Puzzles of weights: one small model as two checkpoints, under names, layouts, types and formats of
different programs. make.py FOLDER [N]: FOLDER/NNN/{a,b}.EXT, bad.EXT (b with one fault), and
truth.json; make.py --small FOLDER: the few that tests/data/weights/puzzles holds; make.py --ranks
FOLDER [SEEDS]: checkpoints over ranks against one, of ranks.py. Needs numpy and torch. What belongs together is known by construction: each tensor of the
model carries where its values came from through every conversion.

Conversions are written from the programs' own: transformers' convert_llama_weights_to_hf.py
(permute), Megatron-LM's tools/checkpoint (query, key, value of a group one behind the other; fc1 is
gate, then up), DeepSeek's inference/convert.py, transformers' convert_*_checkpoint.py of BERT, ViT."""
import io
import json
import os
import pickle
import random
import struct
import sys
import zipfile

import numpy as np
import torch


class W:
    """Values, and from which tensors of the model they are."""

    def __init__(self, v, src):
        self.v, self.src = v, frozenset(src)

    def of(self, f):
        return W(np.ascontiguousarray(f(self.v)), self.src)


def cat(*ws, axis=0):
    return W(np.concatenate([w.v for w in ws], axis), frozenset().union(*[w.src for w in ws]))


def stack(*ws):
    return W(np.stack([w.v for w in ws]), frozenset().union(*[w.src for w in ws]))


class Net:
    """Names to values; each new value is a tensor of the model."""

    def __init__(self, rng):
        self.rng, self.w = rng, {}

    def __call__(self, name, *shape, scale=0.05):
        v = self.rng.normal(0, scale, shape).astype('f4')
        self.w[name] = W(v, [name])

    def norm(self, name, n, bias=False, init=False):
        self(name + '.weight', n, scale=0.1)
        self.w[name + '.weight'].v += 1
        if init:
            self.w[name + '.weight'].v[:] = 1
        if bias:
            self(name + '.bias', n)
            if init:
                self.w[name + '.bias'].v[:] = 0


L, D, H, KV, F, V, E = 3, 32, 4, 2, 48, 50, 4
HD = D // H


def llama(rng, bias=False, init=False, kv=KV, moe=None, layers=L, qknorm=False):
    n = Net(rng)
    n('model.embed_tokens.weight', V, D)
    for i in range(layers):
        p = 'model.layers.%d.' % i
        n.norm(p + 'input_layernorm', D, init=init)
        for x, rows in (('q', D), ('k', kv * HD), ('v', kv * HD)):
            n(p + 'self_attn.%s_proj.weight' % x, rows, D)
            if bias:
                n(p + 'self_attn.%s_proj.bias' % x, rows)
        if qknorm:
            n.norm(p + 'self_attn.q_norm', HD)
            n.norm(p + 'self_attn.k_norm', HD)
        n(p + 'self_attn.o_proj.weight', D, D)
        n.norm(p + 'post_attention_layernorm', D, init=init)
        if moe:
            gate, names = moe
            n(p + gate, E, D)
            for e in range(E):
                for x, s in zip(names, ((F, D), (F, D), (D, F))):
                    n(p + x % e, *s)
        else:
            n(p + 'mlp.gate_proj.weight', F, D)
            n(p + 'mlp.up_proj.weight', F, D)
            n(p + 'mlp.down_proj.weight', D, F)
    n.norm('model.norm', D, init=init)
    n('lm_head.weight', V, D)
    return n.w


MIXTRAL = ('block_sparse_moe.gate.weight', ['block_sparse_moe.experts.%%d.w%d.weight' % k for k in (1, 3, 2)])
QWEN3MOE = ('mlp.gate.weight', ['mlp.experts.%%d.%s_proj.weight' % k for k in ('gate', 'up', 'down')])


def deepseek(rng):
    n = Net(rng)
    n('model.embed_tokens.weight', V, D)
    for i in range(L):
        p = 'model.layers.%d.' % i
        n.norm(p + 'input_layernorm', D)
        n(p + 'self_attn.q_a_proj.weight', 24, D)
        n.norm(p + 'self_attn.q_a_layernorm', 24)
        n(p + 'self_attn.q_b_proj.weight', H * 12, 24)
        n(p + 'self_attn.kv_a_proj_with_mqa.weight', 20, D)
        n.norm(p + 'self_attn.kv_a_layernorm', 16)
        n(p + 'self_attn.kv_b_proj.weight', H * 16, 16)
        n(p + 'self_attn.o_proj.weight', D, H * 8)
        n.norm(p + 'post_attention_layernorm', D)
        if i == 0:
            for x, s in (('gate', (F, D)), ('up', (F, D)), ('down', (D, F))):
                n(p + 'mlp.%s_proj.weight' % x, *s)
            continue
        n(p + 'mlp.gate.weight', E, D)
        n(p + 'mlp.gate.e_score_correction_bias', E)
        for e in range(E):
            for x, s in (('gate', (16, D)), ('up', (16, D)), ('down', (D, 16))):
                n(p + 'mlp.experts.%d.%s_proj.weight' % (e, x), *s)
        for x, s in (('gate', (F, D)), ('up', (F, D)), ('down', (D, F))):
            n(p + 'mlp.shared_experts.%s_proj.weight' % x, *s)
    n.norm('model.norm', D)
    n('lm_head.weight', V, D)
    return n.w


def renamed(h, *rules):
    """A dict under other names; rules: (old, new), each a part of a name."""
    out = {}
    for k, w in h.items():
        for a, b in rules:
            k = k.replace(a, b)
        out[k] = w
    return out


def rotary(w, heads):
    """Half-split to interleaved: the inverse of transformers' permute()."""
    def f(v):
        rows = v.shape[0]
        return v.reshape((heads, 2, rows // heads // 2) + v.shape[1:]).swapaxes(1, 2).reshape(v.shape)
    return w.of(f)


def pad(w, rows):
    return w.of(lambda v: np.concatenate([v, np.zeros((rows - len(v),) + v.shape[1:], v.dtype)]))


def meta(h):
    out = {}
    for k, w in h.items():
        if '.q_proj.' in k:
            w = rotary(w, H)
        if '.k_proj.' in k:
            w = rotary(w, KV)
        out[k] = w
    out = renamed(out, ('model.', ''), ('embed_tokens', 'tok_embeddings'), ('lm_head', 'output'),
                  ('self_attn.q_proj', 'attention.wq'), ('self_attn.k_proj', 'attention.wk'),
                  ('self_attn.v_proj', 'attention.wv'), ('self_attn.o_proj', 'attention.wo'),
                  ('mlp.gate_proj', 'feed_forward.w1'), ('mlp.up_proj', 'feed_forward.w3'),
                  ('mlp.down_proj', 'feed_forward.w2'), ('post_attention_layernorm', 'ffn_norm'),
                  ('input_layernorm', 'attention_norm'))
    out['rope.freqs'] = W(np.float32(1e4) ** (-np.arange(HD // 2, dtype='f4') / 4), [])
    return out


def layers_of(h):
    return sorted({int(k.split('.')[2]) for k in h if k.startswith('model.layers.')})


def grouped(q, k, v, kv):
    """Megatron's: of each group its queries, its key, its value."""
    def split(w, n):
        return w.v.reshape((kv, -1) + w.v.shape[1:])
    x = np.concatenate([split(w, kv) for w in (q, k, v)], 1)
    return W(np.ascontiguousarray(x.reshape((-1,) + q.v.shape[1:])), q.src | k.src | v.src)


def megatron(h, old=False, kv=KV, te=False, grouped_experts=0, pad_to=64, swiglu=True):
    """Megatron-core, or (old) Megatron-LM's language_model; te: norms fused into the layers."""
    out, enc = {}, 'language_model.encoder.layers.%d.' if old else 'decoder.layers.%d.'
    at = 'self_attention.' if not old else 'self_attention.'
    emb = 'language_model.embedding.' if old else 'embedding.'
    out[emb + 'word_embeddings.weight'] = pad(h['model.embed_tokens.weight'], pad_to)
    for i in layers_of(h):
        p, q = enc % i, 'model.layers.%d.' % i
        used = set()

        def get(k):
            used.add(q + k)
            return h[q + k]

        def has(k):
            return q + k in h
        qkv = 'query_key_value' if old else 'linear_qkv'
        if old:
            out[p + 'input_norm.weight'] = get('input_layernorm.weight')
        elif te and has('self_attn.q_proj.weight'):
            out[p + at + 'linear_qkv.layer_norm_weight'] = get('input_layernorm.weight')
        else:
            out[p + 'input_layernorm.weight'] = get('input_layernorm.weight')
        if has('self_attn.q_proj.weight'):
            out[p + at + qkv + '.weight'] = grouped(*[get('self_attn.%s_proj.weight' % x) for x in 'qkv'], kv)
            if has('self_attn.q_proj.bias'):
                out[p + at + qkv + '.bias'] = grouped(*[get('self_attn.%s_proj.bias' % x) for x in 'qkv'], kv)
            if has('self_attn.q_norm.weight'):
                out[p + at + 'q_layernorm.weight'] = get('self_attn.q_norm.weight')
                out[p + at + 'k_layernorm.weight'] = get('self_attn.k_norm.weight')
        else:
            for x, y in (('q_a_proj', 'linear_q_down_proj'), ('q_b_proj', 'linear_q_up_proj'),
                         ('kv_a_proj_with_mqa', 'linear_kv_down_proj'), ('kv_b_proj', 'linear_kv_up_proj')):
                out[p + at + y + '.weight'] = get('self_attn.%s.weight' % x)
            out[p + at + ('linear_q_up_proj.layer_norm_weight' if te else 'q_layernorm.weight')] = \
                get('self_attn.q_a_layernorm.weight')
            out[p + at + ('linear_kv_up_proj.layer_norm_weight' if te else 'kv_layernorm.weight')] = \
                get('self_attn.kv_a_layernorm.weight')
        out[p + at + ('dense' if old else 'linear_proj') + '.weight'] = get('self_attn.o_proj.weight')
        dense = has('mlp.gate_proj.weight')
        post = ('post_attention_norm.weight' if old else 'mlp.linear_fc1.layer_norm_weight' if te and dense else
                'pre_mlp_layernorm.weight')
        out[p + post] = get('post_attention_layernorm.weight')
        one, two = ('mlp.dense_h_to_4h', 'mlp.dense_4h_to_h') if old else ('mlp.linear_fc1', 'mlp.linear_fc2')
        if dense:
            out[p + one + '.weight'] = cat(get('mlp.gate_proj.weight'), get('mlp.up_proj.weight'))
            out[p + two + '.weight'] = get('mlp.down_proj.weight')
        else:
            moe = [m for m in (MIXTRAL, QWEN3MOE) if has(m[1][0] % 0)][0]
            out[p + 'mlp.router.weight'] = get(moe[0])
            if has('mlp.gate.e_score_correction_bias'):
                out[p + 'mlp.router.expert_bias'] = get('mlp.gate.e_score_correction_bias')
            for e in range(E):
                gate, up, down = [get(x % e) for x in moe[1]]
                if grouped_experts:
                    out[p + 'mlp.experts.linear_fc1.weight%d' % e] = cat(gate, up)
                    out[p + 'mlp.experts.linear_fc2.weight%d' % e] = down
                else:
                    out[p + 'mlp.experts.local_experts.%d.linear_fc1.weight' % e] = cat(gate, up)
                    out[p + 'mlp.experts.local_experts.%d.linear_fc2.weight' % e] = down
            if has('mlp.shared_experts.gate_proj.weight'):
                out[p + 'mlp.shared_experts.linear_fc1.weight'] = cat(
                    get('mlp.shared_experts.gate_proj.weight'), get('mlp.shared_experts.up_proj.weight'))
                out[p + 'mlp.shared_experts.linear_fc2.weight'] = get('mlp.shared_experts.down_proj.weight')
    fin = 'language_model.encoder.final_norm.weight' if old else 'decoder.final_layernorm.weight'
    out[fin] = h['model.norm.weight']
    out[('language_model.output_layer' if old else 'output_layer') + '.weight'] = pad(h['lm_head.weight'], pad_to)
    if old:
        return {'model.' + k: w for k, w in out.items()}
    return out


def qwen1(h):
    out = {'transformer.wte.weight': h['model.embed_tokens.weight'], 'lm_head.weight': h['lm_head.weight'],
           'transformer.ln_f.weight': h['model.norm.weight']}
    for i in layers_of(h):
        p, q = 'transformer.h.%d.' % i, 'model.layers.%d.' % i
        for s in ('weight', 'bias'):
            out[p + 'attn.c_attn.' + s] = cat(*[h[q + 'self_attn.%s_proj.%s' % (x, s)] for x in 'qkv'])
        out[p + 'attn.c_proj.weight'] = h[q + 'self_attn.o_proj.weight']
        out[p + 'mlp.w1.weight'] = h[q + 'mlp.up_proj.weight']
        out[p + 'mlp.w2.weight'] = h[q + 'mlp.gate_proj.weight']
        out[p + 'mlp.c_proj.weight'] = h[q + 'mlp.down_proj.weight']
        out[p + 'ln_1.weight'] = h[q + 'input_layernorm.weight']
        out[p + 'ln_2.weight'] = h[q + 'post_attention_layernorm.weight']
    return out


def chatglm(h):
    out = {'transformer.embedding.word_embeddings.weight': h['model.embed_tokens.weight'],
           'transformer.output_layer.weight': h['lm_head.weight'],
           'transformer.encoder.final_layernorm.weight': h['model.norm.weight'],
           'transformer.rotary_pos_emb.inv_freq': W(np.float32(1e4) ** (-np.arange(4, dtype='f4') / 4), [])}
    for i in layers_of(h):
        p, q = 'transformer.encoder.layers.%d.' % i, 'model.layers.%d.' % i
        for s in ('weight', 'bias'):
            out[p + 'self_attention.query_key_value.' + s] = cat(
                *[h[q + 'self_attn.%s_proj.%s' % (x, s)] for x in 'qkv'])
        out[p + 'self_attention.dense.weight'] = h[q + 'self_attn.o_proj.weight']
        out[p + 'mlp.dense_h_to_4h.weight'] = cat(h[q + 'mlp.gate_proj.weight'], h[q + 'mlp.up_proj.weight'])
        out[p + 'mlp.dense_4h_to_h.weight'] = h[q + 'mlp.down_proj.weight']
        out[p + 'input_layernorm.weight'] = h[q + 'input_layernorm.weight']
        out[p + 'post_attention_layernorm.weight'] = h[q + 'post_attention_layernorm.weight']
    return out


def deepseek_own(h):
    out = renamed(h, ('model.', ''), ('embed_tokens', 'embed'), ('lm_head', 'head'), ('self_attn', 'attn'),
                  ('post_attention_layernorm', 'ffn_norm'), ('input_layernorm', 'attn_norm'),
                  ('q_a_proj', 'wq_a'), ('q_a_layernorm', 'q_norm'), ('q_b_proj', 'wq_b'),
                  ('kv_a_proj_with_mqa', 'wkv_a'), ('kv_a_layernorm', 'kv_norm'), ('kv_b_proj', 'wkv_b'),
                  ('o_proj', 'wo'), ('gate_proj', 'w1'), ('up_proj', 'w3'), ('down_proj', 'w2'),
                  ('e_score_correction_bias', 'bias'), ('mlp.', 'ffn.'))
    return out


def packed_experts(h, turned=False):
    """All experts of a layer in two tensors, gate and up joined; transposed as GPT-OSS and Llama 4."""
    out, moe = {}, QWEN3MOE if any('mlp.experts.0' in k for k in h) else MIXTRAL
    for k, w in h.items():
        if '.experts.' not in k:
            out[k] = w
    for i in layers_of(h):
        q = 'model.layers.%d.' % i
        if q + moe[1][0] % 0 not in h:
            continue
        x = stack(*[cat(h[q + moe[1][0] % e], h[q + moe[1][1] % e]) for e in range(E)])
        y = stack(*[h[q + moe[1][2] % e] for e in range(E)])
        p = q + moe[1][0].split('%d')[0]
        out[p + 'gate_up_proj'] = x.of(lambda v: v.swapaxes(1, 2)) if turned else x
        out[p + 'down_proj'] = y.of(lambda v: v.swapaxes(1, 2)) if turned else y
    return out


def fused_hf(h):
    """Phi-3, and what engines of inference make: qkv_proj, gate_up_proj."""
    out = {}
    for k, w in h.items():
        if '.q_proj.' in k:
            out[k.replace('.q_proj.', '.qkv_proj.')] = cat(*[h[k.replace('.q_proj.', '.%s_proj.' % x)] for x in 'qkv'])
        elif '.mlp.gate_proj.' in k:
            out[k.replace('.gate_proj.', '.gate_up_proj.')] = cat(w, h[k.replace('.gate_proj.', '.up_proj.')])
        elif '.k_proj.' not in k and '.v_proj.' not in k and '.mlp.up_proj.' not in k:
            out[k] = w
    return out


def mindformers(h):
    out = renamed(h, ('self_attn.q_proj', 'attention.wq'), ('self_attn.k_proj', 'attention.wk'),
                  ('self_attn.v_proj', 'attention.wv'), ('self_attn.o_proj', 'attention.wo'),
                  ('mlp.gate_proj', 'feed_forward.w1'), ('mlp.up_proj', 'feed_forward.w3'),
                  ('mlp.down_proj', 'feed_forward.w2'), ('post_attention_layernorm', 'ffn_norm'),
                  ('input_layernorm', 'attention_norm'), ('model.norm.', 'model.norm_out.'),
                  ('embed_tokens.weight', 'tok_embeddings.embedding_weight'))
    return out


def mindformers_mcore(h):
    return renamed(h, ('model.embed_tokens', 'embedding.word_embeddings'), ('model.layers', 'decoder.layers'),
                   ('model.norm', 'decoder.final_layernorm'), ('lm_head', 'output_layer'),
                   ('self_attn.q_proj', 'self_attention.linear_q'), ('self_attn.k_proj', 'self_attention.linear_k'),
                   ('self_attn.v_proj', 'self_attention.linear_v'), ('self_attn.o_proj', 'self_attention.linear_proj'),
                   ('post_attention_layernorm', 'pre_mlp_layernorm'), ('mlp.gate_proj', 'mlp.gating'),
                   ('mlp.up_proj', 'mlp.linear_fc1'), ('mlp.down_proj', 'mlp.linear_fc2'))


def bert(rng, init=False):
    n = Net(rng)
    n('bert.embeddings.word_embeddings.weight', V, D)
    n('bert.embeddings.position_embeddings.weight', 40, D)
    n('bert.embeddings.token_type_embeddings.weight', 2, D)
    n.norm('bert.embeddings.LayerNorm', D, True, init)
    for i in range(L):
        p = 'bert.encoder.layer.%d.' % i
        for x, o, k in (('attention.self.query', D, D), ('attention.self.key', D, D), ('attention.self.value', D, D),
                        ('attention.output.dense', D, D), ('intermediate.dense', F, D), ('output.dense', D, F)):
            n(p + x + '.weight', o, k)
            n(p + x + '.bias', o)
        n.norm(p + 'attention.output.LayerNorm', D, True, init)
        n.norm(p + 'output.LayerNorm', D, True, init)
    n('bert.pooler.dense.weight', D, D)
    n('bert.pooler.dense.bias', D)
    return n.w


def bert_tf(h):
    out = {}
    for k, w in h.items():
        if k.endswith('embeddings.weight'):
            k = k[:-7]
        elif k.endswith('.weight') and 'LayerNorm' not in k:
            k, w = k[:-6] + 'kernel', w.of(lambda v: v.T)
        k = k.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')
        out[k.replace('layer.', 'layer_').replace('.', '/')] = w
    return out


def bert_mindspore(h):
    out = {}
    for k, w in h.items():
        k = k.replace('LayerNorm.weight', 'layernorm.gamma').replace('LayerNorm.bias', 'layernorm.beta')
        k = k.replace('embeddings.weight', 'embeddings.embedding_table')
        k = k.replace('attention.self.', 'attention.attention.').replace('_embeddings', '_embedding')
        out[k.replace('bert.encoder.layer.', 'bert.bert_encoder.layers.')] = w
    return out


def gpt2(rng, init=False):
    n = Net(rng)
    n('transformer.wte.weight', V, D)
    n('transformer.wpe.weight', 40, D)
    for i in range(L):
        p = 'transformer.h.%d.' % i
        n.norm(p + 'ln_1', D, True, init)
        for x, o in (('q', D), ('k', D), ('v', D)):
            n(p + 'attn.%s.weight' % x, o, D)
            n(p + 'attn.%s.bias' % x, o)
        n(p + 'attn.c_proj.weight', D, D)
        n(p + 'attn.c_proj.bias', D)
        n.norm(p + 'ln_2', D, True, init)
        n(p + 'mlp.c_fc.weight', 4 * D, D)
        n(p + 'mlp.c_fc.bias', 4 * D)
        n(p + 'mlp.c_proj.weight', D, 4 * D)
        n(p + 'mlp.c_proj.bias', D)
    n.norm('transformer.ln_f', D, True, init)
    return n.w


def gpt2_hf(h, conv1d=True, prefix='transformer.'):
    """As transformers has it: Conv1D; nanoGPT's: linear layers."""
    out = {}
    for k, w in h.items():
        if '.attn.q.' in k:
            k, w = k.replace('.q.', '.c_attn.'), cat(*[h[k.replace('.q.', '.%s.' % x)] for x in 'qkv'])
        elif '.attn.k.' in k or '.attn.v.' in k:
            continue
        if conv1d and w.v.ndim == 2 and '.h.' in k:
            w = w.of(lambda v: v.T)
        out[k.replace('transformer.', prefix)] = w
    if conv1d:
        for i in range(L):
            out[prefix + 'h.%d.attn.bias' % i] = W(np.tril(np.ones((1, 1, 40, 40), 'f4')), [])
    return out


def gpt2_megatron(h):
    out = {}
    for k, w in h.items():
        if '.attn.k.' in k or '.attn.v.' in k:
            continue
        if '.attn.q.' in k:
            w = grouped(*[h[k.replace('.q.', '.%s.' % x)] for x in 'qkv'], H)
        if 'wte' in k:
            w = pad(w, 64)
        for a, b in (('transformer.h.', 'decoder.layers.'), ('transformer.wte', 'embedding.word_embeddings'),
                     ('transformer.wpe', 'embedding.position_embeddings'), ('transformer.ln_f', 'decoder.final_layernorm'),
                     ('ln_1', 'input_layernorm'), ('ln_2', 'pre_mlp_layernorm'), ('attn.q.', 'self_attention.linear_qkv.'),
                     ('attn.c_proj', 'self_attention.linear_proj'), ('mlp.c_fc', 'mlp.linear_fc1'),
                     ('mlp.c_proj', 'mlp.linear_fc2')):
            k = k.replace(a, b)
        out[k] = w
    return out


def vit(rng, init=False):
    n = Net(rng)
    n('vit.embeddings.cls_token', 1, 1, D)
    n('vit.embeddings.position_embeddings', 1, 17, D)
    n('vit.embeddings.patch_embeddings.projection.weight', D, 3, 4, 4)
    n('vit.embeddings.patch_embeddings.projection.bias', D)
    for i in range(L):
        p = 'vit.encoder.layer.%d.' % i
        for x, o, k in (('attention.attention.query', D, D), ('attention.attention.key', D, D),
                        ('attention.attention.value', D, D), ('attention.output.dense', D, D),
                        ('intermediate.dense', F, D), ('output.dense', D, F)):
            n(p + x + '.weight', o, k)
            n(p + x + '.bias', o)
        n.norm(p + 'layernorm_before', D, True, init)
        n.norm(p + 'layernorm_after', D, True, init)
    n.norm('vit.layernorm', D, True, init)
    n('classifier.weight', 10, D)
    n('classifier.bias', 10)
    return n.w


def vit_timm(h):
    out = {}
    for k, w in h.items():
        if '.attention.key.' in k or '.attention.value.' in k:
            continue
        if '.attention.query.' in k:
            w = cat(*[h[k.replace('query', x)] for x in ('query', 'key', 'value')])
        for a, b in (('vit.embeddings.cls_token', 'cls_token'), ('vit.embeddings.position_embeddings', 'pos_embed'),
                     ('vit.embeddings.patch_embeddings.projection', 'patch_embed.proj'), ('vit.encoder.layer.', 'blocks.'),
                     ('attention.attention.query', 'attn.qkv'), ('attention.output.dense', 'attn.proj'),
                     ('intermediate.dense', 'mlp.fc1'), ('output.dense', 'mlp.fc2'), ('layernorm_before', 'norm1'),
                     ('layernorm_after', 'norm2'), ('vit.layernorm', 'norm'), ('classifier', 'head')):
            k = k.replace(a, b)
        out[k] = w
    return out


def vit_flax(h):
    out = {}
    for k, w in h.items():
        if k.endswith('projection.weight'):
            k, w = k[:-6] + 'kernel', w.of(lambda v: v.transpose(2, 3, 1, 0))
        elif k.endswith('.weight') and 'norm' in k:
            k = k[:-6] + 'scale'
        elif k.endswith('.weight'):
            heads = '.attention.attention.' in k
            k, w = k[:-6] + 'kernel', w.of(lambda v: v.T.reshape(D, H, HD) if heads else v.T)
        elif k.endswith('bias') and '.attention.attention.' in k:
            w = w.of(lambda v: v.reshape(H, HD))
        for a, b in (('vit.embeddings.cls_token', 'cls'), ('vit.embeddings.position_embeddings', 'Transformer.posembed_input.pos_embedding'),
                     ('vit.embeddings.patch_embeddings.projection', 'embedding'), ('vit.encoder.layer.', 'Transformer.encoderblock_'),
                     ('attention.attention.', 'MultiHeadDotProductAttention_1.'), ('attention.output.dense', 'MultiHeadDotProductAttention_1.out'),
                     ('intermediate.dense', 'MlpBlock_3.Dense_0'), ('output.dense', 'MlpBlock_3.Dense_1'),
                     ('layernorm_before', 'LayerNorm_0'), ('layernorm_after', 'LayerNorm_2'),
                     ('vit.layernorm', 'Transformer.encoder_norm'), ('classifier', 'head')):
            k = k.replace(a, b)
        out[k.replace('.', '/')] = w
    return out


def resnet(rng, init=False):
    n = Net(rng)

    def bn(p, c):
        n.norm(p, c, True, init)
        n(p + '.running_mean', c)
        n(p + '.running_var', c)
        n.w[p + '.running_var'].v[:] = np.abs(n.w[p + '.running_var'].v) + 0.5
        n.w[p + '.num_batches_tracked'] = W(np.array(7, 'i8'), [])
    n('conv1.weight', 8, 3, 7, 7)
    bn('bn1', 8)
    for s in range(1, 4):
        for b in range(2):
            p, c, k = 'layer%d.%d.' % (s, b), 8 * s, 8 * s if b or s == 1 else 8 * (s - 1)
            n(p + 'conv1.weight', c, k, 3, 3)
            bn(p + 'bn1', c)
            n(p + 'conv2.weight', c, c, 3, 3)
            bn(p + 'bn2', c)
            if c != k:
                n(p + 'downsample.0.weight', c, k, 1, 1)
                bn(p + 'downsample.1', c)
    n('fc.weight', 10, 24)
    n('fc.bias', 10)
    return n.w


def resnet_mindspore(h):
    out = {}
    for k, w in h.items():
        if 'num_batches' in k:
            continue
        bn = '.bn' in '.' + k or 'downsample.1' in k
        if bn:
            k = k.replace('.weight', '.gamma').replace('.bias', '.beta')
        k = k.replace('running_mean', 'moving_mean').replace('running_var', 'moving_variance')
        k = k.replace('downsample', 'down_sample_layer').replace('fc.', 'end_point.')
        out[k] = w
    return out


def resnet_flax(h):
    out = {}
    for k, w in h.items():
        if 'num_batches' in k:
            continue
        if w.v.ndim == 4:
            k, w = k[:-6] + 'kernel', w.of(lambda v: v.transpose(2, 3, 1, 0))
        elif w.v.ndim == 2:
            k, w = k[:-6] + 'kernel', w.of(lambda v: v.T)
        else:
            k = k.replace('.weight', '.scale').replace('running_mean', 'mean').replace('running_var', 'var')
        stats = k.endswith('.mean') or k.endswith('.var')
        k = k.replace('layer', 'stage').replace('downsample.0', 'conv_proj').replace('downsample.1', 'norm_proj')
        out[('batch_stats/' if stats else 'params/') + k.replace('.', '/')] = w
    return out


def convnext(rng, init=False):
    n = Net(rng)
    n('stem.0.weight', 8, 3, 4, 4)
    n('stem.0.bias', 8)
    n.norm('stem.1', 8, True, init)
    for s in range(3):
        c = 8 * (s + 1)
        if s:
            n.norm('stages.%d.downsample.0' % s, c - 8, True, init)
            n('stages.%d.downsample.1.weight' % s, c, c - 8, 2, 2)
            n('stages.%d.downsample.1.bias' % s, c)
        for b in range(2):
            p = 'stages.%d.blocks.%d.' % (s, b)
            n(p + 'gamma', c)
            n(p + 'conv_dw.weight', c, 1, 7, 7)
            n(p + 'conv_dw.bias', c)
            n.norm(p + 'norm', c, True, init)
            n(p + 'mlp.fc1.weight', 4 * c, c)
            n(p + 'mlp.fc1.bias', 4 * c)
            n(p + 'mlp.fc2.weight', c, 4 * c)
            n(p + 'mlp.fc2.bias', c)
    n.norm('head.norm', 24, True, init)
    n('head.fc.weight', 10, 24)
    n('head.fc.bias', 10)
    return n.w


def convnext_torchvision(h):
    out = {}
    for k, w in h.items():
        p = k.split('.')
        if p[0] == 'stem':
            k = 'features.0.%s.%s' % (p[1], p[2])
        elif p[0] == 'head':
            k = 'classifier.%d.%s' % (0 if p[1] == 'norm' else 2, p[2])
        elif p[2] == 'downsample':
            k = 'features.%d.%s.%s' % (2 * int(p[1]), p[3], p[4])
        else:
            base = 'features.%d.%s.' % (2 * int(p[1]) + 1, p[3])
            rest = '.'.join(p[4:])
            if rest == 'gamma':
                k, w = base + 'layer_scale', w.of(lambda v: v.reshape(-1, 1, 1))
            else:
                for a, b in (('conv_dw', 'block.0'), ('norm', 'block.2'), ('mlp.fc1', 'block.3'), ('mlp.fc2', 'block.5')):
                    rest = rest.replace(a, b)
                k = base + rest
        out[k] = w
    return out


def numbered(h, rnd):
    keys = list(h)
    rnd.shuffle(keys)
    return {'n.%d' % i: h[k] for i, k in enumerate(keys)}


def wrapped(h, prefix='state_dict.model.module.'):
    return {prefix + k: w for k, w in h.items()}


same = lambda h: h  # noqa: E731
#          model, of the device, of the bench, how it is called
FAMILIES = [
    ('llama-meta', lambda r, i: llama(r, init=i), meta, same),
    ('meta-llama', lambda r, i: llama(r, init=i), same, meta),
    ('megatron-llama', lambda r, i: llama(r, init=i), megatron, same),
    ('llama-megatron-te', lambda r, i: llama(r, init=i), same, lambda h: megatron(h, te=True)),
    ('megatron-lm-llama', lambda r, i: llama(r, init=i), lambda h: megatron(h, old=True), same),
    ('megatron-qwen2', lambda r, i: llama(r, bias=True, init=i), megatron, same),
    ('megatron-qwen3', lambda r, i: llama(r, qknorm=True, init=i), lambda h: megatron(h, te=True), same),
    ('megatron-old-new', lambda r, i: llama(r, init=i), lambda h: megatron(h, old=True, pad_to=56), megatron),
    ('qwen1-qwen2', lambda r, i: llama(r, bias=True, kv=H, init=i), qwen1, same),
    ('qwen2-wrapped', lambda r, i: llama(r, bias=True, init=i), wrapped, same),
    ('chatglm-llama', lambda r, i: llama(r, bias=True, init=i), chatglm, same),
    ('chatglm-megatron', lambda r, i: llama(r, bias=True, init=i), chatglm, megatron),
    ('deepseek-own', lambda r, i: deepseek(r), deepseek_own, same),
    ('deepseek-megatron', lambda r, i: deepseek(r), same, lambda h: megatron(h, te=True, grouped_experts=1)),
    ('megatron-deepseek', lambda r, i: deepseek(r), megatron, same),
    ('deepseek-packed', lambda r, i: deepseek(r), packed_experts, same),
    ('mixtral-megatron', lambda r, i: llama(r, moe=MIXTRAL, init=i), same, lambda h: megatron(h, grouped_experts=1)),
    ('mixtral-packed', lambda r, i: llama(r, moe=MIXTRAL, init=i), same, packed_experts),
    ('qwen3moe-packed-turned', lambda r, i: llama(r, moe=QWEN3MOE, qknorm=True, init=i), same,
     lambda h: packed_experts(h, True)),
    ('mixtral-qwen3moe', lambda r, i: llama(r, moe=MIXTRAL, init=i), same,
     lambda h: renamed(h, ('block_sparse_moe', 'mlp'), ('.w1.', '.gate_proj.'), ('.w3.', '.up_proj.'), ('.w2.', '.down_proj.'))),
    ('fused-llama', lambda r, i: llama(r, init=i), fused_hf, same),
    ('fused-meta', lambda r, i: llama(r, init=i, kv=H), fused_hf, mindformers),
    ('mindformers', lambda r, i: llama(r, init=i), mindformers, same),
    ('mindformers-mcore', lambda r, i: llama(r, init=i), mindformers_mcore, same),
    ('bert-tf', lambda r, i: bert(r, i), bert_tf, same),
    ('bert-mindspore', lambda r, i: bert(r, i), bert_mindspore, same),
    ('gpt2-nano', lambda r, i: gpt2(r, i), gpt2_hf, lambda h: gpt2_hf(h, False)),
    ('gpt2-megatron', lambda r, i: gpt2(r, i), gpt2_hf, gpt2_megatron),
    ('vit-timm', lambda r, i: vit(r, i), vit_timm, same),
    ('vit-flax', lambda r, i: vit(r, i), vit_flax, same),
    ('timm-flax', lambda r, i: vit(r, i), vit_timm, vit_flax),
    ('resnet-mindspore', lambda r, i: resnet(r, i), resnet_mindspore, same),
    ('resnet-flax', lambda r, i: resnet(r, i), resnet_flax, same),
    ('convnext-torchvision', lambda r, i: convnext(r, i), same, convnext_torchvision),
    ('numbered-llama', lambda r, i: llama(r, init=i), 'numbered', same),
    ('numbered-megatron', lambda r, i: llama(r, init=i), 'numbered', megatron),
    ('numbered-vit', lambda r, i: vit(r, i), 'numbered', vit_flax),
]

SMALL = ['llama-meta', 'megatron-qwen2', 'deepseek-packed', 'gpt2-megatron',
         'chatglm-megatron', 'numbered-vit']

# --- writing ---


def cast(v, t):
    if v.dtype != np.float32 or t == 'f32':
        return torch.from_numpy(v.copy())
    return torch.from_numpy(v.copy()).to({'bf16': torch.bfloat16, 'fp16': torch.float16}[t])


def safetensors(path, tensors):
    head, data = {}, b''
    name = {torch.float32: 'F32', torch.bfloat16: 'BF16', torch.float16: 'F16', torch.int64: 'I64'}
    for k in sorted(tensors):
        t = tensors[k]
        raw = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()
        head[k] = {'dtype': name[t.dtype], 'shape': list(t.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
        data += raw
    h = json.dumps(head).encode()
    h += b' ' * (-len(h) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(h)) + h + data)


def sharded(path, tensors):
    os.mkdir(path)
    keys = sorted(tensors)
    half, where = len(keys) // 2, {}
    for i, part in enumerate((keys[:half], keys[half:])):
        f = 'model-%05d-of-00002.safetensors' % (i + 1)
        safetensors(os.path.join(path, f), {k: tensors[k] for k in part})
        where.update({k: f for k in part})
    with open(os.path.join(path, 'model.safetensors.index.json'), 'w') as f:
        json.dump({'metadata': {}, 'weight_map': where}, f)


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(n, data):
    return varint(n << 3 | 2) + varint(len(data)) + data


def msckpt(path, tensors):
    """mindspore's checkpoint.proto: Value{tag=1, tensor=2{dims=1, tensor_type=2, tensor_content=3}}."""
    out = b''
    name = {torch.float32: b'Float32', torch.bfloat16: b'BFloat16', torch.float16: b'Float16', torch.int64: b'Int64'}
    for k, t in tensors.items():
        raw = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()
        dims = b''.join(varint(1 << 3) + varint(d) for d in (t.shape or [0]))
        out += field(1, field(1, k.encode()) + field(2, dims + field(2, name[t.dtype]) + field(3, raw)))
    with open(path, 'wb') as f:
        f.write(out)


def save(stem, tensors, form):
    if form == 'npz':
        np.savez(stem + '.npz', **{k: t.numpy() for k, t in tensors.items()})
        return stem + '.npz'
    if form == 'shards':
        sharded(stem, tensors)
        return stem
    path = stem + {'pt': '.pt', 'safetensors': '.safetensors', 'ckpt': '.ckpt'}[form]
    if form == 'pt':
        torch.save(tensors, path)
    elif form == 'ckpt':
        msckpt(path, tensors)
    else:
        safetensors(path, tensors)
    return path


# --- faults ---

FAULTS = ['noise', 'row', 'swap', 'stale', 'rotary', 'turned', 'expert', 'halves', 'vocabulary', 'zeroed']


def fault(b, kind, rng, rnd, named=True):
    """One tensor of b is wrong: (b, names), or None where the model has nothing of the kind. Not named:
    the names of the other side say nothing, so that two that changed places only have other names, and
    so have two halves."""
    b = dict(b)
    if kind in ('swap', 'halves') and not named:
        return None
    real = [k for k, w in b.items() if w.src and w.v.dtype == np.float32 and np.ptp(w.v) > 0]
    big = [k for k in real if w2(b[k])]
    if kind in ('noise', 'row', 'stale'):
        k = rnd.choice(big)
        v = b[k].v.copy()
        if kind == 'noise':
            v += (0.01 * v.std() * rng.normal(0, 1, v.shape)).astype('f4')
        elif kind == 'row':
            v[rnd.randrange(len(v))] += (0.3 * v.std() * rng.normal(0, 1, v.shape[1:])).astype('f4')
        else:
            v += (0.1 * v.std() * rng.normal(0, 1, v.shape)).astype('f4')
        b[k] = W(v, b[k].src)
        return b, [k]
    if kind == 'swap':  # the same weight of two layers
        pairs = [(k, m) for k in big for m in big if k < m and b[k].v.shape == b[m].v.shape and
                 differ_once(k, m)]
        if not pairs:
            return None
        k, m = rnd.choice(pairs)
        b[k], b[m] = b[m], b[k]
        return b, [k, m]
    if kind == 'rotary':
        ks = [k for k in big if any(x in k for x in ('.q_proj.weight', '.wq.weight'))]
        if not ks:
            return None
        k = rnd.choice(ks)
        b[k] = rotary(b[k], H)
        return b, [k]
    if kind == 'turned':
        ks = [k for k in big if b[k].v.ndim == 2 and b[k].v.shape[0] == b[k].v.shape[1]]
        if not ks:
            return None
        k = rnd.choice(ks)
        b[k] = b[k].of(lambda v: v.T)
        return b, [k]
    if kind == 'expert':
        ks = [k for k in big if '.experts.' in k and '1' in k and k.replace('experts.1', 'experts.2') in b]
        ks = [(k, k.replace('experts.1', 'experts.2')) for k in ks if 'experts.1' in k]
        ks += [(k, k[:-1] + '2') for k in big if k.endswith('weight1') and k[:-1] + '2' in b]
        if not ks:
            return None
        k, m = rnd.choice(ks)
        b[m] = W(b[k].v, b[m].src)
        return b, [m]
    if kind == 'halves':
        ks = [k for k in big if any(x in k for x in ('gate_up_proj', 'linear_fc1.weight', 'dense_h_to_4h.weight')) and
              len(b[k].src) == 2]
        if not ks:
            return None
        k = rnd.choice(ks)
        b[k] = b[k].of(lambda v: np.concatenate([v[len(v) // 2:], v[:len(v) // 2]]))
        return b, [k]
    if kind == 'vocabulary':
        ks = [k for k in big if b[k].v.ndim == 2 and len(b[k].v) >= V and ('emb' in k or 'wte' in k)]
        if not ks:
            return None
        k = rnd.choice(ks)
        b[k] = b[k].of(lambda v: v[:V - 3])
        return b, [k]
    ks = [k for k in real if b[k].v.ndim == 1 and ('bias' in k or 'beta' in k)]
    if not ks:
        return None
    k = rnd.choice(ks)
    b[k] = W(np.zeros_like(b[k].v), b[k].src)
    return b, [k]


def w2(w):
    return w.v.ndim > 1


def differ_once(k, m):
    """Do two names differ in the number of a layer alone?"""
    p, q = [s.replace('/', '.').replace('_', '.').split('.') for s in (k, m)]
    d = [i for i in range(min(len(p), len(q))) if p[i] != q[i]]
    return len(p) == len(q) and len(d) == 1 and p[d[0]].isdigit() and not k.startswith('n.')


def main():
    global D, F, V, HD
    if len(sys.argv) < 2 or sys.argv[-1] in ('-h', '--help'):
        sys.exit(__doc__)
    if sys.argv[1] == '--ranks':
        sys.modules['make'] = sys.modules['__main__']
        import ranks
        small = sys.argv[3:] == ['small']
        ranks.main(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 and not small else 1, small)
        return
    if sys.argv[1] == '--small':  # what tests/data/weights/puzzles holds: a few, in one format
        small, out = SMALL, sys.argv[2]
        D, F, V = 16, 24, 18
        HD = D // H
        which = [k + (len(FAMILIES) if f[0] in ('llama-meta', 'gpt2-megatron') else 0)
                 for k, f in enumerate(FAMILIES) if f[0] in small]
    else:
        small, out = None, sys.argv[1]
        which = range(int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    os.makedirs(out)
    for i in which:
        rnd, rng = random.Random(i), np.random.default_rng(i)
        name, model, fa, fb = FAMILIES[i % len(FAMILIES)]
        turn = i // len(FAMILIES)
        h = model(rng, turn % 2 == 1)
        a = numbered(h, rnd) if fa == 'numbered' else fa(h)
        b = fb(h)
        tied = []
        if turn % 3 == 2:  # tied: one side has the output layer, the other the embedding alone
            for s in (a, b):
                e = [k for k, w in s.items() if w.src == {'model.embed_tokens.weight'}]
                o = [k for k, w in s.items() if w.src == {'lm_head.weight'}]
                if e and o:
                    s[o[0]] = s[e[0]]
                    if s is b:
                        del s[o[0]]
                    else:
                        tied = o + e
        if turn % 4 == 3 and any('self_attn' in k for k in b):
            b = dict(b)
            for j in range(L):
                b['model.layers.%d.self_attn.rotary_emb.inv_freq' % j] = W(
                    np.float32(1e4) ** (-np.arange(HD // 2, dtype='f4') / 4), [])
        ca, cb = rnd.choice([('f32', 'f32'), ('f32', 'f32'), ('bf16', 'f32'), ('f32', 'bf16'), ('f32', 'fp16'),
                             ('fp16', 'f32'), ('bf16', 'bf16')])
        forms = ['pt', 'safetensors', 'shards', 'ckpt', 'npz']
        form_a, form_b = rnd.choice(forms), rnd.choice(forms)
        if ca == 'bf16' and form_a == 'npz':
            form_a = 'pt'
        if cb == 'bf16' and form_b == 'npz':
            form_b = 'pt'
        if small:
            ca, cb, form_a, form_b = 'bf16', 'bf16' if i % 2 else 'fp16', 'safetensors', 'safetensors'
        d = os.path.join(out, name if small else '%03d' % i)
        os.mkdir(d)
        fault_kind = bad = None
        for t in range(len(FAULTS)):
            fault_kind = FAULTS[(i + t) % len(FAULTS)]
            bad = fault(b, fault_kind, rng, rnd, fa != 'numbered')
            if bad:
                break
        pairs = [[x, y] for x, w in a.items() for y, u in b.items() if w.src & u.src]
        truth = {'family': name, 'cast': [ca, cb], 'pairs': pairs,
                 'tied': [p for p in pairs if p[0] in tied], 'fault': fault_kind, 'bad': bad[1],
                 'a': os.path.basename(save(os.path.join(d, 'a'), {k: cast(w.v, ca) for k, w in a.items()}, form_a)),
                 'b': os.path.basename(save(os.path.join(d, 'b'), {k: cast(w.v, cb) for k, w in b.items()}, form_b)),
                 'bad_b': os.path.basename(save(os.path.join(d, 'bad'), {k: cast(w.v, cb) for k, w in bad[0].items()},
                                                form_b)),
                 'groups': {k: sorted(w.src) for s in (a, b) for k, w in s.items()}}
        if small:
            with open(os.path.join(d, 'pairs.tsv'), 'w') as f:
                f.writelines('%s\t%s\n' % tuple(p) for p in sorted(pairs))
            with open(os.path.join(d, 'bad.txt'), 'w') as f:
                f.write('%s\t%s\n' % (fault_kind, bad[1][0]))
            continue
        with open(os.path.join(d, 'truth.json'), 'w') as f:
            json.dump(truth, f)


if __name__ == '__main__':
    main()
