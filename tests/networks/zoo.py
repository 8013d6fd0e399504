"""What the networks of the bench share: how one is made by its seed, and how it is trained.

A network is a class below Net: __init__(r) draws its sizes and options from the random numbers
r, batch(r) gives its tensors, forward(*batch) its loss. A batch holds all random numbers that a
step needs, so that both sides have the same.
"""
import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm2d)


class Net(nn.Module):
    """steps: optimizers that suit it; recompute: has a segment that can be recomputed."""
    steps = ("none", "sgd", "momentum", "adam", "adamw")
    can_recompute = False

    def __init__(self):
        super().__init__()
        self.recompute = False
        self.tie = None   # what the device does differently without being wrong, see ties()

    def batch(self, r):
        raise NotImplementedError

    def segment(self, fn, *args):
        """A part of the network that one side may recompute instead of keeping it."""
        if self.recompute and any(a.requires_grad for a in args
                                  if isinstance(a, torch.Tensor)):
            return checkpoint(fn, *args, use_reentrant=True)
        return fn(*args)


def trained(model):
    """Parameters as after some training: no norm is an identity, no bias is zero."""
    for m in model.modules():
        if isinstance(m, NORMS) and m.weight is not None:
            m.weight.data.add_(0.15 * torch.randn(m.weight.shape))
            m.bias.data.copy_(0.1 * torch.randn(m.bias.shape))
        if getattr(m, "running_mean", None) is not None:
            m.running_mean.copy_(0.1 * torch.randn(m.running_mean.shape))
            m.running_var.copy_(0.5 + torch.rand(m.running_var.shape))
        elif isinstance(m, (nn.Linear, nn.Conv1d, nn.Conv2d)) and m.bias is not None:
            if not m.bias.data.any():
                m.bias.data.copy_(0.05 * torch.randn(m.bias.shape))


class Plan:
    """How a network is trained for one step, drawn by its seed."""

    def __init__(self, net, r):
        many = sum(1 for _ in net.parameters())
        self.opt = r.choice([s for s in net.steps if s[:4] != "adam" or many <= 24]
                            if many <= 60 else ["none"])
        self.lr = r.choice([0.1, 0.02, 3e-3, 1e-3] if self.opt in ("sgd", "momentum")
                           else [1e-2, 1e-3, 3e-4])
        self.decay = r.choice([0, 0, 0.01, 1e-4])
        self.clip = r.choice([None, None, 1.0, 0.5]) if many <= 60 else None
        self.micro = r.choice([1, 1, 1, 2])

    def optimizer(self, params, lr, decay):
        kinds = {"sgd": (torch.optim.SGD, {}), "momentum": (torch.optim.SGD, {"momentum": 0.9}),
                 "adam": (torch.optim.Adam, {}), "adamw": (torch.optim.AdamW, {})}
        make, more = kinds[self.opt]
        return make(params, lr=lr, weight_decay=decay, **more)


class Made:
    """A network of the zoo, made by its seed, with what it is trained on."""

    def __init__(self, name, make, seed):
        self.name, self.seed = name, seed
        r = random.Random(f"{name}/{seed}")
        torch.manual_seed(r.randrange(1 << 30))
        self.net = make(r)
        trained(self.net)
        self.plan = Plan(self.net, r)
        self.batches = [self.net.batch(r) for _ in range(self.plan.micro)]
        self.net.train()
