"""Networks that nobody designed: blocks, activations, norms and losses put together by chance.

Where the other networks are of a kind, each with its few operators, these have any, in any order: what
the limits of an operator are worth shows where nobody had a network in mind. A seed draws all of it.
"""
import torch
import torch.nn.functional as F
from torch import nn

from zoo import Net

ACTIVATIONS = {
    "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "elu": F.elu, "celu": F.celu,
    "selu": F.selu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "mish": F.mish, "softplus": F.softplus, "softsign": F.softsign, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "logsigmoid": F.logsigmoid, "hardswish": F.hardswish,
    "hardtanh": F.hardtanh, "relu6": F.relu6, "square_relu": lambda x: torch.square(F.relu(x)),
    "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "bell": lambda x: torch.exp(-x * x),
    "expm1": lambda x: torch.expm1(x.clamp(max=2)), "log1p": lambda x: torch.log1p(torch.abs(x)),
    "sqrt": lambda x: torch.sqrt(x * x + 1e-3), "rational": lambda x: x / (1 + torch.abs(x)),
    "cubic": lambda x: 0.1 * torch.pow(x, 3), "where": lambda x: torch.where(x > 0, x, 0.2 * x),
    "log_cosh": lambda x: torch.abs(x) + F.softplus(-2 * torch.abs(x)) - 0.6931,
    "swish_by_hand": lambda x: x * torch.sigmoid(1.5 * x), "softmax": lambda x: F.softmax(x, -1) * 4,
    "clamp_min": lambda x: torch.maximum(x, torch.full_like(x, -0.5)),
}


def rms_norm(x, w):
    return x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True) + 1e-5) * w


class Norm(nn.Module):
    """Over features that come last."""

    def __init__(self, r, d):
        super().__init__()
        self.kind = r.choice(["layer", "layer", "rms", "batch", "group", "unit", "standard", "none"])
        self.w = nn.Parameter(1 + 0.1 * torch.randn(d))
        self.b = nn.Parameter(0.1 * torch.randn(d))

    def forward(self, x):
        if self.kind == "layer":
            return F.layer_norm(x, x.shape[-1:], self.w, self.b)
        if self.kind == "rms":
            return rms_norm(x, self.w)
        if self.kind == "batch" and x.dim() == 2:
            return F.batch_norm(x, None, None, self.w, self.b, True)
        if self.kind == "group" and x.dim() == 2:
            return F.group_norm(x, 2, self.w, self.b)
        if self.kind == "unit":
            return F.normalize(x, dim=-1) * self.w * 3
        if self.kind == "standard":
            return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3) * self.w
        return x


class Dense(nn.Module):
    """A block of one of these forms on features that come last."""
    forms = ("plain", "plain", "residual", "gated", "glu", "maxout", "maximum", "mixture", "lerp", "prototypes",
             "low_rank", "bilinear", "moments")

    def __init__(self, r, d, h):
        super().__init__()
        self.form = r.choice(self.forms)
        self.act = ACTIVATIONS[r.choice(list(ACTIVATIONS))]
        if self.form == "residual":
            h = d
        n = {"glu": 2 * h, "maxout": 3 * h, "low_rank": 4}.get(self.form, h)
        self.h = h
        self.w = nn.Linear(d, n, bias=r.random() < 0.7)
        more = self.form in ("gated", "maximum", "mixture", "lerp")
        self.v = nn.Linear(d, h) if more else nn.Linear(4, h) if self.form == "low_rank" else None
        self.g = nn.Linear(d, 2) if self.form == "mixture" else None
        self.p = nn.Parameter(torch.randn(h, d)) if self.form == "prototypes" else None
        self.two = nn.Bilinear(d, d, h) if self.form == "bilinear" else None
        self.norm = Norm(r, h)

    def forward(self, x):
        form, act = self.form, self.act
        if form == "residual":
            return self.norm(x + act(self.w(x)))
        if form == "gated":
            return self.norm(act(self.w(x)) * torch.sigmoid(self.v(x)))
        if form == "glu":
            return self.norm(F.glu(self.w(x), -1))
        if form == "maxout":
            y = self.w(x)
            return self.norm(y.reshape(*y.shape[:-1], self.h, 3).max(-1).values)
        if form == "maximum":
            return self.norm(torch.maximum(self.w(x), act(self.v(x))))
        if form == "mixture":
            g = F.softmax(self.g(x), -1)
            return self.norm(g[..., :1] * act(self.w(x)) + g[..., 1:] * self.v(x))
        if form == "lerp":
            return self.norm(torch.lerp(self.w(x), act(self.v(x)), 0.3))
        if form == "prototypes":
            far = torch.square(x.unsqueeze(-2) - self.p).sum(-1)
            return self.norm(act(self.w(x)) + torch.exp(-far / x.shape[-1]))
        if form == "low_rank":
            return self.norm(act(self.v(self.w(x))))
        if form == "bilinear":
            return self.norm(act(self.two(x, x)))
        if form == "moments":
            m = torch.cat([x.mean(-1, keepdim=True), x.std(-1, keepdim=True), torch.logsumexp(x, -1, keepdim=True),
                           x.amax(-1, keepdim=True)], -1)
            return self.norm(act(self.w(x)) * m.mean(-1, keepdim=True))
        return self.norm(act(self.w(x)))


def classes(kind, r):
    smooth = r.choice([0.0, 0.1])
    return {
        "cross_entropy": lambda s, y: F.cross_entropy(s, y, label_smoothing=smooth),
        "cross_entropy_sum": lambda s, y: F.cross_entropy(s, y, reduction="sum") / s.shape[0],
        "nll": lambda s, y: F.nll_loss(F.log_softmax(s, -1), y),
        "by_hand": lambda s, y: (torch.logsumexp(s, -1) - s.gather(-1, y.unsqueeze(-1)).squeeze(-1)).mean(),
        "focal": lambda s, y: (torch.pow(1 - F.softmax(s, -1).gather(-1, y.unsqueeze(-1)), 2) *
                               -F.log_softmax(s, -1).gather(-1, y.unsqueeze(-1))).mean(),
        "margin": lambda s, y: F.relu(1 + s - s.gather(-1, y.unsqueeze(-1))).mean(),
        "bce": lambda s, y: F.binary_cross_entropy(torch.sigmoid(s), F.one_hot(y, s.shape[-1]).to(s.dtype)),
        "bce_logits": lambda s, y: F.binary_cross_entropy_with_logits(s, F.one_hot(y, s.shape[-1]).to(s.dtype)),
        "kl": lambda s, y: F.kl_div(F.log_softmax(s, -1), 0.9 * F.one_hot(y, s.shape[-1]).to(s.dtype) +
                                    0.1 / s.shape[-1], reduction="batchmean"),
        "dice": lambda s, y: 1 - (2 * (F.softmax(s, -1) * F.one_hot(y, s.shape[-1]).to(s.dtype)).sum() + 1) /
        (2 * s.shape[0] + 1),
        "entropy": lambda s, y: F.cross_entropy(s, y) +
        0.1 * (F.softmax(s, -1) * F.log_softmax(s, -1)).sum(-1).mean(),
    }[kind]


CLASSES = ("cross_entropy cross_entropy_sum nll by_hand focal margin bce bce_logits kl dice entropy").split()
VALUES = {
    "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "huber": F.huber_loss,
    "mse_sum": lambda p, y: F.mse_loss(p, y, reduction="sum") / p.shape[0],
    "poisson": lambda p, y: (torch.exp(p.clamp(max=3)) - torch.abs(y) * p).mean(),
    "gaussian": lambda p, y: F.gaussian_nll_loss(p, y, F.softplus(p) + 0.1),
    "ranking": lambda p, y: F.margin_ranking_loss(p, p.roll(1, 0), torch.sign(y - y.roll(1, 0)), 0.2),
    "hinge": lambda p, y: F.hinge_embedding_loss(p, torch.sign(y)),
    "soft_margin": lambda p, y: torch.log1p(torch.exp(-torch.sign(y) * p)).mean(),
    "log_cosh": lambda p, y: (torch.abs(p - y) + F.softplus(-2 * torch.abs(p - y))).mean(),
    "quantile": lambda p, y: torch.maximum(0.9 * (y - p), 0.1 * (p - y)).mean(),
    "relative": lambda p, y: (torch.abs(p - y) / (torch.abs(y) + 0.5)).mean(),
    "bce": lambda p, y: F.binary_cross_entropy_with_logits(p, (y > 0).to(p.dtype)),
    "chances": lambda p, y: F.binary_cross_entropy(torch.sigmoid(p), (y > 0).to(p.dtype)),
    "spread": lambda p, y: F.mse_loss(p, y) + 0.1 * torch.var(p) + 0.1 * torch.square(p.mean() - y.mean()),
}
PAIRS = {
    "cosine": lambda a, b, y: F.cosine_embedding_loss(a, b, torch.sign(y), 0.2),
    "similar": lambda a, b, y: F.mse_loss(F.cosine_similarity(a, b), torch.tanh(y)),
    "distance": lambda a, b, y: F.huber_loss(F.pairwise_distance(a, b), torch.abs(y)),
    "triplet": lambda a, b, y: F.triplet_margin_loss(a, b, b.roll(1, 0), 0.5),
    "contrast": lambda a, b, y: F.cross_entropy(F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() / 0.2,
                                                torch.arange(a.shape[0])),
}


class Loss(nn.Module):
    """Classes, values or pairs of what features say, and sometimes two of these."""

    def __init__(self, r, d):
        super().__init__()
        self.n = r.choice([3, 5, 9])
        self.head = nn.Linear(d, self.n)
        self.of_classes = classes(r.choice(CLASSES), r)
        self.value = nn.Linear(d, 1)
        self.of_values = VALUES[r.choice(list(VALUES))]
        self.of_pairs = PAIRS[r.choice(list(PAIRS))]
        self.what = r.choice(["classes", "classes", "values", "values", "pairs", "both"])
        self.weight = r.choice([0.1, 0.5])

    def targets(self, n):
        return torch.randint(self.n, (n,)), torch.randn(n)

    def forward(self, x, label, y):
        if self.what == "classes":
            return self.of_classes(self.head(x), label)
        if self.what == "values":
            return self.of_values(self.value(x).squeeze(-1), y)
        if self.what == "pairs":
            half = x.shape[0] // 2
            return self.of_pairs(x[:half], x[half:2 * half], y[:half])
        return self.of_classes(self.head(x), label) + \
            self.weight * self.of_values(self.value(x).squeeze(-1), y)


class Table(Net):
    """Rows of numbers."""

    def __init__(self, r):
        super().__init__()
        self.rows, self.d = r.choice([16, 48, 128]), r.choice([6, 12, 20])
        self.shape = r.choice(["normal", "wide", "counts"])
        blocks, d = [], self.d
        for _ in range(r.choice([2, 3, 4])):
            blocks.append(Dense(r, d, 2 * r.choice([6, 8, 16])))
            d = blocks[-1].h
        self.blocks, self.loss = nn.ModuleList(blocks), Loss(r, d)

    def batch(self, r):
        x = torch.randn(self.rows, self.d)
        x = {"normal": x, "wide": x * torch.exp(torch.randn(self.d)), "counts": torch.floor(x.abs() * 3)}[self.shape]
        return (x, *self.loss.targets(self.rows))

    def forward(self, x, label, y):
        for b in self.blocks:
            x = b(x)
        return self.loss(x, label, y)


class Picture(Net):
    """Convolutions, pools, norms over planes; what is left is a table."""
    steps = ("none", "sgd", "momentum", "adam")

    def __init__(self, r):
        super().__init__()
        self.n, self.size = r.choice([2, 4, 8]), r.choice([8, 12])
        c, self.parts = 3, []
        for i in range(r.choice([1, 2, 3])):
            h = 4 * r.choice([1, 2, 3])
            groups = r.choice([1, 1, h]) if c == h else 1
            how = r.choice(["conv", "conv", "dilated", "transposed"])
            layer = nn.ConvTranspose2d(c, h, 3, padding=1) if how == "transposed" else \
                nn.Conv2d(c, h, 3, padding=2 if how == "dilated" else 1, dilation=2 if how == "dilated" else 1,
                          groups=groups, bias=r.random() < 0.6)
            norm = r.choice([nn.BatchNorm2d(h), nn.GroupNorm(2, h), nn.InstanceNorm2d(h, affine=True), None])
            self.add_module(f"conv{i}", layer)
            self.add_module(f"norm{i}", norm)
            self.parts.append((f"conv{i}", f"norm{i}", ACTIVATIONS[r.choice([a for a in ACTIVATIONS if a != "softmax"])],
                               r.choice([None, "max", "avg", "adaptive", "bigger"])))
            c = h
        self.end = r.choice(["mean", "amax", "adaptive", "flat_max", "norm"])
        self.dense = Dense(r, c, 2 * r.choice([4, 8]))
        self.loss = Loss(r, self.dense.h)

    def batch(self, r):
        return (torch.randn(self.n, 3, self.size, self.size), *self.loss.targets(self.n))

    def forward(self, x, label, y):
        for conv, norm, act, pool in self.parts:
            x = getattr(self, conv)(x)
            if getattr(self, norm) is not None:
                x = getattr(self, norm)(x)
            x = act(x)
            if pool == "max" and x.shape[-1] > 3:
                x = F.max_pool2d(x, 2)
            elif pool == "avg" and x.shape[-1] > 3:
                x = F.avg_pool2d(x, 2)
            elif pool == "adaptive":
                x = F.adaptive_avg_pool2d(x, 5)
            elif pool == "bigger" and x.shape[-1] < 9:
                x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = {"mean": lambda: x.mean((2, 3)), "amax": lambda: torch.amax(x, (2, 3)),
             "adaptive": lambda: F.adaptive_avg_pool2d(x, 1).flatten(1),
             "flat_max": lambda: x.flatten(2).max(-1).values,
             "norm": lambda: torch.norm(x.flatten(2), dim=-1) / x.shape[-1]}[self.end]()
        return self.loss(self.dense(x), label, y)


class Words(Net):
    """Tokens: attention, recurrence, convolution over time, a loss of each or of all."""

    def __init__(self, r):
        super().__init__()
        self.n, self.t, self.vocab = r.choice([2, 4]), r.choice([7, 12]), 23
        d = self.d = r.choice([8, 16])
        self.table = nn.Embedding(self.vocab, d)
        self.place = nn.Parameter(0.3 * torch.randn(self.t, d))
        self.mixers = [r.choice(["attention", "attention", "fused", "linear", "recurrent", "conv", "decay", "sorted"])
                       for _ in range(r.choice([1, 2]))]
        self.causal, self.heads = r.random() < 0.5, r.choice([1, 2])
        self.norms = nn.ModuleList(Norm(r, d) for _ in self.mixers)
        self.maps = nn.ModuleList(nn.Linear(d, 3 * d, bias=r.random() < 0.5) for _ in self.mixers)
        self.outs = nn.ModuleList(nn.Linear(d, d) for _ in self.mixers)
        self.time = nn.ModuleList(nn.Conv1d(d, d, 3, padding=1, groups=r.choice([1, d])) for _ in self.mixers)
        self.dense = nn.ModuleList(Dense(r, d, d) for _ in self.mixers)
        self.end = r.choice(["each", "mean", "max", "last"])
        self.loss = Loss(r, d)

    def batch(self, r):
        tokens = torch.randint(self.vocab, (self.n, self.t))
        return (tokens, *self.loss.targets(self.n * self.t if self.end == "each" else self.n))

    def mix(self, kind, i, x):
        n, t, d = x.shape
        q, k, v = self.maps[i](x).chunk(3, -1)
        if kind in ("attention", "fused"):
            q, k, v = (a.reshape(n, t, self.heads, -1).transpose(1, 2) for a in (q, k, v))
            mask = torch.ones(t, t, dtype=torch.bool).triu(1)
            s = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
            if kind == "fused":
                s = torch.where(mask, s - 4, s)
            elif self.causal:
                s = s.masked_fill(mask, float("-inf"))
            return self.outs[i]((F.softmax(s, -1) @ v).transpose(1, 2).reshape(n, t, d))
        if kind == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1
            y = torch.einsum("ntd,nde->nte", q, torch.einsum("ntd,nte->nde", k, v))
            return self.outs[i](y / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True))
        if kind == "recurrent":
            h, all_h = torch.zeros(n, d, dtype=x.dtype), []
            for s in range(t):
                z = torch.sigmoid(q[:, s] + h)
                h = (1 - z) * h + z * torch.tanh(k[:, s] + self.outs[i](h))
                all_h.append(h)
            return torch.stack(all_h, 1)
        if kind == "conv":
            return F.silu(self.time[i](x.transpose(1, 2))).transpose(1, 2)
        if kind == "decay":
            return self.outs[i](torch.cumsum(torch.exp(-F.softplus(q)) * v, 1) /
                                torch.arange(1, t + 1, dtype=x.dtype).unsqueeze(-1))
        return self.outs[i](torch.sort(v, 1).values)

    def forward(self, tokens, label, y):
        x = self.table(tokens) + self.place
        for i, kind in enumerate(self.mixers):
            x = x + self.mix(kind, i, self.norms[i](x))
            x = x + self.dense[i](x)
        x = {"each": lambda: x.reshape(-1, self.d), "mean": lambda: x.mean(1), "max": lambda: x.max(1).values,
             "last": lambda: x[:, -1]}[self.end]()
        return self.loss(x, label, y)


NETS = {"table": ("teach", Table), "picture": ("teach", Picture), "words": ("teach", Words),
        "rows": ("report", Table), "planes": ("report", Picture), "tokens": ("report", Words)}
