"""What the programs of sixkinds.py share: their data, their groups, and what they are checked by."""
import torch
import torch.distributed as dist


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, n, *shape):
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


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


class SumGrad(torch.autograd.Function):
    """Into a region that is split over a group: nothing forward, the sum of the gradients backward."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class Sum(torch.autograd.Function):
    """Out of such a region: the sum forward, nothing backward."""
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None
