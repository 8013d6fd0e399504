#!/usr/bin/env python3
"""What today's PyTorch, transformers and msprobe write of one small network, into FOLDER:

    make.py FOLDER

    tensors/, statistics/, wrong/   step dumps by msprobe's PrecisionDebugger (wrong: log_softmax is, beneath it)
    hf/                             save_pretrained: safetensors
    state.pt, old.pt                torch.save of the state, also in the format before zip
    dcp/                            torch.distributed.checkpoint
    expected.json                   of each parameter its shape, least and largest value, and sum, by numpy
"""
import json
import os
import subprocess
import sys

import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from msprobe.pytorch import PrecisionDebugger
from transformers import GPT2Config, GPT2LMHeadModel

folder = sys.argv[1]


def network():
    torch.manual_seed(3)
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2, activation_function="gelu",
                                      resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def train(task, where, scale=1.0):
    model = network()
    path = os.path.join(folder, where)
    config = os.path.join(folder, "config.json")
    with open(config, "w") as f:
        json.dump({"task": task, "dump_path": path, "rank": [], "step": [], "level": "L1", task: {"scope": [], "list": [],
                   "data_mode": ["all"], **({"summary_mode": "statistics"} if task == "statistics" else {})}}, f)
    # A process has one debugger, which records one dump.
    debugger = PrecisionDebugger(config_path=config)
    beneath = torch.library.Library("aten", "IMPL")  # while it lives
    if scale != 1.0:
        aten = torch.ops.aten  # whose calls msprobe does not record
        beneath.impl("_log_softmax", lambda x, dim, half: aten.sub(x, aten.mul(aten.logsumexp(x, [dim], True), scale)), "CPU")
    tokens = torch.arange(24).reshape(2, 12) % 50
    debugger.start(model)
    model(tokens, labels=tokens).loss.backward()
    debugger.stop()
    debugger.step()


def weights():
    model = network()
    state = model.state_dict()
    model.save_pretrained(os.path.join(folder, "hf"))
    torch.save(state, os.path.join(folder, "state.pt"))
    torch.save(state, os.path.join(folder, "old.pt"), _use_new_zipfile_serialization=False)
    dcp.save(state, checkpoint_id=os.path.join(folder, "dcp"))
    expected = {}
    for name, value in state.items():
        a = value.numpy().astype(np.float64)
        expected[name] = [list(a.shape), float(a.min()), float(a.max()), float(np.sqrt((a * a).sum()))]
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(expected, f)


def main():
    os.makedirs(folder, exist_ok=True)
    if len(sys.argv) > 2:
        train(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    for run in ("tensor tensors 1", "statistics statistics 1", "tensor wrong 1.03"):
        subprocess.run([sys.executable, "-W", "ignore", sys.argv[0], folder, *run.split()], check=True)
    weights()


main()
