"""What the programs of quiet.py share: data that all ranks could draw, a rank's part of it, weights by name."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

D = 8


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, k, *shape):
    return torch.randint(k, shape, generator=torch.Generator().manual_seed(seed))


def mine(rank, n, *tensors):
    """A rank's rows."""
    parts = [t.chunk(n)[rank] for t in tensors]
    return parts if len(parts) > 1 else parts[0]


def ddp(model, n, **options):
    return DistributedDataParallel(model, **options) if n > 1 else model


def state(model, prefix=""):
    return {prefix + k.replace("module.", ""): v.detach().clone() for k, v in model.state_dict().items()
            if v.is_floating_point()}


def average(params, n, op="mean"):
    """Gradients of replicas, by hand."""
    for p in params:
        if n > 1 and p.grad is not None:
            dist.all_reduce(p.grad)
            if op == "mean":
                p.grad /= n


def one(train):
    """What one process does: the program with no other rank."""
    return lambda seed: train(0, seed, 1)
