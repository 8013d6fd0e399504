#!/usr/bin/env python3
"""One small Llama as writers of 2026 leave it, right and wrong, pair by pair, and what accdiff says of each.

tests/weights/writers.py FOLDER           make the pairs (torch 2.15, safetensors; four processes over gloo) and score
tests/weights/writers.py FOLDER --score   score what is there; BIN is the folder of the programs

A pair is right (exit status 0), wrong (1), or has parts that are not there (2). What is counted: right ones that are
accused or refused, wrong ones that are acquitted."""
import argparse
import copy
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))
RIGHT, WRONG, LOST = [0], [1], [1, 2]
pairs = []


def pair(a, b, want, what):
    pairs.append((a, b, want, what))


def both(a, b, want, what):
    pair(a, b, want, what)
    pair(b, a, want, what)


def make():
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save_file

    import make_writers2026 as W
    sd = W.llama(21)
    D, V = W.D, W.V

    def put(name, s):
        save_file({k: v.contiguous().clone() for k, v in s.items()}, name)
        return name

    def changed(name, f):
        return put(name + ".safetensors", {k: f(k, v) for k, v in copy.deepcopy(sd).items()})

    def megatron(name, s, how="right", only=None):
        W.put_megatron(name, W.megatron(s, how), only)
        return name

    def stacked(name, how="right", f=None):
        whole = W.megatron(sd, how, tp=1)[0]
        out = {k: v for k, v in whole.items() if ".layers." not in k}
        for k in [k for k in whole if ".layers.0." in k]:
            n = k.replace(".layers.0.", ".layers.")
            n = n.replace("input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight")
            n = n.replace("pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight")
            t = torch.stack([whole[k.replace(".0.", f".{i}.")] for i in range(W.L)])
            out[n] = t if f is None else f(t).clone()
        dcp.save(out, checkpoint_id=name, no_dist=True)
        return name

    def stages(name, s, only=(0, 1)):
        whole = W.megatron(s, tp=1)[0]
        for st in only:
            d = f"{name}/iter_0000003/mp_rank_00_{st:03}"
            os.makedirs(d)
            m = {}
            for k, v in whole.items():
                i = int(k.split(".")[2]) if ".layers." in k else 0 if "embedding" in k else 1
                if i == st:
                    m[k.replace(f".layers.{i}.", ".layers.0.")] = v.clone()
            torch.save({"model": m, "iteration": 3, "checkpoint_version": 3.0}, d + "/model_optim_rng.pt")
        return name

    def packed(name, order="qkv", halves=("gate", "up")):
        out = {}
        for k, v in sd.items():
            if "q_proj" in k:
                out[k.replace("q_proj", "qkv_proj")] = torch.cat([sd[k.replace("q_", x + "_")] for x in order])
            elif "gate_proj" in k:
                out[k.replace("gate_proj", "gate_up_proj")] = torch.cat([sd[k.replace("gate", x)] for x in halves])
            elif not any(x in k for x in ("k_proj", "v_proj", "up_proj")):
                out[k] = v
        return put(name + ".safetensors", out)

    def pairs_of(v, heads):
        return v.view(heads, 2, v.shape[0] // heads // 2, -1).transpose(1, 2).reshape(v.shape)

    hf, pt = put("hf.safetensors", sd), "lightning.ckpt"
    torch.save({"state_dict": {"model." + k: v for k, v in sd.items()}, "epoch": 1, "optimizer_states": []}, pt)
    torch.save({**sd, "positions": torch.arange(4), "shown": torch.ones(3, dtype=torch.bool)}, "buffers.pt")
    mcore, dist, meta = megatron("mcore", sd), stacked("torch_dist"), put("meta.safetensors", W.meta(sd))
    phi, pp = packed("phi"), stages("stages", sd)
    right = [hf, pt, "buffers.pt", mcore, dist, meta, phi, pp]
    for i, a in enumerate(right):
        for b in right[i + 1:]:
            both(a, b, RIGHT, "the same")
    # Converters that are wrong in all layers.
    for how in ("flat", "qvk", "naive", "upgate"):
        for b in (hf, meta):
            both(megatron("mcore-" + how, sd, how) if b == hf else "mcore-" + how, b, WRONG, "Megatron's rows: " + how)
        if how != "naive":
            both(stacked("dist-" + how, how), hf, WRONG, "torch_dist's rows: " + how)
            both("dist-" + how, mcore, WRONG, "torch_dist's rows: " + how)
    for p in ("", "q", "k"):
        both(put(f"meta-{p}-.safetensors", W.meta(sd, p)), hf, WRONG, "Meta's rows of q and k: " + p)
        both(f"meta-{p}-.safetensors", mcore, WRONG, "Meta's rows of q and k: " + p)
    for name, q, k in (("rows", W.H, W.KV), ("n_head", W.H, W.H)):
        x = changed("hf-" + name, lambda n, v: pairs_of(v, q) if "q_proj" in n else pairs_of(v, k) if "k_proj" in n else v)
        both(x, hf, WRONG, "Hugging Face's rows of q and k: " + name)
    for name, x in (("kqv", packed("phi-kqv", "kqv")), ("upgate", packed("phi-ug", "qkv", ("up", "gate")))):
        both(x, hf, WRONG, "packed: " + name)
        both(x, phi, WRONG, "packed: " + name)
    for a, b in (("k_proj", "v_proj"), ("gate_proj", "up_proj")):
        x = changed(a, lambda n, v: sd[n.replace(a, b)] if a in n else sd[n.replace(b, a)] if b in n else v)
        for y in (hf, mcore, meta, dist):
            both(x, y, WRONG, f"{a} and {b} exchanged")
    # Values.
    g = torch.Generator().manual_seed(5)
    faults = {
        "o-turned": lambda n, v: v.T if "o_proj" in n else v,
        "heads": lambda n, v: v.view(W.H, -1, D).flip(0).reshape(D, D) if "q_proj" in n else v,
        "sign": lambda n, v: v * torch.where(torch.arange(v.numel()).view(v.shape) == 7, -1, 1) if "1.mlp.down" in n else v,
        "k-sign": lambda n, v: v * torch.where(torch.arange(v.numel()).view(v.shape) == 7, -1, 1) if "1.self_attn.k" in n else v,
        "norm": lambda n, v: v - 1 if "norm" in n else v,
        "scale": lambda n, v: v * 4 if "embed" in n else v,
        "layers": lambda n, v: sd[n.replace(".0.", ".x.").replace(".1.", ".0.").replace(".x.", ".1.")],
        "padding": lambda n, v: torch.cat([v, torch.randn(8, D, generator=g)]) if len(v) == V and "proj" not in n else v,
        "cut": lambda n, v: v[:28] if len(v) == V and "proj" not in n else v,
    }
    for name, f in faults.items():
        x = changed(name, f)
        for y in (hf, mcore, meta, dist, phi, pp):
            pair(x, y, WRONG, name)
    for name, s in (("exchanged", lambda t: t.flip(0)), ("lost", lambda t: t[:1])):
        for y in (hf, dist, mcore):
            pair(stacked("dist-" + name, f=s) if y == hf else "dist-" + name, y, WRONG, "a layer is " + name)
    x = changed("padded", lambda n, v: torch.cat([v, torch.zeros(8, D)]) if len(v) == V and "proj" not in n else v)
    for y in (hf, mcore, meta):
        both(x, y, RIGHT, "padding of zeros")
    # What is not there.
    for name in ("layers.0.", "layers.1.", "lm_head", "embed", "model.norm", "0.mlp.up", "input_layernorm"):
        x = put(f"no-{name}.safetensors", {k: v for k, v in sd.items() if name not in k})
        for y in (hf, mcore, meta, dist):
            both(x, y, WRONG, "without " + name)
    tied = {**sd, "lm_head.weight": sd["model.embed_tokens.weight"]}
    both(put("tied.safetensors", tied), put("untold.safetensors", {k: v for k, v in tied.items() if "head" not in k}),
         RIGHT, "a tied head")
    for r in (0, 1):
        both(megatron(f"tp-{r}", sd, only=[r]), hf, LOST, "one tensor parallel rank")
        both(stages(f"stage-{r}", sd, [r]), hf, LOST, "one stage")
        both(f"stage-{r}", pp, LOST, "one stage")
    ranks = W.megatron(sd)
    W.put_megatron("tp-turned", ranks[::-1])
    W.put_megatron("tp-twice", [ranks[0], ranks[0]])
    for x in ("tp-turned", "tp-twice"):
        both(x, hf, WRONG, x)
        both(x, mcore, WRONG, x)
    # What four ranks write together.
    torch.multiprocessing.spawn(rank, (os.getcwd(),), nprocs=4)
    for n in ("rows", "replicas", "grid", "twice"):
        for k in ("dcp", "fsdp", "st", "hf", "one", "async"):
            for y in (hf, mcore, "dcp-rows-right"):
                pair(f"{k}-{n}-right", y, RIGHT, f"{k} of {n}")
                pair(f"{k}-{n}-wrong", y, WRONG, f"{k} of {n}")
    for name, part in (("dcp", "__3_*"), ("st", "__3_*"), ("fsdp", "*rank_3*"), ("fsdp", "*rank_0*"), ("hf", "shard-00001*")):
        to = "lost-" + name + part.strip("*")
        shutil.copytree(name + "-rows-right", to)
        for f in glob.glob(to + "/" + part):
            os.remove(f)
        pair(to, hf, LOST, "a rank's file")


def rank(r, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29741", RANK=str(r), WORLD_SIZE="4")
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    import make_writers2026 as W
    os.chdir(folder)
    dist.init_process_group("gloo", rank=r, world_size=4)
    line, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for tag in ("right", "wrong"):
        src = W.llama(21)
        if tag == "wrong":
            src["model.layers.1.mlp.down_proj.weight"][3, 5] *= -1
        for name, mesh, how in (
                ("rows", line, lambda k, v: [Shard(0)]),
                ("replicas", grid, lambda k, v: [Replicate(), Shard(1 if "o_proj" in k else 0)]),
                ("grid", grid, lambda k, v: [Shard(0), Shard(0 if v.ndim == 1 else 1)]),
                ("twice", grid, lambda k, v: [Shard(0), Shard(0)])):
            d = {k: distribute_tensor(v, mesh, how(k, v)) for k, v in src.items()}
            to = f"-{name}-{tag}"
            one = dict.fromkeys(d, 1)
            dcp.save({"model": d, "step": 3}, checkpoint_id="dcp" + to)
            dcp.async_save(d, checkpoint_id="async" + to).result()
            dcp.save(d, storage_writer=FileSystemWriter("st" + to, serialization_format=SerializationFormat.SAFETENSORS))
            for k, more in (("hf", {}), ("one", {"enable_consolidation": True})):
                dcp.save(d, storage_writer=HuggingFaceStorageWriter(
                    path=k + to, fqn_to_index_mapping=one, save_distributed=True, **more))
            os.makedirs("fsdp" + to, exist_ok=True)
            torch.save(d, f"fsdp{to}/model_world_size_4_rank_{r}.pt")
    dist.barrier()
    dist.destroy_process_group()


def score():
    program = os.path.join(os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin")), "accdiff")
    count = {"right": 0, "accused": 0, "refused": 0, "wrong": 0, "acquitted": 0}
    with open("pairs.json") as f:
        listed = json.load(f)
    for a, b, want, what in listed:
        status = subprocess.run([program, a, b], capture_output=True).returncode
        kind = "right" if want == RIGHT else "wrong"
        count[kind] += 1
        if status in want:
            continue
        bad = "refused" if status == 2 else "accused" if want == RIGHT else "acquitted"
        count[bad] += 1
        print(f"{a} {b}: {what}: status {status}: {bad}")
    print(", ".join(f"{v} {k}" for k, v in count.items()))
    return count["accused"] + count["refused"] + count["acquitted"] > 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--score", action="store_true")
    o = p.parse_args()
    os.environ["BIN"] = os.path.abspath(os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin")))
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    if not o.score:
        make()
        with open("pairs.json", "w") as f:
            json.dump(pairs, f, indent=0)
    sys.exit(score())


if __name__ == "__main__":
    main()
