#!/usr/bin/env python3
"""Makes tests/data/weights/writers.tar.gz: one small Llama as the programs of 2026 leave it, right and with
faults that a converter or a copy makes.

python3 tests/data/make_writers2026.py     (torch 2.15, numpy, safetensors, gguf 0.19, onnx 1.23; two processes
                                            over gloo)

hf.safetensors is the model under Hugging Face's names. What torch writes itself is written by it: files
without checksums, a whole module, an exported program, parts in safetensors, shards of Hugging Face's, DTensors
of FSDP2; GGUF and ONNX by the packages of these names. What needs other packages is written by torch.save or DCP in the layout that these have: DeepSpeed 0.19's universal
checkpoint (ds_to_universal.py), megatron-core 0.19's mp_rank files and torch_dist, paddle 3.3's pickles."""
import functools
import os
import pickle
import tarfile
import tempfile

import numpy as np
import onnx
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from safetensors.torch import save_file

D, H, KV, F, V, L = 16, 4, 2, 24, 32, 2
HD = D // H
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "writers.tar.gz")


def llama(seed=11):
    g = torch.Generator().manual_seed(seed)

    def w(*shape):
        return torch.randn(*shape, generator=g) * 0.05
    sd = {"model.embed_tokens.weight": w(V, D)}
    for i in range(L):
        p = f"model.layers.{i}."
        sd[p + "input_layernorm.weight"] = 1 + w(D)
        for x, rows in (("q", D), ("k", KV * HD), ("v", KV * HD)):
            sd[p + f"self_attn.{x}_proj.weight"] = w(rows, D)
        sd[p + "self_attn.o_proj.weight"] = w(D, D)
        sd[p + "post_attention_layernorm.weight"] = 1 + w(D)
        sd[p + "mlp.gate_proj.weight"] = w(F, D)
        sd[p + "mlp.up_proj.weight"] = w(F, D)
        sd[p + "mlp.down_proj.weight"] = w(D, F)
    sd["model.norm.weight"] = 1 + w(D)
    sd["lm_head.weight"] = w(V, D)
    return sd


def module(sd):
    """Modules whose state dict is sd."""
    root = nn.Module()
    for k, v in sd.items():
        at = root
        *path, last = k.split(".")
        for p in path:
            if p not in at._modules:
                at.add_module(p, nn.Module())
            at = at._modules[p]
        at.register_parameter(last, nn.Parameter(v.clone()))
    root.register_buffer("fleeting", torch.ones(1), persistent=False)
    return root


def exported(name, sd):
    """torch.export's archive of a module with these weights, one of which is a view."""
    root = module(sd)
    root.forward = lambda x: sum(p.sum() for p in root.parameters()) + x
    torch.export.save(torch.export.export(root, (torch.ones(1),)), name)


# --- Megatron ---

def qkv(sd, i, how):
    q, k, v = [sd[f"model.layers.{i}.self_attn.{x}_proj.weight"] for x in "qkv"]
    if how == "flat":
        return torch.cat([q, k, v])
    a = [x.view(KV, -1, D) for x in (q, k, v)]
    if how == "qvk":
        a = [a[0], a[2], a[1]]
    return torch.cat(a, 1).reshape(-1, D)


def megatron(sd, how="right", tp=2):
    """State dicts of tp ranks, as GPTModel has them with local layers."""
    ranks = [{} for _ in range(tp)]

    def rows(name, w):
        for r, part in zip(ranks, w.chunk(tp, 0)):
            r[name] = part.clone()

    def columns(name, w):
        for r, part in zip(ranks, w.chunk(tp, 1)):
            r[name] = part.clone()

    def same(name, w):
        for r in ranks:
            r[name] = w.clone()
    rows("embedding.word_embeddings.weight", sd["model.embed_tokens.weight"])
    for i in range(L):
        p, h = f"decoder.layers.{i}.", f"model.layers.{i}."
        same(p + "input_layernorm.weight", sd[h + "input_layernorm.weight"])
        rows(p + "self_attention.linear_qkv.weight", qkv(sd, i, how))
        columns(p + "self_attention.linear_proj.weight", sd[h + "self_attn.o_proj.weight"])
        same(p + "pre_mlp_layernorm.weight", sd[h + "post_attention_layernorm.weight"])
        gate, up = sd[h + "mlp.gate_proj.weight"], sd[h + "mlp.up_proj.weight"]
        if how == "upgate":
            gate, up = up, gate
        if how == "naive":
            rows(p + "mlp.linear_fc1.weight", torch.cat([gate, up]))
        else:
            for r, g, u in zip(ranks, gate.chunk(tp), up.chunk(tp)):
                r[p + "mlp.linear_fc1.weight"] = torch.cat([g, u])
        columns(p + "mlp.linear_fc2.weight", sd[h + "mlp.down_proj.weight"])
    same("decoder.final_layernorm.weight", sd["model.norm.weight"])
    rows("output_layer.weight", sd["lm_head.weight"])
    return ranks


def put_megatron(folder, ranks, only=None):
    for r, sd in enumerate(ranks):
        if only is None or r in only:
            d = f"{folder}/iter_0000003/mp_rank_{r:02}"
            os.makedirs(d)
            torch.save({"model": sd, "iteration": 3, "checkpoint_version": 3.0}, d + "/model_optim_rng.pt")


def torch_dist(sd):
    """The whole of it, layers along a new first axis, the names of Transformer Engine."""
    whole = {k: v for k, v in megatron(sd, tp=1)[0].items()}
    out = {k: v for k, v in whole.items() if ".layers." not in k}
    for k in [k for k in whole if ".layers.0." in k]:
        name = k.replace(".layers.0.", ".layers.")
        name = name.replace("input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight")
        name = name.replace("pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight")
        out[name] = torch.stack([whole[k.replace(".0.", f".{i}.")] for i in range(L)])
    return out


# --- others ---

def meta(sd, permuted="qk"):
    """Meta's names, the rows of q and k by rotary pairs; those not in `permuted` as Hugging Face has them."""
    words = (("self_attn.q_proj", "attention.wq"), ("self_attn.k_proj", "attention.wk"),
             ("self_attn.v_proj", "attention.wv"), ("self_attn.o_proj", "attention.wo"),
             ("mlp.gate_proj", "feed_forward.w1"), ("mlp.up_proj", "feed_forward.w3"),
             ("mlp.down_proj", "feed_forward.w2"), ("input_layernorm", "attention_norm"),
             ("post_attention_layernorm", "ffn_norm"), ("embed_tokens", "tok_embeddings"),
             ("lm_head", "output"), ("model.", ""))
    out = {}
    for k, v in sd.items():
        for x in permuted:
            if f"{x}_proj" in k and x in "qk":
                v = v.view(-1, 2, HD // 2, D).transpose(1, 2).reshape(-1, D)
        for a, b in words:
            k = k.replace(a, b)
        out[k] = v.contiguous()
    return out


# As llama.cpp's convert_hf_to_gguf.py names them.
GGUF = (("model.embed_tokens", "token_embd"), ("model.layers.", "blk."), ("model.norm", "output_norm"),
        ("lm_head", "output"), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"), ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"))


def gguf_file(name, sd, permuted="qk", kind="F32"):
    """The rows of q and k by rotary pairs, as it does for Llama; matrices of this type."""
    import gguf
    w = gguf.GGUFWriter(name, "llama")
    w.add_block_count(L)
    w.add_array("tokenizer.ggml.tokens", ["a", "b"])
    w.add_array("numbers", [1, 2, 3])
    for k, v in sd.items():
        if any(f"{x}_proj" in k for x in permuted if x in "qk"):
            v = v.view(-1, 2, HD // 2, D).transpose(1, 2).reshape(-1, D)
        for a, b in GGUF:
            k = k.replace(a, b)
        q = getattr(gguf.GGMLQuantizationType, kind if v.ndim > 1 else "F32")
        a = v.contiguous().numpy()
        w.add_tensor(k, a if q == gguf.GGMLQuantizationType.F32 else gguf.quantize(a, q), raw_dtype=q)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def onnx_model(sd):
    """Initializers and no node: as bytes of their own, one as numbers, one in bfloat16."""
    import onnx
    t = [onnx.numpy_helper.from_array(v.numpy(), k) for k, v in sd.items() if k != "model.norm.weight"]
    v = sd["model.norm.weight"]
    t.append(onnx.helper.make_tensor("model.norm.weight", onnx.TensorProto.FLOAT, list(v.shape), v.tolist()))
    t.append(onnx.helper.make_tensor("bits", onnx.TensorProto.BFLOAT16, [2], b"\x80?\x00@", raw=True))
    t.append(onnx.helper.make_tensor("numbers", onnx.TensorProto.INT32, [3], [1, 2, 3]))
    return onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], t), producer_name="acctools")


def experts(sd, packed, order=(0, 1, 2), gate_first=True):
    """Three experts made of the model's own: each by itself, as Mixtral's, or all in one tensor, as Hugging Face
    packs them."""
    g = [sd["model.layers.0.mlp.gate_proj.weight"] * (1 + i) for i in range(3)]
    u = [sd["model.layers.1.mlp.up_proj.weight"] * (1 + i) for i in range(3)]
    if not packed:
        return {f"model.layers.0.block_sparse_moe.experts.{i}.{x}.weight": w[i].clone()
                for i in range(3) for x, w in (("w1", g), ("w3", u))}
    one = [torch.cat([g[i], u[i]] if gate_first else [u[i], g[i]]) for i in order]
    return {"model.layers.0.mlp.experts.gate_up_proj": torch.stack(one)}


def universal(folder, sd):
    shapes = {k: v.shape for k, v in sd.items()}
    for k, v in sd.items():
        d = f"{folder}/zero/{k}"
        os.makedirs(d)
        torch.save(v.flatten().clone(), d + "/fp32.pt")
        torch.save(torch.full_like(v, 0.5).flatten(), d + "/exp_avg.pt")
    for r in range(2):
        torch.save({"module": {**{k: torch.zeros(0) for k in sd}, "buf": torch.arange(4.)},
                    "param_shapes": [shapes], "dp_world_size": 2, "mp_world_size": 1},
                   f"{folder}/zero_pp_rank_{r}_mp_rank_00_model_states.pt")


def rank(r, folder):
    """What two ranks write together."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29731", RANK=str(r), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=r, world_size=2)
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2,))
    sd = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in llama().items()}
    dcp.save(sd, storage_writer=FileSystemWriter(
        folder + "/dcp-st", serialization_format=SerializationFormat.SAFETENSORS))
    dcp.save(sd, storage_writer=HuggingFaceStorageWriter(
        path=folder + "/hf-shards", fqn_to_index_mapping=dict.fromkeys(sd, 1), save_distributed=True))
    os.makedirs(folder + "/fsdp", exist_ok=True)
    torch.save(sd, f"{folder}/fsdp/model_world_size_2_rank_{r}.pt")
    dist.barrier()
    dist.destroy_process_group()


def scripted(folder):
    """A module as torch.jit.save has it, and its state dict: scripted.pt and scripted.safetensors."""
    torch.manual_seed(3)
    m = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2, bias=False)))
    with torch.no_grad():
        m[1][0].running_mean += 1
    m[1].register_buffer("table", torch.arange(3.), persistent=False)
    torch.jit.save(torch.jit.script(m), folder + "/scripted.pt")
    save_file({k: v for k, v in m.state_dict().items()}, folder + "/scripted.safetensors")


def plain(t):
    t.uid = t.gid = t.mtime = 0
    t.uname = t.gname = ""
    return t


def main():
    scripted(os.path.dirname(OUT))
    sd = llama()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank, (folder,), nprocs=2)
        os.chdir(folder)
        save_file(sd, "hf.safetensors")
        torch.serialization.set_crc32_options(False)
        torch.save(sd, "nocrc.pt")
        torch.serialization.set_crc32_options(True)
        torch.save(module(sd), "module.pt")
        torch.save({**sd, "positions": torch.arange(4), "shown": torch.ones(3, dtype=torch.bool)}, "buffers.pt")
        exported("model.pt2", sd)
        gguf_file("model.gguf", sd)
        gguf_file("plain.gguf", sd, "")
        gguf_file("half.gguf", sd, kind="F16")
        wide = {"token_embd.weight": torch.cat([sd["lm_head.weight"]] * 2, 1), "norm": sd["model.norm.weight"]}
        gguf_file("q8.gguf", wide, kind="Q8_0")
        save_file(wide, "wide.safetensors")
        onnx.save_model(onnx_model(sd), "model.onnx")
        os.mkdir("onnx")
        onnx.save_model(onnx_model(sd), "onnx/model.onnx", save_as_external_data=True, location="model.data",
                        size_threshold=200)
        nt = torch.nested.nested_tensor([torch.arange(3.), torch.arange(2.)], layout=torch.jagged)
        torch.save({**sd, "extra": {"nested": nt, "gelu": functools.partial(nn.functional.gelu, approximate="tanh")}},
                   "nested.pt")
        arrays = {k: v.numpy() for k, v in sd.items()}
        save_file(experts(sd, False), "experts.safetensors")
        save_file(experts(sd, True), "packed.safetensors")
        save_file(experts(sd, True, (1, 2, 0)), "packed-order.safetensors")
        save_file(experts(sd, True, gate_first=False), "packed-up.safetensors")
        for name, by in (("scale", 1), ("scale-off", 1.05)):
            save_file({"w": sd["lm_head.weight"].to(torch.float8_e4m3fn), "w_scale_inv": torch.full((4, 4), 2e-5 * by)},
                      name + ".safetensors")
        np.save("dict.npy", arrays)
        for name, o in (("plain.pkl", arrays), ("paddle.pdparams", {
                **arrays, "model.norm.weight": sd["model.norm.weight"].bfloat16().view(torch.uint16).numpy(),
                "StructuredToParameterName@@": {k: f"p_{i}" for i, k in enumerate(arrays)}})):
            with open(name, "wb") as f:
                pickle.dump(o, f, protocol=4)
        save_file({**sd, "model.norm.weight": sd["model.norm.weight"].bfloat16()}, "hf-norm16.safetensors")
        universal("universal", sd)
        universal("universal-bad", {**sd, "model.layers.1.mlp.up_proj.weight": 1.5 * sd["model.layers.1.mlp.up_proj.weight"]})
        for how in ("right", "flat", "qvk", "naive", "upgate"):
            put_megatron("mcore-" + how, megatron(sd, how))
        put_megatron("mcore-lost", megatron(sd), [1])
        put_megatron("mcore-stage", megatron(sd, tp=1))
        os.rename("mcore-stage/iter_0000003/mp_rank_00", "mcore-stage/iter_0000003/mp_rank_00_000")
        dcp.save(torch_dist(sd), checkpoint_id="torch_dist", no_dist=True)
        save_file(meta(sd), "meta.safetensors")
        save_file(meta(sd, ""), "meta-plain.safetensors")
        save_file(meta(sd, "q"), "meta-q-only.safetensors")
        # A single file beside the shards of an earlier one.
        os.mkdir("stale")
        save_file(llama(12), "stale/model-00001-of-00001.safetensors")
        with open("stale/model.safetensors.index.json", "w") as f:
            names = ", ".join(f'"{k}": "model-00001-of-00001.safetensors"' for k in sd)
            f.write('{"metadata": {}, "weight_map": {%s}}' % names)
        save_file(sd, "stale/model.safetensors")
        os.mkdir("cut")
        half = list(sd)[:9]
        save_file({k: sd[k] for k in half}, "cut/model-00001-of-00002.safetensors")

        def part(name, drop):
            save_file({k: v for k, v in sd.items() if drop not in k}, name + ".safetensors")
        part("no-layer", "layers.1.")
        part("no-head", "lm_head")
        part("no-norm", "model.norm")
        save_file({k: v for k, v in sd.items() if "layers.0." in k or "embed" in k}, "stage.safetensors")
        for name, more in (("pad-zero", torch.zeros(32, D)), ("pad-other", llama(13)["lm_head.weight"])):
            save_file({k: torch.cat([v, more]) if len(v) == V else v for k, v in sd.items()}, name + ".safetensors")

        def changed(name, f):
            save_file({k: f(k, v).contiguous() for k, v in sd.items()}, name + ".safetensors")
        other = {"0": "1", "1": "0"}
        changed("layers", lambda k, v: sd[".".join(other.get(w, w) for w in k.split("."))].clone())
        changed("bf16", lambda k, v: v.bfloat16().float())
        changed("fp8", lambda k, v: v.to(torch.float8_e4m3fn).float())
        changed("norm", lambda k, v: v - 1 if "norm" in k else v)
        changed("head", lambda k, v: sd["model.embed_tokens.weight"].clone() if "head" in k else v)
        with tarfile.open(OUT, "w:gz") as tar:
            for name in sorted(os.listdir(".")):
                tar.add(name, filter=plain)


if __name__ == "__main__":
    main()
