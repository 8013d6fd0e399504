"""What the programs of sixkinds.py share: their data, their groups, and what they are checked by."""
import torch
import torch.distributed as dist

from scripts_data import choose, draw  # noqa: F401
from scripts_tensor import Copy as SumGrad, Reduce as Sum, ScatterTokens  # noqa: F401


def mesh(rank, *rows):
    """The group of those rows that has the rank; all ranks make all groups."""
    groups = [dist.new_group(list(row)) for row in rows]
    return next(group for group, row in zip(groups, rows) if rank in row)


def state(*modules, buffers=False, grads=True):
    """Weights and last gradients by name; nothing is copied, which would be recorded."""
    out = {}
    for module in modules:
        out.update((n, p.data) for n, p in module.named_parameters() if p.requires_grad)
        out.update((f"grad.{n}", p.grad) for n, p in module.named_parameters() if grads and p.grad is not None)
        if buffers:
            out.update(module.named_buffers())
    return out


class GatherTokens(torch.autograd.Function):
    """All tokens of a sequence of which each rank has a part."""
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()   # gloo has no reduce_scatter
        dist.all_reduce(g)
        return g.chunk(dist.get_world_size())[dist.get_rank()].contiguous()
