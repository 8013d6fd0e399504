#!/usr/bin/env python3
"""Models of eight families (GPT-NeoX, Mixtral, Gemma 2, BERT, ViT, OPT, ResNet, T5), as transformers and torch leave them,
right and wrong, pair by pair, and what accdiff says of each.

tests/weights/families.py FOLDER           make the pairs (torch 2.15, transformers 5, safetensors, onnx, flax) and score
tests/weights/families.py FOLDER --score   score what is there; BIN is the folder of the programs"""
import argparse
import copy
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import writers
from writers import LOST, RIGHT, WRONG, pair, pairs

SMALL = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
TEXT = {**SMALL, "vocab_size": 120, "max_position_embeddings": 32}


def models():
    import torch
    import transformers as t
    torch.manual_seed(0)
    out = {"neox": t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**TEXT)),
           "mixtral": t.MixtralForCausalLM(t.MixtralConfig(**TEXT, num_key_value_heads=2, num_local_experts=4)),
           "gemma": t.Gemma2ForCausalLM(t.Gemma2Config(**TEXT, num_key_value_heads=2, head_dim=16)),
           "bert": t.BertForMaskedLM(t.BertConfig(**TEXT)),
           "vit": t.ViTForImageClassification(t.ViTConfig(**SMALL, image_size=16, patch_size=4, num_labels=10)),
           "opt": t.OPTForCausalLM(t.OPTConfig(vocab_size=120, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, ffn_dim=96,
                                               max_position_embeddings=32, word_embed_proj_dim=64)),
           "conv": t.ResNetForImageClassification(t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1] * 4,
                                                                 layer_type="basic", num_labels=5)),
           "t5": t.T5ForConditionalGeneration(t.T5Config(d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, vocab_size=120))}
    g = torch.Generator().manual_seed(7)
    for m in out.values():
        for p in m.parameters():
            p.data += 0.05 * torch.randn(p.shape, generator=g)
        for n, b in m.named_buffers():
            if "running" in n:
                b += torch.rand(b.shape, generator=g)
    return out


def put(name, sd):
    from safetensors.torch import save_file
    save_file({k: v.contiguous().clone() for k, v in sd.items()}, name + ".safetensors")
    return name + ".safetensors"


def save(name, o, **how):
    import torch
    torch.save(o, name, **how)
    return name


def each_expert(sd):
    """Mixtral's names of before, a tensor for each expert's matrix."""
    out = {}
    for k, v in sd.items():
        head = k.split("mlp.experts")[0] + "block_sparse_moe.experts."
        if "experts.gate_up_proj" in k:
            for e in range(4):
                out[f"{head}{e}.w1.weight"], out[f"{head}{e}.w3.weight"] = (x.clone() for x in v[e].chunk(2))
        elif "experts.down_proj" in k:
            out.update({f"{head}{e}.w2.weight": v[e].clone() for e in range(4)})
        else:
            out[k.replace("mlp.gate.", "block_sparse_moe.gate.")] = v
    return out


def make_right(ms, sds):
    import torch

    import layouts as lay
    for n, m in ms.items():
        m.save_pretrained("hf-" + n)
        m.save_pretrained("shards-" + n, max_shard_size="60KB")
        pair("shards-" + n, "hf-" + n, RIGHT, "shards")
        pair(save(n + ".bin", sds[n]), "hf-" + n, RIGHT, "all that is tied, too")
    pair(save("ddp.pt", {"model_state_dict": {"module." + k: v for k, v in sds["neox"].items()}, "epoch": 3}), "hf-neox", RIGHT, "DDP")
    pair(save("compiled.pt", {"state_dict": {"_orig_mod.module." + k: v for k, v in sds["bert"].items()}}), "hf-bert", RIGHT, "compiled")
    pair(save("old.pt", sds["vit"], _use_new_zipfile_serialization=False), "hf-vit", RIGHT, "without zip")
    for n in ("conv", "gemma"):
        pair(save(f"whole-{n}.pt", ms[n]), "hf-" + n, RIGHT, "a whole module")
    for n, size in (("vit", 16), ("conv", 32)):
        x = torch.randn(1, 3, size, size)
        torch.jit.save(torch.jit.trace(ms[n].eval(), x, strict=False), f"traced-{n}.pt")
        torch.export.save(torch.export.export(ms[n].eval(), (x,)), n + ".pt2")
        pair(f"traced-{n}.pt", "hf-" + n, RIGHT, "TorchScript")
        pair(n + ".pt2", "hf-" + n, RIGHT, "exported")
    for n in ("bert", "mixtral"):
        pair(lay.npz("arrays-" + n, sds[n]), n + ".bin", RIGHT, "arrays by name")
        pair(lay.onnx("onnx-" + n, sds[n], True), "hf-" + n, RIGHT, "ONNX")
        pair(lay.dcp("dcp-" + n, sds[n]), "hf-" + n, RIGHT, "DCP")
        pair(lay.dcp_safetensors("parts-" + n, sds[n]), "hf-" + n, RIGHT, "DCP in safetensors")
    pair(put("bf16", {k: v.bfloat16() for k, v in sds["opt"].items()}), "hf-opt", RIGHT, "bf16")
    pair(save("half.pt", {k: v.half() for k, v in sds["t5"].items()}), "hf-t5", RIGHT, "fp16")
    pair(put("each", each_expert(sds["mixtral"])), save("own.pt", sds["mixtral"]), RIGHT, "experts each, and packed")
    pair(put("prefix", {("transformer." + k[6:] if k.startswith("model.") else k): v for k, v in sds["opt"].items()}), "hf-opt", RIGHT, "a prefix")
    of = {k: v for k, v in sds["opt"].items() if v.ndim > 1}
    pair(lay.flax("flax", of), put("matrices", of), RIGHT, "Flax' kernels")
    pair(put("untied", {k: v for k, v in sds["gemma"].items() if k != "lm_head.weight"}), "gemma.bin", RIGHT, "without a tied head")


def make_trained(m, sds):
    """A step of the optimizer, its state, and a running mean of the weights."""
    import torch
    o = torch.optim.AdamW(m.parameters(), lr=1e-3)
    m(input_ids=torch.arange(8)[None], labels=torch.arange(8)[None]).loss.backward()
    before = {k: v.detach().clone() for k, v in m.state_dict().items()}
    o.step()
    after = {k: v.detach().clone() for k, v in m.state_dict().items()}
    state, other = copy.deepcopy(o.state_dict()), copy.deepcopy(o.state_dict())
    mean = {k: 0.9 * before[k] + 0.1 * v if v.is_floating_point() else v for k, v in after.items()}
    one = save("trained.pt", {"model": after, "optimizer": state, "step": 1})
    pair(one, save("trained-2.pt", {"model": copy.deepcopy(after), "optimizer": copy.deepcopy(state), "step": 1}), RIGHT, "training")
    pair(save("mean.pt", {"model": after, "ema": mean}), save("mean-2.pt", {"model": after, "ema": copy.deepcopy(mean)}), RIGHT, "EMA")
    pair(one, save("before.pt", {"model": before, "optimizer": state, "step": 0}), WRONG, "one step behind")
    other["state"][3]["exp_avg"] *= 10
    pair(save("moment.pt", {"model": after, "optimizer": other, "step": 1}), one, WRONG, "a moment times 10")
    pair(save("only-mean.pt", {"model": mean}), save("only-model.pt", {"model": after}), WRONG, "EMA for the model")


def of_name(part, f, number=0):
    """The first weight, or that of this number, whose name holds this."""
    def g(sd):
        k = [k for k in sd if part in k][number]
        return {**sd, k: f(sd[k])}
    return g


def of_all(f):
    return lambda sd: {k: f(k, v, sd) for k, v in sd.items()}


def exchanged(a, b, where=""):
    def f(k, v, sd):
        to = k.replace(a, "\0").replace(b, a).replace("\0", b)
        return sd[to] if where in k and to in sd else v
    return of_all(f)


def without(part):
    return lambda sd: {k: v for k, v in sd.items() if part not in k}


def faults():
    import torch

    def one_behind_the_other(word, *shape):
        return of_all(lambda k, v, sd: v.view(4, 3, *shape).transpose(0, 1).reshape(v.shape).contiguous() if word in k else v)

    def turned(k, v, sd):
        return v.T.contiguous() if "attn" in k and v.ndim > 1 else v
    return [
        ("neox", "q, k, v one behind the other", one_behind_the_other("query_key_value.weight", 16, 64)),
        ("neox", "their biases", one_behind_the_other("query_key_value.bias", 16)),
        ("neox", "a layer twice", of_all(lambda k, v, sd: sd[k.replace(".2.", ".1.")] if ".layers.2." in k else v)),
        ("neox", "a layer left out", lambda sd: {k.replace(".layers.2.", ".layers.1."): v for k, v in sd.items() if ".layers.1." not in k}),
        ("neox", "head is embedding", lambda sd: {**sd, "lm_head.weight": sd["gpt_neox.embed_in.weight"]}),
        ("mixtral", "experts exchanged", of_name("experts.gate_up_proj", lambda v: v[[1, 0, 2, 3]], 1)),
        ("mixtral", "their last matrix", of_name("experts.down_proj", lambda v: v[[0, 1, 3, 2]])),
        ("mixtral", "rows of a router", of_name("mlp.gate.weight", lambda v: v[[1, 0, 2, 3]])),
        ("mixtral", "up before gate", of_all(lambda k, v, sd: torch.cat(v.chunk(2, 1)[::-1], 1) if "gate_up" in k else v)),
        ("gemma", "norms plus 1", of_all(lambda k, v, sd: v + 1 if "norm" in k else v)),
        ("gemma", "scaled embedding", of_all(lambda k, v, sd: v * 8 if "embed" in k or "lm_head" in k else v)),
        ("gemma", "norms exchanged", exchanged("pre_feedforward", "post_feedforward")),
        ("bert", "weight and bias of a norm", exchanged("LayerNorm.weight", "LayerNorm.bias", "layer.1.output")),
        ("bert", "a bias of zeros", of_name("layer.2.attention.self.query.bias", lambda v: v * 0)),
        ("bert", "biases lost", without("intermediate.dense.bias")),
        ("bert", "types lost", without("token_type")),
        ("bert", "query and key", exchanged(".query.", ".key.")),
        ("bert", "a head's bias", of_name("predictions.bias", lambda v: v.roll(1))),
        ("vit", "patches turned", of_name("patch_embeddings.projection.weight", lambda v: v.transpose(2, 3).contiguous())),
        ("vit", "colours backwards", of_name("patch_embeddings.projection.weight", lambda v: v.flip(1))),
        ("vit", "class token last", of_name("position_embeddings", lambda v: v.roll(-1, 1))),
        ("opt", "positions by two", of_name("embed_positions", lambda v: v.roll(-2, 0))),
        ("opt", "attention turned", of_all(turned)),
        ("opt", "a k of zeros", of_name("layers.0.self_attn.k_proj.weight", lambda v: v * 0)),
        ("conv", "mean and variance", exchanged("running_mean", "running_var")),
        ("conv", "a kernel flipped", of_name("convolution.weight", lambda v: v.flip(2, 3), 1)),
        ("conv", "a variance times 1.01", of_name("running_var", lambda v: v * 1.01)),
        ("t5", "encoder and decoder", exchanged("encoder", "decoder", "layer.0.SelfAttention")),
        ("t5", "positions backwards", of_name("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", lambda v: v.flip(0)))]


def make_wrong(sds):
    import layouts as lay
    for i, (n, what, f) in enumerate(faults()):
        pair(save(f"wrong-{i}.pt", f({k: v.clone() for k, v in sds[n].items()})), "hf-" + n, WRONG, f"{n}: {what}")
    each = each_expert(sds["mixtral"])
    pair(put("each-up", exchanged("w1.", "w3.")(each)), "own.pt", WRONG, "mixtral: w1 and w3")
    pair(put("each-other", exchanged("experts.0.", "experts.1.")(each)), "own.pt", WRONG, "mixtral: experts exchanged, each")
    pair(put("each-lost", without("experts.3.w2")(each)), "own.pt", WRONG, "mixtral: an expert lost")

    def scaled(part, by):
        return of_all(lambda k, v, sd: v * by if part in k else v)
    pair(put("bf16-off", {k: v.bfloat16() for k, v in scaled("layers.1", 1.02)(sds["opt"]).items()}), "hf-opt", WRONG, "opt: a layer times 1.02")
    rolled = of_all(lambda k, v, sd: v.roll(1, 0) if "word_embeddings" in k or "decoder.weight" in k else v)
    pair(lay.npz("arrays-rolled", rolled(sds["bert"])), "bert.bin", WRONG, "bert: tokens by one")
    pair(lay.onnx("onnx-off", scaled("layers.2.self_attn.v_proj", 1.5)(sds["mixtral"])), "hf-mixtral", WRONG, "mixtral: v times 1.5")
    pair(lay.dcp("dcp-off", scaled("layers.0.self_attn.o_proj", -1)(sds["mixtral"])), "hf-mixtral", WRONG, "mixtral: o negated")
    shards = sorted(p for p in os.listdir("shards-neox") if p.endswith(".safetensors"))
    for n in ("lost", "twice"):
        shutil.copytree("shards-neox", "shards-" + n)
    os.remove("shards-lost/" + shards[2])
    shutil.copy("shards-twice/" + shards[1], "shards-twice/" + shards[2])
    shutil.copytree("dcp-bert", "dcp-cut")
    os.truncate("dcp-cut/__0_0.distcp", os.path.getsize("dcp-cut/__0_0.distcp") // 2)
    for a, b in (("shards-lost", "hf-neox"), ("shards-twice", "hf-neox"), ("dcp-cut", "hf-bert")):
        pair(a, b, LOST, "a file")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--score", action="store_true")
    o = p.parse_args()
    os.environ["BIN"] = os.path.abspath(os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin")))
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    if not o.score:
        ms = models()
        sds = {n: {k: v.detach().clone() for k, v in m.state_dict().items()} for n, m in ms.items()}
        make_right(ms, sds)
        make_wrong(sds)
        make_trained(ms["bert"], sds)
        with open("pairs.json", "w") as f:
            json.dump(pairs, f, indent=0)
    sys.exit(writers.score())


if __name__ == "__main__":
    main()
