#!/usr/bin/env python3
"""Three steps of each of torch's optimizers, of weights of 32 and of 16 bits, as loops, as lists and fused, where they
are: optimizers.py FOLDER [wrong]. Large rates and decays: what they are summed up of cancels in some elements. wrong:
they step by another learning rate than they are told."""
import importlib
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import accrecord  # noqa: E402

KINDS = {
    "sgd": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}), "plain": ("SGD", {"lr": 0.5}), "adam": ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"lr": 0.1, "weight_decay": 0.3}), "amsgrad": ("AdamW", {"lr": 0.01, "amsgrad": True}), "adagrad": ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}), "centered": ("RMSprop", {"lr": 0.01, "centered": True}),
    "adamax": ("Adamax", {"lr": 0.1, "weight_decay": 0.1}), "nadam": ("NAdam", {"lr": 0.1, "weight_decay": 0.1}), "radam": ("RAdam", {"lr": 0.1, "weight_decay": 0.1})}
WAYS = {"loop": {"foreach": False}, "lists": {"foreach": True}, "fused": {"fused": True}}


def train(folder, optimizer, values, dtype):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 10)).to(dtype)
    try:
        step = getattr(torch.optim, optimizer)(net.parameters(), **values)
    except (TypeError, RuntimeError, AttributeError):
        return      # not this way, or not in this version
    x, y = torch.randn(32, 64).to(dtype), torch.arange(32) % 10
    with accrecord.record(output_dir=folder, record_level=2):
        for _ in range(3):
            step.zero_grad()
            F.cross_entropy(net(x).float(), y).backward()
            step.step()


def misled(step):
    return lambda *tensors, **told: step(*tensors, **{**told, "lr": 1.2 * told["lr"]})


torch.set_num_threads(1)
for name in {optimizer.lower() for optimizer, _ in KINDS.values()} if "wrong" in sys.argv else ():
    module = importlib.import_module("torch.optim." + name)
    for inner in [f for f in vars(module) if f.startswith(("_single_tensor_", "_multi_tensor_", "_fused_"))]:
        setattr(module, inner, misled(getattr(module, inner)))
for kind, (optimizer, values) in KINDS.items():
    for way, more in WAYS.items():
        for dtype in (torch.bfloat16, torch.float32):
            train(f"{sys.argv[1]}/{kind}-{way}-{str(dtype)[6:]}", optimizer, {**values, **more}, dtype)
