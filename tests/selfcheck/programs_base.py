"""What the programs of programs.py have in common: exchanges that autograd knows, and the ends of a step."""
import torch
import torch.distributed as dist


def total(x, group, **more):
    """Sums in place over the ranks of a group; None: one process."""
    if group is not None:
        dist.all_reduce(x, group=group, **more)
    return x


def chunk(x, group, dim):
    return x.chunk(dist.get_world_size(group), dim)[dist.get_rank(group)].contiguous()


def joined(x, group, dim):
    x = x.contiguous()
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x, group=group)
    return torch.cat(parts, dim)


class Copy(torch.autograd.Function):
    """Into a region of split weights: what comes back is of each rank's part."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return total(g.clone(), ctx.group), None


class Reduce(torch.autograd.Function):
    """Out of it."""
    @staticmethod
    def forward(ctx, x, group):
        return total(x.clone(), group)

    @staticmethod
    def backward(ctx, g):
        return g, None


class SumBoth(torch.autograd.Function):
    """A sum that each rank goes on with by itself."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return total(x.clone(), group)

    @staticmethod
    def backward(ctx, g):
        return total(g.clone(), ctx.group), None


class Gather(torch.autograd.Function):
    """All parts of a dimension; what comes back is of each rank's use of them."""
    @staticmethod
    def forward(ctx, x, group, dim):
        ctx.more = group, dim
        return joined(x, group, dim) if group is not None else x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        group, dim = ctx.more
        # gloo has no reduce_scatter.
        return (chunk(total(g.clone(), group), group, dim) if group is not None else g), None, None


class Scatter(torch.autograd.Function):
    """The sum, of which each rank keeps a part of a dimension."""
    @staticmethod
    def forward(ctx, x, group, dim):
        ctx.more = group, dim
        return chunk(total(x.clone(), group), group, dim) if group is not None else x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        group, dim = ctx.more
        return (joined(g, group, dim) if group is not None else g), None, None


class Exchange(torch.autograd.Function):
    """all_to_all of equal parts of dimension 0; back: False leaves out that of the gradient."""
    @staticmethod
    def forward(ctx, x, group, back=True):
        ctx.group = group if back else None
        return Exchange.once(x, group)

    @staticmethod
    def once(x, group):
        if group is None:
            return x.view_as(x)
        # Contiguous before empty_like, which keeps strides that gloo writes past without a word.
        x = x.contiguous()
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        return Exchange.once(g, ctx.group), None, None


class Draw:
    """Weights of the whole model, of which each rank takes its part."""
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def __call__(self, *shape, std=0.3):
        return torch.empty(shape).normal_(0.0, std, generator=self.g)

    def ints(self, high, *shape):
        return torch.randint(high, shape, generator=self.g)

    def part(self, rank, ranks, dim, *shape, std=0.3):
        return self(*shape, std=std).chunk(ranks, dim)[rank].clone()


def grids(rank, inner, outer):
    """The groups of a rank in a grid, (inner, outer); all ranks make all of them."""
    if inner * outer == 1:
        return None, None
    mine = [None, None]
    for o in range(outer):
        ranks = [o * inner + i for i in range(inner)]
        g = dist.new_group(ranks)
        if rank in ranks:
            mine[0] = g
    for i in range(inner):
        ranks = [o * inner + i for o in range(outer)]
        g = dist.new_group(ranks)
        if rank in ranks:
            mine[1] = g
    return mine


def world(ranks):
    return dist.group.WORLD if ranks > 1 else None


def begin(step):
    """Of a program whose steps accrecord does not see by itself."""
    import accrecord  # where the maker has set its path
    accrecord.step(step)


def kept(named):
    """Weights and their last gradients."""
    out = {}
    for name, p in named:
        out[name] = p.detach().clone()
        if p.grad is not None:
            out[name + ".grad"] = p.grad.detach().clone()
    return out
