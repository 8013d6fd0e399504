"""Operators in each other's place, and formulas that are equal: what make.py puts between two products.

EXCHANGES: name -> (right, wrong, domain), both functions of h and o, two tensors [4, 6, 8] of floats that are made
from each other's inputs by two weights; REWRITINGS: name -> (one, other, domain), equal but for rounding.
The domain says what h is: "any", "positive", "unit" (0 to 1). What a formula needs beside is made by parts(),
the same on both sides: weights w, b, a table of angles, a mask, places, labels."""
import math

import torch
import torch.nn.functional as F

X = 8                # width
T = 6                # tokens
HEADS = 2


def parts(dtype):
    """What formulas take beside h and o."""
    g = torch.Generator().manual_seed(7)

    def r(*shape):
        return torch.randn(*shape, generator=g).to(dtype)
    angle = torch.arange(T)[:, None] * 10 ** (-torch.arange(X // 2) / 2.0)[None]
    keep = torch.rand(4, T, generator=g) > 0.3
    keep[:, 0] = True
    return {"w": 1 + 0.2 * r(X), "b": 0.2 * r(X), "m": r(X, X) / math.sqrt(X), "m2": r(X, X) / math.sqrt(X),
            "m3": r(X, X) / math.sqrt(X), "up": r(4 * X, X) / math.sqrt(X), "cos": angle.cos().to(dtype),
            "sin": angle.sin().to(dtype), "keep": keep, "causal": torch.ones(T, T).tril().bool(),
            "at": torch.randperm(T, generator=g), "labels": torch.randint(0, X, (4, T), generator=g),
            "conv": r(X, X, 3) / 5, "ids": torch.randint(0, 5, (4, T), generator=g), "table": r(5, X),
            "target": torch.rand(4, T, X, generator=g).to(dtype)}


ACTIVATIONS = {
    "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "elu": F.elu,
    "softplus": F.softplus}


def _exchanges():
    unary = {
        # what was reported as silent
        "relu-gelu": (F.relu, F.gelu, "any"), "silu-gelu": (F.silu, F.gelu, "any"),
        "sqrt-rsqrt": (torch.sqrt, torch.rsqrt, "positive"),
        "tanh-sigmoid": (torch.tanh, torch.sigmoid, "any"), "exp-exp2": (torch.exp, torch.exp2, "any"),
        "log-log2": (torch.log, torch.log2, "positive"),
        "roll-flip": (lambda h: torch.roll(h, 1, 1), lambda h: torch.flip(h, [1]), "any"),
        "pow-mul": (lambda h: h ** 2, lambda h: h * 2, "any"),
        "round-floor": (lambda h: h + torch.round(3 * h), lambda h: h + torch.floor(3 * h), "any"),
        "relu-leaky": (F.relu, lambda h: F.leaky_relu(h, 0.1), "any"),
        "hardswish-silu": (F.hardswish, F.silu, "any"), "elu-selu": (F.elu, F.selu, "any"),
        "sum-mean": (lambda h: h.sum(1, keepdim=True).expand(-1, T, -1), lambda h: h.mean(1, keepdim=True).expand(-1, T, -1), "any"),
        "amax-mean": (lambda h: h - h.amax(-1, keepdim=True), lambda h: h - h.mean(-1, keepdim=True), "any"),
        "amax-amin": (lambda h: h - h.amax(-1, keepdim=True), lambda h: h - h.amin(-1, keepdim=True), "any"),
        "var-std": (lambda h: h / h.var(-1, keepdim=True), lambda h: h / h.std(-1, keepdim=True), "any"),
        # others of the catalogue
        "sin-cos": (torch.sin, torch.cos, "any"), "abs-square": (torch.abs, torch.square, "any"),
        "floor-ceil": (lambda h: h * torch.floor(2 * h), lambda h: h * torch.ceil(2 * h), "any"),
        "trunc-round": (lambda h: h * torch.trunc(2 * h), lambda h: h * torch.round(2 * h), "any"),
        "erf-tanh": (torch.erf, torch.tanh, "any"), "expm1-exp": (torch.expm1, torch.exp, "any"),
        "log1p-log": (torch.log1p, torch.log, "positive"),
        "reciprocal-neg": (torch.reciprocal, torch.neg, "positive"), "atan-tanh": (torch.atan, torch.tanh, "any"),
        "asinh-atan": (torch.asinh, torch.atan, "any"),
        "hardtanh-relu6": (F.hardtanh, F.relu6, "any"), "hardsigmoid-sigmoid": (F.hardsigmoid, torch.sigmoid, "any"),
        "mish-silu": (F.mish, F.silu, "any"), "celu-selu": (F.celu, F.selu, "any"),
        "softsign-tanh": (F.softsign, torch.tanh, "any"), "logsigmoid-softplus": (F.logsigmoid, F.softplus, "any"),
        "softshrink-hardshrink": (F.softshrink, F.hardshrink, "any"),
        "cumsum-cumprod": (lambda h: h.cumsum(1), lambda h: h.cumprod(1), "any"),
        "softmax-softmin": (lambda h: F.softmax(h, -1), lambda h: F.softmin(h, -1), "any"),
        "softmax-sigmoid": (lambda h: F.softmax(h, -1), torch.sigmoid, "any"),
        "softmax-axis": (lambda h: F.softmax(h, -1), lambda h: F.softmax(h, 1), "any"),
        "logsoftmax-softmax": (lambda h: F.log_softmax(h, -1), lambda h: F.softmax(h, -1), "any"),
        "logsumexp-amax": (lambda h: h - h.logsumexp(-1, keepdim=True), lambda h: h - h.amax(-1, keepdim=True), "any"),
        "prod-sum": (lambda h: h * h.prod(1, keepdim=True), lambda h: h * h.sum(1, keepdim=True), "any"),
        "norm-sum": (lambda h: h / h.norm(dim=-1, keepdim=True), lambda h: h / h.abs().sum(-1, keepdim=True), "any"),
        "normalize-softmax": (lambda h: F.normalize(h, dim=-1), lambda h: F.softmax(h, -1), "any"),
        "mean-median": (lambda h: h - h.mean(1, keepdim=True), lambda h: h - h.median(1, keepdim=True).values, "any"),
        "clamp-relu": (lambda h: h.clamp(min=-0.2), F.relu, "any"),
        "tril-triu": (lambda h: h @ (h.transpose(1, 2) @ h).tril(), lambda h: h @ (h.transpose(1, 2) @ h).triu(), "any"),
        "sort-down": (lambda h: h.sort(1).values, lambda h: h.sort(1, descending=True).values, "any"),
        "transpose-view": (lambda h: h.transpose(1, 2).reshape(4, T, X), lambda h: h.reshape(4, T, X) * 1, "any"),
        "unfold-heads": (lambda h: h.view(4, T, HEADS, -1).transpose(2, 3).reshape(4, T, X),
                         lambda h: h.view(4, T, HEADS, -1).transpose(1, 2).reshape(4, T, X), "any"),
        "repeat-interleave": (lambda h: h[..., :4].repeat(1, 1, 2), lambda h: h[..., :4].repeat_interleave(2, -1), "any"),
        "chunk-order": (lambda h: torch.cat([h.chunk(2, -1)[0] * F.silu(h.chunk(2, -1)[1])] * 2, -1),
                        lambda h: torch.cat([h.chunk(2, -1)[1] * F.silu(h.chunk(2, -1)[0])] * 2, -1), "any"),
        "avgpool-maxpool": (lambda h: F.avg_pool1d(h, 3, 1, 1), lambda h: F.max_pool1d(h, 3, 1, 1), "any"),
        "pad-reflect": (lambda h: F.pad(h, (1, 1), "reflect")[..., :X], lambda h: F.pad(h, (1, 1), "replicate")[..., :X], "any"),
        "diff-roll": (lambda h: h - torch.roll(h, 1, 1), lambda h: h + torch.roll(h, 1, 1), "any"),
        "square-cube": (torch.square, lambda h: h * h * h, "any"),
        "glu-half": (lambda h: F.glu(torch.cat([h, h.flip(-1)], -1), -1), lambda h: F.glu(torch.cat([h.flip(-1), h], -1), -1), "any"),
        "sigmoid-hard": (torch.sigmoid, lambda h: (h + 1).clamp(0, 1) / 2, "any"),
        "sinc-cos": (torch.sinc, torch.cos, "any"), "sign-tanh": (lambda h: h * torch.sign(h), lambda h: h * torch.tanh(h), "any"),
    }
    table = {k: ((lambda h, o, p, f=f: f(h)), (lambda h, o, p, g=g: g(h)), d) for k, (f, g, d) in unary.items()}
    names = list(ACTIVATIONS)
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            f, g = ACTIVATIONS[a], ACTIVATIONS[b]
            table.setdefault(f"act-{a}-{b}", ((lambda h, o, p, f=f: f(h)), (lambda h, o, p, g=g: g(h)), "any"))
    table.update({
        "mul-div": (lambda h, o, p: o * h, lambda h, o, p: o / h, "positive"),
        "maximum-minimum": (lambda h, o, p: torch.maximum(h, o), lambda h, o, p: torch.minimum(h, o), "any"),
        "add-sub": (lambda h, o, p: h + o, lambda h, o, p: h - o, "any"),
        "sub-rsub": (lambda h, o, p: h - o, lambda h, o, p: o - h, "any"),
        "add-mul": (lambda h, o, p: h + o, lambda h, o, p: h * o, "any"),
        "atan2-div": (lambda h, o, p: torch.atan2(o, h), lambda h, o, p: o / h, "positive"),
        "lerp-mean": (lambda h, o, p: torch.lerp(h, o, 0.3), lambda h, o, p: (h + o) / 2, "any"),
        "addcmul-addcdiv": (lambda h, o, p: torch.addcmul(o, o, h), lambda h, o, p: torch.addcdiv(o, o, h), "positive"),
        "hypot-add": (torch_hypot, lambda h, o, p: h.abs() + o.abs(), "any"),
        "logaddexp-maximum": (lambda h, o, p: torch.logaddexp(h, o), lambda h, o, p: torch.maximum(h, o), "any"),
        "where-swapped": (lambda h, o, p: torch.where(p["keep"][..., None], h, o), lambda h, o, p: torch.where(p["keep"][..., None], o, h), "any"),
        "cat-order": (lambda h, o, p: F.linear(torch.cat([h, o], -1), torch.cat([p["m"], p["m2"]], 1)),
                      lambda h, o, p: F.linear(torch.cat([o, h], -1), torch.cat([p["m"], p["m2"]], 1)), "any"),
        "bmm-transposed": (lambda h, o, p: torch.bmm(torch.bmm(h, o.transpose(1, 2)), h),
                           lambda h, o, p: torch.bmm(torch.bmm(o, h.transpose(1, 2)), h), "any"),
        "linear-transposed": (lambda h, o, p: F.linear(h, p["m"]), lambda h, o, p: h @ p["m"], "any"),
        "layernorm-rmsnorm": (lambda h, o, p: F.layer_norm(h, (X,), p["w"], None), lambda h, o, p: F.rms_norm(h, (X,), p["w"], 1e-5), "any"),
        "groupnorm-layernorm": (lambda h, o, p: F.group_norm(h.reshape(-1, X), 2, p["w"], p["b"]).view(4, T, X),
                                lambda h, o, p: F.layer_norm(h.reshape(-1, X), (X,), p["w"], p["b"]).view(4, T, X), "any"),
        "batchnorm-instancenorm": (lambda h, o, p: F.batch_norm(h.transpose(1, 2), None, None, p["w"], p["b"], True).transpose(1, 2),
                                   lambda h, o, p: F.instance_norm(h.transpose(1, 2), None, None, p["w"], p["b"], True).transpose(1, 2), "any"),
        "select-gather": (lambda h, o, p: h.index_select(1, p["at"]), lambda h, o, p: h.index_select(1, p["at"].argsort()), "any"),
        "conv-flipped": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"], padding=1).transpose(1, 2),
                         lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"].flip(-1), padding=1).transpose(1, 2), "any"),
        "fill-zero": (lambda h, o, p: h.masked_fill(~p["keep"][..., None], 0.), lambda h, o, p: h.masked_fill(p["keep"][..., None], 0.), "any"),
        "baddbmm-alpha": (lambda h, o, p: torch.baddbmm(o, h @ p["m"], torch.eye(X, dtype=h.dtype).expand(4, X, X), alpha=X ** -0.5),
                          lambda h, o, p: torch.baddbmm(o, h @ p["m"], torch.eye(X, dtype=h.dtype).expand(4, X, X), alpha=X ** -1.), "any"),
        "rope-sign": (lambda h, o, p: rope_half(h, p, 1), lambda h, o, p: rope_half(h, p, -1), "any"),
        "causal-all": (lambda h, o, p: F.scaled_dot_product_attention(h, o, h, is_causal=True),
                       lambda h, o, p: F.scaled_dot_product_attention(h, o, h), "any"),
    })
    losses = {
        "mse-l1": (lambda y, p: F.mse_loss(y, p["target"]), lambda y, p: F.l1_loss(y, p["target"])),
        "smoothl1-mse": (lambda y, p: F.smooth_l1_loss(y, p["target"]), lambda y, p: F.mse_loss(y, p["target"])),
        "huber-l1": (lambda y, p: F.huber_loss(y, p["target"]), lambda y, p: F.l1_loss(y, p["target"])),
        "bcelogits-softmargin": (lambda y, p: F.binary_cross_entropy_with_logits(y, p["target"]), lambda y, p: F.soft_margin_loss(y, 2 * p["target"] - 1)),
        "crossentropy-nll": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()), lambda y, p: F.nll_loss(y.flatten(0, 1), p["labels"].flatten())),
        "mean-sum": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()), lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), reduction="sum")),
        "labels-shift": (lambda y, p: F.cross_entropy(y[:, :-1].flatten(0, 1), p["labels"][:, 1:].flatten()), lambda y, p: F.cross_entropy(y[:, 1:].flatten(0, 1), p["labels"][:, 1:].flatten())),
        "smoothing": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()), lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), label_smoothing=0.1)),
        "ignored-scale": (lambda y, p: loss_filled(y, p, -100), lambda y, p: loss_filled(2. * y, p, -1)),
    }
    return table, losses


def torch_hypot(h, o, p):
    return torch.hypot(h, o)


def rope_half(h, p, sign):
    a, b = h.chunk(2, -1)
    cos, sin = torch.cat([p["cos"]] * 2, -1), torch.cat([p["sin"]] * 2, -1)
    return h * cos + sign * torch.cat([-b, a], -1) * sin


def rope_split(h, p):
    a, b = h.chunk(2, -1)
    return torch.cat([a * p["cos"] - b * p["sin"], b * p["cos"] + a * p["sin"]], -1)


def rope_complex(h, p):
    a, b = h.float().chunk(2, -1)
    z = torch.complex(a, b) * torch.complex(p["cos"].float(), p["sin"].float())
    return torch.cat([z.real, z.imag], -1).to(h.dtype)


def attention(h, p, how):
    q, k, v = F.linear(h, p["m"]), F.linear(h, p["m2"]), F.linear(h, p["m3"])
    scale = X ** -0.5
    if how == "fused":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=p["causal"])
    if how == "packed":
        q, k, v = F.linear(h, torch.cat([p["m"], p["m2"], p["m3"]])).split(X, -1)
    if how == "scale-q":
        s = (q * scale) @ k.transpose(1, 2)
    elif how == "scale-both":
        s = (q * scale ** 0.5) @ (k * scale ** 0.5).transpose(1, 2)
    elif how == "baddbmm":
        s = torch.baddbmm(torch.zeros(4, T, T, dtype=h.dtype), q, k.transpose(1, 2), beta=0, alpha=scale)
    elif how == "div":
        s = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(X)
    elif how == "einsum":
        s = torch.einsum("btd,bsd->bts", q, k) * scale
    else:
        s = q @ k.transpose(1, 2) * scale
    if how == "added":
        s = s + (~p["causal"]).to(h.dtype) * -10000.
    elif how == "where":
        s = torch.where(p["causal"], s, torch.finfo(h.dtype).min)
    else:
        s = s.masked_fill(~p["causal"], float("-inf"))
    if how == "max-first":
        e = (s - s.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True) @ v
    return F.softmax(s, -1) @ v


def rms(h, p, how):
    if how == "weight-first":
        return p["w"] * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)
    if how == "sqrt":
        return h / torch.sqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5) * p["w"]
    if how == "fused":
        return F.rms_norm(h, (X,), p["w"], 1e-5)
    if how == "norm":
        return p["w"] * (h * torch.rsqrt((h * h).sum(-1, keepdim=True) / X + 1e-5))
    return p["w"] * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5))


def layer(h, p, how):
    if how == "fused":
        return F.layer_norm(h, (X,), p["w"], p["b"])
    d = h - h.mean(-1, keepdim=True)
    if how == "var":
        return d / torch.sqrt(h.var(-1, keepdim=True, unbiased=False) + 1e-5) * p["w"] + p["b"]
    return torch.addcmul(p["b"], d * torch.rsqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5), p["w"])


def swiglu(h, p, how):
    if how == "packed":
        a, b = F.linear(h, torch.cat([p["m"], p["m2"]])).chunk(2, -1)
        return F.silu(a) * b
    a, b = F.linear(h, p["m"]), F.linear(h, p["m2"])
    return b * F.silu(a) if how == "up-first" else a * torch.sigmoid(a) * b if how == "sigmoid" else F.silu(a) * b


def top(h, how):
    if how == "before":
        v, i = h.topk(3, -1)
        return torch.zeros_like(h).scatter(-1, i, F.softmax(v, -1))
    q = F.softmax(h, -1)
    v, i = q.topk(3, -1)
    return torch.zeros_like(h).scatter(-1, i, v / v.sum(-1, keepdim=True))


def frequencies(h, how):
    i = torch.arange(0, X, 2)
    if how == "exp":
        f = torch.exp(i.float() * (-math.log(100.) / X))
    elif how == "pow":
        f = 100. ** (-i.float() / X)
    else:
        f = 1. / (100. ** (i.float() / X))
    a = torch.outer(torch.arange(T).float(), f)
    return h + torch.cat([a.sin(), a.cos()], -1).to(h.dtype)


def _rewritings():
    def attn(a, b):
        return (lambda h, o, p: attention(h, p, a), lambda h, o, p: attention(h, p, b), "any")

    def both(f, a, b):
        return (lambda h, o, p: f(h, p, a), lambda h, o, p: f(h, p, b), "any")

    def un(f, g, d="any"):
        return (lambda h, o, p: f(h), lambda h, o, p: g(h), d)
    s = {f"attention-{w}": attn("plain", w) for w in
         ("scale-q", "scale-both", "added", "where", "baddbmm", "packed", "fused", "div", "einsum", "max-first")}
    s.update({f"attention-fused-{w}": attn("fused", w) for w in ("added", "packed")})
    s.update({f"rms-{w}": both(rms, "plain", w) for w in ("weight-first", "sqrt", "fused", "norm")})
    s.update({f"layer-{w}": both(layer, "fused", w) for w in ("var", "plain")})
    s.update({f"swiglu-{w}": both(swiglu, "plain", w) for w in ("packed", "up-first", "sigmoid")})
    s.update({
        "rope-halves": (lambda h, o, p: rope_half(h, p, 1), lambda h, o, p: rope_split(h, p), "any"),
        "rope-complex": (lambda h, o, p: rope_half(h, p, 1), lambda h, o, p: rope_complex(h, p), "any"),
        "frequencies-exp": un(lambda h: frequencies(h, "div"), lambda h: frequencies(h, "exp")),
        "frequencies-pow": un(lambda h: frequencies(h, "div"), lambda h: frequencies(h, "pow")),
        "topk-softmax": un(lambda h: top(h, "after"), lambda h: top(h, "before")),
        "softmax-by-log": un(lambda h: F.softmax(h, -1), lambda h: F.log_softmax(h, -1).exp()),
        "softmax-by-hand": un(lambda h: F.softmax(h, -1), lambda h: h.exp() / h.exp().sum(-1, keepdim=True)),
        "logsoftmax-lse": un(lambda h: F.log_softmax(h, -1), lambda h: h - h.logsumexp(-1, keepdim=True)),
        "mean-sum": un(lambda h: h - h.mean(1, keepdim=True), lambda h: h - h.sum(1, keepdim=True) / T),
        "var-moments": un(lambda h: h / h.var(-1, keepdim=True, unbiased=False),
                          lambda h: h / ((h - h.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)),
        "summands": (lambda h, o, p: h + o + p["b"], lambda h, o, p: h + p["b"] + o, "any"),
        "summands-right": (lambda h, o, p: (h + o) + h * o, lambda h, o, p: h + (o + h * o), "any"),
        "factors": (lambda h, o, p: h * o * p["w"], lambda h, o, p: p["w"] * (o * h), "any"),
        "commuted": (lambda h, o, p: h + o, lambda h, o, p: o + h, "any"),
        "distributed": (lambda h, o, p: (h + o) * p["w"], lambda h, o, p: h * p["w"] + o * p["w"], "any"),
        "square": un(lambda h: h ** 2, lambda h: h * h), "square-fn": un(lambda h: h.pow(2), torch.square),
        "half": un(lambda h: h / 2, lambda h: h * 0.5), "reciprocal": (lambda h, o, p: o / h, lambda h, o, p: o * h.reciprocal(), "positive"),
        "rsqrt": (lambda h, o, p: o * torch.rsqrt(h), lambda h, o, p: o / torch.sqrt(h), "positive"),
        "sqrt-pow": un(torch.sqrt, lambda h: h ** 0.5, "positive"),
        "silu-by-hand": un(F.silu, lambda h: h * torch.sigmoid(h)), "relu-clamp": un(F.relu, lambda h: h.clamp(min=0)),
        "relu-maximum": un(F.relu, lambda h: torch.maximum(h, torch.zeros_like(h))),
        "gelu-by-hand": un(F.gelu, lambda h: 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))),
        "gelu-tanh-by-hand": un(lambda h: F.gelu(h, approximate="tanh"),
                                lambda h: 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))),
        "sigmoid-by-hand": un(torch.sigmoid, lambda h: 1 / (1 + torch.exp(-h))),
        "tanh-by-sigmoid": un(torch.tanh, lambda h: 2 * torch.sigmoid(2 * h) - 1),
        "softplus-by-hand": un(F.softplus, lambda h: torch.log1p(torch.exp(h))),
        "elu-where": un(F.elu, lambda h: torch.where(h > 0, h, torch.expm1(h))),
        "leaky-maximum": un(lambda h: F.leaky_relu(h, 0.1), lambda h: torch.maximum(h, 0.1 * h)),
        "linear-matmul": (lambda h, o, p: F.linear(h, p["m"], p["b"]), lambda h, o, p: h @ p["m"].t() + p["b"], "any"),
        "linear-addmm": (lambda h, o, p: F.linear(h, p["m"], p["b"]),
                         lambda h, o, p: torch.addmm(p["b"], h.reshape(-1, X), p["m"].t()).view(4, T, X), "any"),
        "linear-einsum": (lambda h, o, p: F.linear(h, p["m"]), lambda h, o, p: torch.einsum("btd,ed->bte", h, p["m"]), "any"),
        "linear-parts": (lambda h, o, p: F.linear(torch.cat([h, o], -1), torch.cat([p["m"], p["m2"]], 1)),
                         lambda h, o, p: F.linear(h, p["m"]) + F.linear(o, p["m2"]), "any"),
        "linear-folded": (lambda h, o, p: F.linear(h * p["w"], p["m"]), lambda h, o, p: F.linear(h, p["m"] * p["w"]), "any"),
        "bmm-matmul": (lambda h, o, p: torch.bmm(h, o.transpose(1, 2)) @ h, lambda h, o, p: torch.matmul(h, o.mT) @ h, "any"),
        "bmm-associated": (lambda h, o, p: (h @ o.transpose(1, 2)) @ h, lambda h, o, p: h @ (o.transpose(1, 2) @ h), "any"),
        "conv-unfold": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"], padding=1).transpose(1, 2),
                        lambda h, o, p: unfolded(h, p), "any"),
        "conv-linear": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["m"][..., None]).transpose(1, 2), lambda h, o, p: F.linear(h, p["m"]), "any"),
        "embedding-onehot": (lambda h, o, p: h + F.embedding(p["ids"], p["table"]),
                             lambda h, o, p: h + F.one_hot(p["ids"], 5).to(h.dtype) @ p["table"], "any"),
        "embedding-index": (lambda h, o, p: h + F.embedding(p["ids"], p["table"]), lambda h, o, p: h + p["table"][p["ids"]], "any"),
        "select-index": (lambda h, o, p: h.index_select(1, p["at"]), lambda h, o, p: h[:, p["at"]], "any"),
        "select-gather": (lambda h, o, p: h.index_select(1, p["at"]), lambda h, o, p: h.gather(1, p["at"][None, :, None].expand(4, -1, X)), "any"),
        "mask-where": (lambda h, o, p: h.masked_fill(~p["keep"][..., None], 0.), lambda h, o, p: torch.where(p["keep"][..., None], h, torch.zeros_like(h)), "any"),
        "mask-mul": (lambda h, o, p: h.masked_fill(~p["keep"][..., None], 0.), lambda h, o, p: h * p["keep"][..., None].to(h.dtype), "any"),
        "pooled": (lambda h, o, p: h + (h * p["keep"][..., None]).sum(1, keepdim=True) / p["keep"].sum(1)[:, None, None],
                   lambda h, o, p: h + (h * (p["keep"] / p["keep"].sum(1, keepdim=True)).to(h.dtype)[..., None]).sum(1, keepdim=True), "any"),
        "normalize": un(lambda h: F.normalize(h, dim=-1), lambda h: h / h.norm(dim=-1, keepdim=True)),
        "normalize-rsqrt": un(lambda h: F.normalize(h, dim=-1), lambda h: h * torch.rsqrt((h * h).sum(-1, keepdim=True))),
        "stack-view": un(lambda h: torch.stack([h[..., ::2], h[..., 1::2]], -1).flatten(-2) * 2, lambda h: (h.view(4, T, -1, 2) * 2).view(4, T, X)),
        "heads-order": un(lambda h: (h.view(4, T, HEADS, -1).transpose(1, 2) * 3).transpose(1, 2).reshape(4, T, X), lambda h: h * 3),
        "tokens-first": un(lambda h: F.gelu(h.transpose(0, 1)).transpose(0, 1), F.gelu),
        "sorted-back": (lambda h, o, p: torch.tanh(h[:, p["at"]])[:, p["at"].argsort()], lambda h, o, p: torch.tanh(h), "any"),
        "cumsum-matmul": un(lambda h: h.cumsum(1), lambda h: torch.ones(T, T, dtype=h.dtype).tril() @ h),
        "lerp-by-hand": (lambda h, o, p: torch.lerp(h, o, 0.3), lambda h, o, p: h + 0.3 * (o - h), "any"),
        "split-halves": un(lambda h: torch.cat([F.silu(x) for x in h.chunk(2, -1)], -1), F.silu),
        "loop-tokens": un(lambda h: torch.stack([torch.tanh(h[:, i]) for i in range(T)], 1), torch.tanh),
        "up-cast": un(F.gelu, lambda h: F.gelu(h.double()).to(h.dtype)), "scaled-twice": un(lambda h: h * 0.25, lambda h: h * 0.5 * 0.5),
    })
    losses = {
        "ignored-labels": (lambda y, p: loss_ignored(y, p, -100), lambda y, p: loss_ignored(y, p, -1)),
        "crossentropy-nll": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                             lambda y, p: F.nll_loss(F.log_softmax(y.flatten(0, 1), -1), p["labels"].flatten())),
        "crossentropy-gather": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                                lambda y, p: -F.log_softmax(y, -1).gather(-1, p["labels"][..., None]).mean()),
        "crossentropy-sum": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                             lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), reduction="sum") / p["labels"].numel()),
        "mse-by-hand": (lambda y, p: F.mse_loss(y, p["target"].float()), lambda y, p: (y - p["target"].float()).pow(2).mean()),
        "bce-by-hand": (lambda y, p: F.binary_cross_entropy_with_logits(y, p["target"].float()),
                        lambda y, p: F.binary_cross_entropy(torch.sigmoid(y), p["target"].float())),
    }
    return s, losses


def unfolded(h, p):
    x = F.pad(h, (0, 0, 1, 1))
    x = torch.cat([x[:, i:i + T] for i in range(3)], -1)
    return F.linear(x, p["conv"].permute(0, 2, 1).reshape(X, -1))


def loss_ignored(y, p, label):
    labels = torch.where(p["keep"], p["labels"], torch.tensor(label))
    return F.cross_entropy(y.flatten(0, 1), labels.flatten(), ignore_index=label)


# --- more of them

def attention_heads(h, p, how):
    q, k, v = (F.linear(h, p[m]) for m in ("m", "m2", "m3"))
    mask = p["causal"]
    d = X // HEADS
    if how == "loop":
        out = []
        for i in range(HEADS):
            a, b, c = (t[..., i * d:(i + 1) * d] for t in (q, k, v))
            s = (a @ b.transpose(1, 2) / math.sqrt(d)).masked_fill(~mask, float("-inf"))
            out.append(F.softmax(s, -1) @ c)
        return torch.cat(out, -1)
    if how == "tokens-first":
        q, k, v = (t.view(4, T, HEADS, d) for t in (q, k, v))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * d ** -0.5
        s = s.masked_fill(~mask, float("-inf"))
        return torch.einsum("bhqk,bkhd->bqhd", F.softmax(s, -1), v).reshape(4, T, X)
    if how == "flat":
        q, k, v = (t.view(4, T, HEADS, d).transpose(1, 2).reshape(4 * HEADS, T, d) for t in (q, k, v))
        s = torch.bmm(q, k.transpose(1, 2)) * d ** -0.5
        s = torch.where(mask, s, float("-inf"))
        return torch.bmm(F.softmax(s, -1), v).view(4, HEADS, T, d).transpose(1, 2).reshape(4, T, X)
    q, k, v = (t.view(4, T, HEADS, d).transpose(1, 2) for t in (q, k, v))
    if how == "causal":
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    elif how == "bias":
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(T, T, dtype=h.dtype).masked_fill(~mask, float("-inf")))
    elif how == "scaled":
        o = F.scaled_dot_product_attention(q * d ** -0.5, k, v, attn_mask=mask, scale=1.0)
    elif how == "online":
        m = torch.full((4, HEADS, T, 1), -1e30, dtype=h.dtype)
        den, acc = torch.zeros_like(m), torch.zeros_like(q)
        for j in range(0, T, 3):
            s = (q @ k[..., j:j + 3, :].transpose(-1, -2) * d ** -0.5).masked_fill(~mask[:, j:j + 3], -1e30)
            n = torch.maximum(m, s.amax(-1, keepdim=True))
            e, old = torch.exp(s - n), torch.exp(m - n)
            den = den * old + e.sum(-1, keepdim=True)
            acc = acc * old + e @ v[..., j:j + 3, :]
            m = n
        o = acc / den
    elif how == "sinkless":
        s = (q @ k.transpose(-1, -2) * d ** -0.5).masked_fill(~mask, float("-inf"))
        o = torch.exp(s - s.logsumexp(-1, keepdim=True)) @ v
    else:
        s = (q @ k.transpose(-1, -2) * d ** -0.5).masked_fill(~mask, float("-inf"))
        o = F.softmax(s.float(), -1).to(h.dtype) @ v
    return o.transpose(1, 2).reshape(4, T, X)


def grouped(h, p, how):
    """One head of keys and values for two of queries."""
    d = X // HEADS
    q, k, v = F.linear(h, p["m"]), F.linear(h, p["m2"][:d]), F.linear(h, p["m3"][:d])
    q = q.view(4, T, HEADS, d).transpose(1, 2)
    k, v = k[:, None], v[:, None]
    if how == "expand":
        k, v = k.expand(-1, HEADS, -1, -1), v.expand(-1, HEADS, -1, -1)
    elif how == "repeat":
        k, v = k.repeat(1, HEADS, 1, 1), v.repeat_interleave(HEADS, 1)
    if how == "gqa":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=p["causal"], enable_gqa=True).transpose(1, 2).reshape(4, T, X)
    s = (q @ k.transpose(-1, -2) / math.sqrt(d)).masked_fill(~p["causal"], float("-inf"))
    return (F.softmax(s, -1) @ v).transpose(1, 2).reshape(4, T, X)


def qknorm(h, p, how):
    q, k = F.linear(h, p["m"]), F.linear(h, p["m2"])
    if how == "fused":
        q, k = F.rms_norm(q, (X,), p["w"], 1e-6), F.rms_norm(k, (X,), p["w"], 1e-6)
    else:
        q, k = (t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + 1e-6) * p["w"] for t in (q, k))
    return F.softmax(q @ k.transpose(1, 2) / math.sqrt(X), -1) @ h


def alibi(h, p, how):
    s = F.linear(h, p["m"]) @ F.linear(h, p["m2"]).transpose(1, 2)
    i = torch.arange(T)
    if how == "relative":
        s = s + (i[None, :] - i[:, None]).to(h.dtype) * 0.5
    else:       # softmax does not see what a row has in common
        s = s + i[None, :].to(h.dtype) * 0.5
    return F.softmax(s.masked_fill(~p["causal"], float("-inf")), -1) @ h


def lstm(h, p, how):
    w = torch.cat([p["m"], p["m2"], p["m3"], p["m"] * 0.5])
    u = torch.cat([p["m2"], p["m3"], p["m"], p["m2"] * 0.5])
    x, c, out = torch.zeros(4, X, dtype=h.dtype), torch.zeros(4, X, dtype=h.dtype), []
    for t in range(T):
        if how == "joint":
            g = F.linear(torch.cat([h[:, t], x], -1), torch.cat([w, u], 1))
        else:
            g = F.linear(h[:, t], w) + F.linear(x, u)
        i, f, n, o = g.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n)
        x = torch.sigmoid(o) * torch.tanh(c)
        out.append(x)
    return torch.stack(out, 1)


def experts(h, p, how):
    """Two experts, the best of which each token takes."""
    score = F.softmax(F.linear(h, p["m"][:2]), -1)
    best, at = score.max(-1, keepdim=True)
    if how == "masked":
        return sum(torch.where(at == e, best * F.silu(F.linear(h, p[m])), torch.zeros_like(h)) for e, m in enumerate(("m2", "m3")))
    if how == "weighted":
        gate = torch.zeros_like(score).scatter(-1, at, best)
        return sum(gate[..., e:e + 1] * F.silu(F.linear(h, p[m])) for e, m in enumerate(("m2", "m3")))
    flat, out = h.reshape(-1, X), torch.zeros(4 * T, X, dtype=h.dtype)
    for e, m in enumerate(("m2", "m3")):
        rows = (at.flatten() == e).nonzero()[:, 0]
        out = out.index_add(0, rows, F.silu(F.linear(flat[rows], p[m])) * best.reshape(-1, 1)[rows])
    return out.view(4, T, X)


def _more():
    def both(f, a, b):
        return (lambda h, o, p: f(h, p, a), lambda h, o, p: f(h, p, b), "any")

    def un(f, g, d="any"):
        return (lambda h, o, p: f(h), lambda h, o, p: g(h), d)
    s = {f"heads-{w}": both(attention_heads, "plain", w) for w in ("loop", "tokens-first", "flat", "causal", "bias", "scaled", "online", "sinkless")}
    s.update({f"heads-causal-{w}": both(attention_heads, "causal", w) for w in ("bias", "scaled", "flat", "loop")})
    s.update({f"grouped-{a}-{b}": both(grouped, a, b) for a, b in (("expand", "repeat"), ("expand", "gqa"), ("plain", "expand"), ("repeat", "gqa"))})
    s.update({"qknorm": both(qknorm, "fused", "plain"), "alibi": both(alibi, "relative", "absolute"), "lstm-joint": both(lstm, "joint", "apart"),
              "experts-masked": both(experts, "masked", "weighted"), "experts-indexed": both(experts, "indexed", "weighted"),
              "experts-indexed-masked": both(experts, "indexed", "masked")})
    s.update({
        "linear-ones": (lambda h, o, p: F.linear(h, p["m"], p["b"]),
                        lambda h, o, p: torch.cat([h, torch.ones(4, T, 1, dtype=h.dtype)], -1) @ torch.cat([p["m"].t(), p["b"][None]]), "any"),
        "linear-scaled": (lambda h, o, p: F.linear(h, p["m"]) * 0.3, lambda h, o, p: F.linear(h, p["m"] * 0.3), "any"),
        "linear-scaled-in": (lambda h, o, p: F.linear(h, p["m"]) * 0.3, lambda h, o, p: F.linear(h * 0.3, p["m"]), "any"),
        "linear-rows": (lambda h, o, p: F.linear(h, p["m"]), lambda h, o, p: torch.cat([F.linear(h, p["m"][:4]), F.linear(h, p["m"][4:])], -1), "any"),
        "linear-columns": (lambda h, o, p: F.linear(h, p["m"]), lambda h, o, p: F.linear(h[..., :4], p["m"][:, :4]) + F.linear(h[..., 4:], p["m"][:, 4:]), "any"),
        "linear-lora": (lambda h, o, p: F.linear(h, p["m"] + p["m2"][:, :2] @ p["m3"][:2]), lambda h, o, p: F.linear(h, p["m"]) + F.linear(F.linear(h, p["m3"][:2]), p["m2"][:, :2]), "any"),
        "linear-twice": (lambda h, o, p: F.linear(F.linear(h, p["m"]), p["m2"]), lambda h, o, p: F.linear(h, p["m2"] @ p["m"]), "any"),
        "linear-batch": (lambda h, o, p: F.linear(h, p["m"]), lambda h, o, p: torch.stack([F.linear(x, p["m"]) for x in h]), "any"),
        "bias-before": (lambda h, o, p: F.linear(h, p["m"], p["b"]) + o, lambda h, o, p: F.linear(h, p["m"]) + (o + p["b"]), "any"),
        "norm-then-linear": (lambda h, o, p: F.linear(F.layer_norm(h, (X,), p["w"], p["b"]), p["m"]),
                             lambda h, o, p: F.linear(F.layer_norm(h, (X,)), p["m"] * p["w"], F.linear(p["b"], p["m"])), "any"),
        "layer-group": (lambda h, o, p: F.layer_norm(h, (X,), p["w"], p["b"]), lambda h, o, p: F.group_norm(h.reshape(-1, X), 1, p["w"], p["b"]).view(4, T, X), "any"),
        "layer-moments": (lambda h, o, p: F.layer_norm(h, (X,)), lambda h, o, p: (h - h.mean(-1, keepdim=True)) * torch.rsqrt((h * h).mean(-1, keepdim=True) - h.mean(-1, keepdim=True) ** 2 + 1e-5), "any"),
        "batch-by-hand": (lambda h, o, p: F.batch_norm(h.transpose(1, 2), p["b"] * 0, p["w"] ** 2, p["w"], p["b"], False).transpose(1, 2),
                          lambda h, o, p: h / torch.sqrt(p["w"] ** 2 + 1e-5) * p["w"] + p["b"], "any"),
        "batch-folded": (lambda h, o, p: F.batch_norm(F.conv1d(h.transpose(1, 2), p["conv"], padding=1), p["b"], 4 * p["w"] ** 2, p["w"], p["b"], False).transpose(1, 2),
                         lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"] * (p["w"] / torch.sqrt(4 * p["w"] ** 2 + 1e-5))[:, None, None], p["b"] - p["b"] * p["w"] / torch.sqrt(4 * p["w"] ** 2 + 1e-5), padding=1).transpose(1, 2), "any"),
        "instance-by-hand": un(lambda h: F.instance_norm(h), lambda h: (h - h.mean(-1, keepdim=True)) / torch.sqrt(h.var(-1, keepdim=True, unbiased=False) + 1e-5)),
        "conv-2d": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"], padding=1).transpose(1, 2),
                    lambda h, o, p: F.conv2d(h.transpose(1, 2)[:, :, None], p["conv"][:, :, None], padding=(0, 1))[:, :, 0].transpose(1, 2), "any"),
        "conv-padded": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"], padding=2)[..., :T].transpose(1, 2),
                        lambda h, o, p: F.conv1d(F.pad(h.transpose(1, 2), (2, 0)), p["conv"]).transpose(1, 2), "any"),
        "conv-shifts": (lambda h, o, p: F.conv1d(h.transpose(1, 2), p["conv"], padding=1).transpose(1, 2),
                        lambda h, o, p: sum(F.linear(F.pad(h, (0, 0, 1, 1))[:, i:i + T], p["conv"][..., i]) for i in range(3)), "any"),
        "depthwise-shifts": (lambda h, o, p: F.conv1d(F.pad(h.transpose(1, 2), (2, 0)), p["conv"][:, :1], groups=X).transpose(1, 2),
                             lambda h, o, p: sum(F.pad(h, (0, 0, 2, 0))[:, i:i + T] * p["conv"][:, 0, i] for i in range(3)), "any"),
        "pad-cat": un(lambda h: F.pad(h, (0, 0, 1, 0))[:, :T], lambda h: torch.cat([torch.zeros(4, 1, X, dtype=h.dtype), h[:, :-1]], 1)),
        "shift-roll": un(lambda h: F.pad(h, (0, 0, 1, 0))[:, :T], lambda h: torch.roll(h, 1, 1) * (torch.arange(T) > 0).to(h.dtype)[:, None]),
        "glu-by-hand": un(lambda h: torch.cat([F.glu(h, -1)] * 2, -1), lambda h: torch.cat([h[..., :4] * torch.sigmoid(h[..., 4:])] * 2, -1)),
        "chunk-index": un(lambda h: torch.cat([F.silu(h.chunk(2, -1)[0]) * h.chunk(2, -1)[1]] * 2, -1), lambda h: torch.cat([F.silu(h[..., :4]) * h[..., 4:]] * 2, -1)),
        "avgpool-mean": un(lambda h: F.avg_pool1d(h, 2).repeat_interleave(2, -1), lambda h: h.view(4, T, -1, 2).mean(-1).repeat_interleave(2, -1)),
        "maxpool-amax": un(lambda h: F.max_pool1d(h, 2).repeat_interleave(2, -1), lambda h: h.view(4, T, -1, 2).amax(-1).repeat_interleave(2, -1)),
        "nearest-repeat": un(lambda h: F.interpolate(h[..., :4], scale_factor=2), lambda h: h[..., :4].repeat_interleave(2, -1)),
        "nearest-expand": un(lambda h: F.interpolate(h[..., :4], scale_factor=2), lambda h: h[..., :4, None].expand(-1, -1, -1, 2).reshape(4, T, X)),
        "quick-gelu": un(lambda h: h * torch.sigmoid(1.702 * h), lambda h: F.silu(1.702 * h) / 1.702),
        "silu-exp": un(F.silu, lambda h: h / (1 + torch.exp(-h))),
        "swish-half": un(F.silu, lambda h: 0.5 * h * (1 + torch.tanh(0.5 * h))),
        "relu-where": un(F.relu, lambda h: torch.where(h > 0, h, torch.zeros_like(h))), "relu-mul": un(F.relu, lambda h: h * (h > 0)),
        "relu-square": un(lambda h: F.relu(h) ** 2, lambda h: F.relu(h) * h),
        "softcap": un(lambda h: 3 * torch.tanh(h / 3), lambda h: torch.tanh(h * (1 / 3)) * 3),
        "softmax-transposed": un(lambda h: F.softmax(h, 1), lambda h: F.softmax(h.transpose(1, 2), -1).transpose(1, 2)),
        "softmax-shifted": un(lambda h: F.softmax(h, -1), lambda h: F.softmax(h - h.amax(-1, keepdim=True).detach(), -1)),
        "softmax-temperature": un(lambda h: F.softmax(h / 0.7, -1), lambda h: F.softmax(h, -1) ** (1 / 0.7) / (F.softmax(h, -1) ** (1 / 0.7)).sum(-1, keepdim=True)),
        "sigmoid-softmax": un(lambda h: torch.sigmoid(h[..., :4] - h[..., 4:]).repeat(1, 1, 2), lambda h: F.softmax(torch.stack([h[..., :4], h[..., 4:]], -1), -1)[..., 0].repeat(1, 1, 2)),
        "log-sum-exp": un(lambda h: h - h.logsumexp(-1, keepdim=True), lambda h: h - h.exp().sum(-1, keepdim=True).log()),
        "std-var": un(lambda h: h / h.std(-1, keepdim=True), lambda h: h / h.var(-1, keepdim=True).sqrt()),
        "norm-sum": un(lambda h: h / h.norm(dim=-1, keepdim=True), lambda h: h / (h * h).sum(-1, keepdim=True).sqrt()),
        "cosine-by-hand": (lambda h, o, p: h * F.cosine_similarity(h, o, -1)[..., None],
                           lambda h, o, p: h * (F.normalize(h, dim=-1) * F.normalize(o, dim=-1)).sum(-1, keepdim=True), "any"),
        "distance": (lambda h, o, p: F.softmax(-torch.cdist(h, o) ** 2, -1) @ h,
                     lambda h, o, p: F.softmax(-((h[:, :, None] - o[:, None]) ** 2).sum(-1), -1) @ h, "any"),
        "outer-broadcast": (lambda h, o, p: (h[..., :, None] * o[..., None, :]).sum(-1), lambda h, o, p: h * o.sum(-1, keepdim=True), "any"),
        "addcmul": (lambda h, o, p: torch.addcmul(p["b"], h, p["w"]), lambda h, o, p: h * p["w"] + p["b"], "any"),
        "film": (lambda h, o, p: h * (1 + o) + p["b"], lambda h, o, p: h + h * o + p["b"], "any"),
        "sub-neg": (lambda h, o, p: h - o, lambda h, o, p: h + (-o), "any"),
        "sub-alpha": (lambda h, o, p: torch.add(h, o, alpha=0.5), lambda h, o, p: h + 0.5 * o, "any"),
        "mean-two": (lambda h, o, p: (h + o) / 2, lambda h, o, p: torch.stack([h, o]).mean(0), "any"),
        "max-two": (lambda h, o, p: torch.maximum(h, o), lambda h, o, p: torch.stack([h, o]).amax(0), "any"),
        "where-mul": (lambda h, o, p: torch.where(p["keep"][..., None], h, o), lambda h, o, p: h * p["keep"][..., None] + o * (~p["keep"][..., None]), "any"),
        "clamp-min-max": un(lambda h: h.clamp(-1, 1), lambda h: torch.minimum(torch.maximum(h, torch.tensor(-1., dtype=h.dtype)), torch.tensor(1., dtype=h.dtype))),
        "cube": un(lambda h: h ** 3, lambda h: h * h * h), "inverse-pow": un(lambda h: h ** -0.5, torch.rsqrt, "positive"),
        "exp-log": un(lambda h: h ** 0.3, lambda h: torch.exp(0.3 * torch.log(h)), "positive"),
        "flip-index": un(lambda h: torch.tanh(h.flip(1)), lambda h: torch.tanh(h)[:, torch.arange(T - 1, -1, -1)]),
        "permute-einsum": (lambda h, o, p: (h.transpose(1, 2) @ o).softmax(-1).sum(1, keepdim=True) * h, lambda h, o, p: torch.einsum("btd,bte->bde", h, o).softmax(-1).sum(1, keepdim=True) * h, "any"),
        "ema-loop": un(ema_loop, ema_matrix),
        "pooled-last": (lambda h, o, p: h + h[:, -1:], lambda h, o, p: h + h.index_select(1, torch.tensor([T - 1])), "any"),
        "cls-cat": (lambda h, o, p: torch.cat([h[:, :1], torch.tanh(h[:, 1:])], 1), lambda h, o, p: torch.where((torch.arange(T) == 0)[:, None], h, torch.tanh(h)), "any"),
        "dropout-zero": un(lambda h: F.dropout(torch.tanh(h), 0.0), torch.tanh), "dropout-eval": un(lambda h: F.dropout(torch.tanh(h), 0.5, False), torch.tanh),
        "cloned": un(lambda h: torch.tanh(h.clone()), torch.tanh), "contiguous": un(lambda h: torch.tanh(h.transpose(1, 2).contiguous()).transpose(1, 2).contiguous(), torch.tanh),
        "in-place": un(lambda h: (h * 2).add_(1).tanh_(), lambda h: torch.tanh(2 * h + 1)), "residual-in-place": (lambda h, o, p: (h * 1).add_(o), lambda h, o, p: h + o, "any"),
    })
    smooth = 0.1
    losses = {
        "smoothing": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), label_smoothing=smooth), lambda y, p: smoothed(y, p, smooth)),
        "crossentropy-transposed": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()), lambda y, p: F.cross_entropy(y.transpose(1, 2), p["labels"])),
        "crossentropy-lse": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                             lambda y, p: (y.logsumexp(-1) - y.gather(-1, p["labels"][..., None])[..., 0]).mean()),
        "crossentropy-onehot": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                                lambda y, p: -(F.one_hot(p["labels"], X).to(y.dtype) * F.log_softmax(y, -1)).sum(-1).mean()),
        "crossentropy-masked": (lambda y, p: loss_ignored(y, p, -100),
                                lambda y, p: (F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), reduction="none") * p["keep"].flatten()).sum() / p["keep"].sum()),
        "crossentropy-chunks": (lambda y, p: F.cross_entropy(y.flatten(0, 1), p["labels"].flatten()),
                                lambda y, p: sum(F.cross_entropy(a, b, reduction="sum") for a, b in zip(y, p["labels"])) / p["labels"].numel()),
        "crossentropy-index": (lambda y, p: loss_ignored(y, p, -100), lambda y, p: F.cross_entropy(y[p["keep"]], p["labels"][p["keep"]])),
        "huber": (lambda y, p: F.smooth_l1_loss(y, p["target"].float()), lambda y, p: F.huber_loss(y, p["target"].float())),
        "l1-by-hand": (lambda y, p: F.l1_loss(y, p["target"].float()), lambda y, p: (y - p["target"].float()).abs().mean()),
        "kl-by-hand": (lambda y, p: F.kl_div(F.log_softmax(y, -1), F.softmax(p["target"].float(), -1), reduction="batchmean"),
                       lambda y, p: (F.softmax(p["target"].float(), -1) * (F.log_softmax(p["target"].float(), -1) - F.log_softmax(y, -1))).sum() / 4),
        "bce-logs": (lambda y, p: F.binary_cross_entropy_with_logits(y, p["target"].float()), lambda y, p: (F.softplus(y) - y * p["target"].float()).mean()),
    }
    return s, losses


def ema_loop(h):
    out, x = [], torch.zeros_like(h[:, 0])
    for t in range(T):
        x = 0.5 * x + h[:, t]
        out.append(x)
    return torch.stack(out, 1)


def ema_matrix(h):
    i = torch.arange(T)
    d = (i[:, None] - i[None]).to(h.dtype)
    return torch.where(d >= 0, 0.5 ** d, torch.zeros_like(d)) @ h


def smoothed(y, p, s):
    l = F.log_softmax(y, -1)
    return ((1 - s) * -l.gather(-1, p["labels"][..., None])[..., 0] + s * -l.mean(-1)).mean()


def loss_filled(y, p, label):
    labels = p["labels"].masked_fill(~p["keep"], label)
    return F.cross_entropy(y.flatten(0, 1), labels.flatten(), ignore_index=label)


EXCHANGES, WRONG_LOSSES = _exchanges()
REWRITINGS, LOSSES = _rewritings()
for _table, _rows in zip((REWRITINGS, LOSSES), _more()):
    _table.update(_rows)
