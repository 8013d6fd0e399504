"""What the programs of sixagain.py share: data that is drawn, what they are checked by, and a few collectives
through which gradients pass.
"""
import torch
import torch.distributed as dist


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, n, *shape):
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


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


class SumBackward(torch.autograd.Function):
    """f of Megatron: nothing forward, the sum over the group backward."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class SumForward(torch.autograd.Function):
    """g of Megatron: the sum over the group forward, nothing backward."""
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None
