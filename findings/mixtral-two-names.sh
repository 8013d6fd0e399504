#!/bin/sh
# transformers 5.24.0: of a mixture of experts (Mixtral), model.state_dict() and what save_pretrained writes are two dialects.
# In memory all experts stand in one tensor, gate and up one behind the other (mlp.experts.gate_up_proj [experts, 2 x width,
# hidden], mlp.experts.down_proj, mlp.gate.weight); in the file each expert has its own w1, w2, w3 below block_sparse_moe.
# Whoever saves the state by torch.save, and compares it by name with the published files, finds no expert in either.
# Seen on 2026-11-29 with torch 2.15.0 and safetensors 0.8.0:
#   12 names in memory, 19 in the file, 9 in both
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q transformers==5.24.0 torch==2.15.0 safetensors==0.8.0
HF_HUB_OFFLINE=1 "$tmp/v/bin/python" - "$tmp/m" <<'END'
import glob
import sys
import torch
import transformers
from safetensors.torch import load_file
torch.manual_seed(0)
config = transformers.MixtralConfig(vocab_size=11, hidden_size=8, intermediate_size=6, num_hidden_layers=1, num_attention_heads=2,
                                    num_key_value_heads=2, num_local_experts=3)
model = transformers.MixtralForCausalLM(config)
memory = model.state_dict()
model.save_pretrained(sys.argv[1])
file = {}
for f in glob.glob(sys.argv[1] + "/*.safetensors"):
    file.update(load_file(f))
print(len(memory), "names in memory,", len(file), "in the file,", len(set(memory) & set(file)), "in both")
packed = memory["model.layers.0.mlp.experts.gate_up_proj"]
assert tuple(packed.shape) == (3, 12, 8)
for i in range(3):
    at = "model.layers.0.block_sparse_moe.experts.%d." % i
    assert torch.equal(packed[i], torch.cat([file[at + "w1.weight"], file[at + "w3.weight"]]))
    assert torch.equal(memory["model.layers.0.mlp.experts.down_proj"][i], file[at + "w2.weight"])
assert not any("expert" in n for n in set(memory) & set(file))
END
