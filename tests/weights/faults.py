#!/usr/bin/env python3
"""Each writer's files of one Llama against each other's, and each of 26 faults in each layout that can have it.

tests/weights/faults.py FOLDER [--matrix] [--faults] [--ranks] [--once] [--only GLOB] [--gptqmodel F --autoawq F --ggml LIB]

--matrix: every writer against every other, both ways (--once: one way, of half of them the other): all are the same weights.
--faults: each writer's files with a fault against Hugging Face's safetensors without it: exit status 1 (2 where a file is
not there or cut), and what is named is what was changed. Writers: layouts.py, layouts_ranks.py (--ranks). BIN is the folder of the programs."""
import argparse
import collections
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import layouts as lay
import layouts_ranks as ranks
import torch

BIN = os.path.abspath(os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin")))


def writers(o):
    ggml = None
    full = {n: getattr(lay, n) for n in ("safetensors", "transformers", "pickled", "lightning", "module", "scripted", "exported", "dcp",
                                         "dcp_safetensors", "dcp_huggingface", "meta", "packed", "gguf", "onnx", "npz", "flax",
                                         "orbax", "paddle", "keras")}
    full["onnx beside"] = lambda p, s: lay.onnx(p, s, True)
    few = {k: lambda p, s, k=k: lay.gguf(p, s, k) for k in ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "MXFP4")}
    if o.ggml:
        ggml = lay.open_ggml(o.ggml)
        few.update({k: lambda p, s, k=k: lay.gguf(p, s, k, ggml) for k in ("Q6_K", "Q5_K", "Q4_K")})
    few = {"gguf " + k: v for k, v in few.items()}
    few.update({f"bitsandbytes {k}{' nested' if n else ''}": lambda p, s, k=k, n=n: lay.bitsandbytes(p, s, k, n)
                for k, n in (("nf4", False), ("nf4", True), ("fp4", False), ("int8", False))})
    few.update(torchao())
    few.update(compressed())
    few["onnx int8"] = lay.onnxruntime
    if o.gptqmodel and o.autoawq:
        lay.sources(o.gptqmodel, o.autoawq)
        for k, kw in (("4", {}), ("4 zeros", {"sym": False}), ("8", {"bits": 8}), ("order", {"order": True}), ("v2", {"first": False})):
            few["gptq " + k] = lambda p, s, kw=kw: lay.gptq(p, s, **kw)
        few["awq"] = lay.awq
    return full, few


def torchao():
    from torchao.prototype.mx_formats import MXDynamicActivationMXWeightConfig, NVFP4WeightOnlyConfig
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, IntxWeightOnlyConfig, PerGroup
    return {"torchao " + k: lambda p, s, c=c: lay.torchao(p, s, c) for k, c in (
        ("int8", Int8WeightOnlyConfig), ("float8", Float8WeightOnlyConfig),
        ("int4", lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))),
        ("nvfp4", NVFP4WeightOnlyConfig), ("mxfp8", MXDynamicActivationMXWeightConfig))}


def compressed():
    f8, u8 = torch.float8_e4m3fn, torch.uint8
    four = {"num_bits": 4, "type": "float", "symmetric": True}
    return {"compressed " + k: lambda p, s, f=f, m=m: lay.compressed(p, s, f, **m) for k, f, m in (
        ("int4", "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}),
        ("int4 zeros", "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}),
        ("int8", "int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}),
        ("fp8", "float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}),
        ("nvfp4", "nvfp4-pack-quantized", {"strategy": "tensor_group", "group_size": 16, "scale_dtype": f8, "zp_dtype": f8, **four}),
        ("mxfp4", "mxfp4-pack-quantized", {"strategy": "group", "group_size": 32, "scale_dtype": u8, "zp_dtype": u8, **four}))}


# --- faults: of a state dict under Hugging Face's names ---

def each(f):
    return lambda sd: {k: f(k, v, sd) for k, v in sd.items()}


def at(name, f):
    """One weight changed."""
    return each(lambda k, v, sd: f(v.clone()) if k == name else v)


def exchange(a, b, where=""):
    return each(lambda k, v, sd: v if where not in k else sd[k.replace(a, b)] if a in k else sd[k.replace(b, a)] if b in k else v)


def put(index, value):
    def f(v):
        v[index] = value(v[index]) if callable(value) else value
        return v
    return f


def largest(v):
    i = v.abs().argmax()
    v.view(-1)[i] *= -1
    return v


def shuffled(order, axis, pieces):
    return lambda v: torch.cat([v.chunk(pieces, axis)[i] for i in order], axis)


DOWN, UP, OUT, VAL = ("model.layers.1.mlp.down_proj.weight", "model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.o_proj.weight",
                      "model.layers.1.self_attn.v_proj.weight")
EMBED, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
FULL_ALONE = ("nan", "rounded", "step")  # less than what few bits keep, or what no quantizer takes


def faults():
    def without(part):
        return lambda sd: {k: v for k, v in sd.items() if part not in k}

    def vocabulary(f):
        return each(lambda k, v, sd: f(v) if k in (EMBED, HEAD) else v)

    def rows_of(q, k_heads):
        return each(lambda k, v, sd: lay.halves_to_pairs(v, q) if q and "q_proj" in k else
                    lay.halves_to_pairs(v, k_heads) if "k_proj" in k else v)
    noise = torch.Generator().manual_seed(3)
    return {
        "layers exchanged": exchange(".0.", ".1.", "layers"),
        "k and v exchanged": exchange("k_proj", "v_proj"),
        "gate and up exchanged": exchange("gate_proj", "up_proj"),
        "q and k by pairs": rows_of(lay.H, lay.KV),
        "k alone by pairs": rows_of(0, lay.KV),
        "n_head for n_head_kv": rows_of(0, lay.H),
        "heads of v exchanged": at(VAL, shuffled((1, 0, 2, 3), 0, lay.KV)),
        "o turned": at(OUT, lambda v: v.T.contiguous()),
        "columns in blocks exchanged": at(DOWN, shuffled((1, 0, 2, 3), 1, 4)),
        "norms less 1": each(lambda k, v, sd: v - 1 if "norm" in k else v),
        "times 1.25": at(DOWN, lambda v: v * 1.25),
        "embedding times sqrt": at(EMBED, lambda v: v * 16),
        "head is the embedding": each(lambda k, v, sd: sd[EMBED].clone() if k == HEAD else v),
        "a sign": at(UP, largest),
        "a row of zeros": at(UP, put(3, 0.0)),
        "tokens exchanged": at(EMBED, lambda v: v[[1, 0, *range(2, len(v))]]),
        "a layer lost": without("layers.1."),
        "a norm lost": without("model.norm"),
        "the head lost": without("lm_head"),
        "vocabulary cut": vocabulary(lambda v: v[:-8].clone()),
        "vocabulary filled up": vocabulary(lambda v: torch.cat([v, torch.randn(64, lay.D, generator=noise) * 0.05])),
        "nan": at(UP, put((5, 7), float("nan"))),
        "rounded": each(lambda k, v, sd: v.bfloat16().float()),
        "step": each(lambda k, v, sd: v * 1.0005),
    }


# What a sentence says where it says more than which weight.
CAUSES = {"layers exchanged": "holds what", "k and v exchanged": "holds what", "gate and up exchanged": "holds what",
          "q and k by pairs": "does not have", "k alone by pairs": "does not have", "n_head for n_head_kv": "does not have",
          "heads of v exchanged": "different order|exchanged along", "o turned": "transposed|than in other layers",
          "columns in blocks exchanged": "different order along|exchanged along", "norms less 1": "minus 1",
          "times 1.25": "times 1.2", "embedding times sqrt": "times 16", "head is the embedding": "holds what|copy|embedding",
          "a row of zeros": "row|channel|zero", "tokens exchanged": "two exchanged", "a layer lost": "lacks",
          "a norm lost": "lacks", "the head lost": "lacks", "vocabulary cut": "nowhere|shape", "vocabulary filled up": "nowhere|shape",
          "a sign": "sign|element|times -1", "nan": "NaN", "rounded": "rounded to bf16", "step": "times 1.0005"}


def changed(bad, sd):
    return {k for k in {**sd, **bad} if k not in bad or bad[k].shape != sd[k].shape or not torch.equal(bad[k], sd[k])}


# --- what accdiff says ---

def run(a, b, *more):
    p = subprocess.run([BIN + "/accdiff", *more, a, b], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def said(out):
    """Names of the bench that are marked, and all text of findings that accuse."""
    bad, text = set(), ""
    for r in map(json.loads, out.splitlines()):
        if r.get("kind") in ("pair", "tensor") and r.get("bad"):
            bad.add(r.get("b.name") or r.get("name"))
        if r.get("kind") == "finding" and r["what"] in ("difference", "missing"):
            text += r.get("text", "") + "\n"
    return bad, text


def judge_fault(a, bench, touched, cause, count):
    status, out, err = run(a, bench, "-a", "-f", "json")
    if status != 1:
        return ("refused" if status == 2 else "acquitted" if status == 0 else "died"), (err or out)[-400:]
    bad, text = said(out)
    count["cause"] += re.search(cause, text) is not None
    own = {k for k in touched if k in bad or k in text}
    if not own:
        return "not named", text[:400]
    if bad - touched:
        return "others, too", f"{sorted(bad - touched)[:4]} " + text[:400]
    return "named", text[:400]


def make(name, f, path, sd):
    try:
        return f(path, dict(sd)), None
    except Exception as e:  # what a writer does not take is no layout that can have the fault
        return None, f"{type(e).__name__}: {e}"


def remove(path):
    for p in glob.glob(glob.escape(path) + "*"):
        shutil.rmtree(p) if os.path.isdir(p) else os.remove(p)


def lose(a):
    """Faults of files: the last file of several is not there; the largest is cut. Yields what the files are then."""
    files = sorted(p for p in glob.glob(a + "/**", recursive=True) if os.path.isfile(p)) if os.path.isdir(a) else [a]
    big = max(files, key=os.path.getsize)
    with open(big, "r+b") as f:
        f.truncate(os.path.getsize(big) * 3 // 4)
    yield "a file cut"
    if os.path.isdir(a) and len(files) > 2:
        os.remove(big)
        yield "a file lost"


def all_faults(table, sd, bench, only):
    count = collections.defaultdict(collections.Counter)
    for w, (f, few) in table.items():
        todo = [(n, g(dict(sd))) for n, g in faults().items() if not (few and n in FULL_ALONE) and fnmatch.fnmatch(n, only)]
        for n, bad in todo:
            path = f"bad-{w}".replace(" ", "_")
            a, why = make(w, f, path, bad)
            if a is None:
                note("cannot", n, w, why, count)
            else:
                kind, text = judge_fault(a, bench, changed(bad, sd), CAUSES[n], count[n])
                note(kind, n, w, text, count)
            remove(path)
        path = f"cut-{w}".replace(" ", "_")
        a, _ = make(w, f, path, sd)
        for n in lose(a) if a and fnmatch.fnmatch("a file", only) else ():
            note("refused" if (s := run(a, bench)[0]) == 2 else "named" if s == 1 else "acquitted", n, w, "", count)
        remove(path)
    return count


def ranks_faults(writer, sd, bench, only, count):
    """The same of what processes write together: the faults that leave each weight its name and shape, but of FSDP."""
    bads = {n: g(dict(sd)) for n, g in faults().items() if fnmatch.fnmatch(n, only)}
    bads = {n: s for n, s in bads.items() if writer in ranks.FSDP or {k: v.shape for k, v in s.items()} == {
        k: v.shape for k, v in sd.items()}}
    paths = {n: f"bad-{writer}-{i:02}" for i, n in enumerate(bads)}
    for p in paths.values():
        remove(p)
    ranks.write(writer, [(paths[n], s) for n, s in bads.items()])
    for n, s in bads.items():
        kind, text = judge_fault(paths[n], bench, changed(s, sd), CAUSES[n], count[n])
        note(kind, n, writer, text, count)
        remove(paths[n])


def note(kind, fault, writer, text, count):
    count[fault][kind] += 1
    if kind not in ("named",) and not (kind == "refused" and fault.startswith("a file")):
        print(f"{kind}: {fault}, {writer}: {text!r}", flush=True)


def matrix(paths, once):
    """once: each pair one way, of half of them the other."""
    count, names = collections.Counter(), list(paths)
    for i, a in enumerate(names):
        for k, b in enumerate(names):
            if a == b or (once and (i < k) != ((i + k) % 2 == 0)):
                continue
            status, out, err = run(paths[a], paths[b])
            kind = {0: "equal", 1: "accused", 2: "refused"}.get(status, "died")
            count[kind] += 1
            if status:
                print(f"{kind}: {a} {b}: {(err if status == 2 else out)[-500:]!r}", flush=True)
    print(f"{len(paths)} writers, {sum(count.values())} pairs: " + ", ".join(f"{v} {k}" for k, v in count.items()), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    for n in ("matrix", "faults", "ranks", "once"):
        p.add_argument("--" + n, action="store_true")
    for n in ("gptqmodel", "autoawq", "ggml"):
        p.add_argument("--" + n, type=os.path.abspath)
    p.add_argument("--only", default="*", help="writers")
    p.add_argument("--fault", default="*")
    o = p.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    full, few = writers(o)
    table = {**{k: (f, False) for k, f in full.items()}, **{k: (f, True) for k, f in few.items()}}
    table = {k: v for k, v in table.items() if fnmatch.fnmatch(k, o.only)}
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    sd = lay.llama()
    bench = lay.safetensors("bench", sd)
    if o.matrix:
        paths = {"Hugging Face": bench}
        for w, (f, _) in table.items():
            remove("right-" + w.replace(" ", "_"))
            paths[w], why = make(w, f, "right-" + w.replace(" ", "_"), sd)
            if why:
                print(f"{w}: {why}")
                del paths[w]
        for w in ranks.WRITERS if o.ranks else ():
            if fnmatch.fnmatch(w, o.only):
                paths[w] = "right-" + w
                remove(paths[w])
                ranks.write(w, [(paths[w], sd)])
        matrix(paths, o.once)
    if o.faults:
        count = all_faults(table, sd, bench, o.fault)
        for w in ranks.WRITERS if o.ranks else ():
            if fnmatch.fnmatch(w, o.only):
                ranks_faults(w, sd, bench, o.fault, count)
        print("| fault | layouts | named | cause said | others, too | not named | refused | acquitted |\n|---|---|---|---|---|---|---|---|")
        for n, c in count.items():
            print(f"| {n} | {sum(c.values()) - c['cannot'] - c['cause']} | " + " | ".join(
                str(c[k]) for k in ("named", "cause", "others, too", "not named", "refused", "acquitted")) + " |")


if __name__ == "__main__":
    main()
