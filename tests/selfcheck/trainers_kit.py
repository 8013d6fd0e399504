"""What the programs of trainers.py share: data that all ranks could draw, what is kept, groups, and how a layer
whose weights or tokens are split over ranks has what the others have.
"""
import torch
import torch.distributed as dist
import torch.nn as nn

D = 16
VOCAB = 20


def rand(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def ends(model):
    """The weights of a model and their gradients, not copied."""
    out = {k: p.data for k, p in model.named_parameters()}
    out.update({f"grad.{k}": p.grad for k, p in model.named_parameters() if p.grad is not None})
    return out


def state(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items() if v.is_floating_point()}


def my_groups(rank):
    """Of four ranks in two rows of two: the row's group, the column's."""
    rows, columns = ([(dist.new_group(r), r) for r in two] for two in ([[0, 1], [2, 3]], [[0, 2], [1, 3]]))
    return [next(g for g, r in groups if rank in r) for groups in (rows, columns)]


def shard(weight, rank, n, dim=0):
    return nn.Parameter(weight.detach().chunk(n, dim)[rank].clone())


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class GatherSeq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group, parts = group, [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()   # gloo has no reduce_scatter
        dist.all_reduce(grad, group=ctx.group)
        return grad.chunk(dist.get_world_size(ctx.group))[dist.get_rank(ctx.group)].contiguous(), None


class ScatterSeq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group, x = group, x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x.chunk(dist.get_world_size(group))[dist.get_rank(group)].contiguous()

    @staticmethod
    def backward(ctx, grad):
        parts = [torch.empty_like(grad) for _ in range(dist.get_world_size(ctx.group))]
        dist.all_gather(parts, grad.contiguous(), group=ctx.group)
        return torch.cat(parts), None


class RMSNorm(nn.Module):
    def __init__(self, dim=D):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def causal(scores, first=0):
    """Masks what lies after a query; the queries start at first."""
    q, k = scores.shape[-2:]
    later = torch.arange(k)[None] > torch.arange(first, first + q)[:, None]
    return scores.masked_fill(later, float("-inf")).softmax(-1)
