"""Replicas whose state parts: a sharded optimizer with a loss scale, and stochastic depth with an average of the
weights.
"""
import copy
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from scripts_frame import accrecord
from sixagain_kit import choose, draw, state

D = 16


# --- oss: each rank has the optimizer of some weights and broadcasts them; a loss scale; an adapter that thaws ---

class Thawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm = nn.Linear(D, 2 * D), nn.LayerNorm(2 * D)
        self.adapter, self.out = nn.Linear(2 * D, 2 * D), nn.Linear(2 * D, 4)
        with torch.no_grad():
            self.out.weight.mul_(0.02)
        self.adapter.requires_grad_(False)

    def forward(self, x):
        h = F.silu(self.norm(self.body(x)))
        return 50 * self.out(h + self.adapter(h))


class Oss:
    """A part of the weights is this rank's: it gets their gradients, steps, and gives the others the result."""
    def __init__(self, model, rank, n, fault=None):
        self.rank, self.n, self.fault = rank, n, fault
        # The last layer's are those of the last rank.
        self.owner = {p: n - 1 if name.startswith("out") else 0 for name, p in model.named_parameters()}
        self.mine = [p for p, r in self.owner.items() if r == rank or n == 1]
        self.opt = torch.optim.Adam(self.mine, lr=0.01)
        self.scale = 2.0 ** 15
        self.refresh()

    def refresh(self):
        self.trainable = [p for p in self.owner if p.requires_grad]

    def step(self):
        if self.n > 1:
            for p in self.owner:
                if p.grad is not None:
                    dist.reduce(p.grad, self.owner[p])
        bad = torch.zeros(1)
        for p in self.mine:
            if p.grad is not None:
                p.grad /= self.n
                bad += 1 - p.grad.half().isfinite().all().float()
        if self.n > 1 and self.fault != "foundinf":
            dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad > 0:
            self.scale /= 64
        else:
            for p in self.mine:
                if p.grad is not None:
                    p.grad /= self.scale
            self.opt.step()
        if self.n > 1:
            for p in self.trainable:
                dist.broadcast(p.data, self.owner[p])


def train_oss(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Thawing()
    opt = Oss(model, rank, n, fault)
    for s in range(4):
        accrecord.step(s)   # one whose gradients overflow has no optimizer's step
        if s == 2:
            model.adapter.requires_grad_(True)
            if fault != "thawed":
                opt.refresh()
        x, y = draw(100 * seed + s, 8, D), choose(100 * seed + s + 50, 4, 8)
        if n > 1:
            x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        model.zero_grad()
        (F.cross_entropy(model(x), y) * opt.scale).backward()
        opt.step()
    return state(model, grads=False)


# --- depth: residual blocks that are left out of some micro-batches, and an average of the weights -----------

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.GroupNorm(2, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        return x + self.fc2(F.mish(self.fc1(self.norm(x))))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(D, 2)

    def forward(self, x, skip):
        for i, block in enumerate(self.blocks):
            if i != skip:
                x = block(x)
        return self.head(x)


def depth_parts(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.5 * (1 + math.cos(0.3 * step)))
    return opt, sched, copy.deepcopy(model).requires_grad_(False)


@torch.no_grad()
def average_weights(shadow, model):
    for a, p in zip(shadow.parameters(), model.parameters()):
        a.lerp_(p, 0.25)


def reduce_bucket(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    work = dist.all_reduce(flat, async_op=True)
    work.wait()
    for p, g in zip(params, flat.div(dist.get_world_size()).split([p.numel() for p in params])):
        p.grad.copy_(g.view_as(p))


def train_depth(rank, fault, seed):
    torch.manual_seed(seed)
    model = Deep()
    opt, sched, shadow = depth_parts(model)
    ready = []
    for p in model.parameters():
        p.register_hook(lambda g, p=p: ready.append(p))
    for s in range(3):
        opt.zero_grad()
        for m in range(2):
            ready.clear()
            x = draw(1000 * seed + 10 * s + m, 6, D).chunk(2)[rank]
            (F.mse_loss(model(x, (s + m) % 3), x[:, :2].sin()) / 2).backward()
        reduce_bucket(ready if fault == "lastused" else list(model.parameters()))
        opt.step()
        sched.step()
        average_weights(shadow, model)
    return state(model, **{f"shadow.{n}": p for n, p in shadow.named_parameters()})


def whole_depth(seed):
    torch.manual_seed(seed)
    model = Deep()
    opt, sched, shadow = depth_parts(model)
    for s in range(3):
        opt.zero_grad()
        for m in range(2):
            x = draw(1000 * seed + 10 * s + m, 6, D)
            (F.mse_loss(model(x, (s + m) % 3), x[:, :2].sin()) / 2).backward()
        opt.step()
        sched.step()
        average_weights(shadow, model)
    return state(model, **{f"shadow.{n}": p for n, p in shadow.named_parameters()})


PROGRAMS = {"oss": (2, train_oss), "depth": (2, train_depth)}
WHOLE = {"oss": lambda seed: train_oss(0, None, seed, 1), "depth": whole_depth}

FAULTS = {
    # A rank that has no overflow in its own part steps: https://github.com/facebookresearch/fairscale/issues/180
    "foundinf": ("oss", r"all_reduce|isfinite|Tensor\.(all|gt|float|div_|add_)\.|Tensor\.mul\.1|adam|broadcast", "01"),
    # Weights that thaw are not among those that are broadcast: https://github.com/facebookresearch/fairscale/pull/369
    "thawed": ("oss", r"broadcast|adapter|adam|linear\.1\.", "01"),
    # What the last micro-batch left out is not reduced: https://github.com/mosaicml/composer/issues/9
    "lastused": ("depth", r"all_reduce|Torch\.cat|sgd|blocks|(linear|group_norm)\.\d+\.backward|copy_", "01"),
}
