"""What the programs of library.py share: data that all ranks could draw, what is kept, groups."""
import torch
import torch.distributed as dist

D = 8
EPS = 1e-3   # what is 0 but for rounding, as a bias of keys has it, is not blown up


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def result(model, **more):
    """What a program is checked by: weights and their last gradients."""
    out = {name: p.data for name, p in model.named_parameters()}
    out.update({f"grad.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None})
    return {**out, **more}


def grid(rank, inner):
    """Groups of a grid of ranks: of those next to each other, and of those inner apart."""
    world = dist.get_world_size()
    rows = [list(range(i, i + inner)) for i in range(0, world, inner)]
    columns = [list(range(i, world, inner)) for i in range(inner)]
    return [next(g for g, r in [(dist.new_group(r), r) for r in lists] if rank in r) for lists in (rows, columns)]
