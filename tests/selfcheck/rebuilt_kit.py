"""What the programs of rebuilt.py share: data that all ranks could draw, what is kept, groups, a reduce_scatter."""
import torch
import torch.distributed as dist

VOCAB, HID = 20, 16


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, n, *shape):
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


def kept(model):
    """What a program is checked by."""
    return {name: t.data for name, t in model.state_dict(keep_vars=True).items() if t.is_floating_point()}


def my_group(rank, *rows):
    """The group of a rank; all ranks make all groups."""
    groups = [dist.new_group(row) for row in rows]
    return next(g for g, row in zip(groups, rows) if rank in row)


def reduce_scatter(x, group=None):
    """gloo has none of its own."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    dist.all_to_all_single(out, x.contiguous(), group=group)
    n = dist.get_world_size(group)
    return out.view(n, x.shape[0] // n, *x.shape[1:]).sum(0)
