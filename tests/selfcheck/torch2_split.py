"""Programs that split the model, made of what PyTorch 2 has for it: tensor and sequence parallel by DTensor, with FSDP
too, the same by hand of functional collectives, pipelining. What each prepare() gives: see torch2_parts.py.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)
from torch.nn.utils import clip_grad_norm_

from torch2_parts import DIM, HIDDEN, MAX_NORM, VOCAB, Block, adamw, batch, loss_of, shard, transformer


# --- tensor parallel -------------------------------------------------------------------------------------------

def parallelize(model, mesh, sequence, parted_loss):
    """Heads, hidden units and vocabulary are split; sequence: what is between these, by tokens; parted_loss: logits
    stay split by vocabulary."""
    between = Shard(1) if sequence else Replicate()
    plan = {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
            "output": ColwiseParallel(input_layouts=between, use_local_output=not parted_loss,
                                      output_layouts=Shard(-1) if parted_loss else Replicate())}
    if sequence:
        plan["norm"] = SequenceParallel()
    parallelize_module(model, mesh, plan)
    for layer in model.layers.values():
        inward = ("attention.wq", "attention.wk", "attention.wv", "mlp.w1", "mlp.w3")
        plan = {name: ColwiseParallel() for name in inward}
        plan.update({name: RowwiseParallel(output_layouts=between) for name in ("attention.wo", "mlp.w2")})
        if sequence:
            plan.update({name: SequenceParallel() for name in ("attention_norm", "mlp_norm")})
            plan.update({name: PrepareModuleInput(input_layouts=(between,), desired_input_layouts=(Replicate(),))
                         for name in ("attention", "mlp")})
        parallelize_module(layer, mesh, plan)


def tp(rank, fault, seed, sequence=False, parted_loss=False, mesh=None):
    """mesh: of two dimensions; over the first the weights are sharded, and the data are."""
    model = transformer(seed)
    if fault == "seednorm":
        torch.manual_seed(seed + rank)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if "norm" in name:
                    p.add_(0.1 * torch.randn_like(p))
    parallelize(model, mesh["tp"] if mesh else init_device_mesh("cpu", (2,)), sequence, parted_loss)
    part = 0
    if mesh:
        shard(model, mesh["dp"])
        part = mesh["dp"].get_local_rank()
    # Without SequenceParallel the norms' weights are no DTensors, and calls for many tensors take no mixture.
    optimizer = adamw(model.parameters(), rank, fault, foreach=sequence)
    clipped = [p for p in model.parameters() if isinstance(p, DTensor)]

    def step(i):
        x, y = batch(seed, i, part)
        if fault == "otherdata":
            _, y = batch(seed, i, rank)
        optimizer.zero_grad()
        with loss_parallel() if parted_loss else contextlib.nullcontext():
            loss = loss_of(model(x), y)
            loss.backward()
        clip_grad_norm_(clipped, MAX_NORM)
        optimizer.step()
        return loss.full_tensor() if isinstance(loss, DTensor) else loss
    return model, step


def sp(rank, fault, seed):
    return tp(rank, fault, seed, sequence=True)


def losspar(rank, fault, seed):
    return tp(rank, fault, seed, parted_loss=True)


def grid(rank, fault, seed):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    return tp(rank, fault, seed, sequence=True, parted_loss=True, mesh=mesh)


class CopyToRanks(torch.autograd.Function):
    """The same for all ranks, each of which has a part of what follows."""
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return funcol.wait_tensor(funcol.all_reduce(grad.contiguous(), "sum", dist.group.WORLD))


class ReduceFromRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return funcol.wait_tensor(funcol.all_reduce(x.contiguous(), "sum", dist.group.WORLD))

    @staticmethod
    def backward(ctx, grad):
        return grad


class ByHand(nn.Module):
    """Tensor parallel by hand: a rank has half of the hidden units."""
    def __init__(self, rank, fault, seed):
        super().__init__()
        self.fault = fault
        torch.manual_seed(seed)
        self.embedding, self.norm, self.output = nn.Embedding(VOCAB, DIM), nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB)
        self.bias = nn.Parameter(torch.zeros(DIM))
        torch.manual_seed(1000 * seed + rank)
        self.up, self.down = nn.Linear(DIM, HIDDEN // 2), nn.Linear(HIDDEN // 2, DIM, bias=False)

    def forward(self, tokens):
        h = self.embedding(tokens)
        x = self.norm(h)
        if self.fault != "nocopy":
            x = CopyToRanks.apply(x)
        y = self.down(F.gelu(self.up(x)))
        if self.fault != "noreduce":
            y = ReduceFromRanks.apply(y)
        return self.output(h + (y + self.bias))


def functional(rank, fault, seed):
    model = ByHand(rank, fault, seed)
    optimizer = adamw(model.parameters(), rank, fault)

    def step(i):
        x, y = batch(seed, i, 0)
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return model, step


# --- pipelines -------------------------------------------------------------------------------------------------

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.block = nn.Embedding(VOCAB, DIM), Block()

    def forward(self, tokens):
        return self.block(self.embedding(tokens))


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.norm, self.output = Block(), nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, h):
        return self.output(self.norm(self.block(h)))


def gpipe(rank, fault, seed):
    """Ranks 0 and 1 are replicas of the first stage, 2 and 3 of the last."""
    stage, part = divmod(rank, 2)
    pipes, replicas = ([dist.new_group(ranks) for ranks in lists] for lists in ([[0, 2], [1, 3]], [[0, 1], [2, 3]]))
    torch.manual_seed(10 * seed + stage)
    model = (First, Last)[stage]()
    schedule = ScheduleGPipe(PipelineStage(model, stage, 2, torch.device("cpu"), group=pipes[part]), 2, loss_fn=loss_of)
    optimizer = adamw(model.parameters(), rank, fault)

    def step(i):
        x, y = batch(seed, i, part)
        losses = []
        optimizer.zero_grad()
        if stage == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=losses)
        for name, p in model.named_parameters():
            if fault == "forgotten" and name == "block.mlp.w1.weight":
                continue
            dist.all_reduce(p.grad, group=replicas[stage])
            p.grad /= 2
        optimizer.step()
        return sum(losses) / len(losses) if losses else None
    return model, step
