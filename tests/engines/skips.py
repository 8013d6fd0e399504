"""Networks with long ways around: a DenseNet, a pyramid of features, resolutions side by side that exchange what they
have (HRNet), and branches that are put together, with gates (Inception); each right, and with a fault that models.py puts in."""
import torch
import torch.nn.functional as F
from torch import nn


class Grown(nn.Module):
    """A layer of a dense block: takes all that the block made before."""
    def __init__(self, n, by):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(n), nn.Conv2d(n, 2 * by, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(2 * by), nn.Conv2d(2 * by, by, 3, padding=1, bias=False)
        self.fault = None

    def forward(self, made):
        if self.fault == "stale":  # the one before last, for the last
            made = made[:-1] + [made[-1].roll(1, 1)]
        x = torch.cat(made[::-1] if self.fault == "order" else made, 1)
        y = self.norm1(x)
        y = self.conv1(F.leaky_relu(y, 0.1) if self.fault == "leaky" else F.relu(y))
        return self.conv2(F.relu(self.norm2(y)))


class DenseBlock(nn.Module):
    def __init__(self, n, by=8, times=3):
        super().__init__()
        self.grown = nn.ModuleList(Grown(n + i * by, by) for i in range(times))

    def forward(self, x):
        made = [x]
        for f in self.grown:
            made.append(f(made))
        return torch.cat(made, 1)


class Transition(nn.Module):
    def __init__(self, n, to):
        super().__init__()
        self.norm, self.conv, self.fault = nn.BatchNorm2d(n), nn.Conv2d(n, to, 1, bias=False), None

    def forward(self, x):
        x = self.conv(F.relu(self.norm(x)))
        return F.max_pool2d(x, 2) if self.fault == "pool" else F.avg_pool2d(x, 2)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Conv2d(3, 16, 3, padding=1)
        self.layers = nn.ModuleList((DenseBlock(16), Transition(40, 20), DenseBlock(20), Transition(44, 22), DenseBlock(22)))
        self.norm, self.head = nn.BatchNorm2d(46), nn.Linear(46, 10)

    def forward(self, x):
        x = self.into(x)
        for f in self.layers:
            x = f(x)
        return self.head(F.relu(self.norm(x)).mean((2, 3)))


class Plain(nn.Module):
    """Convolution, norm and activation, with what went in added, where it has the same shape."""
    def __init__(self, n, to, stride=1):
        super().__init__()
        self.conv, self.norm, self.same = nn.Conv2d(n, to, 3, stride, 1), nn.GroupNorm(4, to), n == to and stride == 1
        self.fault = None

    def forward(self, x):
        y = self.norm(self.conv(x))
        y = F.leaky_relu(y, 0.1) if self.fault == "leaky" else F.silu(y)
        return y if not self.same or self.fault == "lost" else x + y


class Lateral(nn.Module):
    """A level of the pyramid: its own, and what is above, enlarged."""
    def __init__(self, n):
        super().__init__()
        self.side, self.smooth, self.fault = nn.Conv2d(n, 24, 1), nn.Conv2d(24, 24, 3, padding=1), None

    def forward(self, x, above=None):
        x = self.side(x)
        if above is not None:
            how = {"mode": "bilinear"} if self.fault == "bilinear" else {"mode": "nearest"}
            above = F.interpolate(above, scale_factor=2.0, **how)
            x = x + (2 * above if self.fault == "doubled" else above)
        return x


class Fpn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList((Plain(3, 16), Plain(16, 24, 2), Plain(24, 32, 2), Lateral(16), Lateral(24), Lateral(32)))
        self.box, self.kind = nn.Conv2d(24, 4, 1), nn.Conv2d(24, 5, 1)

    def forward(self, x):
        up = []
        for f in self.layers[:3]:
            x = f(x)
            up.append(x)
        above, made = None, []
        for f, x in zip(self.layers[:2:-1], up[::-1]):
            above = f(x, above)
            y = F.relu(f.smooth(above))
            made.append(torch.cat((self.box(y), self.kind(y)), 1).flatten(2))
        return torch.cat(made, 2).transpose(1, 2)


class Exchange(nn.Module):
    """Each resolution takes from all of them."""
    def __init__(self):
        super().__init__()
        self.up = nn.ModuleDict({"10": nn.Conv2d(24, 16, 1), "20": nn.Conv2d(32, 16, 1), "21": nn.Conv2d(32, 24, 1)})
        self.down = nn.ModuleDict({"01": nn.Conv2d(16, 24, 3, 2, 1), "12": nn.Conv2d(24, 32, 3, 2, 1), "02": nn.Conv2d(16, 32, 5, 4, 2)})
        self.fault = None

    def forward(self, xs):
        made = []
        for to in range(3):
            y = xs[to]
            for at in range(3):
                if at > to:
                    z = F.interpolate(self.up["%d%d" % (at, to)](xs[at]), scale_factor=2.0 ** (at - to), mode="bilinear" if self.fault == "bilinear" else "nearest")
                elif at < to:
                    z = self.down["%d%d" % (at, to)](xs[at])
                else:
                    continue
                y = y if self.fault == "unfused" and (at, to) == (1, 0) else y + z
            made.append(F.relu(y))
        return made


class Hrnet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = 16, 24, 32
        self.into = nn.ModuleList((nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 24, 3, 2, 1), nn.Conv2d(24, 32, 3, 2, 1)))
        self.layers = nn.ModuleList(nn.ModuleList((*(Plain(n, n) for n in sizes), Exchange())) for _ in range(3))
        self.out = nn.Conv2d(sum(sizes), 5, 1)

    def forward(self, x):
        xs = []
        for f in self.into:
            x = f(x)
            xs.append(x)
        for *own, exchange in self.layers:
            xs = exchange([f(x) for f, x in zip(own, xs)])
        return self.out(torch.cat([xs[0]] + [F.interpolate(x, scale_factor=2.0 ** (i + 1), mode="nearest") for i, x in enumerate(xs[1:])], 1))


class Branches(nn.Module):
    """Four ways side by side, a gate for each channel, and the way around."""
    def __init__(self, n):
        super().__init__()
        self.one, self.three, self.far = nn.Conv2d(n, 8, 1), nn.Conv2d(n, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.pooled, self.norm = nn.Conv2d(n, 8, 1), nn.BatchNorm2d(32)
        self.less, self.more, self.back, self.fault = nn.Linear(32, 8), nn.Linear(8, 32), nn.Conv2d(32, n, 1, bias=False), None

    def forward(self, x):
        three = F.relu(self.three(x))
        pool = F.max_pool2d if self.fault == "pool" else F.avg_pool2d
        ways = [self.one(x), three, self.far(three), self.pooled(pool(x, 3, 1, 1))]
        if self.fault == "order":
            ways = [ways[i] for i in (0, 2, 1, 3)]
        y = F.hardswish(self.norm(torch.cat(ways, 1)))
        gate = self.more(F.relu(self.less(y.amax((2, 3)) if self.fault == "stale" else y.mean((2, 3)))))
        gate = F.hardsigmoid(gate) if self.fault == "hard" else gate.sigmoid()
        return (0 if self.fault == "lost" else x) + self.back(y * gate[:, :, None, None])


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.layers = nn.Conv2d(3, 24, 3, 2, 1), nn.ModuleList(Branches(24) for _ in range(4))
        self.low, self.head = nn.Linear(24, 6), nn.Linear(24, 6)

    def forward(self, x):
        made = [self.into(x)]
        for f in self.layers:
            made.append(f(made[-1]))
        return self.low(made[1].mean((2, 3))) + self.head(F.relu(made[-1]).mean((2, 3)))


MODELS = {"dense": Dense, "fpn": Fpn, "hrnet": Hrnet, "incept": Inception}
FAULTS = ["stale", "bilinear", "unfused", "hard"]


def break_it(m, name, fault):
    """The module in which the fault is, or None where this network cannot have it; the fault put in."""
    if name == "dense":
        one = m.layers[2].grown[1]
        if fault in ("stale", "order", "leaky"):
            one.fault = fault
        elif fault == "eps":
            one.norm2.eps = 1e-1
        elif fault == "gain":
            one.norm1.weight.mul_(1.05)
        elif fault == "pool":
            m.layers[1].fault = fault
            return "layers.1"
        elif fault == "turned":
            one.conv2.weight.copy_(one.conv2.weight.flip(2, 3))
        else:
            return None
        return "layers.2"
    if name == "incept":
        one = m.layers[1]
        if fault in ("pool", "order", "stale", "hard", "lost"):
            one.fault = fault
        elif fault == "eps":
            one.norm.eps = 1e-1
        elif fault == "bias":
            one.three.bias.zero_()
        elif fault == "dilation":
            one.far.dilation, one.far.padding = (1, 1), (1, 1)
        elif fault == "turned":
            one.far.weight.copy_(one.far.weight.flip(2, 3))
        elif fault == "doubled":
            one.less.weight.mul_(2)
        else:
            return None
        return "layers.1"
    if name == "fpn":
        at = {"leaky": 1, "bilinear": 3, "doubled": 4, "eps": 1, "turned": 3, "bias": 4, "padding": 2}.get(fault)
    else:
        at = {"lost": 1, "leaky": 1, "bilinear": 1, "unfused": 1, "eps": 1, "turned": 1, "bias": 2, "padding": 2}.get(fault)
    if at is None:
        return None
    block = m.layers[at]
    if name == "hrnet":
        block = block[3] if fault in ("bilinear", "unfused") else block[0 if fault in ("lost", "padding") else 1]
    conv = getattr(block, "smooth", None) or getattr(block, "conv", None)
    if fault == "eps":
        block.norm.eps = 1e-1
    elif fault == "turned":
        conv.weight.copy_(conv.weight.flip(2, 3))
    elif fault == "bias":
        conv.bias.zero_()
    elif fault == "padding":
        conv.padding_mode = "reflect"
        conv._reversed_padding_repeated_twice = [1, 1, 1, 1]
    else:
        block.fault = fault
    return "layers.%d" % at
