"""Small trainers whose weights or states are sharded over ranks, resumed or averaged, and what public trackers report
to go wrong: replicas that drift apart, shards that are not gathered.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from trainers_kit import my_groups, rand, state


# --- zero: ZeRO 1 in bf16 with f32 masters and a loss scaler, resumed from a checkpoint ----------------------

class Zero1:
    """Adam over a rank's part of the flat parameters; what a rank has not is gathered after the step."""
    def __init__(self, module, rank, n, fault, lr):
        self.params, self.rank, self.n, self.fault = list(module.parameters()), rank, n, fault
        self.numel = sum(p.numel() for p in self.params)
        # As near to the largest number of bf16 as 2 ** 15 is to that of f16.
        self.scale, self.limit = 2.0 ** 126, 0.5
        self.master = nn.Parameter(self.flat([p.detach() for p in self.params]).chunk(n)[rank].clone())
        self.main_grad, self.adam = 0, torch.optim.Adam([self.master], lr=lr)

    def flat(self, tensors):
        flat = torch.cat([t.reshape(-1) for t in tensors]).float()
        return F.pad(flat, (0, -len(flat) % 2))

    @torch.no_grad()
    def publish(self, gather=True):
        """The parameters, from the parts of all."""
        parts = list(self.flat([p.detach() for p in self.params]).chunk(self.n))
        parts[self.rank] = self.master.detach().clone()
        if self.n > 1 and gather:
            parts = [torch.empty_like(self.master) for _ in range(self.n)]
            dist.all_gather(parts, self.master.detach())
        for p, new in zip(self.params, torch.cat(parts)[:self.numel].split([p.numel() for p in self.params])):
            p.copy_(new.view_as(p))

    @torch.no_grad()
    def load(self, flat):
        self.master.copy_(flat.chunk(self.n)[self.rank])
        self.publish(gather=self.fault != "loadgather")

    @torch.no_grad()
    def accumulate(self):
        """After the backward of a microbatch: what it gave, in f32."""
        self.main_grad = self.main_grad + self.flat([p.grad for p in self.params]) / 2
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        flat, self.main_grad = self.main_grad, 0
        if self.n > 1:
            dist.all_reduce(flat)
        grad = flat.chunk(self.n)[self.rank] / self.scale
        found_inf = (~grad.isfinite()).any().float()
        if self.n > 1 and self.fault != "foundinf":
            dist.all_reduce(found_inf, dist.ReduceOp.MAX)
        square = torch.zeros(()) if found_inf else grad.square().sum()
        if self.n > 1:
            dist.all_reduce(square)
        if found_inf:
            self.scale /= 2 ** 8
        else:
            self.master.grad = grad * (self.limit / square.sqrt().clamp(min=self.limit))
            self.adam.step()
        self.publish()


def zero_net():
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 3))


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed + 50)
    saved = zero_net()
    torch.manual_seed(seed)
    model = zero_net().bfloat16()
    opt = Zero1(model, rank, n, fault, lr=0.02)
    opt.load(opt.flat([p.detach() for p in saved.parameters()]))
    for step in range(3):
        x, y = rand(300 * seed + step, 8, 6), rand(300 * seed + step + 9, 8, 3)
        if step == 1:
            y = y + 15      # a batch of outliers: the gradient of the last bias overflows
        # Two microbatches in all, so that bf16 rounds the same in one process.
        for micro in [rank] if n > 1 else [0, 1]:
            out = model(x.chunk(2)[micro].bfloat16()).float()
            (F.mse_loss(out, y.chunk(2)[micro]) * 0.5 * opt.scale).backward()
            opt.accumulate()
        opt.step()
    return {**state(model), "master": opt.master.detach().clone()}


# --- hsdp: layers sharded over two ranks and replicated over two, two microbatches a step --------------------

class Unshard(torch.autograd.Function):
    """A layer's flat parameters, gathered once a step; backward to the mean of the shard group."""
    @staticmethod
    def forward(ctx, shard, unit):
        ctx.unit = unit
        if unit.full is None:
            parts = [torch.empty_like(shard) for _ in range(2)]
            dist.all_gather(parts, shard.detach(), group=unit.shard_group)
            unit.full = torch.cat(parts)
        return unit.full.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.unit.shard_group)
        return grad.chunk(2)[dist.get_rank() % 2] / 2, None


class FullyShardedLinear(nn.Module):
    def __init__(self, d, out, rank, shard_group):
        super().__init__()
        linear = nn.Linear(d, out)
        flat = torch.cat([linear.weight.detach().flatten(), linear.bias.detach()])
        self.shape, self.shard_group, self.full = (out, d), shard_group, None
        self.flat_param = nn.Parameter(flat if shard_group is None else flat.chunk(2)[rank % 2].clone())

    def forward(self, x):
        flat = self.flat_param if self.shard_group is None else Unshard.apply(self.flat_param, self)
        out, d = self.shape
        return F.linear(x, flat[:out * d].view(out, d), flat[out * d:])


def train_hsdp(rank, fault, seed, n=4):
    shard_group, replica_group = my_groups(rank) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = nn.Sequential(FullyShardedLinear(6, 8, rank, shard_group), nn.SiLU(),
                          FullyShardedLinear(8, 8, rank, shard_group), nn.SiLU(),
                          FullyShardedLinear(8, 2, rank, shard_group))
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    for step in range(3):
        x, y = rand(400 * seed + step, 16, 6), rand(400 * seed + step + 9, 16, 2)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        for xs, ys in zip(x.chunk(2), y.chunk(2)):
            # What is not yet reduced over the replicas is kept apart; of the second of two microbatches that is all.
            partial = [p.grad for p in model.parameters()]
            for p in model.parameters():
                p.grad = None
            (F.mse_loss(model(xs), ys) / 2).backward()
        for p, before in zip(model.parameters(), partial):
            if fault != "hsdplast":
                p.grad += before
            if n > 1:
                dist.all_reduce(p.grad, group=replica_group)
                p.grad /= 2
            if fault == "hsdplast":
                p.grad += before
        opt.step()
        opt.zero_grad(set_to_none=True)
        for unit in model.children():
            if fault != "stale":
                unit.full = None
    return state(model)


# --- speech: a recurrent net; resumed, with a plateau scheduler and an average of weights that is taken over -

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.rec, self.out = nn.Linear(4, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 3)

    def forward(self, x):
        h, ys = x.new_zeros(x.shape[0], 8), []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
            ys.append(self.out(h))
        return torch.stack(ys, 1)


def resume(model, opt, seed, rank, fault, n):
    """Rank 0 reads the checkpoint, the others get from it what is in it."""
    for i, p in enumerate(model.parameters()):
        momentum = opt.state[p]["momentum_buffer"] = torch.zeros_like(p)
        if rank == 0:
            p.data.copy_(rand(seed + i, *p.shape) * 0.4)
            momentum.copy_(rand(seed + i + 20, *p.shape) * 0.1)
        if n > 1:
            dist.broadcast(p.data, 0)
            if fault != "resumeopt":
                dist.broadcast(momentum, 0)


@torch.no_grad()
def validate(model, seed, step, rank, fault, n):
    """Each rank has its recordings; those of the last get louder, of the first softer."""
    loss = torch.zeros(())
    for r in [rank] if n > 1 else [0, 1]:
        target = rand(seed + r + 3, 4, 5, 3) * (1 + step) ** (2 * r - 1)
        loss = loss + F.mse_loss(model(rand(seed + r, 4, 5, 4)), target) / (2 // n)
    if n > 1 and fault != "plateau":
        dist.all_reduce(loss)
        loss = loss / n
    return loss.item()


def train_speech(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Tagger()
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    resume(model, opt, 700 * seed, rank, fault, n)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.1)
    ema = copy.deepcopy(model)
    for step in range(3):
        x, y = rand(700 * seed + step, 4, 5, 4), rand(700 * seed + step + 9, 4, 5, 3)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters() if n > 1 else ():
            dist.all_reduce(p.grad)
            p.grad /= n
        opt.step()
        plateau.step(validate(model, seed, step, rank, fault, n))
        if fault != "emacopy" or rank == 0:
            with torch.no_grad():
                for e, p in zip(ema.parameters(), model.parameters()):
                    e.lerp_(p, 0.3)
        # Every second step goes on from the average.
        if step % 2:
            model.load_state_dict(ema.state_dict())
    return state(model)


PROGRAMS = {"zero": (2, train_zero), "hsdp": (4, train_hsdp), "speech": (2, train_speech)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
# Where replicas part, either of two may be named: which of them is right nobody can tell.
FAULTS = {
    # An overflow in its own shard alone makes a rank skip: https://github.com/facebookresearch/fairscale/issues/180
    "foundinf": ("zero", r"isfinite|__invert__|any\.|all_reduce|adam|all_gather|square|sum\.", "01"),
    # After loading, the parameters are not gathered from the shards:
    # https://github.com/NVIDIA/Megatron-LM/pull/6920
    "loadgather": ("zero", r"copy_\.|cat\.|clone|split|view_as|linear\.[0-2]\.forward|__getitem__\.0", "01"),
    # HSDP reduces the last microbatch alone over the replicas: https://github.com/pytorch/pytorch/pull/125484
    "hsdplast": ("hsdp", r"all_reduce|add_|div_|adamw|parameters_grad", "0123"),
    # What was gathered before the optimizer's step is used after it:
    # https://github.com/Robbyant/lingbot-vla/pull/50
    "stale": ("hsdp", r"step1:linear|clone|view|__getitem__", "0123"),
    # Another learning rate on each rank, by its own validation loss:
    # https://github.com/lucidrains/DALLE-pytorch/issues/268
    "plateau": ("speech", r"sgd|mse_loss|div\.", "01"),
    # The checkpoint's optimizer state is on rank 0 alone: https://github.com/vllm-project/speculators/pull/926
    "resumeopt": ("speech", r"sgd|broadcast", "01"),
    # Rank 0 averages the weights, all take the average over: https://github.com/lucidrains/ema-pytorch/issues/9
    "emacopy": ("speech", r"lerp_|copy_|linear\.[01]\.forward", "01"),
}
