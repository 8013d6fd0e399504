"""What the programs of sixagain.py share: data that is drawn, what they are checked by, and a few collectives
through which gradients pass.
"""
import torch.distributed as dist

from scripts_data import choose, draw  # noqa: F401
from scripts_tensor import Copy as SumBackward, Reduce as SumForward, ScatterTokens  # noqa: F401
from sixkinds_kit import GatherTokens  # noqa: F401


def state(model, grads=True, **more):
    """Weights, and last gradients, by name."""
    out = {n: p.data for n, p in model.named_parameters()}
    if grads:
        out.update({f"grad.{n}": p.grad for n, p in model.named_parameters() if p.grad is not None})
    return {**out, **more}


def group_of(rank, rows):
    """The group of a rank among those of rows; all ranks make all of them, as new_group wants it."""
    groups = [(dist.new_group(row), row) for row in rows]
    return next(g for g, row in groups if rank in row)
