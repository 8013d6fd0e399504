#!/usr/bin/env python3
"""Makes tests/data/weights/torchao.tar.gz: a model's weights as torchao leaves them, and files of torch.save of those
in packed.tar.gz.

python3 tests/data/make_torchao.py     (torch 2.15, torchao 0.18, safetensors)

hf.safetensors is the model in bf16; means-X.safetensors is what torchao's own dequantize() makes of X."""
import json
import os
import tarfile
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torchao.prototype.mx_formats import MXDynamicActivationMXWeightConfig, NVFP4WeightOnlyConfig
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import (Float8WeightOnlyConfig, Int8WeightOnlyConfig, IntxWeightOnlyConfig, PerGroup, PerTensor,
                                  quantize_)

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "weights", "torchao.tar.gz")
WAYS = {
    "int8": Int8WeightOnlyConfig(),
    "int4": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "float8": Float8WeightOnlyConfig(),
    "float8-one": Float8WeightOnlyConfig(granularity=PerTensor()),
    "nvfp4": NVFP4WeightOnlyConfig(),
    "mxfp8": MXDynamicActivationMXWeightConfig(),
}


def model(exchanged=False):
    g = torch.Generator().manual_seed(49)
    m = torch.nn.ModuleDict({"model": torch.nn.ModuleDict({
        "layers": torch.nn.ModuleList([torch.nn.ModuleDict({"up_proj": torch.nn.Linear(64, 160, bias=False)})
                                       for _ in range(2)]), "norm": torch.nn.RMSNorm(64)})})
    w = [torch.randn(160, 64, generator=g) * 0.05 for _ in range(2)]
    for x, v in zip(m["model"]["layers"], w[::-1] if exchanged else w):
        x["up_proj"].weight.data = v
    m["model"]["norm"].weight.data = 1 + 0.1 * torch.randn(64, generator=g)
    return m.bfloat16()


def whole(v):
    return (v.dequantize() if hasattr(v, "dequantize") and type(v) is not torch.nn.Parameter and
            type(v) is not torch.Tensor else v).detach().float()


def main():
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        save_file({k: v.clone() for k, v in model().state_dict().items()}, "hf.safetensors")
        for name, how in WAYS.items():
            for bad in (False, True):
                m = model(bad)
                quantize_(m, how)
                sd = m.state_dict()
                torch.save(sd, f"{name}{'-layers' if bad else ''}.pt")
                if not bad:
                    save_file({k: whole(v).contiguous() for k, v in sd.items()}, f"means-{name}.safetensors")
                    flat, meta = flatten_tensor_state_dict(sd)
                    save_file({k: v.contiguous() for k, v in flat.items()}, name + ".safetensors", metadata=meta)
        # The scales of one are of the other layer.
        sd = torch.load("int4.pt", weights_only=False)
        a, b = [sd[f"model.layers.{i}.up_proj.weight"] for i in range(2)]
        a.scale, b.scale = b.scale.flip(0), a.scale
        torch.save(sd, "int4-scales.pt")
        with tarfile.open(os.path.join(HERE, "weights", "packed.tar.gz")) as t:
            t.extractall("packed", filter="data")
        for x in ("gptq-4", "awq", "nf4-nested", "ct-4-zeros", "ct-nvfp4", "int8"):
            torch.save(load_file(f"packed/{x}.safetensors"), x.replace("int8", "bnb8") + ".bin")
        # Two shards, cut between what belongs together.
        sd = load_file("packed/gptq-4.safetensors")
        os.mkdir("shards")
        for i in range(2):
            torch.save({k: sd[k] for k in sorted(sd)[i::2]}, f"shards/pytorch_model-0000{i + 1}-of-00002.bin")
        with open("shards/pytorch_model.bin.index.json", "w") as f:
            json.dump({"metadata": {}, "weight_map": {k: f"pytorch_model-0000{i % 2 + 1}-of-00002.bin"
                                                      for i, k in enumerate(sorted(sd))}}, f)
        os.rename("packed/hf.safetensors", "packed-hf.safetensors")
        with tarfile.open(OUT, "w:gz", compresslevel=9) as t:
            for n in sorted(os.listdir(".")):
                if n != "packed":
                    t.add(n, filter=lambda i: (setattr(i, "mtime", 0), setattr(i, "uid", 0), setattr(i, "gid", 0), i)[-1])


if __name__ == "__main__":
    main()
