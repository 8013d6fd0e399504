"""What the programs of othersix.py share: data, groups of ranks, and functions that communicate."""
import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def randint(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def groups(rank, *rows):
    """All ranks create all groups; a rank's own one."""
    made = [(dist.new_group(row), row) for row in rows]
    return next(g for g, row in made if rank in row)


def weights(*models):
    return {n: p.detach().clone() for m in models for n, p in m.named_parameters()}


def coalesced(tensors, group=None, div=1):
    """One all-reduce of many tensors, in place."""
    flat = _flatten_dense_tensors(tensors)
    dist.all_reduce(flat, group=group)
    flat /= div
    for t, new in zip(tensors, _unflatten_dense_tensors(flat, tensors)):
        t.copy_(new)


class CopyToGroup(torch.autograd.Function):
    """Nothing forward; the gradients of all ranks backward."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        # As Megatron had it: in place, if it is contiguous.
        dist.all_reduce(g.contiguous(), group=ctx.group)
        return g, None


class SumOverGroup(torch.autograd.Function):
    """The sum of all ranks forward; nothing backward."""
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class GatherLast(torch.autograd.Function):
    """All parts of the last dimension, of whose gradient each rank has its own part."""
    @staticmethod
    def forward(ctx, x, rank, n):
        ctx.rank, ctx.n = rank, n
        out = [torch.empty_like(x) for _ in range(n)]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(ctx.n, -1)[ctx.rank].contiguous(), None, None


class GatherTokens(torch.autograd.Function):
    """All tokens (dimension 1) of a group; each rank's uses count in their gradients."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.n = group, dist.get_world_size(group)
        out = [torch.empty_like(x) for _ in range(ctx.n)]
        dist.all_gather(out, x.contiguous(), group=group)
        return torch.cat(out, 1)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g, group=ctx.group)
        return g.chunk(ctx.n, 1)[dist.get_rank(ctx.group)], None


class Exchange(torch.autograd.Function):
    """all_to_all of rows, so many to and from each rank."""
    @staticmethod
    def forward(ctx, x, sent, received, group):
        ctx.sent, ctx.received, ctx.group = sent, received, group
        out = x.new_empty(sum(received), *x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        out = g.new_empty(sum(ctx.sent), *g.shape[1:])
        dist.all_to_all_single(out, g.contiguous(), ctx.sent, ctx.received, group=ctx.group)
        return out, None, None, None
