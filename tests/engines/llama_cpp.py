#!/usr/bin/env python3
"""A small Qwen2, or Llama, with random weights as GGUF and as torch: llama_cpp.py ARCH FOLDER [FAULT [TYPE]] writes
FOLDER/model.gguf and, by accrecord, FOLDER/bench; smaller with SMALL=1, as the fixture is. FAULT is of layer 1 of the GGUF: rows (of k, in another order), scale (of
up_proj), norm (its weight left out). TYPE, as Q8_0: of matrices, which torch has read back to f32. Needs torch, transformers, gguf."""
import os
import sys

import gguf
import numpy as np
import torch
import transformers

import accrecord

SMALL = bool(os.environ.get("SMALL"))
TOKENS = [3, 17, 42, 8, 91, 60, 5, 77, 23, 11, 64, 2][:6 if SMALL else None]
HEADS, KV, VOCAB = 4, 2, 96
LAYERS, HIDDEN, INNER = (2, 32, 64) if SMALL else (3, 64, 160)


def rows(w, heads):
    """As llama.cpp rotates neighbours, and transformers halves."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)


def coarse(v, quant):
    return gguf.quants.dequantize(gguf.quants.quantize(v, quant), quant)


def write(m, arch, path, fault, quant):
    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(64)
    w.add_embedding_length(HIDDEN)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(HIDDEN // HEADS)
    w.add_vocab_size(VOCAB)
    w.add_file_type(gguf.LlamaFileType.ALL_F32 if quant is None else gguf.LlamaFileType["MOSTLY_" + quant.name])
    w.add_tokenizer_model("llama")
    w.add_token_list([b"<%d>" % i for i in range(VOCAB)])
    w.add_token_scores([0.0] * VOCAB)
    w.add_token_types([1] * VOCAB)
    names = gguf.get_tensor_name_map({"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2}[arch], LAYERS)
    for name, p in m.state_dict().items():
        v = p.numpy()
        if "q_proj.weight" in name and arch == "llama":
            v = rows(v, HEADS)
        if "k_proj.weight" in name and (arch == "llama") != (fault == "rows" and ".1." in name):
            v = rows(v, KV)
        if fault == "scale" and name == "model.layers.1.mlp.up_proj.weight":
            v = v * np.float32(1.05)
        if fault == "norm" and name == "model.layers.1.post_attention_layernorm.weight":
            v = np.ones_like(v)
        few = quant if v.ndim > 1 else None
        v = np.ascontiguousarray(v)
        w.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), v if few is None else gguf.quants.quantize(v, few), raw_dtype=few)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


arch, folder, fault, quant = (sys.argv[1:] + ["", ""])[:4]
quant = gguf.GGMLQuantizationType[quant] if quant else None
torch.manual_seed(0)
name = {"llama": "Llama", "qwen2": "Qwen2"}[arch]
m = getattr(transformers, name + "ForCausalLM")(getattr(transformers, name + "Config")(
    vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
    num_key_value_heads=KV, tie_word_embeddings=False, rms_norm_eps=1e-6, attn_implementation="eager")).eval()
with torch.no_grad():
    for p in m.parameters():
        p.copy_(torch.randn(p.shape) * 0.2 + (p.dim() == 1))
        if quant is not None and p.dim() > 1:
            p.copy_(torch.from_numpy(coarse(p.numpy(), quant)))
    write(m, arch, folder + "/model.gguf", fault, quant)
    accrecord.start_record(output_dir=folder + "/bench")
    m(torch.tensor([TOKENS]))
    accrecord.record_switch(False)
print(*TOKENS)
