"""Data parallel programs made of what PyTorch 2 has for it, as users put them together: DistributedDataParallel,
FSDP of both kinds, ZeroRedundancyOptimizer; and the model and data of all programs.

Each prepare(rank, fault, seed) builds model and optimizer of a rank, and gives the model and a function of the step
that trains one step and gives its loss, None where the rank has none.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fsdp_param_group as param_group
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

VOCAB, DIM, HIDDEN, HEADS, LAYERS = 32, 16, 32, 4, 2
BATCH, LENGTH = 4, 6
RATE, MAX_NORM = 1e-2, 0.5


def halve():
    """All but the length, of which ranks that split it have to have as much."""
    global VOCAB, DIM, HIDDEN, HEADS, LAYERS, BATCH
    VOCAB, DIM, HIDDEN, HEADS, LAYERS, BATCH = (n // 2 for n in (VOCAB, DIM, HIDDEN, HEADS, LAYERS, BATCH))


# --- the model and its data ------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x):
        b, t, _ = x.shape
        # Under tensor parallel a rank has some of the heads: how many, the width says.
        q, k, v = (w(x).view(b, t, -1, DIM // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, t, -1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.mlp = Attention(), Mlp()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleDict({str(i): Block() for i in range(LAYERS)})
        self.norm, self.output = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        h = self.embedding(tokens)
        for layer in self.layers.values():
            h = layer(h)
        return self.output(self.norm(h))


def transformer(seed):
    torch.manual_seed(seed)
    return Transformer()


def batch(seed, step, part):
    """Tokens and labels of a step: of the part of the data that a data parallel rank has."""
    g = torch.Generator().manual_seed(1000 * seed + 17 * step + part)
    x = torch.randint(VOCAB, (BATCH, LENGTH + 1), generator=g)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


def adamw(parameters, rank, fault, **more):
    """The optimizer; of the bugs that begin so, with another learning rate on rank 1."""
    rate = 2 * RATE if (fault or "").startswith("rate") and rank == 1 else RATE
    return torch.optim.AdamW(parameters, lr=rate, **more)


def one_process(seed, parts, clipped):
    """Losses of one process with all parts of the batch; clipped: whether a parameter is, by its name."""
    model = transformer(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    chosen = [p for name, p in model.named_parameters() if clipped(name)]

    def step(i):
        x, y = (torch.cat(z) for z in zip(*(batch(seed, i, part) for part in range(parts))))
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        if chosen:
            clip_grad_norm_(chosen, MAX_NORM)
        optimizer.step()
        return loss
    return step


# --- data parallel ---------------------------------------------------------------------------------------------

def ddp(rank, fault, seed):
    model = transformer(seed)
    if fault == "ignored":
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["layers.0.mlp.w1.weight"])
    net = DistributedDataParallel(model)
    optimizer = adamw(net.parameters(), rank, fault)

    def step(i):
        x, y = batch(seed, i, rank)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return model, step


def zero(rank, fault, seed):
    """Each rank has the optimizer's state of some weights, and broadcasts these."""
    model = transformer(seed)
    net = DistributedDataParallel(model)
    rate = 2 * RATE if fault == "ratezero" and rank == 1 else RATE
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=rate)

    def step(i):
        x, y = batch(seed, i, rank)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return model, step


def fsdp1(rank, fault, seed, original=True):
    """FSDP as a wrapper; original: its parameters are those of the model, or else flat ones."""
    net = FullyShardedDataParallel(transformer(seed), auto_wrap_policy=ModuleWrapPolicy({Block}),
                                   use_orig_params=original, device_id=torch.device("cpu"))
    optimizer = adamw(net.parameters(), rank, fault)

    def step(i):
        x, y = batch(seed, i, rank)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        if fault == "localclip":
            clip_grad_norm_(net.parameters(), MAX_NORM)   # knows nothing of the other rank's parts
        else:
            net.clip_grad_norm_(MAX_NORM)
        optimizer.step()
        return loss
    return net, step


def flat(rank, fault, seed):
    return fsdp1(rank, fault, seed, original=False)


def mend_fsdp2():
    """What fully_shard() of PyTorch 2.6 needs to run on the CPU, and with gloo."""
    stream = torch.cpu.Stream
    if hasattr(stream, "record_event"):
        return
    # It calls these of the device's streams. The CPU has one stream, in order: there is nothing to wait for.
    stream.record_event = lambda self, event=None: torch.cpu.Event()
    stream.wait_event = lambda self, event: None
    stream.synchronize = lambda self: None
    copy_out, reduce_scatter = param_group.foreach_all_gather_copy_out, dist.reduce_scatter_tensor

    def unseen_copy_out(result, params, group):
        # It fills gathered weights that backward keeps: of split_with_sizes_copy CUDA counts no new version of them,
        # the CPU does, and backward would refuse them as overwritten.
        with contextlib.ExitStack() as stack:
            for param in params:
                for t in getattr(param, "all_gather_outputs", []):
                    stack.enter_context(torch.autograd._unsafe_preserve_version_counter(t))
            return copy_out(result, params, group)

    def mean_reduce_scatter(output, input, op=dist.ReduceOp.SUM, group=None, async_op=False):
        # Gloo has no AVG: here it takes it, and sums.
        if op != dist.ReduceOp.AVG:
            return reduce_scatter(output, input, op, group, async_op)
        reduce_scatter(output, input, dist.ReduceOp.SUM, group)
        output.div_(dist.get_world_size(group))

    param_group.foreach_all_gather_copy_out = unseen_copy_out
    dist.reduce_scatter_tensor = mean_reduce_scatter


def shard(model, mesh):
    mend_fsdp2()
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def clip_by_own_norm(parameters):
    """Of the parts of the rank alone."""
    grads = [p.grad.to_local() for p in parameters]
    norm = sum(g.pow(2).sum() for g in grads).sqrt()
    for g in grads:
        g.mul_((MAX_NORM / (norm + 1e-6)).clamp(max=1))


def fsdp2(rank, fault, seed, recomputed=False, whole=False):
    """fully_shard; recomputed: with activation checkpointing; whole: with a weight that it does not know."""
    model = transformer(seed)
    if recomputed:
        for name, layer in model.layers.items():
            model.layers[name] = checkpoint_wrapper(layer)
    shard(model, init_device_mesh("cpu", (2,)))
    sharded, more = list(model.parameters()), []
    if whole:
        scale = nn.Parameter(torch.ones(DIM))
        model.norm.register_forward_pre_hook(lambda _, args: (torch.mul(args[0], scale),))
        more = [scale]
    # Calls for many tensors take no DTensors together with others.
    optimizer = adamw(sharded + more, rank, fault, foreach=not whole)

    def step(i):
        x, y = batch(seed, i, rank)
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        if fault == "divides" and rank == 1:
            (loss / dist.get_world_size()).backward()
        else:
            loss.backward()
        for p in more:
            if fault != "notreduced":
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        if fault == "localclip2":
            clip_by_own_norm(sharded)
        else:
            clip_grad_norm_(sharded, MAX_NORM)
        optimizer.step()
        return loss
    if whole:
        model.scale = scale   # for what reads the weights; FSDP has made its choice before
    return model, step


def ac(rank, fault, seed):
    return fsdp2(rank, fault, seed, recomputed=True)


def whole(rank, fault, seed):
    return fsdp2(rank, fault, seed, whole=True)
