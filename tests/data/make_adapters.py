#!/usr/bin/env python3
"""Makes tests/data/weights/adapters.tar.gz: weights, adapters of LoRA for them, and both merged, by PEFT.

python3 tests/data/make_adapters.py     (torch 2.15, peft 0.21.2)

base has the weights in bf16; with-lora and with-rslora have an adapter's files beside them; inside has all as the state
dict of PEFT's model; lora, rslora and half are merged, half with half the alpha."""
import os
import shutil
import tarfile
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", "adapters.tar.gz")


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = torch.nn.Linear(24, 32, bias=False)
        self.o_proj = torch.nn.Linear(32, 24, bias=False)

    def forward(self, x):
        return self.o_proj(self.q_proj(x))


def model():
    torch.manual_seed(7)
    return torch.nn.ModuleDict({"layers": torch.nn.ModuleList([Layer(), Layer()])}).to(torch.bfloat16)


def put(folder, m):
    os.makedirs(folder, exist_ok=True)
    save_file({k: v.contiguous().clone() for k, v in m.state_dict().items()}, folder + "/model.safetensors")


def adapted(**more):
    m = get_peft_model(model(), LoraConfig(target_modules=["q_proj"], r=4, **more))
    torch.manual_seed(8)
    for n, p in m.named_parameters():
        if "lora_" in n:
            p.data = torch.randn(p.shape, dtype=torch.bfloat16).to(p.dtype) * 0.125
    return m


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        put("base", model())
        for name, more in (("lora", {"lora_alpha": 8}), ("rslora", {"lora_alpha": 8, "use_rslora": True})):
            m = adapted(**more)
            m.save_pretrained("adapter")
            put("with-" + name, model())
            for f in ("adapter_config.json", "adapter_model.safetensors"):
                shutil.copy("adapter/" + f, "with-" + name)
            if name == "lora":
                put("inside", m)
                shutil.copy("adapter/adapter_config.json", "inside")
            put(name, m.merge_and_unload())
            shutil.rmtree("adapter")
        put("half", adapted(lora_alpha=4).merge_and_unload())
        with tarfile.open(OUT, "w:gz", compresslevel=9) as t:
            for n in sorted(os.listdir(".")):
                t.add(n, filter=lambda i: (setattr(i, "mtime", 0), setattr(i, "uid", 0), setattr(i, "gid", 0), i)[-1])


if __name__ == "__main__":
    main()
