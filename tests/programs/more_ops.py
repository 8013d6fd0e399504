"""More formulas that are equal, as in ops.py; written after the judge had been taught on those."""
import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from ops import HEADS, T, X


def split(x):
    return x.view(4, -1, HEADS, X // HEADS).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).reshape(4, -1, X)


def scores(h, p):
    q, k, v = (split(F.linear(h, p[n])) for n in ("m", "m2", "m3"))
    return q, k, v, q @ k.transpose(-1, -2) / math.sqrt(X // HEADS)


def plain(h, p):
    *_, v, s = scores(h, p)
    return merged(F.softmax(s, -1) @ v)


def by_queries(h, p):
    q, k, v = (split(F.linear(h, p[n])) for n in ("m", "m2", "m3"))
    return merged(torch.cat([F.softmax(x @ k.mT / math.sqrt(X // HEADS), -1) @ v for x in q.split(2, 2)], 2))


def divided_after(h, p):
    *_, v, s = scores(h, p)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return merged((e @ v) / e.sum(-1, keepdim=True))


def in_blocks(h, p):
    *_, v, s = scores(h, p)
    one, two = s.split([4, 2], -1)
    a, b = one.logsumexp(-1, keepdim=True), two.logsumexp(-1, keepdim=True)
    c = torch.logaddexp(a, b)
    return merged(torch.exp(a - c) * (F.softmax(one, -1) @ v[:, :, :4]) + torch.exp(b - c) * (F.softmax(two, -1) @ v[:, :, 4:]))


def head_by_head(h, p):
    n = X // HEADS
    q, k, v = (F.linear(h, p[w]) for w in ("m", "m2", "m3"))
    return torch.cat([F.softmax(q[..., i:i + n] @ k[..., i:i + n].mT / math.sqrt(n), -1) @ v[..., i:i + n] for i in range(0, X, n)], -1)


def head_weights(h, p):
    n = X // HEADS
    q, k, v = ([F.linear(h, w) for w in p[m].split(n)] for m in ("m", "m2", "m3"))
    return torch.cat([F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(q, k, v)], -1)


def padded(h, p):
    q, k, v = (split(F.pad(F.linear(h, p[n]), (0, 0, 0, 2))) for n in ("m", "m2", "m3"))
    s = (q @ k.mT / math.sqrt(X // HEADS)).masked_fill(torch.arange(T + 2) >= T, float("-inf"))
    return merged(F.softmax(s, -1) @ v)[:, :T]


def log_mask(h, p):
    *_, v, s = scores(h, p)
    return merged(F.softmax(s + p["keep"].to(h.dtype).log()[:, None, None], -1) @ v)


def filled_mask(h, p):
    *_, v, s = scores(h, p)
    return merged(F.softmax(s.masked_fill(~p["keep"][:, None, None], torch.finfo(h.dtype).min), -1) @ v)


def turned(h, p, interleaved):
    q, k, v = (F.linear(h, p[n]) for n in ("m", "m2", "m3"))
    q, k, v = split(q), split(k), split(v)
    n = X // HEADS // 2
    cos, sin = p["cos"][:, :n], p["sin"][:, :n]

    def turn(x):
        a, b = (x[..., ::2], x[..., 1::2]) if interleaved == "interleaved" else x.view(*x.shape[:-1], n, 2).unbind(-1)
        a, b = a * cos - b * sin, b * cos + a * sin
        return torch.cat([a, b], -1) if interleaved == "apart" else torch.stack([a, b], -1).flatten(-2)
    return merged(F.softmax(turn(q) @ turn(k).mT, -1) @ v)


def normed(h, p, how):
    if how == "group":
        return F.group_norm(h.reshape(-1, X), 1, p["w"], p["b"], 1e-5).view(4, T, X)
    if how == "moments":
        m, s = h.mean(-1, keepdim=True), h.square().mean(-1, keepdim=True)
        return (h - m) * torch.rsqrt(s - m * m + 1e-5) * p["w"] + p["b"]
    if how == "apart":
        return torch.addcmul(p["b"], F.layer_norm(h, (X,), eps=1e-5), p["w"])
    if how == "centred":
        c = h - h.mean(-1, keepdim=True)
        return c / (c.norm(dim=-1, keepdim=True) / math.sqrt(X)).square().add(1e-5).sqrt() * p["w"] + p["b"]
    return F.layer_norm(h, (X,), p["w"], p["b"], 1e-5)


def steps(h, p):
    out, s = [], torch.zeros_like(h[:, 0])
    for t in range(T):
        s = torch.tanh(F.linear(h[:, t], p["m"], p["b"]) + F.linear(s, p["m2"]))
        out.append(s)
    return torch.stack(out, 1)


def steps_before(h, p):
    x, s = F.linear(h, p["m"], p["b"]), torch.zeros(4, X, dtype=h.dtype)
    out = []
    for x_t in x.unbind(1):
        s = (torch.addmm(x_t, s, p["m2"].t())).tanh()
        out += [s[:, None]]
    return torch.cat(out, 1)


def routed(h, p, how):
    x = h.reshape(-1, X)
    w = p["up"].view(4, X, X)
    g = F.softmax(F.linear(x, p["m"][:4]), -1)
    v, at = g.topk(2, -1)
    if how == "dense":
        y = torch.einsum("td,edf->etf", x, w)
        k = torch.zeros_like(g).scatter_add(1, at, v)
        return torch.einsum("etf,te->tf", y, k).view(4, T, X)
    if how == "sorted":
        flat = at.flatten()
        order = flat.argsort(stable=True)
        rows, n = x[order // 2], torch.bincount(flat, minlength=4).tolist()
        y = torch.cat([a @ b for a, b in zip(rows.split(n), w)])
        out = torch.empty_like(y)
        out[order] = y
        return (out.view(-1, 2, X) * v[..., None]).sum(1).view(4, T, X)
    if how == "gathered":
        return (torch.matmul(x[:, None, None], w[at])[:, :, 0] * v[..., None]).sum(1).view(4, T, X)
    out = torch.zeros_like(x)
    for e in range(4):
        row, k = (at == e).nonzero(as_tuple=True)
        out.index_add_(0, row, (x[row] @ w[e]) * v[row, k, None])
    return out.view(4, T, X)


def fft_conv(h, p):
    k = F.pad(p["conv"][:, 0], (0, T - 3)).float()
    return torch.fft.irfft(torch.fft.rfft(h.mT.float()) * torch.fft.rfft(k), n=T).mT.to(h.dtype)


def round_conv(h, p):
    x = h.mT
    return F.conv1d(torch.cat([x[..., -2:], x], -1), p["conv"][:, :1].flip(2), groups=X).mT


def _more():
    def both(f, a, b):
        return (lambda h, o, p: f(h, p, a), lambda h, o, p: f(h, p, b), "any")

    def un(f, g, d="any"):
        return (lambda h, o, p: f(h), lambda h, o, p: g(h), d)

    def at(f, g):
        return (lambda h, o, p: f(h, p), lambda h, o, p: g(h, p), "any")
    t = {f"more-attention-{f.__name__}": at(plain, f) for f in (by_queries, divided_after, in_blocks, head_by_head, head_weights, padded)}
    t.update({f"more-norm-{n}": both(normed, "fused", n) for n in ("group", "moments", "apart", "centred")})
    t.update({f"more-norm-{a}-{b}": both(normed, a, b) for a, b in (("group", "centred"), ("moments", "apart"))})
    t.update({f"more-experts-{a}-{b}": both(routed, a, b) for a, b in (("loop", "dense"), ("loop", "sorted"), ("sorted", "gathered"), ("dense", "gathered"))})
    t.update({
        "more-mask-log": at(filled_mask, log_mask), "more-rope-apart": both(turned, "interleaved", "apart"), "more-rope-unbound": both(turned, "interleaved", "unbound"),
        "more-steps": at(steps, steps_before), "more-fft": at(round_conv, fft_conv),
        "more-linear-attention": (lambda h, o, p: (F.elu(h) + 1) @ ((F.elu(o) + 1).mT @ h), lambda h, o, p: ((F.elu(h) + 1) @ (F.elu(o) + 1).mT) @ h, "any"),
        "more-products": at(lambda h, p: F.linear(F.linear(h, p["m"]), p["m2"]), lambda h, p: F.linear(h, p["m2"] @ p["m"])),
        "more-linear-heads": at(lambda h, p: F.linear(h, p["m"]), lambda h, p: torch.cat([F.linear(h, w) for w in p["m"].chunk(4)], -1)),
        "more-linear-tokens": at(lambda h, p: F.linear(h, p["m"], p["b"]), lambda h, p: torch.stack([torch.addmv(p["b"], p["m"], r) for r in h.reshape(-1, X)]).view(4, T, X)),
        "more-linear-conv": at(lambda h, p: F.linear(h, p["m"], p["b"]), lambda h, p: F.conv2d(h.mT[:, :, None], p["m"][:, :, None, None], p["b"])[:, :, 0].mT),
        "more-tensordot": at(lambda h, p: F.linear(h, p["m"]), lambda h, p: torch.tensordot(h, p["m"], ([2], [1]))),
        "more-sum-of-outer": at(lambda h, p: F.linear(h, p["m"]), lambda h, p: (h[..., None, :] * p["m"]).sum(-1)),
        "more-weight-norm": at(lambda h, p: F.linear(h, p["w"][:, None] * p["m"] / p["m"].norm(dim=1, keepdim=True)),
                               lambda h, p: F.linear(h, F.normalize(p["m"], dim=1)) * p["w"]),
        "more-checkpoint": at(lambda h, p: torch.tanh(F.linear(F.gelu(F.linear(h, p["m"])), p["m2"])),
                              lambda h, p: checkpoint(lambda x: torch.tanh(F.linear(F.gelu(F.linear(x, p["m"])), p["m2"])), h, use_reentrant=False)),
        "more-ndtr": un(F.gelu, lambda h: h * torch.special.ndtr(h)), "more-silu-over": un(F.silu, lambda h: h / (1 + torch.exp(-h))),
        "more-hardswish": un(F.hardswish, lambda h: h * (h + 3).clamp(0, 6) / 6), "more-mish": un(F.mish, lambda h: h * torch.tanh(F.softplus(h))),
        "more-selu": un(F.selu, lambda h: 1.0507009873554805 * torch.where(h > 0, h, 1.6732632423543772 * (torch.exp(h) - 1))),
        "more-logsigmoid": un(F.logsigmoid, lambda h: -F.softplus(-h)), "more-softplus-logaddexp": un(F.softplus, lambda h: torch.logaddexp(h, torch.zeros_like(h))),
        "more-softsign": un(F.softsign, lambda h: h / (1 + h.abs())), "more-tanh-exp": un(torch.tanh, lambda h: (torch.exp(h) - torch.exp(-h)) / (torch.exp(h) + torch.exp(-h))),
        "more-horner": un(lambda h: 1 + h + h ** 2 / 2 + h ** 3 / 6, lambda h: 1 + h * (1 + h / 2 * (1 + h / 3))),
        "more-power": un(lambda h: h ** 4, lambda h: (h * h) * (h * h)), "more-power-norm": un(lambda h: h / (h ** 2).sum(-1, keepdim=True) ** 0.5, lambda h: F.normalize(h, dim=-1)),
        "more-topk-sort": un(lambda h: h - h.topk(3, -1).values.mean(-1, keepdim=True), lambda h: h - h.sort(-1, descending=True).values[..., :3].sum(-1, keepdim=True) / 3),
        "more-max-topk": un(lambda h: h - h.amax(-1, keepdim=True), lambda h: h - h.topk(1, -1).values),
        "more-std-unbiased": un(lambda h: h / h.std(-1, keepdim=True), lambda h: h / torch.sqrt(h.var(-1, unbiased=False, keepdim=True) * X / (X - 1))),
        "more-distances": (lambda h, o, p: (h[:, :, None] - o[:, None]).square().sum(-1) @ h,
                           lambda h, o, p: (h.square().sum(-1)[:, :, None] + o.square().sum(-1)[:, None] - 2 * h @ o.mT) @ h, "any"),
        "more-dots": (lambda h, o, p: h * (h * o).sum(-1, keepdim=True), lambda h, o, p: h * torch.einsum("btd,btd->bt", h, o)[..., None], "any"),
        "more-dots-bmm": (lambda h, o, p: h * (h * o).sum(-1, keepdim=True), lambda h, o, p: h * torch.bmm(h.view(-1, 1, X), o.view(-1, X, 1)).view(4, T, 1), "any"),
        "more-differences": un(lambda h: torch.cat([h[:, :1], h[:, 1:] - h[:, :-1]], 1), lambda h: torch.diff(h, dim=1, prepend=torch.zeros(4, 1, X, dtype=h.dtype))),
        "more-differences-roll": un(lambda h: h - h.roll(1, 1), lambda h: torch.cat([h[:, :1] - h[:, -1:], h[:, 1:] - h[:, :-1]], 1)),
        "more-mean-product": un(lambda h: h - h.mean(-1, keepdim=True), lambda h: h - h @ torch.full((X, 1), 1 / X, dtype=h.dtype)),
        "more-centring": un(lambda h: h - h.mean(-1, keepdim=True), lambda h: h @ (torch.eye(X) - 1 / X).to(h.dtype)),
        "more-clip": un(lambda h: h.clamp(-1, 1), lambda h: torch.minimum(torch.maximum(h, torch.tensor(-1., dtype=h.dtype)), torch.tensor(1., dtype=h.dtype))),
        "more-abs": un(torch.abs, lambda h: torch.maximum(h, -h)), "more-sign": un(lambda h: h.abs(), lambda h: h * h.sign()),
        "more-cumsum-loop": un(lambda h: h.cumsum(1), lambda h: torch.stack([h[:, :i + 1].sum(1) for i in range(T)], 1)),
        "more-complex": (lambda h, o, p: torch.cat([h * o - o * o, h * o + o * h], -1)[..., :X], lambda h, o, p: (torch.complex(h.float(), o.float()) * torch.complex(o.float(), o.float())).real.to(h.dtype), "any"),
        "more-residual-alpha": (lambda h, o, p: h + 0.5 * o, lambda h, o, p: torch.add(h, o, alpha=0.5), "any"),
        "more-interpolated": un(lambda h: F.interpolate(h.mT, scale_factor=2).mT[:, ::2], lambda h: h * 1.),
        "more-bilinear": (lambda h, o, p: h * ((h @ p["m"]) * o).sum(-1, keepdim=True), lambda h, o, p: h * torch.einsum("bti,ij,btj->bt", h, p["m"], o)[..., None], "any"),
    })
    t["more-samples"] = at(plain, lambda h, p: torch.cat([one(x, p) for x in h.split(1)]))
    return t


def one(x, p):
    q, k, v = (F.linear(x, p[n]).view(1, T, HEADS, -1).transpose(1, 2) for n in ("m", "m2", "m3"))
    return (F.softmax(q @ k.mT / math.sqrt(X // HEADS), -1) @ v).transpose(1, 2).reshape(1, T, X)


REWRITINGS = _more()


# --- losses as they are written twice: y is [4, T, X] in f32

def contrast_two(y, p):
    a, b = F.normalize(y[0], dim=-1), F.normalize(y[1], dim=-1)
    s, i = a @ b.t() / 0.1, torch.arange(len(a))
    return (F.cross_entropy(s, i) + F.cross_entropy(s.t(), i)) / 2


def contrast_diagonal(y, p):
    a, b = y[0] / y[0].norm(dim=1, keepdim=True), y[1] / y[1].norm(dim=1, keepdim=True)
    s = torch.einsum("id,jd->ij", a, b) * 10
    return -0.5 * (torch.diagonal(s.log_softmax(1)).mean() + torch.diagonal(s.log_softmax(0)).mean())


def returns(p):
    return p["target"][..., 0].float() - 0.5


def policy_categorical(y, p):
    d = torch.distributions.Categorical(logits=y)
    return -(d.log_prob(p["labels"]) * returns(p)).mean() - 0.01 * d.entropy().mean()


def policy_nll(y, p):
    q = F.log_softmax(y, -1)
    entropy = -(q.exp() * q).sum(-1).mean()
    return F.nll_loss(q.flatten(0, 1), p["labels"].flatten(), reduction="none").mul(returns(p).flatten()).mean() - entropy * 0.01


def group_min(y, p):
    q = torch.log_softmax(y, -1).gather(-1, p["labels"][..., None]).squeeze(-1)
    gain = (returns(p)[:, 0] - returns(p)[:, 0].mean()) / (returns(p)[:, 0].std() + 1e-4)
    ratio = torch.exp(q - q.detach())
    return -torch.min(ratio * gain[:, None], ratio.clamp(0.8, 1.2) * gain[:, None]).mean()


def group_max(y, p):
    q = y.gather(-1, p["labels"].unsqueeze(-1))[..., 0] - torch.logsumexp(y, -1)
    gain = ((returns(p)[:, 0] - returns(p)[:, 0].mean()) / (returns(p)[:, 0].std() + 1e-4)).unsqueeze(1)
    ratio = (q - q.detach()).exp()
    return torch.max(-gain * ratio, -gain * torch.clamp(ratio, 0.8, 1.2)).sum() / q.numel()


def focal_power(y, p):
    t = (p["target"] > 0.5).float()
    q = torch.sigmoid(y)
    right = q * t + (1 - q) * (1 - t)
    return (F.binary_cross_entropy_with_logits(y, t, reduction="none") * (1 - right) ** 2).sum(-1).mean()


def focal_two(y, p):
    t = (p["target"] > 0.5).float()
    q = y.sigmoid()
    return -(t * (1 - q).pow(2) * F.logsigmoid(y) + (1 - t) * q.pow(2) * F.logsigmoid(-y)).sum() / t[..., 0].numel()


def smoothed_own(y, p):
    return F.cross_entropy(y.flatten(0, 1), p["labels"].flatten(), label_smoothing=0.1)


def smoothed_two(y, p):
    q = F.log_softmax(y.flatten(0, 1), 1)
    return 0.9 * F.nll_loss(q, p["labels"].flatten()) - 0.1 * q.mean()


LOSSES = {"contrast": (contrast_two, contrast_diagonal), "policy": (policy_categorical, policy_nll), "group": (group_min, group_max),
          "focal": (focal_power, focal_two), "smoothed": (smoothed_own, smoothed_two)}
