"""What the families of networks share: a case, and how its numbers are made."""
import contextlib
import random
import zlib

import torch
from torch import nn


class Case:
    """One network of a seed. Both programs draw the same sizes (`r`) and the same numbers, by their names;
    `pick` is how this device's program is written, `bug` what is wrong of it, if anything."""

    def __init__(self, family, seed, bug=None):
        self.seed, self.bug = f"{family} {seed}", bug
        self.r = random.Random(self.seed)
        self.picked, self.marked = {}, False

    def rand(self, name, *shape, scale=1.0, around=0.0):
        g = torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))
        return around + scale * torch.randn(*shape, generator=g)

    def ints(self, name, below, *shape):
        g = torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))
        return torch.randint(0, below, shape, generator=g)

    def pick(self, name, *ways):
        """The same way wherever it is asked for, unless a bug needs one (force)."""
        if name not in self.picked:
            self.picked[name] = random.Random(f"{self.seed} {name}").choice(ways)
        return self.picked[name]

    def force(self, bug, name, way):
        if self.bug == bug:
            self.picked[name] = way

    def has(self, bug):
        return self.bug == bug

    @contextlib.contextmanager
    def at(self, *bugs):
        """The op calls in here are the wrong ones of these bugs."""
        if self.bug not in bugs:
            yield
            return
        self.marked = True
        yield
        self.marked = False


def own(value):
    return nn.Parameter(value.clone())


def given(module, weight, bias=None):
    module.weight.data = weight.clone()
    if bias is not None:
        module.bias.data = bias.clone()
    return module
